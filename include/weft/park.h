/* SPDX-License-Identifier: MIT */
/*
 * weft/park.h - parking lot: wait on an address, like a futex, for tasks and threads.
 *
 * A building block for locks and queues of your own:
 *
 *     while (!try_to_take(&word)) {
 *         int err = weft_park(&word, is_taken, &word, WEFT_NEVER);
 *         if (err != 0 && err != -EAGAIN) {
 *             return err;
 *         }
 *     }
 *
 *     give_back(&word);
 *     weft_unpark(&word, 1);
 */
#ifndef WEFT_PARK_H
#define WEFT_PARK_H

#include "op.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

/* Returns whether the caller must wait. Called with a lock held: it may read memory and must do
 * nothing else. */
typedef bool (*weft_park_fn)(void *arg);

/*
 * Waits on an address until weft_unpark(), if must_wait(arg) returns true. The check and the
 * start of the wait are atomic with respect to weft_unpark(). If must_wait is NULL, always
 * waits.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_park_init().
 * Suspends: until it is unparked or the deadline passes.
 * Errors:   -EAGAIN (must_wait returned false), WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first
 *           wait of a thread).
 */
WEFT_API WEFT_NODISCARD int weft_park(const void *address, weft_park_fn must_wait, void *arg,
                                      weft_time deadline);

/*
 * Wakes up to most waiters on the address, those that have waited longest first. Returns the
 * number woken. They, and later calls of must_wait, see all writes made before this call.
 *
 * Context: any thread. The address is not dereferenced.
 */
WEFT_API size_t weft_unpark(const void *address, size_t most);

/*
 * Prepares a wait. The future's result is that of weft_park().
 *
 * Context: any thread.
 */
WEFT_API void weft_park_init(weft_op *op, const void *address, weft_park_fn must_wait, void *arg);

WEFT_EXTERN_C_END

#endif
