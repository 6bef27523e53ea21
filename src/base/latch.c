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

/* Looks for a while whether it opens. Returns whether it has it, with the object's bits. */
static bool take_soon(_Atomic(uint32_t) *word, uint32_t *bits)
{
    for (unsigned pause = PAUSE_MIN; pause <= PAUSE_MAX; pause *= 2) {
        wf_cpu_pause(pause);
        /* relaxed: the exchange sees whether it is true. */
        *bits = wf_load_relaxed(word);
        /* acquire [E1]: what the last holder wrote. */
        if (wf_latch_is_open(*bits) && wf_cas_acquire(word, bits, *bits | WF_LATCH_HELD)) {
            return true;
        }
    }
    return false;
}

uint32_t wf_latch_wait(_Atomic(uint32_t) *word)
{
    uint32_t seen;
    if (take_soon(word, &seen)) {
        return seen;
    }
    /* relaxed: the exchanges see whether it is true. */
    seen = wf_load_relaxed(word);
    for (;;) {
        if (wf_latch_is_open(seen)) {
            /* acquire [E1]: what the last holder wrote. */
            if (wf_cas_acquire(word, &seen, seen | WF_LATCH_HELD | WF_LATCH_CONTENDED)) {
                return seen;
            }
            continue;
        }
        uint32_t marked = seen | WF_LATCH_CONTENDED;
        /* relaxed: a mark for who unlocks, by an exchange. */
        if (marked == seen || wf_cas_relaxed(word, &seen, marked)) {
            (void)wf_futex_wait(word, marked, WF_NEVER);
            /* relaxed: the exchanges see whether it is true. */
            seen = wf_load_relaxed(word);
        }
    }
}

/* The object may be gone: the address alone is harmless. */
void wf_latch_wake(_Atomic(uint32_t) *word)
{
    wf_futex_wake(word, 1);
}
