/* SPDX-License-Identifier: MIT */
/*
 * park.h - where one thread sleeps until another wakes it.
 *
 * A wake that comes before the sleep is kept: the next sleep returns at once.
 * Any number of wakes before a sleep count as one.
 *
 *   EMPTY --sleep--> PARKED --wake--> NOTIFIED --sleep returns--> EMPTY
 *     +------------------wake----------------^
 *
 * The thread may also sleep elsewhere, where it waits for other things as well:
 *
 *   EMPTY --leave--> AWAY --wake--> NOTIFIED --come back--> EMPTY
 *
 * Who wakes it then is told so, and must reach it there, by something that is kept if it is
 * not there yet.
 *
 * Edges.
 * [P1] wake releases the word, the end of a sleep acquires it: the sleeper sees what the
 *      waker wrote.
 * [P2] leave releases the word, a wake acquires it: what the sleeper did before it left is
 *      seen by who is reached in its stead, and has to pass that on (io/epoll.c).
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

/* Its thread only. Returns true if it was woken, false after the deadline. */
bool wf_park_sleep(struct wf_park *park, int64_t deadline);

/* The same, with a deadline in the machine's time (clock.h). */
bool wf_park_sleep_real(struct wf_park *park, int64_t deadline);

/* Its thread only, before it sleeps elsewhere. False: it was woken, and does not. */
bool wf_park_leave(struct wf_park *park);

/* Its thread only, in there: was it not woken yet? */
static inline bool wf_park_is_away(const struct wf_park *park)
{
    /* relaxed: a look; wf_park_come_back() acquires. */
    return wf_load_relaxed(&park->word) == WF_PARK_AWAY;
}

/* Its thread only, after that. Returns true if it was woken. */
bool wf_park_come_back(struct wf_park *park);

/* Any thread. Returns true if it sleeps elsewhere: wake it there. */
bool wf_park_wake(struct wf_park *park);

#endif
