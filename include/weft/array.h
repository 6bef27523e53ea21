/* SPDX-License-Identifier: MIT */
/*
 * weft/array.h - parallel algorithms on arrays.
 *
 *     WEFT_TEST(is_even, int, number, *number % 2 == 0)
 *     WEFT_MAP(half_of, int, number, double, *number / 2.0)
 *
 *     size_t kept;
 *     err = weft_filter(numbers, count, sizeof *numbers, is_even, NULL, evens, &kept, NULL);
 *     if (err == 0) {
 *         err = weft_map(evens, kept, sizeof *evens, half_of, NULL, halves, sizeof *halves, NULL);
 *     }
 *
 * An array is given by its base, its number of elements, and the size of an element in bytes.
 * The base may be NULL if the count is 0. The callbacks on elements are described in element.h.
 *
 * Every algorithm can be called on any thread. In a task and in weft_par_run(), idle workers
 * help if the call takes long enough. Elsewhere it runs on the calling thread alone. The result
 * does not depend on the number of workers, unless noted otherwise.
 *
 * All algorithms return 0 or an error:
 *
 *   -EINVAL         a size is 0; an array would exceed the address space (PTRDIFF_MAX bytes); or
 *                   the caller's scratch is smaller than weft_array_scratch()
 *   -ENOMEM         no memory for scratch. Only where Errors lists it
 *   WEFT_ECANCELED  options->stop was set
 *   others          the first error that a callback returned
 *
 * After an error, result parameters are unchanged unless noted otherwise, but the contents of
 * an output array are unspecified.
 */
#ifndef WEFT_ARRAY_H
#define WEFT_ARRAY_H

#include "base.h"
#include "element.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/*
 * Returns the number of bytes of scratch that suffices for any function of this header with an
 * array of count elements of the given size. The scratch needs no alignment. Returns SIZE_MAX
 * if the size is not representable. Only functions that can fail with -ENOMEM use scratch.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_array_scratch(size_t count, size_t size);

/* --- Loops ------------------------------------------------------------------------------ */

/* Handles count adjacent elements. The first of them has the index first. Returns 0, or an
 * error, which ends the loop. */
typedef int (*weft_piece_fn)(void *elements, size_t count, size_t first, void *arg);

/* Handles one window, whose first element has the index first. Returns 0, or an error, which
 * ends the loop. */
typedef int (*weft_window_fn)(const void *window, size_t first, void *arg);

/*
 * Calls the body for runs of adjacent elements that together cover each element once.
 * weft_for() chooses their length, up to options->piece if that is set.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_for_each(void *base, size_t count, size_t size, weft_piece_fn body,
                                          void *arg, const weft_par_options *options);

/*
 * Calls the body for chunks of exactly chunk elements. Only the last chunk may be shorter.
 * options->piece is the maximum number of chunks that a worker handles at a time.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file; also -EINVAL if chunk is 0.
 */
WEFT_API WEFT_NODISCARD int weft_for_chunks(void *base, size_t count, size_t size, size_t chunk,
                                            weft_piece_fn body, void *arg,
                                            const weft_par_options *options);

/*
 * Calls the body for each window of the given number of adjacent elements: count - window + 1
 * times, or never if the array is shorter than a window. options->piece is the maximum number
 * of windows that a worker handles at a time.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file; also -EINVAL if window is 0.
 */
WEFT_API WEFT_NODISCARD int weft_for_windows(const void *base, size_t count, size_t size,
                                             size_t window, weft_window_fn body, void *arg,
                                             const weft_par_options *options);

/* --- Map and fill ----------------------------------------------------------------------- */

/*
 * Maps each element to the element with the same index of another array, whose elements have
 * to_size bytes. Both arrays may be the same if the sizes are equal. Otherwise they must not
 * overlap.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_map(const void *from, size_t count, size_t size, weft_map_fn map,
                                     void *arg, void *to, size_t to_size,
                                     const weft_par_options *options);

/*
 * Maps pairs of elements, with the same index in two arrays, to a third array. The output may
 * be one of the inputs if their element sizes are equal.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_map2(const void *a, size_t a_size, const void *b, size_t b_size,
                                      size_t count, weft_map2_fn map, void *arg, void *to,
                                      size_t to_size, const weft_par_options *options);

/*
 * Copies the value to each element. The value must not be part of the array.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_fill(void *to, size_t count, size_t size, const void *value,
                                      const weft_par_options *options);

/* --- Search ----------------------------------------------------------------------------- */

