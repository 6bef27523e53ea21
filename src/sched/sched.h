/* SPDX-License-Identifier: MIT */
/*
 * sched.h - scheduler of one runtime: its workers and the state they share.
 */
#ifndef WF_SCHED_SCHED_H
#define WF_SCHED_SCHED_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <weft/runtime.h>

#include "fiber/stack.h"
#include "queue/inject.h"
#include "sched/blocking.h"
#include "sched/drain.h"
#include "sched/guest.h"
#include "sched/idle.h"
#include "sched/room.h"
#include "sched/strand.h"
#include "sched/watch.h"

struct wf_heap;
struct wf_io;
struct wf_task;
struct wf_timer_ops;
struct wf_worker;

/* Filled in by rt/config.c. All fields are final: no zero stands for a default. */
struct wf_sched_options {
    unsigned workers;
    bool stealing;
    bool lifo;
    unsigned tick_polls;
    uint64_t tick_ns;
    uint64_t inject_target_ns;
    unsigned inject_interval_min;
    unsigned inject_interval_max;
    size_t inject_capacity;
    uint64_t search_ns;       /* 0: no search rounds */
    uint64_t park_timeout_ns; /* 0: none */
    unsigned blocking_threads;
    uint64_t blocking_keep_alive_ns;
    uint64_t seed;
    weft_io_backend io_backend;
    unsigned io_events_max;
    unsigned fds_expected;
    weft_allocator allocator;
    const char *thread_name;
    void (*on_start)(void *ctx, unsigned worker);
    void (*on_stop)(void *ctx, unsigned worker);
    void (*on_park)(void *ctx, unsigned worker);
    void (*on_unpark)(void *ctx, unsigned worker);
    void *hook_ctx;
    void (*on_message)(void *ctx, const char *text);
    void *message_ctx;
};

struct wf_sched {
    struct wf_sched_options options; /* constant */
    struct weft_runtime *runtime;    /* constant */
    struct wf_heap *heap;            /* constant */
    struct wf_worker *workers;       /* constant: options.workers of them */
    unsigned fork_number;            /* constant: see base/fork.h */
    sigset_t signals;                /* constant: signal mask of the runtime's creator */
    struct wf_inject inject;
    struct wf_idle idle;
    struct wf_drain drain;
    struct wf_room room;
    struct wf_watch watch;
    struct wf_pool pool;
    struct wf_guests guests;
    struct wf_stacks stacks; /* for fibers */
    struct wf_strands strands;
    const struct wf_timer_ops *timer_ops; /* constant once started */
    void *timers;                         /* timer state */
    struct wf_io *io;                     /* constant once started */
    _Atomic(uint32_t) next_pin;           /* any thread: assigns workers round-robin */
    _Atomic(uint64_t) outside_spawned;    /* any thread: numbers tasks spawned from outside */
};

/* Any thread: returns the scheduler of a runtime, as long as that is not destroyed. Aborts with
 * the name of the call if it was. Implemented by rt. */
struct wf_sched *wf_sched_of_runtime(const struct weft_runtime *rt, const char *call);

/* Allocates everything; starts nothing. Returns 0 or -ENOMEM. */
int wf_sched_init(struct wf_sched *sched, const struct wf_sched_options *options,
                  struct weft_runtime *runtime);

/* Starts every thread. On failure (-EAGAIN, -ENOMEM) none is left running. */
int wf_sched_start(struct wf_sched *sched);

/* Refuses new tasks, cancels all tasks and blocking jobs, and waits until they have ended. The
 * workers keep running, so that timers and events still reach plain threads. Once, from a
 * thread outside of the runtime. */
void wf_sched_drain(struct wf_sched *sched);

/* Ends every thread, after wf_sched_drain(). */
void wf_sched_stop(struct wf_sched *sched);

/* Frees everything, immediately or with the last reference to a task. */
void wf_sched_fini(struct wf_sched *sched);

/* Any thread: queues a task that is new or was just woken. */
void wf_sched_schedule(struct wf_task *task);

/* Any thread, after publishing stealable work: wakes a worker if necessary. */
void wf_sched_notify(struct wf_sched *sched);

/* Same as wf_sched_notify(), for work in the inject queue: if all workers are busy, asks one
 * that forks to yield. */
void wf_sched_notify_injected(struct wf_sched *sched);

/* Returns whether a queue that every worker can take from has work. */
bool wf_sched_has_work(const struct wf_sched *sched);

/* Any thread: puts a task into the inbox of its worker. */
void wf_sched_deliver(struct wf_sched *sched, struct wf_task *task);

/* Any thread: wakes every worker. */
void wf_sched_wake_all(struct wf_sched *sched);

#endif
