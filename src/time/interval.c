/* SPDX-License-Identifier: MIT */
/*
 * interval.c - interval timer: one tick per period.
 */
#include <weft/time.h>

#include "base/clock.h"
#include "time/timer.h"

void weft_interval_init(weft_interval *interval, weft_time first, weft_time period,
                        weft_interval_policy policy)
{
    *interval = (weft_interval){
        .next = first,
        .period = period < 1 ? 1 : period,
        .policy = policy,
    };
}

int weft_interval_advance(weft_interval *interval)
{
    weft_time planned = weft_time_add(interval->next, interval->period);
    weft_time now = wf_clock_now();
    if (interval->policy == WEFT_INTERVAL_BURST || planned > now) {
        interval->next = planned;
        return 1;
    }
    if (interval->policy == WEFT_INTERVAL_DELAY) {
        interval->next = weft_time_add(now, interval->period);
        return 1;
    }
    /* Unsigned: the two times may be further apart than the maximum duration. */
    uint64_t behind = (uint64_t)now - (uint64_t)planned;
    uint64_t period = (uint64_t)interval->period;
    interval->next = weft_time_add(now, (int64_t)(period - behind % period));
    return behind / period < INT_MAX - 1 ? 2 + (int)(behind / period) : INT_MAX;
}

int weft_interval_tick(weft_interval *interval)
{
    int err = wf_sleep_until(interval->next, "weft_interval_tick");
    return err != 0 ? err : weft_interval_advance(interval);
}
