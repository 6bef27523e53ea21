/* SPDX-License-Identifier: MIT */
/*
 * fold.h - operations for tests of reduce and scan.
 *
 * Affine functions x -> a x + b: their composition is associative but not commutative, so that
 * a part in the wrong position is detected. And sums of doubles of very different magnitudes,
 * whose last bits show the order of the additions.
 */
#ifndef FOLD_H
#define FOLD_H

#include <stddef.h>
#include <stdint.h>

#include <weft.h>

struct affine {
    uint64_t a;
    uint64_t b;
};

#define FOLD_PRIME UINT64_C(1000000007)

/* Returns the composition that applies left first, then right. */
static inline struct affine affine_then(struct affine left, struct affine right)
{
    return (struct affine){ left.a * right.a % FOLD_PRIME,
                            (left.b * right.a + right.b) % FOLD_PRIME };
}

static inline struct affine affine_of(size_t i)
{
    return (struct affine){ (i * 7919 + 3) % FOLD_PRIME, (i * 104729 + 5) % FOLD_PRIME };
}

static const struct affine affine_identity = { 1, 0 };

static inline int affine_fold(void *value, size_t first, size_t end, void *arg)
{
    (void)arg;
    struct affine *affine = value;
    for (size_t i = first; i < end; i++) {
        *affine = affine_then(*affine, affine_of(i));
    }
    return 0;
}

static inline void affine_combine(void *value, const void *next, void *arg)
{
    (void)arg;
    struct affine *affine = value;
    *affine = affine_then(*affine, *(const struct affine *)next);
}

#define AFFINE_REDUCTION                                                                           \
    {                                                                                              \
        .size = sizeof(struct affine), .identity = &affine_identity, .fold = affine_fold,          \
        .combine = affine_combine                                                                  \
    }

static const double fold_zero = 0;

static inline double fold_number(size_t i)
{
    static const double sizes[] = { 1e-3, 1, 7e2, 3e5, 1e-1, 2e9, 1e1 };
    return (double)(uint32_t)(i * UINT64_C(2654435761)) / 3.0 * sizes[i % 7];
}

static inline int sum_fold(void *value, size_t first, size_t end, void *arg)
{
    (void)arg;
    double sum = *(double *)value;
    for (size_t i = first; i < end; i++) {
        sum += fold_number(i);
    }
    *(double *)value = sum;
    return 0;
}

static inline void sum_combine(void *value, const void *next, void *arg)
{
    (void)arg;
    *(double *)value += *(const double *)next;
}

#define SUM_REDUCTION                                                                              \
    {                                                                                              \
        .size = sizeof(double), .identity = &fold_zero, .fold = sum_fold, .combine = sum_combine   \
    }

#endif
