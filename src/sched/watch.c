/* SPDX-License-Identifier: MIT */
/*
 * watch.c - monitor thread: looks after workers that are stalled in a long poll.
 *
 * A task in a LIFO slot is not announced, because its worker takes it as soon as the current
 * poll ends. If that poll takes long, the monitor must notice. It scans all workers every 500
 * us. If a worker is still in the same poll as before and has a task in its slot, the monitor
 * wakes a parked worker to steal the task.
 *
 * While no worker is parked, the monitor can only ask the busy ones to yield, and takes a CPU
 * from one of them to do so. Then it scans a third as often. (On a virtual machine, each scan
 * costs a computation on all CPUs 15 us.) If a worker that has tasks does not answer, or has no
 * CPU, the monitor asks all workers, and they take over the tasks that wait there. If there are
 * events that only workers can fetch, it asks all computations that fork to poll for them.
 *
 * While, in addition, all workers go from poll to poll, the monitor is calm and scans every 12
 * ms. A worker that parks or begins to fork ends the calm phase. While all workers fork and
 * there is I/O, the monitor scans at the usual rate, because tasks that wait for an event
 * depend on it.
 *
 * An idle runtime makes no system call, so the monitor sleeps without a timeout once all
 * workers have been parked for 10 ms. It does not do so immediately, since waking it costs the
 * waker a system call.
 *
 *   Monitor                            Worker that wakes
 *   V1  asleep = 1                     X1  (its count went up: unparked, or external threads)
 *   V2  full fence [V1]                X2  full fence [V1]
 *   V3  all workers parked?            X3  asleep? Remember it, and wake the monitor
 *       No external threads?               before the first fill of the slot;
 *   V4  sleep                              an external thread wakes it immediately
 *
 * One fence comes first. If V2 does, X3 sees that the monitor sleeps. If X2 does, V3 sees the
 * worker unparked and does not sleep. So filling the slot costs only a check of a flag in its
 * own worker.
 *
 * Edges.
 * [V1] the fences of V2 and X2, as above.
 */
#include "sched/watch.h"

#include "base/clock.h"
#include "sched/driver.h"
#include "sched/job.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    LOOK_EVERY_NS = 500 * 1000,
    LOOK_EVERY_BUSY_NS = 1500 * 1000,  /* while no worker is parked */
    LOOK_EVERY_CALM_NS = 12000 * 1000, /* and none is in a long poll */
    CALM_LOOKS = 8,                    /* scans without a long poll before that */
    SOON_LOOKS = 20,                   /* 10 ms */
    QUIET_MAX = 3,                     /* a single worker may be seen parked between its polls */
    QUIET_LOOKS = 20,                  /* 10 ms */
};

/* Results of the last scans. */
struct looks {
    unsigned quiet; /* scans in a row with all workers parked */
    unsigned calm;  /* scans in a row without a worker in a long poll */
    unsigned soon;  /* scans still to come at the short interval: events came while all fork */
};

bool wf_watch_is_asleep(const struct wf_watch *watch)
{
    /* fence [V1], X2: the count went up before this. */
    wf_fence_full();
    /* relaxed: behind the fence. */
    return wf_load_relaxed(&watch->asleep) != 0;
}

void wf_watch_wake(struct wf_watch *watch)
{
    (void)wf_park_wake(&watch->park);
}

static bool is_stopped(const struct wf_watch *watch)
{
    /* relaxed: the monitor reads no data because of it; a wake-up follows it. */
    return wf_load_relaxed(&watch->stopped) != 0;
}

/* Returns whether tasks wait that this worker would run if its poll ended. */
static bool has_tasks(const struct wf_worker *worker)
{
    return wf_ring_len(&worker->ring) > 0 || wf_worker_pinned_len(worker) > 0 ||
           wf_inject_len(&worker->sched->inject) > 0;
}

/* Returns whether there may be events, for any worker, that no worker handles. */
static bool has_left_driver(const struct wf_sched *sched)
{
    struct wf_driver *driver = sched->workers[0].driver;
    return driver != NULL && driver->ops->is_left(driver);
}

static bool all_are_busy(const struct wf_sched *sched)
{
    return wf_idle_unparked(&sched->idle) == sched->options.workers;
}

/* Asks all workers, so that they take over the tasks of one that does not answer. */
static void ask_all_to_yield(struct wf_sched *sched)
{
    for (unsigned i = 0; i < sched->options.workers; i++) {
        (void)wf_job_ask_to_yield(&sched->workers[i]);
    }
}

/* Returns whether a worker does not get round to a task in its slot, public forks, timers or
 * events. */
