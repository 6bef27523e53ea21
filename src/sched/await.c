/* SPDX-License-Identifier: MIT */
/*
 * await.c - waiting for a future where there is a stack: on a fiber, or on a plain
 * thread (thread.c). Every call that waits is built on this one.
 *
 * A fiber polls the future and, while that is pending, suspends until it is woken.
 * When it is cancelled, or its deadline has passed (driver.h, an alarm wakes it),
 * it cancels the future and awaits the end of that: what was faster decides, and
 * when the call returns nobody holds anything of its frame.
 *
 * Budget. As in future.c, a fiber whose awaits are always ready yields before the
 * 129th of one poll.
 */
#include "sched/await.h"

#include <sched.h>

#include <weft/fiber.h>
#include <weft/future.h>

#include "base/assert.h"
#include "base/clock.h"
#include "sched/driver.h"
#include "sched/fiber.h"
#include "sched/heap.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"

static bool must_cancel(const struct wf_fiber *self)
{
    /* relaxed: a flag; if it is set meanwhile, the fiber is woken. */
    return wf_state_must_cancel(wf_load_relaxed(&self->task.state));
}

static int poll_future(struct wf_fiber *self, weft_future *future)
{
    self->polling = true;
    int result = future->ops->poll(future);
    self->polling = false;
    return result;
}

static bool cancel_future(struct wf_fiber *self, weft_future *future)
{
    self->polling = true;
    bool ended = future->ops->cancel(future);
    self->polling = false;
    return ended;
}

/* Cancels the future and awaits the end of that. */
static int await_cancelled(struct wf_fiber *self, weft_future *future)
{
    while (!cancel_future(self, future)) {
        wf_fiber_suspend(self);
    }
    return poll_future(self, future);
}

/* The future is pending: waits for its result, without a deadline. */
static int await_pending(struct wf_fiber *self, weft_future *future)
{
    int result = WEFT_PENDING;
    while (result == WEFT_PENDING) {
        wf_fiber_suspend(self);
        result = must_cancel(self) ? await_cancelled(self, future) : poll_future(self, future);
    }
    return result;
}

/* The same with one. */
static int await_until(struct wf_fiber *self, weft_future *future, weft_time deadline)
{
    struct wf_sched *sched = self->task.heap->sched;
    const struct wf_timer_ops *timers = sched->timer_ops;
    struct wf_alarm alarm;
    bool late = wf_clock_now() >= deadline;
    if (!late) {
        timers->arm(sched, &alarm, &self->task, deadline);
    }
    bool armed = !late;
    int result = WEFT_PENDING;
    while (result == WEFT_PENDING) {
        if (!late) {
            wf_fiber_suspend(self);
            late = timers->has_fired(&alarm);
        }
        bool stop = late || must_cancel(self);
        result = stop ? await_cancelled(self, future) : poll_future(self, future);
    }
    if (armed) {
        timers->disarm(&alarm);
    }
    return late && result == WEFT_ECANCELED && !must_cancel(self) ? WEFT_ETIMEDOUT : result;
}

static int fiber_await(struct wf_fiber *self, weft_future *future, weft_time deadline)
{
    if (wf_unlikely(self->polling)) {
        wf_fatal("weft_await: called from the poll of a future that is being awaited; "
                 "poll the inner future instead");
    }
    if (must_cancel(self)) {
        return WEFT_ECANCELED;
    }
    struct wf_worker *worker = wf_worker_current();
    if (wf_unlikely(worker->budget == 0)) {
        wf_counter_add(&worker->counters.budget_yields, 1);
        wf_fiber_yield(self);
        worker = wf_worker_current();
    }
    worker->budget--;
    int result = poll_future(self, future);
    if (result != WEFT_PENDING) {
        return result;
    }
    return deadline == WEFT_NEVER ? await_pending(self, future)
                                  : await_until(self, future, deadline);
}

void wf_await_must_suspend(const char *call, const char *instead)
{
    if (wf_unlikely(wf_worker_current() != NULL && wf_fiber_current() == NULL)) {
        wf_fatal("%s: called on a worker outside of a fiber, which would block it; %s", call,
                 instead);
    }
}

int weft_await(weft_future *future, weft_time deadline)
{
    if (wf_worker_current() == NULL) {
        return wf_thread_await(future, deadline);
    }
    wf_await_must_suspend("weft_await", "use WEFT_AWAIT() in a body");
    return fiber_await(wf_fiber_current(), future, deadline);
}

int weft_yield(void)
{
    if (wf_worker_current() == NULL) {
        (void)sched_yield();
        return 0;
    }
    wf_await_must_suspend("weft_yield", "use WEFT_YIELD() in a body");
    struct wf_fiber *self = wf_fiber_current();
    wf_fiber_yield(self);
    return must_cancel(self) ? WEFT_ECANCELED : 0;
}
