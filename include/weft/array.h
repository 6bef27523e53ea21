/* SPDX-License-Identifier: MIT */
/*
 * weft/array.h - algorithms on arrays, in parallel.
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
 * An array is given by its base, the count of its elements, and the size of one in bytes.
 * It may be NULL if the count is 0. Functions of elements are those of element.h.
 *
 * Every algorithm may be called anywhere. In a task, and in weft_par_run(), idle workers
 * help if it takes long enough; elsewhere it runs on the calling thread alone. The result
 * is the same with any number of workers, except where it is said that it may be any.
 *
 * All return 0, or an error:
 *
 *   -EINVAL         a size is 0; an array is larger than memory can be; or the caller's
 *                   scratch is smaller than weft_array_scratch() says
 *   -ENOMEM         there is no memory to work in. Only where Errors says so
 *   WEFT_ECANCELED  options->stop was set
 *   others          what a function of elements has returned, the first one that failed
 *
 * After an error, results are as they were before, unless it is said otherwise; but in an
 * array that is written there may be anything.
 */
#ifndef WEFT_ARRAY_H
#define WEFT_ARRAY_H

#include "base.h"
#include "element.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/*
 * Returns how many bytes of scratch any function of this header needs for an array of so
 * many elements of this size. It may begin at any address. SIZE_MAX: more than there can
 * be. Only those that can fail with -ENOMEM need any.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_array_scratch(size_t count, size_t size);

/* --- Loops ------------------------------------------------------------------------------ */

/* Works on neighbours in an array: so many, of which the first one has the index first.
 * 0, or an error, which ends the loop. */
typedef int (*weft_piece_fn)(void *elements, size_t count, size_t first, void *arg);

/* The same for one window. */
typedef int (*weft_window_fn)(const void *window, size_t first, void *arg);

/*
 * Calls the body for pieces of the array, each element once. They are as long as
 * weft_for() likes, or options->piece.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_for_each(void *base, size_t count, size_t size, weft_piece_fn body,
                                          void *arg, const weft_par_options *options);

/*
 * Calls the body for chunks of the array, of exactly so many elements; only the last one
 * may be shorter. options->piece is how many chunks one worker does at a time.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above; also -EINVAL if chunk is 0.
 */
WEFT_API WEFT_NODISCARD int weft_for_chunks(void *base, size_t count, size_t size, size_t chunk,
                                            weft_piece_fn body, void *arg,
                                            const weft_par_options *options);

/*
 * Calls the body for each window of so many neighbours: count - window + 1 times, and
 * never if the array is shorter. options->piece is as for weft_for_chunks().
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above; also -EINVAL if window is 0.
 */
WEFT_API WEFT_NODISCARD int weft_for_windows(const void *base, size_t count, size_t size,
                                             size_t window, weft_window_fn body, void *arg,
                                             const weft_par_options *options);

/* --- From each element another one ------------------------------------------------------ */

/*
 * Maps each element to one of another array, whose elements have to_size bytes. The arrays
 * may be the same if both sizes are, and else do not overlap.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_map(const void *from, size_t count, size_t size, weft_map_fn map,
                                     void *arg, void *to, size_t to_size,
                                     const weft_par_options *options);

/*
 * Maps two arrays, the elements with the same index together, to a third one, which may be
 * one of them if its size is the same.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_map2(const void *a, size_t a_size, const void *b, size_t b_size,
                                      size_t count, weft_map2_fn map, void *arg, void *to,
                                      size_t to_size, const weft_par_options *options);

/*
 * Copies the value to each element. The value is not in the array.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_fill(void *to, size_t count, size_t size, const void *value,
                                      const weft_par_options *options);

/* --- Search ----------------------------------------------------------------------------- */

/*
 * Counts the elements that pass the test. Each is tested once.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_count_if(const void *base, size_t count, size_t size,
                                          weft_test_fn test, void *arg, size_t *passed,
                                          const weft_par_options *options);

/*
 * Does any element pass the test? No further one is tested once that is known. Of an empty
 * array none does, and all do.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_any(const void *base, size_t count, size_t size, weft_test_fn test,
                                     void *arg, bool *answer, const weft_par_options *options);

/*
 * Do all elements pass the test? As weft_any().
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_all(const void *base, size_t count, size_t size, weft_test_fn test,
                                     void *arg, bool *answer, const weft_par_options *options);

/*
 * Does no element pass the test? As weft_any().
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_none(const void *base, size_t count, size_t size,
                                      weft_test_fn test, void *arg, bool *answer,
                                      const weft_par_options *options);

/*
 * Finds the first element that passes the test; *index is count if there is none. The
 * search begins at the front, and some elements behind the one that is found may be tested,
 * too: an error there may be the result.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_find_first(const void *base, size_t count, size_t size,
                                            weft_test_fn test, void *arg, size_t *index,
                                            const weft_par_options *options);

/*
 * Finds the last element that passes the test, likewise from the end.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_find_last(const void *base, size_t count, size_t size,
                                           weft_test_fn test, void *arg, size_t *index,
                                           const weft_par_options *options);

/*
 * Finds an element that passes the test, whichever is found soonest; *index is count if
 * there is none.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_find_any(const void *base, size_t count, size_t size,
                                          weft_test_fn test, void *arg, size_t *index,
                                          const weft_par_options *options);

/* --- Comparison of two arrays ----------------------------------------------------------- */

