/* SPDX-License-Identifier: MIT */
/*
 * weft/runtime.h - a set of workers: configuration, start and end.
 */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include "base.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_runtime weft_runtime;

#define WEFT_WORKERS_MAX 1024

/* A search_ns for workers that do not search. */
#define WEFT_SEARCH_OFF UINT64_MAX

/* Values of the three-way switches below. */
typedef enum weft_switch {
    WEFT_DEFAULT = 0,
    WEFT_ON = 1,
    WEFT_OFF = 2,
} weft_switch;

/* How the kernel is asked for I/O. */
typedef enum weft_io_backend {
    WEFT_IO_AUTO = 0, /* epoll, as long as it takes less of the processor */
    WEFT_IO_EPOLL = 1,
    WEFT_IO_URING = 2,
} weft_io_backend;

/*
 * How a runtime is to be. Start from WEFT_CONFIG_INIT and change what you need;
 * zero means the default everywhere. The environment wins over the fields that
 * name a variable here, so that whoever runs a program can tune it. 0 in a variable
 * means the default, too. A variable WEFT_... that is not named here is reported once
 * to on_message; names that begin with WEFT_TEST_ are free for tests.
 */
typedef struct weft_config {
    size_t size; /* set by WEFT_CONFIG_INIT; lets the struct grow */

    /* Worker threads, at most WEFT_WORKERS_MAX. 0: as many as the CPUs that the
     * affinity mask and the cgroup quota allow. WEFT_WORKERS */
    unsigned workers;
    /* May a worker take tasks from another's queue? WEFT_STEALING=on|off */
    weft_switch stealing;
    /* Does the task that was woken last run first? WEFT_LIFO=on|off */
    weft_switch lifo;

    /* A tick, after which a worker looks after its other duties, ends after so
     * many polls (default 128, 1 to 65535; WEFT_TICK_POLLS) or so much time
     * (default 500 us, 1 us to 1 s; WEFT_TICK_NS). */
    unsigned tick_polls;
    uint64_t tick_ns;

    /* A worker takes a task from the inject queue first once every interval
     * polls, where interval = inject_target_ns / average time of a poll, at least
     * inject_interval_min and at most inject_interval_max. Defaults 1 ms, 8, 255.
     * 1 us to 1 s, and 1 to 65535 with min <= max. WEFT_INJECT_TARGET_NS,
     * WEFT_INJECT_INTERVAL_MIN, WEFT_INJECT_INTERVAL_MAX */
    uint64_t inject_target_ns;
    unsigned inject_interval_min;
    unsigned inject_interval_max;
    /* Above this length of the inject queue a spawn from outside gets -EAGAIN.
     * Default 65536, 1 to 2^63 - 1. WEFT_INJECT_CAPACITY */
    size_t inject_capacity;

    /* How long a worker that found nothing goes on looking before it sleeps.
     * Default 20 us, but a lone worker, whom no other hands anything, sleeps at
     * once; 1 ns to 1 s; WEFT_SEARCH_OFF, and "off" in the environment: not at
     * all. WEFT_SEARCH_NS */
    uint64_t search_ns;
    /* A safety net: a sleeping worker looks around after so long. 0, the default:
     * it sleeps until it is woken. 1 us to 1 h. The counter
     * unannounced_work tells whether it ever caught anything. WEFT_PARK_TIMEOUT_NS */
    uint64_t park_timeout_ns;

    /* Threads of the blocking pool: at most so many (default 512, 1 to 65535;
     * WEFT_BLOCKING_THREADS), each ending after so long without work (default
     * 10 s, 1 us to 1 day; WEFT_BLOCKING_KEEP_ALIVE_NS). */
    unsigned blocking_threads;
    uint64_t blocking_keep_alive_ns;

    /* How I/O is done. WEFT_IO=auto|epoll|uring. weft_runtime_io() reports the outcome. Where
     * io_uring is not allowed, auto does without it; uring makes I/O calls fail, with a message. */
    weft_io_backend io;
    /* So many events are handled before tasks have their turn again. With many more, what the
     * tasks need is no longer in the cache when they run. Default 32, 1 to 4096.
     * WEFT_MAX_IO_COMPLETIONS */
    unsigned max_io_completions;
    /* So many descriptors the process will have, or as many as its limit allows. The kernel's
     * table of them gets that size at the start, 8 bytes for each: while threads run, whoever
     * opens one that does not fit waits for 10 to 20 ms until the table has grown. Default
     * 4096, 1 to 2^30; 1 leaves it as it is. WEFT_FDS_EXPECTED */
    unsigned fds_expected;

    /* Seeds the choice of whom to steal from. 0: from the clock. WEFT_SEED */
    uint64_t seed;

    /* NULL: malloc and free. */
    const weft_allocator *allocator;

    /* Threads are named PREFIX-w0, PREFIX-w1, ..., PREFIX-watch, PREFIX-block.
     * Default "weft"; 1 to 8 characters. Not copied. */
    const char *thread_name;

    /* Called on a worker's thread with its index: when it has started, before it
     * stops, before it goes to sleep and after it has woken. Must not use weft. */
    void (*on_start)(void *ctx, unsigned worker);
    void (*on_stop)(void *ctx, unsigned worker);
    void (*on_park)(void *ctx, unsigned worker);
    void (*on_unpark)(void *ctx, unsigned worker);
    void *hook_ctx;

    /* Receives messages: a sentence about a wrong value, about I/O that is not possible, about an
     * unknown variable WEFT_..., or about handles that are left at the end. NULL: stderr. Any
     * thread may call it. */
    void (*on_message)(void *ctx, const char *text);
    void *message_ctx;
} weft_config;

