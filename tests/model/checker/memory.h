/* SPDX-License-Identifier: MIT */
/*
 * memory.h - atomic operations as C11 defines them, not as the machine does.
 */
#ifndef MC_MEMORY_H
#define MC_MEMORY_H

#include "model.h"

typedef uint64_t mc_update_fn(uint64_t old, uint64_t operand);

uint64_t mc_memory_load(uintptr_t addr, unsigned size, enum mc_order order, const void *pc);

void mc_memory_store(uintptr_t addr, unsigned size, uint64_t value, enum mc_order order,
                     const void *pc);

/* Returns the old value. */
uint64_t mc_memory_update(uintptr_t addr, unsigned size, mc_update_fn *update, uint64_t operand,
                          enum mc_order order, const void *pc);

struct mc_cas {
    uint64_t expected; /* on failure, what was found */
    uint64_t desired;
    enum mc_order order;
    enum mc_order fail_order;
    bool is_weak;
};

bool mc_memory_cas(uintptr_t addr, unsigned size, struct mc_cas *cas, const void *pc);

void mc_memory_fence(enum mc_order order, const void *pc);

/* Waits for a value and exchanges it, with acquire order. */
void mc_memory_await(uintptr_t addr, unsigned size, uint64_t expected, uint64_t desired,
                     const void *pc);

/* Is this the newest value? */
bool mc_memory_holds(uintptr_t addr, uint64_t value);

/* What a futex reads: the value is one of those that the thread may see and that
 * are not older than the last wake. Of the two outcomes, equal to expected and
 * not, each that is possible is tried. */
bool mc_memory_futex_equals(uintptr_t addr, uint32_t expected, const void *pc);

/* Has a word a message that is newer than what this thread has seen? */
bool mc_memory_has_newer(const struct mc_thread *thread, uintptr_t addr);

/* Could this thread read a message that was not there before? (all.c) */
bool mc_memory_can_read_new(struct mc_thread *thread, uint32_t read_before);

#endif
