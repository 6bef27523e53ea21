/* SPDX-License-Identifier: MIT */
/*
 * weft/mutex.h - a lock that one holder has at a time.
 *
 *     static weft_mutex mutex;
 *
 *     WEFT_LOCKED(&mutex) {
 *         count++;
 *     }
 *
 * Fibers, stackless tasks and plain threads may share one; those who wait for it do not
 * keep their worker. It may be held across waits, and a fiber that moves to another worker
 * meanwhile still holds it. It is all zeros at first, and needs no end.
 *
 * Who asks while it is free gets it, also before others that wait: so it is handed on
 * without waiting for a task to run. But one that has waited for a millisecond is next.
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
 * Context:  a fiber, or a plain thread. A body awaits a weft_mutex_lock_init().
 * Suspends: while others hold it, until the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (on a thread's first wait). It is then
 *           not locked.
 */
WEFT_API WEFT_NODISCARD int weft_mutex_lock(weft_mutex *mutex, weft_time deadline);

/*
 * Locks the mutex, and does not give up.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: while others hold it; not for cancellation.
 */
WEFT_API void weft_mutex_hold(weft_mutex *mutex);

/*
 * Locks the mutex if nobody has it. True: it is locked.
 *
 * Context: anywhere.
 */
WEFT_API WEFT_NODISCARD bool weft_mutex_try_lock(weft_mutex *mutex);

/*
 * Unlocks the mutex, for who has locked it. Aborts if it is not locked.
 *
 * Context: anywhere.
 */
WEFT_API void weft_mutex_unlock(weft_mutex *mutex);

/*
 * Is it locked, by anybody? For assertions.
 *
 * Context: anywhere.
 */
WEFT_API bool weft_mutex_is_locked(const weft_mutex *mutex);

/*
 * Prepares to lock it: the result of the future is that of weft_mutex_lock().
 *
 * Context: any thread.
 */
WEFT_API void weft_mutex_lock_init(weft_op *op, weft_mutex *mutex);

WEFT_EXTERN_C_END

/* What WEFT_LOCKED() holds. */
typedef struct weft_locked {
    weft_mutex *mutex; /* NULL: the block is over */
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
 * Runs the block that follows with the mutex held, and unlocks it behind the block. With
 * gcc and clang also if the block is left by break, return or goto; elsewhere it must not
 * be.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: as weft_mutex_hold().
 */
#define WEFT_LOCKED(to_lock) WEFT_LOCKED_IN(to_lock, __LINE__)

/* What follows is how. Blocks in each other have different names. */
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
