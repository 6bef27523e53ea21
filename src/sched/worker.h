/* SPDX-License-Identifier: MIT */
/*
 * worker.h - worker thread: its run queues, scheduling state and counters.
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
    /* Operations that may complete without suspending in one poll of a task. The next one
     * yields. */
    WF_WORKER_BUDGET = 128,
    /* Bytes that cost as much as one such operation: copying them takes some microseconds. */
    WF_WORKER_BYTES = 16 * 1024,
    /* Consecutive polls from the LIFO slot. */
    WF_WORKER_LIFO_MAX = 3,
    /* Tasks fetched from the inject queue in one batch. */
    WF_WORKER_FETCH_MIN = 4,
    WF_WORKER_FETCH_MAX = 64,
    /* A worker that has been in one poll for longer than this may lose its LIFO slot to a thief. */
    WF_WORKER_STALL_NS = 50 * 1000,
};

struct wf_worker_counters {
    wf_counter polls, spawned, completed, steals, stolen_tasks, lifo_hits, lifo_stolen, evictions,
        inject_fetches, injected_tasks, overflows, parks, wakes, idle_wakes, unannounced_work,
        budget_yields, handovers, stolen_forks, fork_waits, average_poll_ns, inject_interval;
    wf_counter time_ns[WEFT_WORKER_STOPPED]; /* per state, up to since_ns */
    wf_counter since_ns;
    wf_counter state;
};

struct wf_worker {
    /* Owner only. */
    struct wf_sched *sched;
    struct wf_heap *heap;
    struct wf_driver *driver; /* NULL: parks on a futex */
    unsigned index;
    struct wf_task *current;  /* the task being polled, or NULL */
    struct wf_fiber *shell;   /* poll fiber of a poll that forks, or NULL; see shell.c */
    uint32_t budget;          /* ready operations left in this poll */
    uint32_t lifo_streak;     /* consecutive polls from the LIFO slot */
    uint32_t polls_to_inject; /* polls until the inject queue is served first */
    uint32_t tick_polls;      /* polls in this tick, up to the last clock read */
    uint32_t polls_to_clock;  /* polls until the next clock read */
    uint32_t clock_period;    /* polls between the last clock read and the next */
    int64_t tick_start;
    uint32_t eager_forks;    /* constant: forks of a fork context that are published immediately */
    bool shares;             /* constant: other workers may steal from the ring */
    bool uses_lifo;          /* wakes go to the LIFO slot; see wf_worker_queue_in_order() */
    bool searching;          /* counted as a searcher by idle.c */
    bool woken_to_work;      /* woken by a submitter, has not found work yet */
    bool unannounced;        /* a task was pushed to the ring without notifying any worker */
    bool pinned_turn;        /* take from the inbox before the ring, else after it */
    bool job_turn;           /* take forks of suspended fork contexts before the inject queue */
    int64_t serves_until;    /* a forking fiber that was asked to yield gives way until then */
    int64_t attach_again_at; /* after out of memory: allocate no fork context before that */
    bool closing;            /* has acknowledged the shutdown */
    bool watch_asleep;       /* the monitor was asleep when this worker woke */
    bool suspicious;         /* the last park timed out although work was queued */
    struct wf_rng rng;
    struct wf_interval interval;
    struct wf_qlist pinned;       /* tasks moved out of the inbox */
    _Atomic(uint32_t) pinned_len; /* its length, which the monitor reads */
    uint64_t ids;                 /* ids assigned to tasks so far */
    uint64_t suspect_polls;       /* polls of all workers when suspicious was set */
    pthread_t thread;

    /* Owner only: direct switches from fiber to fiber, see fiber.c. */
    struct wf_context loop;         /* context of the loop while a fiber runs */
    struct wf_loops loops;          /* the running loop and spare loops */
    struct wf_stack_cache stacks;   /* for fibers that start */
    struct wf_strand_cache strands; /* for fibers that fork */
    struct wf_task *next;           /* the loop's next task, chosen by the fiber that left */
    struct wf_fiber *lent;          /* fiber that left by a join handoff, see loan.c */
    struct wf_task *left;           /* fiber that left; the arriving fiber finishes its poll */
    int left_result;                /* poll result of that fiber */
    bool counted;                   /* the poll is already counted */
    void (*moved)(void *arg);       /* called instead: the fiber continues on another thread */
    void *moved_arg;
    struct wf_stack *ended_stack; /* stack of an ended fiber, until no code runs on it */
    struct wf_context ended;      /* context of that fiber */
    uint32_t fp_control;          /* floating-point control word with which fibers start */
    struct wf_seat seat;          /* thread state that fibers on this worker use */

    /* The owner fills it, any worker takes it: the task woken last. */
    _Alignas(WF_CACHE_LINE) _Atomic(struct wf_task *) lifo;
    /* Observers read and write it: the number of polls they last saw, and when they first saw
     * that number. */
    _Alignas(WF_CACHE_LINE) _Atomic(uint64_t) seen_poll;
    _Atomic(int64_t) seen_since;
    /* Forking fibers on any worker write it: the number of fibers in this worker's queues that
     * were asked to yield. */
    _Atomic(uint32_t) yielding;
    /* When its timers must be checked next, in the program's time. Any thread writes it, under
     * the timer lock; see time/timer.c. */
    _Alignas(WF_CACHE_LINE) _Atomic(int64_t) next_deadline;

