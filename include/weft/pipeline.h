/* SPDX-License-Identifier: MIT */
/*
 * weft/pipeline.h - items that go through stages, many at a time.
 *
 *     int read_block(void **item, void *arg);   // makes one; NULL at the end
 *     int compress(void **item, void *arg);     // several blocks at once
 *     int write_block(void **item, void *arg);  // in the order in which they were read
 *
 *     weft_stage stages[] = {
 *         { WEFT_STAGE_IN_ORDER, read_block },
 *         { WEFT_STAGE_PARALLEL, compress },
 *         { WEFT_STAGE_IN_ORDER, write_block },
 *     };
 *     err = weft_pipeline(stages, 3, 0, free_block, &files, NULL);
 *
 * A worker goes with an item from stage to stage, as far as it gets: an item that cannot
 * enter a stage yet is left there, and whoever leaves the stage lets it in. So no worker
 * waits for a stage, and it takes but one of them to run it all.
 */
#ifndef WEFT_PIPELINE_H
#define WEFT_PIPELINE_H

#include "base.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/* How items pass a stage. */
typedef enum weft_stage_kind {
    WEFT_STAGE_IN_ORDER, /* one at a time, in the order in which they were made */
    WEFT_STAGE_SERIAL,   /* one at a time, in any order */
    WEFT_STAGE_PARALLEL, /* any number at once */
} weft_stage_kind;

/*
 * A stage. Its function gets an item, and may put another one in its place: that goes on.
 * NULL in its place: the item is gone, and no further stage sees it. The function may wait,
 * but not if a stackless task has called weft_pipeline() (weft/par.h).
 * It returns 0, or an error, which ends the pipeline.
 *
 * The first stage gets NULL, and makes an item. If it leaves NULL, that is the end, and it
 * is not called again. The last stage consumes: what it leaves is not looked at, unless it
 * has failed.
 */
typedef struct weft_stage {
    weft_stage_kind kind;
    int (*run)(void **item, void *arg);
} weft_stage;

/* Frees an item that does not come to its end. */
typedef void (*weft_drop_fn)(void *item, void *arg);

/*
 * Runs items through count stages; the first one must be WEFT_STAGE_IN_ORDER. At most
 * `tokens` items are under way at a time; 0 stands for a few per worker. Returns when all
 * have come to their ends.
 *
 * When a stage fails, or the pipeline is stopped, functions that have begun return, and no
 * further one is called; then drop is called for each item that is still under way, also
 * for the one whose stage has failed, if the stage has left it in its place. drop may be
 * NULL: such items are forgotten.
 *
 * Context:  anywhere. Outside of tasks and weft_par_run() an item goes through all stages
 *           before the next one is made.
 * Suspends: while other workers are at parts of it; not for cancellation.
 * Errors:   what a stage returns, the first one that did; -EINVAL: no stages, or the first
 *           one is not in order; -ENOMEM, with more than 16 stages; WEFT_ECANCELED: stopped.
 *           Without memory for further items, fewer are under way.
 */
WEFT_API WEFT_NODISCARD int weft_pipeline(const weft_stage *stages, size_t count, size_t tokens,
                                          weft_drop_fn drop, void *arg,
                                          const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
