/* SPDX-License-Identifier: MIT */
/*
 * park.c - parker: one thread sleeps until another wakes it. Edges [P1] and [P2], see park.h.
 */
#include "sched/park.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/futex.h"

enum {
    EMPTY = WF_PARK_EMPTY,
    PARKED = WF_PARK_PARKED,
    NOTIFIED = WF_PARK_NOTIFIED,
    AWAY = WF_PARK_AWAY
};

/* Consumes a notification. Returns false if there is none. */
static bool take(struct wf_park *park)
{
    uint32_t word = NOTIFIED;
    /* acquire [P1]: see what the waker wrote. */
    return wf_cas_acquire(&park->word, &word, (uint32_t)EMPTY);
}

typedef int (*wait_fn)(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline);

static inline bool sleep_with(struct wf_park *park, int64_t deadline, wait_fn wait)
{
    uint32_t word = EMPTY;
    /* relaxed: no data is read because of it; if it is NOTIFIED already, take() acquires. */
    if (!wf_cas_relaxed(&park->word, &word, (uint32_t)PARKED)) {
        return take(park);
    }
    for (;;) {
        int rc = wait(&park->word, PARKED, deadline);
        if (take(park)) {
            return true;
        }
        if (rc == 0) {
            continue; /* Woken for no reason. */
        }
        word = PARKED;
        /* relaxed: a wake that coincides with the deadline makes it fail, and the next take()
         * acquires. */
        if (wf_cas_relaxed(&park->word, &word, (uint32_t)EMPTY)) {
            return false;
        }
    }
}

bool wf_park_sleep(struct wf_park *park, int64_t deadline)
{
    return sleep_with(park, deadline, wf_clock_futex_wait);
}

bool wf_park_sleep_real(struct wf_park *park, int64_t deadline)
{
    return sleep_with(park, deadline, wf_futex_wait);
}

bool wf_park_leave(struct wf_park *park)
{
    uint32_t word = EMPTY;
    /* release [P2]: a thread that wakes it there sees what it did before. If it is NOTIFIED
     * already, take() acquires. */
    if (wf_cas_release(&park->word, &word, (uint32_t)AWAY)) {
        return true;
    }
    (void)take(park);
    return false;
}

bool wf_park_come_back(struct wf_park *park)
{
    /* acquire [P1]: see what the waker wrote. */
    return wf_xchg_acquire(&park->word, (uint32_t)EMPTY) == NOTIFIED;
}

bool wf_park_wake(struct wf_park *park)
{
    /* acq_rel [P1] [P2]: the sleeper sees what this thread wrote. If it sleeps elsewhere, this
     * thread sees what it did before it left. */
    uint32_t before = wf_xchg_acq_rel(&park->word, (uint32_t)NOTIFIED);
    if (before == PARKED) {
        wf_futex_wake(&park->word, 1);
    }
    return before == AWAY;
}
