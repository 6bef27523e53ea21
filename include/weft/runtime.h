/* SPDX-License-Identifier: MIT */
/*
 * weft/runtime.h - the runtime: configuration, start and shutdown of the workers.
 */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include "base.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_runtime weft_runtime;

#define WEFT_WORKERS_MAX 1024

/* A search_ns for workers that park without searching. */
#define WEFT_SEARCH_OFF UINT64_MAX

/* Values of the on/off fields of weft_config. */
typedef enum weft_switch {
    WEFT_DEFAULT = 0,
    WEFT_ON = 1,
    WEFT_OFF = 2,
} weft_switch;

/* The kernel interface that I/O uses. */
typedef enum weft_io_backend {
    WEFT_IO_AUTO = 0, /* epoll, as long as it uses less CPU time */
    WEFT_IO_EPOLL = 1,
    WEFT_IO_URING = 2,
} weft_io_backend;

/*
 * Runtime configuration. Start from WEFT_CONFIG_INIT and set the fields you need; 0 means the
 * default in every field. Environment variables override the fields that name one below, so
 * that an operator can tune a program. WEFT_WORKERS, WEFT_SEARCH_NS, WEFT_PARK_TIMEOUT_NS and
 * WEFT_SEED also accept 0 for the default. When the first runtime of the process is created, each
 * unknown variable WEFT_... is reported to its on_message; names that begin with WEFT_TEST_ are
 * reserved for tests.
 */
typedef struct weft_config {
    size_t size; /* set by WEFT_CONFIG_INIT; lets the struct grow */

    /* Number of worker threads, at most WEFT_WORKERS_MAX. 0: the number of CPUs that the
     * affinity mask and the cgroup quota allow. WEFT_WORKERS */
    unsigned workers;
    /* Whether workers steal tasks from each other's queues. WEFT_STEALING=on|off */
    weft_switch stealing;
    /* Whether the task woken last runs first (LIFO slot). WEFT_LIFO=on|off */
    weft_switch lifo;

    /* Length of a tick. Between ticks a worker polls for I/O and does its maintenance. A tick
     * ends after tick_polls polls (default 128, 1 to 65535; WEFT_TICK_POLLS) or after tick_ns
     * (default 500 us, 1 us to 1 s; WEFT_TICK_NS), whichever comes first. */
    unsigned tick_polls;
    uint64_t tick_ns;

    /* A worker prefers the inject queue to its own queue once every interval polls, where
     * interval = inject_target_ns / average poll time, clamped to [inject_interval_min,
     * inject_interval_max]. Defaults 1 ms, 8, 255. Ranges 1 us to 1 s, and 1 to 65535 with
     * min <= max. WEFT_INJECT_TARGET_NS, WEFT_INJECT_INTERVAL_MIN, WEFT_INJECT_INTERVAL_MAX */
    uint64_t inject_target_ns;
    unsigned inject_interval_min;
    unsigned inject_interval_max;
    /* Maximum length of the inject queue. Above it, a spawn from outside the workers fails with
     * -EAGAIN. Default 65536, 1 to 2^63 - 1. WEFT_INJECT_CAPACITY */
    size_t inject_capacity;

    /* How long a worker without work keeps searching before it parks. Default 20 us, 1 ns to
     * 1 s. A single worker parks immediately by default, since no other worker can hand it
     * work. WEFT_SEARCH_OFF, or "off" in the environment: do not search. WEFT_SEARCH_NS */
    uint64_t search_ns;
    /* Safety net: a parked worker looks for work after this time. 0, the default: it sleeps
     * until it is woken. 1 us to 1 h. The counter unannounced_work reports whether the net ever
     * caught anything. WEFT_PARK_TIMEOUT_NS */
    uint64_t park_timeout_ns;

    /* Maximum number of threads in the blocking pool (default 512, 1 to 65535;
     * WEFT_BLOCKING_THREADS), and how long an idle one lives (default 10 s, 1 us to 1 day;
     * WEFT_BLOCKING_KEEP_ALIVE_NS). */
    unsigned blocking_threads;
    uint64_t blocking_keep_alive_ns;

    /* I/O backend. WEFT_IO=auto|epoll|uring. weft_runtime_io() reports which one is used. Where
     * io_uring is not allowed, auto works without it; uring makes I/O calls fail, with a
     * message. */
    weft_io_backend io;
    /* Maximum number of I/O events handled before the worker runs tasks again. With many more,
     * the data that the tasks need has left the cache by the time they run. Default 32, 1 to
     * 4096. WEFT_MAX_IO_COMPLETIONS */
    unsigned max_io_completions;
    /* Number of descriptors that the process expects to use, capped by its limit. The kernel's
     * descriptor table is grown to this size at startup, at 8 bytes per descriptor. Once
     * threads are running, opening a descriptor that does not fit into the table takes 10 to
     * 20 ms while the table grows. Default 4096, 1 to 2^30; 1 leaves the table alone.
     * WEFT_FDS_EXPECTED */
    unsigned fds_expected;

    /* Seeds the random choice of victims to steal from. 0: seeded from the clock. WEFT_SEED */
    uint64_t seed;

    /* NULL: malloc and free. */
    const weft_allocator *allocator;

    /* Prefix of thread names: PREFIX-w0, PREFIX-w1, ..., PREFIX-watch, PREFIX-block. Default
     * "weft"; 1 to 8 characters. Not copied. */
    const char *thread_name;

    /* Called on a worker's thread with the worker's index: after it has started, before it
     * stops, before it parks, and after it has unparked. Must not call weft. */
    void (*on_start)(void *ctx, unsigned worker);
    void (*on_stop)(void *ctx, unsigned worker);
    void (*on_park)(void *ctx, unsigned worker);
    void (*on_unpark)(void *ctx, unsigned worker);
    void *hook_ctx;

    /* Receives diagnostic messages, one sentence each: an invalid value, I/O that is not
     * possible, an unknown variable WEFT_..., or task handles left at the end. NULL: stderr.
     * Any thread may call it. */
    void (*on_message)(void *ctx, const char *text);
    void *message_ctx;
} weft_config;

