/* SPDX-License-Identifier: MIT */
/*
 * fork_model.c - src/sched/job.c and strand.c: fibers that fork and join, thieves that
 * ask, steal, finish and wake, strands that leave a worker and come to another one.
 *
 * Nobody sleeps with a timeout. So a fork that no worker is told of, and whose owner waits
 * for it, is a deadlock.
 */
#include <weft/fiber.h>
#include <weft/event.h>
#include <weft/par.h>
#include <weft/task.h>

#include "mc.h"
#include "sched/fiber.h"
#include "sched/guest.h"
#include "sched/job.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/strand.h"
#include "sched/thread.h"
#include "sched/worker.h"
#include "fiber_rig.h"

static struct wf_sched *sched;
static _Atomic(uint32_t) flag;

static void begin(unsigned workers)
{
    sched = fiber_rig_start(workers);
}

static struct wf_task *go(int (*function)(void *arg))
{
    struct wf_task *task;
    weft_fiber_spec spec = { .function = function };
    mc_assert(wf_fiber_spawn(sched, &task, &spec) == 0);
    return task;
}

static void join(struct wf_task *task)
{
    int result = 0;
    mc_assert(weft_join((weft_task *)task, &result, WEFT_NEVER) == 0);
    mc_assert(result == 0);
}

static void end(struct wf_task *task)
{
    join(task);
    wf_sched_drain(sched);
    wf_sched_stop(sched);
    wf_sched_fini(sched);
}

static void run(unsigned workers, int (*function)(void *arg))
{
    begin(workers);
    end(go(function));
}

/* What is forked: it must be seen as it was, and what it has done, too. */
struct item {
    int payload;
    int runs;
    int worker;
};

static void count(void *arg)
{
    struct item *item = arg;
    mc_assert(item->payload == 7);
    item->runs++;
    item->worker = weft_worker_current();
}

static void check(const struct item *item, int here)
{
    mc_assert(item->runs == 1);
    mc_note(item->worker == here ? 1 : 2);
}

static int fork_two(void *arg)
{
    (void)arg;
    struct item items[2] = { { .payload = 7 }, { .payload = 7 } };
    weft_forked forks[2];
    int here = weft_worker_current();
    weft_fork(&forks[0], count, &items[0]);
    weft_fork(&forks[1], count, &items[1]);
    weft_fork_join(&forks[1]);
    weft_fork_join(&forks[0]);
    check(&items[0], here);
    check(&items[1], here);
    return 0;
}

/* Goal: owner and thief share two forks, and the owner waits for what the thief has. */
static void two_forks(void)
{
    run(2, fork_two);
}

/* Goal: a cancelled owner waits for its forks all the same. */
static void a_cancelled_owner(void)
{
    begin(2);
    struct wf_task *task = go(fork_two);
    weft_cancel((weft_task *)task);
    end(task);
}

static weft_event never_set;

static void wait_until_canceled(void *arg)
{
    struct item *item = arg;
    mc_assert(weft_event_wait(&never_set, WEFT_NEVER) == WEFT_ECANCELED);
    count(item);
}

static void yield_in_shield(void *arg)
{
    mc_assert(!weft_cancelled());
    mc_assert(weft_yield() == 0);
    mc_assert(!weft_cancelled());
    count(arg);
}

static int fork_until_canceled(void *arg)
{
    (void)arg;
    struct item items[4] = {
        { .payload = 7 }, { .payload = 7 }, { .payload = 7 }, { .payload = 7 }
    };
    int here = weft_worker_current();
    weft_join2(wait_until_canceled, &items[0], wait_until_canceled, &items[1]);
    weft_shield_enter();
    weft_join2(yield_in_shield, &items[2], yield_in_shield, &items[3]);
    weft_shield_leave();
    for (unsigned i = 0; i < 4; i++) {
        check(&items[i], here);
    }
    return 0;
}

