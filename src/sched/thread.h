/* SPDX-License-Identifier: MIT */
/*
 * thread.h - plain threads: how they wait, and how ours are started.
 *
 * A plain thread waits through a task of its own, whose "schedule" is a futex
 * wake; so whatever a task can wait for, a thread can wait for.
 */
#ifndef WF_SCHED_THREAD_H
#define WF_SCHED_THREAD_H

#include <pthread.h>

#include <weft/future.h>

#include "base/tls.h"

struct weft_runtime;
struct wf_task;

struct wf_thread {
    struct wf_task *waiter;       /* its own task; counted */
    struct wf_task *running;      /* the blocking job that runs here, or NULL */
    struct weft_runtime *runtime; /* of the weft_run() around, or NULL */
    unsigned waits;               /* weft_await() calls under way: 0 or 1 */
};

/* The record of this thread, made at the first call. NULL: no memory. */
struct wf_thread *wf_thread_self(void);

/* The same, or NULL if there is none yet. */
struct wf_thread *wf_thread_known(void);

/* The task that is woken when what is polled here has news: the current task on
 * a worker, the thread's own one inside weft_await(). Borrowed. */
struct wf_task *wf_thread_waiter(void);

/* The task that runs here: the current one, or the blocking job. NULL on other
 * threads. Borrowed. */
struct wf_task *wf_thread_running(void);

/* Aborts if this is a worker, which must not block. */
void wf_thread_must_be_plain(const char *call, const char *instead);

/* Starts a thread that gets no asynchronous signals, named prefix-name. 0 or
 * -EAGAIN. */
int wf_thread_start(pthread_t *thread, void *(*main_fn)(void *arg), void *arg, const char *prefix,
                    const char *name);

#endif
