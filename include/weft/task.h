/* SPDX-License-Identifier: MIT */
/*
 * weft/task.h - tasks: spawn, join, cancel and shield.
 */
#ifndef WEFT_TASK_H
#define WEFT_TASK_H

#include "base.h"
#include "clock.h"
#include "future.h"
#include "runtime.h"

WEFT_EXTERN_C_BEGIN

/* A task handle: one counted reference, and the right to join the task. A handle is consumed
 * once, by a join or by weft_detach(). A call with a consumed handle aborts with a message
 * while the task's memory is free. It goes undetected after another task has reused that
 * memory. */
typedef struct weft_task weft_task;

/* Values of weft_spec.pinned. */
#define WEFT_PINNED           UINT32_MAX               /* to one worker, chosen by the runtime */
#define WEFT_PINNED_TO(index) ((uint32_t)(index) + 1u) /* to the worker with this index */

/* What to spawn. Zero fields mean: no drop function, no state, no name, not pinned. */
typedef struct weft_spec {
    weft_body_fn body;
    /* Called once when the task has ended, on the worker that ended it, also after a
     * cancellation. The state is still readable. Not called if the spawn fails. */
    void (*drop)(void *state);
    /* state_size bytes are copied into the task (zeroed if state is NULL). The copy is aligned
     * to 32 bytes and is passed to body and drop. */
    const void *state;
    size_t state_size;
    /* For dumps and counters. Not copied: use a string literal. */
    const char *name;
    /* 0: any worker may run the task. Otherwise WEFT_PINNED or WEFT_PINNED_TO(index). */
    uint32_t pinned;
} weft_spec;

/*
 * Spawns a stackless task on the current runtime.
 *
 * The task's function is called at least once, even if the task is canceled before that. It
 * sees all writes that the caller made before the spawn.
 *
 * Context: any task or blocking job, including drop functions.
 * Owns:    the caller owns *task and joins or detaches it. If task is NULL, the task is
 *          detached.
 * Errors:  -ENOMEM, WEFT_ESHUTDOWN, -EINVAL (no function, no such worker to pin to, or a
 *          state_size near SIZE_MAX); in a blocking job also -EAGAIN (the inject queue is full).
 */
WEFT_API WEFT_NODISCARD int weft_spawn(weft_task **task, const weft_spec *spec);

/*
 * Spawns a stackless task on the given runtime. Otherwise like weft_spawn().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_runtime_spawn(weft_runtime *rt, weft_task **task,
                                               const weft_spec *spec);

/*
 * Same as weft_runtime_spawn(), but waits while the inject queue is full.
 *
 * Context:  fiber or plain thread. Aborts in a stackless task, whose spawns are never refused
 *           because of a full queue.
 * Suspends: until the inject queue has space, the runtime shuts down, or the deadline passes.
 * Errors:   those of weft_runtime_spawn() except -EAGAIN; WEFT_ETIMEDOUT, WEFT_ECANCELED (the
 *           calling task is canceled, also if the queue has space).
 */
WEFT_API WEFT_NODISCARD int weft_runtime_spawn_wait(weft_runtime *rt, weft_task **task,
                                                    const weft_spec *spec, weft_time deadline);

/*
 * Runs function(arg) on a blocking-pool thread, as a task: it is joined, detached and canceled
 * like any other. Its result is that of the function. A blocking job that is canceled before it
 * starts, or is still queued at shutdown, never runs; its result is WEFT_ECANCELED.
 *
 * The thread has the signal mask of the thread that created the runtime, so a child process
 * that the job starts inherits that mask, and signal handlers may run on the thread. The job
 * must not end its thread: pthread_exit() aborts with a message.
 *
 * Context: any task or blocking job.
 * Owns:    the caller owns *task and joins or detaches it. If task is NULL, the task is
 *          detached.
 * Errors:  -ENOMEM, WEFT_ESHUTDOWN, -EINVAL (no function), -EAGAIN (the pool has no thread and
 *          the system refuses to start one).
 */
WEFT_API WEFT_NODISCARD int weft_spawn_blocking(weft_task **task, int (*function)(void *arg),
                                                void *arg);