/* Goal: a canceled owner cancels the forks that wait, wherever they run, and shields others. */
static void canceled_owner_cancels_waiting_forks(void)
{
    begin(2);
    struct wf_task *task = go(fork_until_canceled);
    weft_cancel((weft_task *)task);
    end(task);
}

static int wait_spawned(void *arg)
{
    wait_until_canceled(arg);
    return 0;
}

static int spawn_until_canceled(void *arg)
{
    (void)arg;
    struct item items[2] = { { .payload = 7 }, { .payload = 7 } };
    int here = weft_worker_current();
    weft_par_scope scope;
    weft_par_scope_begin(&scope, NULL);
    weft_par_spawn(&scope, wait_spawned, &items[0]);
    weft_par_spawn(&scope, wait_spawned, &items[1]);
    mc_assert(weft_par_scope_end(&scope) == 0);
    check(&items[0], here);
    check(&items[1], here);
    return 0;
}

/* Goal: the same for a parallel scope. */
static void canceled_owner_cancels_spawned_functions(void)
{
    begin(2);
    struct wf_task *task = go(spawn_until_canceled);
    weft_cancel((weft_task *)task);
    end(task);
}

static int fork_in_shield(void *arg)
{
    (void)arg;
    struct item items[2] = { { .payload = 7 }, { .payload = 7 } };
    int here = weft_worker_current();
    weft_shield_enter();
    weft_join2(yield_in_shield, &items[0], yield_in_shield, &items[1]);
    weft_shield_leave();
    check(&items[0], here);
    check(&items[1], here);
    return 0;
}

/* Goal: a shutdown does not cancel the forks of a shielded task. */
static void shutdown_leaves_shielded_forks_alone(void)
{
    begin(2);
    struct wf_task *task = go(fork_in_shield);
    wf_sched_drain(sched);
    wf_sched_stop(sched);
    join(task);
    wf_sched_fini(sched);
}

/* Goal: a shutdown cancels forks that wait, through their owner. */
static void shutdown_cancels_waiting_forks(void)
{
    begin(2);
    struct wf_task *task = go(fork_until_canceled);
    wf_sched_drain(sched);
    wf_sched_stop(sched);
    join(task);
    wf_sched_fini(sched);
}

static int fork_as_guest(void *arg)
{
    (void)arg;
    struct item items[2] = { { .payload = 7 }, { .payload = 7 } };
    weft_join2(count, &items[0], count, &items[1]);
    check(&items[0], -1);
    check(&items[1], -1);
    return 0;
}

/* As the watch. */
static void look_at_guests(void *arg)
{
    (void)arg;
    (void)wf_guests_have_public(&sched->guests);
}

/* Goal: a plain thread shares its forks like a fiber, and waits for those that were taken. */
static void a_guest(void)
{
    begin(1);
    mc_go(look_at_guests, NULL);
    mc_assert(wf_guest_run(sched, fork_as_guest, NULL) == 0);
    mc_join();
    wf_sched_drain(sched);
    wf_sched_stop(sched);
    wf_sched_fini(sched);
}

/* Whose forks are run now. */
static struct wf_sched *forking;

static void count_on_own_runtime(void *arg)
{
    const struct wf_worker *worker = wf_worker_current();
    mc_assert(worker == NULL || worker->sched == forking);
    count(arg);
}

static int fork_on_own_runtime(void *arg)
{
    struct item items[2] = { { .payload = 7 }, { .payload = 7 } };
    forking = arg;
    weft_join2(count_on_own_runtime, &items[0], count_on_own_runtime, &items[1]);
    check(&items[0], -1);
    check(&items[1], -1);
    return 0;
}

/*
 * Goal:   a worker never runs a fork of another runtime.
 * Method: a plain thread forks in one runtime and then in another. A worker of the first one may
 *         have found the thread's strand there, and steal from it only when the thread forks in
 *         the second.
 */
