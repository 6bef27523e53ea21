/* SPDX-License-Identifier: MIT */
/*
 * reduce.c - parallel reduction.
 *
 * The range is divided into blocks, each block is folded into a value of its own, and the
 * values are combined in pairs, pairs of pairs, and so on. The blocks and the order of
 * combination depend only on the length of the range (blocks.h). So a sum of floating-point
 * numbers is bitwise the same with any number of workers, no matter which worker ran which
 * block.
 *
 *   blocks     0     1     2     3     4
 *              |     |     |      \   /
 *               \   /      |        3
 *                 0         \     /
 *                   \         2
 *                     \     /
 *                        0            the result replaces the first block's value
 */
#include <errno.h>

#include <weft/loop.h>
#include <weft/par.h>

#include "par/blocks.h"
#include "par/deep.h"
#include "par/pause.h"
#include "par/stop.h"
#include "sched/job.h"

struct reduce {
    const weft_reduction *how;
    void *arg;
    struct wf_blocks blocks;
    struct wf_values values; /* of the blocks */
    struct wf_stopper stopper;
};

/* The blocks from first to before end. */
struct part {
    struct reduce *reduce;
    size_t first;
    size_t end;
};

static void fold_block(struct reduce *reduce, size_t block)
{
    if (wf_stopper_is_set(&reduce->stopper)) {
        return;
    }
    void *value = wf_values_at(&reduce->values, block);
    wf_pause_element(value, reduce->how->identity, reduce->how->size);
    int err = reduce->how->fold(value, wf_blocks_first(&reduce->blocks, block),
                                wf_blocks_end(&reduce->blocks, block), reduce->arg);
    if (err != 0) {
        wf_stopper_fail(&reduce->stopper, err);
    }
    wf_job_speak_up();
    /* The last block may be shorter, and each is combined with another. */
    wf_pause(reduce->blocks.length);
}

static void fold_part(void *arg)
{
    const struct part *part = arg;
    struct reduce *reduce = part->reduce;
    if (part->end - part->first == 1) {
        fold_block(reduce, part->first);
        return;
    }
    size_t middle = part->first + (part->end - part->first) / 2;
    struct part left = { reduce, part->first, middle };
    struct part right = { reduce, middle, part->end };
    weft_join2(fold_part, &left, fold_part, &right);
    if (!wf_stopper_is_set(&reduce->stopper)) {
        reduce->how->combine(wf_values_at(&reduce->values, part->first),
                             wf_values_at(&reduce->values, middle), reduce->arg);
    }
}

int weft_reduce(size_t first, size_t end, const weft_reduction *how, void *arg, void *result,
                const weft_par_options *options)
{
    wf_pause_call();
    if (how->size == 0) {
        return -EINVAL;
    }
    struct reduce reduce = { .how = how, .arg = arg };
    reduce.blocks = wf_blocks_of(first, end, options);
    reduce.stopper.stop = wf_stop_of(options);
    wf_pause_element(result, how->identity, how->size);
    if (reduce.blocks.count == 0) {
        return 0;
    }
    int err = wf_values_init(&reduce.values, reduce.blocks.count, how->size, 0, options);
    if (err != 0) {
        return err;
    }
    struct part all = { &reduce, 0, reduce.blocks.count };
    bool silent = wf_job_begin_silently();
    wf_deep_run(fold_part, &all);
    wf_job_end_silently(silent);
    err = wf_stopper_result(&reduce.stopper);
    if (err == 0) {
        wf_pause_element(result, wf_values_at(&reduce.values, 0), how->size);
    }
    wf_values_fini(&reduce.values);
    return err;
}
