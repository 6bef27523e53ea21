/* SPDX-License-Identifier: MIT */
/*
 * weft/shutdown.h - graceful shutdown of a service: refuse new work, drain, then cancel the
 * rest.
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
 * A zero-initialized weft_shutdown accepts work.
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
 * Registers the start of a unit of work. Each successful call is matched by a
 * weft_shutdown_leave().
 *
 * Context: any thread.
 * Errors:  WEFT_ESHUTDOWN (the shutdown was triggered; no new work is accepted).
 */
WEFT_API WEFT_NODISCARD int weft_shutdown_enter(weft_shutdown *shutdown);

/*
 * Registers the end of a unit of work. Aborts if none is in progress.
 *
 * Context: any thread.
 */
WEFT_API void weft_shutdown_leave(weft_shutdown *shutdown);

/*
 * Returns the number of units of work in progress.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_shutdown_pending(weft_shutdown *shutdown);

/*
 * Triggers the shutdown: new work is refused from now on. Wakes the callers that wait for the
 * trigger.
 *
 * Context: any thread.
 */
WEFT_API void weft_shutdown_trigger(weft_shutdown *shutdown);

/*
 * Returns whether the shutdown was triggered.
 *
 * Context: any thread.
 */
WEFT_API bool weft_shutdown_is_triggered(weft_shutdown *shutdown);

/*
 * Waits until the shutdown is triggered.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_shutdown_wait_init().
 * Suspends: until the trigger, or until the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread).
 */
WEFT_API WEFT_NODISCARD int weft_shutdown_wait(weft_shutdown *shutdown, weft_time deadline);

/*
 * Prepares a wait. The future's result is that of weft_shutdown_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_shutdown_wait_init(weft_op *op, weft_shutdown *shutdown);

/*
 * Returns the cancel token that is canceled when the remaining work must end immediately.
 *
 * Context: any thread.
 */
WEFT_API weft_token *weft_shutdown_token(weft_shutdown *shutdown);

/*
 * Triggers the shutdown and waits until all work has ended. At the deadline, cancels the
 * remaining work through the cancel token, still waits for it, and returns WEFT_ETIMEDOUT.
 *
 * Context:  fiber or plain thread; not from a registered unit of work.
 * Suspends: until all work has ended.
 * Cancel:   cancels the work, keeps waiting, and returns WEFT_ECANCELED.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED.
 */
WEFT_API int weft_shutdown_drain(weft_shutdown *shutdown, weft_time deadline);

WEFT_EXTERN_C_END

#endif
