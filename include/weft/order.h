/* SPDX-License-Identifier: MIT */
/*
 * weft/order.h - what follows from an order of elements: the least, the middle, the first
 * few; merging, and leaving out what is there twice.
 *
 *     err = weft_min(people, count, sizeof *people, by_age, NULL, &youngest, NULL);
 *     err = weft_nth(prices, count, sizeof *prices, count / 2, by_value, NULL, NULL);
 *     err = weft_top_k(scores, count, sizeof *scores, 10, by_rank, NULL, best, &found, NULL);
 *
 * Arrays are given as base, count and size: where, how many elements, and how many bytes
 * each of them has. All of it may be called anywhere. In a task, and in weft_par_run(),
 * idle workers help with large inputs. The result is the same with any number of workers.
 *
 * A comparison that contradicts itself leads to any result, but none of it reads or writes
 * where it must not, and no element is lost or doubled.
 */
#ifndef WEFT_ORDER_H
#define WEFT_ORDER_H

#include "base.h"
#include "element.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/*
 * Returns how many bytes of scratch each function of this header needs at most, for so many
 * elements of this size. It may begin at any address. SIZE_MAX: more than there can be.
 *
 * weft_nth(), weft_top_k() and weft_unique() need scratch, the others none.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_order_scratch(size_t count, size_t size);

/*
 * Finds the index of the least element, of equal ones the first. Of no elements it is
 * count, which is 0.
 *
 * Context:  any thread.
 * Suspends: while another worker is at a part of it, as weft_join2().
 * Errors:   -ENOMEM; -EINVAL if size is 0, or no array can be so large; WEFT_ECANCELED:
 *           stopped. *index is count then.
 */
WEFT_API WEFT_NODISCARD int weft_min(const void *base, size_t count, size_t size,
                                     weft_compare_fn compare, void *arg, size_t *index,
                                     const weft_par_options *options);

/* Finds the index of the greatest element, of equal ones the first; as weft_min(). */
WEFT_API WEFT_NODISCARD int weft_max(const void *base, size_t count, size_t size,
                                     weft_compare_fn compare, void *arg, size_t *index,
                                     const weft_par_options *options);

/*
 * Finds the index of the element with the least key, of equal ones the first; as
 * weft_min(). Each key is computed once.
 *
 * Context:  any thread.
 * Suspends: as weft_min().
 * Errors:   as weft_min(), and what the key function returns.
 */
WEFT_API WEFT_NODISCARD int weft_min_by_key(const void *base, size_t count, size_t size,
                                            weft_key_fn key, void *arg, size_t *index,
                                            const weft_par_options *options);

/* The same for the greatest key. */
WEFT_API WEFT_NODISCARD int weft_max_by_key(const void *base, size_t count, size_t size,
                                            weft_key_fn key, void *arg, size_t *index,
                                            const weft_par_options *options);

/*
 * Answers whether no element is greater than the one behind it. It ends soon after the
 * first one that is.
 *
 * Context:  any thread.
 * Suspends: as weft_for().
 * Errors:   -EINVAL if size is 0, or no array can be so large; WEFT_ECANCELED: stopped.
 *           *answer is false then.
 */
WEFT_API WEFT_NODISCARD int weft_is_sorted(const void *base, size_t count, size_t size,
                                           weft_compare_fn compare, void *arg, bool *answer,
                                           const weft_par_options *options);

/*
 * Merges two sorted arrays into one at to, which has room for both and overlaps neither.
 * Among equal elements those of a come first, and otherwise they stay in their order.
 *
 * Context:  any thread.
 * Suspends: as weft_min().
 * Errors:   -EINVAL if size is 0, or no array can be so large; WEFT_ECANCELED: stopped, and
 *           what is at to is of no use.
 */
WEFT_API WEFT_NODISCARD int weft_merge(const void *a, size_t a_count, const void *b, size_t b_count,
                                       size_t size, weft_compare_fn compare, void *arg, void *to,
                                       const weft_par_options *options);

/*
 * Copies those elements that differ from the one before them, in their order: of a sorted
 * array, one of each. The first one is copied always. There is room for count elements at
 * to, which does not overlap the array. *kept gets how many were copied.
 *
 * Context:  any thread.
 * Suspends: as weft_for().
 * Errors:   -ENOMEM; -EINVAL if size is 0, no array can be so large, or the scratch is too
 *           small; WEFT_ECANCELED: stopped. *kept is 0 then.
 */
WEFT_API WEFT_NODISCARD int weft_unique(const void *base, size_t count, size_t size,
                                        weft_compare_fn compare, void *arg, void *to, size_t *kept,
                                        const weft_par_options *options);

/*
 * Moves elements so that at index n is the one that a sort would put there, none before it
 * is greater, and none behind it is less. It takes time in proportion to the count, and
 * never more than a sort does.
 *
 * Context:  any thread.
 * Suspends: as weft_min().
 * Errors:   -ENOMEM; -EINVAL if size is 0, n is not below count, or the scratch is too
 *           small: the array is untouched. WEFT_ECANCELED: stopped, the elements are in any
 *           order.
 */
WEFT_API WEFT_NODISCARD int weft_nth(void *base, size_t count, size_t size, size_t n,
                                     weft_compare_fn compare, void *arg,
                                     const weft_par_options *options);

/*
 * Copies the k least elements, sorted; equal ones in their order, and if not all of them
 * are among the k, the first ones. There is room for them at to, which does not overlap the
 * array. *found gets how many they are: k, or count if that is less.
 *
 * Context:  any thread.
 * Suspends: as weft_min().
 * Errors:   -ENOMEM; -EINVAL if size is 0, no array can be so large, or the scratch is too
 *           small; WEFT_ECANCELED: stopped, and what is at to is of no use. *found is 0
 *           then.
 */
WEFT_API WEFT_NODISCARD int weft_top_k(const void *base, size_t count, size_t size, size_t k,
                                       weft_compare_fn compare, void *arg, void *to, size_t *found,
                                       const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
