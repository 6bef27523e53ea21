/* SPDX-License-Identifier: MIT */
/*
 * histogram.h - counts of times, by size: percentiles without keeping the samples.
 *
 * Each power of two is cut into 128 equal parts, so a part is at most 1/128 of its values
 * wide; its middle is less than 0.4 % away from them.
 */
#ifndef ECHO_HISTOGRAM_H
#define ECHO_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_PART_BITS = 7,
    HISTOGRAM_PARTS = 1 << HISTOGRAM_PART_BITS,
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_PART_BITS + 1) * HISTOGRAM_PARTS,
};

/* Zero is empty. */
struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t total;
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* The value that this share of all (0 to 1) does not exceed; 0 if there is none. */
double histogram_quantile(const struct histogram *histogram, double share);

#endif
