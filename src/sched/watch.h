/* SPDX-License-Identifier: MIT */
/*
 * watch.h - the thread that looks after workers that are busy for long. The
 * protocol is in watch.c.
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
    bool started;              /* the starting and stopping thread's */
    struct wf_park park;       /* where the watch sleeps */
    _Atomic(uint32_t) asleep;  /* the watch writes, workers read */
    _Atomic(uint32_t) stopped; /* the stopping thread writes */
    _Atomic(uint32_t) overdue; /* the watch sets it: timers or events wait */
    _Atomic(uint32_t) calm;    /* the watch sets it: its next look is far away */
};

/* 0 or -EAGAIN. */
int wf_watch_start(struct wf_sched *sched);
void wf_watch_stop(struct wf_sched *sched);

/* A worker that has just woken, once: does the watch sleep? Then it must be
 * woken before something is left to its care. */
bool wf_watch_is_asleep(const struct wf_watch *watch);

/* Any thread. */
void wf_watch_wake(struct wf_watch *watch);

/* A worker: the watch may have more to see to from now on. */
static inline void wf_watch_hurry(struct wf_watch *watch)
{
    /* relaxed: a hint; who misses it may wait for the next look, 12 ms. */
    if (wf_unlikely(wf_load_relaxed(&watch->calm) != 0)) {
        /* relaxed: only so that one wake is enough. */
        wf_store_relaxed(&watch->calm, 0u);
        wf_watch_wake(watch);
    }
}

#endif
