/* SPDX-License-Identifier: MIT */
/*
 * counter.h - statistics counters with one writer and any number of readers.
 *
 * Each worker has its own counters on its own cache lines: counters that all workers write cost
 * more than what they count. An addition is a plain load, add and store. A reader gets an
 * untorn value of each counter.
 */
#ifndef WF_OBS_COUNTER_H
#define WF_OBS_COUNTER_H

#include <stdint.h>

#include "base/atomic.h"

typedef _Atomic(uint64_t) wf_counter; /* one thread writes, any thread reads */

/* Owner only. */
static inline void wf_counter_add(wf_counter *counter, uint64_t n)
{
    /* relaxed: there is one writer, and readers need a value, not an order. */
    wf_store_relaxed(counter, wf_load_relaxed(counter) + n);
}

/* Owner only. */
static inline void wf_counter_set(wf_counter *counter, uint64_t value)
{
    /* relaxed: there is one writer, and readers need a value, not an order. */
    wf_store_relaxed(counter, value);
}

static inline uint64_t wf_counter_read(const wf_counter *counter)
{
    /* relaxed: readers need a value, not an order. */
    return wf_load_relaxed(counter);
}

#endif