static void two_runtimes_share_no_forks(void)
{
    struct wf_sched *first = fiber_rig_start(1);
    struct wf_sched *second = fiber_rig_start(1);
    mc_assert(wf_guest_run(first, fork_on_own_runtime, first) == 0);
    mc_assert(wf_guest_run(second, fork_on_own_runtime, second) == 0);
    wf_sched_drain(first);
    wf_sched_stop(first);
    wf_sched_fini(first);
    wf_sched_drain(second);
    wf_sched_stop(second);
    wf_sched_fini(second);
}

static int suspend_until_flag(void *arg)
{
    (void)arg;
    struct wf_fiber *self = wf_fiber_current();
    while (wf_load_relaxed(&flag) == 0) {
        wf_fiber_suspend(self, wf_worker_current());
    }
    return 0;
}

static void set_flag_and_wake(void *task)
{
    wf_store_relaxed(&flag, 1u);
    wf_task_wake(task);
}

/*
 * Goal:   a strand lives as long as any thread may look at it.
 * Method: a plain thread wakes a pinned task and asks the fiber that forks on its worker to yield.
 *         Meanwhile both end, and the runtime is destroyed.
 */
static void strands_outlive_a_late_waker(void)
{
    wf_store_relaxed(&flag, 0u);
    begin(1);
    struct wf_task *waiter;
    weft_fiber_spec spec = { .function = suspend_until_flag, .pinned = WEFT_PINNED_TO(0) };
    mc_assert(wf_fiber_spawn(sched, &waiter, &spec) == 0);
    wf_task_retain(waiter);
    mc_go(set_flag_and_wake, waiter);
    struct wf_task *owner = go(fork_two);
    join(waiter);
    end(owner);
    mc_join();
}

static void fork_again(void *arg)
{
    struct item *items = arg;
    weft_join2(count, &items[0], count, &items[1]);
}

static int fork_what_forks(void *arg)
{
    (void)arg;
    struct item items[3] = { { .payload = 7 }, { .payload = 7 }, { .payload = 7 } };
    weft_join2(count, &items[0], fork_again, &items[1]);
    for (unsigned i = 0; i < 3; i++) {
        check(&items[i], -1);
    }
    return 0;
}

/* Goal: a thread that waits for a fork runs parts of it, each once, whoever else comes. */
static void a_guest_that_helps(void)
{
    begin(2);
    mc_assert(wf_guest_run(sched, fork_what_forks, NULL) == 0);
    wf_sched_drain(sched);
    wf_sched_stop(sched);
    wf_sched_fini(sched);
}

static int count_spawned(void *arg)
{
    count(arg);
    return 0;
}

static int spawn_two(void *arg)
{
    (void)arg;
    struct item items[2] = { { .payload = 7 }, { .payload = 7 } };
    int here = weft_worker_current();
    weft_par_scope scope;
    weft_par_scope_begin(&scope, NULL);
    weft_par_spawn(&scope, count_spawned, &items[0]);
    weft_par_spawn(&scope, count_spawned, &items[1]);
    mc_assert(weft_par_scope_end(&scope) == 0);
    check(&items[0], here);
    check(&items[1], here);
    return 0;
}

/* Goal: the end of a scope has seen what all have done, whoever was the last. */
static void a_scope(void)
{
    run(2, spawn_two);
}

/* Goal: an owner may be asked to yield at any time. */
static void an_owner_that_is_asked_to_yield(void)
{
    begin(2);
    struct wf_task *task = go(fork_two);
    (void)wf_job_ask_to_yield(&sched->workers[0]);
    (void)wf_job_ask_to_yield(&sched->workers[1]);
    end(task);
}

/* Goal: and anybody may look at any time whether it has answered. */
static void an_owner_that_is_looked_at(void)
{
    begin(2);
    struct wf_task *task = go(fork_two);
    (void)wf_job_has_not_answered(&sched->workers[0]);
    (void)wf_job_has_not_answered(&sched->workers[1]);
    end(task);
}

