/* SPDX-License-Identifier: MIT */
/*
 * latched.h - what a call does that meets another at an object.
 */
#ifndef TEST_LATCHED_H
#define TEST_LATCHED_H

/* Calls it on a thread of its own, while this one has the latch of the object; gives that up
 * when the call waits for it, and returns when the call has. */
void test_call_latched(void *object, void (*call)(void));

#endif
