/* SPDX-License-Identifier: MIT */
/*
 * histogram.h - latency histogram: percentiles without keeping the samples.
 *
 * Each power of two is divided into 128 equal buckets, so a bucket is at most 1/128 of its
 * values wide. Its middle is less than 0.4 % away from any of them.
 */
#ifndef ECHO_HISTOGRAM_H
#define ECHO_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_PART_BITS = 7,
    HISTOGRAM_PARTS = 1 << HISTOGRAM_PART_BITS,
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_PART_BITS + 1) * HISTOGRAM_PARTS,
};

/* A zero-initialized histogram is empty. */
struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t total;
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* Returns the value that the given share (0 to 1) of all samples does not exceed; 0 if empty. */
double histogram_quantile(const struct histogram *histogram, double share);

#endif
