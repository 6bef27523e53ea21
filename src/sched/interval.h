/* SPDX-License-Identifier: MIT */
/*
 * interval.h - adaptive interval at which a worker serves the inject queue first.
 *
 * interval = clamp(target / average poll time, min, max): a task that waits in the inject queue
 * of a busy runtime starts within about the target. Each tick moves the average a tenth of the
 * way to the tick's own average.
 */
#ifndef WF_SCHED_INTERVAL_H
#define WF_SCHED_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

/* Average until the first sample. */
#define WF_INTERVAL_FIRST_NS UINT64_C(50000)

/* A sample counts as at most this multiple of the average, so that one outlier (a 10 ms poll
 * among short ones) moves the interval by less than half: 1 / (0.9 + 0.1 * 8) = 0.59. A second
 * such sample in a row is not an outlier and counts in full. */
#define WF_INTERVAL_OUTLIER 8

struct wf_interval {
    double average_ns;
    bool had_outlier; /* the last sample was clamped */
    uint64_t target_ns;
    uint32_t min;
    uint32_t max;
};

static inline void wf_interval_init(struct wf_interval *interval, uint64_t target_ns, uint32_t min,
                                    uint32_t max)
{
    interval->average_ns = WF_INTERVAL_FIRST_NS;
    interval->had_outlier = false;
    interval->target_ns = target_ns;
    interval->min = min;
    interval->max = max;
}

/* Adds the sample of one tick, in which the polls took ns in total. An empty tick is no sample. */
static inline void wf_interval_sample(struct wf_interval *interval, uint64_t ns, uint32_t polls)
{
    if (polls == 0) {
        return;
    }
    double sample = (double)ns / polls;
    bool outlier = sample > WF_INTERVAL_OUTLIER * interval->average_ns;
    if (outlier && !interval->had_outlier) {
        sample = WF_INTERVAL_OUTLIER * interval->average_ns;
    }
    interval->had_outlier = outlier;
    interval->average_ns = 0.1 * sample + 0.9 * interval->average_ns;
    if (interval->average_ns < 1) {
        interval->average_ns = 1;
    }
}

static inline uint32_t wf_interval_polls(const struct wf_interval *interval)
{
    /* Slightly more, so that an average of 50 us that rounding left at 50.000000001 still gives
     * 20. */
    double polls = (double)interval->target_ns / interval->average_ns + 1e-6;
    if (polls < interval->min) {
        return interval->min;
    }
    return polls > interval->max ? interval->max : (uint32_t)polls;
}

#endif
