/* SPDX-License-Identifier: MIT */
/*
 * forks.h - small computations that fork.
 */
#ifndef TEST_FORKS_H
#define TEST_FORKS_H

#include <stdint.h>

/* A tree of forks, this deep: checks that each leaf is reached once. */
void test_grow(uint64_t depth);

/* Many of them, of different depths. */
void test_grow_many(void);

/* As many calls in each other, each with a frame that is used after the return from below
 * and a fork: checks that all have run. */
void test_descend(uint64_t depth);

/* Two functions at once: each waits for the other. One call at a time in a process. */
void test_meet(void);

#endif
