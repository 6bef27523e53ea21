/* SPDX-License-Identifier: MIT */
/*
 * cond.c - condition variable: wait for a change of data that a mutex guards.
 *
 * A waiter enqueues itself, under the latch in the word, before it unlocks the mutex. So a task
 * that changes something after that, and signals, finds the waiter. When the waiter was
 * signaled, or has given up, it locks the mutex again. That step cannot be given up.
 *
 * A waiter that is canceled after it was signaled still counts as signaled, so no signal is
 * lost. But a select may have another winner by then. The wait for the signal is not part of the
 * select's own wait, since the mutex must be locked again afterwards. So a wait that was signaled
 * and loses signals the next waiter instead. After a broadcast there is none to signal.
 *
 * Edges: latch.h's [E1]; the mutex orders the data that it guards.
 *
 * Checked by tests/model/cond_model.c.
 */
#include <weft/cond.h>

#include "sched/await.h"
#include "sched/op.h"

struct wf_cond {
    _Atomic(uint32_t) word;  /* the latch alone */
    struct wf_waitq waiters; /* under the latch */
};

_Static_assert(sizeof(struct wf_cond) <= sizeof(weft_cond), "weft_cond is too small");

/* Results of the wait for the signal. */
enum {
    SIGNAL = 0,
    BROADCAST = 1,
};

void weft_cond_signal(weft_cond *cond)
{
    struct wf_cond *self = (struct wf_cond *)cond;
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    (void)wf_turn_claim(&turn, &self->waiters);
    wf_turn_end(&turn);
}

void weft_cond_broadcast(weft_cond *cond)
{
    struct wf_cond *self = (struct wf_cond *)cond;
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    wf_turn_claim_all(&turn, &self->waiters, BROADCAST);
    wf_turn_end(&turn);
}

static int wait_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)op;
    (void)turn;
    return WEFT_PENDING;
}

static const struct wf_op_ops wait_ops = { .future = WF_OP_FUTURE,
                                           .take = wait_take,
                                           .queue = offsetof(struct wf_cond, waiters) };

enum stage {
    BEGINS,
    WAITS, /* waits for the signal */
    LOCKS, /* waits for the mutex */
    ENDED, /* has the mutex, and a result that the caller does not have yet */
    RETURNED,
};

/* Returns 0 when the wait has ended and the mutex is locked. */
static int advance(weft_cond_future *self)
{
    if (self->stage == BEGINS) {
        self->stage = WAITS;
        int result = wf_op_poll(&self->wait.future);
        weft_mutex_unlock(self->mutex);
        return result;
    }
    if (self->stage == WAITS) {
        self->result = wf_op_poll(&self->wait.future);
        if (self->result == WEFT_PENDING) {
            return WEFT_PENDING;
        }
        weft_mutex_lock_init(&self->lock, self->mutex);
        self->stage = LOCKS;
    }
    if (self->stage == LOCKS && wf_op_poll(&self->lock.future) == WEFT_PENDING) {
        return WEFT_PENDING;
    }
    self->stage = ENDED;
    return 0;
}

static int cond_poll(weft_future *future)
{
    weft_cond_future *self = (weft_cond_future *)future;
    if (advance(self) == WEFT_PENDING) {
        return WEFT_PENDING;
    }
    self->stage = RETURNED;
    return self->result < 0 ? self->result : 0;
}

/* Ends the wait for the signal, but not the wait for the mutex. */
static bool cond_cancel(weft_future *future)
{
    weft_cond_future *self = (weft_cond_future *)future;
    if (self->stage == WAITS && !wf_op_cancel(&self->wait.future)) {
        return false;
    }
    return advance(self) != WEFT_PENDING;
}

/* Signals the next waiter if this one was signaled but has lost a select. */
static void cond_drop(weft_future *future)
{
    weft_cond_future *self = (weft_cond_future *)future;
    if (self->stage == ENDED && self->result == SIGNAL) {
        weft_cond_signal(self->cond);
    }
}

static const weft_future_ops cond_ops = {
    .poll = cond_poll, .cancel = cond_cancel, .drop = cond_drop, .flags = WEFT_FUTURE_GIVES_BACK
};

void weft_cond_wait_init(weft_cond_future *future, weft_cond *cond, weft_mutex *mutex)
{
    *future = (weft_cond_future){ .future.ops = &cond_ops, .cond = cond, .mutex = mutex };
    (void)wf_op_init(&future->wait, &wait_ops, cond);
}

int weft_cond_wait(weft_cond *cond, weft_mutex *mutex, weft_time deadline)
{
    weft_cond_future future;
    weft_cond_wait_init(&future, cond, mutex);
    return wf_await(&future.future, deadline, "weft_cond_wait",
                    "await a weft_cond_future in a body");
}
