/* SPDX-License-Identifier: MIT */
/*
 * spin.h - loops that wait by reading.
 */
#ifndef MC_SPIN_H
#define MC_SPIN_H

#include "model.h"

enum mc_spin_verdict {
    MC_SPIN_READ_FREELY, /* an ordinary step */
    MC_SPIN_READ_SAME,   /* what it read in the last round, without a step */
    MC_SPIN_READ_NEWER,  /* a message that it has not seen, in the step that runs */
};

/* Before an operation that may turn out to only read. An addr of 0 is a yield, or a
 * fence. */
enum mc_spin_verdict mc_spin_before(const void *pc, uintptr_t addr);

/* After MC_SPIN_READ_SAME: the value it read in the last round. */
uint64_t mc_spin_expected(void);

/* It has only read. */
void mc_spin_after(const void *pc, uintptr_t addr, uint64_t value);

/* It does something that others can see, so it does not spin. */
void mc_spin_effect(void);

/* A thread that waits by MC_OP_SPIN: has a word of its round changed? */
bool mc_spin_can_go(const struct mc_thread *thread);

/* Nobody else can go on: the thread must find out whether its loop ends. */
void mc_spin_force(struct mc_thread *thread);

#endif
