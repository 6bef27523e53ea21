/* SPDX-License-Identifier: MIT */
/*
 * callback.h - running callbacks, and waiting for their return.
 *
 * For callbacks that user code can unregister while they run: those of timers and of cancel
 * tokens. The protocol is in callback.c.
 */
#ifndef WF_SCHED_CALLBACK_H
#define WF_SCHED_CALLBACK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct wf_task;

/* Identifies the task that runs here, which may move between threads; or, if task is NULL, the
 * thread. */
struct wf_callback_context {
    const struct wf_task *task;
    pthread_t thread;
};

/* A running callback, in the frame of its caller. The owner is the object with which it is
 * registered. The owner's lock guards the pointer through which waiters find the callback. */
struct wf_callback {
    struct wf_callback_context runner; /* constant */
    bool is_awaited;                   /* under the owner's lock */
};

/* A context that waits for a callback to return, in the waiter's frame. */
struct wf_callback_wait {
    struct wf_list link;                /* under the graph's lock, like the next two */
    const struct wf_callback *callback; /* has not returned while the wait is linked */
    struct wf_callback_context waiter;
    _Atomic(uint32_t) is_over; /* the caller of the callback sets it */
};

/* The caller of a callback, before the call: initializes the record. */
void wf_callback_begin(struct wf_callback *callback);

/*
 * Under the owner's lock, which ensures that the callback has not returned: prepares to wait
 * for it. Returns false if the caller must not wait: it is called by the callback itself, or by
 * one that this callback waits for. Aborts, naming the call, if the callback has been suspended
 * and only this thread could resume it.
 */
bool wf_callback_expect(struct wf_callback *callback, struct wf_callback_wait *wait,
                        const char *call);

/* After wf_callback_expect(), without the lock: blocks the thread until the callback has
 * returned. */
void wf_callback_await(struct wf_callback_wait *wait);

/* The caller of a callback, after the call, once waiters cannot find it any more: ends their
 * waits. */
void wf_callback_end(struct wf_callback *callback);

#endif
