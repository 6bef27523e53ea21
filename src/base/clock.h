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

#include <stdint.h>

#define WF_NEVER INT64_MAX

/* The program's time. */
int64_t wf_clock_now(void);

/* The machine's time. */
int64_t wf_clock_real(void);

/* The program's time when the machine's is, or was a moment ago, real. */
int64_t wf_clock_at(int64_t real);

/* As wf_futex_wait(), but the deadline is in the program's time. */
int wf_clock_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline);

#endif
