/* SPDX-License-Identifier: MIT */
/*
 * park.h - parker: one thread sleeps until another wakes it.
 *
 * A wake before the sleep is remembered: the next sleep returns immediately. Any number of
 * wakes before a sleep count as one.
 *
 *   EMPTY --sleep--> PARKED --wake--> NOTIFIED --sleep returns--> EMPTY
 *     +------------------wake----------------^
 *
 * The thread may also sleep elsewhere, where it waits for other events as well:
 *
 *   EMPTY --leave--> AWAY --wake--> NOTIFIED --come back--> EMPTY
 *
 * wf_park_wake() then reports that to the waker, which must wake the thread there, by a
 * mechanism that remembers the wake if the thread is not asleep yet.
 *
 * Edges.
 * [P1] wake releases the word, the end of a sleep acquires it: the sleeper sees what the waker
 *      wrote.
 * [P2] leave releases the word, a wake acquires it: a thread that is woken in the sleeper's
 *      stead sees what the sleeper did before it left, and has to pass that on (io/epoll.c).
 */
#ifndef WF_SCHED_PARK_H
#define WF_SCHED_PARK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

enum {
    WF_PARK_EMPTY,
    WF_PARK_PARKED,
    WF_PARK_NOTIFIED,
    WF_PARK_AWAY,
};

/* Zero is EMPTY. */
struct wf_park {
    _Atomic(uint32_t) word;
};

/* Its thread only: sleeps. Returns true if it was woken, false after the deadline. */
bool wf_park_sleep(struct wf_park *park, int64_t deadline);

/* Same as wf_park_sleep(), with a deadline in the machine's time (clock.h). */
bool wf_park_sleep_real(struct wf_park *park, int64_t deadline);

/* Its thread only, before it sleeps elsewhere. Returns false if it was woken already and must
 * not sleep. */
bool wf_park_leave(struct wf_park *park);

/* Its thread only, while it sleeps elsewhere: returns whether it has not been woken yet. */
static inline bool wf_park_is_away(const struct wf_park *park)
{
    /* relaxed: a hint; wf_park_come_back() acquires. */
    return wf_load_relaxed(&park->word) == WF_PARK_AWAY;
}

/* Its thread only, after it has slept elsewhere. Returns true if it was woken. */
bool wf_park_come_back(struct wf_park *park);

/* Any thread: wakes the thread. Returns true if it sleeps elsewhere; the caller must wake it
 * there. */
bool wf_park_wake(struct wf_park *park);

#endif
