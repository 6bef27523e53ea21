/* SPDX-License-Identifier: MIT */
/*
 * blocking.h - threads for functions that block.
 */
#ifndef WF_SCHED_BLOCKING_H
#define WF_SCHED_BLOCKING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"

struct wf_sched;
struct wf_task;

struct wf_pool {
    struct wf_lock lock; /* guards all of the following */
    struct wf_list queue;
    struct wf_list idle; /* threads that sleep, the latest first */
    unsigned threads;
    unsigned idle_count;
    uint64_t queued;
    uint64_t submitted;
    uint64_t completed;
    bool closed;
    bool has_exited; /* a thread has ended and is to be joined */
    pthread_t last_exited;
    /* Any thread: threads and jobs that have not ended; the stopping thread waits
     * for 0. */
    _Atomic(uint32_t) users;
};

void wf_pool_init(struct wf_pool *pool);

/* What a job does. */
struct wf_pool_spec {
    int (*function)(void *arg);
    void (*dropped)(void *arg); /* instead, if it ends without having run; may be NULL */
    void *arg;
};

/* Any thread: runs the function on a pool thread, as a task. */
int wf_pool_spawn(struct wf_sched *sched, struct wf_task **out, const struct wf_pool_spec *spec);

/* The stopping thread: no more jobs; those that are queued end as cancelled. */
void wf_pool_close(struct wf_sched *sched);

/* The stopping thread, after close: waits until every thread and every job has
 * ended. */
void wf_pool_join(struct wf_pool *pool);

#endif
