/* SPDX-License-Identifier: MIT */
/*
 * names.h - fake host names.
 *
 * A program that uses this has its own getaddrinfo(). It resolves names that end in ".test", and
 * passes all others to the C library. The test may block it.
 */
#ifndef TEST_NAMES_H
#define TEST_NAMES_H

#include <stdint.h>

/* From now on all ".test" names have these numeric addresses; the list ends with NULL. */
void names_set(const char *const *numbers);

/* Or none: getaddrinfo() returns this code, with this errno. */
void names_fail(int code, int error);

/* Lookups block until names_release(). */
void names_hold(void);
void names_release(void);

/* Number of ".test" lookups that have begun, and that have ended. */
extern _Atomic(uint64_t) names_begun;
extern _Atomic(uint64_t) names_ended;

#endif
