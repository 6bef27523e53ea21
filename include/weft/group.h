/* SPDX-License-Identifier: MIT */
/*
 * weft/group.h - parallel grouping by key: histogram, count by key, reduce by key.
 *
 *     WEFT_KEY(city_of, struct order, order, order->city)
 *
 *     err = weft_histogram(orders, count, sizeof *orders, city_of, NULL, CITIES, counts, NULL);
 *     err = weft_count_by_key(orders, count, sizeof *orders, city_of, NULL, cities, room, &found,
 *                             NULL);
 *
 * weft_histogram() is the fastest if the keys are small numbers. The other functions accept any
 * keys and sort them.
 *
 * An array is given by its base, its number of elements, and the size of an element in bytes.
 * Every function can be called on any thread. In a task and in weft_par_run(), idle workers
 * help with large inputs. The result does not depend on the number of workers, not even in the
 * last bit of a floating-point number.
 */
#ifndef WEFT_GROUP_H
#define WEFT_GROUP_H

#include "base.h"
#include "element.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/*
 * Returns the maximum number of bytes of scratch that any function of this header needs for
 * count elements of the given size. The scratch needs no alignment. Returns SIZE_MAX if the
 * size is not representable.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_group_scratch(size_t count, size_t size);

/*
 * Counts elements by key: sets counts[k] to the number of elements with the key k, for each k
 * below buckets.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   -ERANGE if a key is not below buckets; an error of the key function; -ENOMEM;
 *           -EINVAL if size is 0, the array would exceed PTRDIFF_MAX bytes, or the scratch is
 *           too small; WEFT_ECANCELED: options->stop was set. All counts are 0 after an error.
 */
WEFT_API WEFT_NODISCARD int weft_histogram(const void *base, size_t count, size_t size,
                                           weft_key_fn key, void *arg, size_t buckets,
                                           uint64_t *counts, const weft_par_options *options);

/* A key and the number of elements that have it. */
typedef struct weft_key_count {
    uint64_t key;
    size_t count;
} weft_key_count;

/*
 * Counts elements by key, for arbitrary keys. Writes the distinct keys in ascending order, each
 * with its number of elements. Sets *distinct to the number of distinct keys.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   -ENOSPC if there are more than room distinct keys: *distinct is their number, and
 *           the first room of them are written. An error of the key function; -ENOMEM; -EINVAL
 *           if size is 0, the array would exceed PTRDIFF_MAX bytes, or the scratch is too
 *           small; WEFT_ECANCELED: options->stop was set. *distinct is 0 after any of these.
 */
WEFT_API WEFT_NODISCARD int weft_count_by_key(const void *base, size_t count, size_t size,
                                              weft_key_fn key, void *arg, weft_key_count *to,
                                              size_t room, size_t *distinct,
                                              const weft_par_options *options);

/*
 * Describes how the elements of a group are reduced to one value. The operation must be
 * associative: a large group is folded in parts, and adjacent parts are combined.
 */
typedef struct weft_group_reduction {
    size_t size;          /* size of a value in bytes */
    const void *identity; /* initial value of a fold; neutral in combine */
    /* Folds up to WEFT_ELEMENTS_MAX elements of one group into value. elements points to copies
     * or to the array itself. Returns 0, or an error, which ends the whole reduction. */
    int (*fold)(void *value, const void *elements, size_t count, void *arg);
    /* Combines value with next, the value of the elements that follow. */
    void (*combine)(void *value, const void *next, void *arg);
} weft_group_reduction;

/*
 * Reduces all elements with the same key to one value. Writes the distinct keys in ascending
 * order to keys, and their values, in the same order, to values. Both have space for room
 * entries. Sets *groups to the number of groups. The elements of a group are folded in array
 * order, in parts that depend only on the input.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   -ENOSPC if there are more than room groups: *groups is their number, and nothing
 *           else is written. An error of a callback; -ENOMEM; -EINVAL if a size is 0, the array
 *           would exceed PTRDIFF_MAX bytes, or the scratch is too small; WEFT_ECANCELED:
 *           options->stop was set. After any of these *groups is 0, and the contents of keys
 *           and values are unspecified.
 */
WEFT_API WEFT_NODISCARD int weft_group_reduce(const void *base, size_t count, size_t size,
                                              weft_key_fn key, const weft_group_reduction *how,
                                              void *arg, uint64_t *keys, void *values, size_t room,
                                              size_t *groups, const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
