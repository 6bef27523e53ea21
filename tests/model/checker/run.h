/* SPDX-License-Identifier: MIT */
/*
 * run.h - one execution: threads take steps in turn until all have ended.
 */
#ifndef MC_RUN_H
#define MC_RUN_H

#include "model.h"

/* Prepares for the executions of a test. */
void mc_run_start(void);

/* Runs one execution with the strategy of mc_explore. */
void mc_run_once(const struct mc_test *test);

/* On a thread of the test: announces its next operation, and returns when the
 * thread has been picked to perform it. */
void mc_point(const struct mc_op *op);

/* The operation has taken effect. What it did and saw goes into the thread's
 * history. */
void mc_done(uint64_t what);

/* Ends the execution from within: it has failed, or the rest is known. */
_Noreturn void mc_run_leave(void);
_Noreturn void mc_run_cut(void);

/* Starts a thread. Returns its index. */
unsigned mc_run_spawn(void *(*function)(void *arg), void *arg);

/* Ends the calling thread. */
_Noreturn void mc_run_exit(void *result);

/* Waits for a thread to end. */
void mc_run_join(unsigned target, const void *pc);

#endif
