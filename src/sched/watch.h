/* SPDX-License-Identifier: MIT */
/*
 * watch.h - monitor thread: looks after workers that are stalled in a long poll. The protocol
 * is in watch.c.
 */
#ifndef WF_SCHED_WATCH_H
#define WF_SCHED_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "sched/park.h"

struct wf_sched;

struct wf_watch {
    pthread_t thread;
    bool started;              /* owned by the starting and stopping thread */
    struct wf_park park;       /* where the monitor sleeps */
    _Atomic(uint32_t) asleep;  /* the monitor writes, workers read */
    _Atomic(uint32_t) stopped; /* the stopping thread writes */
    _Atomic(uint32_t) overdue; /* the monitor sets it: timers or events wait */
    _Atomic(uint32_t) calm;    /* the monitor sets it: its next scan is far away */
};

/* Starts the monitor. Returns 0 or -EAGAIN. */
int wf_watch_start(struct wf_sched *sched);
void wf_watch_stop(struct wf_sched *sched);

/* Worker that has just woken, once: returns whether the monitor sleeps. The worker must then
 * wake it before it leaves anything for the monitor to watch. */
bool wf_watch_is_asleep(const struct wf_watch *watch);

/* Any thread: wakes the monitor. */
void wf_watch_wake(struct wf_watch *watch);

/* Worker: ends the monitor's calm phase, because there may be more to watch from now on. */
static inline void wf_watch_hurry(struct wf_watch *watch)
{
    /* relaxed: a hint. If it is missed, the next scan may be 12 ms away. */
    if (wf_unlikely(wf_load_relaxed(&watch->calm) != 0)) {
        /* relaxed: only avoids more than one wake-up. */
        wf_store_relaxed(&watch->calm, 0u);
        wf_watch_wake(watch);
    }
}

#endif
