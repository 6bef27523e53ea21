/* SPDX-License-Identifier: MIT */
/*
 * weft/number.h - parallel sum, dot product, minimum, maximum and prefix sum of numbers.
 *
 *     double sum;
 *     err = weft_sum_f64(values, count, &sum, NULL);
 *     err = weft_scan_exclusive_u32(lengths, count, offsets, NULL);
 *
 * Most functions exist for i32, i64, u32, u64, f32 and f64. All can be called on any thread. In
 * a task and in weft_par_run(), idle workers help with large inputs. The result is bitwise the
 * same with any number of workers, also for floating-point numbers: the split of the array into
 * blocks depends only on its length, or on options->piece.
 *
 * The caller need not provide scratch.
 */
#ifndef WEFT_NUMBER_H
#define WEFT_NUMBER_H

#include "base.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/*
 * Computes the sum of all numbers. The sum of an empty array is 0.
 *
 * Integers are added in 64 bits and wrap around on overflow. Floating-point numbers are added
 * as double, in several partial sums that are combined pairwise. This is more precise than
 * adding them one after the other.
 *
 * Context:  any thread.
 * Suspends: while another worker runs a part of it, like weft_join2().
 * Errors:   -ENOMEM; -EINVAL if the array would exceed PTRDIFF_MAX bytes; WEFT_ECANCELED:
 *           options->stop was set. *sum is 0 after an error.
 */
WEFT_API WEFT_NODISCARD int weft_sum_i32(const int32_t *base, size_t count, int64_t *sum,
                                         const weft_par_options *options);

/* Same as weft_sum_i32(), for int64_t. */
WEFT_API WEFT_NODISCARD int weft_sum_i64(const int64_t *base, size_t count, int64_t *sum,
                                         const weft_par_options *options);

/* Same as weft_sum_i32(), for uint32_t. */
WEFT_API WEFT_NODISCARD int weft_sum_u32(const uint32_t *base, size_t count, uint64_t *sum,
                                         const weft_par_options *options);

/* Same as weft_sum_i32(), for uint64_t. */
WEFT_API WEFT_NODISCARD int weft_sum_u64(const uint64_t *base, size_t count, uint64_t *sum,
                                         const weft_par_options *options);

/* Same as weft_sum_i32(), for float. */
WEFT_API WEFT_NODISCARD int weft_sum_f32(const float *base, size_t count, double *sum,
                                         const weft_par_options *options);

/* Same as weft_sum_i32(), for double. */
WEFT_API WEFT_NODISCARD int weft_sum_f64(const double *base, size_t count, double *sum,
                                         const weft_par_options *options);

/*
 * Computes the sum of the products a[i] * b[i], adding like weft_sum_f64(). The products of
 * floats are exact.
 *
 * Context:  any thread.
 * Suspends: like weft_sum_i32().
 * Errors:   like weft_sum_i32().
 */
WEFT_API WEFT_NODISCARD int weft_dot_f32(const float *a, const float *b, size_t count, double *sum,
                                         const weft_par_options *options);

/* Same as weft_dot_f32(), for double. */
WEFT_API WEFT_NODISCARD int weft_dot_f64(const double *a, const double *b, size_t count,
                                         double *sum, const weft_par_options *options);

/*
 * Finds the minimum.
 *
 * NaNs are skipped. If the array contains only NaNs, the minimum is NaN. If the minimum is
 * zero, it may be any zero of the array, with either sign.
 *
 * Context:  any thread.
 * Suspends: like weft_sum_i32().
 * Errors:   -ENOMEM; -EINVAL if count is 0, or the array would exceed PTRDIFF_MAX bytes;
 *           WEFT_ECANCELED: options->stop was set. *least is unchanged after an error.
 */
WEFT_API WEFT_NODISCARD int weft_least_i32(const int32_t *base, size_t count, int32_t *least,
                                           const weft_par_options *options);

/* Same as weft_least_i32(), for int64_t. */
WEFT_API WEFT_NODISCARD int weft_least_i64(const int64_t *base, size_t count, int64_t *least,
                                           const weft_par_options *options);

/* Same as weft_least_i32(), for uint32_t. */
WEFT_API WEFT_NODISCARD int weft_least_u32(const uint32_t *base, size_t count, uint32_t *least,
                                           const weft_par_options *options);

/* Same as weft_least_i32(), for uint64_t. */
WEFT_API WEFT_NODISCARD int weft_least_u64(const uint64_t *base, size_t count, uint64_t *least,
                                           const weft_par_options *options);

