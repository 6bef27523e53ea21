/* SPDX-License-Identifier: MIT */
/*
 * clock.c - base/clock.h in the model: time stands still, or is the test's.
 */
#include "base/clock.h"

#include <weft/time.h>

#include "mc.h"

int64_t wf_clock_now(void)
{
    return mc_clock_now();
}

weft_time weft_now(void)
{
    return wf_clock_now();
}
