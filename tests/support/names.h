/* SPDX-License-Identifier: MIT */
/*
 * names.h - names of hosts that a test makes up.
 *
 * A program that uses this has a getaddrinfo() of its own: it knows names that end in ".test",
 * and asks the C library about all others. The test may stop it in the middle.
 */
#ifndef TEST_NAMES_H
#define TEST_NAMES_H

#include <stdint.h>

/* All names that end in ".test" have these addresses (numbers), up to NULL, from now on. */
void names_set(const char *const *numbers);

/* Or none, and getaddrinfo() returns this code, with this errno. */
void names_fail(int code, int error);

/* Who looks up a name waits until names_release(). */
void names_hold(void);
void names_release(void);

/* How many look-ups have begun, of ".test", and how many have ended. */
extern _Atomic(uint64_t) names_begun;
extern _Atomic(uint64_t) names_ended;

#endif
