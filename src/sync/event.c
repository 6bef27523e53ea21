/* SPDX-License-Identifier: MIT */
/*
 * event.c - event: a flag that wakes all waiters when it is set.
 *
 * The word says whether the event is SET; the latch in the word guards the queue. The setter
 * claims all waiters, releases the latch with the word SET, which is its last access to the
 * event, and then wakes them.
 *
 * Edges: latch.h's [E1]: set releases the word, a caller that finds it SET acquires it: it sees
 * what was written before. A waiter sees that through the end of its wait.
 *
 * Checked by tests/model/event_model.c.
 */
#include <weft/event.h>

#include "base/latch.h"
#include "sched/op.h"

enum {
    SET = 1 << WF_LATCH_SHIFT,
};

struct wf_event {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch */
};

_Static_assert(sizeof(struct wf_event) <= sizeof(weft_event), "weft_event is too small");

void weft_event_set(weft_event *event)
{
    struct wf_event *self = (struct wf_event *)event;
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    wf_turn_claim_all(&turn, &self->waiters, 0);
    turn.bits = SET;
    wf_turn_end(&turn);
}

void weft_event_reset(weft_event *event)
{
    struct wf_event *self = (struct wf_event *)event;
    (void)wf_latch_lock(&self->word);
    wf_latch_unlock(&self->word, 0);
}

bool weft_event_is_set(const weft_event *event)
{
    const struct wf_event *self = (const struct wf_event *)event;
    /* acquire latch.h's [E1]: sees what was written before the event was set. */
    return (wf_load_acquire(&self->word) & SET) != 0;
}

static int wait_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)op;
    return (turn->bits & SET) != 0 ? 0 : WEFT_PENDING;
}

static const struct wf_op_ops wait_ops = { .future = WF_OP_FUTURE,
                                           .take = wait_take,
                                           .queue = offsetof(struct wf_event, waiters) };

void weft_event_wait_init(weft_op *op, weft_event *event)
{
    (void)wf_op_init(op, &wait_ops, event);
}

int weft_event_wait(weft_event *event, weft_time deadline)
{
    int err = wf_op_enter(&deadline, "weft_event_wait");
    if (wf_unlikely(err != 0)) {
        return err;
    }
    if (weft_event_is_set(event)) {
        return 0;
    }
    weft_op op;
    weft_event_wait_init(&op, event);
    return wf_op_await_slowly(&op, deadline);
}
