/* SPDX-License-Identifier: MIT */
/*
 * await.h - start and end of every wait: checks, budget, cancellation and deadline.
 */
#ifndef WF_SCHED_AWAIT_H
#define WF_SCHED_AWAIT_H

#include <stdbool.h>

#include <weft/future.h>

#include "base/assert.h"
#include "base/clock.h"
#include "sched/fiber.h"
#include "sched/worker.h"

/* A flag of weft_future_ops: after a cancel that has ended the future, one poll resets it. So
 * the caller of cancel polls once even if it does not need the result. */
#define WF_FUTURE_RENEWS (1u << 31)

#ifdef WF_DEBUG
/* For tests: called at the start of a call that may wait, and may change the deadline. Called
 * again, with NULL, when a fiber has arranged to be woken and is about to be suspended. */
extern void (*wf_await_hook)(weft_time *deadline);
#endif

static inline void wf_await_point(weft_time *deadline)
{
#ifdef WF_DEBUG
    if (wf_await_hook != NULL) {
        wf_await_hook(deadline);
    }
#else
    (void)deadline;
#endif
}

_Noreturn void wf_await_refuse(const char *call, const char *instead) __attribute__((cold));

/* On a worker: returns the calling fiber. Aborts if there is no stack to suspend. */
static inline struct wf_fiber *wf_await_fiber(const struct wf_worker *worker, const char *call,
                                              const char *instead)
{
    struct wf_fiber *self = wf_fiber_of(worker->current);
    if (wf_unlikely(self == NULL)) {
        wf_await_refuse(call, instead);
    }
    return self;
}

/* Any thread: aborts if the caller cannot be suspended: on a worker outside of a fiber, and in
 * the poll of a future that is being awaited. */
void wf_await_must_suspend(const char *call, const char *instead);

static inline bool wf_await_must_cancel(const struct wf_fiber *self)
{
    /* relaxed: a flag; if it is set later, the fiber is woken. */
    return wf_state_must_cancel(wf_load_relaxed(&self->task.state));
}

/* On this fiber: returns whether a call may return a ready result without further checks. It
 * may not if the fiber is canceled or its poll budget is used up. The caller takes one from the
 * budget. */
static inline bool wf_await_may_take(const struct wf_fiber *self, const struct wf_worker *worker)
{
    return !self->polling && worker->budget > 0 && !wf_await_must_cancel(self);
}

/* Slow paths of wf_await_enter() and wf_await_spend(). */
int wf_await_enter_slowly(const char *call, const char *instead);
void wf_await_spend_slowly(const char *call, const char *instead);

/* The fast path of wf_await_enter(). Returns false if the slow one must follow. */
static inline bool wf_await_enter_quickly(weft_time *deadline)
{
    struct wf_worker *worker = wf_worker_current();
    if (wf_unlikely(worker == NULL)) {
        return false;
    }
    wf_await_point(deadline);
    const struct wf_fiber *self = wf_fiber_of(worker->current);
    if (wf_unlikely(self == NULL || !wf_await_may_take(self, worker))) {
        return false;
    }
    worker->budget--;
    return true;
}

/*
 * The start of every awaiting call, whether its object is ready or not. Returns 0, or
 * WEFT_ECANCELED if the calling task is canceled. Takes one from the poll budget; yields first if
 * none is left, so that the caller yields before it acquires anything. Aborts, naming the call,
 * where no stack can be suspended. The deadline is for tests, see wf_await_hook.
 */
static inline int wf_await_enter(weft_time *deadline, const char *call, const char *instead)
{
    return wf_likely(wf_await_enter_quickly(deadline)) ? 0 : wf_await_enter_slowly(call, instead);
}

/* Same as wf_await_enter(), not inlined. */
int wf_await_begin(weft_time *deadline, const char *call, const char *instead);

/* Same as wf_await_enter(), for calls that cannot be canceled: only takes from the budget. */
static inline void wf_await_spend(const char *call, const char *instead)
{
    struct wf_worker *worker = wf_worker_current();
    if (wf_likely(worker != NULL)) {
        const struct wf_fiber *self = wf_fiber_of(worker->current);
        if (wf_likely(self != NULL && !self->polling && worker->budget > 0)) {
            worker->budget--;
            return;
        }
    }
    wf_await_spend_slowly(call, instead);
}

/* Deadline of the await whose future is being polled on this thread; 0 if there is none. */
WF_TLS_DECLARE(int64_t, wf_tls_deadline);

/* Around the first poll of a future: sets its deadline. Returns the value to restore afterwards. */
static inline int64_t wf_await_set_deadline(weft_time deadline)
{
    int64_t before = WF_TLS_LOAD(wf_tls_deadline);
    int64_t own = deadline == WEFT_NEVER ? 0 : deadline != 0 ? deadline : -1;
    bool is_sooner = own != 0 && (before == 0 || own < before);
    WF_TLS_STORE(wf_tls_deadline, is_sooner ? own : before);
    return before;
}

static inline void wf_await_restore_deadline(int64_t before)
{
    WF_TLS_STORE(wf_tls_deadline, before);
}

/* In a poll: returns whether the deadline has passed. An operation that waits for an event then
 * checks whether the event has already come: a ready object wins over a deadline. */
static inline bool wf_await_is_late(void)
{
    int64_t deadline = WF_TLS_LOAD(wf_tls_deadline);
    return deadline != 0 && wf_clock_now() >= deadline;
}

/* Same as weft_await(), for the named call, which its error messages mention. */
int wf_await(weft_future *future, weft_time deadline, const char *call, const char *instead);

/* Used with WEFT_FUTURE_ALWAYS_STARTS: in a canceled stackless task the future is canceled
 * before its first poll, so that its result reports the cancellation even if it has nothing to
 * wait for. */
#define WF_FUTURE_CANCELS_FIRST 2u

/* On this fiber: waits for the result of a future that is pending and will wake the fiber. */
int wf_await_pending(struct wf_fiber *self, weft_future *future, weft_time deadline);

/* On this fiber, which was suspended for a future and has been resumed: awaits the future's
 * result. */
int wf_await_woken(struct wf_fiber *self, weft_future *future);

#endif
