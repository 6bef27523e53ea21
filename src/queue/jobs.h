/* SPDX-License-Identifier: MIT */
/*
 * jobs.h - fork stack of one fork context: private forks on top, public ones below. The
 * protocol is in jobs.c.
 *
 *   slots   [ stolen by thieves | public | private |      free      ]
 *                             tail     split     head              end
 *
 * The owner is the fork context: one thread at a time. It forks and joins at head by code in
 * <weft/fork.h> and <weft/par.h>, which touches only two limits that other threads write.
 *
 *                         owner   thief   requester
 *   publish, reclaim        x
 *   open, take reasons      x
 *   rename                  x                      while the stack is empty
 *   steal                           x
 *   ask                     x       x       x      any thread, at any time
 *   wait                    x                      for a stolen fork of its own
 *   finish                          x              by the thief that stole it
 */
#ifndef WF_QUEUE_JOBS_H
#define WF_QUEUE_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/fork.h>

#include "base/atomic.h"
#include "queue/steal.h"

/* A fork that has not been joined yet. Same layout as weft_job, which user code fills. */
struct wf_job {
    void (*run)(weft_job *job);
    _Atomic(uintptr_t) state; /* once public: 0, the waiter for its end, or WF_JOB_DONE */
    weft_word words[6];
};

#define WF_JOB_DONE    ((uintptr_t)1)
#define WF_JOB_SPAWNED ((uintptr_t)2) /* never joined; see sched/job.h */

struct wf_jobs {
    /* Same layout as weft_jobs, which user code reads. */
    struct wf_job *head;                 /* owner */
    _Atomic(struct wf_job *) fork_limit; /* end, or NULL: a request is pending */
    _Atomic(struct wf_job *) join_floor; /* at split, or WF_JOBS_ASKED: a request is pending */
    char *stack_floor;                   /* owner: below it, the C stack is nearly used up */
    ptrdiff_t steps_left;                /* owner: until the next safe point */
    /* Owner only. */
    struct wf_job *slots;
    struct wf_job *end;
    uint32_t split;   /* same as in the word */
    uint64_t version; /* same as in the word: number of renames */

    /* Thieves CAS, the owner writes:  63 .. version .. 34 | .. tail .. 17 | .. split .. 0 */
    _Alignas(WF_CACHE_LINE) _Atomic(uint64_t) word;
    _Atomic(const void *) name; /* owner: identifies the fork context of the forks */
    _Atomic(uint32_t) reasons;  /* pending requests; requesters set bits, the owner clears them */
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

/* Initializes an empty stack over these slots. Both limits show a pending request, so that the
 * first fork reaches wf_jobs_open(). */
void wf_jobs_init(struct wf_jobs *jobs, struct wf_job *slots, uint32_t count);

/* Owner only, while the stack is empty. The forks pushed from now on belong to the fork context
 * that name identifies. */
void wf_jobs_rename(struct wf_jobs *jobs, const void *name);

/* --- Owner ------------------------------------------------------------------------ */

/* Return the number of forks not joined yet, and of those among them that no thief can steal
 * yet. */
static inline uint32_t wf_jobs_len(const struct wf_jobs *jobs)
{
    return (uint32_t)(jobs->head - jobs->slots);
}

static inline uint32_t wf_jobs_private(const struct wf_jobs *jobs)
{
    return wf_jobs_len(jobs) - jobs->split;
}

/* Any thread. Returns whether thieves can steal a fork: a snapshot. */
bool wf_jobs_has_public(const struct wf_jobs *jobs);

/* Publishes the given number of private forks, oldest first. The next fork and the next join
 * take the slow path, unless wf_jobs_open() follows. */
void wf_jobs_publish(struct wf_jobs *jobs, uint32_t count);

/*
 * Joins the last fork, which the owner has already popped from head. Returns true if the owner
 * must run it. Returns false if a thief has it: the fork is then back on the stack until
 * wf_jobs_joined(), which the owner calls once the fork is done.
 */
bool wf_jobs_reclaim(struct wf_jobs *jobs, struct wf_job *job);
void wf_jobs_joined(struct wf_jobs *jobs, struct wf_job *job);

/* Returns and clears the pending requests. */
uint32_t wf_jobs_take_reasons(struct wf_jobs *jobs);

/* Makes the next fork and the next join take the slow path. */
void wf_jobs_close(struct wf_jobs *jobs);

/* The owner has answered: forks and joins take the fast path again, unless a request is
 * pending. Issues a full fence before it checks for requests. */
void wf_jobs_open(struct wf_jobs *jobs);

/* --- Thieves and requesters ------------------------------------------------------- */

/* Steals the oldest public fork. */
enum wf_steal wf_jobs_steal(struct wf_jobs *jobs, struct wf_job **out);

/* Returns whether the stack has this name: a snapshot. */
static inline bool wf_jobs_is_named(const struct wf_jobs *jobs, const void *name)
{
    /* relaxed: a snapshot; wf_jobs_steal_of() verifies the name. */
    return wf_load_relaxed(&jobs->name) == name;
}

/* Same as wf_jobs_steal(), but only if the stack has this name. */
enum wf_steal wf_jobs_steal_of(struct wf_jobs *jobs, const void *name, struct wf_job **out);

/* Posts a request, which the owner answers at its next fork or join. */
void wf_jobs_ask(struct wf_jobs *jobs, uint32_t reason);

/* Any thread. Returns whether the owner has been sent this request and has not answered it yet. */
bool wf_jobs_is_asked(const struct wf_jobs *jobs, uint32_t reason);

/* --- Completion of a stolen fork -------------------------------------------------- */

/* Thief: the fork has run. Its slot may be reused after this. Returns the waiter, or NULL. */
static inline void *wf_job_finish(struct wf_job *job)
{
    /* acq_rel [J2] [J3]: the joiner sees what the fork did, and the thief sees the waiter
     * initialized. */
    return (void *)wf_xchg_acq_rel(&job->state, WF_JOB_DONE);
}

/* Owner: returns whether the fork is done. */
static inline bool wf_job_is_done(struct wf_job *job)
{
    /* acquire [J2]: sees what the fork did. */
    return wf_load_acquire(&job->state) == WF_JOB_DONE;
}

/* Owner: sets the waiter, which wf_job_finish() returns to the thief. Returns false if the fork
 * is done. */
static inline bool wf_job_wait(struct wf_job *job, void *waiter)
{
    uintptr_t nobody = 0;
    /* acq_rel [J3] [J2]: the thief sees the waiter initialized or, on failure, the owner sees
     * what the fork did. */
    return wf_cas_acq_rel(&job->state, &nobody, (uintptr_t)waiter);
}

#endif
