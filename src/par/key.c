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
#include "par/range.h"
#include "par/scratch.h"
#include "par/stop.h"

enum {
    GRAIN = 4096, /* keys that are computed by one */
};

struct keys {
    const char *base;
    size_t size;
    weft_key_fn key;
    void *arg;
    struct wf_radix_pair *pairs;
};

static void compute(size_t begin, size_t end, void *arg)
{
    const struct keys *keys = arg;
    for (size_t i = begin; i < end; i++) {
        const void *element = keys->base + i * keys->size;
        keys->pairs[i].key = keys->key(element, keys->arg);
        keys->pairs[i].element = element;
    }
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

int weft_sort_by_key_u64(void *base, size_t count, size_t size, weft_key_fn key, void *arg,
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
    wf_range_each(count, GRAIN, compute, &keys);
    struct wf_radix_order order = { 0, 0 };
    const weft_stop *stop = wf_stop_of(options);
    wf_radix_sort(WF_RADIX_PAIR, order, keys.pairs, count, &scratch, stop);
    struct wf_gather_sources sources = { &keys.pairs->element, sizeof(struct wf_radix_pair) };
    wf_gather(base, other, count, size, sources);
    wf_scratch_fini(&scratch);
    return wf_stop_is_set(stop) ? WEFT_ECANCELED : 0;
}
