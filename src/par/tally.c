/* SPDX-License-Identifier: MIT */
/*
 * tally.c - parallel count by key, for arbitrary keys.
 *
 * The keys are computed and sorted. Then each run of equal keys gives a key and its count.
 */
#include <stdalign.h>

#include <weft/group.h>

#include "par/options.h"
#include "par/pause.h"
#include "par/radix.h"
#include "par/runs.h"

struct tally {
    const char *base;
    size_t size;
    weft_key_fn key;
    void *arg;
    uint64_t *keys;
    size_t *begins; /* where the runs begin */
    weft_key_count *to;
};

static int compute(size_t begin, size_t end, void *arg)
{
    const struct tally *tally = arg;
    int err = 0;
    while (err == 0 && begin < end) {
        size_t some = end - begin < WEFT_ELEMENTS_MAX ? end - begin : WEFT_ELEMENTS_MAX;
        err = tally->key(tally->base + begin * tally->size, some, tally->keys + begin, tally->arg);
        begin += some;
    }
    return err;
}

static int write_counts(size_t begin, size_t end, void *arg)
{
    const struct tally *tally = arg;
    for (size_t run = begin; run < end; run++) {
        size_t first = tally->begins[run];
        tally->to[run] = (weft_key_count){ tally->keys[first], tally->begins[run + 1] - first };
    }
    return 0;
}

static size_t scratch_of(size_t count)
{
    size_t sum = wf_scratch_add(0, count, sizeof(uint64_t));
    sum = wf_scratch_add(sum, count + 1, sizeof(size_t));
    return wf_radix_scratch(sum, count, sizeof(uint64_t));
}

static int run(struct tally *tally, size_t count, struct wf_scratch *scratch, size_t room,
               size_t *distinct, const weft_stop *stop)
{
    weft_par_options options = { .stop = stop };
    tally->keys = wf_scratch_take(scratch, count, sizeof(uint64_t));
    tally->begins = wf_scratch_take(scratch, count + 1, sizeof(size_t));
    int err = weft_for(0, count, compute, tally, &options);
    size_t runs = 0;
    if (err == 0) {
        struct wf_radix_order order = { 0, 0 };
        wf_radix_sort(WF_RADIX_64, order, tally->keys, count, scratch, stop);
        struct wf_runs_keys sorted = { tally->keys, sizeof(uint64_t), count };
        err = wf_runs_find(&sorted, tally->begins, &runs, stop);
    }
    if (err == 0) {
        err = weft_for(0, runs < room ? runs : room, write_counts, tally, &options);
    }
    *distinct = err == 0 ? runs : 0;
    return err == 0 && runs > room ? -ENOSPC : err;
}

int weft_count_by_key(const void *base, size_t count, size_t size, weft_key_fn key, void *arg,
                      weft_key_count *to, size_t room, size_t *distinct,
                      const weft_par_options *options)
{
    wf_pause_call();
    *distinct = 0;
    if (!wf_options_fit(count, size)) {
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
    struct tally tally = { .base = base, .size = size, .key = key, .arg = arg, .to = to };
    err = run(&tally, count, &scratch, room, distinct, wf_stop_of(options));
    wf_scratch_fini(&scratch);
    return err;
}
