/* SPDX-License-Identifier: MIT */
/*
 * latch.c - slow path of the latch: spin, then sleep.
 *
 * As in lock.c, a waiter spins for a while. Then it marks the word CONTENDED and sleeps. After
 * a sleep it takes the latch as CONTENDED: it cannot know whether other threads sleep, and it
 * has consumed the wake-up that they would have received. While the latch is held, the object's
 * bits do not change. So the word changes under a sleeper only by an unlock, which wakes one
 * sleeper, or by the mark of another waiter.
 *
 * Edges: [E1], see latch.h.
 */
#include "base/latch.h"

#include "base/clock.h"
#include "base/futex.h"

enum {
    /* First pause between two attempts; each pause doubles. During a pause the holder may lock
     * again several times with everything in its cache. A first pause of 32 gives two threads
     * on one channel twice the throughput of a first pause of 1. */
    PAUSE_MIN = 32,
#ifdef WF_MODEL
    PAUSE_MAX = 0,
#else
    PAUSE_MAX = 256, /* In total: about the cost of a sleep and a wake-up. */
#endif
};

/* Pauses, or sleeps if it has paused long enough. Returns whether it has slept. */
static bool wait_a_while(_Atomic(uint32_t) *word, uint32_t seen, unsigned *pause)
{
    if (*pause <= PAUSE_MAX) {
        wf_cpu_pause(*pause);
        *pause *= 2;
        return false;
    }
    uint32_t marked = seen | WF_LATCH_CONTENDED;
    /* relaxed: a mark for the unlocker, which reads it by an exchange. */
    if (marked != seen && !wf_cas_relaxed(word, &seen, marked)) {
        return false;
    }
    (void)wf_futex_wait(word, marked, WF_NEVER);
    return true;
}

uint32_t wf_latch_wait(_Atomic(uint32_t) *word)
{
    unsigned pause = PAUSE_MIN;
    uint32_t taken = WF_LATCH_HELD;
    /* relaxed: a guess that the CAS verifies. */
    uint32_t seen = wf_load_relaxed(word);
    for (;;) {
        if (!wf_latch_is_open(seen)) {
            if (wait_a_while(word, seen, &pause)) {
                taken = WF_LATCH_HELD | WF_LATCH_CONTENDED;
            }
            /* relaxed: a guess that the CAS verifies. */
            seen = wf_load_relaxed(word);
            /* acquire [E1]: sees what the last holder wrote. */
        } else if (wf_cas_acquire(word, &seen, seen | taken)) {
            return seen;
        }
    }
}

/* Wakes one sleeper. The object may be freed by now: using only its address is harmless. */
void wf_latch_wake(_Atomic(uint32_t) *word)
{
    wf_futex_wake(word, 1);
}
