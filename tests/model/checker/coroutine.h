/* SPDX-License-Identifier: MIT */
/*
 * coroutine.h - threads of the test as coroutines of one OS thread.
 */
#ifndef MC_COROUTINE_H
#define MC_COROUTINE_H

#include "model.h"

/* Finds the program's globals and thread-locals; once, before the first test. */
void mc_coroutine_start(void);

/* Puts the globals back to what they were at the start. */
void mc_coroutine_restore(void);

/* Where the program's globals are, for shadow.c. */
void mc_coroutine_globals(uintptr_t *first, uintptr_t *end);

/* Is this one of the program's thread-locals? */
bool mc_coroutine_is_local(uintptr_t addr);

/* Prepares a thread to begin with entry(). */
void mc_coroutine_make(struct mc_thread *thread, void (*entry)(void));

/* From the scheduler: lets the thread run until it calls mc_coroutine_yield(). */
void mc_coroutine_resume(struct mc_thread *thread);

/* From a thread: back to the scheduler. */
void mc_coroutine_yield(struct mc_thread *thread);

#endif
