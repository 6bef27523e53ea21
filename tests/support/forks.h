/* SPDX-License-Identifier: MIT */
/*
 * forks.h - small computations that fork.
 */
#ifndef TEST_FORKS_H
#define TEST_FORKS_H

#include <stdint.h>

/* Runs a tree of forks of this depth and checks that each leaf is reached once. */
void test_grow(uint64_t depth);

/* Runs many trees, of different depths. */
void test_grow_many(void);

/* Recurses depth levels, each with a fork and a frame that is used after the return from below.
 * Checks that all levels have run. */
void test_descend(uint64_t depth);

/* Runs two functions in parallel that wait for each other. One call at a time per process. */
void test_meet(void);

#endif
