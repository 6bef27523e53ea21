/* SPDX-License-Identifier: MIT */
/*
 * shadow.h - finds data races: who has accessed each byte, and when.
 */
#ifndef MC_SHADOW_H
#define MC_SHADOW_H

#include "model.h"

/* Reserves the tables; the globals of the program are [first, end). */
void mc_shadow_start(uintptr_t first, uintptr_t end);

/* A plain access. */
void mc_shadow_plain(uintptr_t addr, size_t size, bool is_write, const void *pc);

/* An atomic access. */
void mc_shadow_atomic(uintptr_t addr, size_t size, bool is_write, const void *pc);

/* Everything that was done with this memory must be ordered before. */
void mc_shadow_free(uintptr_t addr, size_t size, const void *pc);

#endif
