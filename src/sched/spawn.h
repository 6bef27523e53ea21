/* SPDX-License-Identifier: MIT */
/*
 * spawn.h - creating tasks.
 */
#ifndef WF_SCHED_SPAWN_H
#define WF_SCHED_SPAWN_H

#include <weft/task.h>

#include "base/fork.h"
#include "sched/sched.h"
#include "sched/task.h"
#include "sched/worker.h"

/*
 * Any thread: spawns a task on the scheduler. A NULL out detaches it. Returns 0, -EINVAL,
 * -ENOMEM, WEFT_ESHUTDOWN, or -EAGAIN from outside if the inject queue is full.
 */
int wf_spawn(struct wf_sched *sched, struct wf_task **out, const weft_spec *spec);

/* A plain thread: same as wf_spawn(), but waits for space in the inject queue. Also returns
 * WEFT_ETIMEDOUT. */
int wf_spawn_wait(struct wf_sched *sched, struct wf_task **out, const weft_spec *spec,
                  weft_time deadline);

/*
 * Any thread: allocates a task of size bytes from the given slab (wf_worker_slab()) and fills
 * its header. The caller stores the state word, with release, as the last step.
 */
struct wf_task *wf_spawn_alloc(struct wf_sched *sched, unsigned slab, size_t size,
                               const struct wf_task_ops *ops, const char *name);

/* Fills the header of a task, except its pin and its state word. The id must be unique. */
static inline void wf_spawn_fill(struct wf_task *task, const struct wf_task_ops *ops,
                                 const char *name, uint64_t id)
{
    task->ops = ops;
    task->joiner = NULL;
    task->id = id;
    task->name = name;
    task->pin = 0;
    wf_task_mark_queued(task);
}

/* Returns a new task id. Each worker uses every n-th number, so ids are unique. */
static inline uint64_t wf_spawn_id(struct wf_worker *worker)
{
    return worker->ids++ * (worker->sched->options.workers + 1) + worker->index + 1;
}

/* Returns the state word of a task that is about to be queued. */
static inline uint64_t wf_spawn_state(bool detached)
{
    return WF_STATE_RUNNING | (detached ? WF_STATE_DETACHED | WF_STATE_REF : 2 * WF_STATE_REF);
}

/* On a worker: returns whether a task may be spawned here. */
static inline bool wf_spawn_is_open(const struct wf_worker *worker)
{
    wf_fork_check(worker->sched->fork_number, "weft_spawn");
    return !worker->closing && wf_drain_phase(&worker->sched->drain) == WF_PHASE_OPEN;
}

/*
 * Any thread: returns 0 if a task may be spawned here, or WEFT_ESHUTDOWN. Sets *worker to the
 * worker of this scheduler that runs on this thread, or NULL.
 */
int wf_spawn_admit(struct wf_sched *sched, struct wf_worker **worker);

/* On a worker: counts and publishes an initialized task. The caller queues it. */
static inline void wf_spawn_publish(struct wf_worker *worker, struct wf_task *task, bool detached)
{
    wf_counter_add(&worker->counters.spawned, 1);
    /* release [H2]: the task is initialized. */
    wf_store_release(&task->state, wf_spawn_state(detached));
}

/* Returns the counter of open objects in the state of a stackless task (frame.h), or NULL if
 * the object is not in the state, or the task is of another kind. */
_Atomic(uint32_t) *wf_spawn_counter(struct wf_task *task, const void *object);

/* Returns the function of a stackless task, or NULL for another kind of task. */
weft_body_fn wf_spawn_body(const struct wf_task *task);

/* Returns whether such a worker exists, with weft_spec.pinned as the argument. */
static inline bool wf_spawn_can_pin(const struct wf_sched *sched, uint32_t pinned)
{
    return pinned == WEFT_PINNED || pinned <= sched->options.workers;
}

/* Pins a task that is not published yet. worker is the current worker, or NULL. */
void wf_spawn_pin(struct wf_sched *sched, struct wf_worker *worker, struct wf_task *task,
                  uint32_t pinned);

/*
 * Queues a task that is initialized except for its pin and its state word. On failure the task
 * completes with the error, is never polled, and is gone for the caller.
 */
int wf_spawn_start(struct wf_sched *sched, struct wf_worker *worker, struct wf_task *task,
                   uint32_t pinned, struct wf_task **out);

/* Frees the memory of a task: the destroy operation of tasks on a heap. */
void wf_spawn_free(struct wf_task *task);

#endif
