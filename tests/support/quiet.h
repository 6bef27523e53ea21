/* SPDX-License-Identifier: MIT */
/*
 * quiet.h - checks that the threads of runtimes sleep, regardless of the load of the machine.
 *
 * A busy machine delays the moment when the last thread falls asleep, so each check waits for a
 * quiet period, up to a number of periods. With a thread that polls or spins, no period is
 * quiet.
 */
#ifndef TEST_QUIET_H
#define TEST_QUIET_H

#include <stdint.h>

/* Fails unless there is a period of this length in which no thread of a runtime runs at all. */
void quiet_must_come(int64_t ns);

/* Same as quiet_must_come(), but threads may run occasionally: up to 2 context switches per
 * millisecond, summed over all threads, and a tenth of the period in CPU time. Waits by
 * pass(ns). Opens no file. */
void quiet_must_be_near(int64_t ns, void (*pass)(int64_t ns));

#endif
