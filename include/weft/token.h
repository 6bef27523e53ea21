/* SPDX-License-Identifier: MIT */
/*
 * weft/token.h - a word that work is to end: given down from who may say it to all who must
 * know.
 *
 *     static weft_token server;  // all zeros: not cancelled
 *
 *     weft_token request;
 *     weft_token_init(&request, &server);  // ends with the server, or before
 *     err = weft_token_await(&request, &query.future, WEFT_NEVER);
 *     weft_token_fini(&request);
 *
 *     weft_token_cancel(&server);  // any thread
 *
 * Who has a token waits for it (also in a select), looks at it, awaits something unless it is
 * cancelled, has a function called, or gives token.stop to a parallel loop. A token without
 * a parent is the root of a tree and must outlive the others in it.
 */
#ifndef WEFT_TOKEN_H
#define WEFT_TOKEN_H

#include "clock.h"
#include "op.h"
#include "stop.h"
#include "task.h"

WEFT_EXTERN_C_BEGIN

/* All zeros is a root that is not cancelled. */
typedef struct weft_token {
    weft_stop stop; /* set when it is cancelled: for weft_par_options */
    uint32_t opaque32_;
    uint64_t opaque_[11];
} weft_token;

/*
 * Prepares a token that is cancelled when its parent is, which may be now. Without a parent,
 * NULL, it is a root.
 *
 * Context: any thread.
 * Owns:    its tree has it until weft_token_fini().
 */
WEFT_API void weft_token_init(weft_token *token, weft_token *parent);

/*
 * Takes a token out of its tree. Aborts if it has children, or functions, or if somebody waits
 * for it.
 *
 * Context: any thread.
 */
WEFT_API void weft_token_fini(weft_token *token);

/*
 * Cancels a token and all below it, once: who waits for them goes on, and their functions are
 * called, here, before this returns.
 *
 * Context: anywhere.
 */
WEFT_API void weft_token_cancel(weft_token *token);

/*
 * Is it cancelled? If so, what was written before is seen.
 *
 * Context: anywhere.
 */
WEFT_API bool weft_token_is_cancelled(const weft_token *token);

/*
 * Waits until it is cancelled.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_token_wait_init().
 * Suspends: until it is cancelled, or the deadline.
 * Errors:   WEFT_ETIMEDOUT; WEFT_ECANCELED: this task was, not the token; -ENOMEM (on a
 *           thread's first wait).
 */
WEFT_API WEFT_NODISCARD int weft_token_wait(weft_token *token, weft_time deadline);

/*
 * Prepares to wait: the result of the future is that of weft_token_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_token_wait_init(weft_op *op, weft_token *token);

/*
 * Awaits a future unless the token is cancelled: then the future is cancelled and awaited.
 * Returns its result, or WEFT_ECANCELED.
 *
 * Context:  a fiber, or a plain thread. A body awaits a select of both.
 * Suspends: until the result, the deadline, or the end of the cancelled future.
 * Errors:   WEFT_ECANCELED, WEFT_ETIMEDOUT; -ENOMEM (on a thread's first wait); or the
 *           future's.
 */
WEFT_API WEFT_NODISCARD int weft_token_await(weft_token *token, weft_future *future,
                                             weft_time deadline);

/* A function that is called when a token is cancelled. Yours, in a frame or a struct; all
 * zeros is one that no token has. */
typedef struct weft_on_cancel {
    uint64_t opaque_[7];
} weft_on_cancel;

/*
 * Registers a callback: the thread that cancels the token calls function(arg). If the token
 * is already cancelled, the function is called at once, by this call. The function must not
 * wait, since a task that removes it blocks a worker meanwhile; if no other worker can resume it,
 * the removal aborts with a sentence. It may wake and cancel tasks, send without waiting, start
 * and stop timers, and add and remove callbacks, including itself.
 *
 * Context: any thread.
 * Owns:    the token has on_cancel until weft_on_cancel_remove(), which is always called.
 */
WEFT_API void weft_on_cancel_add(weft_on_cancel *on_cancel, weft_token *token,
                                 void (*function)(void *arg), void *arg);

/*
 * The same: cancels a task.
 *
 * Context: any thread.
 * Owns:    as above; and the caller's handle must live until then.
 */
WEFT_API void weft_on_cancel_add_task(weft_on_cancel *on_cancel, weft_token *token,
                                      weft_task *task);

/*
 * Removes a callback. Returns true if its function was not called and never will be; false if
 * it was called, or was not added. If the function is running on another thread, the call
 * blocks until it has returned. So when this returns, the function does not run, and on_cancel
 * may be freed.
 *
 * There are two exceptions, in which the wait would never end. Called by the function itself,
 * it returns at once. Of callbacks (functions of tokens and of timers) that remove or stop
 * each other while they run, the last one returns at once: the other functions wait for it, and
 * continue when it has returned. on_cancel may be freed then, but not what its function still
 * uses.
 *
 * Context:  any thread, and the function itself.
 * Suspends: never. It may block the thread while the function runs elsewhere.
 */
WEFT_API bool weft_on_cancel_remove(weft_on_cancel *on_cancel);

WEFT_EXTERN_C_END

#endif