/* Each of two waits for the other to have begun. */
static _Atomic(uint32_t) met[2];

static void meet(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg;
    wf_store_relaxed(&met[self], 1u);
    (void)mc_futex_wake(&met[self], 1);
    while (wf_load_relaxed(&met[!self]) == 0) {
        (void)mc_futex_wait(&met[!self], 0, INT64_MAX);
    }
}

static int meet_at_once(void *arg)
{
    (void)arg;
    weft_join2(meet, (void *)0, meet, (void *)1);
    return 0;
}

/* A fork that sets the flag. */
static void set_flag(void *arg)
{
    (void)arg;
    wf_store_relaxed(&flag, 1u);
    (void)mc_futex_wake(&flag, 2);
}

static void compute_until_flag(void)
{
    while (wf_load_relaxed(&flag) == 0) {
        (void)mc_futex_wait(&flag, 0, INT64_MAX);
    }
}

static void run_anew(int (*function)(void *arg))
{
    wf_store_relaxed(&flag, 0u);
    wf_store_relaxed(&met[0], 0u);
    wf_store_relaxed(&met[1], 0u);
    run(2, function);
}

/*
 * Goal:   a fork that is posted while the other worker is about to sleep is not slept
 *         through.
 * Method: the owner computes until the other one has begun with it.
 */
static void a_fork_wakes_a_sleeper(void)
{
    run_anew(meet_at_once);
}

static int meet_later(void *arg)
{
    bool yields = arg != NULL;
    weft_forked forked;
    weft_fork(&forked, set_flag, NULL);
    if (yields) {
        mc_assert(weft_yield() == 0);
    }
    compute_until_flag();
    weft_join2(meet, (void *)0, meet, (void *)1);
    weft_fork_join(&forked);
    return 0;
}

/*
 * Goal:   a later fork wakes a worker that went to sleep after the first one.
 * Method: the first one is stolen and over; then both meet in the second.
 */
static void a_later_fork_wakes_a_sleeper(void)
{
    run_anew(meet_later);
}

static int meet_after_a_yield(void *arg)
{
    (void)arg;
    return meet_later(&flag);
}

/* The same for a strand that was away while the other worker went to sleep. */
static void a_fork_after_an_arrival_wakes_a_sleeper(void)
{
    run_anew(meet_after_a_yield);
}

enum {
    SILENCE_NS = 20 * 1000, /* as in job.c */
};

static int fork_silently(void *arg)
{
    bool by_fork = arg != NULL;
    weft_forked forks[2];
    bool begun = wf_job_begin_silently();
    mc_assert(begun);
    weft_fork(&forks[0], set_flag, NULL);
    mc_clock_advance(SILENCE_NS + 1);
    if (by_fork) {
        weft_fork(&forks[1], set_flag, NULL);
    } else {
        wf_job_speak_up();
    }
    compute_until_flag();
    if (by_fork) {
        weft_fork_join(&forks[1]);
    }
    weft_fork_join(&forks[0]);
    wf_job_end_silently(begun);
    return 0;
}

static int fork_silently_and_again(void *arg)
{
    (void)arg;
    return fork_silently(&flag);
}

/*
 * Goal:   silent forks wake a worker once they have been silent for 20 us.
 * Method: their owner computes until one of them has run. After 20 us it says that it is still
 *         there, or forks once more.
 */
static void silent_forks_wake_a_sleeper_later(void)
{
    mc_clock_advance(1); /* A time of 0 means: not silent. */
    run_anew(mc_choose(2) == 0 ? fork_silently : fork_silently_and_again);
}

static int compute_function(void *arg)
{
    (void)arg;
    compute_until_flag();
    return 0;
}

