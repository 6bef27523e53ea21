/* SPDX-License-Identifier: MIT */
/*
 * weft/join_set.h - join set: collects results of tasks in the order in which the tasks end.
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
 * Tasks can be added at any time. A set is a scope (weft/scope.h): its end waits for all tasks,
 * and it can have a limit, a deadline and a cancel token. But a task that fails does not cancel
 * the others: its error is just a result.
 */
#ifndef WEFT_JOIN_SET_H
#define WEFT_JOIN_SET_H

#include "channel.h"
#include "scope.h"

WEFT_EXTERN_C_BEGIN

/* A join set, in the stack frame or the task state of its owner. */
typedef struct weft_join_set {
    weft_scope scope;
    weft_sender *sender;
    weft_receiver *receiver;
    uint64_t opaque_[4];
} weft_join_set;

/* A finished task of a set. */
typedef struct weft_joined {
    void *arg;  /* the argument of its function */
    int result; /* the result of its function */
} weft_joined;

/*
 * Begins a set. The option is_supervised has no effect.
 *
 * Context: as weft_scope_begin().
 * Owns:    the set must stay in place until weft_join_set_end() has returned. A task that returns
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
 * Errors:   those of weft_scope_go().
 */
WEFT_API WEFT_NODISCARD int weft_join_set_go(weft_join_set *set, int (*function)(void *arg),
                                             void *arg);

/*
 * Waits for the next task to end. If several callers wait, each result goes to one of them.
 *
 * Context:  fiber or plain thread.
 * Suspends: until a task has ended, other callers have received the last result, or the deadline
 *           passes.
 * Errors:   -ENOENT (the set has no more tasks), WEFT_ETIMEDOUT, WEFT_ECANCELED (the calling
 *           task is canceled), -ENOMEM (first wait of a thread).
 */
WEFT_API WEFT_NODISCARD int weft_join_set_next(weft_join_set *set, weft_joined *joined,
                                               weft_time deadline);

/*
 * Returns the number of tasks that weft_join_set_next() has not returned yet.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_join_set_count(const weft_join_set *set);

/*
 * Cancels all tasks of the set.
 *
 * Context: any thread, until the set has ended.
 */
WEFT_API void weft_join_set_cancel(weft_join_set *set);

/*
 * Ends a set: waits for all tasks. Results that were not collected are discarded. Returns
 * WEFT_ETIMEDOUT or WEFT_ECANCELED if the set was canceled, or 0. A set whose calling task is
 * canceled counts as canceled, even if it has no tasks.
 *
 * Context:  as weft_scope_end().
 * Suspends: until all tasks have ended.
 * Cancel:   cancels the tasks and keeps waiting.
 */
WEFT_API int weft_join_set_end(weft_join_set *set);

WEFT_EXTERN_C_END

#endif
