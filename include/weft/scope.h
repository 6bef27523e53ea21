/* SPDX-License-Identifier: MIT */
/*
 * weft/scope.h - tasks that end before the block does that has started them.
 *
 *     int err = 0;
 *     WEFT_SCOPE(scope, NULL, &err) {
 *         for (size_t i = 0; err == 0 && i < count; i++) {
 *             err = weft_scope_go(scope, fetch, &pages[i]);
 *         }
 *     }
 *
 * Behind the block all children have ended, whatever has happened, and err is the first error
 * of the block or of a child. So children may use what is in the frame.
 *
 * The first child that fails, with a result below 0, cancels the others, unless the scope is
 * supervised. At its deadline, when its token is cancelled, and when the task that waits for
 * it is, all children are cancelled; and nobody comes in any more. A cancel is a request: the
 * scope always waits until they have ended.
 */
#ifndef WEFT_SCOPE_H
#define WEFT_SCOPE_H

#include "clock.h"
#include "fiber.h"
#include "future.h"
#include "op.h"
#include "runtime.h"
#include "token.h"

WEFT_EXTERN_C_BEGIN

/* How a scope behaves. Zero is a default everywhere; and so is NULL for all of it. */
typedef struct weft_scope_options {
    weft_time deadline;    /* cancels it; 0 or WEFT_NEVER: none */
    size_t limit;          /* of children at once; 0: none */
    weft_token *token;     /* cancels it */
    weft_runtime *runtime; /* of the children; NULL: the current one */
    bool is_supervised;    /* a child that fails leaves the others alone */
} weft_scope_options;

/* In the frame, or the state, of who begins it. */
typedef struct weft_scope {
    uint64_t opaque_[52];
} weft_scope;

/*
 * Begins a scope.
 *
 * Context: a task, a blocking job, or a plain thread (with options->runtime).
 * Owns:    the scope stays in place until it has ended: weft_scope_end(). A task that returns with
 *          an open scope in its frame or its state aborts.
 */
WEFT_API void weft_scope_begin(weft_scope *scope, const weft_scope_options *options);

/*
 * Starts a fiber as a child. arg is not copied.
 *
 * Context:  a fiber, or a plain thread; inside the scope: its owner, or a child. A stackless
 *           task uses weft_scope_try_go().
 * Suspends: while the scope has as many children as its limit allows.
 * Errors:   WEFT_ECANCELED: the calling task is cancelled, or the scope is, also by its deadline;
 *           -ENOMEM, WEFT_ESHUTDOWN, -EAGAIN as weft_go(). The function will not be called.
 */
WEFT_API WEFT_NODISCARD int weft_scope_go(weft_scope *scope, int (*function)(void *arg), void *arg);

/*
 * The same with the stack, name or worker of a weft_fiber_spec, whose arg_size is 0.
 *
 * Context:  as weft_scope_go().
 * Suspends: as weft_scope_go().
 * Errors:   as weft_scope_go() and weft_go_with(); -EINVAL: the argument is to be copied.
 */
WEFT_API WEFT_NODISCARD int weft_scope_go_with(weft_scope *scope, const weft_fiber_spec *spec);

/*
 * The same without waiting.
 *
 * Context: inside the scope.
 * Errors:  as weft_scope_go(); -EAGAIN also if the scope has as many children as its limit
 *          allows.
 */
WEFT_API WEFT_NODISCARD int weft_scope_try_go(weft_scope *scope, int (*function)(void *arg),
                                              void *arg);

/*
 * Starts a stackless child, without a wait. Its state is not copied.
 *
 * Context: as weft_scope_try_go().
 * Errors:  as weft_scope_try_go().
 */
WEFT_API WEFT_NODISCARD int weft_scope_spawn(weft_scope *scope, weft_body_fn body, void *state);

/*
 * Prepares to wait until a child could be started: the future gives 0 when the scope is below
 * its limit, or is cancelled.
 *
 * Context: any thread.
 */
WEFT_API void weft_scope_room_init(weft_op *op, weft_scope *scope);

/*
 * Cancels the scope: all its children, and whom they would start.
 *
 * Context: any thread, while the scope has not ended.
 */
WEFT_API void weft_scope_cancel(weft_scope *scope);