static int leave_to_one_that_computes(void *arg)
{
    (void)arg;
    struct wf_task *other;
    weft_forked forked;
    weft_fiber_spec spec = { .function = compute_function,
                             .pinned = WEFT_PINNED_TO((unsigned)weft_worker_current()) };
    mc_assert(wf_fiber_spawn(sched, &other, &spec) == 0);
    weft_fork(&forked, set_flag, NULL);
    mc_assert(weft_join((weft_task *)other, NULL, WEFT_NEVER) == 0);
    weft_fork_join(&forked);
    return 0;
}

/*
 * Goal:   forks of a strand that has left are announced.
 * Method: its worker computes until one of them has run.
 */
static void what_is_away_wakes_a_sleeper(void)
{
    run_anew(leave_to_one_that_computes);
}

static int yield_between(void *arg)
{
    (void)arg;
    struct item item = { .payload = 7 };
    weft_forked forked;
    int here = weft_worker_current();
    weft_fork(&forked, count, &item);
    mc_assert(weft_yield() == 0);
    weft_fork_join(&forked);
    check(&item, here);
    return 0;
}

static int yield_and_fork_between(void *arg)
{
    (void)arg;
    struct item items[2] = { { .payload = 7 }, { .payload = 7 } };
    weft_forked forks[2];
    int here = weft_worker_current();
    weft_fork(&forks[0], count, &items[0]);
    mc_assert(weft_yield() == 0);
    weft_fork(&forks[1], count, &items[1]);
    mc_assert(weft_yield() == 0);
    weft_fork_join(&forks[1]);
    weft_fork_join(&forks[0]);
    check(&items[0], here);
    check(&items[1], here);
    return 0;
}

/*
 * Goal:   forks of a fiber that waits, and goes on perhaps elsewhere, are run once: by
 *         whoever finds them while it is away, by a thief that is late, or by itself.
 */
static void a_strand_leaves_and_arrives(void)
{
    run(2, yield_between);
}

static void a_strand_leaves_twice(void)
{
    run(2, yield_and_fork_between);
}

static void wait_and_count(void *arg)
{
    mc_assert(weft_yield() == 0);
    count(arg);
}

static int fork_what_waits(void *arg)
{
    (void)arg;
    struct item items[2] = { { .payload = 7 }, { .payload = 7 } };
    int here = weft_worker_current();
    weft_join2(wait_and_count, &items[0], wait_and_count, &items[1]);
    check(&items[0], here);
    check(&items[1], here);
    return 0;
}

/* Goal: what was stolen may wait, and its joiner is woken in the end. */
static void a_stolen_fork_waits(void)
{
    run(2, fork_what_waits);
}

static int yield_until_flag(void *arg)
{
    (void)arg;
    weft_forked forked;
    weft_fork(&forked, set_flag, NULL);
    while (wf_load_relaxed(&flag) == 0) {
        mc_assert(weft_yield() == 0);
    }
    weft_fork_join(&forked);
    return 0;
}

/* Goal: a worker that is alone runs what a strand has left there. */
static void a_lone_worker(void)
{
    wf_store_relaxed(&flag, 0u);
    run(1, yield_until_flag);
}

/* Goal: strands do not meet, wherever they are. */
static void two_strands(void)
{
    begin(2);
    struct wf_task *first = go(yield_and_fork_between);
    struct wf_task *second = go(yield_between);
    join(second);
    end(first);
}

static int poll_that_forks(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_task *self = weft_task_current();
    int here = weft_worker_current();
    (void)fork_two(NULL);
    mc_assert(weft_task_current() == self);
    mc_assert(weft_worker_current() == here);
    return 0;
}

static struct wf_task *spawn(weft_body_fn body)
{
    struct wf_task *task;
    weft_spec spec = { .body = body };
    mc_assert(wf_spawn(sched, &task, &spec) == 0);
    return task;
}

/* Goal: a poll waits for what was taken; another one is polled by a spare loop meanwhile,
 * and whichever loop is the last one, the worker ends. */
