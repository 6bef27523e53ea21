/* SPDX-License-Identifier: MIT */
/*
 * weft/task.h - spawning tasks, and what can be done with them.
 */
#ifndef WEFT_TASK_H
#define WEFT_TASK_H

#include "base.h"
#include "clock.h"
#include "future.h"
#include "runtime.h"

WEFT_EXTERN_C_BEGIN

/* A handle of a task: one counted reference, and the right to join. A handle ends once, by a join
 * or by weft_detach(). A call with a handle that has ended aborts with a sentence while the memory
 * of the task is free. It is not detected when another task has that memory. */
typedef struct weft_task weft_task;

/* Values of weft_spec.pinned. */
#define WEFT_PINNED           UINT32_MAX               /* to one worker, whichever */
#define WEFT_PINNED_TO(index) ((uint32_t)(index) + 1u) /* to this worker */

/* What to run. Zero fields mean: no drop, no state, no name, not pinned. */
typedef struct weft_spec {
    weft_body_fn body;
    /* Called once when the task has ended, on the worker that ended it; the
     * state may still be read. Also after a cancellation. Not called if the
     * spawn fails. */
    void (*drop)(void *state);
    /* state_size bytes are copied into the task (zeroed if state is NULL);
     * body and drop get the copy. It is aligned to 32 bytes. */
    const void *state;
    size_t state_size;
    /* For dumps and counters. Not copied: a string literal. */
    const char *name;
    /* 0: any worker may run it. Else WEFT_PINNED or WEFT_PINNED_TO(index). */
    uint32_t pinned;
} weft_spec;

/*
 * Spawns a task on the current runtime.
 *
 * The body is polled at least once, also if the task is cancelled before.
 * Everything that the caller wrote before is seen by the body.
 *
 * Context: a task (a drop function, too), or a blocking job.
 * Owns:    *task is the caller's: join or detach it. task NULL detaches.
 * Errors:  -ENOMEM, WEFT_ESHUTDOWN, -EINVAL (no body, or no such worker to pin
 *          to); in a blocking job also -EAGAIN: the inject queue is full.
 */
WEFT_API WEFT_NODISCARD int weft_spawn(weft_task **task, const weft_spec *spec);

/*
 * Spawns a task on the given runtime. Otherwise as weft_spawn().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_runtime_spawn(weft_runtime *rt, weft_task **task,
                                               const weft_spec *spec);

/*
 * The same, but waits while the inject queue is full.
 *
 * Context:  a fiber, or a plain thread. Aborts in a stackless task, whose spawns are
 *           never refused for that reason.
 * Suspends: until there is room, the runtime shuts down, or the deadline.
 * Errors:   as weft_runtime_spawn() without -EAGAIN, and WEFT_ETIMEDOUT.
 */
WEFT_API WEFT_NODISCARD int weft_runtime_spawn_wait(weft_runtime *rt, weft_task **task,
                                                    const weft_spec *spec, weft_time deadline);

/*
 * Runs function(arg) on a thread of the blocking pool, as a task: it is joined,
 * detached and cancelled like any other. Its result is what function returns. A
 * job that is cancelled before it starts, or still queued at shutdown, never
 * runs; its result is WEFT_ECANCELED.
 *
 * The thread has the signal mask of the thread that created the runtime, so a child
 * process that the job starts inherits it, and signal handlers may run on it. The job
 * must not end its thread: pthread_exit() aborts with a sentence.
 *
 * Context: a task, or a blocking job.
 * Owns:    *task is the caller's: join or detach it. task NULL detaches.
 * Errors:  -ENOMEM, WEFT_ESHUTDOWN, -EINVAL (no function), -EAGAIN (there is no
 *          pool thread and the system refuses to start one).
 */
WEFT_API WEFT_NODISCARD int weft_spawn_blocking(weft_task **task, int (*function)(void *arg),
                                                void *arg);

/*
 * The same on the given runtime.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_runtime_spawn_blocking(weft_runtime *rt, weft_task **task,
                                                        int (*function)(void *arg), void *arg);

/*
 * Waits until the task has ended and ends the handle. *result (if result is not
 * NULL) is what its body returned, WEFT_ECANCELED if it was cancelled.
 *
 * Context:  a fiber, or a plain thread, which sleeps. Aborts in a stackless task: await
 *           a weft_join_future.
 * Suspends: until the task has ended, or the deadline.
 * Cancel:   WEFT_ECANCELED: the handle is still yours.
 * Errors:   WEFT_ETIMEDOUT, WEFT_EJOINED, -ENOMEM: the handle is still yours.
 */
WEFT_API WEFT_NODISCARD int weft_join(weft_task *task, int *result, weft_time deadline);

/*
 * Joins if the task has ended.
 *
 * Context: any thread.
 * Errors:  -EAGAIN (still running), WEFT_EJOINED: the handle is still yours.
 */
WEFT_API WEFT_NODISCARD int weft_try_join(weft_task *task, int *result);

/* Joining as a future. */
typedef struct weft_join_future {
    weft_future future;
    weft_task *task; /* NULL once it is joined */
    int *result;
    uint64_t opaque_[7];
} weft_join_future;

/*
 * Prepares a join. It gives 0 and ends the handle, or WEFT_ECANCELED (the
 * joining task was cancelled) or WEFT_EJOINED and leaves it. result may be NULL.
 *
 * Context: any thread.
 */
WEFT_API void weft_join_init(weft_join_future *future, weft_task *task, int *result);

/*
 * Ends the handle without joining; the task runs on. NULL is allowed.
 *
 * Context: any thread.
 */
WEFT_API void weft_detach(weft_task *task);

/*
 * Returns one more handle of the task, for cancelling it or looking at it from
 * elsewhere. End it with weft_detach(). One handle can be joined.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD weft_task *weft_task_retain(weft_task *task);

/*
 * Asks the task to end. Its current await is stopped, and each await from now on
 * gives WEFT_ECANCELED; the body decides what to do about it. A body that
 * answers WEFT_PENDING without awaiting anything is ended with WEFT_ECANCELED.
 * Returns at once; join to wait for the end.
 *
 * Context: any thread.
 */
WEFT_API void weft_cancel(weft_task *task);

/*
 * Is the task done? Then a join returns at once.
 *
 * Context: any thread.
 */
WEFT_API bool weft_task_is_done(const weft_task *task);

/*
 * Returns a number that no other task of the runtime has. Never 0.
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
 * Returns the task that is running here, or NULL on a plain thread. Borrowed:
 * weft_task_retain() to keep it.
 *
 * Context: any thread.
 */
WEFT_API weft_task *weft_task_current(void);

/*
 * Is the current task cancelled, and no shield entered? False on a plain thread.
 *
 * Context: any thread.
 */
WEFT_API bool weft_cancelled(void);

/*
 * Defers cancellation of the current task until the matching weft_shield_leave()
 * for a piece of work that must not be cut in two. Nests up to 255 deep.
 *
 * Context: a body, or a blocking job. Aborts where neither runs.
 */
WEFT_API void weft_shield_enter(void);

/*
 * Ends the innermost shield. Awaits after the last one give WEFT_ECANCELED if
 * the task was cancelled meanwhile.
 *
 * Context: as weft_shield_enter(). Aborts also if no shield is entered.
 */
WEFT_API void weft_shield_leave(void);

WEFT_EXTERN_C_END

#endif
