/* SPDX-License-Identifier: MIT */
/*
 * watch_model.c - src/sched/watch.c with idle.c and park.c: the watch goes to sleep
 * while a worker wakes up and leaves something to its care.
 *
 * The worker is written after park() in search.c and wf_worker_push() in worker.c.
 * Replaced: wf_sched_notify() fetches the task from the slot, wf_worker_poll_age()
 * finds every poll long, and a thread is started without its signal mask. The
 * watch's own looks end by their deadlines, which may fire at any time.
 */
#include "sched/watch.h"

#include "base/clock.h"
#include "mc.h"
#include "sched/job.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"

static struct wf_sched sched;
static struct wf_worker worker;
static struct wf_task task;
static _Atomic(uint32_t) fetched;
/* By the worker after all else, and by the watch at each look: what is long past is
 * seen at some time, also by a relaxed load. */
static _Atomic(uint32_t) beat;

int wf_thread_start(pthread_t *thread, void *(*main_fn)(void *arg), void *arg)
{
    return -pthread_create(thread, NULL, main_fn, arg);
}

void wf_thread_set_name(const char *prefix, const char *name)
{
    (void)prefix;
    (void)name;
}

int64_t wf_worker_poll_age(struct wf_worker *of, int64_t now)
{
    (void)of;
    (void)now;
    (void)wf_fetch_add_acq_rel(&beat, 0u);
    return WF_WORKER_STALL_NS;
}

void wf_stacks_trim(struct wf_stacks *stacks, bool idle, bool (*stop)(void *arg), void *arg)
{
    (void)stacks;
    (void)idle;
    (void)stop;
    (void)arg;
}

/* A guest has forked something. */
static _Atomic(uint32_t) forked;

bool wf_guests_have_public(const struct wf_guests *guests)
{
    (void)guests;
    return wf_load_relaxed(&forked) != 0;
}

bool wf_job_has_public(const struct wf_worker *of)
{
    (void)of;
    return false;
}

bool wf_job_ask_to_yield(struct wf_worker *of)
{
    (void)of;
    return false;
}

bool wf_job_has_not_answered(const struct wf_worker *of)
{
    (void)of;
    return false;
}

void wf_sched_notify(struct wf_sched *of)
{
    if (wf_load_relaxed(&forked) != 0) {
        wf_store_release(&fetched, 1u);
    }
    if (wf_xchg_acquire(&of->workers[0].lifo, (struct wf_task *)NULL) == &task) {
        wf_store_release(&fetched, 1u);
    }
}

/* As at the end of park(). */
static void wake_up(void)
{
    (void)wf_idle_unpark(&sched.idle, 0);
    worker.watch_asleep = wf_watch_is_asleep(&sched.watch);
}

/* As wf_worker_push(). */
static void fill_slot(void)
{
    (void)wf_xchg_acq_rel(&worker.lifo, &task);
    if (worker.watch_asleep) {
        worker.watch_asleep = false;
        wf_watch_wake(&sched.watch);
    }
}

static void begin(void)
{
    sched.options.workers = 1;
    sched.options.stealing = true;
    sched.workers = &worker;
    worker.sched = &sched;
    wf_store_relaxed(&worker.next_deadline, WF_NEVER);
    wf_idle_init(&sched.idle, 1);
    wf_idle_park(&sched.idle, 0, false);
    mc_name(&sched.idle.counts, sizeof sched.idle.counts, "counts");
    mc_name(&sched.idle.parked, sizeof sched.idle.parked, "parked");
    mc_name(&sched.watch.park, sizeof sched.watch.park, "park");
    mc_name(&sched.watch.asleep, sizeof sched.watch.asleep, "asleep");
    mc_name(&sched.watch.stopped, sizeof sched.watch.stopped, "stopped");
    mc_name(&worker.lifo, sizeof worker.lifo, "lifo");
    mc_name(&fetched, sizeof fetched, "fetched");
    mc_assert(wf_watch_start(&sched) == 0);
}

/*
 * Goal:   a task in the slot of a worker that is busy for ever is fetched.
 * Method: the worker wakes and fills the slot while the watch looks around, or goes
 *         to sleep, or sleeps.
 */
static void slot_of_a_busy_worker_is_fetched(void)
{
    begin();
    wake_up();
    fill_slot();
    (void)wf_fetch_add_acq_rel(&beat, 1u);
    mc_await_exchange(&fetched, 1, 1);
    wf_watch_stop(&sched);
}

/* The same for the forks of a guest, who begins as in guest.c. */
static void forks_of_a_guest_are_fetched(void)
{
    begin();
    (void)wf_fetch_add_relaxed(&sched.guests.count, 1);
    if (wf_watch_is_asleep(&sched.watch)) {
        wf_watch_wake(&sched.watch);
    }
    wf_store_relaxed(&forked, 1u);
    (void)wf_fetch_add_acq_rel(&beat, 1u);
    mc_await_exchange(&fetched, 1, 1);
    wf_watch_stop(&sched);
}

/*
 * Goal:   stop ends the watch wherever it is.
 * Method: it looks around, or goes to sleep, or sleeps.
 */
static void stop_ends_the_watch(void)
{
    begin();
    wf_watch_stop(&sched);
}

static const struct mc_test tests[] = {
    { .name = "slot_of_a_busy_worker_is_fetched",
      .run = slot_of_a_busy_worker_is_fetched,
      .preemptions = 1,
      .deep_preemptions = 2,
      .seconds_max = 600,
      .timeouts = 22 },
    { .name = "forks_of_a_guest_are_fetched",
      .run = forks_of_a_guest_are_fetched,
      .preemptions = 1,
      .deep_preemptions = 2,
      .seconds_max = 600,
      .timeouts = 22 },
    { .name = "stop_ends_the_watch", .run = stop_ends_the_watch, .timeouts = 22 },
};

MC_MAIN(tests)
