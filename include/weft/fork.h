/* SPDX-License-Identifier: MIT */
/*
 * weft/fork.h - what fork and join cost: the part of them that is compiled into the
 * program. Use <weft/par.h>, which is made of this.
 *
 * A strand that forks has a stack of jobs, each with a function and its arguments. A
 * fork pushes one, a join takes it off again and the function is called, directly: a
 * few instructions each, without an atomic one. Idle workers ask for jobs by changing
 * the two limits; only then, and when the stack is full, is the library called.
 */
#ifndef WEFT_FORK_H
#define WEFT_FORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"

WEFT_EXTERN_C_BEGIN

/* One fork. Its function gets it, if another strand runs it. */
typedef struct weft_job {
    void (*run)(struct weft_job *job);
    uintptr_t state; /* the library's */
    void *words[6];  /* arguments, and then perhaps a result */
} weft_job;

/* The forks of a strand that were not joined yet, the beginning of it. */
typedef struct weft_jobs {
    weft_job *head;       /* where the next one goes */
    weft_job *fork_limit; /* from here on a fork must ask the library; others change it */
    weft_job *join_floor; /* below, a join must ask the library; others change it */
    char *stack_floor;    /* below, a call should go to a fresh stack */
} weft_jobs;

WEFT_EXTERN_C_END

/* Must a fork ask? */
static inline bool weft_jobs_must_ask(weft_jobs *jobs)
{
    /* relaxed: who has changed it is heard in the library, or a fork later. */
    return jobs->head >= __atomic_load_n(&jobs->fork_limit, __ATOMIC_RELAXED);
}

/* The job at head is filled: it is forked. */
static inline void weft_jobs_push(weft_jobs *jobs)
{
    jobs->head++;
}

/* Takes the last one off. True: it is to be run here. False: the join must ask. */
static inline bool weft_jobs_pop(weft_jobs *jobs, weft_job *job)
{
    jobs->head = job;
    /* relaxed: what the owner has set it sees, and others only make it ask. */
    return job >= __atomic_load_n(&jobs->join_floor, __ATOMIC_RELAXED);
}

#endif
