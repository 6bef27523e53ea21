/* SPDX-License-Identifier: MIT */
/*
 * worker.h - one worker: its thread, its queues, its counters.
 */
#ifndef WF_SCHED_WORKER_H
#define WF_SCHED_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weft/obs.h>

#include "base/rng.h"
#include "base/tls.h"
#include "fiber/context.h"
#include "fiber/stack.h"
#include "obs/counter.h"
#include "queue/mpsc.h"
#include "queue/ring.h"
#include "sched/interval.h"
#include "sched/park.h"
#include "sched/shell.h"
#include "sched/strand.h"
#include "sched/task.h"
#include "sched/thread.h"

struct wf_driver;
struct wf_fiber;
struct wf_heap;
struct wf_sched;

enum {
    /* Ready operations in one poll of one task; the next one yields. */
    WF_WORKER_BUDGET = 128,
    /* Polls in a row of the task woken last. */
    WF_WORKER_LIFO_MAX = 3,
    /* A batch from the inject queue. */
    WF_WORKER_FETCH_MIN = 4,
    WF_WORKER_FETCH_MAX = 64,
    /* A poll older than this may lose its LIFO slot to an idle worker. */
    WF_WORKER_STALL_NS = 50 * 1000,
};

struct wf_worker_counters {
    wf_counter polls, spawned, completed, steals, stolen_tasks, lifo_hits, lifo_stolen, evictions,
        inject_fetches, injected_tasks, overflows, parks, wakes, idle_wakes, unannounced_work,
        budget_yields, handovers, stolen_forks, fork_waits, average_poll_ns, inject_interval;
    wf_counter time_ns[WEFT_WORKER_STOPPED]; /* by state, up to since_ns */
    wf_counter since_ns;
    wf_counter state;
};

struct wf_worker {
    /* Owner only. */
    struct wf_sched *sched;
    struct wf_heap *heap;
    struct wf_driver *driver; /* NULL: sleeps on a futex */
    unsigned index;
    struct wf_task *current;  /* the task being polled, or NULL */
    struct wf_fiber *shell;   /* of its poll, which forks; or NULL, see shell.c */
    uint32_t budget;          /* ready operations left in this poll */
    uint32_t lifo_streak;     /* polls from the LIFO slot in a row */
    uint32_t polls_to_inject; /* until the inject queue comes first */
    uint32_t tick_polls;      /* in this tick, up to the last look at the clock */
    uint32_t polls_to_clock;  /* until the next look */
    uint32_t clock_period;    /* polls between the last look and the next */
    int64_t tick_start;
    uint32_t eager_forks;    /* constant: so many of a strand are public at once */
    bool shares;             /* constant: others may take from the ring */
    bool uses_lifo;          /* wakes go to the LIFO slot; see wf_worker_queue_in_order() */
    bool searching;          /* counted as such by idle.c */
    bool woken_to_work;      /* taken by a submitter, and nothing found yet */
    bool unannounced;        /* the ring got a task that nobody was told of */
    bool pinned_turn;        /* the inbox before the ring, else after it */
    bool job_turn;           /* forks of strands that are away before the inject queue */
    int64_t serves_until;    /* who forks and was asked to yield stands back until then */
    int64_t attach_again_at; /* there was no memory for a fork context: not before that */
    bool closing;            /* has acknowledged the shutdown */
    bool watch_asleep;       /* the watch slept when this worker woke */
    bool suspicious;         /* the last park timed out beside work */
    struct wf_rng rng;
    struct wf_interval interval;
    struct wf_qlist pinned;       /* taken out of the inbox */
    _Atomic(uint32_t) pinned_len; /* its length, which the monitor reads */
    uint64_t ids;                 /* given to tasks so far */
    uint64_t suspect_polls;       /* of all workers, when a park timed out beside work */
    pthread_t thread;

    /* Owner only: passing the worker on from fiber to fiber, see fiber.c. */
    struct wf_context loop;         /* of the loop, while a fiber runs */
    struct wf_loops loops;          /* that one, and spare ones */
    struct wf_stack_cache stacks;   /* for fibers that begin */
    struct wf_strand_cache strands; /* for fibers that fork */
    struct wf_task *next;           /* chosen for the loop by a fiber that left */
    struct wf_fiber *lent;          /* a fiber that has left as a lender, see loan.c */
    struct wf_task *left;           /* a fiber that has left for the one that arrives */
    int left_result;                /* what its poll has come to */
    bool counted;                   /* its poll was counted */
    void (*moved)(void *arg);       /* instead of settling: it goes on on another thread */
    void *moved_arg;
    struct wf_stack *ended_stack; /* of a fiber that has ended, until all have left it */
    struct wf_context ended;      /* its context */
    uint32_t fp_control;          /* with which fibers begin */
    struct wf_seat seat;          /* what its thread lends to fibers */

    /* Owner fills, any worker takes: the task woken last. */
    _Alignas(WF_CACHE_LINE) _Atomic(struct wf_task *) lifo;
    /* Observers write and read: the number of polls they last saw, and when
     * they saw it first. */
    _Alignas(WF_CACHE_LINE) _Atomic(uint64_t) seen_poll;
    _Atomic(int64_t) seen_since;
    /* Who forks writes it, any worker: fibers that were asked to yield, in its queues. */
    _Atomic(uint32_t) yielding;
    /* When its timers want to be looked at, in the program's time. Any thread
     * writes it, under their lock; see time/timer.c. */
    _Alignas(WF_CACHE_LINE) _Atomic(int64_t) next_deadline;

