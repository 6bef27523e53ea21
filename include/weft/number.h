/* SPDX-License-Identifier: MIT */
/*
 * weft/number.h - arrays of numbers: sums, running totals, the least and the greatest.
 *
 *     double sum;
 *     err = weft_sum_f64(values, count, &sum, NULL);
 *     err = weft_scan_exclusive_u32(lengths, count, offsets, NULL);
 *
 * Each function exists for i32, i64, u32, u64, f32 and f64. They may be called anywhere. In
 * a task, and in weft_par_run(), idle workers help with large inputs. What comes out is the
 * same to the last bit with any number of workers, for floating-point numbers, too: the
 * array is cut into blocks by its length alone, or by options->piece.
 *
 * No scratch is needed.
 */
#ifndef WEFT_NUMBER_H
#define WEFT_NUMBER_H

#include "base.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/*
 * Adds up all numbers. Of none the sum is 0.
 *
 * Integers are added in 64 bits. If the sum does not fit, what is lost are the bits above.
 * Floating-point numbers are added as double, in several sums that are added in pairs: that
 * is more precise than one after the other.
 *
 * Context:  any thread.
 * Suspends: while another worker is at a part of it, as weft_join2().
 * Errors:   -ENOMEM; -EINVAL if no array can be so large; WEFT_ECANCELED: stopped. *sum is 0
 *           then.
 */
WEFT_API WEFT_NODISCARD int weft_sum_i32(const int32_t *base, size_t count, int64_t *sum,
                                         const weft_par_options *options);

/* As weft_sum_i32(). */
WEFT_API WEFT_NODISCARD int weft_sum_i64(const int64_t *base, size_t count, int64_t *sum,
                                         const weft_par_options *options);

/* As weft_sum_i32(). */
WEFT_API WEFT_NODISCARD int weft_sum_u32(const uint32_t *base, size_t count, uint64_t *sum,
                                         const weft_par_options *options);

/* As weft_sum_i32(). */
WEFT_API WEFT_NODISCARD int weft_sum_u64(const uint64_t *base, size_t count, uint64_t *sum,
                                         const weft_par_options *options);

/* As weft_sum_i32(). */
WEFT_API WEFT_NODISCARD int weft_sum_f32(const float *base, size_t count, double *sum,
                                         const weft_par_options *options);

/* As weft_sum_i32(). */
WEFT_API WEFT_NODISCARD int weft_sum_f64(const double *base, size_t count, double *sum,
                                         const weft_par_options *options);

/*
 * Adds up the products a[i] * b[i], as weft_sum_f64() does. Those of floats
 * are exact.
 *
 * Context:  any thread.
 * Suspends: as weft_sum_i32().
 * Errors:   as weft_sum_i32().
 */
WEFT_API WEFT_NODISCARD int weft_dot_f32(const float *a, const float *b, size_t count, double *sum,
                                         const weft_par_options *options);

/* As weft_dot_f32(). */
WEFT_API WEFT_NODISCARD int weft_dot_f64(const double *a, const double *b, size_t count,
                                         double *sum, const weft_par_options *options);

/*
 * Finds the value of the least number.
 *
 * What is not a number (NaN) is skipped; if nothing else is there, the least is NaN. If it
 * is zero, it may be either zero of those that are there.
 *
 * Context:  any thread.
 * Suspends: as weft_sum_i32().
 * Errors:   -ENOMEM; -EINVAL if count is 0, or no array can be so large; WEFT_ECANCELED:
 *           stopped. *least is unchanged then.
 */
WEFT_API WEFT_NODISCARD int weft_least_i32(const int32_t *base, size_t count, int32_t *least,
                                           const weft_par_options *options);

/* As weft_least_i32(). */
WEFT_API WEFT_NODISCARD int weft_least_i64(const int64_t *base, size_t count, int64_t *least,
                                           const weft_par_options *options);

/* As weft_least_i32(). */
WEFT_API WEFT_NODISCARD int weft_least_u32(const uint32_t *base, size_t count, uint32_t *least,
                                           const weft_par_options *options);

/* As weft_least_i32(). */
WEFT_API WEFT_NODISCARD int weft_least_u64(const uint64_t *base, size_t count, uint64_t *least,
                                           const weft_par_options *options);

/* As weft_least_i32(). */
WEFT_API WEFT_NODISCARD int weft_least_f32(const float *base, size_t count, float *least,
                                           const weft_par_options *options);

