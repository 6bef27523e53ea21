/* SPDX-License-Identifier: MIT */
/*
 * weft/time.h - sleeping, intervals, timeouts and timers.
 *
 * Timers and deadlines never come early. They are exact to the millisecond; where
 * that is too coarse, WEFT_PRECISE makes one as exact as the machine wakes its
 * threads.
 */
#ifndef WEFT_TIME_H
#define WEFT_TIME_H

#include "base.h"
#include "clock.h"
#include "future.h"

WEFT_EXTERN_C_BEGIN

/*
 * Sleeps for so long. A duration of 0 or less returns at once.
 *
 * Context:  a fiber, or a plain thread. Aborts in a stackless task: await a
 *           weft_sleep_future.
 * Suspends: until the time has come.
 * Cancel:   WEFT_ECANCELED.
 * Errors:   -ENOMEM (on a plain thread's first wait).
 */
WEFT_API int weft_sleep(weft_time duration);

/*
 * Sleeps until the deadline; WEFT_NEVER sleeps until it is cancelled. Otherwise as
 * weft_sleep().
 *
 * Context: as weft_sleep().
 */
WEFT_API int weft_sleep_until(weft_time deadline);

#define WEFT_PRECISE 1u /* finer than a millisecond */

/* Sleeping as a future. */
typedef struct weft_sleep_future {
    weft_future future;
    weft_time deadline;
    uint64_t opaque_[12];
} weft_sleep_future;

/*
 * Prepares a sleep. It gives 0, or WEFT_ECANCELED. flags is 0 or WEFT_PRECISE.
 *
 * Context: any thread; awaited by a task or a blocking job.
 */
WEFT_API void weft_sleep_init(weft_sleep_future *future, weft_time deadline, unsigned flags);

/* Any future with a deadline. */
typedef struct weft_timeout_future {
    weft_future future;
    weft_future *inner;
    weft_sleep_future sleep;
    uint64_t late;
} weft_timeout_future;

/*
 * Prepares to await a future until the deadline. After it, the inner future is
 * cancelled and awaited. It gives the inner one's result, or WEFT_ETIMEDOUT.
 *
 * On a fiber or thread the deadline of weft_await() does the same.
 *
 * Context: any thread; awaited by a task or a blocking job.
 */
WEFT_API void weft_timeout_init(weft_timeout_future *future, weft_future *inner,
                                weft_time deadline);

/* What an interval does after whoever waits for it was late. */
typedef enum weft_interval_policy {
    WEFT_INTERVAL_BURST = 0, /* all missed ticks at once, then as planned */
    WEFT_INTERVAL_SKIP = 1,  /* the next tick that is not over yet, as planned */
    WEFT_INTERVAL_DELAY = 2, /* after one that is a period late, a whole period from now */
} weft_interval_policy;

/* A tick every period. */
typedef struct weft_interval {
    weft_time next; /* when the next tick is due */
    weft_time period;
    weft_interval_policy policy;
} weft_interval;

/*
 * Prepares an interval whose first tick is at the time first, for example
 * weft_now(). A period below 1 ns counts as 1 ns.
 *
 * Context: any thread.
 */
WEFT_API void weft_interval_init(weft_interval *interval, weft_time first, weft_time period,
                                 weft_interval_policy policy);

/*
 * Waits for the next tick. Returns how many ticks have come: 1, or with
 * WEFT_INTERVAL_SKIP 1 and those that were skipped, up to INT_MAX.
 *
 * Context:  as weft_sleep(). A stackless task awaits a sleep until interval->next,
 *           then calls weft_interval_advance().
 * Suspends: until the tick.
 * Cancel:   WEFT_ECANCELED: the tick is still to come.
 * Errors:   as weft_sleep().
 */
WEFT_API int weft_interval_tick(weft_interval *interval);

/*
 * The tick at interval->next has come: moves on to the one after it. Returns what
 * weft_interval_tick() returns.
 *
 * Context: any thread.
 */
WEFT_API int weft_interval_advance(weft_interval *interval);

/*
 * A timer that calls a function once. Yours: in a frame, a struct, anywhere; zero is
 * a timer that is not running.
 */
typedef struct weft_timer {
    uint64_t opaque_[12];
} weft_timer;

/*
 * Starts a timer, or restarts it with another deadline. At the deadline a worker calls
 * function(arg). The function must not wait or block. It may spawn and wake tasks, cancel
 * tokens, and start or stop timers, including its own. flags is 0 or WEFT_PRECISE.
 *
 * When the runtime ends, its timers stop without a call.
 *
 * Context: a task, a blocking job, or the function of a timer. Only one thread at a time may
 *          start or stop a timer; the timer's own function is excepted.
 * Owns:    the runtime has the timer until it has called the function, or the timer is stopped.
 */
WEFT_API void weft_timer_start(weft_timer *timer, weft_time deadline, unsigned flags,
                               void (*function)(void *arg), void *arg);

/*
 * Stops a timer. Returns true if its function was not called and never will be; false if it
 * was called, or if the timer was not running. If the function is running on another thread,
 * the call blocks until it has returned. So when this returns, the function does not run, and
 * the timer may be freed.
 *
 * There are two exceptions, in which the wait would never end. Called by the timer's own
 * function, it returns at once. Of callbacks (functions of timers and of
 * weft_on_cancel_add()) that stop each other while they run, the last one returns at once:
 * the other functions wait for it, and continue when it has returned. The timer may be freed
 * then, but not what its function still uses.
 *
 * Context:  any thread, also while the timer's runtime is destroyed, and after that. Only one
 *           thread at a time for a timer, its own function excepted.
 * Suspends: never. It may block the thread while the function runs elsewhere.
 */
WEFT_API bool weft_timer_stop(weft_timer *timer);

WEFT_EXTERN_C_END

#endif
