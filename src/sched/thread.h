/* SPDX-License-Identifier: MIT */
/*
 * thread.h - plain threads: how they wait, and how the runtime's threads are started.
 *
 * A plain thread waits through a task of its own, whose "schedule" is a futex wake. So a thread
 * can wait for everything that a task can wait for.
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
    struct wf_task *waiter;       /* its own task; holds a reference */
    struct wf_task *running;      /* the blocking job that runs here, or NULL */
    struct weft_runtime *runtime; /* of the blocking job that runs here */
    struct wf_sched *sched;       /* scheduler of that job */
    unsigned waits;               /* weft_await() calls in progress: 0 or 1 */
    uint32_t budget;              /* ready operations left in this poll of a future */
    void **locals;                /* see local.c; NULL if it has none */
    struct wf_guest *guest;       /* see guest.c; NULL unless it is an external thread */
    char *stack_low;              /* NULL: not determined yet */
    const void *job_frame;        /* above the frames of the blocking job that runs here, or NULL */
    _Atomic(uint32_t) open;       /* open objects in frames of the job: frame.h */
};

/* Returns the record of this thread, which is made at the first call. NULL if there is no
 * memory. */
struct wf_thread *wf_thread_self(void);

/* Returns the record of this thread, or NULL if there is none yet. */
struct wf_thread *wf_thread_known(void);

/* Any thread, before a runtime is created. Returns -EAGAIN if the process has no
 * thread-specific keys left for the library. */
int wf_thread_prepare(void);

/* Returns the task that a future polled here must wake: the current task on a worker, the
 * thread's own task inside weft_await(). Borrowed. */
struct wf_task *wf_thread_waiter(void);

/* In the poll of a future that is pending and will wake this task: aborts if another task polls
 * it. */
void wf_thread_must_await(const struct wf_task *waiter);

/* Returns the task that runs here: the current task, or the blocking job. NULL on other
 * threads. Borrowed. */
struct wf_task *wf_thread_running(void);

/* Returns the scheduler of this worker or blocking job. Aborts, naming the call, if there is
 * none. */
struct wf_sched *wf_thread_must_sched(const char *call);

/* Aborts if this is a worker, which must not block. */
void wf_thread_must_be_plain(const char *call, const char *instead);

/* Returns the task whose shield applies to a future polled here: the waiter inside
 * weft_await(), else the task that runs here. NULL if there is neither. */
struct wf_task *wf_thread_shielded(void);

/* On a plain thread, whose waiter will be woken: sleeps until then. */
void wf_thread_suspend(struct wf_thread *self);

/* Same as wf_await_enter(), off the workers: WEFT_ECANCELED if the blocking job that runs here,
 * or the fiber in weft_block_in_place(), is canceled. Aborts inside the poll of a future. */
int wf_thread_enter(const char *call);

/* Same as weft_await(), on a plain thread, after wf_thread_enter(). */
int wf_thread_await(weft_future *future, weft_time deadline);

/* Returns whether the thread may take a ready result without wf_thread_enter(). A blocking job
 * may not, since it may be canceled. */
static inline bool wf_thread_may_take(const struct wf_thread *self)
{
    return self->waits == 0 && self->running == NULL;
}

/* Second part of wf_thread_await(), for a future that is pending and will wake the thread's
 * task. */
int wf_thread_await_pending(struct wf_thread *self, weft_future *future, weft_time deadline);

/* Starts a thread that gets no asynchronous signals. Returns 0 or -EAGAIN. */
int wf_thread_start(pthread_t *thread, void *(*main_fn)(void *arg), void *arg);

/* Returns the program's signal mask here: the thread's own, or, on a worker, which blocks more
 * signals, the mask of the thread that created the runtime. */
void wf_thread_signals(sigset_t *signals);

/* On a thread started by wf_thread_start(): sets this signal mask, unless the program has
 * changed the initial one. Async-signal-safe. */
void wf_thread_unblock_signals(const sigset_t *signals);

/* A thread of the runtime, at its beginning (true) and end (false): aborts with a message if
 * the thread ends in between, by pthread_exit() or cancellation. Its tasks would never end. */
void wf_thread_must_return(bool must);

/* Returns the lowest address of this thread's stack, or NULL if it is not known. */
char *wf_thread_stack_low(void);

/* Thread state of which each fiber needs its own copy. */
struct wf_seat {
    int *error;          /* errno */
    void **exceptions;   /* caught and thrown C++ exceptions: two words; NULL without C++ */
    const void *mutexes; /* debug: list of robust mutexes that it holds; NULL if unknown */
};

/* Thread state saved while a fiber is suspended. */
struct wf_belongings {
    int error;
    uint32_t strand;     /* index of its fork context, see strand.c; 0 if it has none */
    void *exceptions[2]; /* last, since only C++ programs need them */
};

/* Saves the thread state of a fiber that leaves this thread. */
static inline void wf_seat_leave(const struct wf_seat *seat, struct wf_belongings *own)
{
    own->error = *seat->error;
    if (seat->exceptions != NULL) {
        memcpy(own->exceptions, seat->exceptions, sizeof own->exceptions);
    }
}

/* Restores the thread state of a fiber that arrives on this thread. */
static inline void wf_seat_take(const struct wf_seat *seat, const struct wf_belongings *own)
{
    *seat->error = own->error;
    if (seat->exceptions != NULL) {
        memcpy(seat->exceptions, own->exceptions, sizeof own->exceptions);
    }
}

/* Debug: returns the name of a lock that this thread holds and a fiber must not hold when it
 * leaves. NULL if none is known to be held. */
const char *wf_seat_lock_held(const struct wf_seat *seat);

/* Returns this thread's state pointers. */
struct wf_seat wf_thread_seat(void);

/* Names this thread prefix-name. Each thread names itself: another thread might do so too late,
 * when it has ended. */
void wf_thread_set_name(const char *prefix, const char *name);

#endif
