/* SPDX-License-Identifier: MIT */
/*
 * weft/par.h - parallel computation: two things at once, and what is built of that.
 *
 *     struct half { const int *from; size_t count; long sum; };
 *
 *     static void sum(void *arg)
 *     {
 *         struct half *all = arg;
 *         if (all->count < 1000) {
 *             all->sum = sum_of(all->from, all->count);
 *             return;
 *         }
 *         struct half left = { all->from, all->count / 2, 0 };
 *         struct half right = { all->from + left.count, all->count - left.count, 0 };
 *         weft_join2(sum, &left, sum, &right);
 *         all->sum = left.sum + right.sum;
 *     }
 *
 * Fork what can be done meanwhile, do something else, join it. A fork that nobody takes
 * costs a nanosecond or two, and is run at its join by whoever has forked it; so fork as
 * the problem divides, and do not count workers. Idle workers take the oldest forks,
 * which are the largest ones.
 *
 * A fork that is taken runs on a fiber of its own: it may wait, lock, sleep, and so may
 * what runs between fork and join. Its values of weft_local and its errno are its own.
 *
 * Forks are joined in reverse order, and each by the function that has forked it, before
 * that returns.
 */
#ifndef WEFT_PAR_H
#define WEFT_PAR_H

#include "base.h"
#include "fork.h"

/* One fork, from weft_fork() to weft_fork_join(); on the caller's stack. */
typedef struct weft_forked {
    weft_jobs *jobs;
    weft_job *job; /* NULL: there was no room, it runs at its join */
    void (*function)(void *arg);
    void *arg;
} weft_forked;

/* What another worker calls. */
static inline void weft_forked_run(weft_job *job)
{
    job->words[0].function(job->words[1].pointer);
}

/* Fills the job at the head, and forks it. */
static inline weft_job *weft_forked_push(weft_jobs *jobs, void (*function)(void *arg), void *arg)
{
    weft_job *job = jobs->head;
    job->run = weft_forked_run;
    job->words[0].function = function;
    job->words[1].pointer = arg;
    weft_jobs_push(jobs);
    return job;
}

/*
 * Forks function(arg): it may run on another worker from now on, and at the latest in
 * weft_fork_join().
 *
 * Context: anywhere. Outside of a fiber it runs at its join.
 * Owns:    *forked, on the stack of the caller, until weft_fork_join().
 */
static inline void weft_fork(weft_forked *forked, void (*function)(void *arg), void *arg)
{
    weft_jobs *jobs = weft_jobs_here();
    forked->function = function;
    forked->arg = arg;
    if (__builtin_expect(!weft_jobs_must_ask(jobs), 1)) {
        forked->jobs = jobs;
        forked->job = weft_forked_push(jobs, function, arg);
        return;
    }
    jobs = weft_jobs_make_room(jobs);
    forked->jobs = jobs;
    forked->job = NULL;
    if (jobs != NULL) {
        forked->job = weft_forked_push(jobs, function, arg);
        weft_jobs_answer(jobs);
    }
}

/*
 * Joins a fork, the last one that was not joined yet: when it returns, the function has
 * run, here or elsewhere.
 *
 * Suspends: if another worker is at it; not for cancellation, since the function may use
 *           what is on the caller's stack.
 */
static inline void weft_fork_join(weft_forked *forked)
{
    if (forked->job == NULL || weft_jobs_pop(forked->jobs, forked->job) ||
        weft_jobs_settle(forked->jobs, forked->job)) {
        forked->function(forked->arg);
    }
}

/*
 * Runs both functions, at once if a worker is idle; returns when both have returned.
 *
 * Context:  anywhere. Outside of a fiber they run one after the other.
 * Suspends: as weft_fork_join().
 */
static inline void weft_join2(void (*first)(void *arg), void *first_arg, void (*second)(void *arg),
                              void *second_arg)
{
    weft_forked forked;
    weft_fork(&forked, second, second_arg);
    first(first_arg);
    weft_fork_join(&forked);
}

#endif
