/* SPDX-License-Identifier: MIT */
/*
 * future.c - awaiting in a body, bodies as futures, and wakers.
 *
 * Budget. A body whose awaits are always ready would never return to its worker.
 * So the 129th ready await of one poll is not looked at: the task is put to the
 * end of the queue first.
 */
#include <weft/future.h>

#include "base/assert.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    CO_CANCELLED = 1
}; /* weft_co.flags */

static bool must_cancel(const weft_co *co, const struct wf_task *task)
{
    /* relaxed: a flag; if it is set meanwhile, the task is polled again. */
    uint64_t state = wf_load_relaxed(&task->state);
    if (wf_state_shield(state) > 0) {
        return false;
    }
    return (co->flags & CO_CANCELLED) != 0 || (state & WF_STATE_CANCELLED) != 0;
}

/* Returns false once the budget of this poll is used up. */
static bool may_go_on(struct wf_worker *worker, struct wf_task *task)
{
    if (worker == NULL || worker->budget > 0) {
        return true;
    }
    wf_counter_add(&worker->counters.budget_yields, 1);
    wf_task_wake_ref(task);
    return false;
}

int weft_await_poll(weft_co *co, weft_future *future)
{
    struct wf_task *task = wf_thread_waiter();
    struct wf_worker *worker = wf_worker_current();
    if (co->waiting == NULL) {
        if (must_cancel(co, task)) {
            return WEFT_ECANCELED;
        }
        if (!may_go_on(worker, task)) {
            return WEFT_PENDING;
        }
    }
    int result = future->ops->poll(future);
    if (result == WEFT_PENDING) {
        co->waiting = future;
        return result;
    }
    co->waiting = NULL;
    if (worker != NULL && worker->budget > 0) {
        worker->budget--;
    }
    return result;
}

int weft_yield_result(const weft_co *co)
{
    return must_cancel(co, wf_thread_waiter()) ? WEFT_ECANCELED : 0;
}

void weft_co_corrupt(const weft_co *co)
{
    wf_fatal("a body stands at line %u, where it has no await; its weft_co was overwritten, or "
             "is another body's",
             co->resume);
}

/* Runs the body until it waits, yields or ends. */
static int co_advance(weft_co_future *self)
{
    int result = self->body(&self->co, self->state);
    if (result == WEFT_YIELDED) {
        wf_task_wake_ref(wf_thread_waiter());
    } else if (result != WEFT_PENDING) {
        self->result = result;
        self->done = true;
    }
    return result;
}

static int co_poll(weft_future *future)
{
    weft_co_future *self = (weft_co_future *)future;
    if (!self->done) {
        (void)co_advance(self);
    }
    return self->done ? self->result : WEFT_PENDING;
}

/* Cancels what the body waits for, unless it is behind a shield, then lets it
 * come to its end. A body that waits without awaiting anything has been told, and
 * is ended. */
static bool co_cancel(weft_future *future)
{
    weft_co_future *self = (weft_co_future *)future;
    if (self->done) {
        return true;
    }
    weft_future *waiting = self->co.waiting;
    self->co.flags |= CO_CANCELLED;
    bool told = must_cancel(&self->co, wf_thread_waiter());
    if (told && waiting != NULL && !waiting->ops->cancel(waiting)) {
        return false;
    }
    if (co_advance(self) == WEFT_PENDING && self->co.waiting == NULL &&
        must_cancel(&self->co, wf_thread_waiter())) {
        self->result = WEFT_ECANCELED;
        self->done = true;
    }
    return self->done;
}

static const weft_future_ops co_ops = { .poll = co_poll, .cancel = co_cancel };

void weft_co_init(weft_co_future *future, weft_body_fn body, void *state)
{
    *future = (weft_co_future){ .body = body, .state = state };
    future->future.ops = &co_ops;
}

static struct wf_task *task_of(weft_waker *waker)
{
    return (struct wf_task *)waker;
}

weft_waker *weft_waker_current(void)
{
    struct wf_task *task = wf_thread_waiter();
    wf_task_retain(task);
    return (weft_waker *)task;
}

weft_waker *weft_waker_clone(weft_waker *waker)
{
    wf_task_retain(task_of(waker));
    return waker;
}

void weft_waker_fire(weft_waker *waker)
{
    wf_task_wake(task_of(waker));
}

void weft_waker_wake(weft_waker *waker)
{
    wf_task_wake_ref(task_of(waker));
}

void weft_waker_drop(weft_waker *waker)
{
    if (waker != NULL) {
        wf_task_release(task_of(waker));
    }
}
