/* SPDX-License-Identifier: MIT */
/*
 * futex.h - futex wait and wake.
 */
#ifndef WF_BASE_FUTEX_H
#define WF_BASE_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Sleeps while *word equals expected, until a wake, the deadline (absolute, monotonic; WF_NEVER
 * for none) or a spurious wake-up. Returns 0 or -ETIMEDOUT. Preserves errno.
 */
int wf_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, int64_t deadline);

/* Wakes at most count sleepers. Preserves errno. */
void wf_futex_wake(_Atomic(uint32_t) *word, int count);

/* Debug: returns the kernel's list of robust mutexes that this thread holds, or NULL if the
 * kernel does not report it. The address is the same for the lifetime of the thread. */
const void *wf_futex_robust_list(void);

/* Returns whether the list contains a mutex. */
bool wf_futex_robust_held(const void *list);

/* Returns whether the kernel faults on this word. A readable word must be 0. (Other system
 * calls that read memory cannot answer this: valgrind itself reads the memory that they are
 * given.) */
bool wf_futex_faults(_Atomic(uint32_t) *word);

#endif
