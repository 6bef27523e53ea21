/* SPDX-License-Identifier: MIT */
/*
 * weft/cond.h - waiting for a change of what a mutex guards.
 *
 *     WEFT_LOCKED(&mutex) {
 *         while (queue_is_empty(&queue) && err == 0) {
 *             err = weft_cond_wait(&changed, &mutex, WEFT_NEVER);
 *         }
 *         ...
 *     }
 *
 * A wait ends when it is signalled, and not for no reason; but another one may have had the
 * mutex before, so look again. All zeros is a condition that nobody waits for.
 */
#ifndef WEFT_COND_H
#define WEFT_COND_H

#include "op.h"
#include "clock.h"
#include "mutex.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_cond {
    uint64_t opaque[3];
} weft_cond;

/*
 * Unlocks the mutex, waits until it is signalled, and locks the mutex again. Nobody can
 * signal between the first and the second unseen. It is locked again in any case.
 *
 * Context:  a fiber, or a plain thread, which holds the mutex. A body awaits a
 *           weft_cond_wait_init().
 * Suspends: until it is signalled, or the deadline; and until the mutex can be had, not for
 *           cancellation.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (on a thread's first wait).
 */
WEFT_API WEFT_NODISCARD int weft_cond_wait(weft_cond *cond, weft_mutex *mutex, weft_time deadline);

/*
 * Signals one who waits, the one that waits for the longest time.
 *
 * Context: anywhere, with the mutex or without.
 */
WEFT_API void weft_cond_signal(weft_cond *cond);

/*
 * Signals all who wait.
 *
 * Context: anywhere, with the mutex or without.
 */
WEFT_API void weft_cond_broadcast(weft_cond *cond);

/* A wait for a condition, for a body to await. */
typedef struct weft_cond_future {
    weft_future future;
    weft_mutex *mutex;
    weft_op wait; /* until it is signalled */
    weft_op lock; /* then, until the mutex can be had */
    int result;
    int stage;
} weft_cond_future;

/*
 * Prepares to wait: the result of the future is that of weft_cond_wait(). When the future is
 * awaited, the mutex must be held.
 *
 * Context: any thread.
 */
WEFT_API void weft_cond_wait_init(weft_cond_future *future, weft_cond *cond, weft_mutex *mutex);

WEFT_EXTERN_C_END

#endif
