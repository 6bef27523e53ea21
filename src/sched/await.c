/* SPDX-License-Identifier: MIT */
/*
 * await.c - awaiting a future with a stack: on a fiber, or on a plain thread (thread.c). Every
 * call that waits is built on this.
 *
 * A fiber polls the future and, while that is pending, suspends until it is woken. When it is
 * canceled, or its deadline has passed (an alarm wakes it, driver.h), it cancels the future and
 * awaits the end of that. The faster side decides the result, and when the call returns, no
 * other thread uses anything in its frame.
 *
 * Budget and cancellation. Every awaiting call starts with wf_await_enter(), even if its object
 * is ready: a fiber whose calls are always ready yields before the 129th of one poll, as in
 * future.c, and a canceled fiber gets WEFT_ECANCELED. Calls that cannot be canceled start with
 * wf_await_spend().
 */
#include "sched/await.h"

#include <sched.h>

#include <weft/fiber.h>
#include <weft/future.h>

#include "base/assert.h"
#include "base/callout.h"
#include "base/clock.h"
#include "sched/driver.h"
#include "sched/fiber.h"
#include "sched/heap.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"

WF_TLS_DEFINE(int64_t, wf_tls_deadline);

#ifdef WF_DEBUG
void (*wf_await_hook)(weft_time *deadline);
#endif

static int poll_future(struct wf_fiber *self, weft_future *future)
{
    self->polling = true;
    WF_CALLOUT_BEGIN();
    int result = future->ops->poll(future);
    WF_CALLOUT_END();
    self->polling = false;
    return result;
}

static bool cancel_future(struct wf_fiber *self, weft_future *future)
{
    self->polling = true;
    WF_CALLOUT_BEGIN();
    bool ended = future->ops->cancel(future);
    WF_CALLOUT_END();
    self->polling = false;
    return ended;
}

/* Cancels the future and awaits the end of that. */
static int await_cancelled(struct wf_fiber *self, weft_future *future)
{
    while (!cancel_future(self, future)) {
        wf_fiber_suspend(self, wf_worker_current());
    }
    return poll_future(self, future);
}

/* Polls the future after a wake-up, or cancels it. */
static int look_again(struct wf_fiber *self, weft_future *future, bool late)
{
    bool stop = late || wf_await_must_cancel(self);
    return stop ? await_cancelled(self, future) : poll_future(self, future);
}

int wf_await_woken(struct wf_fiber *self, weft_future *future)
{
    int result;
    while ((result = look_again(self, future, false)) == WEFT_PENDING) {
        wf_await_point(NULL);
        wf_fiber_suspend(self, wf_worker_current());
    }
    return result;
}

/* Waits for the result of a pending future, or for the deadline. */
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
            wf_await_point(NULL);
            wf_fiber_suspend(self, wf_worker_current());
            late = timers->has_fired(&alarm);
        }
        result = look_again(self, future, late);
    }
    if (armed) {
        timers->disarm(&alarm);
    }
    return late && result == WEFT_ECANCELED && !wf_await_must_cancel(self) ? WEFT_ETIMEDOUT
                                                                           : result;
}

/* Inlined: a debugger identifies the waiting call by its frame. */
static inline __attribute__((always_inline)) int await_pending(struct wf_fiber *self,
                                                               struct wf_worker *worker,
                                                               weft_future *future,
                                                               weft_time deadline)
{
    if (deadline != WEFT_NEVER) {
        return await_until(self, future, deadline);
    }
    wf_await_point(NULL);
    wf_fiber_suspend(self, worker);
    return wf_await_woken(self, future);
}

/* On a worker: returns the calling fiber. Aborts if it cannot be suspended. */
static struct wf_fiber *must_suspend(const struct wf_worker *worker, const char *call,
                                     const char *instead)
{
    struct wf_fiber *self = wf_await_fiber(worker, call, instead);
    if (wf_unlikely(self->polling)) {
        wf_fatal("%s: called from the poll of a future that is being awaited; "
                 "poll the inner future instead",
                 call);
    }
    return self;
}