#define WEFT_CONFIG_INIT                                                                           \
    {                                                                                              \
        .size = sizeof(weft_config)                                                                \
    }

/*
 * Starts a runtime, runs main_fn(arg) as a fiber with the largest stack, shuts the
 * runtime down and returns what main_fn returned. Tasks that main_fn has left are
 * cancelled.
 *
 *     return weft_run(NULL, app, NULL) == 0 ? 0 : 1;
 *
 * main() must not return the result as it is: an exit status has 8 bits, and some errors would be
 * 0, such as WEFT_ECANCELED.
 *
 * Context:  a plain thread, which sleeps meanwhile and gets the signals of the
 *           process. Aborts on a worker.
 * Suspends: until every task has ended.
 * Errors:   those of weft_runtime_create(), and -ENOMEM: main_fn was not called.
 */
WEFT_API WEFT_NODISCARD int weft_run(const weft_config *config, int (*main_fn)(void *arg),
                                     void *arg);

/*
 * Creates a runtime and starts its threads. config may be NULL. There may be
 * several in one process.
 *
 * Workers block asynchronous signals. Threads of the blocking pool, and children that
 * tasks fork, get the signal mask that the caller has now; see docs/process.md.
 *
 * Context: any thread.
 * Owns:    *rt is the caller's until weft_runtime_destroy().
 * Errors:  -EINVAL (a bad value; the message names the field and its range),
 *          -ENOMEM, -EAGAIN (the system refuses to start a thread, or the process had no two keys
 *          left for pthread_key_create() when the library was first used).
 */
WEFT_API WEFT_NODISCARD int weft_runtime_create(weft_runtime **rt, const weft_config *config);

/*
 * Ends a runtime: refuses new tasks (WEFT_ESHUTDOWN), cancels every task, waits
 * until all have ended, closes all streams, listeners and sockets, and joins all
 * threads. Calls of other threads that are in progress on a stream return
 * WEFT_ECLOSED. The handle stays valid, so other threads may go on trying to spawn.
 * May be called again, and by several threads.
 *
 * Context:  a plain thread. Aborts on a thread of this runtime, and on a worker of another one.
 * Suspends: until every task and every blocking job that runs has ended, and until
 *           calls on its streams have returned. A body that ignores its cancellation
 *           keeps the runtime alive.
 */
WEFT_API void weft_runtime_shutdown(weft_runtime *rt);

/*
 * Shuts the runtime down if that has not happened yet, and frees it. NULL is allowed.
 *
 * The memory of the runtime stays as long as one of its tasks has a handle that was neither joined
 * nor detached, or a waker. If there are any, on_message gets one sentence that names up to five
 * of these tasks.
 *
 * No thread may call anything with rt after that, or begin to meanwhile: a later call aborts with
 * a sentence. The destroy waits for calls of weft_runtime_spawn_wait(), weft_par_run() and
 * weft_par_broadcast() that have begun before. Handles and wakers of tasks, and timers, outlive
 * their runtime: every call on them is still safe, from any thread, also during the destroy.
 *
 * Context:  a plain thread. Aborts on a thread of this runtime, inside of its weft_par_run(), and
 *           on a worker of another runtime.
 * Suspends: as weft_runtime_shutdown(), and until the calls named above have returned.
 */
WEFT_API void weft_runtime_destroy(weft_runtime *rt);

/*
 * Returns the runtime of the current worker or blocking job, or NULL.
 *
 * Context: any thread.
 */
WEFT_API weft_runtime *weft_runtime_current(void);

/*
 * Returns the index of the worker this is running on, or -1 on another thread.
 *
 * Context: any thread.
 */
WEFT_API int weft_worker_current(void);

/*
 * Returns the number of workers.
 *
 * Context: any thread.
 */
WEFT_API unsigned weft_runtime_workers(const weft_runtime *rt);

WEFT_EXTERN_C_END

#endif