/* As weft_least_i32(). */
WEFT_API WEFT_NODISCARD int weft_least_f64(const double *base, size_t count, double *least,
                                           const weft_par_options *options);

/*
 * Finds the value of the greatest number, as weft_least_i32() does the least.
 *
 * Context:  any thread.
 * Suspends: as weft_sum_i32().
 * Errors:   as weft_least_i32(); *greatest is unchanged then.
 */
WEFT_API WEFT_NODISCARD int weft_greatest_i32(const int32_t *base, size_t count, int32_t *greatest,
                                              const weft_par_options *options);

/* As weft_greatest_i32(). */
WEFT_API WEFT_NODISCARD int weft_greatest_i64(const int64_t *base, size_t count, int64_t *greatest,
                                              const weft_par_options *options);

/* As weft_greatest_i32(). */
WEFT_API WEFT_NODISCARD int weft_greatest_u32(const uint32_t *base, size_t count,
                                              uint32_t *greatest, const weft_par_options *options);

/* As weft_greatest_i32(). */
WEFT_API WEFT_NODISCARD int weft_greatest_u64(const uint64_t *base, size_t count,
                                              uint64_t *greatest, const weft_par_options *options);

/* As weft_greatest_i32(). */
WEFT_API WEFT_NODISCARD int weft_greatest_f32(const float *base, size_t count, float *greatest,
                                              const weft_par_options *options);

/* As weft_greatest_i32(). */
WEFT_API WEFT_NODISCARD int weft_greatest_f64(const double *base, size_t count, double *greatest,
                                              const weft_par_options *options);

/*
 * Writes running totals: to[i] is the sum of from[0] to from[i]. Sums are as
 * those of weft_sum_i32(). If both have the same type, to may be from; otherwise they do not
 * overlap.
 *
 * Context:  any thread.
 * Suspends: as weft_for().
 * Errors:   -ENOMEM, and -EINVAL if no array can be so large: nothing was written.
 *           WEFT_ECANCELED: stopped, and what is at to is of no use.
 */
WEFT_API WEFT_NODISCARD int weft_scan_i32(const int32_t *from, size_t count, int64_t *to,
                                          const weft_par_options *options);

/* As weft_scan_i32(). */
WEFT_API WEFT_NODISCARD int weft_scan_i64(const int64_t *from, size_t count, int64_t *to,
                                          const weft_par_options *options);

/* As weft_scan_i32(). */
WEFT_API WEFT_NODISCARD int weft_scan_u32(const uint32_t *from, size_t count, uint64_t *to,
                                          const weft_par_options *options);

/* As weft_scan_i32(). */
WEFT_API WEFT_NODISCARD int weft_scan_u64(const uint64_t *from, size_t count, uint64_t *to,
                                          const weft_par_options *options);

/* As weft_scan_i32(). */
WEFT_API WEFT_NODISCARD int weft_scan_f32(const float *from, size_t count, double *to,
                                          const weft_par_options *options);

/* As weft_scan_i32(). */
WEFT_API WEFT_NODISCARD int weft_scan_f64(const double *from, size_t count, double *to,
                                          const weft_par_options *options);

/*
 * The same without the number itself: to[i] is the sum of from[0]
 * to from[i - 1], and to[0] is 0.
 *
 * Context:  any thread.
 * Suspends: as weft_for().
 * Errors:   as weft_scan_i32().
 */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_i32(const int32_t *from, size_t count, int64_t *to,
                                                    const weft_par_options *options);

/* As weft_scan_exclusive_i32(). */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_i64(const int64_t *from, size_t count, int64_t *to,
                                                    const weft_par_options *options);

/* As weft_scan_exclusive_i32(). */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_u32(const uint32_t *from, size_t count,
                                                    uint64_t *to, const weft_par_options *options);

/* As weft_scan_exclusive_i32(). */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_u64(const uint64_t *from, size_t count,
                                                    uint64_t *to, const weft_par_options *options);

/* As weft_scan_exclusive_i32(). */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_f32(const float *from, size_t count, double *to,
                                                    const weft_par_options *options);

/* As weft_scan_exclusive_i32(). */
WEFT_API WEFT_NODISCARD int weft_scan_exclusive_f64(const double *from, size_t count, double *to,
                                                    const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
