/* SPDX-License-Identifier: MIT */
/*
 * strand.h - fork context: the fork stack (queue/jobs.h) of a computation that forks, and where
 * thieves find it. The protocol is in strand.c.
 */
#ifndef WF_SCHED_STRAND_H
#define WF_SCHED_STRAND_H

#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"
#include "queue/deque.h"
#include "queue/jobs.h"
#include "sched/runners.h"

struct wf_fiber;
struct wf_sched;
struct wf_worker;

enum {
#ifdef WF_MODEL
    WF_STRAND_PARTS = 3,
    WF_STRAND_SLOTS = 4,
#else
    WF_STRAND_PARTS = 16,
    WF_STRAND_SLOTS = 1 << 16, /* unjoined forks of one fork context */
#endif
    /* Per runtime. A fiber or external thread that gets none runs its forks itself. */
    WF_STRANDS_MAX = (1 << WF_STRAND_PARTS) - 1,
    WF_STRANDS_CACHED = 8,               /* maximum that a worker keeps */
    WF_STRAND_STACK_RESERVE = 16 * 1024, /* of the C stack: below it, calls move to a fresh one */
    WF_ATTACH_AGAIN_NS = 1000 * 1000,    /* between two attempts to get one that fail */
    WF_STRAND_STEPS_MIN = 1,             /* between two safe points */
    WF_STRAND_STEPS_MAX = 4096,
};

/* Freed with its scheduler. A thief may hold a pointer to it at any time and always finds a
 * fork context of its own runtime, which may belong to another fiber by then. */
struct wf_strand {
    struct wf_jobs jobs;
    struct wf_sched *sched; /* constant */
    uint32_t index;         /* constant: from 1 */
    struct wf_strand *next; /* holder: link in a list of free ones */
    struct wf_away *away;   /* owner: the list it was put into, or NULL */
    struct wf_list link;    /* under away's lock; unlinked once nothing is public */
    /* Owner only: */
    uint32_t eager_forks;          /* forks that are published immediately */
    bool shares;                   /* others may steal from it while it is not away */
    _Atomic(int64_t) silent_since; /* its forks must not be stolen yet; 0: they may be */
    int64_t turn_since;            /* first safe point since it arrived here; 0: none yet */
    int64_t looked_at;             /* its last safe point, or 0 */
    int32_t steps;                 /* between two safe points */
    bool has_spawned;              /* the deque is initialized */
    struct wf_runners runners;     /* of its stolen forks that are joined */
    struct wf_deque spawned;       /* forks that are never joined; thieves steal from it, too */
};

/* Fork contexts that have left their worker and have public forks. */
struct wf_away {
    struct wf_lock lock; /* guards the list */
    struct wf_list list;
    _Atomic(uint32_t) count; /* written under the lock, read by any thread */
};

void wf_away_init(struct wf_away *away);

/* A stolen fork, and the list for its runner. NULL if there is none. */
struct wf_stolen {
    struct wf_job *job;
    struct wf_runners *runners;
};

/* Any worker: steals the oldest fork of some fork context that is away. */
struct wf_stolen wf_away_steal(struct wf_away *away);

static inline bool wf_away_has_jobs(const struct wf_away *away)
{
    /* relaxed: a hint; a thief holds the lock. */
    return wf_load_relaxed(&away->count) > 0;
}

/* Any thread: returns whether a thief could steal something from it. A hint. */
static inline bool wf_strand_has_public(const struct wf_strand *strand)
{
    return wf_jobs_has_public(&strand->jobs) || !wf_deque_looks_empty(&strand->spawned);
}

/* Owner: makes its forks silent from this time on; 0 ends that. */
static inline void wf_strand_be_silent(struct wf_strand *strand, int64_t since)
{
    /* relaxed: a hint for thieves; it carries no data. */
    wf_store_relaxed(&strand->silent_since, since);
}

/* Any thread: returns since when its forks are silent; 0 if they are not. */
static inline int64_t wf_strand_silent_since(const struct wf_strand *strand)
{
    /* relaxed: a hint; a thief that is wrong comes too early, or once more. */
    return wf_load_relaxed(&strand->silent_since);
}

/* Owner: starts a new time slice. Its next pause is a safe point. */
static inline void wf_strand_begin_turn(struct wf_strand *strand)
{
    strand->turn_since = 0;
    strand->looked_at = 0;
    strand->jobs.steps_left = 0;
}

/* Any thread: steals the oldest stealable fork. */
struct wf_stolen wf_strand_steal(struct wf_strand *strand);

/* A worker's free fork contexts; owner only. */
struct wf_strand_cache {
    struct wf_strand *first;
    uint32_t count;
};

/* All fork contexts of a scheduler. */
struct wf_strands {
    struct wf_sched *sched; /* constant */
    struct wf_lock lock;    /* guards the rest */
    struct wf_strand *free; /* list */
    uint32_t made;
    struct wf_strand **parts[WF_STRAND_PARTS]; /* all, by index; entries never change */
};

void wf_strands_init(struct wf_strands *pool, struct wf_sched *sched);

/* Frees all fork contexts. No thread may use the scheduler any more. */
void wf_strands_fini(struct wf_strands *pool);

/* Any thread: returns the number of fork contexts, in use or free. */
uint32_t wf_strands_made(struct wf_strands *pool);

/* Any thread: take a fork context without forks, NULL if there is none, and give it back. */
struct wf_strand *wf_strand_take(struct wf_strands *pool);
void wf_strand_give(struct wf_strand *strand);

/* Makes this thread fork there from now on. NULL: its next fork takes the slow path. */
void wf_strand_use(struct wf_strand *strand);

/* Makes this thread fork where it did before, on the same stack. */
void wf_strand_use_again(weft_jobs *jobs);

/* Aborts if there are unjoined forks, naming their owner. */
void wf_strand_must_be_empty(const struct wf_strand *strand, const char *whose, uint64_t id);

/* Returns how many forks to publish immediately for the given number of runners: the levels of
 * a binary tree, and one more for unbalanced trees. */
static inline uint32_t wf_strand_eager_forks(unsigned runners)
{
    return 2 + 31 - (uint32_t)__builtin_clz(runners);
}

/* Gives all fork contexts of a cache back to the pool. */
void wf_strand_flush(struct wf_strand_cache *cache);

/* On this fiber, which has none: attaches a fork context. Returns NULL if there is none. */
struct wf_strand *wf_strand_attach(struct wf_worker *worker, struct wf_fiber *self);

/* On this fiber, which has a fork context: call before it leaves its worker, after it has
 * arrived on one, and when it ends. */
void wf_strand_leave(struct wf_worker *worker, struct wf_fiber *self);
void wf_strand_arrive(struct wf_worker *worker, struct wf_fiber *self);
void wf_strand_end(struct wf_worker *worker, struct wf_fiber *self);

#endif
