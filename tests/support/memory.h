/* SPDX-License-Identifier: MIT */
/*
 * memory.h - memory that ends when a test says so.
 *
 * It is the library's default allocator that fails, on every thread; what the test itself
 * takes from the heap is not touched.
 */
#ifndef TEST_MEMORY_H
#define TEST_MEMORY_H

#include <stdint.h>

/* The next allocations succeed, so many of them; those after that fail. */
void memory_ends_after(uint64_t count);

/* Only the next one after so many fails. */
void memory_fails_after(uint64_t count);

/* There is memory again. Returns how many allocations failed. */
uint64_t memory_mend(void);

/* What the function returns while there is no memory at all. */
int result_without_memory(int (*function)(void *arg), void *arg);

/*
 * Calls the function again and again, while its first, its second, ... allocation fails, until
 * it needs no more of them. What it does must be the same each time. Returns how many
 * allocations it needs.
 */
uint64_t memory_sweep(void (*function)(void *arg), void *arg);

#endif
