/* SPDX-License-Identifier: MIT */
/*
 * weft/gather.h - waiting for several tasks, and calling one function many times at once.
 *
 *     int winner = weft_race(tasks, 3, &result, WEFT_NEVER);
 *     if (winner >= 0) {
 *         printf("task %d ended first and returned %d\n", winner, result);
 *     }
 *
 * Each of these joins all tasks before it returns 0 or more, or an error of a task: the
 * handles have ended then. If it returns because of its deadline, or because the one who waits
 * was cancelled, those that have been joined are NULL, and the others are still yours.
 */
#ifndef WEFT_GATHER_H
#define WEFT_GATHER_H

#include "clock.h"
#include "future.h"
#include "task.h"

WEFT_EXTERN_C_BEGIN

/*
 * Joins all tasks. results, if not NULL, get what they have returned. Returns the first result
 * below 0 in the order of the tasks, or 0.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_gather_future.
 * Suspends: until all have ended, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_EJOINED, -ENOMEM; or a task's.
 */
WEFT_API WEFT_NODISCARD int weft_join_all(weft_task **tasks, size_t count, int *results,
                                          weft_time deadline);

/*
 * Joins all tasks; when one has returned less than 0, the others are cancelled. Returns that
 * result, or 0.
 *
 * Context:  as weft_join_all().
 * Suspends: as weft_join_all().
 * Errors:   as weft_join_all().
 */
WEFT_API WEFT_NODISCARD int weft_try_join_all(weft_task **tasks, size_t count, int *results,
                                              weft_time deadline);

/*
 * Waits for the first task that ends, whatever it returns, cancels the others and joins them.
 * Returns its index; *result, if result is not NULL, is what it has returned.
 *
 * Context:  as weft_join_all().
 * Suspends: as weft_join_all().
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_EJOINED, -ENOMEM; -EINVAL: there are none.
 */
WEFT_API WEFT_NODISCARD int weft_race(weft_task **tasks, size_t count, int *result,
                                      weft_time deadline);

/*
 * Waits for the first task that returns 0 or more, cancels the others and joins them. Returns
 * its index; *result, if result is not NULL, is what it has returned. If none does, the result
 * of the last one that has ended.
 *
 * Context:  as weft_join_all().
 * Suspends: as weft_join_all().
 * Errors:   as weft_race(); or a task's.
 */
WEFT_API WEFT_NODISCARD int weft_first_success(weft_task **tasks, size_t count, int *result,
                                               weft_time deadline);

/* Which of the above. */
typedef enum weft_gather_mode {
    WEFT_GATHER_ALL = 0,
    WEFT_GATHER_TRY_ALL = 1,
    WEFT_GATHER_RACE = 2,
    WEFT_GATHER_FIRST_SUCCESS = 3,
} weft_gather_mode;

/* One of the above as a future. */
typedef struct weft_gather_future {
    weft_future future;
    weft_gather_mode mode;
    weft_task **tasks;
    size_t count;
    int *results;
    uint64_t opaque_[5];
} weft_gather_future;

/*
 * Prepares to wait for tasks: the result of the future is that of the function above, without
 * WEFT_ETIMEDOUT. results is for count results in the first two modes, for one in the others.
 *
 * Context: any thread.
 */
WEFT_API void weft_gather_init(weft_gather_future *future, weft_gather_mode mode, weft_task **tasks,
                               size_t count, int *results);

/*
 * Calls function(index, arg) for each index from 0 to before count, on as many fibers at once
 * as the limit allows (0: 16), and waits for all. So results that are written by index are in
 * order. The first that returns less than 0 cancels the others, and no more are begun; that
 * result is returned, else 0.
 *
 * Context:  a fiber.
 * Suspends: until all have returned; at the deadline they are cancelled.
 * Cancel:   cancels them, and goes on waiting.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ESHUTDOWN, -ENOMEM; or the function's.
 */
WEFT_API WEFT_NODISCARD int weft_go_each(size_t count, size_t limit,
                                         int (*function)(size_t index, void *arg), void *arg,
                                         weft_time deadline);

/*
 * Calls function(arg) on a fiber of its own, and cancels that at the deadline. Returns what
 * the function returns; WEFT_ETIMEDOUT in the place of WEFT_ECANCELED, if it was late.
 *
 * Context:  a fiber.
 * Suspends: until the function has returned.
 * Cancel:   cancels it, and goes on waiting. If the calling task is cancelled before the call, the
 *           function is not called.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ESHUTDOWN, -ENOMEM; or the function's.
 */
WEFT_API WEFT_NODISCARD int weft_call_until(int (*function)(void *arg), void *arg,
                                            weft_time deadline);

WEFT_EXTERN_C_END

#endif
