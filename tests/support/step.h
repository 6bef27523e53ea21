/* SPDX-License-Identifier: MIT */
/*
 * step.h - interrupts code after each of its instructions.
 *
 * Shows what a thread interrupted at the worst moment would see, without waiting for that moment
 * to come by chance:
 *
 *     unsigned outcomes[2] = { 0 };
 *     for (int n = 0; test_interrupt_after(n, sleeps, wakes); n++) {
 *         check what the two have left, count which one was first, and set up again
 *     }
 *     test_check_both(outcomes);
 *
 * Such tests are listed with TEST_STEPS().
 */
#ifndef TEST_STEP_H
#define TEST_STEP_H

#include <stdbool.h>

#include "test.h"

/* Sanitizers insert code of their own, which would be stepped, too. */
#if defined(__x86_64__) && !TEST_IS_SANITIZED
#define TEST_STEPS(function) TEST(function)
#else
#define TEST_STEPS(function) TEST_UNLESS(function, "instructions cannot be stepped")
#endif

/* Runs step(), stops it after its n-th instruction, runs between() there, and continues it.
 * Returns false if the step has fewer than n instructions. Fails if it has fewer than 10. */
bool test_interrupt_after(int n, void (*step)(void), void (*between)(void));

/* Fails unless both outcomes of a race have been seen. */
void test_check_both(const unsigned outcomes[2]);

#endif