    /* Owner writes, thieves read: the strand that forks here, or NULL. */
    _Alignas(WF_CACHE_LINE) _Atomic(struct wf_strand *) strand;
    struct wf_away away; /* strands that have left this worker */

    /* Any thread pushes, owner takes. */
    _Alignas(WF_CACHE_LINE) struct wf_mpsc inbox;
    struct wf_park park;

    struct wf_ring ring;
    _Alignas(WF_CACHE_LINE) struct wf_worker_counters counters;
};

WF_TLS_DECLARE(struct wf_worker *, wf_tls_worker);

/* The worker this thread is, or NULL. */
static inline struct wf_worker *wf_worker_current(void)
{
    return WF_TLS_LOAD(wf_tls_worker);
}

/* The slab that the caller may allocate from and free to without a lock. */
unsigned wf_worker_slab(const struct wf_heap *heap);

void wf_worker_init(struct wf_worker *worker, struct wf_sched *sched, unsigned index);

/* The worker's thread. */
void *wf_worker_main(void *worker);

/* In a child after fork(): a worker that goes on there must not run tasks. */
void wf_worker_in_child(void);

/* Owner only: has left something to the care of the watch, which must be awake. */
void wf_worker_be_watched(struct wf_worker *worker);

/* Owner only: queues a task that the current one woke or spawned. */
void wf_worker_push(struct wf_worker *worker, struct wf_task *task);

/*
 * Owner only: from now on tasks run in the order in which they are queued; none goes to the LIFO
 * slot, from which the last one would run first. Returns what wf_worker_queue_as_before() needs.
 */
static inline bool wf_worker_queue_in_order(struct wf_worker *worker)
{
    bool before = worker->uses_lifo;
    worker->uses_lifo = false;
    return before;
}

static inline void wf_worker_queue_as_before(struct wf_worker *worker, bool before)
{
    worker->uses_lifo = before;
}

/* Owner only: queues a pinned task of this worker. */
void wf_worker_push_pinned(struct wf_worker *worker, struct wf_task *task);

/* Any thread: returns the number of pinned tasks that wait here. An inbox that is not empty counts
 * as one. A snapshot. */
static inline uint32_t wf_worker_pinned_len(const struct wf_worker *worker)
{
    /* relaxed: a hint; only the owner takes a pinned task. */
    return wf_load_relaxed(&worker->pinned_len) + !wf_mpsc_is_empty(&worker->inbox);
}

/* Owner only: the next task from its own queues or the inject queue. */
struct wf_task *wf_worker_next(struct wf_worker *worker);

/* Owner only: polls a task once. */
void wf_worker_run(struct wf_worker *worker, struct wf_task *task);

/* Owner only, on a spare loop that begins: what others do after a poll. Returns when the
 * worker has been stopped. */
void wf_worker_go_on(struct wf_worker *worker);

/* Owner only: the two halves of it, for fibers that pass the worker on. */
static inline void wf_worker_begin(struct wf_worker *worker, struct wf_task *task)
{
    wf_counter_add(&worker->counters.polls, 1);
    worker->budget = WF_WORKER_BUDGET;
    worker->current = task;
    (void)wf_task_begin(task);
}
void wf_worker_settle(struct wf_worker *worker, struct wf_task *task, int result);
void wf_worker_settle_left(struct wf_worker *worker);

/* Owner only, on a fiber that is about to leave: the task to pass the worker on
 * to. NULL if there is none at hand, or if the loop's other duties come first. */
struct wf_task *wf_worker_next_direct(struct wf_worker *worker);

/* Owner only, on a fiber that would wait for this task: takes it out of its queue, if it
 * would be the next one to run. False if not, or if the loop's duties come first. */
bool wf_worker_take_direct(struct wf_worker *worker, struct wf_task *task);

/* Owner only: a task from the inject queue; others go into the ring. */
struct wf_task *wf_worker_fetch(struct wf_worker *worker);

/* Owner only, before a task yields: those that wait in the inject queue go into the ring, ahead
 * of it. */
void wf_worker_fetch_ahead(struct wf_worker *worker);

/* The same, in search.c: those that wait for workers that do not get round to them. */
void wf_worker_take_over(struct wf_worker *worker);

/* Owner only, in search.c: a task from elsewhere, or sleeps and returns NULL. */
struct wf_task *wf_worker_search(struct wf_worker *worker);

/* Owner only, in search.c: fires timers and handles events of workers that are long in
 * one poll, if the watch has seen such. */
void wf_worker_stand_in(struct wf_worker *worker);

/* Owner only, in search.c: handles events without sleeping. */
void wf_worker_poll_driver(struct wf_worker *worker);

/* Owner only, in search.c: has found a task and is about to run it. */
void wf_worker_stop_search(struct wf_worker *worker);

/* Owner only: changes what the time is counted as. */
void wf_worker_enter(struct wf_worker *worker, weft_worker_state state);

/* Any thread: wakes the worker if it sleeps; kept for its next sleep if not. */
void wf_worker_wake(struct wf_worker *worker);

/* Any thread: fires the timers of the worker that are due. */
void wf_worker_fire_timers(struct wf_worker *worker, int64_t now);

/* Observer: for how long has this worker been in its current poll, as far as
 * observers have noticed? */
int64_t wf_worker_poll_age(struct wf_worker *worker, int64_t now);

#endif
