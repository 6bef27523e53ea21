/* SPDX-License-Identifier: MIT */
/*
 * spawn.h - making tasks.
 */
#ifndef WF_SCHED_SPAWN_H
#define WF_SCHED_SPAWN_H

#include <weft/task.h>

struct wf_sched;
struct wf_task;
struct wf_task_ops;
struct wf_worker;

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

/* The state word of a task that is about to be queued. */
uint64_t wf_spawn_state(bool detached);

/*
 * Any thread: may a task be spawned here? 0 or WEFT_ESHUTDOWN. *worker is set to
 * this scheduler's worker that this thread is, or NULL.
 */
int wf_spawn_admit(struct wf_sched *sched, struct wf_worker **worker);

/* Is there such a worker, as weft_spec.pinned means it? */
bool wf_spawn_can_pin(const struct wf_sched *sched, uint32_t pinned);

/*
 * Queues a task that is whole but for its pin and its state word. On failure it is
 * completed with the error, never polled, and gone for the caller.
 */
int wf_spawn_start(struct wf_sched *sched, struct wf_worker *worker, struct wf_task *task,
                   uint32_t pinned, struct wf_task **out);

/* Gives the memory of a task back: the destroy operation of tasks on a heap. */
void wf_spawn_free(struct wf_task *task);

#endif
