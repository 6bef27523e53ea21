/* SPDX-License-Identifier: MIT */
/*
 * strand.h - whoever forks has a strand: a stack of jobs (queue/jobs.h), and a place where
 * thieves find it. The protocol is in strand.c.
 */
#ifndef WF_SCHED_STRAND_H
#define WF_SCHED_STRAND_H

#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"
#include "queue/deque.h"
#include "queue/jobs.h"

struct wf_fiber;
struct wf_sched;
struct wf_worker;

enum {
#ifdef WF_MODEL
    WF_STRAND_PARTS = 3,
    WF_STRAND_SLOTS = 4,
#else
    WF_STRAND_PARTS = 16,
    WF_STRAND_SLOTS = 1 << 16, /* forks that were not joined, of one strand */
#endif
    /* In a runtime. A fiber or guest that gets none runs its forks itself. */
    WF_STRANDS_MAX = (1 << WF_STRAND_PARTS) - 1,
    WF_STRANDS_CACHED = 8,               /* the most that a worker keeps */
    WF_STRAND_STACK_RESERVE = 16 * 1024, /* of the C stack: then calls go to a fresh one */
    WF_STRAND_STEPS_MIN = 1,             /* between two safe points */
    WF_STRAND_STEPS_MAX = 4096,
};

/* Freed with its scheduler: a worker may look at it at any time, and finds a strand of its own
 * runtime, which may belong to another fiber by then. */
struct wf_strand {
    struct wf_jobs jobs;
    struct wf_sched *sched; /* constant */
    uint32_t index;         /* constant: from 1 */
    struct wf_strand *next; /* whoever has it: in a list of free ones */
    struct wf_away *away;   /* owner: where it has been put, or NULL */
    struct wf_list link;    /* under away's lock; not linked once it has nothing public */
    /* Owner only: */
    uint32_t eager_forks;          /* so many are public at once */
    bool shares;                   /* others may take from it while it is not away */
    _Atomic(int64_t) silent_since; /* its forks are not to be taken yet; 0: they are */
    int64_t turn_since;            /* its first safe point since it came here; 0: none yet */
    int64_t looked_at;             /* its last safe point, or 0 */
    int32_t steps;                 /* between safe points */
    bool has_spawned;              /* the deque is initialised */
    struct wf_deque spawned;       /* jobs that nobody joins; thieves take from it, too */
};

/* Strands that have left their worker and have jobs that can be taken. */
struct wf_away {
    struct wf_lock lock; /* guards the list */
    struct wf_list list;
    _Atomic(uint32_t) count; /* written under the lock; looked at by any thread */
};

void wf_away_init(struct wf_away *away);

/* Any worker: takes the oldest job of some strand that is away. NULL: there is none. */
struct wf_job *wf_away_steal(struct wf_away *away);

static inline bool wf_away_has_jobs(const struct wf_away *away)
{
    /* relaxed: a look; who takes holds the lock. */
    return wf_load_relaxed(&away->count) > 0;
}

/* Any thread: can something be taken from it? A look. */
static inline bool wf_strand_has_public(const struct wf_strand *strand)
{
    return wf_jobs_has_public(&strand->jobs) || !wf_deque_looks_empty(&strand->spawned);
}

/* Owner: from this time on its forks are silent; 0: not any more. */
static inline void wf_strand_be_silent(struct wf_strand *strand, int64_t since)
{
    /* relaxed: a hint for thieves; nothing comes with it. */
    wf_store_relaxed(&strand->silent_since, since);
}

/* Any thread: since when; 0 if not. */
static inline int64_t wf_strand_silent_since(const struct wf_strand *strand)
{
    /* relaxed: a hint; a thief that is wrong comes too early, or again. */
    return wf_load_relaxed(&strand->silent_since);
}

/* Owner: its next pause is a safe point, where its turn begins. */
static inline void wf_strand_begin_turn(struct wf_strand *strand)
{
    strand->turn_since = 0;
    strand->looked_at = 0;
    strand->jobs.steps_left = 0;
}

/* Any thread: takes the oldest job that can be taken, or NULL. */
struct wf_job *wf_strand_steal(struct wf_strand *strand);

/* A worker's free strands; owner only. */
struct wf_strand_cache {
    struct wf_strand *first;
    uint32_t count;
};

/* The strands of a scheduler. */
struct wf_strands {
    struct wf_sched *sched; /* constant */
    struct wf_lock lock;    /* guards the rest */
    struct wf_strand *free; /* list */
    uint32_t made;
    struct wf_strand **parts[WF_STRAND_PARTS]; /* all, by index; entries are constant once made */
};

void wf_strands_init(struct wf_strands *pool, struct wf_sched *sched);

/* Frees all strands. No thread uses the scheduler any more. */
void wf_strands_fini(struct wf_strands *pool);

/* Any thread: returns the number of strands, in use or not. */
uint32_t wf_strands_made(struct wf_strands *pool);

/* Any thread: takes a strand without forks, NULL if there is none, and gives it back. */
struct wf_strand *wf_strand_take(struct wf_strands *pool);
void wf_strand_give(struct wf_strand *strand);

/* This thread forks there from now on; NULL: it must ask. */
void wf_strand_use(struct wf_strand *strand);

/* Aborts if there are forks: whose are they? */
void wf_strand_must_be_empty(const struct wf_strand *strand, const char *whose, uint64_t id);

/* How many forks to publish at once, for so many who could run them: the levels of a
 * binary tree, and one more for trees that are not even. */
static inline uint32_t wf_strand_eager_forks(unsigned runners)
{
    return 2 + 31 - (uint32_t)__builtin_clz(runners);
}

/* Gives what a cache holds back. */
void wf_strand_flush(struct wf_strand_cache *cache);

/* On this fiber, which has none: gives it one. NULL: there is none. */
struct wf_strand *wf_strand_attach(struct wf_worker *worker, struct wf_fiber *self);

/* On this fiber, which has one: before it leaves its worker, after it has come to one,
 * and at its end. */
void wf_strand_leave(struct wf_worker *worker, struct wf_fiber *self);
void wf_strand_arrive(struct wf_worker *worker, struct wf_fiber *self);
void wf_strand_end(struct wf_worker *worker, struct wf_fiber *self);

#endif
