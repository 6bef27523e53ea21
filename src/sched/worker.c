/* SPDX-License-Identifier: MIT */
/*
 * worker.c - worker loop: takes a task, polls it, and does periodic maintenance.
 *
 * Sources of the next task, in order:
 *
 *   1  every few polls (the inject interval): one task from the inject queue
 *   2  the LIFO slot: the task woken last, whose data is in the cache
 *   3  the inbox and the ring, alternating
 *   4  a batch from the inject queue
 *   5  other workers (search.c)
 *
 * The LIFO slot. Only the owner fills it and evicts the previous occupant to the ring. Owner
 * and thieves take from it by exchange. After three consecutive polls from the slot, its
 * occupant goes to the end of the ring instead and the next poll is served from the ring. So
 * two tasks that wake each other cannot starve the others.
 *
 * Announcing. A task in the LIFO slot is not announced: its worker is about to take it, and the
 * monitor notices if it does not. A task in the ring is announced immediately if the current
 * poll continues (an eviction). Otherwise it is announced after the next task has been chosen,
 * if the ring is not empty then: a task that yields on an otherwise idle worker wakes no other
 * worker.
 *
 * While a worker moves a fetched or stolen batch, its tasks are in no queue, so another worker
 * may look and park in that window. If the mover is counted as a searcher, the last searcher
 * looks once more (idle.c, F2). If it is not, because it polled on behalf of a stalled worker
 * during its search, it announces the rest of the batch itself before it polls.
 *
 * A tick ends after a number of polls or after some time, whichever comes first. The clock is
 * read every few polls, more often when polls are long.
 *
 * Edges.
 * [F1] filling the LIFO slot releases it, a thief's exchange acquires it: the thief sees the
 *      task as its waker left it.
 */
#include "sched/worker.h"

#include <stdio.h>

#include <weft/base.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/fork.h"
#include "sched/driver.h"
#include "sched/heap.h"
#include "sched/job.h"
#include "sched/overflow.h"
#include "sched/sched.h"
#include "sched/thread.h"

/* A clock read costs about 30 ns, so it is done once per this time or number of polls. A larger
 * number would let a tick overrun when short polls turn into long ones. */
#define CLOCK_EVERY_NS    100000
#define CLOCK_EVERY_POLLS 16

WF_TLS_DEFINE(struct wf_worker *, wf_tls_worker);

unsigned wf_worker_slab(const struct wf_heap *heap)
{
    const struct wf_worker *worker = wf_worker_current();
    return worker != NULL && worker->heap == heap ? worker->index : heap->outside;
}

void wf_worker_init(struct wf_worker *worker, struct wf_sched *sched, unsigned index)
{
    const struct wf_sched_options *options = &sched->options;
    worker->sched = sched;
    worker->heap = sched->heap;
    worker->index = index;
    worker->shares = options->stealing && options->workers > 1;
    worker->uses_lifo = options->lifo;
    worker->eager_forks = worker->shares ? wf_strand_eager_forks(options->workers) : 0;
    /* relaxed: not shared yet. */
    wf_store_relaxed(&worker->next_deadline, WF_NEVER);
    wf_away_init(&worker->away);
    wf_ring_init(&worker->ring);
    wf_rng_seed(&worker->rng, options->seed, index);
    wf_interval_init(&worker->interval, options->inject_target_ns, options->inject_interval_min,
                     options->inject_interval_max);
    worker->polls_to_inject = wf_interval_polls(&worker->interval);
    worker->polls_to_clock = 1;
    worker->clock_period = 1;
    wf_counter_set(&worker->counters.inject_interval, worker->polls_to_inject);
    wf_counter_set(&worker->counters.average_poll_ns, WF_INTERVAL_FIRST_NS);
    wf_counter_set(&worker->counters.since_ns, (uint64_t)wf_clock_real());
}

