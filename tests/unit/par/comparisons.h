/* SPDX-License-Identifier: MIT */
/*
 * comparisons.h - comparison functions for records: inconsistent ones, and one that counts
 * calls and sets a cancel flag.
 */
#ifndef TEST_PAR_COMPARISONS_H
#define TEST_PAR_COMPARISONS_H

#include <stdatomic.h>

#include "records.h"

static const size_t record_sizes[] = { 1, 2, 3, 4, 8, 16, 24, 100 };

#define RECORD_SIZES (sizeof record_sizes / sizeof record_sizes[0])

/* --- Inconsistent comparisons ---------------------------------------------------------- */

static _Atomic(uint64_t) lies;

static inline int say_less(const void *a, const void *b, void *arg)
{
    (void)a;
    (void)b;
    (void)arg;
    return -1;
}

static inline int say_greater(const void *a, const void *b, void *arg)
{
    return -say_less(a, b, arg);
}

static inline int say_anything(const void *a, const void *b, void *arg)
{
    (void)a;
    (void)b;
    (void)arg;
    uint64_t call = atomic_fetch_add_explicit(&lies, 1, memory_order_relaxed);
    return (int)(wf_rng_mix(call) % 3) - 1;
}

/* Rock, paper, scissors. */
static inline int go_in_circles(const void *a, const void *b, void *arg)
{
    unsigned x = *(const unsigned char *)a % 3;
    unsigned y = *(const unsigned char *)b % 3;
    (void)arg;
    return x == y ? 0 : (x + 1) % 3 == y ? -1 : 1;
}

/* Like a < b, where some values are NaN. */
static inline int compare_with_nan(const void *a, const void *b, void *arg)
{
    bool is_nan = *(const unsigned char *)a % 4 == 0 || *(const unsigned char *)b % 4 == 0;
    return is_nan ? 0 : compare_records(a, b, arg);
}

static const weft_compare_fn liars[] = { say_less, say_greater, say_anything, go_in_circles,
                                         compare_with_nan };

#define LIARS (sizeof liars / sizeof liars[0])

/* --- Cancels --------------------------------------------------------------------------- */

/* Sets the cancel flag at the given call, and counts calls. */
struct stopping {
    weft_stop stop;
    size_t size;
    uint64_t at; /* 0: never */
    _Atomic(uint64_t) calls;
};

static inline int compare_and_stop(const void *a, const void *b, void *arg)
{
    struct stopping *stopping = arg;
    uint64_t call = atomic_fetch_add_explicit(&stopping->calls, 1, memory_order_relaxed) + 1;
    if (call == stopping->at) {
        weft_stop_set(&stopping->stop);
    }
    return compare_records(a, b, &stopping->size);
}

/* --- Keys ------------------------------------------------------------------------------ */

/* Computes the keys of records. arg points to the record size. */
static inline int key_records(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    size_t size = *(const size_t *)arg;
    CHECK_LE(count, WEFT_ELEMENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        keys[i] = record_key((const char *)elements + i * size, size);
    }
    return 0;
}

/* Fails at one call. arg points to the number of calls left. */
static inline int key_and_fail(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    _Atomic(int) *left = arg;
    (void)elements;
    memset(keys, 0, count * sizeof *keys);
    return atomic_fetch_sub(left, 1) == 1 ? -77 : 0;
}

/* --- Inputs ---------------------------------------------------------------------------- */

/* Returns a hash of the records that does not depend on their order. */
static inline uint64_t bag_of(const void *array, size_t count, size_t size)
{
    uint64_t bag = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = 0;
        for (size_t k = 0; k < size; k++) {
            hash = (hash + ((const unsigned char *)array)[i * size + k] + 1) *
                   UINT64_C(0x9E3779B97F4A7C15);
        }
        bag += wf_rng_mix(hash);
    }
    return bag;
}

/* Calls the function with inputs of all patterns and sizes: a fifth of the small inputs, and
 * some of the others. */
static inline void with_records(void (*function)(const struct records *records))
{
    for (size_t k = 0; k < RECORD_SIZES; k++) {
        for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
            for (size_t i = 0; i < INPUT_COUNTS; i++) {
                if ((i * 3 + pattern + k) % (input_counts[i] <= test_scale(70) ? 5 : 67) != 0) {
                    continue;
                }
                struct records records = records_create((enum pattern)pattern, input_counts[i],
                                                        record_sizes[k], (i + k) % 3);
                function(&records);
                records_destroy(&records);
            }
        }
    }
}

#endif
