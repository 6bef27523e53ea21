/* SPDX-License-Identifier: MIT */
/*
 * spawn.h - making tasks.
 */
#ifndef WF_SCHED_SPAWN_H
#define WF_SCHED_SPAWN_H

#include <weft/task.h>

#include "base/fork.h"
#include "sched/sched.h"
#include "sched/task.h"
#include "sched/worker.h"

/*
 * Any thread: spawns a task on the scheduler. out NULL detaches. 0, -EINVAL,
 * -ENOMEM, WEFT_ESHUTDOWN, or -EAGAIN from outside when the inject queue is full.
 */
int wf_spawn(struct wf_sched *sched, struct wf_task **out, const weft_spec *spec);

/* A plain thread: the same, but waits for room. Also WEFT_ETIMEDOUT. */
int wf_spawn_wait(struct wf_sched *sched, struct wf_task **out, const weft_spec *spec,
                  weft_time deadline);

/*
 * Any thread: allocates a task of size bytes from the given slab (wf_worker_slab())
 * and fills its header. The state word is not stored: the caller does that, with
 * release, as the last step.
 */
struct wf_task *wf_spawn_alloc(struct wf_sched *sched, unsigned slab, size_t size,
                               const struct wf_task_ops *ops, const char *name);

/* Fills the header of a task, all but its pin and its state word. The id is unique. */
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

/* Ids of a worker are every n-th number, so that no two are equal. */
static inline uint64_t wf_spawn_id(struct wf_worker *worker)
{
    return worker->ids++ * (worker->sched->options.workers + 1) + worker->index + 1;
}

/* The state word of a task that is about to be queued. */
static inline uint64_t wf_spawn_state(bool detached)
{
    return WF_STATE_RUNNING | (detached ? WF_STATE_DETACHED | WF_STATE_REF : 2 * WF_STATE_REF);
}

/* On a worker: may a task be spawned here? */
static inline bool wf_spawn_is_open(const struct wf_worker *worker)
{
    wf_fork_check(worker->sched->fork_number, "weft_spawn");
    return !worker->closing && wf_drain_phase(&worker->sched->drain) == WF_PHASE_OPEN;
}

/*
 * Any thread: may a task be spawned here? 0 or WEFT_ESHUTDOWN. *worker is set to
 * this scheduler's worker that this thread is, or NULL.
 */
int wf_spawn_admit(struct wf_sched *sched, struct wf_worker **worker);

/* On a worker, for a task that is whole: counts and publishes it. The caller queues it. */
static inline void wf_spawn_publish(struct wf_worker *worker, struct wf_task *task, bool detached)
{
    wf_counter_add(&worker->counters.spawned, 1);
    /* release [H2]: the task is whole. */
    wf_store_release(&task->state, wf_spawn_state(detached));
}

/* Returns the counter of open objects in the state of a stackless task (frame.h), or NULL if the
 * object is not in the state, or the task is of another kind. */
_Atomic(uint32_t) *wf_spawn_counter(struct wf_task *task, const void *object);

/* Returns the body of a stackless task, or NULL: it is another kind of task. */
weft_body_fn wf_spawn_body(const struct wf_task *task);

/* Is there such a worker, as weft_spec.pinned means it? */
static inline bool wf_spawn_can_pin(const struct wf_sched *sched, uint32_t pinned)
{
    return pinned == WEFT_PINNED || pinned <= sched->options.workers;
}

/* Pins a task that is not published yet. worker: this one, or NULL. */
void wf_spawn_pin(struct wf_sched *sched, struct wf_worker *worker, struct wf_task *task,
                  uint32_t pinned);

/*
 * Queues a task that is whole but for its pin and its state word. On failure it is
 * completed with the error, never polled, and gone for the caller.
 */
int wf_spawn_start(struct wf_sched *sched, struct wf_worker *worker, struct wf_task *task,
                   uint32_t pinned, struct wf_task **out);

/* Gives the memory of a task back: the destroy operation of tasks on a heap. */
void wf_spawn_free(struct wf_task *task);

#endif
