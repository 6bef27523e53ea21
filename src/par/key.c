/* SPDX-License-Identifier: MIT */
/*
 * key.c - sorting by a key of each element.
 *
 * The keys, each with a pointer to its element, are sorted; then each element is moved
 * once.
 */
#include <weft/sort.h>

#include "par/gather.h"
#include "par/radix.h"
#include "par/scratch.h"
#include "par/stop.h"

struct keys {
    const char *base;
    size_t size;
    weft_key_fn key;
    void *arg;
    struct wf_radix_pair *pairs;
};

static int compute_some(const struct keys *keys, size_t begin, size_t end)
{
    uint64_t computed[WEFT_ELEMENTS_MAX];
    int err = keys->key(keys->base + begin * keys->size, end - begin, computed, keys->arg);
    for (size_t i = begin; err == 0 && i < end; i++) {
        keys->pairs[i].key = computed[i - begin];
        keys->pairs[i].element = keys->base + i * keys->size;
    }
    return err;
}

static int compute(size_t begin, size_t end, void *arg)
{
    int err = 0;
    while (err == 0 && begin < end) {
        size_t most = begin + WEFT_ELEMENTS_MAX;
        err = compute_some(arg, begin, most < end ? most : end);
        begin = most;
    }
    return err;
}

static size_t scratch_of(size_t count, size_t size)
{
    size_t sum = wf_scratch_add(0, count, sizeof(struct wf_radix_pair));
    sum = wf_radix_scratch(sum, count, sizeof(struct wf_radix_pair));
    return wf_scratch_add(sum, count, size);
}

size_t weft_sort_by_key_scratch(size_t count, size_t size)
{
    return wf_scratch_with_slack(scratch_of(count, size));
}

int weft_sort_by_key(void *base, size_t count, size_t size, weft_key_fn key, void *arg,
                     const weft_par_options *options)
{
    if (size == 0) {
        return -EINVAL;
    }
    if (count < 2) {
        return 0;
    }
    struct wf_scratch scratch;
    int error = wf_scratch_init(&scratch, scratch_of(count, size), options);
    if (error != 0) {
        return error;
    }
    struct keys keys = { .base = base, .size = size, .key = key, .arg = arg };
    keys.pairs = wf_scratch_take(&scratch, count, sizeof(struct wf_radix_pair));
    void *other = wf_scratch_take(&scratch, count, size);
    const weft_stop *stop = wf_stop_of(options);
    error = weft_for(0, count, compute, &keys, &(weft_par_options){ .stop = stop });
    if (error == 0) {
        struct wf_radix_order order = { 0, 0 };
        wf_radix_sort(WF_RADIX_PAIR, order, keys.pairs, count, &scratch, stop);
        struct wf_gather_sources sources = { &keys.pairs->element, sizeof(struct wf_radix_pair) };
        wf_gather(base, other, count, size, sources);
        error = wf_stop_is_set(stop) ? WEFT_ECANCELED : 0;
    }
    wf_scratch_fini(&scratch);
    return error;
}
