/* SPDX-License-Identifier: MIT */
/*
 * weft/rwlock.h - a lock that many readers have at a time, or one writer.
 *
 * Who waits is served in the order of coming, readers that follow each other together: so
 * neither readers nor writers starve. A reader must not lock it for reading again, since a
 * writer may have come between. All zeros is unlocked.
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
 * Locks it for reading, together with other readers.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_rwlock_read_init().
 * Suspends: while a writer has it, or waits; until the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (on a thread's first wait). It is then
 *           not locked.
 */
WEFT_API WEFT_NODISCARD int weft_rwlock_read(weft_rwlock *lock, weft_time deadline);

/*
 * Locks it for writing, alone.
 *
 * Context:  as weft_rwlock_read(), with weft_rwlock_write_init().
 * Suspends: while anybody has it, until the deadline.
 * Errors:   as weft_rwlock_read().
 */
WEFT_API WEFT_NODISCARD int weft_rwlock_write(weft_rwlock *lock, weft_time deadline);

/*
 * Locks it for reading, if that needs no wait. True: it is locked.
 *
 * Context: anywhere.
 */
WEFT_API WEFT_NODISCARD bool weft_rwlock_try_read(weft_rwlock *lock);

/*
 * Locks it for writing, if that needs no wait. True: it is locked.
 *
 * Context: anywhere.
 */
WEFT_API WEFT_NODISCARD bool weft_rwlock_try_write(weft_rwlock *lock);

/*
 * Ends what weft_rwlock_read() began. Aborts if nobody reads.
 *
 * Context: anywhere.
 */
WEFT_API void weft_rwlock_end_read(weft_rwlock *lock);

/*
 * Ends what weft_rwlock_write() began. Aborts if nobody writes.
 *
 * Context: anywhere.
 */
WEFT_API void weft_rwlock_end_write(weft_rwlock *lock);

/*
 * Turns a writer into a reader; other writers do not come between. Readers that wait come
 * in, up to the next writer.
 *
 * Context: anywhere.
 */
WEFT_API void weft_rwlock_downgrade(weft_rwlock *lock);

/*
 * Prepares to lock it: the result of the future is that of weft_rwlock_read().
 *
 * Context: any thread.
 */
WEFT_API void weft_rwlock_read_init(weft_op *op, weft_rwlock *lock);

/*
 * Prepares to lock it: the result of the future is that of weft_rwlock_write().
 *
 * Context: any thread.
 */
WEFT_API void weft_rwlock_write_init(weft_op *op, weft_rwlock *lock);

WEFT_EXTERN_C_END

#endif
