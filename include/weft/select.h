/* SPDX-License-Identifier: MIT */
/*
 * weft/select.h - waiting for the first of several things.
 *
 *     weft_op order, stop;
 *     weft_recv_init(&order, orders, &wanted);
 *     weft_event_wait_init(&stop, &stopping);
 *     weft_branch branches[2];
 *     branches[0].future = &order.future;
 *     branches[1].future = &stop.future;
 *
 *     int winner = weft_select(branches, 2, 0, WEFT_NEVER);
 *     if (winner == 0 && branches[0].result == 0) {
 *         serve(&wanted);
 *     }
 *
 * A branch is a future: an operation (weft/op.h) to send, to receive, to lock, to wait for an
 * event; a sleep; a join; a body. One branch wins. The others have not happened: an operation
 * has sent nothing and received nothing, and a join leaves the handle as it was. Any other
 * future is cancelled, and awaited.
 *
 * An operation, also one of I/O (weft_io), can be used again in the next select or await, whether
 * it has won or lost. Other futures are prepared anew.
 */
#ifndef WEFT_SELECT_H
#define WEFT_SELECT_H

#include "clock.h"
#include "future.h"

WEFT_EXTERN_C_BEGIN

/* One of the things that a select waits for. The caller sets future only. */
typedef struct weft_branch {
    weft_future *future; /* prepared. NULL: a branch that never wins */
    int result;          /* of the future, if this branch has won */
    uint32_t opaque32_[3];
    uint64_t opaque_[5];
} weft_branch;

/* Of several branches that are ready the first one wins; else each has the same chance. */
#define WEFT_SELECT_ORDERED 1u

/* If no branch is ready, -EAGAIN instead of a wait. */
#define WEFT_SELECT_TRY 2u

/*
 * Waits until one of the branches is ready, and takes it. Returns its index; its result is in
 * the branch. flags is 0, or some of WEFT_SELECT_*. No future stands in two
 * branches, and a barrier is none: both abort with a sentence.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_select_future.
 * Suspends: until a branch is ready, or the deadline; until the others have ended.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, -EAGAIN; -ENOMEM (on a thread's first wait). No
 *           branch has won then.
 */
WEFT_API WEFT_NODISCARD int weft_select(weft_branch *branches, size_t count, unsigned flags,
                                        weft_time deadline);

/* A select as a future. */
typedef struct weft_select_future {
    weft_future future;
    weft_branch *branches;
    size_t count;
    unsigned flags;
    uint32_t opaque32_[3];
    uint64_t opaque_[3];
} weft_select_future;

/*
 * Prepares a select: the result of the future is that of weft_select(). The branches must
 * stay in place until then.
 *
 * Context: any thread.
 */
WEFT_API void weft_select_init(weft_select_future *future, weft_branch *branches, size_t count,
                               unsigned flags);

WEFT_EXTERN_C_END

#endif