/*
 * Same as weft_spawn_blocking(), on the given runtime.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_runtime_spawn_blocking(weft_runtime *rt, weft_task **task,
                                                        int (*function)(void *arg), void *arg);

/*
 * Waits until the task has ended and consumes the handle. Stores the task's result in *result,
 * if result is not NULL: the return value of its function, or WEFT_ECANCELED if the task was
 * canceled.
 *
 * Context:  fiber or plain thread, which sleeps. Aborts in a stackless task, which awaits a
 *           weft_join_future.
 * Suspends: until the task has ended or the deadline passes.
 * Cancel:   WEFT_ECANCELED. The caller keeps the handle.
 * Errors:   WEFT_ETIMEDOUT, WEFT_EJOINED, -ENOMEM. The caller keeps the handle.
 */
WEFT_API WEFT_NODISCARD int weft_join(weft_task *task, int *result, weft_time deadline);

/*
 * Joins the task if it has ended.
 *
 * Context: any thread.
 * Errors:  -EAGAIN (still running), WEFT_EJOINED. The caller keeps the handle.
 */
WEFT_API WEFT_NODISCARD int weft_try_join(weft_task *task, int *result);

/* A join as a future. */
typedef struct weft_join_future {
    weft_future future;
    weft_task *task; /* NULL once the task is joined */
    int *result;
    uint64_t opaque_[7];
} weft_join_future;

/*
 * Prepares a join. The future's result is 0, and the handle is consumed; or WEFT_ECANCELED (the
 * joining task was canceled) or WEFT_EJOINED, and the caller keeps the handle. result may be
 * NULL.
 *
 * Context: any thread.
 */
WEFT_API void weft_join_init(weft_join_future *future, weft_task *task, int *result);

/*
 * Consumes the handle without joining; the task keeps running. NULL is allowed.
 *
 * Context: any thread.
 */
WEFT_API void weft_detach(weft_task *task);

/*
 * Returns another handle of the task, for example to cancel or inspect it from elsewhere.
 * Consume it with weft_detach(). Only one handle of a task can be joined.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD weft_task *weft_task_retain(weft_task *task);

/*
 * Requests cancellation of the task. Its current await is canceled, and every later await
 * returns WEFT_ECANCELED; the task decides how to react. A stackless task that returns
 * WEFT_PENDING without awaiting anything is ended with WEFT_ECANCELED. Does not wait; join the
 * task to wait for its end.
 *
 * Context: any thread.
 */
WEFT_API void weft_cancel(weft_task *task);

/*
 * Returns whether the task has ended, so that a join returns immediately.
 *
 * Context: any thread.
 */
WEFT_API bool weft_task_is_done(const weft_task *task);

/*
 * Returns the task's number, unique within the runtime and never 0.
 *
 * Context: any thread.
 */
WEFT_API uint64_t weft_task_id(const weft_task *task);

/*
 * Returns the name given at the spawn, or NULL.
 *
 * Context: any thread.
 */
WEFT_API const char *weft_task_name(const weft_task *task);

/*
 * Returns the running task, or NULL on a plain thread. The reference is borrowed; call
 * weft_task_retain() to keep it.
 *
 * Context: any thread.
 */
WEFT_API weft_task *weft_task_current(void);

/*
 * Returns whether the current task is canceled and not shielded. False on a plain thread.
 *
 * Context: any thread.
 */
WEFT_API bool weft_cancelled(void);

/*
 * Defers cancellation of the current task until the matching weft_shield_leave(), for a section
 * that must not be interrupted half-way. Nests up to 255 levels.
 *
 * Context: any task or blocking job. Aborts elsewhere.
 */
WEFT_API void weft_shield_enter(void);

/*
 * Leaves the innermost shield. After the outermost one, awaits return WEFT_ECANCELED if the
 * task was canceled meanwhile.
 *
 * Context: as weft_shield_enter(). Also aborts if no shield is entered.
 */
WEFT_API void weft_shield_leave(void);

WEFT_EXTERN_C_END

#endif
