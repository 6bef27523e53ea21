/* SPDX-License-Identifier: MIT */
/*
 * weft/fiber.h - fibers: tasks with a stack of their own, written like blocking code.
 *
 * When a fiber waits, its worker runs other tasks. The fiber may resume on another worker:
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
 * State that belongs to a thread does not follow the fiber. After a wait, the fiber may see
 * another thread's thread-local variables, and may unlock a C library mutex on another thread
 * than the one that locked it. A pinned fiber always resumes on the same worker. errno is safe:
 * weft.h redefines it so that its address is looked up on each use. A fiber must not end its
 * thread: pthread_exit() aborts with a message.
 *
 * In C++, a fiber may throw and catch exceptions, and may wait in between. An exception must not
 * leave a function that the library calls: the function of a fiber or a blocking job, a callback
 * of weft_block_in_place(), weft_once_run(), weft_join2() or a loop, a future's poll, or any
 * other callback. It ends the process with std::terminate(), even if the caller of the library
 * would catch it: the library is never unwound. Catch the exception in the function and return
 * an error. Blocks such as WEFT_SCOPE() and WEFT_LOCKED() are not functions: an exception may
 * leave them, and ends them.
 */
#ifndef WEFT_FIBER_H
#define WEFT_FIBER_H

#include "base.h"
#include "clock.h"
#include "runtime.h"
#include "task.h"

WEFT_EXTERN_C_BEGIN

/* Options for starting a fiber. Zero fields mean the default. */
typedef struct weft_fiber_spec {
    int (*function)(void *arg);
    /* Passed to the function. If arg_size is not 0, arg_size bytes are copied from arg into the
     * fiber, aligned to 16, and the function gets the copy. */
    void *arg;
    size_t arg_size;
    /* Stack size in bytes, rounded up to a power of two; 16 KiB to 8 MiB, default 256 KiB.
     * Memory is committed page by page as the stack grows. A guard below the stack detects an
     * overflow, and the message names the fiber. Compile with -fstack-clash-protection, as
     * weft.pc and the CMake targets do, so that no large frame can jump over the guard; see
     * docs/process.md. */
    size_t stack_size;
    /* For dumps and messages. Not copied: use a string literal. */
    const char *name;
    /* 0: any worker may run the fiber. Otherwise WEFT_PINNED or WEFT_PINNED_TO(index). */
    uint32_t pinned;
    /* Whether the fiber starts with its creator's values of inherited weft_local keys. */
    bool inherits;
} weft_fiber_spec;

/*
 * Starts a fiber on the current runtime. A fiber is a task: join, detach or cancel it like any
 * other. Its result is the return value of the function.
 *
 * The function runs even if the fiber is canceled before it starts. It sees all writes that the
 * caller made before the call.
 *
 * Context: any task or blocking job.
 * Owns:    the caller owns *task and joins or detaches it. If task is NULL, the task is
 *          detached.
 * Errors:  -ENOMEM (including no address space for a stack), WEFT_ESHUTDOWN, -EINVAL (no
 *          function); in a blocking job also -EAGAIN (the inject queue is full).
 */
WEFT_API WEFT_NODISCARD int weft_go(weft_task **task, int (*function)(void *arg), void *arg);

/*
 * Same as weft_go(), with options.
 *
 * Context: as weft_go().
 * Errors:  those of weft_go(); -EINVAL also for a stack_size above 8 MiB, an arg_size near
 *          SIZE_MAX, or no such worker to pin to.
 */
WEFT_API WEFT_NODISCARD int weft_go_with(weft_task **task, const weft_fiber_spec *spec);

/*
 * Same as weft_go_with(), on the given runtime.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_runtime_go(weft_runtime *rt, weft_task **task,
                                            const weft_fiber_spec *spec);

/*
 * Lets other tasks run, then continues.
 *
 * Context:  fiber or plain thread (which yields its CPU). Aborts in a stackless task, which
 *           uses WEFT_YIELD().
 * Suspends: until the fiber is scheduled again.
 * Cancel:   WEFT_ECANCELED, whether the task was canceled before or after the others ran.
 */
WEFT_API int weft_yield(void);

/*
 * Calls function(arg) where it may block: the fiber leaves its worker, continues on a
 * blocking-pool thread, and returns to a worker when the function returns. Returns the
 * function's result.
 *
 * The function runs on the fiber's own stack and sees the fiber as the current task. A call in
 * it that waits (weft_join() and the like) blocks the thread, not a worker.
 *
 * The signal mask is that of the thread that created the runtime, not that of a worker, which
 * blocks nearly all signals. So call posix_spawn(), popen() and system() in here: the child
 * inherits the mask. A signal handler may run in here, on the fiber's stack unless it was
 * installed with SA_ONSTACK.
 *
 * Context:  fiber or plain thread, which calls the function directly. Aborts in a stackless
 *           task, which uses weft_spawn_blocking().
 * Suspends: until a pool thread is free or the deadline passes. The deadline has no effect once
 *           the function has started.
 * Cancel:   WEFT_ECANCELED. The function was not called.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ESHUTDOWN, -ENOMEM, -EAGAIN (the pool has no thread and the
 *           system refuses to start one). The function was not called.
 */
WEFT_API WEFT_NODISCARD int weft_block_in_place(int (*function)(void *arg), void *arg,
                                                weft_time deadline);

/* A key of fiber-local storage: each fiber, each blocking job and each plain thread has its own
 * value. */
typedef struct weft_local {
    unsigned index;
} weft_local;

#define WEFT_LOCAL_KEYS_MAX 64

/*
 * Creates a key, which lives as long as the process. The destructor, if not NULL, is called
 * with the value at the end of each fiber, blocking job or thread whose value is not NULL. On a
 * fiber and in a blocking job it may wait.
 *
 * Context: any thread.
 * Errors:  -EAGAIN (WEFT_LOCAL_KEYS_MAX keys exist).
 */
WEFT_API WEFT_NODISCARD int weft_local_create(weft_local *key, void (*destructor)(void *value));

/*
 * Same as weft_local_create(), for a key whose values are inherited. A fiber whose
 * weft_fiber_spec sets inherits starts with inherit(value), if its creator's value is not NULL.
 * The creator calls inherit, which copies the value or adds a reference to it, and must not
 * wait. If it returns NULL, the fiber starts without a value.
 *
 * Context: any thread.
 * Errors:  those of weft_local_create().
 */
WEFT_API WEFT_NODISCARD int weft_local_create_inherited(weft_local *key,
                                                        void *(*inherit)(void *value),
                                                        void (*destructor)(void *value));

/*
 * Sets the value of the calling fiber, blocking job or thread. The first value that is set
 * allocates half a kilobyte.
 *
 * Context: fiber or plain thread. Aborts in a stackless task.
 * Errors:  -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_local_set(weft_local key, void *value);

/*
 * Returns the value of the calling fiber, blocking job or thread, or NULL if none was set.
 *
 * Context: as weft_local_set().
 */
WEFT_API void *weft_local_get(weft_local key);

WEFT_EXTERN_C_END

#endif
