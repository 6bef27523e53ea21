/* SPDX-License-Identifier: MIT */
/*
 * weaken.h - mutants: one operation of the program with a weaker order.
 */
#ifndef MC_WEAKEN_H
#define MC_WEAKEN_H

#include "model.h"

/* From now on the operations on this line have this order. Returns false if the
 * text is not "file.c:line:order". */
bool mc_weaken_start(const char *text);

/* From now on the operations that have an order are noted. */
void mc_weaken_note_sites(void);

/* Prints them: "site file.c:line kind order". */
void mc_weaken_print_sites(void);

/* The order that an operation is to have, given the one that it has. */
enum mc_order mc_weaken_order(enum mc_kind kind, enum mc_order order, const void *pc);

/* The order of a failed exchange, given the two that it has and the one that
 * mc_weaken_order() has answered. */
enum mc_order mc_weaken_fail_order(enum mc_order fail_order, enum mc_order order);

#endif
