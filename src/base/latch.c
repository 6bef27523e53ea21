/* SPDX-License-Identifier: MIT */
/*
 * latch.c - the slow side of the latch.
 *
 * As in lock.c, a waiter marks the word CONTENDED before it sleeps, and takes the latch as
 * CONTENDED, since it cannot know whether others sleep. While the latch is held, the
 * object's bits stay as they are: so the word changes under a sleeper only by an unlock,
 * which wakes one, or by another waiter's mark.
 *
 * Edges: [E1], see latch.h.
 */
#include "base/latch.h"

#include "base/clock.h"
#include "base/futex.h"

enum {
#ifdef WF_MODEL
    LOOKS_MAX = 0,
#else
    /* About the length of our critical sections. */
    LOOKS_MAX = 64,
#endif
};

static void look_a_while(_Atomic(uint32_t) *word)
{
    for (int i = 0; i < LOOKS_MAX; i++) {
        /* relaxed: only a look. */
        if (wf_latch_is_open(wf_load_relaxed(word))) {
            return;
        }
        wf_cpu_relax();
    }
}

uint32_t wf_latch_wait(_Atomic(uint32_t) *word)
{
    look_a_while(word);
    /* relaxed: the exchanges see whether it is true. */
    uint32_t seen = wf_load_relaxed(word);
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
