/* SPDX-License-Identifier: MIT */
/*
 * weft/op.h - awaitable operations: lock a mutex, receive from a channel, and so on.
 *
 * Each operation has two forms: a function that waits in place, for fibers and plain threads,
 * and a function that prepares a weft_op, for a stackless task to await:
 *
 *     err = weft_mutex_lock(&mutex, WEFT_NEVER);  // fiber or plain thread
 *
 *     weft_mutex_lock_init(&self->op, &mutex);    // stackless task
 *     WEFT_AWAIT(co, err, &self->op.future);
 *
 * An operation that is canceled, or whose deadline passes, has no effect. If it is granted at
 * the same moment, it succeeds.
 *
 * An operation that has completed, was canceled or has lost a select may be awaited again without
 * being prepared again: it repeats the same operation. Only one task may await it at a time.
 */
#ifndef WEFT_OP_H
#define WEFT_OP_H

#include "future.h"

/* An operation. It must stay in place until its future completes. */
typedef struct weft_op {
    weft_future future;
    uint64_t opaque[14];
} weft_op;

#endif
