/* SPDX-License-Identifier: MIT */
/*
 * weft/token.h - cancel tokens: canceling a token cancels every token below it.
 *
 *     static weft_token server;  // zero-initialized: not canceled
 *
 *     weft_token request;
 *     weft_token_init(&request, &server);  // canceled with the server, or earlier
 *     err = weft_token_await(&request, &query.future, WEFT_NEVER);
 *     weft_token_fini(&request);
 *
 *     weft_token_cancel(&server);  // any thread
 *
 * The holder of a cancel token can wait for it (also in a select), check it, await a future
 * until it is canceled, register a callback, or pass token.stop to a parallel loop. A token
 * without a parent is the root of a tree and must outlive all other tokens in it.
 */
#ifndef WEFT_TOKEN_H
#define WEFT_TOKEN_H

#include "clock.h"
#include "op.h"
#include "stop.h"
#include "task.h"

WEFT_EXTERN_C_BEGIN

/* A cancel token. Zero-initialized, it is a root that is not canceled. */
typedef struct weft_token {
    weft_stop stop; /* cancel flag, set on cancel: for weft_par_options */
    uint32_t opaque32_;
    uint64_t opaque_[11];
} weft_token;

/*
 * Initializes a cancel token that is canceled together with its parent; if the parent is
 * canceled already, so is the token. If parent is NULL, the token is a root.
 *
 * Context: any thread.
 * Owns:    the tree refers to the token until weft_token_fini().
 */
WEFT_API void weft_token_init(weft_token *token, weft_token *parent);

/*
 * Removes a cancel token from its tree. Aborts if it has children, callbacks or waiters.
 *
 * Context: any thread.
 */
WEFT_API void weft_token_fini(weft_token *token);

/*
 * Cancels the cancel token and all its descendants. Wakes their waiters and runs their
 * callbacks before it returns. Does nothing if the token is already canceled.
 *
 * Context: any thread.
 */
WEFT_API void weft_token_cancel(weft_token *token);

/*
 * Returns whether the cancel token is canceled. If so, the caller sees all writes made before
 * the cancel.
 *
 * Context: any thread.
 */
WEFT_API bool weft_token_is_cancelled(const weft_token *token);

/*
 * Waits until the cancel token is canceled.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_token_wait_init().
 * Suspends: until the token is canceled or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED (the calling task was canceled, not the token),
 *           -ENOMEM (first wait of a thread).
 */
WEFT_API WEFT_NODISCARD int weft_token_wait(weft_token *token, weft_time deadline);

/*
 * Prepares a wait. The future's result is that of weft_token_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_token_wait_init(weft_op *op, weft_token *token);

/*
 * Awaits a future until the cancel token is canceled. In that case the future is canceled and
 * awaited. Returns the future's result, or WEFT_ECANCELED.
 *
 * Context:  fiber or plain thread. A stackless task awaits a select of both.
 * Suspends: until the future has a result, the deadline passes, or the canceled future has
 *           ended.
 * Errors:   WEFT_ECANCELED, WEFT_ETIMEDOUT, -ENOMEM (first wait of a thread), or the future's.
 */
WEFT_API WEFT_NODISCARD int weft_token_await(weft_token *token, weft_future *future,
                                             weft_time deadline);

/* A callback that runs when a cancel token is canceled. The caller provides its storage, in a
 * stack frame or a struct. Zero-initialized, it is not registered. */
typedef struct weft_on_cancel {
    uint64_t opaque_[7];
} weft_on_cancel;

/*
 * Registers a callback: the thread that cancels the token calls function(arg). If the token is
 * already canceled, this call runs the function immediately. The function must not wait: a task
 * that removes the callback blocks its worker until the function returns, and if no other
 * worker can resume the function, the removal aborts with a message. The function may wake and
 * cancel tasks, send without waiting, start and stop timers, and add and remove callbacks,
 * including itself.
 *
 * Context: any thread.
 * Owns:    the token refers to on_cancel until weft_on_cancel_remove(), which must always be
 *          called.
 */
WEFT_API void weft_on_cancel_add(weft_on_cancel *on_cancel, weft_token *token,
                                 void (*function)(void *arg), void *arg);

/*
 * Same as weft_on_cancel_add(), with a callback that cancels a task.
 *
 * Context: any thread.
 * Owns:    as weft_on_cancel_add(); the caller's task handle must stay valid until the callback
 *          is removed.
 */
WEFT_API void weft_on_cancel_add_task(weft_on_cancel *on_cancel, weft_token *token,
                                      weft_task *task);

/*
 * Removes a callback. Returns true if its function was not called and never will be; false if
 * it was called, or was not registered. If the function is running on another thread, blocks
 * until it has returned. So on return the function is not running, and on_cancel may be freed.
 *
 * In two cases waiting would deadlock. A call from the function itself returns immediately. If
 * callbacks (of tokens and of timers) remove or stop each other while they run, the last of
 * these calls returns immediately; the other callbacks wait for it and continue when it has
 * returned. on_cancel may be freed then, but not the data that its function still uses.
 *
 * Context:  any thread, and the function itself.
 * Suspends: never. It may block the thread while the function runs elsewhere.
 */
WEFT_API bool weft_on_cancel_remove(weft_on_cancel *on_cancel);

WEFT_EXTERN_C_END

#endif
