/* SPDX-License-Identifier: MIT */
/*
 * weft/semaphore.h - a number of permits, which are acquired and released.
 *
 *     static weft_semaphore connections = WEFT_SEMAPHORE_INIT(100);
 *
 *     int err = weft_semaphore_acquire(&connections, 1, WEFT_NEVER);
 *     if (err == 0) {
 *         ...
 *         weft_semaphore_release(&connections, 1);
 *     }
 *
 * Whoever comes first is first: one that wants many permits waits until there are so many,
 * and those behind it wait for it. All zeros is a semaphore without permits.
 */
#ifndef WEFT_SEMAPHORE_H
#define WEFT_SEMAPHORE_H

#include "op.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

/* The most permits that one can have. */
#define WEFT_SEMAPHORE_MAX 0xfffffffu

typedef struct weft_semaphore {
    uint32_t word; /* not to be touched, as what follows */
    uint32_t reserved;
    uint64_t opaque[2];
} weft_semaphore;

/* A semaphore with so many permits. */
#define WEFT_SEMAPHORE_INIT(permits)                                                               \
    {                                                                                              \
        (uint32_t)(permits) << 4, 0,                                                               \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }

/*
 * Makes a semaphore with so many permits, up to WEFT_SEMAPHORE_MAX.
 *
 * Context: any thread.
 */
WEFT_API void weft_semaphore_init(weft_semaphore *semaphore, uint32_t permits);

/*
 * Acquires so many permits, all at once.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_semaphore_acquire_init().
 * Suspends: until there are so many, and all that came before have theirs; or the deadline.
 * Errors:   WEFT_ECLOSED, WEFT_ETIMEDOUT, WEFT_ECANCELED; -EINVAL: more than can ever be;
 *           -ENOMEM (on a thread's first wait). None are acquired then.
 */
WEFT_API WEFT_NODISCARD int weft_semaphore_acquire(weft_semaphore *semaphore, uint32_t permits,
                                                   weft_time deadline);

/*
 * Acquires so many permits if they are there, and nobody waits for others.
 *
 * Context: anywhere.
 * Errors:  -EAGAIN: they are not; WEFT_ECLOSED; -EINVAL.
 */
WEFT_API WEFT_NODISCARD int weft_semaphore_try_acquire(weft_semaphore *semaphore, uint32_t permits);

/*
 * Releases so many permits, or adds new ones. Aborts if there are more than
 * WEFT_SEMAPHORE_MAX then.
 *
 * Context: anywhere.
 */
WEFT_API void weft_semaphore_release(weft_semaphore *semaphore, uint32_t permits);

/*
 * Takes up to so many permits away that are there, for ever. Returns how many.
 *
 * Context: anywhere.
 */
WEFT_API uint32_t weft_semaphore_forget(weft_semaphore *semaphore, uint32_t permits);

/*
 * Closes it: who waits, and who comes later, gets WEFT_ECLOSED. Permits may still be
 * released.
 *
 * Context: anywhere.
 */
WEFT_API void weft_semaphore_close(weft_semaphore *semaphore);

/*
 * Returns how many permits are there now.
 *
 * Context: anywhere.
 */
WEFT_API uint32_t weft_semaphore_available(const weft_semaphore *semaphore);

/*
 * Prepares to acquire so many permits: the result of the future is that of
 * weft_semaphore_acquire().
 *
 * Context: any thread.
 */
WEFT_API void weft_semaphore_acquire_init(weft_op *op, weft_semaphore *semaphore, uint32_t permits);

WEFT_EXTERN_C_END

#endif
