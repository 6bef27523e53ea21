/* SPDX-License-Identifier: MIT */
/*
 * scan.c - running totals.
 *
 * The range is cut into blocks (blocks.h). In a first pass each block is folded into a
 * value; these are combined from left to right, so that each block knows what comes before
 * it; in a second pass each block is scanned from there. As in reduce.c the result does not
 * depend on who ran what.
 *
 * Who is alone folds and scans block by block, while a block is in the cache, and comes to
 * the same values.
 */
#include <errno.h>
#include <string.h>

#include <weft/loop.h>
#include <weft/par.h>

#include "par/blocks.h"
#include "par/stop.h"
#include "sched/job.h"

struct scan {
    const weft_scanner *how;
    void *arg;
    struct wf_blocks blocks;
    struct wf_values values; /* of the blocks: folded, and then what comes before them */
    struct wf_stopper stopper;
};

static int fold_block(const struct scan *scan, size_t block, void *value)
{
    memcpy(value, scan->how->reduction.identity, scan->how->reduction.size);
    return scan->how->reduction.fold(value, wf_blocks_first(&scan->blocks, block),
                                     wf_blocks_end(&scan->blocks, block), scan->arg);
}

static int scan_block(const struct scan *scan, size_t block, void *before)
{
    return scan->how->scan(before, wf_blocks_first(&scan->blocks, block),
                           wf_blocks_end(&scan->blocks, block), scan->arg);
}

static int fold_blocks(size_t first, size_t end, void *arg)
{
    struct scan *scan = arg;
    int err = 0;
    for (size_t block = first; err == 0 && block < end; block++) {
        err = fold_block(scan, block, wf_values_at(&scan->values, block));
    }
    return err;
}

static int scan_blocks(size_t first, size_t end, void *arg)
{
    struct scan *scan = arg;
    int err = 0;
    for (size_t block = first; err == 0 && block < end; block++) {
        err = scan_block(scan, block, wf_values_at(&scan->values, block));
    }
    return err;
}

/* From the value of each block to that of all before it. */
static void add_up(struct scan *scan, void *total, void *own)
{
    const weft_reduction *how = &scan->how->reduction;
    memcpy(total, how->identity, how->size);
    for (size_t block = 0; block < scan->blocks.count; block++) {
        void *value = wf_values_at(&scan->values, block);
        memcpy(own, value, how->size);
        memcpy(value, total, how->size);
        how->combine(total, own, scan->arg);
    }
}

/* Alone, in one go. */
static int scan_alone(struct scan *scan, void *total, void *own)
{
    const weft_reduction *how = &scan->how->reduction;
    memcpy(total, how->identity, how->size);
    void *before = wf_values_at(&scan->values, 0);
    for (size_t block = 0; block < scan->blocks.count; block++) {
        if (wf_stopper_is_set(&scan->stopper)) {
            return wf_stopper_result(&scan->stopper);
        }
        /* First, since the scan may overwrite what it reads. */
        int err = fold_block(scan, block, own);
        memcpy(before, total, how->size);
        if (err == 0) {
            err = scan_block(scan, block, before);
        }
        if (err != 0) {
            return err;
        }
        how->combine(total, own, scan->arg);
    }
    return 0;
}

static int scan_shared(struct scan *scan, void *total, void *own)
{
    weft_par_options options = { .stop = scan->stopper.stop };
    int err = weft_for(0, scan->blocks.count, fold_blocks, scan, &options);
    if (err == 0) {
        add_up(scan, total, own);
        err = weft_for(0, scan->blocks.count, scan_blocks, scan, &options);
    }
    return err;
}

int weft_scan(size_t first, size_t end, const weft_scanner *how, void *arg, void *total,
              const weft_par_options *options)
{
    struct scan scan = { .how = how, .arg = arg };
    size_t size = how->reduction.size;
    scan.blocks = wf_blocks_of(first, end, options);
    scan.stopper.stop = wf_stop_of(options);
    /* And one for the total, and one to hold another. */
    int err = wf_values_init(&scan.values, scan.blocks.count + 2, size, options);
    if (err != 0) {
        return err;
    }
    void *sum = wf_values_at(&scan.values, scan.blocks.count);
    void *own = wf_values_at(&scan.values, scan.blocks.count + 1);
    err = wf_job_may_fork() ? scan_shared(&scan, sum, own) : scan_alone(&scan, sum, own);
    if (err == 0 && total != NULL) {
        memcpy(total, sum, size);
    }
    wf_values_fini(&scan.values);
    return err;
}
