/* SPDX-License-Identifier: MIT */
/*
 * job.h - jobs of strands, on other workers. Forks and joins that need more than what is
 * compiled into the program are in job.c, too.
 */
#ifndef WF_SCHED_JOB_H
#define WF_SCHED_JOB_H

#include <stdbool.h>
#include <stdint.h>

struct wf_job;
struct wf_sched;
struct wf_task;
struct wf_worker;

/* Worker: takes a job from a strand that has left it; from one at or of another worker;
 * from a guest's. Returns a fiber to run it on, or NULL. */
struct wf_task *wf_job_take_own(struct wf_worker *worker);
struct wf_task *wf_job_steal(struct wf_worker *worker, struct wf_worker *victim);
struct wf_task *wf_job_steal_from_guests(struct wf_worker *worker);

/* Is there something that wf_job_steal() could take? A look. */
bool wf_job_has_public(const struct wf_worker *victim);

/*
 * Jobs that nobody joins, from the heap of who spawns them. When one has run, the function
 * in its word WF_JOB_AFTER is called with it. Spawn says false if there is no strand for
 * it, or no memory: run it here, then. Run_spawned runs the last one that was spawned here
 * since the mark and that nobody has taken; false if there is none.
 */
enum {
    WF_JOB_AFTER = 5,
};
bool wf_job_spawn(struct wf_job *job);
int64_t wf_job_spawn_mark(void);
bool wf_job_run_spawned(int64_t mark);

/* A job has run: tells who waits for it, or calls the function after it. */
void wf_job_end(struct wf_job *job);

/* Returns when wf_job_end() was called for a job that was neither forked nor spawned. */
void wf_job_await(struct wf_job *job);

/*
 * For loops, which most often are over before a worker could wake up: forks that wake
 * nobody, until wf_job_speak_up() is called after 20 us or the watch finds them. Begin
 * says whether it begins here; end gets that.
 */
bool wf_job_begin_silently(void);
void wf_job_end_silently(bool begun);
void wf_job_speak_up(void);

/* The same, by who knows what time it is. */
bool wf_job_begin_silently_at(int64_t now);
void wf_job_speak_up_at(int64_t now);

/* As weft_jobs_safe_point(), by a caller that knows what time it is. True: other tasks ran, so
 * it is later now. */
bool wf_job_safe_point_at(int64_t now);

/* The address below which calls that fork go to a fresh stack, for the stack that runs here;
 * NULL if it is not known. */
char *wf_job_stack_floor(void);

/* Can another worker take what is forked here? */
bool wf_job_may_fork(void);

/* So many forks in each other are public at once here; 0: nobody can take any. */
unsigned wf_job_eager_forks(void);

/* Would a fork be taken by somebody, as far as can be seen? */
bool wf_job_is_wanted(void);

/* Any thread: asks whoever forks at this worker to let its tasks run. False: nobody forks
 * there. */
bool wf_job_ask_to_yield(struct wf_worker *worker);

/* Has it not yielded though it was asked, or cannot be asked? It computes without a fork, or has no
 * processor. */
bool wf_job_has_not_answered(const struct wf_worker *worker);

/* Worker that is about to sleep: asks who forks to wake it. */
void wf_job_ask_all(struct wf_worker *worker);

#endif
