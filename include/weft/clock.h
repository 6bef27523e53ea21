/* SPDX-License-Identifier: MIT */
/*
 * weft/clock.h - points in time.
 */
#ifndef WEFT_CLOCK_H
#define WEFT_CLOCK_H

#include "base.h"

WEFT_EXTERN_C_BEGIN

/*
 * A point in time in nanoseconds of the monotonic clock. Every call that can
 * wait takes one as its deadline: weft_now() + 5 * WEFT_MS, or WEFT_NEVER.
 */
typedef int64_t weft_time;

#define WEFT_NEVER INT64_MAX
#define WEFT_US    INT64_C(1000)
#define WEFT_MS    INT64_C(1000000)
#define WEFT_S     INT64_C(1000000000)

/*
 * Returns the time now. It never goes back.
 *
 * Context: any thread.
 */
WEFT_API weft_time weft_now(void);

/*
 * Returns time + duration, or WEFT_NEVER if that is later than can be told; never
 * wraps around. WEFT_NEVER plus anything is WEFT_NEVER.
 *
 * Context: any thread.
 */
WEFT_API weft_time weft_time_add(weft_time time, weft_time duration);

/*
 * Returns the time in so long: weft_after(5 * WEFT_MS) is a deadline.
 *
 * Context: any thread.
 */
WEFT_API weft_time weft_after(weft_time duration);

/*
 * Stops the clock of this process, for tests: from now on weft_now() stands still,
 * at a whole millisecond, and deadlines come only when weft_clock_advance() reaches
 * them. What sleeps with a
 * deadline already goes on by the old clock until it is woken for another reason; so
 * pause before the first runtime is created.
 *
 * Context: any thread.
 */
WEFT_API void weft_clock_pause(void);

/*
 * Advances the paused clock by a duration of 0 or more, and wakes the threads whose deadlines
 * have passed. Workers make tasks runnable soon after; those of one worker run in the order of
 * their deadlines.
 *
 * Context: any thread. Aborts if the clock is not paused, or if the duration is negative.
 */
WEFT_API void weft_clock_advance(weft_time duration);

/*
 * Lets the clock run again, from the time it shows.
 *
 * Context: any thread.
 */
WEFT_API void weft_clock_resume(void);

WEFT_EXTERN_C_END

#endif
