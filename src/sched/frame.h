/* SPDX-License-Identifier: MIT */
/*
 * frame.h - objects in the frame or the state of a task, which must not outlive it.
 *
 * A task counts its open objects on its stack, or in its copy of the state. If it ends while
 * some are open, other tasks would use freed memory, so it aborts with a message. Objects
 * elsewhere, such as on the heap, may outlive the task that has opened them.
 */
#ifndef WF_SCHED_FRAME_H
#define WF_SCHED_FRAME_H

#include "base/assert.h"
#include "base/atomic.h"
#include "sched/task.h"

/* Counts an object that the caller starts to use. Returns the counter, or NULL if the object is
 * not in memory that ends with the calling task. */
_Atomic(uint32_t) *wf_frame_begin(const void *object);

/* Uncounts an object that was ended, by any task. The counter is what wf_frame_begin() returned. */
void wf_frame_end(_Atomic(uint32_t) *counter);

/* Aborts, naming the task, if it returns while the counter is not 0. */
static inline void wf_frame_must_be_empty(const _Atomic(uint32_t) *counter,
                                          const struct wf_task *task)
{
    /* relaxed: the task has ended its objects itself, or has waited for the task that did. */
    if (wf_unlikely(wf_load_relaxed(counter) != 0)) {
        const char *kind = task->ops->poll != NULL ? task->ops->kind : "blocking job";
        wf_fatal("%s '%s' (#%llu) returned with a scope or a join set that was not ended; call "
                 "weft_scope_end() or weft_join_set_end() in the function that has begun it",
                 kind, task->name != NULL ? task->name : "", (unsigned long long)task->id);
    }
}

#endif
