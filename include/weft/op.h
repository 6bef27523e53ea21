/* SPDX-License-Identifier: MIT */
/*
 * weft/op.h - an operation on an object that may have to wait: to lock a mutex, to
 * receive from a channel.
 *
 * Each such operation has a function that waits where it is called, on a fiber or a plain
 * thread, and a function that prepares a weft_op, for a body to await:
 *
 *     err = weft_mutex_lock(&mutex, WEFT_NEVER);  // a fiber or a thread
 *
 *     weft_mutex_lock_init(&self->op, &mutex);    // a body
 *     WEFT_AWAIT(co, err, &self->op.future);
 *
 * An operation that was cancelled, or whose deadline has passed, has done nothing. If it
 * was granted what it wants at the same moment, it has succeeded.
 *
 * An operation that has its result, or was cancelled, or has lost a select, may be awaited again
 * without being prepared anew: it does the same again. One task awaits it at a time.
 */
#ifndef WEFT_OP_H
#define WEFT_OP_H

#include "future.h"

/* In the frame or the state of who waits, until the result. */
typedef struct weft_op {
    weft_future future;
    uint64_t opaque[14];
} weft_op;

#endif
