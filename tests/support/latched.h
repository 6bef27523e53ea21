/* SPDX-License-Identifier: MIT */
/*
 * latched.h - runs a call while another thread holds the latch of its object.
 */
#ifndef TEST_LATCHED_H
#define TEST_LATCHED_H

/* Calls the function on a new thread while this thread holds the latch of the object. Unlocks
 * the latch once the call waits for it, and returns when the call has returned. */
void test_call_latched(void *object, void (*call)(void));

#endif
