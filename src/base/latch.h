/* SPDX-License-Identifier: MIT */
/*
 * latch.h - lock in two bits of a word whose other bits belong to an object.
 *
 * Fast operations change the object's bits by a CAS while the latch is open. Slow operations
 * hold the latch, do what takes more than the word, and unlock with new bits for the object:
 * one step releases the latch and publishes the object's new state. That is their last access
 * to the object. So a task that they wake may free the object immediately, and so may the last
 * user of the object.
 *
 * For short critical sections, like lock.h. A thread holds one latch at a time (only select.c
 * takes several, in the order of their addresses), and never holds one across user code.
 *
 * Edge [E1]: unlock releases the word, lock acquires it: the holder sees what the last holder
 * wrote.
 */
#ifndef WF_BASE_LATCH_H
#define WF_BASE_LATCH_H

#include <stdint.h>

#include "base/assert.h"
#include "base/atomic.h"

enum {
    WF_LATCH_HELD = 1,
    WF_LATCH_CONTENDED = 2, /* held, and a thread may sleep on the word */
    WF_LATCH_BITS = 3,
    WF_LATCH_SHIFT = 2, /* the object's bits start here */
};

/* Returns whether a fast operation may change the bits of this word. */
static inline bool wf_latch_is_open(uint32_t word)
{
    return (word & WF_LATCH_BITS) == 0;
}

uint32_t wf_latch_wait(_Atomic(uint32_t) *word);
void wf_latch_wake(_Atomic(uint32_t) *word);

/* Takes the latch. Returns the object's bits, which only the holder changes now. */
static inline uint32_t wf_latch_lock(_Atomic(uint32_t) *word)
{
    /* relaxed: a guess that the CAS verifies. */
    uint32_t bits = wf_load_relaxed(word);
    /* acquire [E1]: sees what the last holder wrote. */
    if (wf_likely(wf_latch_is_open(bits)) && wf_cas_acquire(word, &bits, bits | WF_LATCH_HELD)) {
        return bits;
    }
    return wf_latch_wait(word);
}

/* Releases the latch with these bits for the object, which the caller must not touch afterwards. */
static inline void wf_latch_unlock(_Atomic(uint32_t) *word, uint32_t bits)
{
    WF_DEBUG_ASSERT(wf_latch_is_open(bits));
    /* release [E1]: the next holder sees what this one wrote. */
    uint32_t last = wf_xchg_release(word, bits);
    WF_DEBUG_ASSERT((last & WF_LATCH_HELD) != 0);
    if (wf_unlikely((last & WF_LATCH_CONTENDED) != 0)) {
        wf_latch_wake(word);
    }
}

#endif