    /* The owner writes it, thieves read it: the fork context that forks here, or NULL. */
    _Alignas(WF_CACHE_LINE) _Atomic(struct wf_strand *) strand;
    struct wf_away away; /* fork contexts that were suspended on this worker */

    /* Any thread pushes, the owner takes. */
    _Alignas(WF_CACHE_LINE) struct wf_mpsc inbox;
    struct wf_park park;

    struct wf_ring ring;
    _Alignas(WF_CACHE_LINE) struct wf_worker_counters counters;
};

WF_TLS_DECLARE(struct wf_worker *, wf_tls_worker);

/* Returns the worker that runs on this thread, or NULL. */
static inline struct wf_worker *wf_worker_current(void)
{
    return WF_TLS_LOAD(wf_tls_worker);
}

/* Returns the slab that the caller may allocate from and free to without a lock. */
unsigned wf_worker_slab(const struct wf_heap *heap);

void wf_worker_init(struct wf_worker *worker, struct wf_sched *sched, unsigned index);

/* Runs the worker; the start routine of its thread. */
void *wf_worker_main(void *worker);

/* Runs in the child after fork(): a worker that continues there must not run tasks. */
void wf_worker_in_child(void);

/* Owner only: makes sure that the monitor is awake, because the worker has left work for it to
 * watch. */
void wf_worker_be_watched(struct wf_worker *worker);

/* Owner only: queues a task that the current task woke or spawned. */
void wf_worker_push(struct wf_worker *worker, struct wf_task *task);

/*
 * Owner only: from now on, tasks run in the order in which they are queued. None goes to the
 * LIFO slot, from which the last one would run first. Returns the value to pass to
 * wf_worker_queue_as_before().
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

/* Any thread: returns a snapshot of the number of pinned tasks queued on this worker. A
 * non-empty inbox counts as one. */
static inline uint32_t wf_worker_pinned_len(const struct wf_worker *worker)
{
    /* relaxed: a hint; only the owner takes pinned tasks. */
    return wf_load_relaxed(&worker->pinned_len) + !wf_mpsc_is_empty(&worker->inbox);
}

/* Owner only: returns the next task from its own queues or the inject queue. */
struct wf_task *wf_worker_next(struct wf_worker *worker);

/* Owner only: polls a task once. */
void wf_worker_run(struct wf_worker *worker, struct wf_task *task);

/* Owner only, on a spare loop that starts: does what a loop does after a poll, then runs tasks.
 * Returns when the worker has been stopped. */
void wf_worker_go_on(struct wf_worker *worker);

/* Owner only: the two halves of wf_worker_run(), for fibers that switch directly to each other. */
static inline void wf_worker_begin(struct wf_worker *worker, struct wf_task *task)
{
    wf_counter_add(&worker->counters.polls, 1);
    worker->budget = WF_WORKER_BUDGET;
    worker->current = task;
    (void)wf_task_begin(task);
}
void wf_worker_settle(struct wf_worker *worker, struct wf_task *task, int result);

/* Any thread, after an operation that has moved bytes: takes large amounts from the budget of the
 * poll, so that a task that moves much data lets others run like one that moves little. */
void wf_worker_spend_bytes(size_t bytes);
static inline void wf_worker_count_bytes(size_t bytes)
{
    if (wf_unlikely(bytes >= WF_WORKER_BYTES)) {
        wf_worker_spend_bytes(bytes);
    }
}
void wf_worker_settle_left(struct wf_worker *worker);

/* Owner only, on a fiber that is about to leave: returns the task to switch to. Returns NULL if
 * there is none, or if the loop has other duties first. */
struct wf_task *wf_worker_next_direct(struct wf_worker *worker);

/* Owner only, on a fiber that would otherwise wait for this task: removes the task from its
 * queue if it would run next. Returns false if it would not, or if the loop has other duties
 * first. */
bool wf_worker_take_direct(struct wf_worker *worker, struct wf_task *task);

/* Owner only: returns a task from the inject queue, and moves the rest of the batch into the
 * ring. */
struct wf_task *wf_worker_fetch(struct wf_worker *worker);

/* Owner only, before a task yields: moves tasks from the inject queue into the ring, ahead of
 * the task. */
void wf_worker_fetch_ahead(struct wf_worker *worker);

/* Owner only, in search.c: moves tasks that are queued on stalled workers into the ring. */
void wf_worker_take_over(struct wf_worker *worker);

/* Owner only, in search.c: returns a task from elsewhere, or parks and returns NULL. */
struct wf_task *wf_worker_search(struct wf_worker *worker);

/* Owner only, in search.c: fires timers and handles events on behalf of workers that are
 * stalled in one poll, if the monitor has reported such workers. */
void wf_worker_stand_in(struct wf_worker *worker);

/* Owner only, in search.c: handles pending I/O events without blocking. */
void wf_worker_poll_driver(struct wf_worker *worker);

/* Owner only, in search.c: stops searching, because a task was found and is about to run. */
void wf_worker_stop_search(struct wf_worker *worker);

/* Owner only: changes the state to which time is charged. */
void wf_worker_enter(struct wf_worker *worker, weft_worker_state state);

/* Any thread: unparks the worker. If it is not parked, its next park returns immediately. */
void wf_worker_wake(struct wf_worker *worker);

/* Any thread: fires the worker's timers that are due. */
void wf_worker_fire_timers(struct wf_worker *worker, int64_t now);

/* Observer: returns how long this worker has been in its current poll, as far as observers have
 * noticed. */
int64_t wf_worker_poll_age(struct wf_worker *worker, int64_t now);

#endif
