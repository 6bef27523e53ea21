/* SPDX-License-Identifier: MIT */
/*
 * search.c - work stealing and parking: what a worker does when its own queues are empty. How
 * many workers search and which one is woken is decided in idle.c.
 *
 * A search visits the rings of all workers, starting at a random one, then their forks and
 * those of external threads (job.c), then the LIFO slots of workers that are stalled in a long
 * poll, then the inject queue. It repeats this for a short time, because parking and waking a
 * thread costs more than a few rounds. Of the steals, the LIFO slot comes last, and only from a
 * worker that has been in one poll for 50 us: stealing it earlier would take the task away from
 * the worker that has its data in the cache and was about to run it.
 *
 * Edges: worker.c's [F1], idle.c's [I1].
 */
#include <sched.h>

#include "base/clock.h"
#include "sched/driver.h"
#include "sched/job.h"
#include "sched/sched.h"
#include "sched/worker.h"

enum {
    PAUSES_MAX = 64,       /* between two rounds */
    YIELD_AFTER_NS = 5000, /* then each round yields the CPU */
};

static struct wf_task *steal_from(struct wf_worker *worker, struct wf_worker *victim)
{
    uint32_t taken = 0;
    struct wf_qnode *node = wf_ring_steal(&victim->ring, &worker->ring, &taken);
    if (node == NULL) {
        return NULL;
    }
    wf_counter_add(&worker->counters.steals, 1);
    wf_counter_add(&worker->counters.stolen_tasks, taken);
    if (taken > 1) {
        worker->unannounced = worker->shares;
    }
    return wf_task_of(node);
}

static struct wf_task *steal_lifo_from(struct wf_worker *worker, struct wf_worker *victim)
{
    /* relaxed: only a hint; the exchange below takes the task. */
    if (wf_load_relaxed(&victim->lifo) == NULL ||
        wf_worker_poll_age(victim, wf_clock_real()) < WF_WORKER_STALL_NS) {
        return NULL;
    }
    /* acquire [F1]: the thief sees the task as its waker left it. */
    struct wf_task *task = wf_xchg_acquire(&victim->lifo, (struct wf_task *)NULL);
    if (task != NULL) {
        wf_counter_add(&worker->counters.lifo_stolen, 1);
    }
    return task;
}

typedef struct wf_task *(*steal_fn)(struct wf_worker *worker, struct wf_worker *victim);

/* Calls steal for every other worker once, starting at a random one, until one returns a task. */
static struct wf_task *steal_round(struct wf_worker *worker, steal_fn steal)
{
    struct wf_sched *sched = worker->sched;
    uint32_t count = sched->options.workers;
    uint32_t start = wf_rng_below(&worker->rng, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = start + i < count ? start + i : start + i - count;
        if (at == worker->index) {
            continue;
        }
        struct wf_task *task = steal(worker, &sched->workers[at]);
        if (task != NULL) {
            return task;
        }
    }
    return NULL;
}

/* Moves all tasks of a worker that is stalled in one poll, or has no CPU, into this worker's
 * queues. */
static struct wf_task *take_over(struct wf_worker *worker, struct wf_worker *victim)
{
    if (wf_worker_poll_age(victim, wf_clock_real()) < WF_WORKER_STALL_NS) {
        return NULL;
    }
    struct wf_task *task = steal_lifo_from(worker, victim);
    while (task != NULL || (task = steal_from(worker, victim)) != NULL) {
        wf_worker_push(worker, task);
        task = NULL;
        if (wf_ring_room(&worker->ring) == 0) {
            break;
        }
    }
    return NULL;
}

void wf_worker_take_over(struct wf_worker *worker)
{
    if (worker->sched->options.stealing) {
        (void)steal_round(worker, take_over);
    }
}

/* Fires the timers of a stalled worker. The tasks that they wake go into this worker's queues. */
static struct wf_task *stand_in_for(struct wf_worker *worker, struct wf_worker *victim)
{
    (void)worker;
    if (wf_worker_poll_age(victim, wf_clock_real()) >= WF_WORKER_STALL_NS) {
        wf_worker_fire_timers(victim, wf_clock_now());
    }
    return NULL;
}

/* Does the same for I/O events. One driver sees the events of all workers. */
static void help_driver(struct wf_driver *driver)
{
    if (driver != NULL && driver->ops->is_left(driver)) {
        (void)driver->ops->help(driver);
    }
}

void wf_worker_stand_in(struct wf_worker *worker)
{
    struct wf_watch *watch = &worker->sched->watch;
    /* relaxed: a hint. A worker that misses it sees the monitor's next report. */
    if (wf_unlikely(wf_load_relaxed(&watch->overdue) != 0)) {
        /* relaxed: a hint, as above. */
        wf_store_relaxed(&watch->overdue, 0u);
        if (worker->searching) {
            wf_worker_stop_search(worker);
        }
        (void)steal_round(worker, stand_in_for);
        help_driver(worker->driver);
    }
}