/*
 * The token of the scope, which is cancelled with it, and whose cancel cancels it. Wait for it
 * to leave a block early.
 *
 * Context: inside the scope.
 */
WEFT_API weft_token *weft_scope_token(weft_scope *scope);

/*
 * Returns how many children have not ended.
 *
 * Context: inside the scope.
 */
WEFT_API size_t weft_scope_children(weft_scope *scope);

/*
 * Ends a scope: waits for all children. Returns the first error of a child; else
 * WEFT_ETIMEDOUT if its deadline has cancelled it, WEFT_ECANCELED if anything else has, or 0. A
 * scope whose calling task is canceled counts as canceled, also without children: a loop over
 * scopes ends.
 *
 * Context:  a fiber, or a plain thread; not a child. A body awaits a weft_scope_future.
 * Suspends: until all have ended.
 * Cancel:   cancels the scope, and goes on waiting.
 */
WEFT_API int weft_scope_end(weft_scope *scope);

/*
 * The same: waits for all children until the deadline, and cancels then those that are left.
 * WEFT_ETIMEDOUT if there were some.
 *
 * Context:  as weft_scope_end().
 * Suspends: as weft_scope_end().
 * Cancel:   as weft_scope_end().
 */
WEFT_API int weft_scope_drain(weft_scope *scope, weft_time deadline);

/* The end of a scope as a future. */
typedef struct weft_scope_future {
    weft_future future;
    weft_scope *scope;
    weft_op ended;
    bool is_over;
} weft_scope_future;

/*
 * Prepares to end a scope. The future's result is that of weft_scope_end(). An await in a canceled
 * task cancels the children and waits for them, as weft_scope_end() does.
 *
 * Context: any thread.
 */
WEFT_API void weft_scope_end_init(weft_scope_future *future, weft_scope *scope);

/*
 * Calls body(scope, arg) in a scope of its own, and ends that: in plain C11 the way to a scope
 * that cannot be left without waiting. If the body fails, the scope is cancelled. Returns the
 * error of the body, or what weft_scope_end() returns.
 *
 * Context:  a fiber, or a plain thread (with options->runtime).
 * Suspends: until all have ended.
 */
WEFT_API WEFT_NODISCARD int weft_scope_run(int (*body)(weft_scope *scope, void *arg), void *arg,
                                           const weft_scope_options *options);

/* What WEFT_SCOPE() holds. */
typedef struct weft_scope_block {
    weft_scope scope;
    const weft_scope_options *options;
    int *result;
    int stage; /* 0: before, 1: in the block, 2: behind it */
} weft_scope_block;

/*
 * Begins the scope of a block, once; WEFT_SCOPE() calls it.
 *
 * Context: as weft_scope_run().
 */
WEFT_API bool weft_scope_block_enter(weft_scope_block *block);

/*
 * Ends the scope of a block, once; WEFT_SCOPE() calls it.
 *
 * Context: as weft_scope_end().
 */
WEFT_API void weft_scope_block_leave(weft_scope_block *block);

WEFT_EXTERN_C_END

/*
 * Runs the block that follows in a scope of this name, a weft_scope pointer. Behind it all
 * children have ended, also if it is left by break; with gcc and clang also by return or goto,
 * elsewhere it must not be: weft_scope_run() has no such condition. *err, an int that is 0 at
 * first, is then the error that the block has put there, for which the scope was cancelled; or
 * what weft_scope_end() gives.
 *
 * Context:  as weft_scope_run().
 * Suspends: as weft_scope_run().
 */
#if defined(__GNUC__)
#define WEFT_SCOPE(name, options, err)                                                             \
    for (weft_scope_block name##_block_                                                            \
         __attribute__((cleanup(weft_scope_block_leave))) = { { { 0 } }, options, err, 0 };        \
         weft_scope_block_enter(&name##_block_); weft_scope_block_leave(&name##_block_))           \
        for (weft_scope *name = &name##_block_.scope; name != NULL; name = NULL)
#else
#define WEFT_SCOPE(name, options, err)                                                             \
    for (weft_scope_block name##_block_ = { { { 0 } }, options, err, 0 };                          \
         weft_scope_block_enter(&name##_block_); weft_scope_block_leave(&name##_block_))           \
        for (weft_scope *name = &name##_block_.scope; name != NULL; name = NULL)
#endif

#endif
