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
 * Edge [P1]: wake releases the word, the end of a sleep acquires it: the sleeper
 * sees what the waker wrote.
 */
#ifndef WF_SCHED_PARK_H
#define WF_SCHED_PARK_H

#include <stdbool.h>
#include <stdint.h>

/* Zero is EMPTY. */
struct wf_park {
    _Atomic(uint32_t) word;
};

/* Its thread only. Returns true if it was woken, false after the deadline. */
bool wf_park_sleep(struct wf_park *park, int64_t deadline);

/* The same, with a deadline in the machine's time (clock.h). */
bool wf_park_sleep_real(struct wf_park *park, int64_t deadline);

/* Any thread. */
void wf_park_wake(struct wf_park *park);

#endif
