/* SPDX-License-Identifier: MIT */
/*
 * latch.h - a lock in two bits of a word, whose other bits are its object's.
 *
 * Quick operations change the object's bits by a CAS, while the latch is open. Others hold
 * the latch, do what takes more than the word, and close with new bits for the object: in
 * one step they let go of the latch and say what has become of the object. That is their
 * last access to it. So whom they let go may free the object at once, as one may who was
 * the last to need it.
 *
 * For short critical sections, as lock.h; one at a time, and never across user code.
 *
 * Edge [E1]: unlock releases the word, lock acquires it: what the last holder wrote is
 * seen.
 */
#ifndef WF_BASE_LATCH_H
#define WF_BASE_LATCH_H

#include <stdint.h>

#include "base/assert.h"
#include "base/atomic.h"

enum {
    WF_LATCH_HELD = 1,
    WF_LATCH_CONTENDED = 2, /* held, and somebody may sleep on the word */
    WF_LATCH_BITS = 3,
    WF_LATCH_SHIFT = 2, /* the object's bits begin here */
};

/* May a quick operation change the bits of this word? */
static inline bool wf_latch_is_open(uint32_t word)
{
    return (word & WF_LATCH_BITS) == 0;
}

uint32_t wf_latch_wait(_Atomic(uint32_t) *word);
void wf_latch_wake(_Atomic(uint32_t) *word);

/* Takes the latch. Returns the object's bits, which nobody else changes now. */
static inline uint32_t wf_latch_lock(_Atomic(uint32_t) *word)
{
    /* relaxed: the exchange sees whether it is true. */
    uint32_t bits = wf_load_relaxed(word);
    /* acquire [E1]: what the last holder wrote. */
    if (wf_likely(wf_latch_is_open(bits)) && wf_cas_acquire(word, &bits, bits | WF_LATCH_HELD)) {
        return bits;
    }
    return wf_latch_wait(word);
}

/* Gives it up, with these bits for the object, which must not be touched any more. */
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
