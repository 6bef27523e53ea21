/* SPDX-License-Identifier: MIT */
/*
 * clock.c - the monotonic clock in nanoseconds.
 */
#include "base/clock.h"

#include <time.h>

#include <weft/time.h>

int64_t wf_clock_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

weft_time weft_now(void)
{
    return wf_clock_now();
}
