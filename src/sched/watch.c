/* SPDX-License-Identifier: MIT */
/*
 * watch.c - the thread that looks after workers that are busy for long.
 *
 * A task in a LIFO slot is announced to nobody, because its worker takes it as
 * soon as the current poll ends. If that poll takes long, somebody must notice:
 * the watch looks at all workers every 500 us, and for one that is still in the
 * poll it was in before and has a task in its slot, wakes a sleeping worker to
 * fetch it. While there is none that sleeps it can only ask the busy ones to yield, and takes
 * the processor from one of them to do so: then it looks a third as often. (Each look costs a
 * computation on all processors of a virtual machine 15 us.) If one that has tasks does not
 * answer, or has no processor, all are asked, and take over what waits there; and if there are
 * events that only workers can fetch, all who fork are asked to look for them. While all of them
 * go from poll to poll as well it is calm, and looks every 12 ms; a worker that goes to sleep,
 * or begins to fork, ends that. While all fork and there is I/O it looks as often as ever, for
 * who waits for an event waits for this.
 *
 * An idle runtime makes no system call, so the watch sleeps without a timeout
 * once all workers have been parked for 10 ms; not at once, since waking it costs
 * a system call to whoever does it.
 *
 *   Watch                              Worker that wakes
 *   V1  asleep = 1                     X1  (its count went up: unparked, or guests)
 *   V2  full fence [V1]                X2  full fence [V1]
 *   V3  all workers parked?            X3  asleep? Remember, and wake the watch
 *       No guests?                         before the first fill of the slot;
 *   V4  sleep                              a guest wakes it at once
 *
 * One fence comes first. If V2 does, X3 sees that the watch sleeps. If X2 does,
 * V3 sees the worker unparked and does not sleep. So the fill itself pays for
 * nothing but a look at a flag of its own worker.
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
    LOOK_EVERY_BUSY_NS = 1500 * 1000,  /* while no worker sleeps */
    LOOK_EVERY_CALM_NS = 12000 * 1000, /* and none is long in one poll */
    CALM_LOOKS = 8,                    /* so many showed none */
    SOON_LOOKS = 20,                   /* 10 ms */
    QUIET_MAX = 3,                     /* one worker may be found asleep between its polls */
    QUIET_LOOKS = 20,                  /* 10 ms */
};

/* What the last looks have shown. */
struct looks {
    unsigned quiet; /* so many in a row: all workers asleep */
    unsigned calm;  /* so many in a row: none long in one poll */
    unsigned soon;  /* so many to come are soon: events came while all fork */
};

bool wf_watch_is_asleep(const struct wf_watch *watch)
{
    /* fence [V1], X2: the count went up before. */
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
    /* relaxed: the watch reads nothing because of it; a wake comes with it. */
    return wf_load_relaxed(&watch->stopped) != 0;
}

/* Tasks that this worker would run if its poll ended. */
static bool has_tasks(const struct wf_worker *worker)
{
    return wf_ring_len(&worker->ring) > 0 || wf_worker_pinned_len(worker) > 0 ||
           wf_inject_len(&worker->sched->inject) > 0;
}

/* May there be events, for any worker, and nobody handles them? */
static bool has_left_driver(const struct wf_sched *sched)
{
    struct wf_driver *driver = sched->workers[0].driver;
    return driver != NULL && driver->ops->is_left(driver);
}

static bool all_are_busy(const struct wf_sched *sched)
{
    return wf_idle_unparked(&sched->idle) == sched->options.workers;
}

/* So that they take over what waits for one that does not answer. */
static void ask_all_to_yield(struct wf_sched *sched)
{
    for (unsigned i = 0; i < sched->options.workers; i++) {
        (void)wf_job_ask_to_yield(&sched->workers[i]);
    }
}

/* Has somebody a task in its slot, or timers or events, that it does not get round to? */
static bool sees_stall(struct wf_sched *sched, struct looks *looks)
{
    bool waiting = false;
    bool overdue = false;
    bool silent = false;
    bool are_left = has_left_driver(sched);
    bool has_events = are_left; /* until they are handled */
    bool has_rest = false;      /* which workers must fetch themselves */
    bool all_busy = all_are_busy(sched);
    int64_t now = wf_clock_real();
    for (unsigned i = 0; i < sched->options.workers; i++) {
        struct wf_worker *worker = &sched->workers[i];
        /* relaxed: a look. One that forks yields when asked, so its polls are short. */
        bool forks = all_busy && wf_load_relaxed(&worker->strand) != NULL;
        if (wf_worker_poll_age(worker, now) < WF_WORKER_STALL_NS && !forks) {
            continue;
        }
        looks->calm = 0;
        /* relaxed: looks; whoever is woken for it takes by exchange, or under a
         * lock. */
        bool has_lifo = wf_load_relaxed(&worker->lifo) != NULL;
        /* relaxed: a look, as above. */
        bool has_timer = wf_load_relaxed(&worker->next_deadline) <= wf_clock_at(now);
        looks->soon = are_left && forks ? SOON_LOOKS : looks->soon;
        if (has_events && all_busy) {
            /* Nobody will come soon; what is woken is given to one that forks. */
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
        /* relaxed: a hint; who misses it is told at the next look. */
        wf_store_relaxed(&sched->watch.overdue, 1u);
    }
    return waiting || overdue;
}

/* Do all workers sleep, and does nobody else fork? */
static bool is_idle(const struct wf_sched *sched)
{
    return wf_idle_unparked(&sched->idle) == 0 && !wf_guests_are_there(&sched->guests);
}

static void sleep_while_idle(struct wf_sched *sched)
{
    struct wf_watch *watch = &sched->watch;
    /* relaxed: before the fence, V1. */
    wf_store_relaxed(&watch->asleep, 1u);
    /* fence [V1], V2: a worker that wakes from now on sees it. */
    wf_fence_full();
    if (is_idle(sched) && !is_stopped(watch)) {
        (void)wf_park_sleep(&watch->park, WF_NEVER);
    }
    /* relaxed: a worker that still believes it wakes the watch once too often. */
    wf_store_relaxed(&watch->asleep, 0u);
}

/* Stacks of fibers that are no longer needed are given back while nobody needs
 * the processor. */
static bool has_unparked(void *arg)
{
    struct wf_sched *sched = arg;
    return wf_idle_unparked(&sched->idle) > 0 || is_stopped(&sched->watch);
}

/* Has somebody ended the calm? */
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

/* Sleeps until the next look. */
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
    /* relaxed: the wake below brings it, and is kept if the watch is awake. */
    wf_store_relaxed(&watch->stopped, 1u);
    (void)wf_park_wake(&watch->park);
    (void)pthread_join(watch->thread, NULL);
    watch->started = false;
}