void wf_worker_enter(struct wf_worker *worker, weft_worker_state state)
{
    struct wf_worker_counters *counters = &worker->counters;
    uint64_t before = wf_counter_read(&counters->state);
    if (before == state) {
        return;
    }
    uint64_t now = (uint64_t)wf_clock_real();
    worker->tick_start = (int64_t)now;
    wf_counter_add(&counters->time_ns[before], now - wf_counter_read(&counters->since_ns));
    wf_counter_set(&counters->since_ns, now);
    wf_counter_set(&counters->state, state);
}

void wf_worker_wake(struct wf_worker *worker)
{
    if (wf_park_wake(&worker->park)) {
        worker->driver->ops->reach(worker->driver);
    }
}

int64_t wf_worker_poll_age(struct wf_worker *worker, int64_t now)
{
    uint64_t poll = wf_counter_read(&worker->counters.polls);
    /* relaxed: a heuristic. Two observers that interleave make the age wrong for a moment, and
     * stealing a LIFO slot too early does no harm. */
    if (wf_load_relaxed(&worker->seen_poll) != poll) {
        /* relaxed: a heuristic, as above. */
        wf_store_relaxed(&worker->seen_since, now);
        wf_store_relaxed(&worker->seen_poll, poll);
        return 0;
    }
    /* relaxed: a heuristic, as above. */
    return now - wf_load_relaxed(&worker->seen_since);
}

void wf_worker_fire_timers(struct wf_worker *worker, int64_t now)
{
    /* relaxed: a hint; due timers are removed under a lock. */
    if (wf_unlikely(now >= wf_load_relaxed(&worker->next_deadline))) {
        worker->sched->timer_ops->fire(worker->sched, worker->index, now);
    }
}

static bool shuffles(struct wf_worker *worker)
{
#ifdef WF_SHUFFLE
    return wf_rng_below(&worker->rng, 4) == 0;
#else
    (void)worker;
    return false;
#endif
}

/* Wakes a worker for tasks in the ring, if other workers can steal them. */
static void announce(struct wf_worker *worker)
{
    if (worker->shares) {
        wf_sched_notify(worker->sched);
    }
}

static void push_ring(struct wf_worker *worker, struct wf_task *task)
{
    if (wf_likely(wf_ring_push(&worker->ring, &task->node))) {
        return;
    }
    struct wf_qlist overflow = { 0 };
    wf_ring_overflow(&worker->ring, &task->node, &overflow);
    wf_inject_push_list(&worker->sched->inject, &overflow);
    wf_counter_add(&worker->counters.overflows, 1);
    wf_sched_notify(worker->sched);
}

void wf_worker_push(struct wf_worker *worker, struct wf_task *task)
{
    if (!worker->uses_lifo || shuffles(worker)) {
        push_ring(worker, task);
        announce(worker);
        return;
    }

    /* relaxed: only the owner fills the slot, so an empty slot stays empty. */
    if (wf_load_relaxed(&worker->lifo) == NULL) {
        /* release [F1]: a thief sees the task as its waker left it. */
        wf_store_release(&worker->lifo, task);
    } else {
        /* release [F1]: as above. The evicted task was stored by this thread. */
        struct wf_task *evicted = wf_xchg_release(&worker->lifo, task);
        if (evicted != NULL) {
            wf_counter_add(&worker->counters.evictions, 1);
            push_ring(worker, evicted);
            announce(worker);
        }
    }
    wf_worker_be_watched(worker);
}

void wf_worker_be_watched(struct wf_worker *worker)
{
    if (wf_unlikely(worker->watch_asleep)) {
        worker->watch_asleep = false;
        wf_watch_wake(&worker->sched->watch);
    }
}

/* Publishes the length of the list of pinned tasks after a change. */
static void note_pinned(struct wf_worker *worker)
{
    /* relaxed: a hint for the monitor. */
    wf_store_relaxed(&worker->pinned_len, (uint32_t)worker->pinned.count);
}

void wf_worker_push_pinned(struct wf_worker *worker, struct wf_task *task)
{
    wf_qlist_push(&worker->pinned, &task->node);
    note_pinned(worker);
}