static bool sees_stall(struct wf_sched *sched, struct looks *looks)
{
    bool waiting = false;
    bool overdue = false;
    bool silent = false;
    bool are_left = has_left_driver(sched);
    bool has_events = are_left; /* until they are handled */
    bool has_rest = false;      /* events that workers must fetch themselves */
    bool all_busy = all_are_busy(sched);
    int64_t now = wf_clock_real();
    for (unsigned i = 0; i < sched->options.workers; i++) {
        struct wf_worker *worker = &sched->workers[i];
        /* relaxed: a hint. A worker that forks yields when asked, so its polls are short. */
        bool forks = all_busy && wf_load_relaxed(&worker->strand) != NULL;
        if (wf_worker_poll_age(worker, now) < WF_WORKER_STALL_NS && !forks) {
            continue;
        }
        looks->calm = 0;
        /* relaxed: hints. The worker that is woken takes the task by exchange, or the timer
         * under a lock. */
        bool has_lifo = wf_load_relaxed(&worker->lifo) != NULL;
        /* relaxed: a hint, as above. */
        bool has_timer = wf_load_relaxed(&worker->next_deadline) <= wf_clock_at(now);
        looks->soon = are_left && forks ? SOON_LOOKS : looks->soon;
        if (has_events && all_busy) {
            /* No worker will come soon. Woken tasks go to one that forks. */
            has_rest = worker->driver->ops->help(worker->driver);
            has_events = false;
        }
        if (has_lifo || has_timer || has_tasks(worker)) {
            silent = silent || wf_job_has_not_answered(worker);
            (void)wf_job_ask_to_yield(worker);
        } else if (has_rest) {
            (void)wf_job_ask_to_yield(worker);
        }
        waiting = waiting || (sched->options.stealing && (has_lifo || wf_job_has_public(worker)));
        overdue = overdue || has_timer || has_events;
    }
    if (silent) {
        ask_all_to_yield(sched);
    }
    if (overdue) {
        /* relaxed: a hint. A worker that misses it sees it at the next scan. */
        wf_store_relaxed(&sched->watch.overdue, 1u);
    }
    return waiting || overdue;
}

/* Returns whether all workers are parked and no external thread forks. */
static bool is_idle(const struct wf_sched *sched)
{
    return wf_idle_unparked(&sched->idle) == 0 && !wf_guests_are_there(&sched->guests);
}

static void sleep_while_idle(struct wf_sched *sched)
{
    struct wf_watch *watch = &sched->watch;
    /* relaxed: before the fence, V1. */
    wf_store_relaxed(&watch->asleep, 1u);
    /* fence [V1], V2: a worker that wakes from now on sees the flag. */
    wf_fence_full();
    if (is_idle(sched) && !is_stopped(watch)) {
        (void)wf_park_sleep(&watch->park, WF_NEVER);
    }
    /* relaxed: a worker that still sees the old value wakes the monitor needlessly. */
    wf_store_relaxed(&watch->asleep, 0u);
}

/* Stacks that fibers no longer need are freed only while no worker needs the CPU. */
static bool has_unparked(void *arg)
{
    struct wf_sched *sched = arg;
    return wf_idle_unparked(&sched->idle) > 0 || is_stopped(&sched->watch);
}

/* Returns whether a worker has ended the calm phase. */
static bool was_hurried(const struct wf_watch *watch, const struct looks *looks)
{
    /* relaxed: a hint, see wf_watch_hurry(). */
    return looks->calm >= CALM_LOOKS && wf_load_relaxed(&watch->calm) == 0;
}

static bool may_be_calm(const struct wf_sched *sched, const struct looks *looks)
{
    bool are_busy =
        all_are_busy(sched) || (sched->options.workers == 1 && looks->quiet <= QUIET_MAX);
    return are_busy && !was_hurried(&sched->watch, looks);
}

/* Sleeps until the next scan. */
static void pause_looking(struct wf_sched *sched, const struct looks *looks)
{
    struct wf_watch *watch = &sched->watch;
    bool is_calm = looks->calm >= CALM_LOOKS;
    bool may_wait = all_are_busy(sched) && looks->soon == 0;
    int64_t pause = is_calm ? LOOK_EVERY_CALM_NS : may_wait ? LOOK_EVERY_BUSY_NS : LOOK_EVERY_NS;
    /* relaxed: a hint, see wf_watch_hurry(). */
    wf_store_relaxed(&watch->calm, is_calm ? 1u : 0u);
    (void)wf_park_sleep_real(&watch->park, wf_clock_real() + pause);
}

static void *watch_main(void *arg)
{
    struct wf_sched *sched = arg;
    struct wf_watch *watch = &sched->watch;
    struct looks looks = { 0 };
    wf_thread_set_name(sched->options.thread_name, "watch");
    while (!is_stopped(watch)) {
        if (looks.quiet >= QUIET_LOOKS) {
            wf_stacks_trim(&sched->stacks, true, has_unparked, sched);
            sleep_while_idle(sched);
            looks.quiet = 0;
        } else {
            pause_looking(sched, &looks);
        }
        looks.quiet = is_idle(sched) ? looks.quiet + 1 : 0;
        looks.calm = may_be_calm(sched, &looks) ? looks.calm + 1 : 0;
        looks.soon -= looks.soon > 0;
        if (sees_stall(sched, &looks) || wf_guests_have_public(&sched->guests)) {
            wf_sched_notify(sched);
        }
    }
    return NULL;
}

int wf_watch_start(struct wf_sched *sched)
{
    struct wf_watch *watch = &sched->watch;
    int err = wf_thread_start(&watch->thread, watch_main, sched);
    watch->started = err == 0;
    return err;
}

void wf_watch_stop(struct wf_sched *sched)
{
    struct wf_watch *watch = &sched->watch;
    if (!watch->started) {
        return;
    }
    /* relaxed: the wake-up below makes it visible, and is remembered if the monitor is awake. */
    wf_store_relaxed(&watch->stopped, 1u);
    (void)wf_park_wake(&watch->park);
    (void)pthread_join(watch->thread, NULL);
    watch->started = false;
}
