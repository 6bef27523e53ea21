/* SPDX-License-Identifier: MIT */
/*
 * lock.h - mutex of eight bytes, with a lock rank.
 *
 * For short critical sections inside the runtime: a thread that cannot take the lock spins
 * briefly, then sleeps. Never held across user code.
 *
 * Ranks: a thread takes locks only in ascending rank, so no two threads can deadlock. Debug
 * builds abort on a wrong order and name both locks. A thread never holds two locks of equal
 * rank.
 *
 * Edge [L1]: unlock releases the word, lock acquires it: the holder sees what the last holder
 * wrote.
 */
#ifndef WF_BASE_LOCK_H
#define WF_BASE_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

enum wf_rank {
    WF_RANK_NONE, /* a zeroed lock: not initialized */
    WF_RANK_RUNTIME,
    WF_RANK_IO,
    WF_RANK_TABLE,
    WF_RANK_ROOM,
    WF_RANK_POOL,
    WF_RANK_JOIN,
    WF_RANK_INJECT,
    WF_RANK_AWAY,
    WF_RANK_RUNNERS,
    WF_RANK_HEAP,
    WF_RANK_STACK,
    WF_RANK_TIMER,
    WF_RANK_CALLBACK,
    WF_RANK_CLOCK,
    WF_RANK_PIPELINE,
    WF_RANK_RING,
    WF_RANK_DUPLEX,
    WF_RANK_SHARED,
    WF_RANK_COUNT,
};

enum {
    WF_LOCK_FREE,
    WF_LOCK_HELD,
    WF_LOCK_CONTENDED, /* held, and a thread may sleep on the word */
};

struct wf_lock {
    _Atomic(uint32_t) word; /* any thread */
    uint32_t rank;          /* constant */
};

#define WF_LOCK_INIT(lock_rank)                                                                    \
    {                                                                                              \
        .word = WF_LOCK_FREE, .rank = (lock_rank)                                                  \
    }

static inline void wf_lock_init(struct wf_lock *lock, enum wf_rank rank)
{
    /* relaxed: the lock is not shared yet. */
    wf_store_relaxed(&lock->word, (uint32_t)WF_LOCK_FREE);
    lock->rank = rank;
}

void wf_lock_wait(struct wf_lock *lock);
void wf_lock_wake(struct wf_lock *lock);

#ifdef WF_DEBUG
void wf_lock_note_taken(const struct wf_lock *lock);
void wf_lock_note_released(const struct wf_lock *lock);
bool wf_lock_is_held(const struct wf_lock *lock);
/* Returns the name of a lock that this thread holds, or NULL. */
const char *wf_lock_any_held(void);
#else
static inline void wf_lock_note_taken(const struct wf_lock *lock)
{
    (void)lock;
}
static inline void wf_lock_note_released(const struct wf_lock *lock)
{
    (void)lock;
}
static inline bool wf_lock_is_held(const struct wf_lock *lock)
{
    (void)lock;
    return true;
}
static inline const char *wf_lock_any_held(void)
{
    return NULL;
}
#endif

static inline void wf_lock(struct wf_lock *lock)
{
    wf_lock_note_taken(lock);
    uint32_t expected = WF_LOCK_FREE;
    /* acquire [L1]: sees what the last holder wrote. */
    if (!wf_cas_acquire(&lock->word, &expected, (uint32_t)WF_LOCK_HELD)) {
        wf_lock_wait(lock);
    }
}

static inline void wf_unlock(struct wf_lock *lock)
{
    wf_lock_note_released(lock);
    /* release [L1]: the next holder sees what this one wrote. */
    if (wf_xchg_release(&lock->word, (uint32_t)WF_LOCK_FREE) == WF_LOCK_CONTENDED) {
        wf_lock_wake(lock);
    }
}

#endif
