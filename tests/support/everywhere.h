/* SPDX-License-Identifier: MIT */
/*
 * everywhere.h - runs one function in every context in which a parallel computation may run.
 */
#ifndef TEST_EVERYWHERE_H
#define TEST_EVERYWHERE_H

/* Runs it without a runtime; and with 1 to 8 workers, on a fiber and on an external thread.
 * Under ThreadSanitizer, with 2 workers on an external thread and with 8 on a fiber. Each must
 * return 0. */
void test_run_everywhere(int (*function)(void *arg), void *arg);

/* Runs it many times, on a fiber and on an external thread, while the other worker sleeps. It is
 * so short that the other worker must not be woken. A run that was interrupted may count as a
 * long one. */
void test_wakes_nobody(int (*function)(void *arg), void *arg);

#endif