static struct wf_task *look_around(struct wf_worker *worker)
{
    struct wf_task *task = NULL;
    if (worker->sched->options.stealing) {
        task = steal_round(worker, steal_from);
        if (task == NULL) {
            task = steal_round(worker, wf_job_steal);
        }
        if (task == NULL) {
            task = wf_job_steal_from_guests(worker);
        }
        if (task == NULL) {
            task = steal_round(worker, steal_lifo_from);
        }
    }
    if (task == NULL) {
        wf_worker_stand_in(worker);
        task = wf_worker_fetch(worker);
    }
    return task;
}

/* Timers that fired during the search may have filled the worker's own queues. */
static bool has_own_task(const struct wf_worker *worker)
{
    /* relaxed: only the owner fills the slot. */
    return wf_load_relaxed(&worker->lifo) != NULL || wf_ring_len(&worker->ring) > 0 ||
           worker->pinned.first != NULL || !wf_mpsc_is_empty(&worker->inbox) ||
           wf_away_has_jobs(&worker->away);
}

/* Returns whether something is pending that only this worker can do. */
static bool has_own_duty(const struct wf_worker *worker)
{
    enum wf_phase phase = wf_drain_phase(&worker->sched->drain);
    return has_own_task(worker) || phase == WF_PHASE_STOPPED ||
           (phase == WF_PHASE_CLOSING && !worker->closing);
}

/* Limits the events to the space in the ring. The tasks of further events would overflow to the
 * end of the inject queue, behind tasks whose events arrive later. */
void wf_worker_poll_driver(struct wf_worker *worker)
{
    if (worker->driver != NULL) {
        worker->driver->ops->poll(worker->driver, wf_ring_room(&worker->ring));
    }
}

/* Searches for up to search_ns. */
static struct wf_task *search_rounds(struct wf_worker *worker)
{
    int64_t start = wf_clock_real();
    int64_t limit = (int64_t)worker->sched->options.search_ns;
    unsigned pauses = 1;
    for (;;) {
        struct wf_task *task = look_around(worker);
        if (task != NULL || has_own_duty(worker)) {
            return task;
        }
        int64_t elapsed = wf_clock_real() - start;
        if (elapsed >= limit) {
            return NULL; /* The worker then parks in the driver, if it has one. */
        }
        wf_worker_poll_driver(worker);
        if (elapsed >= YIELD_AFTER_NS) {
            (void)sched_yield();
            continue;
        }
        for (unsigned i = 0; i < pauses; i++) {
            wf_cpu_relax();
        }
        pauses = pauses < PAUSES_MAX ? 2 * pauses : PAUSES_MAX;
    }
}

void wf_worker_stop_search(struct wf_worker *worker)
{
    struct wf_sched *sched = worker->sched;
    worker->searching = false;
    worker->woken_to_work = false;
    wf_worker_enter(worker, WEFT_WORKER_RUNNING);
    /* The last searcher looks once more, for submitters that relied on it and woke no worker. */
    if (wf_idle_found(&sched->idle) && wf_sched_has_work(sched)) {
        wf_sched_notify(sched);
    }
}

/* Returns when the worker's next timer is due. */
static int64_t next_deadline(const struct wf_worker *worker)
{
    /* relaxed: behind the fence [I1] of wf_idle_park(). A thread that sets an earlier deadline
     * from now on wakes this worker (time/timer.c). */
    return wf_load_relaxed(&worker->next_deadline);
}

/* Fires the worker's own timers. Returns false if none is due. A timer callback may take long,
 * so the worker stops being a searcher first: others would rely on it meanwhile. */
static bool fire_own(struct wf_worker *worker)
{
    int64_t next = next_deadline(worker);
    int64_t now = next == WF_NEVER ? 0 : wf_clock_now();
    if (next == WF_NEVER || now < next) {
        return false;
    }
    if (worker->searching) {
        wf_worker_stop_search(worker);
    }
    wf_worker_fire_timers(worker, now);
    return true;
}

/* Parks once. Returns false if the park timeout ended it. */
static bool sleep_once(struct wf_worker *worker)
{
    const struct wf_sched_options *options = &worker->sched->options;
    int64_t deadline = next_deadline(worker);
    if (options->park_timeout_ns != 0) {
        int64_t timeout = wf_clock_now() + (int64_t)options->park_timeout_ns;
        deadline = timeout < deadline ? timeout : deadline;
    }
    if (options->on_park != NULL) {
        options->on_park(options->hook_ctx, worker->index);
    }
    bool woken = worker->driver != NULL ? worker->driver->ops->park(worker->driver, deadline)
                                        : wf_park_sleep(&worker->park, deadline);
    if (options->on_unpark != NULL) {
        options->on_unpark(options->hook_ctx, worker->index);
    }
    return woken || deadline == next_deadline(worker);
}

