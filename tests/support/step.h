/* SPDX-License-Identifier: MIT */
/*
 * step.h - stopping code after each of its instructions.
 *
 * What a thread that is interrupted at the worst moment would see, without
 * waiting for that moment to come by chance:
 *
 *     for (int n = 0; test_interrupt_after(n, sleeps, wakes); n++) {
 *         check what the two have left, and set up again
 *     }
 */
#ifndef TEST_STEP_H
#define TEST_STEP_H

#include <stdbool.h>

/* Runs step(), stops it after its n-th instruction, runs between() there, and lets
 * it go on. Returns false if the step has no so many instructions, or if it cannot
 * be done: under a sanitizer, and on machines other than x86-64. */
bool test_interrupt_after(int n, void (*step)(void), void (*between)(void));

#endif
