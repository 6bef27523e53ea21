/* SPDX-License-Identifier: MIT */
/*
 * latch.c - the slow side of the latch.
 *
 * As in lock.c, a waiter looks for a while whether it can have the latch. Then it marks the word
 * CONTENDED before it sleeps, and takes the latch as CONTENDED, since it cannot know whether
 * others sleep, and its wake was the one that they would have had. While the latch is held, the
 * object's bits stay as they are: so the word changes under a sleeper only by an unlock,
 * which wakes one, or by another waiter's mark.
 *
 * Edges: [E1], see latch.h.
 */
#include "base/latch.h"

#include "base/clock.h"
#include "base/futex.h"

enum {
    /* Between two looks, each time for longer: meanwhile the holder may come back several
     * times, with all in its cache. A first pause of 32 gives twice the throughput of two
     * threads at one channel that a pause of 1 gives. */
    PAUSE_MIN = 32,
#ifdef WF_MODEL
    PAUSE_MAX = 0,
#else
    PAUSE_MAX = 256, /* All together: about what a sleep and a wake-up cost. */
#endif
};

/* Pauses, or sleeps if it has done so for long. Returns whether it has slept. */
static bool wait_a_while(_Atomic(uint32_t) *word, uint32_t seen, unsigned *pause)
{
    if (*pause <= PAUSE_MAX) {
        wf_cpu_pause(*pause);
        *pause *= 2;
        return false;
    }
    uint32_t marked = seen | WF_LATCH_CONTENDED;
    /* relaxed: a mark for who unlocks, by an exchange. */
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
    /* relaxed: the exchanges see whether it is true. */
    uint32_t seen = wf_load_relaxed(word);
    for (;;) {
        if (!wf_latch_is_open(seen)) {
            if (wait_a_while(word, seen, &pause)) {
                taken = WF_LATCH_HELD | WF_LATCH_CONTENDED;
            }
            /* relaxed: the exchanges see whether it is true. */
            seen = wf_load_relaxed(word);
            /* acquire [E1]: what the last holder wrote. */
        } else if (wf_cas_acquire(word, &seen, seen | taken)) {
            return seen;
        }
    }
}

/* The object may be gone: the address alone is harmless. */
void wf_latch_wake(_Atomic(uint32_t) *word)
{
    wf_futex_wake(word, 1);
}
