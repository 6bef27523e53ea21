/* SPDX-License-Identifier: MIT */
/*
 * weft/order.h - parallel minimum, maximum, merge, unique, nth element and top k.
 *
 *     err = weft_min(people, count, sizeof *people, by_age, NULL, &youngest, NULL);
 *     err = weft_nth(prices, count, sizeof *prices, count / 2, by_value, NULL, NULL);
 *     err = weft_top_k(scores, count, sizeof *scores, 10, by_rank, NULL, best, &found, NULL);
 *
 * An array is given by its base, its number of elements, and the size of an element in bytes.
 * Every function can be called on any thread. In a task and in weft_par_run(), idle workers
 * help with large inputs. The result does not depend on the number of workers.
 *
 * With an inconsistent comparison the result is unspecified, but no function accesses memory
 * out of bounds, and no element is lost or duplicated.
 */
#ifndef WEFT_ORDER_H
#define WEFT_ORDER_H

#include "base.h"
#include "element.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/*
 * Returns the maximum number of bytes of scratch that any function of this header needs for
 * count elements of the given size. The scratch needs no alignment. Returns SIZE_MAX if the
 * size is not representable.
 *
 * weft_nth(), weft_top_k() and weft_unique() need scratch, the other functions none.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_order_scratch(size_t count, size_t size);

/*
 * Finds the index of the minimum, the first one among equal elements. Sets *index to count,
 * which is 0, if the array is empty.
 *
 * Context:  any thread.
 * Suspends: while another worker runs a part of it, like weft_join2().
 * Errors:   -ENOMEM; -EINVAL if size is 0, or the array would exceed PTRDIFF_MAX bytes;
 *           WEFT_ECANCELED: options->stop was set. *index is count after an error.
 */
WEFT_API WEFT_NODISCARD int weft_min(const void *base, size_t count, size_t size,
                                     weft_compare_fn compare, void *arg, size_t *index,
                                     const weft_par_options *options);

/* Finds the index of the maximum, the first one among equal elements. Otherwise like
 * weft_min(). */
WEFT_API WEFT_NODISCARD int weft_max(const void *base, size_t count, size_t size,
                                     weft_compare_fn compare, void *arg, size_t *index,
                                     const weft_par_options *options);

/*
 * Finds the index of the element with the minimum key, the first one among equal keys. Computes
 * each key once. Otherwise like weft_min().
 *
 * Context:  any thread.
 * Suspends: like weft_min().
 * Errors:   like weft_min(), and errors of the key function.
 */
WEFT_API WEFT_NODISCARD int weft_min_by_key(const void *base, size_t count, size_t size,
                                            weft_key_fn key, void *arg, size_t *index,
                                            const weft_par_options *options);

/* Same as weft_min_by_key(), for the maximum key. */
WEFT_API WEFT_NODISCARD int weft_max_by_key(const void *base, size_t count, size_t size,
                                            weft_key_fn key, void *arg, size_t *index,
                                            const weft_par_options *options);

/*
 * Sets *answer to whether the array is sorted: no element is greater than the one after it.
 * Stops soon after it finds one that is.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   -EINVAL if size is 0, or the array would exceed PTRDIFF_MAX bytes; WEFT_ECANCELED:
 *           options->stop was set. *answer is false after an error.
 */
WEFT_API WEFT_NODISCARD int weft_is_sorted(const void *base, size_t count, size_t size,
                                           weft_compare_fn compare, void *arg, bool *answer,
                                           const weft_par_options *options);

/*
 * Merges two sorted arrays into to, which must have space for both and overlap neither. The
 * merge is stable: equal elements keep their order, and those of a come first.
 *
 * Context:  any thread.
 * Suspends: like weft_min().
 * Errors:   -EINVAL if size is 0, or the result would exceed PTRDIFF_MAX bytes; WEFT_ECANCELED:
 *           options->stop was set, and the contents of to are unspecified.
 */
WEFT_API WEFT_NODISCARD int weft_merge(const void *a, size_t a_count, const void *b, size_t b_count,
                                       size_t size, weft_compare_fn compare, void *arg, void *to,
                                       const weft_par_options *options);

/*
 * Copies the elements that differ from their predecessor, keeping their order. In a sorted
 * array this leaves one of each. The first element is always copied. to must have space for
 * count elements and must not overlap the array. Sets *kept to the number of elements copied.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   -ENOMEM; -EINVAL if size is 0, the array would exceed PTRDIFF_MAX bytes, or the
 *           scratch is too small; WEFT_ECANCELED: options->stop was set. *kept is 0 after an
 *           error.
 */
WEFT_API WEFT_NODISCARD int weft_unique(const void *base, size_t count, size_t size,
                                        weft_compare_fn compare, void *arg, void *to, size_t *kept,
                                        const weft_par_options *options);

/*
 * Reorders the array so that index n holds the element that a sort would put there, no element
 * before it is greater, and no element after it is less. Takes time proportional to count, and
 * at worst O(count log count), like a sort.
 *
 * Context:  any thread.
 * Suspends: like weft_min().
 * Errors:   -ENOMEM; -EINVAL if size is 0, n is not below count, or the scratch is too small:
 *           the array is unchanged. WEFT_ECANCELED: options->stop was set, and the elements are
 *           in an unspecified order.
 */
WEFT_API WEFT_NODISCARD int weft_nth(void *base, size_t count, size_t size, size_t n,
                                     weft_compare_fn compare, void *arg,
                                     const weft_par_options *options);

/*
 * Copies the k smallest elements, sorted. Equal elements keep their order. If only some of them
 * are among the k, these are the first ones. to must have space for k elements and must not
 * overlap the array. Sets *found to the number of elements copied: k, or count if that is less.
 *
 * Context:  any thread.
 * Suspends: like weft_min().
 * Errors:   -ENOMEM; -EINVAL if size is 0, the array would exceed PTRDIFF_MAX bytes, or the
 *           scratch is too small; WEFT_ECANCELED: options->stop was set, and the contents of to
 *           are unspecified. *found is 0 after an error.
 */
WEFT_API WEFT_NODISCARD int weft_top_k(const void *base, size_t count, size_t size, size_t k,
                                       weft_compare_fn compare, void *arg, void *to, size_t *found,
                                       const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
