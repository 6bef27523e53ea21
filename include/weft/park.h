/* SPDX-License-Identifier: MIT */
/*
 * weft/park.h - waiting at an address, to build locks and queues of one's own: as a futex,
 * for tasks and threads alike.
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

/* Should it wait? Called with a lock held: it looks at some words, and does nothing else. */
typedef bool (*weft_park_fn)(void *arg);

/*
 * Waits at an address until weft_unpark(), if must_wait(arg) says so. Nobody can unpark the
 * address between the question and the wait. must_wait may be NULL: it waits.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_park_init().
 * Suspends: until it is unparked, or the deadline.
 * Errors:   -EAGAIN: it did not have to wait; WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (on a
 *           thread's first wait).
 */
WEFT_API WEFT_NODISCARD int weft_park(const void *address, weft_park_fn must_wait, void *arg,
                                      weft_time deadline);

/*
 * Lets up to so many go on who wait at the address, those first that wait for the longest
 * time. Returns how many. What was written before is seen by them, and by the must_wait of
 * others that come later.
 *
 * Context: anywhere. The address is not read.
 */
WEFT_API size_t weft_unpark(const void *address, size_t most);

/*
 * Prepares to wait: the result of the future is that of weft_park().
 *
 * Context: any thread.
 */
WEFT_API void weft_park_init(weft_op *op, const void *address, weft_park_fn must_wait, void *arg);

WEFT_EXTERN_C_END

#endif
