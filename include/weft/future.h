/* SPDX-License-Identifier: MIT */
/*
 * weft/future.h - things to wait for, and bodies that wait for them.
 *
 * A future is an operation that is not finished yet. Whoever waits polls it;
 * while it answers WEFT_PENDING the waiting task is woken when another poll can
 * tell more. A body is a function that awaits futures one after the other:
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
 * The function returns at each await that is pending and is called again later,
 * so what must survive an await lives in the state struct, not in a local. No
 * await inside a switch statement of the body's own, and one macro a line.
 */
#ifndef WEFT_FUTURE_H
#define WEFT_FUTURE_H

#include "base.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_future weft_future;

/* What a kind of future can do. Called by one task at a time. */
typedef struct weft_future_ops {
    /*
     * Makes progress. Returns the result, or WEFT_PENDING after having arranged
     * for the current task to be woken (weft_waker_current()). Not called again
     * after a result.
     */
    int (*poll)(weft_future *future);
    /*
     * Asks an operation that is pending to stop. Returns true if it has ended:
     * poll then gives WEFT_ECANCELED, or the result if it was faster. Returns
     * false if it needs time; the task is woken and cancel is called again.
     */
    bool (*cancel)(weft_future *future);
    /* Frees what the future holds. Legal only before the first poll or after
     * the result. NULL if it holds nothing. */
    void (*drop)(weft_future *future);
    unsigned flags; /* 0, or WEFT_FUTURE_ALWAYS_STARTS */
} weft_future_ops;

/*
 * For operations that end something, such as a scope: an await in a canceled task starts the
 * operation, then cancels it. Other futures are not started there: the await returns
 * WEFT_ECANCELED at once.
 */
#define WEFT_FUTURE_ALWAYS_STARTS 1u

/* The first member of every future. */
struct weft_future {
    const weft_future_ops *ops;
};

/*
 * Where a body stands. The runtime has one for each task; a body that is awaited
 * by another body has one in its weft_co_future. Zero is "at the beginning". The
 * fields are the macros' business.
 */
typedef struct weft_co {
    weft_future *waiting;
    uint32_t resume;
    uint32_t flags;
} weft_co;

/*
 * A straight-line piece of work. Returns its result (0, a count, or a negative
 * error), WEFT_PENDING or WEFT_YIELDED; the macros return the latter two.
 */
typedef int (*weft_body_fn)(weft_co *co, void *state);

/* Opens a body. Only declarations stand before it. */
#define WEFT_BEGIN(co)                                                                             \
    switch ((co)->resume) {                                                                        \
    case 0:

/*
 * Waits for a future and stores its result in the int lvalue result.
 * WEFT_ECANCELED if the task was cancelled meanwhile, or before: then the future
 * was not started.
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

/* Lets other tasks run, then goes on. Stores 0 or WEFT_ECANCELED in result. */
#define WEFT_YIELD(co, result)                                                                     \
    do {                                                                                           \
        (co)->resume = __LINE__;                                                                   \
        return WEFT_YIELDED;                                                                       \
    case __LINE__:                                                                                 \
        (result) = weft_yield_result(co);                                                          \
    } while (0)

/* Closes a body and returns its result. */
#define WEFT_END(co, result)                                                                       \
    break;                                                                                         \
    default:                                                                                       \
        weft_co_corrupt(co);                                                                       \
        }                                                                                          \
        return (result)

/*
 * Aborts: the place where a body stands was overwritten. WEFT_END() calls it.
 *
 * Context: a body.
 */
WEFT_API WEFT_NORETURN void weft_co_corrupt(const weft_co *co);

/*
 * Polls a future on behalf of a body; WEFT_AWAIT() calls it.
 *
 * Context: a body, or another future's poll.
 */
WEFT_API WEFT_NODISCARD int weft_await_poll(weft_co *co, weft_future *future);

/*
 * Tells a body that has yielded whether it was cancelled; WEFT_YIELD() calls it.
 *
 * Context: a body.
 */
WEFT_API WEFT_NODISCARD int weft_yield_result(const weft_co *co);

/*
 * Waits for a future. Every call that waits is built on this one.
 *
 * A future belongs to one task at a time, from its first poll to its result. A second task that
 * awaits it meanwhile would not be woken; with a future of the library it aborts with a sentence,
 * as far as that is detected. Prepare a future for each task.
 *
 * Context:  a fiber, or a plain thread, which sleeps. Aborts in a stackless task, where
 *           a body uses WEFT_AWAIT().
 * Suspends: until the result or the deadline. After the deadline the future is
 *           cancelled and awaited; what was faster decides.
 * Errors:   WEFT_ETIMEDOUT, -ENOMEM (on a thread's first wait), or the future's.
 */
WEFT_API WEFT_NODISCARD int weft_await(weft_future *future, weft_time deadline);

/* A body as a future, so that another body, or a thread, can await it. */
typedef struct weft_co_future {
    weft_future future;
    weft_body_fn body;
    void *state;
    weft_co co;
    int result;
    bool done;
} weft_co_future;

/*
 * Prepares a body to be awaited. state is not copied and must stay in place.
 *
 * Context: any thread.
 */
WEFT_API void weft_co_init(weft_co_future *future, weft_body_fn body, void *state);

/*
 * A counted reference to a task that, when fired, makes it runnable. Usable from
 * any thread, also after the task has ended, also after its runtime is gone.
 */
typedef struct weft_waker weft_waker;

/*
 * Returns a waker of the current task; a future's poll keeps it for the time
 * when it has news.
 *
 * Context: a body, a future's poll, or a plain thread inside weft_await().
 * Owns:    the caller; end it with weft_waker_fire() or weft_waker_drop().
 */
WEFT_API WEFT_NODISCARD weft_waker *weft_waker_current(void);

/*
 * Returns one more reference to the same task.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD weft_waker *weft_waker_clone(weft_waker *waker);

/*
 * Wakes the task and ends the waker. The next poll sees everything that this
 * thread wrote before.
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
 * Ends the waker without waking. NULL is allowed.
 *
 * Context: any thread.
 */
WEFT_API void weft_waker_drop(weft_waker *waker);

WEFT_EXTERN_C_END

#endif
