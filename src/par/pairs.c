/* SPDX-License-Identifier: MIT */
/*
 * pairs.c - key-pointer pairs of the elements of an array, sorted by key.
 */
#include "par/pairs.h"

struct computing {
    const struct wf_keyed *keyed;
    struct wf_radix_pair *pairs;
};

static int compute_some(const struct computing *computing, size_t first, size_t end)
{
    const struct wf_keyed *keyed = computing->keyed;
    uint64_t keys[WEFT_ELEMENTS_MAX];
    int err = keyed->key(keyed->base + first * keyed->size, end - first, keys, keyed->arg);
    for (size_t i = first; err == 0 && i < end; i++) {
        computing->pairs[i].key = keys[i - first];
        computing->pairs[i].element = keyed->base + i * keyed->size;
    }
    return err;
}

static int compute(size_t first, size_t end, void *arg)
{
    int err = 0;
    while (err == 0 && first < end) {
        size_t some = end - first < WEFT_ELEMENTS_MAX ? end - first : WEFT_ELEMENTS_MAX;
        err = compute_some(arg, first, first + some);
        first += some;
    }
    return err;
}

size_t wf_pairs_scratch(size_t sum, size_t count)
{
    sum = wf_scratch_add(sum, count, sizeof(struct wf_radix_pair));
    return wf_radix_scratch(sum, count, sizeof(struct wf_radix_pair));
}

int wf_pairs_sort(const struct wf_keyed *keyed, struct wf_scratch *scratch, const weft_stop *stop,
                  struct wf_radix_pair **pairs)
{
    static const struct wf_radix_order ascending = { 0, 0 };
    size_t count = keyed->count;
    *pairs = wf_scratch_take(scratch, count, sizeof(struct wf_radix_pair));
    struct computing computing = { keyed, *pairs };
    int err = weft_for(0, count, compute, &computing, &(weft_par_options){ .stop = stop });
    if (err == 0) {
        wf_radix_sort(WF_RADIX_PAIR, ascending, *pairs, count, scratch, stop);
    }
    return err;
}
