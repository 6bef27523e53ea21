/* SPDX-License-Identifier: MIT */
/*
 * blocking.h - thread pool for blocking jobs.
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
    struct wf_list idle; /* sleeping threads, the latest first */
    unsigned threads;
    unsigned idle_count;
    uint64_t queued;
    uint64_t submitted;
    uint64_t completed;
    bool closed;
    bool has_exited; /* a thread has ended and must be joined */
    pthread_t last_exited;
    /* Any thread: threads and jobs that have not ended. The stopping thread waits for 0. */
    _Atomic(uint32_t) users;
};

void wf_pool_init(struct wf_pool *pool);

/* The function of a blocking job. */
struct wf_pool_spec {
    int (*function)(void *arg);
    void (*dropped)(void *arg); /* called instead if the job ends without having run; may be NULL */
    void *arg;
};

/* Any thread: runs the function on a pool thread, as a task. */
int wf_pool_spawn(struct wf_sched *sched, struct wf_task **out, const struct wf_pool_spec *spec);

/* The stopping thread: refuses new jobs; queued jobs end as canceled. */
void wf_pool_close(struct wf_sched *sched);

/* The stopping thread, after wf_pool_close(): waits until every thread and every job has ended. */
void wf_pool_join(struct wf_pool *pool);

#endif
