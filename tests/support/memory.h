/* SPDX-License-Identifier: MIT */
/*
 * memory.h - failing allocations at a point that the test chooses.
 *
 * The library's default allocator fails, on every thread. The test's own allocations from the
 * heap are not affected.
 */
#ifndef TEST_MEMORY_H
#define TEST_MEMORY_H

#include <stdint.h>

/* The next count allocations succeed; all after them fail. */
void memory_ends_after(uint64_t count);

/* Only the allocation after the next count ones fails. */
void memory_fails_after(uint64_t count);

/* Allocations succeed again. Returns the number of failed allocations. */
uint64_t memory_mend(void);

/* Returns the function's result while all allocations fail. */
int result_without_memory(int (*function)(void *arg), void *arg);

/*
 * Calls the function repeatedly, while its first, its second, ... allocation fails, until no
 * allocation fails any more. The function must do the same each time. Returns the number of
 * allocations that it needs.
 */
uint64_t memory_sweep(void (*function)(void *arg), void *arg);

#endif