/* Queues a task at the end of its poll, behind all other tasks. */
static void requeue(struct wf_worker *worker, struct wf_task *task)
{
    wf_task_mark_queued(task);
    if (task->pin != 0) {
        /* Tasks in the inbox were queued earlier. */
        wf_mpsc_take_all(&worker->inbox, &worker->pinned);
        wf_worker_push_pinned(worker, task);
        return;
    }
    push_ring(worker, task);
    worker->unannounced = worker->shares;
}

static struct wf_task *take_lifo(struct wf_worker *worker)
{
    /* relaxed: only a hint; the exchange below takes the task. */
    if (wf_load_relaxed(&worker->lifo) == NULL) {
        return NULL;
    }
    /* relaxed: this thread filled the slot; a thief may have been faster. */
    struct wf_task *task = wf_xchg_relaxed(&worker->lifo, (struct wf_task *)NULL);
    if (task != NULL && worker->lifo_streak >= WF_WORKER_LIFO_MAX) {
        push_ring(worker, task);
        worker->unannounced = worker->shares;
        return NULL;
    }
    if (task != NULL) {
        worker->lifo_streak++;
        wf_counter_add(&worker->counters.lifo_hits, 1);
    }
    return task;
}

static struct wf_task *take_ring(struct wf_worker *worker)
{
    struct wf_qnode *node = wf_ring_pop(&worker->ring);
    return node != NULL ? wf_task_of(node) : NULL;
}

static struct wf_task *take_pinned(struct wf_worker *worker)
{
    wf_mpsc_take_all(&worker->inbox, &worker->pinned);
    struct wf_qnode *node = wf_qlist_pop(&worker->pinned);
    note_pinned(worker);
    return node != NULL ? wf_task_of(node) : NULL;
}

static bool has_pinned(const struct wf_worker *worker)
{
    return worker->pinned.first != NULL || !wf_mpsc_is_empty(&worker->inbox);
}

/* Alternates between inbox and ring, so that neither starves the other. */
static struct wf_task *take_fifo(struct wf_worker *worker)
{
    if (wf_likely(!has_pinned(worker))) {
        return take_ring(worker);
    }
    worker->pinned_turn = !worker->pinned_turn;
    struct wf_task *task = worker->pinned_turn ? NULL : take_ring(worker);
    return task != NULL ? task : take_pinned(worker);
}

/* Counts a batch that was fetched from the inject queue, and wakes submitters that wait for
 * space. */
static void note_fetched(struct wf_worker *worker, size_t count)
{
    wf_counter_add(&worker->counters.inject_fetches, 1);
    wf_counter_add(&worker->counters.injected_tasks, count);
    wf_room_freed(&worker->sched->room, &worker->sched->inject, count);
}

/* Fetches up to max tasks from the inject queue. Returns the first and moves the others into
 * the ring. */
static struct wf_task *fetch(struct wf_worker *worker, size_t max)
{
    struct wf_inject *inject = &worker->sched->inject;
    struct wf_qlist list = { 0 };
    wf_inject_pop(inject, max, &list);
    size_t count = list.count;
    struct wf_qnode *first = wf_qlist_pop(&list);
    if (first == NULL) {
        return NULL;
    }
    if (list.count > 0) {
        wf_ring_push_list(&worker->ring, &list);
        worker->unannounced = worker->shares;
    }
    note_fetched(worker, count);
    return wf_task_of(first);
}

static struct wf_task *fetch_one(struct wf_worker *worker)
{
    return wf_inject_len(&worker->sched->inject) == 0 ? NULL : fetch(worker, 1);
}

/* Returns the batch size to fetch from an inject queue of this length: a fair share, since
 * other workers fetch theirs. */
