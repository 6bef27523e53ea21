/* SPDX-License-Identifier: MIT */
/*
 * weft/scope.h - structured concurrency: a scope waits for its tasks before it ends.
 *
 *     int err = 0;
 *     WEFT_SCOPE(scope, NULL, &err) {
 *         for (size_t i = 0; err == 0 && i < count; i++) {
 *             err = weft_scope_go(scope, fetch, &pages[i]);
 *         }
 *     }
 *
 * After the block all children have ended, no matter how it was left. So children may use
 * variables of the enclosing frame. err is the error of the block or, if it has none, that of the
 * child that failed first.
 *
 * The first child that fails (a negative result) cancels the others, unless the scope is
 * supervised. All children are canceled, and no new ones are admitted, when the scope's
 * deadline passes, when its cancel token is canceled, or when the task that waits for the scope
 * is canceled. A deadline takes effect when it passes, whatever the owner of the scope does then,
 * also on a plain thread. Cancellation is a request: the scope always waits until its children
 * have ended.
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

/* Options of a scope. Zero fields mean the default; NULL options mean all defaults. */
typedef struct weft_scope_options {
    weft_time deadline;    /* cancels the scope; 0 or WEFT_NEVER: none */
    size_t limit;          /* children at the same time; 0: no limit */
    weft_token *token;     /* cancels the scope */
    weft_runtime *runtime; /* of the children; NULL: the current one */
    bool is_supervised;    /* a failing child does not cancel the others */
} weft_scope_options;

/* A scope, in the stack frame or the task state of its owner. */
typedef struct weft_scope {
    uint64_t opaque_[52];
} weft_scope;

/*
 * Begins a scope.
 *
 * Context: any task or blocking job, or plain thread. Outside a runtime, options->runtime must
 *          be set.
 * Owns:    the scope must stay in place until weft_scope_end() has returned. A task that returns
 *          with an open scope in its frame or its state aborts.
 */
WEFT_API void weft_scope_begin(weft_scope *scope, const weft_scope_options *options);

/*
 * Starts a fiber as a child of the scope. arg is not copied.
 *
 * Context:  fiber or plain thread; only the owner of the scope and its children. A stackless
 *           task uses weft_scope_try_go().
 * Suspends: while the number of children is at the scope's limit.
 * Errors:   WEFT_ECANCELED (the calling task or the scope is canceled, including by the scope's
 *           deadline); -EINVAL (no function); -ENOMEM, WEFT_ESHUTDOWN, -EAGAIN as weft_go(). The
 *           function will not be called.
 */
WEFT_API WEFT_NODISCARD int weft_scope_go(weft_scope *scope, int (*function)(void *arg), void *arg);

/*
 * Same as weft_scope_go(), with the stack size, name and worker of a weft_fiber_spec. Its
 * arg_size must be 0.
 *
 * Context:  as weft_scope_go().
 * Suspends: as weft_scope_go().
 * Errors:   those of weft_scope_go() and weft_go_with(); -EINVAL (arg_size is not 0).
 */
WEFT_API WEFT_NODISCARD int weft_scope_go_with(weft_scope *scope, const weft_fiber_spec *spec);

/*
 * Same as weft_scope_go(), without waiting.
 *
 * Context: any thread; only the owner of the scope and its children.
 * Errors:  those of weft_scope_go(); -EAGAIN also if the number of children is at the scope's
 *          limit.
 */
WEFT_API WEFT_NODISCARD int weft_scope_try_go(weft_scope *scope, int (*function)(void *arg),
                                              void *arg);

/*
 * Starts a stackless task as a child of the scope, without waiting. Its state is not copied.
 *
 * Context: as weft_scope_try_go().
 * Errors:  those of weft_scope_try_go().
 */
WEFT_API WEFT_NODISCARD int weft_scope_spawn(weft_scope *scope, weft_body_fn body, void *state);

/*
 * Prepares to wait until a child can be started. The future's result is 0, when the scope is
 * below its limit or is canceled.
 *
 * Context: any thread.
 */
WEFT_API void weft_scope_room_init(weft_op *op, weft_scope *scope);

/*
 * Cancels the scope: cancels all its children and refuses new ones.
 *
 * Context: any thread, until the scope has ended.
 */
WEFT_API void weft_scope_cancel(weft_scope *scope);

/*
 * Returns the scope's cancel token. Canceling the token cancels the scope and vice versa. A
 * block can wait for it in order to stop early.
 *
 * Context: any thread; only the owner of the scope and its children.
 */
WEFT_API weft_token *weft_scope_token(weft_scope *scope);

/*
 * Returns the number of children that have not ended.
 *
 * Context: any thread; only the owner of the scope and its children.
 */
WEFT_API size_t weft_scope_children(weft_scope *scope);

/*
 * Ends a scope: waits for all children. Returns the error of the child that failed first;
 * otherwise WEFT_ETIMEDOUT if the deadline passed before the scope ended, WEFT_ECANCELED if the
 * scope was canceled for another reason, or 0. A child that returns WEFT_ECANCELED after the scope
 * was canceled has not failed. A scope whose calling task is canceled counts as canceled, even if
 * it has no children, so that a loop over scopes ends.
 *
 * Context:  fiber or plain thread; not a child. A stackless task awaits a weft_scope_future.
 * Suspends: until all children have ended.
 * Cancel:   cancels the scope and keeps waiting.
 */
WEFT_API int weft_scope_end(weft_scope *scope);

/*
 * Same as weft_scope_end(), but cancels the children that are still running at the deadline.
 * Returns WEFT_ETIMEDOUT if there were any and no child has failed.
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
 * Calls body(scope, arg) in a scope of its own and ends the scope. In plain C11 this is the way
 * to have a scope that cannot be left without waiting. If body fails, the scope is canceled.
 * Returns the error of body, even if a child failed before; or, if body returned 0 or more, the
 * result of weft_scope_end(). If body returned WEFT_ECANCELED, an error of a child or the
 * WEFT_ETIMEDOUT of the scope takes precedence, since that is usually why body was canceled.
 *
 * Context:  fiber or plain thread. Outside a runtime, options->runtime must be set.
 * Suspends: until all children have ended.
 */
WEFT_API WEFT_NODISCARD int weft_scope_run(int (*body)(weft_scope *scope, void *arg), void *arg,
                                           const weft_scope_options *options);

/* State of a WEFT_SCOPE() block. */
typedef struct weft_scope_block {
    weft_scope scope;
    const weft_scope_options *options;
    int *result;
    int stage; /* 0: before, 1: inside, 2: after the block */
} weft_scope_block;

/*
 * Begins the scope of a block, once. Called by WEFT_SCOPE().
 *
 * Context: as weft_scope_run().
 */
WEFT_API bool weft_scope_block_enter(weft_scope_block *block);

/*
 * Ends the scope of a block, once. Called by WEFT_SCOPE().
 *
 * Context: as weft_scope_end().
 */
WEFT_API void weft_scope_block_leave(weft_scope_block *block);

WEFT_EXTERN_C_END

/*
 * Runs the following block in a scope; name is a weft_scope pointer. After the block all
 * children have ended, even if it was left by break, and with gcc and clang also by return or
 * goto. With other compilers the block must not be left by return or goto; weft_scope_run() has
 * no such restriction. err points to an int that is 0 at first. If the block stores an error in
 * it, the scope is canceled. Afterwards *err is the error of the block, or the result of
 * weft_scope_end(), with the precedence of weft_scope_run().
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
