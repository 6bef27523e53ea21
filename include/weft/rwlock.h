/* SPDX-License-Identifier: MIT */
/*
 * weft/rwlock.h - readers-writer lock: many readers or one writer.
 *
 * A zero-initialized lock is unlocked. Waiters are served in the order of their arrival,
 * consecutive readers together. While a caller waits, new readers do not join the current ones,
 * so neither readers nor writers starve. A free lock goes to the first caller that asks for it
 * (barging), but a waiter that has waited for more than a millisecond is served next.
 *
 * A reader must not lock the lock for reading again: a writer may have arrived in between, and
 * the two would deadlock.
 */
#ifndef WEFT_RWLOCK_H
#define WEFT_RWLOCK_H

#include "op.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_rwlock {
    uint64_t opaque[3];
} weft_rwlock;

/*
 * Locks for reading, shared with other readers.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_rwlock_read_init().
 * Suspends: while a writer holds the lock or waits for it, or until the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread). The lock is not
 *           held.
 */
WEFT_API WEFT_NODISCARD int weft_rwlock_read(weft_rwlock *lock, weft_time deadline);

/*
 * Locks for writing, exclusively.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_rwlock_write_init().
 * Suspends: while a reader or a writer holds the lock, or until the deadline passes.
 * Errors:   those of weft_rwlock_read().
 */
WEFT_API WEFT_NODISCARD int weft_rwlock_write(weft_rwlock *lock, weft_time deadline);

/*
 * Locks for reading if that needs no wait. Returns whether it did.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD bool weft_rwlock_try_read(weft_rwlock *lock);

/*
 * Locks for writing if that needs no wait. Returns whether it did.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD bool weft_rwlock_try_write(weft_rwlock *lock);

/*
 * Releases a read lock. Aborts if no reader holds the lock.
 *
 * Context: any thread.
 */
WEFT_API void weft_rwlock_end_read(weft_rwlock *lock);

/*
 * Releases the write lock. Aborts if no writer holds the lock.
 *
 * Context: any thread.
 */
WEFT_API void weft_rwlock_end_write(weft_rwlock *lock);

/*
 * Turns the write lock into a read lock without letting another writer in between. Admits the
 * waiting readers up to the next waiting writer.
 *
 * Context: any thread.
 */
WEFT_API void weft_rwlock_downgrade(weft_rwlock *lock);

/*
 * Prepares a read lock. The future's result is that of weft_rwlock_read().
 *
 * Context: any thread.
 */
WEFT_API void weft_rwlock_read_init(weft_op *op, weft_rwlock *lock);

/*
 * Prepares a write lock. The future's result is that of weft_rwlock_write().
 *
 * Context: any thread.
 */
WEFT_API void weft_rwlock_write_init(weft_op *op, weft_rwlock *lock);

WEFT_EXTERN_C_END

#endif
