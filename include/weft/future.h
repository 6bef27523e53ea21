/* SPDX-License-Identifier: MIT */
/*
 * weft/future.h - futures, stackless tasks that await them, and wakers.
 *
 * A future is an operation that has not finished yet. The waiting task polls it. If the poll
 * returns WEFT_PENDING, the task is woken when polling again can make progress. A stackless
 * task is a function that awaits futures one after the other:
 *
 *     struct sum {
 *         weft_task *child;
 *         weft_join_future join;
 *         int result;
 *     };
 *
 *     static int sum_body(weft_co *co, void *state)
 *     {
 *         struct sum *s = (struct sum *)state;
 *         int err;
 *         WEFT_BEGIN(co);
 *         weft_join_init(&s->join, s->child, &s->result);
 *         WEFT_AWAIT(co, err, &s->join.future);
 *         WEFT_END(co, err < 0 ? err : s->result);
 *     }
 *
 * The function returns at each await that is pending and is called again later. So data that
 * must survive an await lives in the state struct, not in a local variable. Do not await inside
 * a switch statement of your own, and use at most one of these macros per line.
 */
#ifndef WEFT_FUTURE_H
#define WEFT_FUTURE_H

#include "base.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_future weft_future;

/* Operations of a kind of future. Called by one task at a time. */
typedef struct weft_future_ops {
    /*
     * Makes progress. Returns the result, or WEFT_PENDING after arranging for the current task
     * to be woken (weft_waker_current()). Not called again after a result.
     */
    int (*poll)(weft_future *future);
    /*
     * Cancels a pending operation. Returns true if it has ended: poll then returns
     * WEFT_ECANCELED, or the result if that came first. Returns false if it needs time; the
     * task is then woken, and cancel is called again.
     */
    bool (*cancel)(weft_future *future);
    /* Frees the future's resources. Called only before the first poll or after the result. NULL
     * if it has none. */
    void (*drop)(weft_future *future);
    unsigned flags; /* 0, or a combination of WEFT_FUTURE_* */
} weft_future_ops;

/*
 * For operations that end something, such as a scope: an await in a canceled task starts the
 * operation, then cancels it. Other futures are not started there: the await returns
 * WEFT_ECANCELED immediately.
 */
#define WEFT_FUTURE_ALWAYS_STARTS 1u

/*
 * For futures that consume something, such as a signal. A select that another branch has won
 * cancels the future, waits until it has ended and calls drop(). If the future has completed all
 * the same, drop() gives back what it has consumed.
 */
#define WEFT_FUTURE_GIVES_BACK 4u

/* The first member of every future. */
struct weft_future {
    const weft_future_ops *ops;
};

/*
 * The resume point of a stackless task. The runtime keeps one for each task; a stackless task
 * that another one awaits keeps it in its weft_co_future. Zero means "at the beginning". The
 * fields are private to the macros.
 */
typedef struct weft_co {
    weft_future *waiting;
    uint32_t resume;
    uint32_t flags;
} weft_co;

/*
 * The function of a stackless task. Returns its result (0, a count, or a negative error),
 * WEFT_PENDING or WEFT_YIELDED; the macros return the latter two.
 */
typedef int (*weft_body_fn)(weft_co *co, void *state);

