/* SPDX-License-Identifier: MIT */
/*
 * weft/once.h - something that is done once, by whoever needs it first.
 *
 *     static weft_once once;
 *
 *     err = weft_once_run(&once, load_table, NULL, WEFT_NEVER);
 *
 * The others wait meanwhile. If it fails, the next one tries again. All zeros is not done
 * yet.
 */
#ifndef WEFT_ONCE_H
#define WEFT_ONCE_H

#include "op.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_once {
    uint64_t opaque[3];
} weft_once;

/*
 * Calls function(arg) if it has not been called with success before. When it returns 0, it
 * is done for ever; what was written is seen by all who return from here.
 *
 * Context:  a fiber, or a plain thread. The function must not come back here.
 * Suspends: while another one calls its function, until the deadline.
 * Errors:   what the function returns, and then it is not done; WEFT_ETIMEDOUT,
 *           WEFT_ECANCELED; -ENOMEM (on a thread's first wait).
 */
WEFT_API WEFT_NODISCARD int weft_once_run(weft_once *once, int (*function)(void *arg), void *arg,
                                          weft_time deadline);

/*
 * Prepares to wait until it is done, or until it is this one's turn: the result of the
 * future is 0, or 1: do it, and call weft_once_end().
 *
 * Context: any thread.
 */
WEFT_API void weft_once_begin_init(weft_op *op, weft_once *once);

/*
 * Waits as weft_once_begin_init() does: 0, or 1: do it, and call weft_once_end().
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: as weft_once_run().
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (on a thread's first wait).
 */
WEFT_API WEFT_NODISCARD int weft_once_begin(weft_once *once, weft_time deadline);

/*
 * Ends a turn: it is done, or it is another one's turn.
 *
 * Context: anywhere. Aborts if nobody is at it.
 */
WEFT_API void weft_once_end(weft_once *once, bool is_done);

/*
 * Is it done? If so, what was written is seen.
 *
 * Context: anywhere.
 */
WEFT_API bool weft_once_is_done(const weft_once *once);

/* A pointer that is set once. All zeros is not set. */
typedef struct weft_once_cell {
    weft_once once;
    void *value;
} weft_once_cell;

/*
 * Returns the pointer, or NULL if it is not set.
 *
 * Context: anywhere.
 */
WEFT_API void *weft_once_cell_get(const weft_once_cell *cell);

/*
 * Sets the pointer, unless it is set or somebody is making it.
 *
 * Context: anywhere.
 * Errors:  -EEXIST: it is set; -EBUSY: somebody is making it.
 */
WEFT_API WEFT_NODISCARD int weft_once_cell_set(weft_once_cell *cell, void *value);

/*
 * Gets the pointer; if it is not set, make(&value, arg) makes it. If that fails, it is not
 * set, and the next one tries again.
 *
 * Context:  a fiber, or a plain thread. make must not come back here.
 * Suspends: while another one makes it, until the deadline.
 * Errors:   as weft_once_run(). *value is unchanged then.
 */
WEFT_API WEFT_NODISCARD int weft_once_cell_get_or_make(weft_once_cell *cell,
                                                       int (*make)(void **value, void *arg),
                                                       void *arg, void **value, weft_time deadline);

WEFT_EXTERN_C_END

#endif
