/* SPDX-License-Identifier: MIT */
/*
 * least.c - minimum and maximum of numbers.
 *
 * Each block keeps four interleaved running results, so that no comparison waits for the one
 * just before it. A comparison with NaN is false and keeps the previous result, so NaNs are
 * skipped. The initial result is the worst possible number. If it is also the final result, the
 * block may contain only NaNs, so it is searched once more.
 */
#include <math.h>
#include <string.h>

#include <weft/number.h>

#include "par/options.h"
#include "par/pause.h"

/* Returns x if it is better than the number found so far. */
#define LESS(found, x)    ((x) < (found) ? (x) : (found))
#define GREATER(found, x) ((x) > (found) ? (x) : (found))

/*
 * Defines the search for one type. none is the initial result of a block. settle(found, base,
 * first, end) returns the final result of a block, given the best number found.
 */
#define MAKE_FIND(name, type, better, none, settle)                                                \
    static inline type find_##name(const type *base, size_t first, size_t end)                     \
    {                                                                                              \
        type a = none;                                                                             \
        type b = a;                                                                                \
        type c = a;                                                                                \
        type d = a;                                                                                \
        size_t i = first;                                                                          \
        for (; end - i >= 4; i += 4) {                                                             \
            a = better(a, base[i]);                                                                \
            b = better(b, base[i + 1]);                                                            \
            c = better(c, base[i + 2]);                                                            \
            d = better(d, base[i + 3]);                                                            \
        }                                                                                          \
        for (; i < end; i++) {                                                                     \
            a = better(a, base[i]);                                                                \
        }                                                                                          \
        a = better(a, b);                                                                          \
        c = better(c, d);                                                                          \
        return settle(better(a, c), base, first, end);                                             \
    }                                                                                              \
                                                                                                   \
    static int fold_##name(void *value, size_t first, size_t end, void *arg)                       \
    {                                                                                              \
        type found = find_##name(arg, first, end);                                                 \
        memcpy(value, &found, sizeof found);                                                       \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    /* A NaN differs from itself. */                                                               \
    static void combine_##name(void *value, const void *next, void *arg)                           \
    {                                                                                              \
        (void)arg;                                                                                 \
        type *found = value;                                                                       \
        type other = *(const type *)next;                                                          \
        *found = *found != *found ? other : better(*found, other);                                 \
    }                                                                                              \
                                                                                                   \
    int weft_##name(const type *base, size_t count, type *found, const weft_par_options *options)  \
    {                                                                                              \
        static const type identity = none;                                                         \
        static const weft_reduction how = { .size = sizeof(type),                                  \
                                            .identity = &identity,                                 \
                                            .fold = fold_##name,                                   \
                                            .combine = combine_##name };                           \
        wf_pause_call();                                                                           \
        if (count == 0 || !wf_options_fit(count, sizeof(type))) {                                  \
            return -EINVAL;                                                                        \
        }                                                                                          \
        weft_par_options blocks = wf_options_for_blocks(count, options);                           \
        type result;                                                                               \
        int err = weft_reduce(0, count, &how, (void *)(uintptr_t)base, &result, &blocks);          \
        *found = err == 0 ? result : *found;                                                       \
        return err;                                                                                \
    }

/* For integers, the number found is the result. */
#define SETTLED(found, base, first, end) (found)

/* For floating-point numbers, an infinity may be only the initial result. */
#define MAKE_SETTLE(name, type)                                                                    \
    static type settle_##name(type found, const type *base, size_t first, size_t end)              \
    {                                                                                              \
        bool is_there = !isinf(found);                                                             \
        for (size_t i = first; !is_there && i < end; i++) {                                        \
            is_there = base[i] == found;                                                           \
        }                                                                                          \
        return is_there ? found : (type)NAN;                                                       \
    }

MAKE_SETTLE(f32, float)
MAKE_SETTLE(f64, double)

MAKE_FIND(least_i32, int32_t, LESS, INT32_MAX, SETTLED)
MAKE_FIND(least_i64, int64_t, LESS, INT64_MAX, SETTLED)
MAKE_FIND(least_u32, uint32_t, LESS, UINT32_MAX, SETTLED)
MAKE_FIND(least_u64, uint64_t, LESS, UINT64_MAX, SETTLED)
MAKE_FIND(least_f32, float, LESS, INFINITY, settle_f32)
MAKE_FIND(least_f64, double, LESS, (double)INFINITY, settle_f64)

MAKE_FIND(greatest_i32, int32_t, GREATER, INT32_MIN, SETTLED)
MAKE_FIND(greatest_i64, int64_t, GREATER, INT64_MIN, SETTLED)
MAKE_FIND(greatest_u32, uint32_t, GREATER, 0, SETTLED)
MAKE_FIND(greatest_u64, uint64_t, GREATER, 0, SETTLED)
MAKE_FIND(greatest_f32, float, GREATER, -INFINITY, settle_f32)
MAKE_FIND(greatest_f64, double, GREATER, (double)-INFINITY, settle_f64)
