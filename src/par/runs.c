/* SPDX-License-Identifier: MIT */
/*
 * runs.c - parallel search for runs of equal keys in a sorted array.
 *
 * This is a scan. Each block counts the keys that differ from their predecessor, and then
 * writes where they are.
 */
#include "par/runs.h"

#include "par/options.h"

struct find {
    const struct wf_runs_keys *keys;
    size_t *begins;
};

static bool begins_run(const struct wf_runs_keys *keys, size_t index)
{
    return index == 0 || wf_runs_key(keys, index) != wf_runs_key(keys, index - 1);
}

static int count_runs(void *value, size_t first, size_t end, void *arg)
{
    const struct find *find = arg;
    size_t runs = 0;
    for (size_t i = first; i < end; i++) {
        runs += begins_run(find->keys, i);
    }
    *(size_t *)value += runs;
    return 0;
}

static void add_counts(void *value, const void *next, void *arg)
{
    (void)arg;
    *(size_t *)value += *(const size_t *)next;
}

static int write_begins(void *value, size_t first, size_t end, void *arg)
{
    const struct find *find = arg;
    size_t run = *(const size_t *)value;
    for (size_t i = first; i < end; i++) {
        if (begins_run(find->keys, i)) {
            find->begins[run++] = i;
        }
    }
    *(size_t *)value = run;
    return 0;
}

int wf_runs_find(const struct wf_runs_keys *keys, size_t *begins, size_t *runs,
                 const weft_stop *stop)
{
    static const size_t zero = 0;
    static const weft_scanner how = { .reduction = { .size = sizeof zero,
                                                     .identity = &zero,
                                                     .fold = count_runs,
                                                     .combine = add_counts },
                                      .scan = write_begins,
                                      .is_exact = true };
    struct find find = { keys, begins };
    weft_par_options given = { .stop = stop };
    weft_par_options blocks = wf_options_for_blocks(keys->count, &given);
    int err = weft_scan(0, keys->count, &how, &find, runs, &blocks);
    if (err == 0) {
        begins[*runs] = keys->count;
    }
    return err;
}
