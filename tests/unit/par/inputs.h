/* SPDX-License-Identifier: MIT */
/*
 * inputs.h - input arrays for sorts, and guarded memory that detects out-of-bounds writes.
 */
#ifndef TEST_PAR_INPUTS_H
#define TEST_PAR_INPUTS_H

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weft.h>

#include "base/rng.h"
#include "everywhere.h"
#include "rt.h"
#include "test.h"

enum pattern {
    RANDOM,
    SORTED,
    REVERSED,
    EQUAL,
    FEW_DISTINCT,
    MOSTLY_EQUAL,
    ORGAN_PIPE,
    SAWTOOTH,
    NEARLY_SORTED,
    CLUSTERED, /* in a few ranges, far apart */
    HALVES,    /* two halves of equal values, the greater one first */
    PATTERNS,
};

static inline uint64_t random_value(struct wf_rng *rng)
{
    return (uint64_t)wf_rng_next(rng) << 32 | wf_rng_next(rng);
}

static inline uint64_t input_value(enum pattern pattern, size_t i, size_t count, struct wf_rng *rng)
{
    switch (pattern) {
    case SORTED:
        return i * 3;
    case REVERSED:
        return (count - i) * 3;
    case EQUAL:
        return 42;
    case FEW_DISTINCT:
        return wf_rng_below(rng, 7) * UINT64_C(0x123456789);
    case MOSTLY_EQUAL:
        return wf_rng_below(rng, 10) > 0 ? 1000 : random_value(rng);
    case ORGAN_PIPE:
        return i < count / 2 ? i : count - i;
    case SAWTOOTH:
        return i % 1000;
    case NEARLY_SORTED:
        return wf_rng_below(rng, 100) > 0 ? i : wf_rng_below(rng, (uint32_t)count + 1);
    case CLUSTERED:
        return (UINT64_C(1) << (60 - 7 * wf_rng_below(rng, 3))) + wf_rng_below(rng, 100000);
    case HALVES:
        return i < count / 2 ? 2 : 1;
    default:
        return random_value(rng);
    }
}

/* Counts at which an algorithm changes, and others. */
static const size_t input_counts[] = { 0,     1,     2,     3,     4,     5,     6,     7,
                                       8,     9,     15,    16,    17,    31,    32,    33,
                                       63,    64,    65,    100,   255,   256,   257,   258,
                                       1000,  4095,  4097,  8191,  10000, 16383, 16384, 16385,
                                       20000, 32767, 32768, 32769, 65537 };

#define INPUT_COUNTS (sizeof input_counts / sizeof input_counts[0])

/* --- Guarded memory -------------------------------------------------------------------- */

enum {
    GUARD = 64,
};

/* size bytes at the given offset from an aligned address, between two guards. */
struct guarded {
    unsigned char *all;
    unsigned char *at;
    size_t size;
};

static inline struct guarded guarded_create(size_t size, size_t offset)
{
    size_t room = (2 * GUARD + size + offset + 63) / 64 * 64;
    struct guarded guarded = { .all = aligned_alloc(64, room), .size = size };
    CHECK(guarded.all != NULL);
    memset(guarded.all, 0xA5, room);
    guarded.at = guarded.all + GUARD + offset;
    return guarded;
}

static inline void guarded_check(const struct guarded *guarded)
{
    for (size_t i = 0; i < GUARD; i++) {
        CHECK_EQ(guarded->at[-1 - (ptrdiff_t)i], 0xA5);
        CHECK_EQ(guarded->at[guarded->size + i], 0xA5);
    }
}

static inline void guarded_destroy(struct guarded *guarded)
{
    guarded_check(guarded);
    free(guarded->all);
}

#endif
