/* SPDX-License-Identifier: MIT */
/*
 * weft/fiber.h - tasks that read like blocking code.
 *
 * A fiber is a function with a stack of its own. Where it waits, it lets its
 * worker go on with other tasks, and may come back on another worker:
 *
 *     static int child(void *arg)
 *     {
 *         return *(int *)arg + 1;
 *     }
 *
 *     static int parent(void *arg)
 *     {
 *         (void)arg;
 *         int one = 1, two;
 *         weft_task *task;
 *         int err = weft_go(&task, child, &one);
 *         return err ? err : weft_join(task, &two, WEFT_NEVER);
 *     }
 *
 * What belongs to a thread is not the fiber's: a thread-local variable, or a mutex
 * of the C library that must be unlocked by the thread that locked it, may be
 * another's after a wait. A pinned fiber always comes back on the same worker.
 * errno is safe: weft.h defines it so that it is looked up anew each time. A fiber
 * must not end its thread: pthread_exit() aborts with a sentence.
 *
 * In C++, a fiber may throw and catch, and wait in between. An exception must not leave a function
 * that the library calls: a fiber's or a job's, or what weft_block_in_place(), weft_once_run(),
 * weft_join2(), a loop, a future's poll and all others are given. It ends the process by
 * std::terminate(), also if the caller of the library would catch it: nothing is unwound through
 * the library. Catch it in the function, and return an error. Blocks like WEFT_SCOPE() and
 * WEFT_LOCKED() are not functions: an exception may leave them, and ends them.
 */
#ifndef WEFT_FIBER_H
#define WEFT_FIBER_H

#include "base.h"
#include "clock.h"
#include "runtime.h"
#include "task.h"

WEFT_EXTERN_C_BEGIN

/* What to run, in the long form. Zero fields mean the default. */
typedef struct weft_fiber_spec {
    int (*function)(void *arg);
    /* Handed to the function. If arg_size is not 0, so many bytes are copied from
     * arg into the fiber, aligned to 16, and the function gets the copy. */
    void *arg;
    size_t arg_size;
    /* Bytes of stack, rounded up to a power of two; 16 KiB to 8 MiB, default
     * 256 KiB. Memory is used page by page, as the stack grows. An overflow is
     * caught by a guard and named. Compile with -fstack-clash-protection, as
     * weft.pc and the CMake targets say, so that no large frame can jump over the
     * guard; see docs/process.md. */
    size_t stack_size;
    /* For dumps and messages. Not copied: a string literal. */
    const char *name;
    /* 0: any worker may run it. Else WEFT_PINNED or WEFT_PINNED_TO(index). */
    uint32_t pinned;
    /* It begins with the values of who starts it, of keys that are inherited. */
    bool inherits;
} weft_fiber_spec;

/*
 * Starts a fiber on the current runtime. It is a task: join, detach or cancel it
 * like any other. Its result is what the function returns.
 *
 * The function runs also if the fiber is cancelled before. It sees everything
 * that the caller wrote before.
 *
 * Context: a task, or a blocking job.
 * Owns:    *task is the caller's: join or detach it. task NULL detaches.
 * Errors:  -ENOMEM (also: no address space for a stack), WEFT_ESHUTDOWN, -EINVAL
 *          (no function); in a blocking job also -EAGAIN: the inject queue is full.
 */
WEFT_API WEFT_NODISCARD int weft_go(weft_task **task, int (*function)(void *arg), void *arg);

/*
 * The same in the long form.
 *
 * Context: as weft_go().
 * Errors:  as weft_go(); -EINVAL also for a stack_size above 8 MiB, or no such
 *          worker to pin to.
 */
WEFT_API WEFT_NODISCARD int weft_go_with(weft_task **task, const weft_fiber_spec *spec);

/*
 * The same on the given runtime.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_runtime_go(weft_runtime *rt, weft_task **task,
                                            const weft_fiber_spec *spec);

/*
 * Lets other tasks run, then goes on.
 *
 * Context:  a fiber, or a plain thread (which offers its core to others). Aborts in
 *           a stackless task: use WEFT_YIELD().
 * Suspends: until its turn comes again.
 * Cancel:   WEFT_ECANCELED, before or after the others have run.
 */
WEFT_API int weft_yield(void);

/*
 * Calls function(arg) where it may block: the fiber leaves its worker, goes on on a
 * thread of the blocking pool, and comes back to a worker when the function returns.
 * Returns what the function returns.
 *
 * The function runs on the fiber's own stack and sees the fiber as the current task.
 * What waits in there (weft_join() and its like) blocks the thread, not a worker.
 *
 * The signal mask is that of the thread which created the runtime, not that of a
 * worker, which blocks nearly all signals. So posix_spawn(), popen() and system()
 * belong here: the child inherits the mask. A signal handler may run in here, on the
 * fiber's stack unless it was installed with SA_ONSTACK.
 *
 * Context:  a fiber, or a plain thread, which just calls it. Aborts in a stackless
 *           task: use weft_spawn_blocking().
 * Suspends: until a thread is free, or the deadline. Once the function has begun, the
 *           deadline has no meaning.
 * Cancel:   WEFT_ECANCELED; the function was not called.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ESHUTDOWN, -ENOMEM, -EAGAIN (there is no pool thread
 *           and the system refuses to start one): the function was not called.
 */
WEFT_API WEFT_NODISCARD int weft_block_in_place(int (*function)(void *arg), void *arg,
                                                weft_time deadline);

/* A value that each fiber, and each plain thread, has for itself. */
typedef struct weft_local {
    unsigned index;
} weft_local;

#define WEFT_LOCAL_KEYS_MAX 64

/*
 * Makes a key, for as long as the process lives. The destructor, if not NULL, is
 * called at the end of each fiber or thread whose value is not NULL, with the value;
 * on a fiber it may wait.
 *
 * Context: any thread.
 * Errors:  -EAGAIN: there are WEFT_LOCAL_KEYS_MAX keys already.
 */
WEFT_API WEFT_NODISCARD int weft_local_create(weft_local *key, void (*destructor)(void *value));

/*
 * The same: a fiber whose weft_fiber_spec says that it inherits begins with inherit(value), if
 * the value of who starts it is not NULL. inherit is called by that one; it copies the value,
 * or counts it, and must not wait. NULL from it is no value.
 *
 * Context: any thread.
 * Errors:  as weft_local_create().
 */
WEFT_API WEFT_NODISCARD int weft_local_create_inherited(weft_local *key,
                                                        void *(*inherit)(void *value),
                                                        void (*destructor)(void *value));

/*
 * Sets the value of this fiber or thread. A first value takes half a kilobyte.
 *
 * Context: a fiber, or a plain thread. Aborts in a stackless task.
 * Errors:  -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_local_set(weft_local key, void *value);

/*
 * Returns the value of this fiber or thread; NULL if none was set.
 *
 * Context: as weft_local_set().
 */
WEFT_API void *weft_local_get(weft_local key);

WEFT_EXTERN_C_END

#endif