/*
 * Counts the elements that pass the test. Tests each element once.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_count_if(const void *base, size_t count, size_t size,
                                          weft_test_fn test, void *arg, size_t *passed,
                                          const weft_par_options *options);

/*
 * Sets *answer to whether any element passes the test. Stops soon after an element passes. In
 * an empty array, no element passes the test and all do.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_any(const void *base, size_t count, size_t size, weft_test_fn test,
                                     void *arg, bool *answer, const weft_par_options *options);

/*
 * Sets *answer to whether all elements pass the test. Otherwise like weft_any().
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_all(const void *base, size_t count, size_t size, weft_test_fn test,
                                     void *arg, bool *answer, const weft_par_options *options);

/*
 * Sets *answer to whether no element passes the test. Otherwise like weft_any().
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_none(const void *base, size_t count, size_t size,
                                      weft_test_fn test, void *arg, bool *answer,
                                      const weft_par_options *options);

/*
 * Finds the first element that passes the test. Sets *index to count if none passes. The search
 * starts at the front, but may test some elements beyond the match. An error from one of those
 * may become the result.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_find_first(const void *base, size_t count, size_t size,
                                            weft_test_fn test, void *arg, size_t *index,
                                            const weft_par_options *options);

/*
 * Finds the last element that passes the test. Same as weft_find_first(), but starts at the
 * end.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_find_last(const void *base, size_t count, size_t size,
                                           weft_test_fn test, void *arg, size_t *index,
                                           const weft_par_options *options);

/*
 * Finds any element that passes the test, whichever is found first. Sets *index to count if
 * none passes.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_find_any(const void *base, size_t count, size_t size,
                                          weft_test_fn test, void *arg, size_t *index,
                                          const weft_par_options *options);

/* --- Comparison of two arrays ----------------------------------------------------------- */

/*
 * Sets *answer to whether two arrays are equal, element by element. Two elements are equal if
 * compare returns 0. If compare is NULL, their bytes are compared.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_equal(const void *a, const void *b, size_t count, size_t size,
                                       weft_compare_fn compare, void *arg, bool *answer,
                                       const weft_par_options *options);

/*
 * Finds the first index at which two arrays differ, with the comparison of weft_equal(). Sets
 * *index to count if they are equal.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_mismatch(const void *a, const void *b, size_t count, size_t size,
                                          weft_compare_fn compare, void *arg, size_t *index,
                                          const weft_par_options *options);

/* --- Filter and partition --------------------------------------------------------------- */

/*
 * Copies the elements that pass the test to another array, keeping their order, and counts
 * them. Tests each element once. The output must have space for count elements and must not
 * overlap the input.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file, and -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_filter(const void *base, size_t count, size_t size,
                                        weft_test_fn test, void *arg, void *to, size_t *kept,
                                        const weft_par_options *options);

/*
 * Copies the elements for which keep[i] is true to another array, like weft_filter(). The
 * output needs space only for the elements that are kept.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_pack(const void *base, size_t count, size_t size, const bool *keep,
                                      void *to, size_t *kept, const weft_par_options *options);

/*
 * Moves the elements that pass the test to the front and all others behind them. Both groups
 * keep their order. Sets *passed to the number of elements in front. After an error the array
 * is unchanged.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file, and -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_partition(void *base, size_t count, size_t size, weft_test_fn test,
                                           void *arg, size_t *passed,
                                           const weft_par_options *options);

/* --- Flatten, gather and scatter -------------------------------------------------------- */

/* A contiguous part of an array. */
typedef struct weft_slice {
    const void *base;
    size_t count;
} weft_slice;

/*
 * Concatenates slices, whose elements all have the given size, into one array. The output must
 * not overlap any slice. If offsets is not NULL, it receives the index at which each slice
 * starts in the output, followed by the total count: slices_count + 1 values. If it is NULL,
 * the offsets are kept in scratch, which needs weft_array_scratch(slices_count + 1,
 * sizeof(size_t)) bytes.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file, and -ENOMEM. Offsets may have been written.
 */
WEFT_API WEFT_NODISCARD int weft_flatten(const weft_slice *slices, size_t slices_count, size_t size,
                                         void *to, size_t *offsets,
                                         const weft_par_options *options);

/*
 * Copies the element indexes[i] of one array to the element i of another, for each i below
 * count. The arrays must not overlap.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file; -ERANGE: an index is not below from_count. Other elements
 *           may have been copied.
 */
WEFT_API WEFT_NODISCARD int weft_gather(const void *from, size_t from_count, size_t size,
                                        const size_t *indexes, size_t count, void *to,
                                        const weft_par_options *options);

/*
 * Copies the element i of one array to the element indexes[i] of another, for each i below
 * count. All indexes must differ. The arrays must not overlap.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file; -ERANGE: an index is not below to_count. Other elements
 *           may have been copied.
 */
WEFT_API WEFT_NODISCARD int weft_scatter(const void *from, size_t count, size_t size,
                                         const size_t *indexes, void *to, size_t to_count,
                                         const weft_par_options *options);

/* --- Reverse, rotate and shuffle -------------------------------------------------------- */

/*
 * Reverses the array. After WEFT_ECANCELED the elements are in an unspecified order.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_reverse(void *base, size_t count, size_t size,
                                         const weft_par_options *options);

/*
 * Rotates the array to the left by the given number of positions: elements that leave at the
 * front reenter at the end. by may exceed count. After WEFT_ECANCELED the elements are in an
 * unspecified order.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file.
 */
WEFT_API WEFT_NODISCARD int weft_rotate(void *base, size_t count, size_t size, size_t by,
                                        const weft_par_options *options);

/*
 * Shuffles the array. Every permutation is equally likely, as far as 64 bits of seed allow. The
 * permutation depends only on the seed and the count, not on the size of an element. After an
 * error the array is unchanged.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   see the top of this file, and -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_shuffle(void *base, size_t count, size_t size, uint64_t seed,
                                         const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
