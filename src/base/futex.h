/* SPDX-License-Identifier: MIT */
/*
 * futex.h - sleeping on a word, and waking who sleeps there.
 */
#ifndef WF_BASE_FUTEX_H
#define WF_BASE_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Sleeps while *word equals expected, until a wake, the deadline (absolute,
 * monotonic; WF_NEVER for none), or for no reason. Returns 0, or -ETIMEDOUT.
 * Leaves errno as it was.
 */
int wf_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline);

/* Wakes at most count sleepers. Leaves errno as it was. */
void wf_futex_wake(_Atomic(uint32_t) *word, int count);

/* Debug: the list of robust mutexes that this thread holds, as the kernel knows it;
 * NULL if it does not tell. It stays where it is for as long as the thread lives. */
const void *wf_futex_robust_list(void);

/* Is a mutex in that list? */
bool wf_futex_robust_held(const void *list);

/* Would the kernel fault on this word, whose value is 0 if it has one? (Other calls that
 * read memory are no way to ask: valgrind reads for itself what they are given.) */
bool wf_futex_faults(_Atomic(uint32_t) *word);

#endif
