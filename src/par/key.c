/* SPDX-License-Identifier: MIT */
/*
 * key.c - parallel sort by key.
 *
 * The keys, each with a pointer to its element, are sorted (pairs.c). Then each element is
 * moved once.
 */
#include <weft/sort.h>

#include "par/gather.h"
#include "par/pairs.h"
#include "par/pause.h"
#include "par/scratch.h"
#include "par/stop.h"

static size_t scratch_of(size_t count, size_t size)
{
    return wf_pairs_scratch(wf_scratch_add(0, count, size), count);
}

size_t weft_sort_by_key_scratch(size_t count, size_t size)
{
    return wf_scratch_with_slack(scratch_of(count, size));
}

int weft_sort_by_key(void *base, size_t count, size_t size, weft_key_fn key, void *arg,
                     const weft_par_options *options)
{
    wf_pause_call();
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
    struct wf_keyed keyed = { base, count, size, key, arg };
    struct wf_radix_pair *pairs;
    void *other = wf_scratch_take(&scratch, count, size);
    const weft_stop *stop = wf_stop_of(options);
    error = wf_pairs_sort(&keyed, &scratch, stop, &pairs);
    if (error == 0) {
        struct wf_gather_sources sources = { &pairs->element, sizeof(struct wf_radix_pair) };
        wf_gather(base, other, count, size, sources);
        error = wf_stop_is_set(stop) ? WEFT_ECANCELED : 0;
    }
    wf_scratch_fini(&scratch);
    return error;
}
