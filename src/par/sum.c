/* SPDX-License-Identifier: MIT */
/*
 * sum.c - sums, prefix sums and dot products of numbers.
 *
 * A block is added up in eight interleaved partial sums. So no addition waits for the one just
 * before it, and the compiler may vectorize the loop. The pattern is fixed, and therefore so
 * are the bits of the result. Integers are added as unsigned numbers, for which overflow is
 * defined.
 */
#include <weft/number.h>

#include "par/options.h"
#include "par/pause.h"

static const uint64_t zero_integer = 0;
static const double zero_float = 0;

static void add_integers(void *value, const void *next, void *arg)
{
    (void)arg;
    *(uint64_t *)value += *(const uint64_t *)next;
}

static void add_floats(void *value, const void *next, void *arg)
{
    (void)arg;
    *(double *)value += *(const double *)next;
}

/* Defines total add_name(array, first, end), which adds up term(array, i). */
#define MAKE_ADD(name, array_type, total, term)                                                    \
    static inline total add_##name(const array_type *array, size_t first, size_t end)              \
    {                                                                                              \
        total a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;                              \
        size_t i = first;                                                                          \
        for (; end - i >= 8; i += 8) {                                                             \
            a += term(array, i);                                                                   \
            b += term(array, i + 1);                                                               \
            c += term(array, i + 2);                                                               \
            d += term(array, i + 3);                                                               \
            e += term(array, i + 4);                                                               \
            f += term(array, i + 5);                                                               \
            g += term(array, i + 6);                                                               \
            h += term(array, i + 7);                                                               \
        }                                                                                          \
        total rest = 0;                                                                            \
        for (; i < end; i++) {                                                                     \
            rest += term(array, i);                                                                \
        }                                                                                          \
        return (((a + e) + (c + g)) + ((b + f) + (d + h))) + rest;                                 \
    }

enum {
    is_exact_integer = true,
    is_exact_float = false,
};

#define SIGNED(array, i)   ((uint64_t)(int64_t)(array)[i])
#define UNSIGNED(array, i) ((uint64_t)(array)[i])
#define FLOATING(array, i) ((double)(array)[i])

/* --- Sums and prefix sums -------------------------------------------------------------- */

/*
 * Defines the functions of one type. kind, integer or float, selects how two totals are added.
 *
 * from and to may be the same array, so each number is read before its position is written.
 */