/* Takes one from the poll budget; yields first if none is left. */
static void spend(struct wf_fiber *self, struct wf_worker *worker)
{
    if (wf_unlikely(worker->budget == 0)) {
        wf_counter_add(&worker->counters.budget_yields, 1);
        wf_fiber_yield(self, worker);
        worker = wf_worker_current();
    }
    worker->budget--;
}

int wf_await_enter_slowly(const char *call, const char *instead)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker == NULL) {
        return wf_thread_enter(call);
    }
    struct wf_fiber *self = must_suspend(worker, call, instead);
    if (wf_await_must_cancel(self)) {
        return WEFT_ECANCELED;
    }
    spend(self, worker);
    return wf_await_must_cancel(self) ? WEFT_ECANCELED : 0;
}

int wf_await_begin(weft_time *deadline, const char *call, const char *instead)
{
    return wf_await_enter(deadline, call, instead);
}

void wf_await_spend_slowly(const char *call, const char *instead)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        spend(must_suspend(worker, call, instead), worker);
    }
}

int wf_await_pending(struct wf_fiber *self, weft_future *future, weft_time deadline)
{
    return await_pending(self, wf_worker_current(), future, deadline);
}

void wf_await_refuse(const char *call, const char *instead)
{
    if (wf_worker_current()->shell != NULL) {
        /* The poll has forked, so a stackless task probably wants to wait. */
        wf_fatal("%s: called on a worker outside of a fiber: in the poll of a stackless task, or "
                 "in a parallel function that the poll runs itself; %s, or call the algorithm on a "
                 "fiber",
                 call, instead);
    }
    wf_fatal("%s: called on a worker outside of a fiber, which would block it; %s", call, instead);
}

void wf_await_must_suspend(const char *call, const char *instead)
{
    const struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        (void)must_suspend(worker, call, instead);
    } else {
        (void)wf_thread_enter(call);
    }
}

/* In a canceled task: starts an operation that ends something, such as a scope, and cancels it. */
static int await_in_canceled(weft_future *future)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker == NULL) {
        return wf_thread_await(future, WEFT_NEVER);
    }
    struct wf_fiber *self = wf_fiber_of(worker->current);
    int result = poll_future(self, future);
    return result != WEFT_PENDING ? result : await_cancelled(self, future);
}

/* Inlined, as above. */
static inline __attribute__((always_inline)) int
await_named(weft_future *future, weft_time deadline, const char *call, const char *instead)
{
    int result = wf_await_enter(&deadline, call, instead);
    if (wf_unlikely(result != 0)) {
        bool starts = (future->ops->flags & WEFT_FUTURE_ALWAYS_STARTS) != 0;
        return starts ? await_in_canceled(future) : result;
    }
    struct wf_worker *worker = wf_worker_current();
    if (worker == NULL) {
        return wf_thread_await(future, deadline);
    }
    struct wf_fiber *self = wf_fiber_of(worker->current);
    int64_t before = wf_await_set_deadline(deadline);
    result = poll_future(self, future);
    wf_await_restore_deadline(before);
    return result != WEFT_PENDING ? result : await_pending(self, worker, future, deadline);
}

int weft_await(weft_future *future, weft_time deadline)
{
    return await_named(future, deadline, "weft_await", "use WEFT_AWAIT() in a body");
}

int wf_await(weft_future *future, weft_time deadline, const char *call, const char *instead)
{
    return await_named(future, deadline, call, instead);
}

int weft_yield(void)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker == NULL) {
        (void)sched_yield();
        return wf_thread_enter("weft_yield");
    }
    struct wf_fiber *self = must_suspend(worker, "weft_yield", "use WEFT_YIELD() in a body");
    wf_fiber_yield(self, worker);
    return wf_await_must_cancel(self) ? WEFT_ECANCELED : 0;
}
