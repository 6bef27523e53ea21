/* SPDX-License-Identifier: MIT */
/*
 * drain.h - how a scheduler ends: when the last task is over.
 */
#ifndef WF_SCHED_DRAIN_H
#define WF_SCHED_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

enum wf_phase {
    WF_PHASE_OPEN,
    WF_PHASE_CLOSING, /* no newcomers; tasks are cancelled and run to their end */
    WF_PHASE_STOPPED, /* no task is left; workers leave */
};

struct wf_drain {
    _Atomic(uint32_t) phase;
    _Atomic(uint32_t) acknowledged;                /* workers that know */
    _Atomic(uint32_t) is_over;                     /* a futex: the debt is 0 */
    _Alignas(WF_CACHE_LINE) _Atomic(int64_t) debt; /* see drain.c */
};

struct wf_sched;
struct wf_worker;

/* The stopping thread, once each, in this order: refuses new tasks and cancels all; waits until
 * the last task has ended; tells the workers to leave. */
void wf_drain_close(struct wf_sched *sched);
void wf_drain_await(struct wf_sched *sched);
void wf_drain_stop(struct wf_sched *sched);

/* Each worker, once, when it first sees CLOSING. */
void wf_drain_acknowledge(struct wf_worker *worker);

/* A worker that has acknowledged: one of its tasks is over; or, for one that is not, there
 * is another one. */
void wf_drain_task_done(struct wf_worker *worker);
void wf_drain_task_added(struct wf_worker *worker);

static inline enum wf_phase wf_drain_phase(const struct wf_drain *drain)
{
    /* acquire [D1]: what the closer did before is seen. */
    return (enum wf_phase)wf_load_acquire(&drain->phase);
}

#endif