#define MAKE_SUM(name, type, sum_type, total, kind, term)                                          \
    MAKE_ADD(name, type, total, term)                                                              \
                                                                                                   \
    struct scan_##name {                                                                           \
        const type *from;                                                                          \
        sum_type *to;                                                                              \
    };                                                                                             \
                                                                                                   \
    static int fold_##name(void *value, size_t first, size_t end, void *arg)                       \
    {                                                                                              \
        const struct scan_##name *scan = arg;                                                      \
        *(total *)value += add_##name(scan->from, first, end);                                     \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int write_##name(void *value, size_t first, size_t end, void *arg)                      \
    {                                                                                              \
        const struct scan_##name *scan = arg;                                                      \
        total sum = *(const total *)value;                                                         \
        for (size_t i = first; i < end; i++) {                                                     \
            sum += term(scan->from, i);                                                            \
            scan->to[i] = (sum_type)sum;                                                           \
        }                                                                                          \
        *(total *)value = sum;                                                                     \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static int write_exclusive_##name(void *value, size_t first, size_t end, void *arg)            \
    {                                                                                              \
        const struct scan_##name *scan = arg;                                                      \
        total sum = *(const total *)value;                                                         \
        for (size_t i = first; i < end; i++) {                                                     \
            total before = sum;                                                                    \
            sum += term(scan->from, i);                                                            \
            scan->to[i] = (sum_type)before;                                                        \
        }                                                                                          \
        *(total *)value = sum;                                                                     \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static const weft_reduction reduction_##name = { .size = sizeof(total),                        \
                                                     .identity = &zero_##kind,                     \
                                                     .fold = fold_##name,                          \
                                                     .combine = add_##kind##s };                   \
                                                                                                   \
    int weft_sum_##name(const type *base, size_t count, sum_type *sum,                             \
                        const weft_par_options *options)                                           \
    {                                                                                              \
        *sum = 0;                                                                                  \
        wf_pause_call();                                                                           \
        if (!wf_options_fit(count, sizeof(type))) {                                                \
            return -EINVAL;                                                                        \
        }                                                                                          \
        struct scan_##name scan = { base, NULL };                                                  \
        weft_par_options blocks = wf_options_for_blocks(count, options);                           \
        return weft_reduce(0, count, &reduction_##name, &scan, sum, &blocks);                      \
    }                                                                                              \
                                                                                                   \
    static int scan_with_##name(struct scan_##name *scan, size_t count,                            \
                                int (*write)(void *value, size_t first, size_t end, void *arg),    \
                                const weft_par_options *options)                                   \
    {                                                                                              \
        wf_pause_call();                                                                           \
        if (!wf_options_fit(count, sizeof(sum_type))) {                                            \
            return -EINVAL;                                                                        \
        }                                                                                          \
        weft_scanner how = { .reduction = reduction_##name,                                        \
                             .scan = write,                                                        \
                             .is_exact = is_exact_##kind };                                        \
        weft_par_options blocks = wf_options_for_blocks(count, options);                           \
        return weft_scan(0, count, &how, scan, NULL, &blocks);                                     \
    }                                                                                              \
                                                                                                   \
    int weft_scan_##name(const type *from, size_t count, sum_type *to,                             \
                         const weft_par_options *options)                                          \
    {                                                                                              \
        struct scan_##name scan = { from, to };                                                    \
        return scan_with_##name(&scan, count, write_##name, options);                              \
    }                                                                                              \
                                                                                                   \
    int weft_scan_exclusive_##name(const type *from, size_t count, sum_type *to,                   \
                                   const weft_par_options *options)                                \
    {                                                                                              \
        struct scan_##name scan = { from, to };                                                    \
        return scan_with_##name(&scan, count, write_exclusive_##name, options);                    \
    }

MAKE_SUM(i32, int32_t, int64_t, uint64_t, integer, SIGNED)
MAKE_SUM(i64, int64_t, int64_t, uint64_t, integer, SIGNED)
MAKE_SUM(u32, uint32_t, uint64_t, uint64_t, integer, UNSIGNED)
MAKE_SUM(u64, uint64_t, uint64_t, uint64_t, integer, UNSIGNED)
MAKE_SUM(f32, float, double, double, float, FLOATING)
MAKE_SUM(f64, double, double, double, float, FLOATING)

/* --- Dot products ---------------------------------------------------------------------- */

#define PRODUCT(factors, i) ((double)(factors)->a[i] * (double)(factors)->b[i])

#define MAKE_DOT(name, type)                                                                       \
    struct factors_##name {                                                                        \
        const type *a;                                                                             \
        const type *b;                                                                             \
    };                                                                                             \
                                                                                                   \
    MAKE_ADD(products_##name, struct factors_##name, double, PRODUCT)                              \
                                                                                                   \
    static int fold_products_##name(void *value, size_t first, size_t end, void *arg)              \
    {                                                                                              \
        *(double *)value += add_products_##name(arg, first, end);                                  \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    int weft_dot_##name(const type *a, const type *b, size_t count, double *sum,                   \
                        const weft_par_options *options)                                           \
    {                                                                                              \
        static const weft_reduction how = { .size = sizeof(double),                                \
                                            .identity = &zero_float,                               \
                                            .fold = fold_products_##name,                          \
                                            .combine = add_floats };                               \
        *sum = 0;                                                                                  \
        wf_pause_call();                                                                           \
        if (!wf_options_fit(count, sizeof(type))) {                                                \
            return -EINVAL;                                                                        \
        }                                                                                          \
        struct factors_##name factors = { a, b };                                                  \
        weft_par_options blocks = wf_options_for_blocks(count, options);                           \
        return weft_reduce(0, count, &how, &factors, sum, &blocks);                                \
    }

MAKE_DOT(f32, float)
MAKE_DOT(f64, double)
