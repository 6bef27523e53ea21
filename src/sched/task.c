/* SPDX-License-Identifier: MIT */
/*
 * task.c - waking, canceling and completing a task. The transitions of the state word and its
 * edges are in state.h; this file does what they leave to the caller.
 */
#include "sched/task.h"

#include "sched/join.h"
#include "sched/worker.h"

static void carry_out(struct wf_task *task, enum wf_step step)
{
    if (step == WF_STEP_SCHEDULE) {
        wf_task_mark_queued(task);
        task->ops->schedule(task);
    } else if (step == WF_STEP_FREE) {
        task->ops->destroy(task);
    }
}

void wf_task_wake(struct wf_task *task)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL && worker->heap == task->heap) {
        carry_out(task, wf_state_wake(&task->state, WF_STATE_REF));
        return;
    }
    /* Once the task is queued, it may run, end, and let its runtime end while this thread is
     * still in the scheduler. So this thread keeps its reference, and with it the heap and the
     * scheduler, until it has returned from there. */
    wf_task_wake_ref(task);
    wf_task_release(task);
}

void wf_task_wake_ref(struct wf_task *task)
{
    carry_out(task, wf_state_wake(&task->state, 0));
}

void wf_task_cancel(struct wf_task *task)
{
    enum wf_step step = wf_state_cancel(&task->state);
    if (step == WF_STEP_TOLD && task->ops->cancelled != NULL) {
        task->ops->cancelled(task);
    }
    carry_out(task, step);
}

void wf_task_complete(struct wf_task *task, int result)
{
    task->result = result;
    uint64_t old = wf_state_complete(&task->state);
    if ((old & WF_STATE_JOIN_INTEREST) != 0) {
        wf_join_answer(task);
        wf_task_release(task);
    } else if (wf_state_refs(old) == 1) {
        task->ops->destroy(task);
    }
}
