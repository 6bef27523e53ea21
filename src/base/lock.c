/* SPDX-License-Identifier: MIT */
/*
 * lock.c - slow path of the lock, and its rank check.
 *
 * A waiter spins for a while. Then it marks the word CONTENDED before it sleeps, and takes the
 * lock as CONTENDED, since it cannot know whether other threads sleep. So an unlock that finds
 * HELD has no sleeper to wake, and one that finds CONTENDED wakes one.
 *
 * Edges: [L1], see lock.h.
 */
#include "base/lock.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/futex.h"

enum {
    /* About the length of our critical sections. After that, the holder has probably been
     * preempted. */
    SPINS_MAX = 64,
};

void wf_lock_wait(struct wf_lock *lock)
{
    for (int i = 0; i < SPINS_MAX; i++) {
        uint32_t word = WF_LOCK_FREE;
        /* relaxed: only a hint; the CAS takes the lock. */
        if (wf_load_relaxed(&lock->word) == WF_LOCK_FREE &&
            /* acquire [L1]: sees what the last holder wrote. */
            wf_cas_acquire(&lock->word, &word, (uint32_t)WF_LOCK_HELD)) {
            return;
        }
        wf_cpu_relax();
    }
    /* acquire [L1]: sees what the last holder wrote. */
    while (wf_xchg_acquire(&lock->word, (uint32_t)WF_LOCK_CONTENDED) != WF_LOCK_FREE) {
        (void)wf_futex_wait(&lock->word, WF_LOCK_CONTENDED, WF_NEVER);
    }
}

void wf_lock_wake(struct wf_lock *lock)
{
    wf_futex_wake(&lock->word, 1);
}

#ifdef WF_DEBUG

static const char *const rank_names[WF_RANK_COUNT] = {
    [WF_RANK_NONE] = "uninitialised", [WF_RANK_RUNTIME] = "runtime", [WF_RANK_IO] = "io",
    [WF_RANK_TABLE] = "table",        [WF_RANK_RING] = "ring",       [WF_RANK_ROOM] = "room",
    [WF_RANK_POOL] = "pool",          [WF_RANK_JOIN] = "join",       [WF_RANK_INJECT] = "inject",
    [WF_RANK_HEAP] = "heap",          [WF_RANK_STACK] = "stack",     [WF_RANK_TIMER] = "timer",
    [WF_RANK_AWAY] = "away",          [WF_RANK_RUNNERS] = "runners", [WF_RANK_CLOCK] = "clock",
    [WF_RANK_PIPELINE] = "pipeline",  [WF_RANK_DUPLEX] = "duplex",   [WF_RANK_SHARED] = "shared",
    [WF_RANK_CALLBACK] = "callback",
};

static _Thread_local const struct wf_lock *held[WF_RANK_COUNT];

void wf_lock_note_taken(const struct wf_lock *lock)
{
    WF_ASSERT(lock->rank > WF_RANK_NONE);
    WF_ASSERT(lock->rank < WF_RANK_COUNT);
    for (uint32_t rank = lock->rank; rank < WF_RANK_COUNT; rank++) {
        if (held[rank] != NULL) {
            wf_fatal("lock order: '%s' is taken while '%s' is held", rank_names[lock->rank],
                     rank_names[rank]);
        }
    }
    held[lock->rank] = lock;
}

void wf_lock_note_released(const struct wf_lock *lock)
{
    if (held[lock->rank] != lock) {
        wf_fatal("lock order: '%s' is released by a thread that does not hold it",
                 rank_names[lock->rank]);
    }
    held[lock->rank] = NULL;
}

const char *wf_lock_any_held(void)
{
    for (uint32_t rank = 0; rank < WF_RANK_COUNT; rank++) {
        if (held[rank] != NULL) {
            return rank_names[rank];
        }
    }
    return NULL;
}

bool wf_lock_is_held(const struct wf_lock *lock)
{
    return held[lock->rank] == lock;
}

#endif
