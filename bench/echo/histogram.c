/* SPDX-License-Identifier: MIT */
/*
 * histogram.c - latency histogram; see histogram.h.
 *
 * A value is reduced to its highest eight bits and the number of bits below them, its shift.
 * Values below 256 have shift 0 and one bucket each. Every further shift has 128 buckets.
 */
#include "histogram.h"

#include <stddef.h>

static unsigned shift_of(uint64_t value)
{
    unsigned bits = value == 0 ? 1 : 64 - (unsigned)__builtin_clzll(value);
    return bits > HISTOGRAM_PART_BITS + 1 ? bits - HISTOGRAM_PART_BITS - 1 : 0;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    unsigned shift = shift_of(value);
    histogram->counts[(size_t)shift * HISTOGRAM_PARTS + (size_t)(value >> shift)]++;
    histogram->total++;
}

static double middle_of(size_t bucket)
{
    size_t shift = bucket < 2 * HISTOGRAM_PARTS ? 0 : bucket / HISTOGRAM_PARTS - 1;
    double first = (double)(bucket - shift * HISTOGRAM_PARTS);
    double width = (double)((uint64_t)1 << shift);
    return first * width + (width - 1) / 2;
}

double histogram_quantile(const struct histogram *histogram, double share)
{
    double wanted = share * (double)histogram->total;
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen > 0 && (double)seen >= wanted) {
            return middle_of(i);
        }
    }
    return 0;
}