static size_t share_of(const struct wf_worker *worker, size_t length)
{
    size_t count = length / worker->sched->options.workers;
    if (count < WF_WORKER_FETCH_MIN) {
        count = WF_WORKER_FETCH_MIN;
    }
    if (count > WF_WORKER_FETCH_MAX) {
        count = WF_WORKER_FETCH_MAX;
    }
    /* Fill at most half of the ring: if it is full of tasks that yield, more would only
     * overflow. */
    size_t room = wf_ring_room(&worker->ring);
    size_t max = room > WF_RING_SLOTS / 2 ? room - WF_RING_SLOTS / 2 + 1 : 1;
    return count < max ? count : max;
}

struct wf_task *wf_worker_fetch(struct wf_worker *worker)
{
    size_t length = wf_inject_len(&worker->sched->inject);
    return length == 0 ? NULL : fetch(worker, share_of(worker, length));
}

void wf_worker_fetch_ahead(struct wf_worker *worker)
{
    struct wf_inject *inject = &worker->sched->inject;
    struct wf_qlist list = { 0 };
    size_t length = wf_inject_len(inject);
    if (length == 0 || wf_ring_room(&worker->ring) == 0) {
        return;
    }
    wf_inject_pop(inject, share_of(worker, length), &list);
    if (list.count > 0) {
        note_fetched(worker, list.count);
        wf_ring_push_list(&worker->ring, &list);
        worker->unannounced = worker->shares;
    }
}

/* Announces tasks that are left in the ring after the next task has been chosen. */
static void announce_rest(struct wf_worker *worker)
{
    worker->unannounced = false;
    if (wf_ring_len(&worker->ring) > 0) {
        announce(worker);
    }
}

/* Runs every few polls and serves the sources that otherwise come last, so that tasks which
 * yield and wake each other do not starve them. */
static struct wf_task *take_last(struct wf_worker *worker)
{
    worker->polls_to_inject = wf_interval_polls(&worker->interval);
    worker->job_turn = !worker->job_turn;
    /* relaxed: a heuristic. Fibers that yield run their forks themselves. */
    bool may_fork = worker->job_turn && wf_load_relaxed(&worker->yielding) == 0;
    struct wf_task *job = may_fork ? wf_job_take_own(worker) : NULL;
    return job != NULL ? job : fetch_one(worker);
}

struct wf_task *wf_worker_next(struct wf_worker *worker)
{
    struct wf_task *task = NULL;
    if (wf_unlikely(--worker->polls_to_inject == 0)) {
        task = take_last(worker);
    }
    if (task == NULL) {
        task = take_lifo(worker);
    }
    if (task == NULL) {
        /* From here on, a task from a FIFO queue runs. */
        worker->lifo_streak = 0;
        task = take_fifo(worker);
    }
    if (task == NULL) {
        task = wf_worker_fetch(worker);
    }
    if (wf_unlikely(worker->unannounced)) {
        announce_rest(worker);
    }
    return task;
}

struct wf_task *wf_worker_next_direct(struct wf_worker *worker)
{
    worker->counted = worker->polls_to_clock > 1;
    if (!worker->counted) {
        return NULL;
    }
    worker->polls_to_clock--;
    return wf_worker_next(worker);
}

/* Returns whether this task is in the LIFO slot and may run next. */
static bool is_next_lifo(const struct wf_worker *worker, const struct wf_task *task)
{
    /* relaxed: only a hint; an exchange takes the task. */
    return wf_load_relaxed(&worker->lifo) == task &&
           (worker->lifo_streak < WF_WORKER_LIFO_MAX || wf_ring_len(&worker->ring) == 0);
}

bool wf_worker_take_direct(struct wf_worker *worker, struct wf_task *task)
{
    if (worker->polls_to_clock <= 1 || worker->polls_to_inject <= 1 || has_pinned(worker)) {
        return false;
    }
    if (is_next_lifo(worker, task)) {
        /* relaxed: this thread filled the slot; a thief may have been faster. */
        if (wf_xchg_relaxed(&worker->lifo, (struct wf_task *)NULL) == NULL) {
            return false;
        }
        worker->lifo_streak++;
        wf_counter_add(&worker->counters.lifo_hits, 1);
    } else {
        /* relaxed: only the owner fills the slot. */
        if (wf_load_relaxed(&worker->lifo) != NULL ||
            wf_ring_pop_only(&worker->ring, &task->node) == NULL) {
            return false;
        }
        worker->lifo_streak = 0;
    }
    worker->polls_to_clock--;
    worker->polls_to_inject--;
    return true;
}

