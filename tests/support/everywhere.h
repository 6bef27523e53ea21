/* SPDX-License-Identifier: MIT */
/*
 * everywhere.h - one function in every context in which a parallel computation may run.
 */
#ifndef TEST_EVERYWHERE_H
#define TEST_EVERYWHERE_H

/* Without a runtime; and with 1 to 8 workers, on a fiber and as a guest. Under
 * ThreadSanitizer with 2 as a guest, and with 8 on a fiber. Each must return 0. */
void test_run_everywhere(int (*function)(void *arg), void *arg);

/* Runs it many times, on a fiber and as a guest, while the other worker sleeps: it is so
 * short that this one must not be woken. A run that was interrupted may be taken for a long
 * one. */
void test_wakes_nobody(int (*function)(void *arg), void *arg);

#endif
