/* SPDX-License-Identifier: MIT */
/*
 * jobs.h - the stack of one strand's forks: private on top, public below. The protocol
 * is in jobs.c.
 *
 *   slots   [ taken by thieves | public | private |      free      ]
 *                            tail     split     head              end
 *
 * The owner is the strand that forks: one thread at a time. It forks and joins at head
 * by code in <weft/par.h>, which touches nothing that others write but two limits.
 *
 *                         owner   thief   asker
 *   publish, reclaim        x
 *   open, take reasons      x
 *   rename                  x                      while it has no jobs
 *   steal                           x
 *   ask                     x       x       x      any thread, at any time
 *   wait                    x                      for a job of its own that was stolen
 *   finish                          x              the one that stole it
 */
#ifndef WF_QUEUE_JOBS_H
#define WF_QUEUE_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/fork.h>

#include "base/atomic.h"
#include "queue/steal.h"

/* A fork that was not joined yet. As weft_job, which user code fills. */
struct wf_job {
    void (*run)(weft_job *job);
    _Atomic(uintptr_t) state; /* once public: 0, who waits for its end, or WF_JOB_DONE */
    weft_word words[6];
};

#define WF_JOB_DONE    ((uintptr_t)1)
#define WF_JOB_SPAWNED ((uintptr_t)2) /* nobody joins it; see sched/job.h */

struct wf_jobs {
    /* As weft_jobs, which user code reads. */
    struct wf_job *head;                 /* owner */
    _Atomic(struct wf_job *) fork_limit; /* end, or NULL: somebody asks */
    _Atomic(struct wf_job *) join_floor; /* at split, or WF_JOBS_ASKED: somebody asks */
    char *stack_floor;                   /* owner: below, the C stack is nearly used up */
    ptrdiff_t steps_left;                /* owner: until the next safe point */
    /* Owner only. */
    struct wf_job *slots;
    struct wf_job *end;
    uint32_t split;   /* as in the word */
    uint64_t version; /* as in the word: how often it was renamed */

    /* Thieves take, the owner gives:  63 .. version .. 34 | .. tail .. 17 | .. split .. 0 */
    _Alignas(WF_CACHE_LINE) _Atomic(uint64_t) word;
    _Atomic(const void *) name; /* owner: of whom the jobs are */
    _Atomic(uint32_t) reasons;  /* why somebody asks; askers set, the owner clears */
};

#define WF_JOBS_ASKED ((struct wf_job *)UINTPTR_MAX)

enum {
    WF_JOBS_POSITION_BITS = 17,
    WF_JOBS_SLOTS_MAX = (1 << WF_JOBS_POSITION_BITS) - 1,
};

_Static_assert(sizeof(struct wf_job) == sizeof(weft_job), "user code fills these");
_Static_assert(offsetof(struct wf_job, words) == offsetof(weft_job, words), "");
_Static_assert(offsetof(struct wf_jobs, head) == offsetof(weft_jobs, head), "and reads these");
_Static_assert(offsetof(struct wf_jobs, fork_limit) == offsetof(weft_jobs, fork_limit), "");
_Static_assert(offsetof(struct wf_jobs, join_floor) == offsetof(weft_jobs, join_floor), "");
_Static_assert(offsetof(struct wf_jobs, stack_floor) == offsetof(weft_jobs, stack_floor), "");
_Static_assert(offsetof(struct wf_jobs, steps_left) == offsetof(weft_jobs, steps_left), "");

static inline struct wf_jobs *wf_jobs_of(weft_jobs *jobs)
{
    return (struct wf_jobs *)(void *)jobs;
}

static inline weft_jobs *wf_jobs_public(struct wf_jobs *jobs)
{
    return (weft_jobs *)(void *)jobs;
}

/* An empty stack over these slots. Both limits say that somebody asks, so that the
 * first fork comes to wf_jobs_open(). */
void wf_jobs_init(struct wf_jobs *jobs, struct wf_job *slots, uint32_t count);

/* The jobs that come now are of another one: whoever the name means. */
void wf_jobs_rename(struct wf_jobs *jobs, const void *name);

/* --- Owner ------------------------------------------------------------------------ */

/* Forks that were not joined, and those of them that no thief can take yet. */
static inline uint32_t wf_jobs_len(const struct wf_jobs *jobs)
{
    return (uint32_t)(jobs->head - jobs->slots);
}

static inline uint32_t wf_jobs_private(const struct wf_jobs *jobs)
{
    return wf_jobs_len(jobs) - jobs->split;
}

/* Are there jobs that thieves can take? A snapshot; for any thread. */
bool wf_jobs_has_public(const struct wf_jobs *jobs);

/* Makes the oldest private jobs public, so many of them. The next join must ask, unless
 * wf_jobs_open() follows. */
void wf_jobs_publish(struct wf_jobs *jobs, uint32_t count);

/*
 * The owner joins the last job, which is already off its head. True: it is the
 * owner's, to be run. False: a thief has it; it is back until wf_jobs_joined(), which
 * follows once it is done.
 */
bool wf_jobs_reclaim(struct wf_jobs *jobs, struct wf_job *job);
void wf_jobs_joined(struct wf_jobs *jobs, struct wf_job *job);

/* What was asked for; it is as if never asked from now on. */
uint32_t wf_jobs_take_reasons(struct wf_jobs *jobs);

/* The next fork and the next join must ask. */
void wf_jobs_close(struct wf_jobs *jobs);

/* The owner has answered: forks and joins are quick again, unless somebody asks. Ends
 * with a full fence before that look. */
void wf_jobs_open(struct wf_jobs *jobs);

/* --- Others ----------------------------------------------------------------------- */

/* Takes the oldest public job. */
enum wf_steal wf_jobs_steal(struct wf_jobs *jobs, struct wf_job **out);

/* Has it this name now? A look. */
static inline bool wf_jobs_is_named(const struct wf_jobs *jobs, const void *name)
{
    /* relaxed: a look; who takes does so by wf_jobs_steal_of(). */
    return wf_load_relaxed(&jobs->name) == name;
}

/* The same, but only one of those who have this name now. */
enum wf_steal wf_jobs_steal_of(struct wf_jobs *jobs, const void *name, struct wf_job **out);

/* Asks the owner for something, at its next fork or join. */
void wf_jobs_ask(struct wf_jobs *jobs, uint32_t reason);

/* Any thread: was the owner asked for that, and has not answered yet? */
bool wf_jobs_is_asked(const struct wf_jobs *jobs, uint32_t reason);

/* --- The end of a job that was stolen ------------------------------------------------ */

/* Thief: it has run; its slot may be gone. Returns who waits for it, or NULL. */
static inline void *wf_job_finish(struct wf_job *job)
{
    /* acq_rel [J2] [J3]: its joiner sees what it has done, and the waiter is seen
     * whole. */
    return (void *)wf_xchg_acq_rel(&job->state, WF_JOB_DONE);
}

/* Owner: has it ended? */
static inline bool wf_job_is_done(struct wf_job *job)
{
    /* acquire [J2]: what the job has done is seen. */
    return wf_load_acquire(&job->state) == WF_JOB_DONE;
}

/* Owner: will wait; wf_job_finish() gives the waiter to the thief. False: it has ended. */
static inline bool wf_job_wait(struct wf_job *job, void *waiter)
{
    uintptr_t nobody = 0;
    /* acq_rel [J3] [J2]: the thief sees the waiter whole; or, on failure, what the job
     * has done is seen. */
    return wf_cas_acq_rel(&job->state, &nobody, (uintptr_t)waiter);
}

#endif
