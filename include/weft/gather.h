/* SPDX-License-Identifier: MIT */
/*
 * weft/gather.h - join-many: wait for several tasks, and call one function concurrently.
 *
 *     int winner = weft_race(tasks, 3, &result, WEFT_NEVER);
 *     if (winner >= 0) {
 *         printf("task %d ended first and returned %d\n", winner, result);
 *     }
 *
 * Each of these functions joins all tasks before it returns 0 or more, or an error of a task;
 * all handles are consumed then. If it returns because its deadline has passed or the caller
 * was canceled, the entries of joined tasks are NULL, and the caller keeps the other handles.
 * If the deadline is the cause, at least one handle is left.
 */
#ifndef WEFT_GATHER_H
#define WEFT_GATHER_H

#include "clock.h"
#include "future.h"
#include "task.h"

WEFT_EXTERN_C_BEGIN

/*
 * Joins all tasks. Stores their results in results, if it is not NULL. Returns the first
 * negative result, in the order of the tasks, or 0.
 *
 * Context:  fiber or plain thread. A stackless task awaits a weft_gather_future.
 * Suspends: until all tasks have ended or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_EJOINED, -ENOMEM, or a task's.
 */
WEFT_API WEFT_NODISCARD int weft_join_all(weft_task **tasks, size_t count, int *results,
                                          weft_time deadline);

/*
 * Joins all tasks. As soon as one returns a negative result, cancels the others. Returns that
 * result, or 0.
 *
 * Context:  as weft_join_all().
 * Suspends: as weft_join_all().
 * Errors:   those of weft_join_all().
 */
WEFT_API WEFT_NODISCARD int weft_try_join_all(weft_task **tasks, size_t count, int *results,
                                              weft_time deadline);

/*
 * Waits for the first task to end, with any result, then cancels and joins the others. Returns
 * the index of that task. Stores its result in *result, if result is not NULL.
 *
 * Context:  as weft_join_all().
 * Suspends: as weft_join_all().
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_EJOINED, -ENOMEM, -EINVAL (no tasks).
 */
WEFT_API WEFT_NODISCARD int weft_race(weft_task **tasks, size_t count, int *result,
                                      weft_time deadline);

/*
 * Waits for the first task that returns 0 or more, then cancels and joins the others. Returns
 * the index of that task. Stores its result in *result, if result is not NULL. If every task
 * fails, returns the result of the last one to end.
 *
 * Context:  as weft_join_all().
 * Suspends: as weft_join_all().
 * Errors:   those of weft_race(), or a task's.
 */
WEFT_API WEFT_NODISCARD int weft_first_success(weft_task **tasks, size_t count, int *result,
                                               weft_time deadline);

/* Selects one of the functions above. */
typedef enum weft_gather_mode {
    WEFT_GATHER_ALL = 0,
    WEFT_GATHER_TRY_ALL = 1,
    WEFT_GATHER_RACE = 2,
    WEFT_GATHER_FIRST_SUCCESS = 3,
} weft_gather_mode;

/* One of the functions above as a future. */
typedef struct weft_gather_future {
    weft_future future;
    weft_gather_mode mode;
    weft_task **tasks;
    size_t count;
    int *results;
    uint64_t opaque_[5];
} weft_gather_future;

/*
 * Prepares a join of several tasks. The future's result is that of the function selected by
 * mode, without WEFT_ETIMEDOUT. results has space for count results in the first two modes, for
 * one in the others.
 *
 * Context: any thread.
 */
WEFT_API void weft_gather_init(weft_gather_future *future, weft_gather_mode mode, weft_task **tasks,
                               size_t count, int *results);

/*
 * Calls function(index, arg) for each index from 0 to count - 1, on up to limit fibers at the
 * same time (0: 16), and waits for all calls. Results stored by index are therefore in order.
 * The first negative result cancels the other calls, and no further calls start. Returns that
 * result, or 0.
 *
 * Context:  fiber.
 * Suspends: until all calls have returned. At the deadline they are canceled.
 * Cancel:   cancels the calls and keeps waiting for them.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ESHUTDOWN, -ENOMEM, or the function's.
 */
WEFT_API WEFT_NODISCARD int weft_go_each(size_t count, size_t limit,
                                         int (*function)(size_t index, void *arg), void *arg,
                                         weft_time deadline);

/*
 * Calls function(arg) on a fiber of its own, and cancels that fiber at the deadline. Returns
 * the function's result, but WEFT_ETIMEDOUT instead of WEFT_ECANCELED if the deadline caused
 * it.
 *
 * Context:  fiber.
 * Suspends: until the function has returned.
 * Cancel:   cancels the function and keeps waiting for it. If the calling task is canceled
 *           before the call, the function is not called.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ESHUTDOWN, -ENOMEM, or the function's.
 */
WEFT_API WEFT_NODISCARD int weft_call_until(int (*function)(void *arg), void *arg,
                                            weft_time deadline);

WEFT_EXTERN_C_END

#endif