static void polls_that_fork(void)
{
    begin(2);
    struct wf_task *first = spawn(poll_that_forks);
    struct wf_task *second = spawn(poll_that_forks);
    join(second);
    end(first);
}

/* The same, when loops change more often. */
static void polls_that_are_asked_to_yield(void)
{
    begin(2);
    struct wf_task *first = spawn(poll_that_forks);
    struct wf_task *second = spawn(poll_that_forks);
    for (unsigned i = 0; i < 4; i++) {
        (void)wf_job_ask_to_yield(&sched->workers[i % 2]);
    }
    join(second);
    end(first);
}

static const struct mc_test tests[] = {
    { .name = "a_lone_worker",
      .run = a_lone_worker,
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "polls_that_fork",
      .run = polls_that_fork,
      .mode = MC_PCT,
      .runs = 10000,
      .steps_max = 40000,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "polls_that_are_asked_to_yield",
      .run = polls_that_are_asked_to_yield,
      .mode = MC_PCT,
      .runs = 10000,
      .steps_max = 40000,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "two_forks",
      .run = two_forks,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "a_cancelled_owner",
      .run = a_cancelled_owner,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "canceled_owner_cancels_waiting_forks",
      .run = canceled_owner_cancels_waiting_forks,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 2000,
      .steps_max = 40000 },
    { .name = "canceled_owner_cancels_spawned_functions",
      .run = canceled_owner_cancels_spawned_functions,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 2000,
      .steps_max = 40000 },
    { .name = "shutdown_leaves_shielded_forks_alone",
      .run = shutdown_leaves_shielded_forks_alone,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 2000,
      .steps_max = 40000 },
    { .name = "shutdown_cancels_waiting_forks",
      .run = shutdown_cancels_waiting_forks,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 2000,
      .steps_max = 40000 },
    { .name = "a_guest",
      .run = a_guest,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000,
      .clock_step_ns = 15000 },
    { .name = "two_runtimes_share_no_forks",
      .run = two_runtimes_share_no_forks,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 3000,
      .steps_max = 20000,
      .clock_step_ns = 15000 },
    { .name = "strands_outlive_a_late_waker",
      .run = strands_outlive_a_late_waker,
      .mode = MC_PCT,
      .runs = 3000,
      .steps_max = 20000,
      .seen = MC_OUTCOMES(1) },
    { .name = "a_guest_that_helps",
      .run = a_guest_that_helps,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000,
      .clock_step_ns = 15000 },
    { .name = "a_scope",
      .run = a_scope,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "an_owner_that_is_asked_to_yield",
      .run = an_owner_that_is_asked_to_yield,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "an_owner_that_is_looked_at",
      .run = an_owner_that_is_looked_at,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "a_fork_wakes_a_sleeper",
      .run = a_fork_wakes_a_sleeper,
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "a_later_fork_wakes_a_sleeper",
      .run = a_later_fork_wakes_a_sleeper,
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "a_fork_after_an_arrival_wakes_a_sleeper",
      .run = a_fork_after_an_arrival_wakes_a_sleeper,
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "silent_forks_wake_a_sleeper_later",
      .run = silent_forks_wake_a_sleeper_later,
      .mode = MC_PCT,
      .runs = 2000,
      .steps_max = 20000,
      .moving_clock = true },
    { .name = "what_is_away_wakes_a_sleeper",
      .run = what_is_away_wakes_a_sleeper,
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "a_strand_leaves_and_arrives",
      .run = a_strand_leaves_and_arrives,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "a_strand_leaves_twice",
      .run = a_strand_leaves_twice,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "two_strands",
      .run = two_strands,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
    { .name = "a_stolen_fork_waits",
      .run = a_stolen_fork_waits,
      .seen = MC_OUTCOMES(1, 2),
      .mode = MC_PCT,
      .runs = 1000,
      .steps_max = 20000 },
};

MC_MAIN(tests)