void wf_worker_spend_bytes(size_t bytes)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        size_t cost = bytes / WF_WORKER_BYTES;
        worker->budget = cost < worker->budget ? worker->budget - (uint32_t)cost : 0;
    }
}

void wf_worker_settle(struct wf_worker *worker, struct wf_task *task, int result)
{
    if (wf_unlikely(worker->moved != NULL)) {
        void (*moved)(void *arg) = worker->moved;
        worker->moved = NULL;
        moved(worker->moved_arg);
    } else if (result == WEFT_PENDING) {
        if (wf_state_pend(&task->state) == WF_STEP_SCHEDULE) {
            requeue(worker, task);
        }
    } else if (result == WEFT_YIELDED) {
        requeue(worker, task);
    } else {
        wf_counter_add(&worker->counters.completed, 1);
        wf_task_complete(task, result);
        if (wf_unlikely(worker->closing)) {
            wf_drain_task_done(worker);
        }
    }
}

void wf_worker_settle_left(struct wf_worker *worker)
{
    struct wf_task *task = worker->left;
    worker->left = NULL;
    wf_worker_settle(worker, task, worker->left_result);
    if (worker->unannounced) {
        announce_rest(worker);
    }
}

/* Finishes a poll after control has returned to the loop. Fibers switch directly to each other,
 * so the result may belong to another task than the one that was polled, or to none if that
 * fiber has ended. */
static inline void end_poll(struct wf_worker *worker, int result)
{
    struct wf_task *task = worker->current;
    worker->current = NULL;
    if (task != NULL) {
        wf_worker_settle(worker, task, result);
    }
}

void wf_worker_run(struct wf_worker *worker, struct wf_task *task)
{
    wf_worker_begin(worker, task);
    int result = task->ops->poll(task);
    if (wf_unlikely(worker->shell != NULL)) {
        wf_shell_end(worker);
    }
    end_poll(worker, result);
}

/* Does the maintenance between ticks. */
static struct wf_task *maintain(struct wf_worker *worker, int64_t now)
{
    wf_interval_sample(&worker->interval, (uint64_t)(now - worker->tick_start), worker->tick_polls);
    worker->tick_polls = 0;
    worker->tick_start = now;
    wf_counter_set(&worker->counters.average_poll_ns, (uint64_t)worker->interval.average_ns);
    wf_counter_set(&worker->counters.inject_interval, wf_interval_polls(&worker->interval));
    wf_worker_poll_driver(worker);
    wf_stack_share(&worker->sched->stacks, &worker->stacks);
    wf_worker_stand_in(worker);
    if (!worker->closing && wf_drain_phase(&worker->sched->drain) != WF_PHASE_OPEN) {
        wf_drain_acknowledge(worker);
    }
    return wf_worker_fetch(worker);
}

static uint32_t clock_countdown(const struct wf_worker *worker)
{
    if (worker->interval.had_outlier) {
        return 1; /* Polls may have become long: measure the next one. */
    }
    double polls = CLOCK_EVERY_NS / worker->interval.average_ns;
    uint32_t left = worker->sched->options.tick_polls - worker->tick_polls;
    uint32_t max = left < CLOCK_EVERY_POLLS ? left : CLOCK_EVERY_POLLS;
    uint32_t count = polls < max ? (uint32_t)polls : max;
    return count == 0 ? 1 : count;
}

