/* SPDX-License-Identifier: MIT */
/*
 * weft/cond.h - condition variables.
 *
 *     WEFT_LOCKED(&mutex) {
 *         while (queue_is_empty(&queue) && err == 0) {
 *             err = weft_cond_wait(&changed, &mutex, WEFT_NEVER);
 *         }
 *         ...
 *     }
 *
 * There are no spurious wake-ups: a wait returns 0 only when it was signaled. But another task
 * may lock the mutex between the signal and the return of the wait, so check the condition
 * again. A zero-initialized condition variable has no waiters.
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
 * Unlocks the mutex, waits for a signal, and locks the mutex again. Unlocking and starting to
 * wait are atomic: no signal in between is lost. The mutex is locked on return in every case.
 *
 * Context:  fiber or plain thread that holds the mutex. A stackless task awaits
 *           weft_cond_wait_init().
 * Suspends: until a signal arrives or the deadline passes; then until the mutex is locked,
 *           which a cancellation does not interrupt.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread).
 */
WEFT_API WEFT_NODISCARD int weft_cond_wait(weft_cond *cond, weft_mutex *mutex, weft_time deadline);

/*
 * Signals one waiter, the one that has waited longest. Does nothing if there is none.
 *
 * Context: any thread, with or without the mutex.
 */
WEFT_API void weft_cond_signal(weft_cond *cond);

/*
 * Signals all waiters.
 *
 * Context: any thread, with or without the mutex.
 */
WEFT_API void weft_cond_broadcast(weft_cond *cond);

/* A wait for a condition variable, for a stackless task to await. */
typedef struct weft_cond_future {
    weft_future future;
    weft_cond *cond;
    weft_mutex *mutex;
    weft_op wait; /* for the signal */
    weft_op lock; /* for the mutex, after that */
    int result;
    int stage;
} weft_cond_future;

/*
 * Prepares a wait. The future's result is that of weft_cond_wait(). The mutex must be held when
 * the future is first awaited, and is held when the await returns.
 *
 *     while (queue_is_empty(&queue) && err == 0) {
 *         weft_cond_wait_init(&self->wait, &changed, &mutex);
 *         WEFT_AWAIT(co, err, &self->wait.future);
 *     }
 *
 * The mutex is also held when a select with such a branch returns, whichever branch has won. So
 * the select may have to wait for the mutex, even after its deadline or with WEFT_SELECT_TRY. A
 * wait that is signaled but loses the select signals the next waiter instead.
 *
 * Context: any thread.
 */
WEFT_API void weft_cond_wait_init(weft_cond_future *future, weft_cond *cond, weft_mutex *mutex);

WEFT_EXTERN_C_END

#endif
