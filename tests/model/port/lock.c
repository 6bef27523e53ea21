/* SPDX-License-Identifier: MIT */
/*
 * lock.c - the slow side of base/lock.h in one step, for tests that are not about
 * the lock.
 *
 * base/lock.c is linked as well, for its rank check; calls of its two slow
 * functions come here (--wrap). A lock that is taken after waiting is HELD, not
 * CONTENDED, since nobody sleeps on its word.
 */
#include "base/lock.h"

#include "mc.h"

void __wrap_wf_lock_wait(struct wf_lock *lock);
void __wrap_wf_lock_wake(struct wf_lock *lock);

void __wrap_wf_lock_wait(struct wf_lock *lock)
{
    mc_await_exchange(&lock->word, WF_LOCK_FREE, WF_LOCK_HELD);
}

void __wrap_wf_lock_wake(struct wf_lock *lock)
{
    (void)lock;
    mc_assert(!"nobody sleeps on a lock that is awaited");
}
