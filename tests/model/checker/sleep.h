/* SPDX-License-Identifier: MIT */
/*
 * sleep.h - threads that sleep on an address until they are woken.
 */
#ifndef MC_SLEEP_H
#define MC_SLEEP_H

#include "model.h"

/* Sets the clock to 0. */
void mc_sleep_reset(void);

/* Sleeps until a wake. With .timeouts or .spurious_wakes it may end before.
 * Returns 0 or -ETIMEDOUT. */
int mc_sleep(uintptr_t addr, int64_t deadline, const void *pc);

/* Wakes at most count threads that sleep on this address. Returns how many. */
int mc_wake(uintptr_t addr, int count, const void *pc);

#endif
