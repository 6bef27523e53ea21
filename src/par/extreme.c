/* SPDX-License-Identifier: MIT */
/*
 * extreme.c - index of the minimum and maximum element.
 *
 * This is a reduction whose value is an index. A later element replaces an earlier one only if
 * it is better, so the first of several equal elements is found.
 */
#include <weft/order.h>

#include "par/deep.h"
#include "par/options.h"
#include "par/pause.h"

#define NONE SIZE_MAX

struct search {
    const char *base;
    size_t size;
    bool greatest; /* false: the minimum */
    weft_compare_fn compare;
    weft_key_fn key;
    void *arg;
};

/* --- By comparison --------------------------------------------------------------------- */

static bool is_better(const struct search *search, size_t one, size_t other)
{
    int order = search->compare(search->base + one * search->size,
                                search->base + other * search->size, search->arg);
    return search->greatest ? order > 0 : order < 0;
}

static int fold_compared(void *value, size_t first, size_t end, void *arg)
{
    size_t best = *(size_t *)value == NONE ? first : *(size_t *)value;
    while (first < end) {
        size_t next = wf_pause_next(first, end, WF_PAUSE_CALLS);
        for (size_t i = first; i < next; i++) {
            if (i != best && is_better(arg, i, best)) {
                best = i;
            }
        }
        wf_pause(next - first);
        first = next;
    }
    *(size_t *)value = best;
    return 0;
}

static void combine_compared(void *value, const void *next, void *arg)
{
    size_t *best = value;
    if (is_better(arg, *(const size_t *)next, *best)) {
        *best = *(const size_t *)next;
    }
}

static int find_compared(struct search *search, size_t count, size_t *index,
                         const weft_par_options *options)
{
    static const size_t none = NONE;
    static const weft_reduction how = {
        .size = sizeof none, .identity = &none, .fold = fold_compared, .combine = combine_compared
    };
    *index = count;
    wf_pause_call();
    if (!wf_options_fit(count, search->size)) {
        return -EINVAL;
    }
    weft_par_options blocks = wf_options_for_blocks(count, options);
    size_t best = NONE;
    int err = weft_reduce(0, count, &how, search, &best, &blocks);
    *index = best == NONE ? count : best;
    return err;
}

int weft_min(const void *base, size_t count, size_t size, weft_compare_fn compare, void *arg,
             size_t *index, const weft_par_options *options)
{
    struct search search = { .base = base, .size = size, .compare = compare, .arg = arg };
    return find_compared(&search, count, index, options);
}

int weft_max(const void *base, size_t count, size_t size, weft_compare_fn compare, void *arg,
             size_t *index, const weft_par_options *options)
{
    struct search search = {
        .base = base, .size = size, .greatest = true, .compare = compare, .arg = arg
    };
    return find_compared(&search, count, index, options);
}

/* --- By key ---------------------------------------------------------------------------- */

struct found {
    uint64_t key;
    size_t index; /* NONE if there is none */
};

static bool is_better_key(const struct search *search, uint64_t key, const struct found *found)
{
    return found->index == NONE || (search->greatest ? key > found->key : key < found->key);
}

static int fold_some_keys(const struct search *search, size_t first, size_t end,
                          struct found *found)
{
    uint64_t keys[WEFT_ELEMENTS_MAX];
    int err = search->key(search->base + first * search->size, end - first, keys, search->arg);
    for (size_t i = first; err == 0 && i < end; i++) {
        if (is_better_key(search, keys[i - first], found)) {
            *found = (struct found){ keys[i - first], i };
        }
    }
    return err;
}

static int fold_keys(void *value, size_t first, size_t end, void *arg)
{
    int err = 0;
    while (err == 0 && first < end) {
        size_t most = end - first < WEFT_ELEMENTS_MAX ? end - first : WEFT_ELEMENTS_MAX;
        err = fold_some_keys(arg, first, first + most, value);
        wf_pause(most);
        first += most;
    }
    return err;
}

static void combine_keys(void *value, const void *next, void *arg)
{
    const struct found *found = next;
    if (is_better_key(arg, found->key, value)) {
        *(struct found *)value = *found;
    }
}

struct key_search {
    struct search *search;
    size_t count;
    size_t *index;
    const weft_par_options *options;
};

static int find_key_here(void *arg)
{
    const struct key_search *keys = arg;
    static const struct found none = { 0, NONE };
    static const weft_reduction how = {
        .size = sizeof none, .identity = &none, .fold = fold_keys, .combine = combine_keys
    };
    weft_par_options blocks = wf_options_for_blocks(keys->count, keys->options);
    struct found found = none;
    int err = weft_reduce(0, keys->count, &how, keys->search, &found, &blocks);
    *keys->index = found.index == NONE ? keys->count : found.index;
    return err;
}

/* Checks the stack here, too: the frames of weft_reduce() and of a call of the key function are
 * large. */
static int find_key(struct search *search, size_t count, size_t *index,
                    const weft_par_options *options)
{
    *index = count;
    wf_pause_call();
    if (!wf_options_fit(count, search->size)) {
        return -EINVAL;
    }
    struct key_search keys = { search, count, index, options };
    return wf_deep_call(find_key_here, &keys);
}

int weft_min_by_key(const void *base, size_t count, size_t size, weft_key_fn key, void *arg,
                    size_t *index, const weft_par_options *options)
{
    struct search search = { .base = base, .size = size, .key = key, .arg = arg };
    return find_key(&search, count, index, options);
}

int weft_max_by_key(const void *base, size_t count, size_t size, weft_key_fn key, void *arg,
                    size_t *index, const weft_par_options *options)
{
    struct search search = { .base = base, .size = size, .greatest = true, .key = key, .arg = arg };
    return find_key(&search, count, index, options);
}
