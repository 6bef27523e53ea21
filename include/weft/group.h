/* SPDX-License-Identifier: MIT */
/*
 * weft/group.h - elements by a key: how many have it, and what they make together.
 *
 *     WEFT_KEY(city_of, struct order, order, order->city)
 *
 *     err = weft_histogram(orders, count, sizeof *orders, city_of, NULL, CITIES, counts, NULL);
 *     err = weft_count_by_key(orders, count, sizeof *orders, city_of, NULL, cities, room, &found,
 *                             NULL);
 *
 * Where keys are small numbers, weft_histogram() is the fastest. The others take any keys,
 * and sort them.
 *
 * Arrays are given as base, count and size: where, how many elements, and how many bytes
 * each of them has. All of it may be called anywhere. In a task, and in weft_par_run(),
 * idle workers help with large inputs. The result is the same with any number of workers,
 * for floating-point numbers to the last bit.
 */
#ifndef WEFT_GROUP_H
#define WEFT_GROUP_H

#include "base.h"
#include "element.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/*
 * Returns how many bytes of scratch each function of this header needs at most, for so many
 * elements of this size. It may begin at any address. SIZE_MAX: more than there can be.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_group_scratch(size_t count, size_t size);

/*
 * Counts elements by their key: counts[k] gets how many have the key k, for each k below
 * buckets.
 *
 * Context:  any thread.
 * Suspends: as weft_for().
 * Errors:   -ERANGE if there is a key that is not below buckets; what the key function
 *           returns; -ENOMEM; -EINVAL if size is 0, no array can be so large, or the scratch
 *           is too small; WEFT_ECANCELED: stopped. All counts are 0 then.
 */
WEFT_API WEFT_NODISCARD int weft_histogram(const void *base, size_t count, size_t size,
                                           weft_key_fn key, void *arg, size_t buckets,
                                           uint64_t *counts, const weft_par_options *options);

/* A key, and how many elements have it. */
typedef struct weft_key_count {
    uint64_t key;
    size_t count;
} weft_key_count;

/*
 * Counts elements by their key, whatever the keys are: to gets each key that there is, in
 * their order, and how many elements have it. *distinct gets how many keys there are.
 *
 * Context:  any thread.
 * Suspends: as weft_for().
 * Errors:   -ENOSPC if there are more keys than room: *distinct says how many, and to gets
 *           the first ones. What the key function returns; -ENOMEM; -EINVAL if size is 0, no
 *           array can be so large, or the scratch is too small; WEFT_ECANCELED: stopped.
 *           *distinct is 0 then.
 */
WEFT_API WEFT_NODISCARD int weft_count_by_key(const void *base, size_t count, size_t size,
                                              weft_key_fn key, void *arg, weft_key_count *to,
                                              size_t room, size_t *distinct,
                                              const weft_par_options *options);

/*
 * How the elements of a group become one value. The operation must be associative: a large
 * group is folded in parts, and neighbours are combined.
 */
typedef struct weft_group_reduction {
    size_t size;          /* of a value, in bytes */
    const void *identity; /* what a fold begins with: changes nothing when combined */
    /* Folds elements of one group into a value: WEFT_ELEMENTS_MAX of them at most, which
     * are copies or where they were. 0, or an error, which ends the whole. */
    int (*fold)(void *value, const void *elements, size_t count, void *arg);
    /* Folds the value of the elements that follow into a value. */
    void (*combine)(void *value, const void *next, void *arg);
} weft_group_reduction;

/*
 * Makes one value of all elements that have the same key. keys gets each key that there is,
 * in their order, and values their values, one after the other; there is room for so many.
 * *groups gets how many there are. The elements of a group are folded in the order of the
 * array, in parts that depend on the input only.
 *
 * Context:  any thread.
 * Suspends: as weft_for().
 * Errors:   -ENOSPC if there are more groups than room: *groups says how many, and nothing
 *           else is written. What the functions return; -ENOMEM; -EINVAL if a size is 0, no
 *           array can be so large, or the scratch is too small; WEFT_ECANCELED: stopped.
 *           *groups is 0 then, and what is at keys and values is of no use.
 */
WEFT_API WEFT_NODISCARD int weft_group_reduce(const void *base, size_t count, size_t size,
                                              weft_key_fn key, const weft_group_reduction *how,
                                              void *arg, uint64_t *keys, void *values, size_t room,
                                              size_t *groups, const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