/* Counts a poll. Returns a task that maintenance has fetched, to run next. */
static struct wf_task *count_poll(struct wf_worker *worker)
{
    if (wf_likely(--worker->polls_to_clock != 0)) {
        return NULL;
    }
    worker->tick_polls += worker->clock_period;
    const struct wf_sched_options *options = &worker->sched->options;
    wf_fork_check(worker->sched->fork_number, "a body that has forked has returned to its worker");
    int64_t now = wf_clock_real();
    struct wf_task *task = NULL;
    wf_worker_fire_timers(worker, wf_clock_at(now));
    if (worker->tick_polls >= options->tick_polls ||
        now - worker->tick_start >= (int64_t)options->tick_ns) {
        task = maintain(worker, now);
        if (worker->unannounced) {
            announce_rest(worker);
        }
    }
    worker->clock_period = clock_countdown(worker);
    worker->polls_to_clock = worker->clock_period;
    return task;
}

/* Ends the tick because the queues are empty, so that the search is not counted as time spent
 * in tasks. */
static void end_tick(struct wf_worker *worker)
{
    worker->tick_polls += worker->clock_period - worker->polls_to_clock;
    worker->polls_to_clock = worker->clock_period;
    if (worker->tick_polls > 0) {
        int64_t now = wf_clock_real();
        wf_interval_sample(&worker->interval, (uint64_t)(now - worker->tick_start),
                           worker->tick_polls);
        worker->tick_polls = 0;
    }
}

/* Returns the task to run after a poll, if one has been chosen already. */
static struct wf_task *take_chosen(struct wf_worker *worker)
{
    if (!worker->counted) {
        return count_poll(worker);
    }
    struct wf_task *task = worker->next;
    worker->counted = false;
    worker->next = NULL;
    return task;
}

/* Runs the loop. Starts with the given task, which may be NULL. */
static void run_until_stopped(struct wf_worker *worker, struct wf_task *task)
{
    while (wf_drain_phase(&worker->sched->drain) != WF_PHASE_STOPPED) {
        if (task == NULL) {
            task = wf_worker_next(worker);
        }
        if (task == NULL) {
            end_tick(worker);
            task = wf_worker_search(worker);
            if (worker->unannounced && !worker->searching) {
                announce_rest(worker); /* No searcher looks for it. */
            }
        }
        if (task != NULL) {
            if (wf_unlikely(worker->searching)) {
                wf_worker_stop_search(worker);
            }
            wf_worker_run(worker, task);
            task = take_chosen(worker);
        }
    }
}

void wf_worker_go_on(struct wf_worker *worker)
{
    end_poll(worker, worker->left_result);
    run_until_stopped(worker, take_chosen(worker));
}

void wf_worker_in_child(void)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        worker->polls_to_clock = 1; /* The next poll reads the clock and aborts there. */
        wf_thread_unblock_signals(&worker->sched->signals);
    }
}

void *wf_worker_main(void *arg)
{
    struct wf_worker *worker = arg;
    const struct wf_sched_options *options = &worker->sched->options;
    char name[16];
    (void)snprintf(name, sizeof name, "w%u", worker->index);
    wf_thread_set_name(options->thread_name, name);
    wf_thread_must_return(true);
    WF_TLS_STORE(wf_tls_worker, worker);
    wf_loops_init(worker);
    worker->fp_control = wf_fp_control_read();
    worker->seat = wf_thread_seat();
    struct wf_signal_stack signal_stack;
    wf_signal_stack_init(&signal_stack);
    if (options->on_start != NULL) {
        options->on_start(options->hook_ctx, worker->index);
    }
    worker->tick_start = wf_clock_real();
    run_until_stopped(worker, NULL);
    wf_loops_fini(worker);
    wf_strand_flush(&worker->strands);
    wf_worker_enter(worker, WEFT_WORKER_STOPPED);
    if (options->on_stop != NULL) {
        options->on_stop(options->hook_ctx, worker->index);
    }
    wf_signal_stack_fini(&signal_stack);
    wf_thread_must_return(false);
    return NULL;
}
