/* SPDX-License-Identifier: MIT */
/*
 * weft/semaphore.h - counting semaphore.
 *
 *     static weft_semaphore connections = WEFT_SEMAPHORE_INIT(100);
 *
 *     int err = weft_semaphore_acquire(&connections, 1, WEFT_NEVER);
 *     if (err == 0) {
 *         ...
 *         weft_semaphore_release(&connections, 1);
 *     }
 *
 * Permits are granted in FIFO order: a caller that wants many permits waits until enough are
 * available, and later callers wait behind it. A zero-initialized semaphore has no permits.
 */
#ifndef WEFT_SEMAPHORE_H
#define WEFT_SEMAPHORE_H

#include "op.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

/* Maximum number of permits of a semaphore. */
#define WEFT_SEMAPHORE_MAX 0xfffffffu

typedef struct weft_semaphore {
    uint32_t word; /* private, as are the fields below */
    uint32_t reserved;
    uint64_t opaque[2];
} weft_semaphore;

/* Static initializer of a semaphore with the given number of permits. */
#define WEFT_SEMAPHORE_INIT(permits)                                                               \
    {                                                                                              \
        (uint32_t)(permits) << 4, 0,                                                               \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }

/*
 * Initializes a semaphore with the given number of permits, at most WEFT_SEMAPHORE_MAX.
 *
 * Context: any thread.
 */
WEFT_API void weft_semaphore_init(weft_semaphore *semaphore, uint32_t permits);

/*
 * Acquires the given number of permits, all of them or none. An acquire of 0 permits never waits,
 * even if others do; it fails like any other one if the semaphore is closed or the caller is
 * canceled.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_semaphore_acquire_init().
 * Suspends: until enough permits are available and all earlier callers have theirs, or the
 *           deadline passes.
 * Errors:   WEFT_ECLOSED, WEFT_ETIMEDOUT, WEFT_ECANCELED, -EINVAL (more than
 *           WEFT_SEMAPHORE_MAX), -ENOMEM (first wait of a thread). No permits are acquired.
 */
WEFT_API WEFT_NODISCARD int weft_semaphore_acquire(weft_semaphore *semaphore, uint32_t permits,
                                                   weft_time deadline);

/*
 * Acquires the given number of permits if they are available and no other caller waits. 0 permits
 * are always available, as for weft_semaphore_acquire().
 *
 * Context: any thread.
 * Errors:  -EAGAIN (not available), WEFT_ECLOSED, -EINVAL (more than WEFT_SEMAPHORE_MAX).
 */
WEFT_API WEFT_NODISCARD int weft_semaphore_try_acquire(weft_semaphore *semaphore, uint32_t permits);

/*
 * Releases the given number of permits, or adds new ones. Aborts if the semaphore would then
 * have more than WEFT_SEMAPHORE_MAX.
 *
 * Context: any thread.
 */
WEFT_API void weft_semaphore_release(weft_semaphore *semaphore, uint32_t permits);

/*
 * Permanently removes up to the given number of available permits. Returns the number removed.
 *
 * Context: any thread.
 */
WEFT_API uint32_t weft_semaphore_forget(weft_semaphore *semaphore, uint32_t permits);

/*
 * Closes the semaphore: current waiters and later callers get WEFT_ECLOSED. Permits may still
 * be released.
 *
 * Context: any thread.
 */
WEFT_API void weft_semaphore_close(weft_semaphore *semaphore);

/*
 * Returns the number of permits available now.
 *
 * Context: any thread.
 */
WEFT_API uint32_t weft_semaphore_available(const weft_semaphore *semaphore);

/*
 * Prepares an acquire. The future's result is that of weft_semaphore_acquire().
 *
 * Context: any thread.
 */
WEFT_API void weft_semaphore_acquire_init(weft_op *op, weft_semaphore *semaphore, uint32_t permits);

WEFT_EXTERN_C_END

#endif
