/* SPDX-License-Identifier: MIT */
/*
 * weft/pipeline.h - parallel pipeline of stages.
 *
 *     int read_block(void **item, void *arg);   // makes one; NULL at the end
 *     int compress(void **item, void *arg);     // several blocks in parallel
 *     int write_block(void **item, void *arg);  // in the order in which they were read
 *
 *     weft_stage stages[] = {
 *         { WEFT_STAGE_IN_ORDER, read_block },
 *         { WEFT_STAGE_PARALLEL, compress },
 *         { WEFT_STAGE_IN_ORDER, write_block },
 *     };
 *     err = weft_pipeline(stages, 3, 0, free_block, &files, NULL);
 *
 * A worker carries an item from stage to stage as far as it can. An item that cannot enter a
 * stage yet is left in the stage's queue, and the worker that leaves the stage admits it. So no
 * worker waits for a stage, and a single worker suffices to run the whole pipeline.
 */
#ifndef WEFT_PIPELINE_H
#define WEFT_PIPELINE_H

#include "base.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/* Concurrency of a stage. */
typedef enum weft_stage_kind {
    WEFT_STAGE_IN_ORDER, /* one item at a time, in the order of their creation */
    WEFT_STAGE_SERIAL,   /* one item at a time, in any order */
    WEFT_STAGE_PARALLEL, /* any number of items at the same time */
} weft_stage_kind;

/*
 * A stage. Its function receives an item and may replace it; the replacement moves on. If it
 * replaces the item with NULL, the item is gone and no later stage sees it. The function may
 * suspend, unless a stackless task has called weft_pipeline() (weft/par.h). It returns 0, or an
 * error, which ends the pipeline.
 *
 * The first stage receives NULL and creates an item. If it leaves NULL, the input has ended,
 * and the stage is not called again. The last stage consumes the item: the pointer that it
 * leaves is ignored, unless it returns an error.
 */
typedef struct weft_stage {
    weft_stage_kind kind;
    int (*run)(void **item, void *arg);
} weft_stage;

/* Frees an item that does not reach the end of the pipeline. */
typedef void (*weft_drop_fn)(void *item, void *arg);

/*
 * Runs items through count stages. The first stage must be WEFT_STAGE_IN_ORDER. At most
 * `tokens` items are in flight at a time; 0 stands for a few per worker. Returns when all items
 * have reached the end.
 *
 * When a stage fails or the pipeline is canceled, calls that have started run to completion,
 * and no further ones are made. Then drop is called for each item in flight. This includes the
 * item whose stage failed, unless the stage replaced it with NULL. drop may be NULL; then these
 * items are abandoned.
 *
 * Context:  any thread. Outside of tasks and weft_par_run(), each item passes through all
 *           stages before the next one is created.
 * Suspends: while other workers run stages. Cancellation does not end the wait.
 * Errors:   the first error that a stage returned; -EINVAL: there are no stages, or the first
 *           one is not in order; -ENOMEM, with more than 16 stages; WEFT_ECANCELED:
 *           options->stop was set. If there is no memory for further items, fewer are in
 *           flight.
 */
WEFT_API WEFT_NODISCARD int weft_pipeline(const weft_stage *stages, size_t count, size_t tokens,
                                          weft_drop_fn drop, void *arg,
                                          const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
