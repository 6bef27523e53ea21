/* SPDX-License-Identifier: MIT */
/*
 * histogram.c - parallel histogram of small keys.
 *
 * The array is split into parts. Each part counts in its own table, then the tables are added.
 * The number of tables is limited so that adding them takes less time than counting. With many
 * buckets there may be only one table, and one worker counts. A caller that cannot fork needs
 * only one table.
 */
#include <string.h>

#include <weft/group.h>

#include "par/deep.h"
#include "par/options.h"
#include "par/pause.h"
#include "sched/job.h"

enum {
    PART_COUNT_MIN = 16 * 1024, /* minimum number of elements of a part, */
    PART_BUCKET_MIN = 2,        /* and minimum number of them per bucket */
    PARTS_MAX = 256,
};

struct histogram {
    const char *base;
    size_t count;
    size_t size;
    weft_key_fn key;
    void *arg;
    size_t buckets;
    uint64_t *counts; /* also the table of the first part */
    uint64_t *tables; /* tables of the other parts */
    size_t parts;
    const weft_stop *stop;
};

static size_t parts_of(size_t count, size_t buckets)
{
    if (!wf_job_may_fork()) {
        return 1;
    }
    size_t parts = count / PART_COUNT_MIN;
    size_t most = buckets > 0 ? count / PART_BUCKET_MIN / buckets : 1;
    parts = parts < most ? parts : most;
    return parts < 1 ? 1 : parts < PARTS_MAX ? parts : PARTS_MAX;
}

/* --- Counting -------------------------------------------------------------------------- */

static uint64_t *table_of(const struct histogram *histogram, size_t part)
{
    return part == 0 ? histogram->counts : histogram->tables + (part - 1) * histogram->buckets;
}

static int count_some(const struct histogram *histogram, size_t first, size_t end, uint64_t *table)
{
    uint64_t keys[WEFT_ELEMENTS_MAX];
    size_t count = end - first;
    int err =
        histogram->key(histogram->base + first * histogram->size, count, keys, histogram->arg);
    if (err != 0) {
        return err;
    }
    size_t buckets = histogram->buckets;
    for (size_t i = 0; i < count; i++) {
        if (keys[i] >= buckets) {
            return -ERANGE;
        }
        table[keys[i]]++;
    }
    return 0;
}

static int count_part(const struct histogram *histogram, size_t part)
{
    uint64_t *table = table_of(histogram, part);
    size_t first = wf_share_begin(histogram->count, histogram->parts, part);
    size_t end = wf_share_begin(histogram->count, histogram->parts, part + 1);
    if (histogram->buckets > 0) {
        wf_pause_clear(table, histogram->buckets * sizeof *table);
    }
    int err = 0;
    while (err == 0 && first < end) {
        size_t some = end - first < WEFT_ELEMENTS_MAX ? end - first : WEFT_ELEMENTS_MAX;
        err = wf_stop_is_set(histogram->stop) ? WEFT_ECANCELED
                                              : count_some(histogram, first, first + some, table);
        wf_pause(some);
        first += some;
    }
    return err;
}

static int count_parts(size_t first, size_t end, void *arg)
{
    int err = 0;
    for (size_t part = first; err == 0 && part < end; part++) {
        err = count_part(arg, part);
    }
    return err;
}

/* Counts in a single table. */
static int count_all(void *arg)
{
    return count_part(arg, 0);
}

static int add_tables(size_t first, size_t end, void *arg)
{
    const struct histogram *histogram = arg;
    for (size_t part = 1; part < histogram->parts; part++) {
        const uint64_t *table = table_of(histogram, part);
        for (size_t bucket = first; bucket < end; bucket++) {
            histogram->counts[bucket] += table[bucket];
        }
    }
    return 0;
}

static int run(struct histogram *histogram, const weft_par_options *options)
{
    size_t others = histogram->parts - 1;
    if (others == 0) {
        return wf_deep_call(count_all, histogram);
    }
    size_t sum = wf_scratch_add(0, others * histogram->buckets, sizeof(uint64_t));
    struct wf_scratch scratch;
    int err = wf_scratch_init(&scratch, sum, options);
    if (err != 0) {
        return err;
    }
    histogram->tables = wf_scratch_take(&scratch, others * histogram->buckets, sizeof(uint64_t));
    weft_par_options each = { .piece = 1, .stop = histogram->stop };
    err = weft_for(0, histogram->parts, count_parts, histogram, &each);
    if (err == 0) {
        weft_par_options any = { .stop = histogram->stop };
        err = weft_for(0, histogram->buckets, add_tables, histogram, &any);
    }
    wf_scratch_fini(&scratch);
    return err;
}

int weft_histogram(const void *base, size_t count, size_t size, weft_key_fn key, void *arg,
                   size_t buckets, uint64_t *counts, const weft_par_options *options)
{
    wf_pause_call();
    struct histogram histogram = { .base = base,
                                   .count = count,
                                   .size = size,
                                   .key = key,
                                   .arg = arg,
                                   .buckets = buckets,
                                   .counts = counts,
                                   .parts = parts_of(count, buckets),
                                   .stop = wf_stop_of(options) };
    int err = wf_options_fit(count, size) ? run(&histogram, options) : -EINVAL;
    if (err != 0 && buckets > 0) {
        wf_pause_clear(counts, buckets * sizeof *counts);
    }
    return err;
}
