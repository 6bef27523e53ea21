/* SPDX-License-Identifier: MIT */
/*
 * job.h - slow paths of fork and join, and forks that other workers run. The fast paths are
 * compiled into the program.
 */
#ifndef WF_SCHED_JOB_H
#define WF_SCHED_JOB_H

#include <stdbool.h>
#include <stdint.h>

struct wf_job;
struct wf_runners;
struct wf_sched;
struct wf_task;
struct wf_worker;

/* Worker: steal a fork from a fork context that was suspended on this worker, from one on
 * another worker (running or suspended there), or from one of an external thread. Return a
 * fiber to run the fork on, or NULL. */
struct wf_task *wf_job_take_own(struct wf_worker *worker);
struct wf_task *wf_job_steal(struct wf_worker *worker, struct wf_worker *victim);
struct wf_task *wf_job_steal_from_guests(struct wf_worker *worker);

/* Returns whether wf_job_steal() could find a public fork. A hint. */
bool wf_job_has_public(const struct wf_worker *victim);

/*
 * Forks that are never joined, in memory of the spawner. When one has run, the function in its
 * word WF_JOB_AFTER is called with it. wf_job_spawn() returns false if there is no fork context
 * or no memory; the caller then runs the fork itself. wf_job_run_spawned() runs the fork
 * spawned last here since the mark that no thief has stolen; it returns false if there is none.
 */
enum {
    WF_JOB_RUNNERS = 4, /* struct wf_runners *: the list for its runner, if it is stolen */
    WF_JOB_AFTER = 5,
};
bool wf_job_spawn(struct wf_job *job);
int64_t wf_job_spawn_mark(void);
bool wf_job_run_spawned(int64_t mark);

/* Finishes a fork that has run: wakes its waiter, or calls the function in its word
 * WF_JOB_AFTER. */
void wf_job_end(struct wf_job *job);

/* Waits until wf_job_end() has been called for a fork that was neither forked nor spawned.
 * Cancels these runners if the caller is canceled. */
void wf_job_await(struct wf_job *job, struct wf_runners *runners);

/*
 * For loops, which usually end before a worker could wake up: forks that wake no worker until
 * wf_job_speak_up() is called after 20 us, or until the monitor finds them.
 * wf_job_begin_silently() returns whether the silence begins here; pass that to
 * wf_job_end_silently().
 */
bool wf_job_begin_silently(void);
void wf_job_end_silently(bool begun);
void wf_job_speak_up(void);

/* Same as wf_job_begin_silently() and wf_job_speak_up(), for a caller that knows the time. */
bool wf_job_begin_silently_at(int64_t now);
void wf_job_speak_up_at(int64_t now);

/* Same as weft_jobs_safe_point(), for a caller that knows the time. Returns true if other tasks
 * ran, so that the time has to be read again. */
bool wf_job_safe_point_at(int64_t now);

/* Returns the address below which calls that fork continue on a fresh stack, for the current
 * stack; NULL if it is not known. */
char *wf_job_stack_floor(void);

/* Calls the function, on a fresh stack if the current one is nearly used up. Same as
 * weft_jobs_call_elsewhere(), but gives a caller with enough stack no fork context. */
void wf_job_call_deep(void (*function)(void *arg), void *arg);

/* Returns whether other workers can steal forks of the caller. */
bool wf_job_may_fork(void);

/* Returns the number of nested forks that are published immediately here; 0 if no worker can
 * steal any. */
unsigned wf_job_eager_forks(void);

/* Returns whether a worker would probably steal a fork. */
bool wf_job_is_wanted(void);

/* Any thread: asks the computation that forks on this worker to let the worker's tasks run.
 * Returns false if no fork context runs there. */
bool wf_job_ask_to_yield(struct wf_worker *worker);

/* Returns whether a request to yield is still unanswered, or could not be posted: the worker
 * computes without a fork, or has no CPU. */
bool wf_job_has_not_answered(const struct wf_worker *worker);

/* Worker that is about to park: asks the fork context on every worker to wake one when it
 * publishes. */
void wf_job_ask_all(struct wf_worker *worker);

#endif
