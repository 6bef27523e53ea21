/* SPDX-License-Identifier: MIT */
/*
 * weft/once.h - one-time initialization.
 *
 *     static weft_once once;
 *
 *     err = weft_once_run(&once, load_table, NULL, WEFT_NEVER);
 *
 * The first caller runs the function while the others wait. If the function fails, the next
 * caller tries again. A zero-initialized weft_once is not done.
 */
#ifndef WEFT_ONCE_H
#define WEFT_ONCE_H

#include "op.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_once {
    uint64_t opaque[4];
} weft_once;

/*
 * Calls function(arg) unless an earlier call has succeeded. When the function returns 0, the
 * weft_once is done for good, and every caller that returns 0 sees the function's writes.
 *
 * Context:  fiber or plain thread. The function must not use the same weft_once. Aborts if it
 *           waits for it.
 * Suspends: while another caller runs its function, until the deadline passes.
 * Errors:   a nonzero result of the function, which leaves the weft_once not done;
 *           WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread).
 */
WEFT_API WEFT_NODISCARD int weft_once_run(weft_once *once, int (*function)(void *arg), void *arg,
                                          weft_time deadline);

/*
 * Prepares to wait until the initialization is done, or becomes the caller's to do. The
 * future's result is 0 (done), or 1: the caller does it and then calls weft_once_end().
 *
 * Context: any thread.
 */
WEFT_API void weft_once_begin_init(weft_op *op, weft_once *once);

/*
 * Waits until the initialization is done, or becomes the caller's to do. Returns 0 (done), or
 * 1: the caller does it and then calls weft_once_end().
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_once_begin_init().
 * Suspends: as weft_once_run().
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread).
 */
WEFT_API WEFT_NODISCARD int weft_once_begin(weft_once *once, weft_time deadline);

/*
 * Ends the caller's attempt. If is_done is false, the next caller tries again.
 *
 * Context: any thread. Aborts if no attempt is in progress.
 */
WEFT_API void weft_once_end(weft_once *once, bool is_done);

/*
 * Returns whether the initialization is done. If so, the caller sees its writes.
 *
 * Context: any thread.
 */
WEFT_API bool weft_once_is_done(const weft_once *once);

/* A pointer that is set once. Zero-initialized, it is not set. */
typedef struct weft_once_cell {
    weft_once once;
    void *value;
} weft_once_cell;

/*
 * Returns the pointer, or NULL if it is not set.
 *
 * Context: any thread.
 */
WEFT_API void *weft_once_cell_get(const weft_once_cell *cell);

/*
 * Sets the pointer, unless it is set or another caller is making it.
 *
 * Context: any thread.
 * Errors:  -EEXIST (already set), -EBUSY (another caller is making it).
 */
WEFT_API WEFT_NODISCARD int weft_once_cell_set(weft_once_cell *cell, void *value);

/*
 * Gets the pointer. If it is not set, calls make(&value, arg) to make it. If make fails, the
 * pointer stays unset, and the next caller tries again.
 *
 * Context:  fiber or plain thread. make must not use the same cell. Aborts if it waits for it.
 * Suspends: while another caller makes the pointer, until the deadline passes.
 * Errors:   those of weft_once_run(). *value is unchanged.
 */
WEFT_API WEFT_NODISCARD int weft_once_cell_get_or_make(weft_once_cell *cell,
                                                       int (*make)(void **value, void *arg),
                                                       void *arg, void **value, weft_time deadline);

WEFT_EXTERN_C_END

#endif
