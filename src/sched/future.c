/* SPDX-License-Identifier: MIT */
/*
 * future.c - awaiting in stackless tasks, stackless functions as futures, and wakers.
 *
 * Budget. A stackless task whose awaits are always ready would never return to its worker. So
 * the 129th ready await of one poll is not polled: the task goes to the end of the queue first.
 * On a plain thread it returns to weft_await(), which checks deadline and cancellation.
 */
#include <weft/future.h>

#include "base/assert.h"
#include "sched/await.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

/* weft_co.flags: these bits, and above them, for a stackless function that is awaited as a
 * future, the shield depth at its first poll. */
enum {
    CO_CANCELLED = 1,
    CO_STARTED = 2,
    CO_SHIELD_SHIFT = 2,
};

/* A shield defers the cancellation of the task. Against a cancel of the future (by a deadline
 * or a select) it protects the stackless function only if that function entered the shield
 * itself. */
static bool must_cancel(const weft_co *co, const struct wf_task *task)
{
    /* relaxed: a flag; if it is set later, the task is polled again. */
    uint64_t state = wf_load_relaxed(&task->state);
    uint64_t shield = wf_state_shield(state);
    if ((co->flags & CO_CANCELLED) != 0 && shield <= co->flags >> CO_SHIELD_SHIFT) {
        return true;
    }
    return shield == 0 && (state & WF_STATE_CANCELLED) != 0;
}

/* Returns the budget of this poll: that of the worker, or of the plain thread that awaits. */
static uint32_t *budget_of(struct wf_worker *worker)
{
    return worker != NULL ? &worker->budget : &wf_thread_known()->budget;
}

/* Makes the task, whose budget is used up, be polled again, behind others. */
static int give_way(struct wf_worker *worker, struct wf_task *task)
{
    if (worker != NULL) {
        wf_counter_add(&worker->counters.budget_yields, 1);
    }
    wf_task_wake_ref(task);
    return WEFT_PENDING;
}

/* In a canceled task: starts an operation that ends something, such as a scope, and cancels it. */
static int poll_and_cancel(weft_co *co, weft_future *future)
{
    bool is_pending = (future->ops->flags & WF_FUTURE_CANCELS_FIRST) != 0;
    int result = is_pending ? WEFT_PENDING : future->ops->poll(future);
    if (result == WEFT_PENDING && future->ops->cancel(future)) {
        result = future->ops->poll(future);
    }
    co->waiting = result == WEFT_PENDING ? future : NULL;
    return result;
}

int weft_await_poll(weft_co *co, weft_future *future)
{
    struct wf_task *task = wf_thread_waiter();
    struct wf_worker *worker = wf_worker_current();
    uint32_t *budget = budget_of(worker);
    if (co->waiting == NULL) {
        if (must_cancel(co, task)) {
            bool starts = (future->ops->flags & WEFT_FUTURE_ALWAYS_STARTS) != 0;
            return starts ? poll_and_cancel(co, future) : WEFT_ECANCELED;
        }
        if (*budget == 0) {
            return give_way(worker, task);
        }
    }
    int result = future->ops->poll(future);
    if (result == WEFT_PENDING) {
        co->waiting = future;
        return result;
    }
    co->waiting = NULL;
    *budget -= *budget > 0;
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

/* Runs the function until it waits, yields or ends. */
static int co_advance(weft_co_future *self)
{
    if ((self->co.flags & CO_STARTED) == 0) {
        uint64_t state = wf_task_state(wf_thread_waiter());
        self->co.flags |= CO_STARTED | (uint32_t)wf_state_shield(state) << CO_SHIELD_SHIFT;
    }
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

/* Cancels the future that the function awaits, unless a shield defers that, then runs the
 * function to its end. A function that returns WEFT_PENDING without awaiting anything has seen
 * the cancellation, and is ended. */
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
