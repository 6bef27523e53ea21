/* SPDX-License-Identifier: MIT */
/*
 * weft/join_set.h - tasks whose results come in the order in which they end.
 *
 *     weft_join_set set;
 *     err = weft_join_set_begin(&set, NULL);
 *     for (size_t i = 0; i < count && err == 0; i++) {
 *         err = weft_join_set_go(&set, fetch, &pages[i]);
 *     }
 *     weft_joined joined;
 *     while (weft_join_set_next(&set, &joined, WEFT_NEVER) == 0) {
 *         struct page *page = (struct page *)joined.arg;
 *         printf("%s: %d\n", page->name, joined.result);
 *     }
 *     err = weft_join_set_end(&set);
 *
 * Tasks can be added at any time. A set is a scope (weft/scope.h): its end waits for all, with
 * a limit, a deadline and a token if it has them. But a task that fails leaves the others
 * alone: its result is a result.
 */
#ifndef WEFT_JOIN_SET_H
#define WEFT_JOIN_SET_H

#include "channel.h"
#include "scope.h"

WEFT_EXTERN_C_BEGIN

/* In the frame, or the state, of who begins it. */
typedef struct weft_join_set {
    weft_scope scope;
    weft_sender *sender;
    weft_receiver *receiver;
    uint64_t opaque_[4];
} weft_join_set;

/* A task of a set that has ended. */
typedef struct weft_joined {
    void *arg;  /* that its function was given */
    int result; /* that its function has returned */
} weft_joined;

/*
 * Begins a set. Of the options, is_supervised means nothing.
 *
 * Context: as weft_scope_begin().
 * Owns:    the set stays in place until it has ended: weft_join_set_end(). A task that returns
 *          with an open set in its frame or its state aborts.
 * Errors:  -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_join_set_begin(weft_join_set *set,
                                                const weft_scope_options *options);

/*
 * Starts a fiber in the set. arg is not copied.
 *
 * Context:  as weft_scope_go().
 * Suspends: as weft_scope_go().
 * Errors:   as weft_scope_go().
 */
WEFT_API WEFT_NODISCARD int weft_join_set_go(weft_join_set *set, int (*function)(void *arg),
                                             void *arg);

/*
 * Waits for the next task that ends. If several callers wait, each result goes to one of them.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: until a task has ended, until other callers have taken the last result, or until the
 *           deadline.
 * Errors:   -ENOENT: the set has no more tasks; WEFT_ETIMEDOUT; WEFT_ECANCELED: the calling task
 *           is cancelled; -ENOMEM (on a thread's first wait).
 */
WEFT_API WEFT_NODISCARD int weft_join_set_next(weft_join_set *set, weft_joined *joined,
                                               weft_time deadline);

/*
 * Returns how many tasks weft_join_set_next() has not told of.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_join_set_count(const weft_join_set *set);

/*
 * Cancels all tasks of the set.
 *
 * Context: any thread, while the set has not ended.
 */
WEFT_API void weft_join_set_cancel(weft_join_set *set);

/*
 * Ends a set: waits for all tasks; results that nobody has asked for are gone. Returns
 * WEFT_ETIMEDOUT or WEFT_ECANCELED if the set was cancelled, or 0. A set whose calling task is
 * canceled counts as canceled, also without tasks.
 *
 * Context:  as weft_scope_end().
 * Suspends: until all have ended.
 * Cancel:   cancels the tasks, and goes on waiting.
 */
WEFT_API int weft_join_set_end(weft_join_set *set);

WEFT_EXTERN_C_END

#endif
