/* SPDX-License-Identifier: MIT */
/*
 * heap.h - the memory of the test: allocations, stacks, globals.
 *
 * Each thread allocates from an arena of its own and nothing is reused within an
 * execution. So an address does not depend on the order of the threads, and an
 * access to freed memory is always seen.
 */
#ifndef MC_HEAP_H
#define MC_HEAP_H

#include "model.h"

enum {
    MC_ARENA_BYTES = 4 << 20,
    MC_STACK_BYTES = 256 << 10,
};

/* Reserves the memory; once. */
void mc_heap_start(void);

/* Forgets what the last execution has allocated. */
void mc_heap_reset(void);

void *mc_heap_alloc(size_t size, size_t align, const void *pc);
void mc_heap_free(void *memory, const void *pc);
size_t mc_heap_size(const void *memory);

/* True for memory that mc_heap_alloc() has returned. */
bool mc_heap_owns(const void *memory);

/* Checks an access to the heap: allocated, not freed, and the allocation is
 * ordered before it. Other memory is none of its business. */
void mc_heap_check(uintptr_t addr, size_t size, const void *pc);

/* Is this memory that can be read? */
bool mc_heap_is_live(uintptr_t addr);

/* Fails if something is left. */
void mc_heap_check_leaks(void);

char *mc_heap_stack(unsigned thread);

/* The whole range, for shadow.c. */
uintptr_t mc_heap_first(void);
uintptr_t mc_heap_end(void);

/* Describes an address: "block 2 of T1 + 0x8, allocated at ...". */
bool mc_heap_describe(uintptr_t addr, char *text, size_t size);

#endif
