/* SPDX-License-Identifier: MIT */
/*
 * everywhere.h - one function in every context in which a parallel computation may run.
 */
#ifndef TEST_EVERYWHERE_H
#define TEST_EVERYWHERE_H

/* Without a runtime; and with 1 to 8 workers (2 and 8 under ThreadSanitizer), on a fiber
 * and as a guest. Each must return 0. */
void test_run_everywhere(int (*function)(void *arg), void *arg);

#endif
