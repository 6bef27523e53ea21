/* SPDX-License-Identifier: MIT */
/*
 * clock.h - program clock and machine clock, in nanoseconds.
 *
 * Both are the monotonic clock until the program clock is paused. A paused clock moves only
 * when it is advanced. Deadlines are in program time; elapsed time is measured in machine time.
 */
#ifndef WF_BASE_CLOCK_H
#define WF_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define WF_NEVER INT64_MAX

/* Returns the program time. */
int64_t wf_clock_now(void);

/* Returns the machine time. */
int64_t wf_clock_real(void);

/* Converts a machine time, which is now or was a moment ago, to program time. */
int64_t wf_clock_at(int64_t real);

/* Same as wf_futex_wait(), with a deadline in program time. */
int wf_clock_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline);

/*
 * For threads that do not sleep in wf_clock_futex_wait(). wf_clock_sleep_begin() returns the
 * machine time to sleep until; INT64_MIN means that the deadline has passed. While the clock is
 * paused it returns WF_NEVER, and wake() is called when the deadline has passed. wake() may be
 * called several times, and also before the sleep has begun: the wake-up must not be lost then.
 * wf_clock_sleep_end() returns whether the deadline has passed.
 */
struct wf_clock_sleeper {
    struct wf_list link; /* under the clock's lock */
    int64_t deadline;
    bool is_listed;
    void (*wake)(struct wf_clock_sleeper *self);
};

int64_t wf_clock_sleep_begin(struct wf_clock_sleeper *self, int64_t deadline);
bool wf_clock_sleep_end(struct wf_clock_sleeper *self);

#endif
