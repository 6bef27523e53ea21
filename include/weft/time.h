/* SPDX-License-Identifier: MIT */
/*
 * weft/time.h - sleeps, timeouts, intervals and timers.
 *
 * Timers and deadlines never fire early. Their resolution is one millisecond. WEFT_PRECISE
 * makes a timer as precise as the machine's thread wake-ups.
 */
#ifndef WEFT_TIME_H
#define WEFT_TIME_H

#include "base.h"
#include "clock.h"
#include "future.h"

WEFT_EXTERN_C_BEGIN

/*
 * Sleeps for the given duration. Returns immediately if it is 0 or negative.
 *
 * Context:  fiber or plain thread. Aborts in a stackless task, which awaits a
 *           weft_sleep_future.
 * Suspends: until the time has passed.
 * Cancel:   WEFT_ECANCELED.
 * Errors:   -ENOMEM (first wait of a thread).
 */
WEFT_API int weft_sleep(weft_time duration);

/*
 * Sleeps until the deadline; with WEFT_NEVER, until the task is canceled. Otherwise like
 * weft_sleep().
 *
 * Context: as weft_sleep().
 */
WEFT_API int weft_sleep_until(weft_time deadline);

#define WEFT_PRECISE 1u /* finer than a millisecond */

/* A sleep as a future. */
typedef struct weft_sleep_future {
    weft_future future;
    weft_time deadline;
    uint64_t opaque_[12];
} weft_sleep_future;

/*
 * Prepares a sleep. The future's result is 0 or WEFT_ECANCELED. flags is 0 or WEFT_PRECISE.
 *
 * Context: any thread; awaited by any task or blocking job.
 */
WEFT_API void weft_sleep_init(weft_sleep_future *future, weft_time deadline, unsigned flags);

/* A future with a deadline. */
typedef struct weft_timeout_future {
    weft_future future;
    weft_future *inner;
    weft_sleep_future sleep;
    uint64_t late;
} weft_timeout_future;

/*
 * Prepares to await a future until the deadline. After the deadline the inner future is
 * canceled and awaited. The future's result is that of the inner one, or WEFT_ETIMEDOUT. The flags
 * of the inner future (WEFT_FUTURE_*) hold for this one, too.
 *
 * A fiber or a thread can use the deadline of weft_await() instead.
 *
 * Context: any thread; awaited by any task or blocking job.
 */
WEFT_API void weft_timeout_init(weft_timeout_future *future, weft_future *inner,
                                weft_time deadline);

/* What an interval does when its caller has missed ticks. */
typedef enum weft_interval_policy {
    WEFT_INTERVAL_BURST = 0, /* delivers all missed ticks immediately, then keeps the schedule */
    WEFT_INTERVAL_SKIP = 1,  /* skips missed ticks and keeps the schedule */
    WEFT_INTERVAL_DELAY = 2, /* if a period or more late: next tick a full period from now */
} weft_interval_policy;

/* A periodic tick. */
typedef struct weft_interval {
    weft_time next; /* when the next tick is due */
    weft_time period;
    weft_interval_policy policy;
} weft_interval;

/*
 * Initializes an interval whose first tick is due at the time first, for example weft_now(). A
 * period below 1 ns counts as 1 ns.
 *
 * Context: any thread.
 */
WEFT_API void weft_interval_init(weft_interval *interval, weft_time first, weft_time period,
                                 weft_interval_policy policy);

/*
 * Waits for the next tick. Returns the number of ticks that have come: 1, or with
 * WEFT_INTERVAL_SKIP 1 plus the number skipped, at most INT_MAX.
 *
 * Context:  as weft_sleep(). A stackless task awaits a sleep until interval->next, then calls
 *           weft_interval_advance().
 * Suspends: until the tick is due.
 * Cancel:   WEFT_ECANCELED. The tick is not consumed.
 * Errors:   those of weft_sleep().
 */
WEFT_API int weft_interval_tick(weft_interval *interval);

/*
 * Moves to the next tick, after the one at interval->next has come. Returns the same value as
 * weft_interval_tick().
 *
 * Context: any thread.
 */
WEFT_API int weft_interval_advance(weft_interval *interval);

/*
 * A timer that calls a function once. The caller provides its storage, in a stack frame, a
 * struct or elsewhere. A zero-initialized timer is not running.
 */
typedef struct weft_timer {
    uint64_t opaque_[12];
} weft_timer;

/*
 * Starts a timer, or restarts it with another deadline. At the deadline a worker calls
 * function(arg). The function must not wait or block. It may spawn and wake tasks, cancel a
 * cancel token, and start or stop timers, including its own. flags is 0 or WEFT_PRECISE.
 *
 * When the runtime ends, its timers stop without calling their functions.
 *
 * Context: any task or blocking job, or a timer callback. Only one thread at a time may start
 *          or stop a timer; the timer's own function is exempt.
 * Owns:    the runtime uses the timer until it has called the function or the timer is stopped.
 */
WEFT_API void weft_timer_start(weft_timer *timer, weft_time deadline, unsigned flags,
                               void (*function)(void *arg), void *arg);

/*
 * Stops a timer. Returns true if its function was not called and never will be; false if it was
 * called, or if the timer was not running. If the function is running on another thread, blocks
 * until it has returned. So on return the function is not running, and the timer may be freed.
 *
 * In two cases waiting would deadlock. A call from the timer's own function returns
 * immediately. If callbacks (of timers and of weft_on_cancel_add()) stop each other while they
 * run, the last of these calls returns immediately; the other callbacks wait for it and
 * continue when it has returned. The timer may be freed then, but not the data that its
 * function still uses.
 *
 * Context:  any thread, also during and after the destruction of the timer's runtime. Only one
 *           thread at a time for a timer; its own function is exempt.
 * Suspends: never. It may block the thread while the function runs elsewhere.
 */
WEFT_API bool weft_timer_stop(weft_timer *timer);

WEFT_EXTERN_C_END

#endif