static uint64_t polls_of_all(const struct wf_sched *sched)
{
    uint64_t polls = 0;
    for (unsigned i = 0; i < sched->options.workers; i++) {
        polls += wf_counter_read(&sched->workers[i].counters.polls);
    }
    return polls;
}

/*
 * Decides what a park timeout means. If work is queued and no worker searches, a wake-up may
 * have been lost. But a submitter may also have pushed and not yet notified, or the owner of
 * the queue may be about to take the task. So the worker parks once more, and the event is
 * counted only if the next timeout finds the same and no worker has polled any task in between.
 * Returns true to park once more.
 */
static bool judge_timeout(struct wf_worker *worker, bool woken)
{
    struct wf_sched *sched = worker->sched;
    bool forgotten = !woken && wf_sched_has_work(sched) && wf_idle_searching(&sched->idle) == 0;
    uint64_t polls = forgotten ? polls_of_all(sched) : 0;
    if (forgotten && worker->suspicious && polls == worker->suspect_polls) {
        wf_counter_add(&worker->counters.unannounced_work, 1);
    }
    bool again = forgotten && !worker->suspicious;
    worker->suspicious = again;
    worker->suspect_polls = polls;
    return again;
}

/* Parks, unless there is work to steal or something that only this worker can do. Returns after
 * a wake-up, an event, a due timer or a park timeout. */
static void park(struct wf_worker *worker)
{
    struct wf_sched *sched = worker->sched;
    if (worker->woken_to_work) {
        worker->woken_to_work = false;
        wf_counter_add(&worker->counters.idle_wakes, 1);
    }
    wf_worker_enter(worker, WEFT_WORKER_PARKED);
    wf_idle_park(&sched->idle, worker->index, worker->searching);
    worker->searching = false;

    /* Behind the fence [I1] of wf_idle_park(): this sees work that was published before the
     * fence, and a submitter that publishes later sees this worker parked. */
    bool has_work = wf_sched_has_work(sched);
    if (!has_work && !has_own_duty(worker)) {
        if (worker->shares) {
            wf_job_ask_all(worker);
            wf_watch_hurry(&sched->watch);
        }
        wf_counter_add(&worker->counters.parks, 1);
        /* A driver may wake tasks while the worker is parked in it. One needless wake-up of the
         * monitor is better than a missing one. */
        worker->watch_asleep = true;
        while (judge_timeout(worker, sleep_once(worker))) {
        }
    }

    if (wf_idle_unpark(&sched->idle, worker->index)) {
        worker->searching = true;
        worker->woken_to_work = true;
        wf_counter_add(&worker->counters.wakes, 1);
    } else if (has_work) {
        wf_idle_search(&sched->idle);
        worker->searching = true;
    }
    /* Not SEARCHING yet: a woken worker usually finds its task immediately. */
    wf_worker_enter(worker, WEFT_WORKER_RUNNING);
    worker->watch_asleep = wf_watch_is_asleep(&sched->watch);
    if (next_deadline(worker) != WF_NEVER) {
        wf_worker_be_watched(worker); /* Its timers must not wait for a long poll. */
    }
    wf_worker_poll_driver(worker); /* The events that ended the park, and later ones. */
    (void)fire_own(worker);
}

struct wf_task *wf_worker_search(struct wf_worker *worker)
{
    struct wf_sched *sched = worker->sched;
    if (!worker->closing && wf_drain_phase(&sched->drain) != WF_PHASE_OPEN) {
        wf_drain_acknowledge(worker);
        return NULL;
    }
    if (fire_own(worker)) {
        /* Callbacks that restart their timers with past deadlines keep the worker here. */
        wf_worker_poll_driver(worker);
        return NULL; /* Tasks that the timers woke run first, then whatever else is due. */
    }
    struct wf_task *job = wf_job_take_own(worker);
    if (job != NULL) {
        return job;
    }
    if (!worker->searching && wf_idle_try_search(&sched->idle)) {
        worker->searching = true;
    }
    if (worker->searching) {
        wf_worker_enter(worker, WEFT_WORKER_SEARCHING);
        struct wf_task *task = search_rounds(worker);
        if (task != NULL || has_own_duty(worker)) {
            return task;
        }
    }
    wf_stack_flush(&sched->stacks, &worker->stacks);
    wf_strand_flush(&worker->strands);
    park(worker);
    return NULL;
}