/* Same as weft_least_i32(), for float. */
WEFT_API WEFT_NODISCARD int weft_least_f32(const float *base, size_t count, float *least,
                                           const weft_par_options *options);

/* Same as weft_least_i32(), for double. */
WEFT_API WEFT_NODISCARD int weft_least_f64(const double *base, size_t count, double *least,
                                           const weft_par_options *options);

/*
 * Finds the maximum. Otherwise like weft_least_i32().
 *
 * Context:  any thread.
 * Suspends: like weft_sum_i32().
 * Errors:   like weft_least_i32(). *greatest is unchanged after an error.
 */
WEFT_API WEFT_NODISCARD int weft_greatest_i32(const int32_t *base, size_t count, int32_t *greatest,
                                              const weft_par_options *options);

/* Same as weft_greatest_i32(), for int64_t. */
WEFT_API WEFT_NODISCARD int weft_greatest_i64(const int64_t *base, size_t count, int64_t *greatest,
                                              const weft_par_options *options);

/* Same as weft_greatest_i32(), for uint32_t. */
WEFT_API WEFT_NODISCARD int weft_greatest_u32(const uint32_t *base, size_t count,
                                              uint32_t *greatest, const weft_par_options *options);

/* Same as weft_greatest_i32(), for uint64_t. */
WEFT_API WEFT_NODISCARD int weft_greatest_u64(const uint64_t *base, size_t count,
                                              uint64_t *greatest, const weft_par_options *options);

/* Same as weft_greatest_i32(), for float. */
WEFT_API WEFT_NODISCARD int weft_greatest_f32(const float *base, size_t count, float *greatest,
                                              const weft_par_options *options);

/* Same as weft_greatest_i32(), for double. */
WEFT_API WEFT_NODISCARD int weft_greatest_f64(const double *base, size_t count, double *greatest,
                                              const weft_par_options *options);

/*
 * Computes inclusive prefix sums: to[i] is the sum of from[0] to from[i]. Numbers are added as
 * in weft_sum_i32(). If both arrays have the same type, they may be the same array. Otherwise
 * they must not overlap.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   -ENOMEM, or -EINVAL if an array would exceed PTRDIFF_MAX bytes: nothing was
 *           written. WEFT_ECANCELED: options->stop was set, and the contents of to are
 *           unspecified.
 */
WEFT_API WEFT_NODISCARD int weft_scan_i32(const int32_t *from, size_t count, int64_t *to,
                                          const weft_par_options *options);

/* Same as weft_scan_i32(), for int64_t. */
WEFT_API WEFT_NODISCARD int weft_scan_i64(const int64_t *from, size_t count, int64_t *to,
                                          const weft_par_options *options);

/* Same as weft_scan_i32(), for uint32_t. */
WEFT_API WEFT_NODISCARD int weft_scan_u32(const uint32_t *from, size_t count, uint64_t *to,
                                          const weft_par_options *options);

/* Same as weft_scan_i32(), for uint64_t. */
WEFT_API WEFT_NODISCARD int weft_scan_u64(const uint64_t *from, size_t count, uint64_t *to,
                                          const weft_par_options *options);

/* Same as weft_scan_i32(), for float. */
WEFT_API WEFT_NODISCARD int weft_scan_f32(const float *from, size_t count, double *to,
                                          const weft_par_options *options);

/* Same as weft_scan_i32(), for double. */
WEFT_API WEFT_NODISCARD int weft_scan_f64(const double *from, size_t count, double *to,
                                          const weft_par_options *options);

/*
 * Computes exclusive prefix sums: to[i] is the sum of from[0] to from[i - 1], and to[0] is 0.
 * Otherwise like weft_scan_i32().
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   like weft_scan_i32().
 */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_i32(const int32_t *from, size_t count, int64_t *to,
                                                    const weft_par_options *options);

/* Same as weft_scan_exclusive_i32(), for int64_t. */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_i64(const int64_t *from, size_t count, int64_t *to,
                                                    const weft_par_options *options);

/* Same as weft_scan_exclusive_i32(), for uint32_t. */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_u32(const uint32_t *from, size_t count,
                                                    uint64_t *to, const weft_par_options *options);

/* Same as weft_scan_exclusive_i32(), for uint64_t. */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_u64(const uint64_t *from, size_t count,
                                                    uint64_t *to, const weft_par_options *options);

/* Same as weft_scan_exclusive_i32(), for float. */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_f32(const float *from, size_t count, double *to,
                                                    const weft_par_options *options);

/* Same as weft_scan_exclusive_i32(), for double. */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_f64(const double *from, size_t count, double *to,
                                                    const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
