/* SPDX-License-Identifier: MIT */
/*
 * weft/fork.h - inlined fast path of fork and join. Programs include <weft/par.h>, which builds
 * on it.
 *
 * A fork context is the state of a fiber, poll or thread that forks. It has a stack of forks,
 * each with a function and its arguments. A fork pushes an entry. A join pops it again and
 * calls the function directly. Each takes a few instructions and no atomic read-modify-write.
 * Idle workers request work by changing the two limits. The library is called only then, and
 * when the stack is full.
 */
#ifndef WEFT_FORK_H
#define WEFT_FORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"

WEFT_EXTERN_C_BEGIN

/* A word of a fork's arguments or result. */
typedef union weft_word {
    void *pointer;
    void (*function)(void *arg);
    uint64_t bits;
} weft_word;

/* One fork. If another fork context runs it, run is called with this entry. */
typedef struct weft_job {
    void (*run)(struct weft_job *job);
    uintptr_t state;    /* owned by the library */
    weft_word words[6]; /* the arguments, then possibly the result */
} weft_job;

/* The part of a fork stack that inlined code uses. The stack holds the forks not joined yet. */
typedef struct weft_jobs {
    weft_job *head;       /* where the next fork goes */
    weft_job *fork_limit; /* at or above: a fork calls the library; requesters change it */
    weft_job *join_floor; /* below: a join calls the library; requesters change it */
    char *stack_floor;    /* below: a call should move to a fresh stack */
    ptrdiff_t steps_left; /* until the next safe point; owner only */
} weft_jobs;

/* The fork stack of the fork context that runs on this thread. Never NULL. */
extern WEFT_API __thread weft_jobs *weft_jobs_of_thread __attribute__((tls_model("initial-exec")));

/*
 * Finds space for a fork that takes the slow path. Attaches a fork context if the caller has
 * none. Returns the fork stack to push to, or NULL if the fork must run at its join.
 */
WEFT_API weft_jobs *weft_jobs_make_room(weft_jobs *jobs);

/* Handles pending requests, after a fork that took the slow path. */
WEFT_API void weft_jobs_answer(weft_jobs *jobs);

/* Runs a safe point: handles pending requests, and lets other tasks of this worker run if
 * the caller has computed for a long time. Chooses the number of steps until the next safe
 * point. */
WEFT_API void weft_jobs_safe_point(void);

/* Calls the function on a fresh stack. Returns when the function has returned. */
WEFT_API void weft_jobs_call_elsewhere(void (*function)(void *arg), void *arg);

/* Joins a fork on the slow path. Returns true if the caller must run the fork. Returns false
 * if another fork context has run it; the result stays in the entry's words until the next
 * fork. */
WEFT_API bool weft_jobs_settle(weft_jobs *jobs, weft_job *job);

WEFT_EXTERN_C_END

#if defined(__x86_64__)
/* Returns the fork stack of this thread. Reads the thread-local anew each time, and returns its
 * value rather than its address: a fork context may continue on another thread. See errno in
 * base.h. */
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

/* Returns whether the C stack is nearly used up, so that a call should move to a fresh stack.
 * Only callers that fork check this. Other recursion is the program's own responsibility. */
static inline bool weft_jobs_stack_is_low(const weft_jobs *jobs)
{
    return (char *)__builtin_frame_address(0) < jobs->stack_floor;
}

/* Returns the words of a fork, untyped. Only the fork's own function knows their type. */
static inline void *weft_job_words(weft_job *job)
{
    return job->words;
}

/* Returns whether a fork must take the slow path. */
static inline bool weft_jobs_must_ask(weft_jobs *jobs)
{
    /* relaxed: a request is handled in the library, or noticed at a later fork. */
    return jobs->head >= __atomic_load_n(&jobs->fork_limit, __ATOMIC_RELAXED);
}

/* Pushes the fork that has been written at head. */
static inline void weft_jobs_push(weft_jobs *jobs)
{
    jobs->head++;
}

/* Pops the last fork. Returns true if the caller must run it, false if the join must take the
 * slow path. */
static inline bool weft_jobs_pop(weft_jobs *jobs, weft_job *job)
{
    jobs->head = job;
    /* relaxed: the owner sees its own value. Another thread's change only makes the join call
     * the library. */
    return job >= __atomic_load_n(&jobs->join_floor, __ATOMIC_RELAXED);
}

/*
 * Counts steps of a long computation that does not fork, and runs a safe point every few
 * thousand steps, or more often if steps are slow. A step is one call of a user's function, or
 * about ten nanoseconds of other work.
 */
static inline void weft_jobs_pause(size_t steps)
{
    weft_jobs *jobs = weft_jobs_here();
    if (__builtin_expect(jobs->head == NULL, 0) || (jobs->steps_left -= (ptrdiff_t)steps) <= 0) {
        weft_jobs_safe_point();
    }
}

#endif
