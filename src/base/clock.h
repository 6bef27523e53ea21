/* SPDX-License-Identifier: MIT */
/*
 * clock.h - the monotonic clock in nanoseconds.
 */
#ifndef WF_BASE_CLOCK_H
#define WF_BASE_CLOCK_H

#include <stdint.h>

#define WF_NEVER INT64_MAX

int64_t wf_clock_now(void);

#endif
