/* SPDX-License-Identifier: MIT */
/*
 * symbol.h - names for addresses of the program.
 */
#ifndef MC_SYMBOL_H
#define MC_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "ring.c:104 claim_half" for a return address; asks addr2line. */
void mc_symbol_code(const void *pc, char *text, size_t size);

/* "ring+0x80" for a global variable. Returns false if it is none. */
bool mc_symbol_data(uintptr_t addr, char *text, size_t size);

#endif