#define WEFT_CONFIG_INIT                                                                           \
    {                                                                                              \
        .size = sizeof(weft_config)                                                                \
    }

/*
 * Starts a runtime, runs main_fn(arg) as a fiber with the largest stack, shuts the runtime
 * down, and returns the result of main_fn. Tasks that are still running when main_fn returns
 * are canceled.
 *
 *     return weft_run(NULL, app, NULL) == 0 ? 0 : 1;
 *
 * main() must not return this result directly: an exit status has 8 bits, and some errors, such
 * as WEFT_ECANCELED, would become 0.
 *
 * Context:  plain thread, which sleeps during the run and receives the signals of the process.
 *           Aborts on a worker.
 * Suspends: until every task has ended.
 * Errors:   those of weft_runtime_create(), and -ENOMEM. main_fn was not called.
 */
WEFT_API WEFT_NODISCARD int weft_run(const weft_config *config, int (*main_fn)(void *arg),
                                     void *arg);

/*
 * Creates a runtime and starts its threads. config may be NULL. A process may have several
 * runtimes.
 *
 * Workers block asynchronous signals. Blocking-pool threads, and children that tasks fork, get
 * the signal mask that the caller has now; see docs/process.md.
 *
 * Context: any thread.
 * Owns:    the caller owns *rt and ends it with weft_runtime_destroy().
 * Errors:  -EINVAL (an invalid value; the message names the field and its range), -ENOMEM,
 *          -EAGAIN (the system refuses to start a thread, or the process did not have two keys
 *          left for pthread_key_create() when the library was first used).
 */
WEFT_API WEFT_NODISCARD int weft_runtime_create(weft_runtime **rt, const weft_config *config);

/*
 * Shuts a runtime down: refuses new tasks (WEFT_ESHUTDOWN), cancels every task, waits until all
 * have ended, closes all streams, listeners and sockets, and joins all threads. Calls of other
 * threads that are in progress on a stream return WEFT_ECLOSED. The handle stays valid, so other
 * threads may still try to spawn. Idempotent; several threads may call it.
 *
 * Context:  plain thread. Aborts on a thread of this runtime and on a worker of another one.
 * Suspends: until every task and every running blocking job has ended, and calls on the
 *           runtime's streams have returned. A task that ignores its cancellation keeps the
 *           runtime alive.
 */
WEFT_API void weft_runtime_shutdown(weft_runtime *rt);

/*
 * Shuts the runtime down, if that has not happened yet, and frees it. NULL is allowed.
 *
 * The runtime's memory stays allocated while one of its tasks has a waker, or a handle that was
 * neither joined nor detached. If there are such tasks, on_message receives one sentence that
 * names up to five of them.
 *
 * No thread may call a function with rt after that, or start such a call meanwhile: a later
 * call aborts with a message. The destroy waits for calls of weft_runtime_spawn_wait(),
 * weft_par_run() and weft_par_broadcast() that started earlier. Task handles, wakers and timers
 * outlive their runtime: every call on them stays safe, from any thread, even during the
 * destroy.
 *
 * Context:  plain thread. Aborts on a thread of this runtime, inside its weft_par_run(), and on
 *           a worker of another runtime.
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
 * Returns the index of the current worker, or -1 if the calling thread is not a worker.
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