/* Opens the function of a stackless task. Only declarations may precede it. */
#define WEFT_BEGIN(co)                                                                             \
    switch ((co)->resume) {                                                                        \
    case 0:

/*
 * Waits for a future and stores its result in the int lvalue result. Stores WEFT_ECANCELED if
 * the task was canceled meanwhile, or before: in that case the future was not started.
 */
#define WEFT_AWAIT(co, result, awaited)                                                            \
    do {                                                                                           \
        (co)->resume = __LINE__;                                                                   \
        WEFT_FALLTHROUGH;                                                                          \
    case __LINE__:                                                                                 \
        (result) = weft_await_poll((co), (awaited));                                               \
        if ((result) == WEFT_PENDING) {                                                            \
            return WEFT_PENDING;                                                                   \
        }                                                                                          \
    } while (0)

/* Lets other tasks run, then continues. Stores 0 or WEFT_ECANCELED in result. */
#define WEFT_YIELD(co, result)                                                                     \
    do {                                                                                           \
        (co)->resume = __LINE__;                                                                   \
        return WEFT_YIELDED;                                                                       \
    case __LINE__:                                                                                 \
        (result) = weft_yield_result(co);                                                          \
    } while (0)

/* Closes the function of a stackless task and returns its result. */
#define WEFT_END(co, result)                                                                       \
    break;                                                                                         \
    default:                                                                                       \
        weft_co_corrupt(co);                                                                       \
        }                                                                                          \
        return (result)

/*
 * Aborts because the resume point of a stackless task was overwritten. Called by WEFT_END().
 *
 * Context: stackless task.
 */
WEFT_API WEFT_NORETURN void weft_co_corrupt(const weft_co *co);

/*
 * Polls a future on behalf of a stackless task. Called by WEFT_AWAIT().
 *
 * Context: stackless task, or another future's poll.
 */
WEFT_API WEFT_NODISCARD int weft_await_poll(weft_co *co, weft_future *future);

/*
 * Returns whether a stackless task that has yielded is canceled: 0 or WEFT_ECANCELED. Called by
 * WEFT_YIELD().
 *
 * Context: stackless task.
 */
WEFT_API WEFT_NODISCARD int weft_yield_result(const weft_co *co);

/*
 * Waits for a future. Every call that waits is built on this one.
 *
 * A future belongs to one task at a time, from its first poll to its result. A second task that
 * awaits it in the meantime would not be woken; a future of the library aborts with a message
 * then, as far as it detects the misuse. Prepare a separate future for each task.
 *
 * Context:  fiber or plain thread, which sleeps. Aborts in a stackless task, which uses
 *           WEFT_AWAIT().
 * Suspends: until the future has a result or the deadline passes. At the deadline the future is
 *           canceled and awaited; a result that comes first is returned.
 * Errors:   WEFT_ETIMEDOUT, -ENOMEM (first wait of a thread), or the future's.
 */
WEFT_API WEFT_NODISCARD int weft_await(weft_future *future, weft_time deadline);

/* A stackless task as a future, so that another stackless task, or a thread, can await it. */
typedef struct weft_co_future {
    weft_future future;
    weft_body_fn body;
    void *state;
    weft_co co;
    int result;
    bool done;
} weft_co_future;

/*
 * Prepares a stackless task to be awaited. state is not copied and must stay in place.
 *
 * Context: any thread.
 */
WEFT_API void weft_co_init(weft_co_future *future, weft_body_fn body, void *state);

/*
 * A waker: a counted reference to a task that can make the task runnable. Usable from any
 * thread, even after the task has ended or its runtime is gone.
 */
typedef struct weft_waker weft_waker;

/*
 * Returns a waker of the current task. A future's poll keeps it until it can make progress.
 *
 * Context: a task, a future's poll, or a plain thread inside weft_await().
 * Owns:    the caller owns the waker and ends it with weft_waker_fire() or weft_waker_drop().
 */
WEFT_API WEFT_NODISCARD weft_waker *weft_waker_current(void);

/*
 * Returns another waker of the same task.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD weft_waker *weft_waker_clone(weft_waker *waker);

/*
 * Wakes the task and consumes the waker. The next poll sees all writes that this thread made
 * before.
 *
 * Context: any thread.
 */
WEFT_API void weft_waker_fire(weft_waker *waker);

/*
 * Wakes the task and keeps the waker.
 *
 * Context: any thread.
 */
WEFT_API void weft_waker_wake(weft_waker *waker);

/*
 * Drops the waker without waking the task. NULL is allowed.
 *
 * Context: any thread.
 */
WEFT_API void weft_waker_drop(weft_waker *waker);

WEFT_EXTERN_C_END

#endif
