/* SPDX-License-Identifier: MIT */
/*
 * group.c - parallel reduction by key.
 *
 *   1  Sort the keys, each with a pointer to its element, stably (pairs.c).
 *   2  Find the runs of equal keys, which are the groups (runs.c).
 *   3  For each group, in parallel: copy its elements together, some at a time, and fold them.
 *
 * The loop over the groups is split among workers on demand, so groups may be many and small. A
 * large group is a reduction of its own (reduce.c) inside that loop, and workers steal parts of
 * both. Which groups are large, and where they are split, depends only on their length.
 *
 * Elements are copied to the stack. Small groups need little space there, and the copies of a
 * large group are still in the cache when they are folded.
 */
#include <stdalign.h>
#include <string.h>

#include <weft/group.h>

#include "par/options.h"
#include "par/pairs.h"
#include "par/pause.h"
#include "par/runs.h"

enum {
    COPIED = 4 * 1024,       /* bytes at a time, on a stack that may be small */
    AHEAD = 24,              /* elements; about as many cache misses as a core can have in flight */
    LARGE = 16 * 1024,       /* elements; a larger group is split */
    BLOCK_LENGTH = 4 * 1024, /* elements; minimum length of a block of a large group */
};

struct grouping {
    size_t size;
    const weft_group_reduction *how;
    void *arg;
    struct wf_radix_pair *pairs;
    size_t *begins; /* where the groups begin */
    uint64_t *keys;
    char *values;
    const weft_stop *stop;
};

/* --- Elements of a group --------------------------------------------------------------- */

static void copy_some(const struct grouping *grouping, size_t first, size_t end, size_t last,
                      char *to)
{
    size_t size = grouping->size;
    for (size_t i = first; i < end; i++) {
        if (i + AHEAD < last) {
            __builtin_prefetch(grouping->pairs[i + AHEAD].element);
        }
        memcpy(to, grouping->pairs[i].element, size);
        to += size;
    }
}

/* Folds the elements of a range of the sorted pairs. */
static int fold_places(void *value, size_t first, size_t end, void *arg)
{
    const struct grouping *grouping = arg;
    const weft_group_reduction *how = grouping->how;
    alignas(WF_SCRATCH_ALIGN) char copied[COPIED];
    size_t most = COPIED / grouping->size;
    most = most < WEFT_ELEMENTS_MAX ? most : WEFT_ELEMENTS_MAX;
    int err = 0;
    while (err == 0 && first < end) {
        if (most <= 1) {
            err = how->fold(value, grouping->pairs[first].element, 1, grouping->arg);
            wf_pause_copied(1, grouping->size);
            first++;
            continue;
        }
        size_t some = end - first < most ? end - first : most;
        copy_some(grouping, first, first + some, end, copied);
        err = how->fold(value, copied, some, grouping->arg);
        wf_pause_copied(some, grouping->size);
        first += some;
    }
    return err;
}

static void combine(void *value, const void *next, void *arg)
{
    const struct grouping *grouping = arg;
    grouping->how->combine(value, next, grouping->arg);
}

static int reduce_large(struct grouping *grouping, size_t first, size_t end, void *value)
{
    weft_reduction how = { .size = grouping->how->size,
                           .identity = grouping->how->identity,
                           .fold = fold_places,
                           .combine = combine };
    size_t length = (end - first) / WF_BLOCKS_WANTED;
    weft_par_options options = { .piece = length > BLOCK_LENGTH ? length : BLOCK_LENGTH,
                                 .stop = grouping->stop };
    return weft_reduce(first, end, &how, grouping, value, &options);
}

static int reduce_groups(size_t begin, size_t end, void *arg)
{
    struct grouping *grouping = arg;
    int err = 0;
    for (size_t group = begin; err == 0 && group < end; group++) {
        size_t first = grouping->begins[group];
        size_t last = grouping->begins[group + 1];
        char *value = grouping->values + group * grouping->how->size;
        grouping->keys[group] = grouping->pairs[first].key;
        if (last - first > LARGE) {
            err = reduce_large(grouping, first, last, value);
        } else {
            wf_pause_element(value, grouping->how->identity, grouping->how->size);
            err = fold_places(value, first, last, grouping);
        }
    }
    return err;
}

/* --- Public functions ------------------------------------------------------------------ */

static size_t scratch_of(size_t count)
{
    return wf_pairs_scratch(wf_scratch_add(0, count + 1, sizeof(size_t)), count);
}

size_t weft_group_scratch(size_t count, size_t size)
{
    /* weft_group_reduce() needs the most. It does not copy the whole array. */
    return wf_options_fit(count, size) ? wf_scratch_with_slack(scratch_of(count)) : SIZE_MAX;
}

static int run(struct grouping *grouping, const struct wf_keyed *keyed, struct wf_scratch *scratch,
               size_t room, size_t *groups)
{
    weft_par_options options = { .stop = grouping->stop };
    size_t count = keyed->count;
    grouping->begins = wf_scratch_take(scratch, count + 1, sizeof(size_t));
    int err = wf_pairs_sort(keyed, scratch, grouping->stop, &grouping->pairs);
    size_t runs = 0;
    if (err == 0) {
        struct wf_runs_keys sorted = { &grouping->pairs->key, sizeof(struct wf_radix_pair), count };
        err = wf_runs_find(&sorted, grouping->begins, &runs, grouping->stop);
    }
    if (err == 0 && runs > room) {
        *groups = runs;
        return -ENOSPC;
    }
    if (err == 0) {
        err = weft_for(0, runs, reduce_groups, grouping, &options);
    }
    *groups = err == 0 ? runs : 0;
    return err;
}

int weft_group_reduce(const void *base, size_t count, size_t size, weft_key_fn key,
                      const weft_group_reduction *how, void *arg, uint64_t *keys, void *values,
                      size_t room, size_t *groups, const weft_par_options *options)
{
    wf_pause_call();
    *groups = 0;
    if (!wf_options_fit(count, size) || how->size == 0) {
        return -EINVAL;
    }
    if (count == 0) {
        return 0;
    }
    size_t sum = scratch_of(count);
    alignas(WF_SCRATCH_ALIGN) char here[WF_OPTIONS_HERE];
    weft_par_options with = wf_options_with_scratch(sum, here, options);
    struct wf_scratch scratch;
    int err = wf_scratch_init(&scratch, sum, &with);
    if (err != 0) {
        return err;
    }
    struct wf_keyed keyed = { base, count, size, key, arg };
    struct grouping grouping = { .size = size,
                                 .how = how,
                                 .arg = arg,
                                 .keys = keys,
                                 .values = values,
                                 .stop = wf_stop_of(options) };
    err = run(&grouping, &keyed, &scratch, room, groups);
    wf_scratch_fini(&scratch);
    return err;
}
