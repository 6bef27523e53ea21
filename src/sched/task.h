/* SPDX-License-Identifier: MIT */
/*
 * task.h - task header: the common part of everything that the scheduler runs.
 *
 * The kinds of tasks differ in their poll and in where they go when they are woken: a stackless
 * task into a run queue, a blocking job to the pool, a plain thread's task to its futex.
 */
#ifndef WF_SCHED_TASK_H
#define WF_SCHED_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include <weft/task.h>

#include "base/list.h"
#include "queue/node.h"
#include "sched/state.h"

struct wf_heap;
struct wf_task;
struct wf_wait_node;

struct wf_task_ops {
    const char *kind;
    /* Runs the task. Returns a result, WEFT_PENDING or WEFT_YIELDED. */
    int (*poll)(struct wf_task *task);
    /* Queues a task that was just woken. Any thread. */
    void (*schedule)(struct wf_task *task);
    /* Handles a cancellation of the task. Any thread. NULL if the next poll does that. */
    void (*cancelled)(struct wf_task *task);
    /* Frees the task after the last reference is gone. Any thread. */
    void (*destroy)(struct wf_task *task);
};

struct wf_task {
    _Atomic(uint64_t) state;       /* any thread; see state.h */
    struct wf_qnode node;          /* link of the queue that it is in */
    const struct wf_task_ops *ops; /* constant */
    struct wf_heap *heap;          /* constant: its memory and its scheduler */
    struct wf_wait_node *joiner;   /* under the join lock of the heap */
    uint64_t id;                   /* constant */
    const char *name;              /* constant; may be NULL */
    int32_t result;                /* written by the poller until COMPLETE, then read by all.
                                    * WEFT_YIELDED: waits in a queue */
    uint16_t pin;                  /* constant: worker index + 1, or 0 */
    uint16_t home;                 /* constant: see heap.c */
};

_Static_assert(sizeof(struct wf_task) <= 64, "the task header must stay within 64 bytes");

static inline struct wf_task *wf_task_of(struct wf_qnode *node)
{
    return wf_container_of(node, struct wf_task, node);
}

static inline uint64_t wf_task_state(const struct wf_task *task)
{
    /* acquire [T2]: if the task is complete, its result is visible. */
    return wf_load_acquire(&task->state);
}

static inline void wf_task_retain(struct wf_task *task)
{
    wf_state_retain(&task->state);
}

static inline void wf_task_release(struct wf_task *task)
{
    if (wf_state_refs(wf_state_release(&task->state)) == 1) {
        task->ops->destroy(task);
    }
}

/* Aborts, naming the call, if the handle was ended before and the memory of its task is free.
 * Freed tasks stay the runtime's memory. The misuse is not detected after that memory was
 * reused, after the runtime was destroyed, or for a task of more than 1024 bytes. */
static inline void wf_task_check_handle(uint64_t state, const char *call)
{
    if (wf_unlikely(wf_state_refs(state) == 0)) {
        wf_fatal("%s: this handle was joined or detached before; each handle ends once", call);
    }
}

/* Same as wf_task_check_handle(), for a task that has not ended: it holds one reference itself,
 * and its handle another. */
static inline void wf_task_check_running(uint64_t state, const char *call)
{
    if (wf_unlikely(wf_state_refs(state) <= 1 && !wf_state_is_complete(state))) {
        wf_fatal("%s: this handle was joined or detached before; each handle ends once", call);
    }
}

/* Marks a task as queued, for observers. Call before queuing it. */
static inline void wf_task_mark_queued(struct wf_task *task)
{
    task->result = WEFT_YIELDED;
}

/* Begins the poll of a task taken out of its queue. Returns the state. */
static inline uint64_t wf_task_begin(struct wf_task *task)
{
    task->result = 0;
    return wf_state_begin(&task->state);
}

/* Any thread: makes the task runnable and drops the caller's reference. */
void wf_task_wake(struct wf_task *task);

/* Same as wf_task_wake(), but the caller keeps its reference. */
void wf_task_wake_ref(struct wf_task *task);

/* Any thread with a reference: cancels the task. */
void wf_task_cancel(struct wf_task *task);

/* Its poller, once: publishes the result, wakes the joiner, drops the self-reference. */
void wf_task_complete(struct wf_task *task, int result);

#endif