/*
 * Are all elements of two arrays equal, those with the same index? Compare says 0 then; if
 * it is NULL, their bytes are compared.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_equal(const void *a, const void *b, size_t count, size_t size,
                                       weft_compare_fn compare, void *arg, bool *answer,
                                       const weft_par_options *options);

/*
 * Finds the first index at which two arrays differ, as weft_equal() compares; count if they
 * are equal.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_mismatch(const void *a, const void *b, size_t count, size_t size,
                                          weft_compare_fn compare, void *arg, size_t *index,
                                          const weft_par_options *options);

/* --- Some of the elements --------------------------------------------------------------- */

/*
 * Copies the elements that pass the test to another array, in their order, and counts them.
 * Each is tested once. The other array has room for count elements, and does not overlap.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above, and -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_filter(const void *base, size_t count, size_t size,
                                        weft_test_fn test, void *arg, void *to, size_t *kept,
                                        const weft_par_options *options);

/*
 * Copies the elements whose keep is true to another array, as weft_filter() does. It needs
 * room for those only.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_pack(const void *base, size_t count, size_t size, const bool *keep,
                                      void *to, size_t *kept, const weft_par_options *options);

/*
 * Moves the elements that pass the test to the front, in their order, and the others behind
 * them, in theirs. *passed gets how many are in front. After an error the array is as it
 * was.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above, and -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_partition(void *base, size_t count, size_t size, weft_test_fn test,
                                           void *arg, size_t *passed,
                                           const weft_par_options *options);

/* --- Elements elsewhere ----------------------------------------------------------------- */

/* A part of some array. */
typedef struct weft_slice {
    const void *base;
    size_t count;
} weft_slice;

/*
 * Copies slices of elements of this size to one array, one after the other. It does not
 * overlap with any of them. offsets, if it is not NULL, gets the index at which each one
 * begins, and the count of all: slices_count + 1 of them. If it is NULL, they are in the
 * scratch: weft_array_scratch(slices_count + 1, sizeof(size_t)).
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above, and -ENOMEM. Offsets may have been written then.
 */
WEFT_API WEFT_NODISCARD int weft_flatten(const weft_slice *slices, size_t slices_count, size_t size,
                                         void *to, size_t *offsets,
                                         const weft_par_options *options);

/*
 * Copies to each element i of an array of count the element indexes[i] of another one. The
 * arrays do not overlap.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above; -ERANGE: an index is not below from_count. Others may have been
 *           copied.
 */
WEFT_API WEFT_NODISCARD int weft_gather(const void *from, size_t from_count, size_t size,
                                        const size_t *indexes, size_t count, void *to,
                                        const weft_par_options *options);

/*
 * Copies each element i of an array of count to the element indexes[i] of another one. No
 * two indexes are equal. The arrays do not overlap.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above; -ERANGE: an index is not below to_count. Others may have been
 *           copied.
 */
WEFT_API WEFT_NODISCARD int weft_scatter(const void *from, size_t count, size_t size,
                                         const size_t *indexes, void *to, size_t to_count,
                                         const weft_par_options *options);

/* --- Elements in another order ---------------------------------------------------------- */

/*
 * Turns the array round: its first element is the last one then. One that was stopped has
 * its elements in any order.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_reverse(void *base, size_t count, size_t size,
                                         const weft_par_options *options);

/*
 * Moves each element to the left by so many places; what would leave the array comes in at
 * its end. by may be more than count. One that was stopped has its elements in any order.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above.
 */
WEFT_API WEFT_NODISCARD int weft_rotate(void *base, size_t count, size_t size, size_t by,
                                        const weft_par_options *options);

/*
 * Shuffles the array: each order is equally likely, as far as there are seeds. The same
 * seed makes the same order of as many elements, of whatever size. After an error the array
 * is as it was.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   see above, and -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_shuffle(void *base, size_t count, size_t size, uint64_t seed,
                                         const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
