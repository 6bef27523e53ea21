/* SPDX-License-Identifier: MIT */
/*
 * timing.h - how long races last, and waits beyond test_wait_for().
 */
#ifndef TEST_TIMING_H
#define TEST_TIMING_H

#include <stdint.h>

/* When a race that goes on round by round, from now, has gone on for long enough. */
int64_t test_race_end(void);

/* As test_wait_for(), but spins first: the other thread is a moment away. */
void test_spin_for(_Atomic(uint64_t) *word, uint64_t n);

/* Lets the time pass; never less. */
void test_wait_ns(int64_t ns);

#endif
