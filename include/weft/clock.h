/* SPDX-License-Identifier: MIT */
/*
 * weft/clock.h - the monotonic clock, deadlines, and virtual time for tests.
 */
#ifndef WEFT_CLOCK_H
#define WEFT_CLOCK_H

#include "base.h"

WEFT_EXTERN_C_BEGIN

/*
 * A point in time, in nanoseconds of the monotonic clock, or a duration in nanoseconds. Every
 * call that can wait takes an absolute time as its deadline: weft_now() + 5 * WEFT_MS, or
 * WEFT_NEVER.
 */
typedef int64_t weft_time;

#define WEFT_NEVER INT64_MAX
#define WEFT_US    INT64_C(1000)
#define WEFT_MS    INT64_C(1000000)
#define WEFT_S     INT64_C(1000000000)

/*
 * Returns the current time. It never goes backwards.
 *
 * Context: any thread.
 */
WEFT_API weft_time weft_now(void);

/*
 * Returns time + duration. Saturates instead of overflowing: a sum that is too late is
 * WEFT_NEVER. WEFT_NEVER plus any duration is WEFT_NEVER.
 *
 * Context: any thread.
 */
WEFT_API weft_time weft_time_add(weft_time time, weft_time duration);

/*
 * Returns the time that lies duration after now: weft_after(5 * WEFT_MS) is a deadline.
 *
 * Context: any thread.
 */
WEFT_API weft_time weft_after(weft_time duration);

/*
 * Pauses the clock of this process, for tests: weft_now() stands still at a whole millisecond,
 * and deadlines pass only when weft_clock_advance() reaches them. A thread that already sleeps
 * until a deadline follows the running clock until it wakes for another reason, so pause the
 * clock before the first runtime is created.
 *
 * Context: any thread.
 */
WEFT_API void weft_clock_pause(void);

/*
 * Advances the paused clock by a duration of 0 or more and wakes the threads whose deadlines
 * have passed. Workers make the affected tasks runnable soon after that. The tasks of one
 * worker run in the order of their deadlines.
 *
 * Context: any thread. Aborts if the clock is not paused or the duration is negative.
 */
WEFT_API void weft_clock_advance(weft_time duration);

/*
 * Resumes the clock from the time it shows.
 *
 * Context: any thread.
 */
WEFT_API void weft_clock_resume(void);

WEFT_EXTERN_C_END

#endif
