/* SPDX-License-Identifier: MIT */
/*
 * rng.h - fast pseudo-random generator for choosing victims, one per worker.
 *
 * A pair of 32-bit xorshift words with shifts 17, 7, 16. The only bad state is all zeros, which
 * seeding never produces.
 */
#ifndef WF_BASE_RNG_H
#define WF_BASE_RNG_H

#include <stdint.h>

struct wf_rng {
    uint32_t one;
    uint32_t two;
};

/* The finalizer of splitmix64: neighboring seeds give unrelated states. */
static inline uint64_t wf_rng_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 27;
    x *= UINT64_C(0x94D049BB133111EB);
    x ^= x >> 31;
    return x;
}

/* stream distinguishes generators with the same seed: a worker's index. */
static inline void wf_rng_seed(struct wf_rng *rng, uint64_t seed, uint64_t stream)
{
    uint64_t mixed = wf_rng_mix(seed + (stream + 1) * UINT64_C(0x9E3779B97F4A7C15));
    rng->one = (uint32_t)mixed;
    rng->two = (uint32_t)(mixed >> 32);
    if (mixed == 0) {
        rng->one = 1;
    }
}

static inline uint32_t wf_rng_next(struct wf_rng *rng)
{
    uint32_t s1 = rng->one;
    uint32_t s0 = rng->two;
    s1 ^= s1 << 17;
    s1 = s1 ^ s0 ^ (s1 >> 7) ^ (s0 >> 16);
    rng->one = s0;
    rng->two = s1;
    return s0 + s1;
}

/* Returns a number in [0, n), n > 0, by multiply and shift (Lemire 2019)
 * without the rejection step: a bias of at most n / 2^32. */
static inline uint32_t wf_rng_below(struct wf_rng *rng, uint32_t n)
{
    return (uint32_t)(((uint64_t)wf_rng_next(rng) * n) >> 32);
}

#endif
