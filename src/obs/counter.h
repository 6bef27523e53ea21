/* SPDX-License-Identifier: MIT */
/*
 * counter.h - counters with one writer and any number of readers.
 *
 * Each worker has its own, on lines of its own: counters that all workers write
 * cost more than what they count. An addition is a plain load, add and store;
 * a reader gets some whole value of each.
 */
#ifndef WF_OBS_COUNTER_H
#define WF_OBS_COUNTER_H

#include <stdint.h>

#include "base/atomic.h"

typedef _Atomic(uint64_t) wf_counter; /* one thread writes, all read */

/* Owner only. */
static inline void wf_counter_add(wf_counter *counter, uint64_t n)
{
    /* relaxed: one writer, and readers want a value, not an order. */
    wf_store_relaxed(counter, wf_load_relaxed(counter) + n);
}

/* Owner only. */
static inline void wf_counter_set(wf_counter *counter, uint64_t value)
{
    /* relaxed: one writer, and readers want a value, not an order. */
    wf_store_relaxed(counter, value);
}

static inline uint64_t wf_counter_read(const wf_counter *counter)
{
    /* relaxed: readers want a value, not an order. */
    return wf_load_relaxed(counter);
}

#endif
