/* SPDX-License-Identifier: MIT */
/*
 * cond.c - waiting for a change of what a mutex guards.
 *
 * A wait enlists itself, under the latch in the word, before it unlocks the mutex: so who
 * changes something after that, and signals, finds it. When it was signalled, or has given
 * up, it locks the mutex, and that it does not give up.
 *
 * A waiter that is cancelled when it has been signalled has been signalled: so no signal is
 * lost.
 *
 * Edges: latch.h's [E1]; what the mutex guards is ordered by the mutex.
 *
 * Checked by tests/model/cond_model.c.
 */
#include <weft/cond.h>

#include "base/latch.h"
#include "sched/await.h"
#include "sched/op.h"

struct wf_cond {
    _Atomic(uint32_t) word;  /* the latch alone */
    struct wf_waitq waiters; /* under the latch */
};

_Static_assert(sizeof(struct wf_cond) <= sizeof(weft_cond), "weft_cond is too small");

void weft_cond_signal(weft_cond *cond)
{
    struct wf_cond *self = (struct wf_cond *)cond;
    struct wf_grants grants;
    wf_grants_init(&grants);
    (void)wf_latch_lock(&self->word);
    (void)wf_grants_claim(&grants, &self->waiters);
    wf_latch_unlock(&self->word, 0);
    wf_grants_fire(&grants);
}

void weft_cond_broadcast(weft_cond *cond)
{
    struct wf_cond *self = (struct wf_cond *)cond;
    struct wf_grants grants;
    wf_grants_init(&grants);
    (void)wf_latch_lock(&self->word);
    wf_grants_claim_all(&grants, &self->waiters, 0);
    wf_latch_unlock(&self->word, 0);
    wf_grants_fire(&grants);
}

/* The data of the operation: the mutex. */
static int wait_begin(struct wf_op *op)
{
    struct wf_cond *cond = op->object;
    (void)wf_latch_lock(&cond->word);
    int result = wf_op_enlist(op, &cond->waiters);
    wf_latch_unlock(&cond->word, 0);
    weft_mutex_unlock(op->data);
    return result;
}

static void wait_leave(struct wf_op *op)
{
    struct wf_cond *cond = op->object;
    (void)wf_latch_lock(&cond->word);
    (void)wf_op_delist(op);
    wf_latch_unlock(&cond->word, 0);
}

static const struct wf_op_ops wait_ops = { .future = WF_OP_FUTURE,
                                           .begin = wait_begin,
                                           .leave = wait_leave };

enum stage {
    WAITS, /* to be signalled */
    LOCKS, /* the mutex */
    ENDED,
};

static int cond_poll(weft_future *future)
{
    weft_cond_future *self = (weft_cond_future *)future;
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
    return self->result;
}

/* Ends the wait for the signal, but not that for the mutex. */
static bool cond_cancel(weft_future *future)
{
    weft_cond_future *self = (weft_cond_future *)future;
    if (self->stage == WAITS && !wf_op_cancel(&self->wait.future)) {
        return false;
    }
    return cond_poll(future) != WEFT_PENDING;
}

static const weft_future_ops cond_ops = { .poll = cond_poll, .cancel = cond_cancel };

void weft_cond_wait_init(weft_cond_future *future, weft_cond *cond, weft_mutex *mutex)
{
    *future = (weft_cond_future){ .future.ops = &cond_ops, .mutex = mutex };
    struct wf_op *wait = wf_op_init(&future->wait, &wait_ops, cond);
    wait->data = mutex;
}

int weft_cond_wait(weft_cond *cond, weft_mutex *mutex, weft_time deadline)
{
    weft_cond_future future;
    weft_cond_wait_init(&future, cond, mutex);
    wf_await_must_suspend("weft_cond_wait", "await a weft_cond_future in a body");
    return weft_await(&future.future, deadline);
}
