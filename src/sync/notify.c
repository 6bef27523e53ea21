/* SPDX-License-Identifier: MIT */
/*
 * notify.c - a notification, for one who waits or the next one who does.
 *
 * The word says whether a notification is STORED; the latch in the word guards the queue.
 * One is stored only while nobody waits. A waiter that is cancelled when it has been notified
 * has been notified: so none is lost.
 *
 * Edges: latch.h's [E1]: who notifies releases the word, who finds it STORED acquires it.
 *
 * Checked by tests/model/event_model.c.
 */
#include <weft/event.h>

#include "sched/op.h"

enum {
    STORED = 1 << WF_LATCH_SHIFT,
};

struct wf_notify {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch */
};

_Static_assert(sizeof(struct wf_notify) <= sizeof(weft_notify), "weft_notify is too small");

void weft_notify_one(weft_notify *notify)
{
    struct wf_notify *self = (struct wf_notify *)notify;
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    if (wf_turn_claim(&turn, &self->waiters) == NULL) {
        turn.bits = STORED;
    }
    wf_turn_end(&turn);
}

void weft_notify_all(weft_notify *notify)
{
    struct wf_notify *self = (struct wf_notify *)notify;
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    wf_turn_claim_all(&turn, &self->waiters, 0);
    wf_turn_end(&turn);
}

static int wait_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)op;
    if (turn->bits != STORED) {
        return WEFT_PENDING;
    }
    turn->bits = 0;
    return 0;
}

static const struct wf_op_ops wait_ops = { .future = WF_OP_FUTURE,
                                           .take = wait_take,
                                           .queue = offsetof(struct wf_notify, waiters) };

void weft_notify_wait_init(weft_op *op, weft_notify *notify)
{
    (void)wf_op_init(op, &wait_ops, notify);
}

int weft_notify_wait(weft_notify *notify, weft_time deadline)
{
    weft_op op;
    weft_notify_wait_init(&op, notify);
    return wf_op_await(&op, deadline, "weft_notify_wait");
}
