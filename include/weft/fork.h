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

/* What a job carries. */
typedef union weft_word {
    void *pointer;
    void (*function)(void *arg);
    uint64_t bits;
} weft_word;

/* One fork. Its function gets it, if another strand runs it. */
typedef struct weft_job {
    void (*run)(struct weft_job *job);
    uintptr_t state;    /* the library's */
    weft_word words[6]; /* arguments, and then perhaps a result */
} weft_job;

/* The forks of a strand that were not joined yet, the beginning of it. */
typedef struct weft_jobs {
    weft_job *head;       /* where the next one goes */
    weft_job *fork_limit; /* from here on a fork must ask the library; others change it */
    weft_job *join_floor; /* below, a join must ask the library; others change it */
    char *stack_floor;    /* below, a call should go to a fresh stack */
    ptrdiff_t steps_left; /* until the next safe point; the owner's */
} weft_jobs;

/* The strand's, in a thread-local; never NULL. */
extern WEFT_API __thread weft_jobs *weft_jobs_of_thread __attribute__((tls_model("initial-exec")));

/*
 * A fork that must ask: makes room, or a stack if the strand has none. Returns where the
 * job goes, or NULL: it is to be run at its join.
 */
WEFT_API weft_jobs *weft_jobs_make_room(weft_jobs *jobs);

/* After such a fork: does what was asked for. */
WEFT_API void weft_jobs_answer(weft_jobs *jobs);

/* A safe point: answers requests, and lets other tasks of this worker run if the caller has
 * computed for long. Chooses the number of steps until the next one. */
WEFT_API void weft_jobs_safe_point(void);

/* Calls the function on a stack of its own; returns when it has returned. */
WEFT_API void weft_jobs_call_elsewhere(void (*function)(void *arg), void *arg);

/* A join that must ask. True: the job is to be run here. False: another strand has run
 * it; what it has left in its words is there until the next fork. */
WEFT_API bool weft_jobs_settle(weft_jobs *jobs, weft_job *job);

WEFT_EXTERN_C_END

#if defined(__x86_64__)
/* By value and each time, since a strand may go on on another thread; see errno. */
static inline weft_jobs *weft_jobs_here(void)
{
    weft_jobs *jobs;
    __asm__ volatile("movq weft_jobs_of_thread@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0"
                     : "=r"(jobs));
    return jobs;
}
#elif defined(__aarch64__)
static inline weft_jobs *weft_jobs_here(void)
{
    weft_jobs *jobs;
    void *base;
    __asm__ volatile("adrp %0, :gottprel:weft_jobs_of_thread\n\t"
                     "ldr %0, [%0, :gottprel_lo12:weft_jobs_of_thread]\n\t"
                     "mrs %1, tpidr_el0\n\t"
                     "ldr %0, [%0, %1]"
                     : "=&r"(jobs), "=&r"(base));
    return jobs;
}
#endif

/* Is the C stack nearly used up, so that a call should go elsewhere? Only for who forks:
 * the recursion of others is their own. */
static inline bool weft_jobs_stack_is_low(const weft_jobs *jobs)
{
    return (char *)__builtin_frame_address(0) < jobs->stack_floor;
}

/* Where a job carries what its own function knows the type of. */
static inline void *weft_job_words(weft_job *job)
{
    return job->words;
}

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

/*
 * A long computation calls this after some steps without a fork. A step is a call of a
 * function that the user gave, or about ten nanoseconds of other work. Every few
 * thousand steps there is a safe point, and more often if steps are slow.
 */
static inline void weft_jobs_pause(size_t steps)
{
    weft_jobs *jobs = weft_jobs_here();
    if (__builtin_expect(jobs->head == NULL, 0) || (jobs->steps_left -= (ptrdiff_t)steps) <= 0) {
        weft_jobs_safe_point();
    }
}

#endif
