/* SPDX-License-Identifier: MIT */
/*
 * clock.h - the program's time, and the machine's, in nanoseconds.
 *
 * Both are the monotonic clock, until somebody pauses the program's time: then it
 * goes on only when it is told to. Deadlines are in the program's time; how long
 * something has taken is measured in the machine's.
 */
#ifndef WF_BASE_CLOCK_H
#define WF_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define WF_NEVER INT64_MAX

/* The program's time. */
int64_t wf_clock_now(void);

/* The machine's time. */
int64_t wf_clock_real(void);

/* The program's time when the machine's is, or was a moment ago, real. */
int64_t wf_clock_at(int64_t real);

/* As wf_futex_wait(), but the deadline is in the program's time. */
int wf_clock_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline);

/*
 * For those who sleep elsewhere. Begin returns the machine's time to sleep until; INT64_MIN:
 * the deadline has come. While the program's is paused, that is WF_NEVER, and wake() is
 * called, perhaps often, when the deadline has come; it may be called before the sleep has
 * begun, and must be kept then. End says whether the deadline has come.
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
