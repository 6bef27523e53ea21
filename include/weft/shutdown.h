/* SPDX-License-Identifier: MIT */
/*
 * weft/shutdown.h - ending a service: take nothing new, finish what is under way, and cancel
 * what takes too long.
 *
 *     static weft_shutdown service;
 *
 *     weft_shutdown_wait_init(&stop, &service);  // in the select that accepts
 *
 *     err = weft_shutdown_enter(&service);       // WEFT_ESHUTDOWN: no more requests
 *     if (err == 0) {
 *         serve(request, weft_shutdown_token(&service));
 *         weft_shutdown_leave(&service);
 *     }
 *
 *     err = weft_shutdown_drain(&service, weft_after(10 * WEFT_S));
 *
 * All zeros is a service that is open.
 */
#ifndef WEFT_SHUTDOWN_H
#define WEFT_SHUTDOWN_H

#include "clock.h"
#include "op.h"
#include "token.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_shutdown {
    uint64_t opaque_[6];
    weft_token token;
} weft_shutdown;

/*
 * A piece of work begins. Each that has begun ends with weft_shutdown_leave().
 *
 * Context: anywhere.
 * Errors:  WEFT_ESHUTDOWN: nothing new is taken.
 */
WEFT_API WEFT_NODISCARD int weft_shutdown_enter(weft_shutdown *shutdown);

/*
 * A piece of work ends. Aborts if none is under way.
 *
 * Context: anywhere.
 */
WEFT_API void weft_shutdown_leave(weft_shutdown *shutdown);

/*
 * Returns how many pieces of work are under way.
 *
 * Context: anywhere.
 */
WEFT_API size_t weft_shutdown_pending(weft_shutdown *shutdown);

/*
 * From now on nothing new is taken; who waits for that goes on.
 *
 * Context: anywhere.
 */
WEFT_API void weft_shutdown_trigger(weft_shutdown *shutdown);

/*
 * Has somebody triggered it?
 *
 * Context: anywhere.
 */
WEFT_API bool weft_shutdown_is_triggered(weft_shutdown *shutdown);

/*
 * Waits until somebody triggers it.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_shutdown_wait_init().
 * Suspends: until then, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (on a thread's first wait).
 */
WEFT_API WEFT_NODISCARD int weft_shutdown_wait(weft_shutdown *shutdown, weft_time deadline);

/*
 * Prepares to wait: the result of the future is that of weft_shutdown_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_shutdown_wait_init(weft_op *op, weft_shutdown *shutdown);

/*
 * The token that is cancelled when work has to end at once.
 *
 * Context: any thread.
 */
WEFT_API weft_token *weft_shutdown_token(weft_shutdown *shutdown);

/*
 * Triggers it, and waits until all work has ended. What has not at the deadline is cancelled,
 * by the token, and waited for: WEFT_ETIMEDOUT.
 *
 * Context:  a fiber, or a plain thread; not a piece of the work.
 * Suspends: until all work has ended.
 * Cancel:   cancels the work, goes on waiting, and gives WEFT_ECANCELED.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED.
 */
WEFT_API int weft_shutdown_drain(weft_shutdown *shutdown, weft_time deadline);

WEFT_EXTERN_C_END

#endif
