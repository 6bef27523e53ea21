/* SPDX-License-Identifier: MIT */
/*
 * weft/select.h - wait for the first of several futures.
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
 * A branch is a future: an operation (weft/op.h) such as a send, a receive, a lock or a wait
 * for an event; a sleep; a join; a stackless task. One branch wins. The others have no effect:
 * a losing operation has sent and received nothing, and a losing join leaves the handle as it
 * was. Any other losing future is canceled and awaited.
 *
 * An operation, including an I/O operation (weft_io), can be used again in the next select or
 * await, whether it won or lost. Other futures must be prepared again.
 */
#ifndef WEFT_SELECT_H
#define WEFT_SELECT_H

#include "clock.h"
#include "future.h"

WEFT_EXTERN_C_BEGIN

/* One branch of a select. The caller sets only future. */
typedef struct weft_branch {
    weft_future *future; /* prepared. NULL: a branch that never wins */
    int result;          /* of the future, if this branch has won */
    uint32_t opaque32_[3];
    uint64_t opaque_[5];
} weft_branch;

/* If several branches are ready, the first one wins. Without this flag each has the same
 * chance. */
#define WEFT_SELECT_ORDERED 1u

/* Returns -EAGAIN instead of waiting if no branch is ready. */
#define WEFT_SELECT_TRY 2u

/*
 * Waits until one of the branches is ready and completes it. Returns its index; its result is
 * in the branch. flags is 0 or a combination of WEFT_SELECT_*. A future must not appear in two
 * branches, and a barrier wait cannot be a branch: both abort with a message.
 *
 * Context:  fiber or plain thread. A stackless task awaits a weft_select_future.
 * Suspends: until a branch is ready or the deadline passes, then until the losing futures have
 *           ended.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, -EAGAIN, -ENOMEM (first wait of a thread). No
 *           branch has won.
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
 * Prepares a select. The future's result is that of weft_select(). The branches must stay in
 * place until the future completes.
 *
 * Context: any thread.
 */
WEFT_API void weft_select_init(weft_select_future *future, weft_branch *branches, size_t count,
                               unsigned flags);

WEFT_EXTERN_C_END

#endif
