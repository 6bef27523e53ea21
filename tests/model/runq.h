/* SPDX-License-Identifier: MIT */
/*
 * runq.h - the scheduler of the models of tasks: a run queue with one place, and
 * workers that take from it and sleep while it is empty.
 *
 * One task, so that a second one in the place is the same task, queued twice. The
 * queue writes and reads the task's link, as the real ones do. It
 * releases and acquires as they do.
 */
#ifndef RUNQ_H
#define RUNQ_H

#include <weft/future.h>

#include "mc.h"
#include "sched/task.h"
#include "sched/worker.h"

enum {
    RUNQ_EMPTY,
    RUNQ_TAKEN,
};

static _Atomic(uint32_t) runq_place;
static struct wf_task *runq_task; /* in the place */
static _Atomic(bool) runq_is_over;
static uint64_t runq_state; /* as the poll began */

static inline void runq_push(struct wf_task *task)
{
    task->node.next = NULL;
    runq_task = task;
    mc_assert(wf_xchg_release(&runq_place, (uint32_t)RUNQ_TAKEN) == RUNQ_EMPTY);
}

/* Returns NULL when the task has completed. */
static inline struct wf_task *runq_take(void)
{
    mc_await_exchange(&runq_place, RUNQ_TAKEN, RUNQ_EMPTY);
    if (wf_load_acquire(&runq_is_over)) {
        return NULL;
    }
    struct wf_task *task = runq_task;
    mc_assert(task->node.next == NULL);
    return task;
}

/* For the other workers, too. */
static inline void runq_end(void)
{
    wf_store_release(&runq_is_over, true);
    (void)wf_xchg_release(&runq_place, (uint32_t)RUNQ_TAKEN);
}

/* Polls a task as wf_worker_run() does. Returns true if it has completed. */
static inline bool runq_run(struct wf_task *task)
{
    runq_state = wf_task_begin(task);
    int result = task->ops->poll(task);
    if (result == WEFT_YIELDED) {
        wf_task_mark_queued(task);
        runq_push(task);
    } else if (result != WEFT_PENDING) {
        wf_task_complete(task, result);
        return true;
    } else if (wf_state_pend(&task->state) == WF_STEP_SCHEDULE) {
        runq_push(task);
    }
    return false;
}

/* One of several workers, until the task has completed. */
static inline void runq_worker(void *arg)
{
    (void)arg;
    struct wf_task *task = runq_take();
    while (task != NULL && !runq_run(task)) {
        task = runq_take();
    }
    runq_end();
}

#endif
