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
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weft/future.h>

#include "base/atomic.h"
#include "base/tls.h"

struct weft_runtime;
struct wf_guest;
struct wf_sched;
struct wf_task;

struct wf_thread {
    struct wf_task *waiter;       /* its own task; counted */
    struct wf_task *running;      /* the blocking job that runs here, or NULL */
    struct weft_runtime *runtime; /* of the blocking job that runs here */
    struct wf_sched *sched;       /* its scheduler */
    unsigned waits;               /* weft_await() calls under way: 0 or 1 */
    uint32_t budget;              /* ready operations left in this poll of a future */
    void **locals;                /* see local.c; NULL if it has none */
    struct wf_guest *guest;       /* see guest.c; NULL if it is none */
    char *stack_low;              /* NULL: not asked for yet */
    const void *job_frame;        /* above those of the blocking job that runs here, or NULL */
    _Atomic(uint32_t) open;       /* objects in frames of the job that were not ended: frame.h */
};

/* The record of this thread, made at the first call. NULL: no memory. */
struct wf_thread *wf_thread_self(void);

/* The same, or NULL if there is none yet. */
struct wf_thread *wf_thread_known(void);

/* Any thread, before a runtime is made. -EAGAIN: the process had no thread-specific keys left for
 * the library. */
int wf_thread_prepare(void);

/* The task that is woken when what is polled here has news: the current task on
 * a worker, the thread's own one inside weft_await(). Borrowed. */
struct wf_task *wf_thread_waiter(void);

/* In the poll of a future that is pending and will wake that task: aborts if it is not the one
 * that polls. */
void wf_thread_must_await(const struct wf_task *waiter);

/* The task that runs here: the current one, or the blocking job. NULL on other
 * threads. Borrowed. */
struct wf_task *wf_thread_running(void);

/* The scheduler of the worker or the blocking job that this is; aborts, naming the
 * call, if there is none. */
struct wf_sched *wf_thread_must_sched(const char *call);

/* Aborts if this is a worker, which must not block. */
void wf_thread_must_be_plain(const char *call, const char *instead);

/* The task whose shield holds off what is polled here: the waiter inside
 * weft_await(), else the task that runs here. NULL if there is neither. */
struct wf_task *wf_thread_shielded(void);

/* On a plain thread, whose waiter will be woken: sleeps until then. */
void wf_thread_suspend(struct wf_thread *self);

/* wf_await_enter() off the workers: WEFT_ECANCELED if the blocking job that runs here, or the
 * fiber in weft_block_in_place(), is canceled. Aborts inside the poll of a future. */
int wf_thread_enter(const char *call);

/* weft_await() on a plain thread, after that. */
int wf_thread_await(weft_future *future, weft_time deadline);

/* May it have what is ready without that? Not a job, which may be cancelled. */
static inline bool wf_thread_may_take(const struct wf_thread *self)
{
    return self->waits == 0 && self->running == NULL;
}

/* The rest of wf_thread_await() for a future that is pending, and will wake the thread's task. */
int wf_thread_await_pending(struct wf_thread *self, weft_future *future, weft_time deadline);

/* Starts a thread that gets no asynchronous signals. 0 or -EAGAIN. */
int wf_thread_start(pthread_t *thread, void *(*main_fn)(void *arg), void *arg);

/* The signal mask that the program has here: the thread's own, or on a worker, which blocks
 * more, the mask that the creator of the runtime had. */
void wf_thread_signals(sigset_t *signals);

/* On a thread that wf_thread_start() has started: sets this signal mask, unless the program
 * has changed the first one. Async-signal-safe. */
void wf_thread_unblock_signals(const sigset_t *signals);

/* A thread of ours, at its beginning (true) and end (false): aborts with a sentence if it
 * ends in between, by pthread_exit() or cancellation. Its tasks would never end. */
void wf_thread_must_return(bool must);

/* The lowest address of this thread's stack, or NULL if that is not known. */
char *wf_thread_stack_low(void);

/* What a thread has one of, and each fiber wants for itself. */
struct wf_seat {
    int *error;          /* errno */
    void **exceptions;   /* what C++ has caught and thrown: two words; NULL without C++ */
    const void *mutexes; /* debug: the list of robust mutexes it holds; NULL if unknown */
};

/* What is there while somebody is not: two fibers do not share it. */
struct wf_belongings {
    int error;
    uint32_t strand;     /* of its forks, see strand.c; 0 if it has none */
    void *exceptions[2]; /* last, since only programs in C++ need them */
};

/* This thread: whoever was here leaves, and takes its belongings along. */
static inline void wf_seat_leave(const struct wf_seat *seat, struct wf_belongings *own)
{
    own->error = *seat->error;
    if (seat->exceptions != NULL) {
        memcpy(own->exceptions, seat->exceptions, sizeof own->exceptions);
    }
}

/* This thread: somebody comes, or comes back. */
static inline void wf_seat_take(const struct wf_seat *seat, const struct wf_belongings *own)
{
    *seat->error = own->error;
    if (seat->exceptions != NULL) {
        memcpy(seat->exceptions, own->exceptions, sizeof own->exceptions);
    }
}

/* Debug: what this thread holds that a fiber must not hold when it leaves: the name
 * of a lock. NULL: nothing, as far as that can be seen. */
const char *wf_seat_lock_held(const struct wf_seat *seat);

/* This thread's. */
struct wf_seat wf_thread_seat(void);

/* Names this thread prefix-name. Each names itself: somebody else could do it too
 * late, when the thread has ended. */
void wf_thread_set_name(const char *prefix, const char *name);

#endif
