/* SPDX-License-Identifier: MIT */
/*
 * threads.h - what POSIX threads offer, on the threads of the model.
 */
#ifndef MC_THREADS_H
#define MC_THREADS_H

/* Forgets the keys of the last execution. */
void mc_threads_reset(void);

/* The calling thread ends: the destructors of its keys. */
void mc_threads_run_destructors(void);

#endif
