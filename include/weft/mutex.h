/* SPDX-License-Identifier: MIT */
/*
 * weft/mutex.h - mutual exclusion for fibers, stackless tasks and threads.
 *
 *     static weft_mutex mutex;
 *
 *     WEFT_LOCKED(&mutex) {
 *         count++;
 *     }
 *
 * A zero-initialized mutex is unlocked and needs no cleanup. Waiting for it does not block the
 * worker. A task may hold it across suspension points and may resume on another worker; the
 * task is the owner, not the thread.
 *
 * Fairness: a free mutex goes to the first caller that asks for it, even if others have waited
 * longer (barging). So it changes hands without waiting for a task to be scheduled. A waiter
 * that has waited for one millisecond is served next.
 */
#ifndef WEFT_MUTEX_H
#define WEFT_MUTEX_H

#include "op.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_mutex {
    uint64_t opaque[3];
} weft_mutex;

/*
 * Locks the mutex.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_mutex_lock_init().
 * Suspends: until the mutex is free or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread). The mutex is not
 *           locked.
 */
WEFT_API WEFT_NODISCARD int weft_mutex_lock(weft_mutex *mutex, weft_time deadline);

/*
 * Locks the mutex. Never fails.
 *
 * Context:  fiber or plain thread.
 * Suspends: until the mutex is free; a cancellation does not interrupt it.
 */
WEFT_API void weft_mutex_hold(weft_mutex *mutex);

/*
 * Locks the mutex if it is free. Returns whether it did.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD bool weft_mutex_try_lock(weft_mutex *mutex);

/*
 * Unlocks the mutex. Aborts if it is not locked.
 *
 * Context: any thread; owner only.
 */
WEFT_API void weft_mutex_unlock(weft_mutex *mutex);

/*
 * Returns whether the mutex is locked, by any owner. For assertions.
 *
 * Context: any thread.
 */
WEFT_API bool weft_mutex_is_locked(const weft_mutex *mutex);

/*
 * Prepares a lock. The future's result is that of weft_mutex_lock().
 *
 * Context: any thread.
 */
WEFT_API void weft_mutex_lock_init(weft_op *op, weft_mutex *mutex);

WEFT_EXTERN_C_END

/* Guard object of WEFT_LOCKED(). */
typedef struct weft_locked {
    weft_mutex *mutex; /* NULL: the block has ended */
} weft_locked;

static inline void weft_locked_end(weft_locked *locked)
{
    if (locked->mutex != NULL) {
        weft_mutex_unlock(locked->mutex);
        locked->mutex = NULL;
    }
}

static inline weft_locked weft_locked_begin(weft_mutex *mutex)
{
    weft_locked locked = { mutex };
    weft_mutex_hold(mutex);
    return locked;
}

/*
 * Runs the following block with the mutex locked and unlocks it at the end of the block. With
 * gcc and clang the mutex is also unlocked if the block is left by break, return or goto; with
 * other compilers the block must not be left that way.
 *
 * Context:  fiber or plain thread.
 * Suspends: as weft_mutex_hold().
 */
#define WEFT_LOCKED(to_lock) WEFT_LOCKED_IN(to_lock, __LINE__)

/* Implementation of WEFT_LOCKED(). The line number gives nested blocks different names. */
#define WEFT_LOCKED_IN(to_lock, line) WEFT_LOCKED_AT(to_lock, line)
#define WEFT_LOCKED_AT(to_lock, line) WEFT_LOCKED_AS(to_lock, weft_locked_at_##line)
#if defined(__GNUC__)
#define WEFT_LOCKED_AS(to_lock, name)                                                              \
    for (weft_locked name __attribute__((cleanup(weft_locked_end))) = weft_locked_begin(to_lock);  \
         name.mutex != NULL; weft_locked_end(&name))
#else
#define WEFT_LOCKED_AS(to_lock, name)                                                              \
    for (weft_locked name = weft_locked_begin(to_lock); name.mutex != NULL; weft_locked_end(&name))
#endif

#endif
