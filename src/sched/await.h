/* SPDX-License-Identifier: MIT */
/*
 * await.h - who may wait, and what every wait of a fiber begins and ends with.
 */
#ifndef WF_SCHED_AWAIT_H
#define WF_SCHED_AWAIT_H

#include <stdbool.h>

#include <weft/future.h>

#include "base/assert.h"
#include "sched/fiber.h"
#include "sched/worker.h"

#ifdef WF_DEBUG
/* For tests: is called where a call that may wait begins, and may change the deadline; and again,
 * with NULL, where a fiber has arranged to be woken and is about to be suspended. */
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

/* On a worker: the fiber that calls. Aborts where nothing can be suspended. */
static inline struct wf_fiber *wf_await_fiber(const struct wf_worker *worker, const char *call,
                                              const char *instead)
{
    struct wf_fiber *self = wf_fiber_of(worker->current);
    if (wf_unlikely(self == NULL)) {
        wf_await_refuse(call, instead);
    }
    return self;
}

/* Any thread: aborts where nothing can be suspended, on a worker outside of a fiber. */
void wf_await_must_suspend(const char *call, const char *instead);

static inline bool wf_await_must_cancel(const struct wf_fiber *self)
{
    /* relaxed: a flag; if it is set meanwhile, the fiber is woken. */
    return wf_state_must_cancel(wf_load_relaxed(&self->task.state));
}

/* On this fiber: may it have, without weft_await(), a result that is ready? Not if it is
 * cancelled or has had too many in this poll. Who takes one counts it. */
static inline bool wf_await_may_take(const struct wf_fiber *self, const struct wf_worker *worker)
{
    return !self->polling && worker->budget > 0 && !wf_await_must_cancel(self);
}

/* On this fiber, whose future is pending, and will wake it: waits for its result. */
int wf_await_pending(struct wf_fiber *self, weft_future *future, weft_time deadline);

/* On this fiber, which was suspended for a future and is back: awaits its result. */
int wf_await_woken(struct wf_fiber *self, weft_future *future);

#endif
