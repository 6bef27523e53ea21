/* SPDX-License-Identifier: MIT */
/*
 * shutdown.c - graceful shutdown: refuses new work and waits for the work in progress.
 *
 * One latch guards both the trigger and the count of work in progress. So work either begins
 * before the trigger, and drain waits for it, or it is refused.
 *
 * Edges: latch.h's [E1]: a caller that has waited for the work sees everything that it did.
 */
#include <weft/shutdown.h>

#include <sched.h>

#include "base/assert.h"
#include "base/latch.h"
#include "sched/op.h"

struct shutdown {
    _Atomic(uint32_t) word; /* latch only; guards all fields below */
    bool is_triggered;
    size_t pending;
    struct wf_waitq triggered; /* waiters for the trigger */
    struct wf_waitq drained;   /* waiters for the end of the work */
    weft_token token;
};

_Static_assert(offsetof(struct shutdown, token) == offsetof(weft_shutdown, token), "");
_Static_assert(sizeof(struct shutdown) <= sizeof(weft_shutdown), "weft_shutdown is too small");

static struct shutdown *shutdown_of(weft_shutdown *shutdown)
{
    return (struct shutdown *)shutdown;
}

int weft_shutdown_enter(weft_shutdown *shutdown)
{
    struct shutdown *self = shutdown_of(shutdown);
    (void)wf_latch_lock(&self->word);
    int result = self->is_triggered ? WEFT_ESHUTDOWN : 0;
    self->pending += result == 0;
    wf_latch_unlock(&self->word, 0);
    return result;
}

void weft_shutdown_leave(weft_shutdown *shutdown)
{
    struct shutdown *self = shutdown_of(shutdown);
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    if (wf_unlikely(self->pending == 0)) {
        wf_fatal("weft_shutdown_leave: nothing is under way; call weft_shutdown_enter() before");
    }
    self->pending--;
    if (self->pending == 0) {
        wf_turn_claim_all(&turn, &self->drained, 0);
    }
    wf_turn_end(&turn);
}

size_t weft_shutdown_pending(weft_shutdown *shutdown)
{
    struct shutdown *self = shutdown_of(shutdown);
    (void)wf_latch_lock(&self->word);
    size_t pending = self->pending;
    wf_latch_unlock(&self->word, 0);
    return pending;
}

void weft_shutdown_trigger(weft_shutdown *shutdown)
{
    struct shutdown *self = shutdown_of(shutdown);
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    self->is_triggered = true;
    wf_turn_claim_all(&turn, &self->triggered, 0);
    wf_turn_end(&turn);
}

bool weft_shutdown_is_triggered(weft_shutdown *shutdown)
{
    struct shutdown *self = shutdown_of(shutdown);
    (void)wf_latch_lock(&self->word);
    bool is_triggered = self->is_triggered;
    wf_latch_unlock(&self->word, 0);
    return is_triggered;
}

weft_token *weft_shutdown_token(weft_shutdown *shutdown)
{
    return &shutdown->token;
}

/* --- Waiting ---------------------------------------------------------------------------------- */

static int trigger_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    return ((const struct shutdown *)op->object)->is_triggered ? 0 : WEFT_PENDING;
}

static const struct wf_op_ops trigger_ops = { .future = WF_OP_FUTURE,
                                              .take = trigger_take,
                                              .queue = offsetof(struct shutdown, triggered) };

void weft_shutdown_wait_init(weft_op *op, weft_shutdown *shutdown)
{
    (void)wf_op_init(op, &trigger_ops, shutdown);
}

int weft_shutdown_wait(weft_shutdown *shutdown, weft_time deadline)
{
    weft_op op;
    weft_shutdown_wait_init(&op, shutdown);
    return wf_op_await(&op, deadline, "weft_shutdown_wait");
}

static int drain_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    return ((const struct shutdown *)op->object)->pending == 0 ? 0 : WEFT_PENDING;
}

static const struct wf_op_ops drain_ops = { .future = WF_OP_FUTURE,
                                            .take = drain_take,
                                            .queue = offsetof(struct shutdown, drained) };

static int await_drained(struct shutdown *shutdown, weft_time deadline)
{
    weft_op op;
    (void)wf_op_init(&op, &drain_ops, shutdown);
    return wf_op_await(&op, deadline, "weft_shutdown_drain");
}

int weft_shutdown_drain(weft_shutdown *shutdown, weft_time deadline)
{
    struct shutdown *self = shutdown_of(shutdown);
    weft_shutdown_trigger(shutdown);
    int result = await_drained(self, deadline);
    if (result == 0) {
        return 0;
    }
    weft_token_cancel(&self->token);
    bool is_task = weft_task_current() != NULL;
    if (is_task) {
        weft_shield_enter();
    }
    while (await_drained(self, WEFT_NEVER) != 0) {
        (void)sched_yield(); /* The thread has no memory for a wait: retry. */
    }
    if (is_task) {
        weft_shield_leave();
    }
    return result;
}
