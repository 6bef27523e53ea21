/* SPDX-License-Identifier: MIT */
/*
 * drain.h - shutdown of a scheduler: waits for the last task to end.
 */
#ifndef WF_SCHED_DRAIN_H
#define WF_SCHED_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

enum wf_phase {
    WF_PHASE_OPEN,
    WF_PHASE_CLOSING, /* no new tasks; all tasks are canceled and run to their end */
    WF_PHASE_STOPPED, /* no task is left; workers exit */
};

struct wf_drain {
    _Atomic(uint32_t) phase;
    _Atomic(uint32_t) acknowledged;                /* workers that have seen CLOSING */
    _Atomic(uint32_t) is_over;                     /* a futex: no live task is left */
    _Alignas(WF_CACHE_LINE) _Atomic(int64_t) debt; /* number of live tasks, see drain.c */
};

struct wf_sched;
struct wf_task;
struct wf_worker;

/* The stopping thread, once each, in this order: refuses new tasks and cancels all; waits until
 * the last task has ended; makes the workers exit. */
void wf_drain_close(struct wf_sched *sched);
void wf_drain_await(struct wf_sched *sched);
void wf_drain_stop(struct wf_sched *sched);

/* Each worker, once, when it first sees CLOSING. */
void wf_drain_acknowledge(struct wf_worker *worker);

/* A worker that has acknowledged: one of its tasks has ended; or there is one more, needed by a
 * task that has not ended. */
void wf_drain_task_done(struct wf_worker *worker);
void wf_drain_task_added(struct wf_worker *worker);

/* Any thread, during a shutdown: cancels the task, unless it follows another one. */
void wf_drain_cancel(struct wf_task *task);

static inline enum wf_phase wf_drain_phase(const struct wf_drain *drain)
{
    /* acquire [D1]: everything the closer did before is visible. */
    return (enum wf_phase)wf_load_acquire(&drain->phase);
}

#endif
