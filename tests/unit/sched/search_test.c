/* SPDX-License-Identifier: MIT */
/*
 * search_test.c - the search for work, and the transition to parked.
 *
 * The first part runs by hand: this thread is one of the workers of a scheduler that was not
 * started, and searches. A wake that precedes a park ends it immediately. The second part uses
 * running runtimes.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "base/clock.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/worker.h"
#include "scheduler.h"
#include "test.h"
#include "timing.h"

static struct wf_sched *sched;
static unsigned bodies_run;

static struct wf_worker *be_worker(unsigned index)
{
    test_be_worker(&sched->workers[index]);
    return &sched->workers[index];
}

static struct wf_worker *set_up(struct wf_sched_options options)
{
    sched = test_sched_create(&options);
    bodies_run = 0;
    return be_worker(0);
}

static int count_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    bodies_run++;
    return 0;
}

/* Spawns into the ring of the given worker. */
static void spawn_at(unsigned index, unsigned count)
{
    struct wf_worker *before = wf_worker_current();
    be_worker(index);
    bool lifo = wf_worker_queue_in_order(wf_worker_current());
    for (unsigned i = 0; i < count; i++) {
        weft_spec spec = { .body = count_body };
        CHECK_EQ(wf_spawn(sched, NULL, &spec), 0);
    }
    wf_worker_queue_as_before(wf_worker_current(), lifo);
    test_be_worker(before);
}

static void spawn_outside(unsigned count)
{
    struct wf_worker *before = wf_worker_current();
    test_be_worker(NULL);
    for (unsigned i = 0; i < count; i++) {
        weft_spec spec = { .body = count_body };
        CHECK_EQ(wf_spawn(sched, NULL, &spec), 0);
    }
    test_be_worker(before);
}

/* Returns a task that is in no queue. */
static struct wf_task *loose_task(void)
{
    spawn_outside(1);
    struct wf_qlist list = { 0 };
    wf_inject_pop(&sched->inject, 1, &list);
    CHECK_EQ(list.count, 1);
    return wf_task_of(list.first);
}

static void run_all(struct wf_worker *worker, struct wf_task *task)
{
    while (task != NULL) {
        wf_worker_run(worker, task);
        task = wf_worker_next(worker);
    }
}

static void tear_down(unsigned expected)
{
    for (unsigned i = 0; i < sched->options.workers; i++) {
        struct wf_worker *worker = be_worker(i);
        run_all(worker, wf_worker_next(worker));
    }
    CHECK_EQ(bodies_run, expected);
    test_be_worker(NULL);
    wf_sched_fini(sched);
}

/* Searches, without sleeping. */
static struct wf_task *search(struct wf_worker *worker)
{
    wf_worker_wake(worker);
    struct wf_task *task = wf_worker_search(worker);
    wf_store_relaxed(&worker->park.word, 0u);
    return task;
}

static uint64_t count_of(const wf_counter *counter)
{
    return wf_counter_read(counter);
}

static void search_steals_older_half_of_ring(void)
{
    struct wf_worker *worker = set_up(test_sched_options(4));
    spawn_at(2, 10);
    struct wf_task *task = search(worker);
    CHECK(task != NULL);
    CHECK_EQ(wf_ring_len(&worker->ring), 4);
    CHECK_EQ(wf_ring_len(&sched->workers[2].ring), 5);
    CHECK_EQ(count_of(&worker->counters.steals), 1);
    CHECK_EQ(count_of(&worker->counters.stolen_tasks), 5);
    CHECK(worker->searching);
    wf_worker_stop_search(worker);
    CHECK(!worker->searching);
    CHECK_EQ(wf_idle_searching(&sched->idle), 0);
    run_all(worker, task);
    tear_down(10);
}

static void search_starts_at_random_victim_and_never_at_itself(void)
{
    enum {
        WORKERS = 8,
        ME = 3
    };
    (void)set_up(test_sched_options(WORKERS));
    struct wf_worker *worker = be_worker(ME);
    unsigned hits[WORKERS] = { 0 };
    unsigned rounds = 400;
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < WORKERS; i++) {
            spawn_at(i, 1);
        }
        struct wf_task *task = search(worker);
        CHECK(task != NULL);
        wf_worker_run(worker, task);
        for (unsigned i = 0; i < WORKERS; i++) {
            if (wf_ring_len(&sched->workers[i].ring) == 0) {
                hits[i]++;
            }
            struct wf_worker *other = be_worker(i);
            run_all(other, wf_worker_next(other));
        }
        be_worker(ME);
    }
    CHECK_EQ(hits[ME], 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        if (i != ME) {
            /* 50 are expected. The worker after this one is hit twice as often. */
            CHECK_GE(hits[i], 10);
        }
    }
    tear_down(rounds * WORKERS);
}

static void search_finds_only_task_in_any_ring(void)
{
    struct wf_worker *worker = set_up(test_sched_options(70));
    for (unsigned i = 1; i < 70; i++) {
        spawn_at(i, 1);
        struct wf_task *task = search(worker);
        CHECK(task != NULL);
        run_all(worker, task);
    }
    CHECK_EQ(count_of(&worker->counters.steals), 69);
    tear_down(69);
}

static void search_fetches_from_inject_queue(void)
{
    struct wf_worker *worker = set_up(test_sched_options(2));
    spawn_outside(9);
    struct wf_task *task = search(worker);
    CHECK(task != NULL);
    CHECK_EQ(wf_ring_len(&worker->ring), 3);
    CHECK_EQ(count_of(&worker->counters.injected_tasks), 4);
    run_all(worker, task);
    tear_down(9);
}

static void search_without_stealing_leaves_other_workers_alone(void)
{
    struct wf_sched_options options = test_sched_options(3);
    options.stealing = false;
    struct wf_worker *worker = set_up(options);
    spawn_at(1, 10);
    wf_store_relaxed(&sched->workers[2].lifo, loose_task());
    CHECK(search(worker) == NULL);
    CHECK_EQ(count_of(&worker->counters.parks), 1);
    CHECK_EQ(wf_ring_len(&sched->workers[1].ring), 10);
    CHECK_EQ(count_of(&worker->counters.steals), 0);
    CHECK_EQ(count_of(&worker->counters.lifo_stolen), 0);
    tear_down(11);
}

/*
 * Puts a task into the LIFO slot of worker 1, whose current poll was first seen that long ago.
 * -1: the poll has not been seen yet.
 */
static struct wf_task *stall(int64_t age)
{
    struct wf_worker *victim = &sched->workers[1];
    struct wf_task *task = loose_task();
    uint64_t poll = wf_counter_read(&victim->counters.polls) + 1;
    wf_counter_set(&victim->counters.polls, poll);
    wf_store_relaxed(&victim->seen_poll, age < 0 ? poll - 1 : poll);
    wf_store_relaxed(&victim->seen_since, wf_clock_now() - age);
    wf_store_relaxed(&victim->lifo, task);
    return task;
}

static void lifo_slot_of_worker_in_long_poll_is_stolen(void)
{
    struct wf_worker *worker = set_up(test_sched_options(2));
    struct wf_task *task = stall(WF_WORKER_STALL_NS);
    CHECK(search(worker) == task);
    CHECK(wf_load_relaxed(&sched->workers[1].lifo) == NULL);
    CHECK_EQ(count_of(&worker->counters.lifo_stolen), 1);
    CHECK_EQ(count_of(&worker->counters.steals), 0);
    run_all(worker, task);
    tear_down(1);
}

static void lifo_slot_of_worker_in_new_poll_is_left_alone(void)
{
    struct wf_worker *worker = set_up(test_sched_options(2));
    struct wf_task *task = stall(-1);
    CHECK(search(worker) == NULL);
    CHECK(wf_load_relaxed(&sched->workers[1].lifo) == task);
    CHECK_EQ(count_of(&worker->counters.lifo_stolen), 0);
    tear_down(1);
}

static void lifo_slots_are_searched_after_all_rings(void)
{
    struct wf_worker *worker = set_up(test_sched_options(3));
    struct wf_task *task = stall(WF_WORKER_STALL_NS);
    spawn_at(2, 1);
    run_all(worker, search(worker));
    CHECK_EQ(count_of(&worker->counters.steals), 1);
    CHECK(wf_load_relaxed(&sched->workers[1].lifo) == task);
    tear_down(2);
}

static void last_searcher_that_finds_work_wakes_another_if_more(void)
{
    struct wf_worker *worker = set_up(test_sched_options(3));
    for (unsigned more = 0; more < 2; more++) {
        wf_idle_init(&sched->idle, 3);
        wf_idle_park(&sched->idle, 2, false);
        wf_idle_search(&sched->idle);
        worker->searching = true;
        if (more) {
            struct wf_task *task = loose_task();
            wf_inject_push(&sched->inject, &task->node);
        }
        wf_worker_stop_search(worker);
        CHECK_EQ(wf_idle_is_parked(&sched->idle, 2), more == 0);
        CHECK_EQ(wf_idle_searching(&sched->idle), more);
    }

    /* Not the last one: the other searcher takes care of it. */
    wf_idle_init(&sched->idle, 3);
    wf_idle_park(&sched->idle, 2, false);
    wf_idle_search(&sched->idle);
    wf_idle_search(&sched->idle);
    worker->searching = true;
    wf_worker_stop_search(worker);
    CHECK(wf_idle_is_parked(&sched->idle, 2));
    tear_down(1);
}

static void worker_that_may_not_search_does_not_sleep_beside_work(void)
{
    struct wf_worker *worker = set_up(test_sched_options(2));
    wf_idle_search(&sched->idle); /* Half of the workers: the maximum. */
    spawn_outside(1);
    CHECK(wf_worker_search(worker) == NULL);
    CHECK_EQ(count_of(&worker->counters.parks), 0);
    CHECK(worker->searching);
    CHECK_EQ(wf_idle_unparked(&sched->idle), 2);
    CHECK_EQ(count_of(&worker->counters.state), WEFT_WORKER_RUNNING); /* It will look itself. */
    struct wf_task *task = wf_worker_search(worker);
    CHECK(task != NULL);
    wf_worker_stop_search(worker);
    run_all(worker, task);
    tear_down(1);
}

static void worker_with_pinned_task_in_inbox_does_not_sleep(void)
{
    struct wf_worker *worker = set_up(test_sched_options(2));
    test_be_worker(NULL);
    weft_spec spec = { .body = count_body, .pinned = WEFT_PINNED_TO(0) };
    CHECK_EQ(wf_spawn(sched, NULL, &spec), 0);
    be_worker(0);
    CHECK(wf_worker_search(worker) == NULL);
    CHECK_EQ(count_of(&worker->counters.parks), 0);

    /* Nor if it may not search. */
    wf_idle_init(&sched->idle, 2);
    wf_idle_search(&sched->idle);
    worker->searching = false;
    CHECK(wf_worker_search(worker) == NULL);
    CHECK_EQ(count_of(&worker->counters.parks), 0);
    CHECK_EQ(wf_idle_unparked(&sched->idle), 2);
    tear_down(1);
}

static void park_timeout_does_not_make_worker_searcher(void)
{
    struct wf_worker *worker = set_up(test_sched_options(2));
    wf_idle_search(&sched->idle); /* Makes it park immediately. */
    sched->options.park_timeout_ns = 1;
    CHECK(wf_worker_search(worker) == NULL);
    CHECK(!worker->searching);
    CHECK_EQ(count_of(&worker->counters.parks), 1);
    CHECK_EQ(count_of(&worker->counters.wakes), 0);
    CHECK_EQ(count_of(&worker->counters.unannounced_work), 0);
    CHECK_EQ(count_of(&worker->counters.state), WEFT_WORKER_RUNNING);
    tear_down(0);
}

static unsigned parked_calls;
static unsigned unparked_calls;

/* Claims the worker like a submitter does, while it is about to park. */
static void claim_on_park(void *ctx, unsigned index)
{
    CHECK(ctx == &parked_calls);
    parked_calls++;
    CHECK_EQ(index, 0);
    CHECK(wf_idle_is_parked(&sched->idle, 0));
    wf_sched_notify(sched);
}

static void note_unpark(void *ctx, unsigned index)
{
    CHECK(ctx == &parked_calls);
    CHECK_EQ(index, 0);
    unparked_calls++;
}

static void worker_claimed_by_submitter_is_searcher_and_counts_wake(void)
{
    struct wf_sched_options options = test_sched_options(2);
    options.on_park = claim_on_park;
    options.on_unpark = note_unpark;
    options.hook_ctx = &parked_calls;
    struct wf_worker *worker = set_up(options);
    parked_calls = 0;
    unparked_calls = 0;
    CHECK(wf_worker_search(worker) == NULL);
    CHECK(worker->searching);
    CHECK_EQ(count_of(&worker->counters.wakes), 1);
    CHECK_EQ(count_of(&worker->counters.idle_wakes), 0);
    CHECK_EQ(parked_calls, 1);
    CHECK_EQ(unparked_calls, 1);

    CHECK(wf_worker_search(worker) == NULL);
    CHECK_EQ(count_of(&worker->counters.wakes), 2);
    CHECK_EQ(count_of(&worker->counters.idle_wakes), 1);
    tear_down(0);
}

static void search_during_shutdown_acknowledges_first(void)
{
    struct wf_worker *worker = set_up(test_sched_options(2));
    wf_store_relaxed(&sched->drain.debt, (int64_t)2 << 40);
    wf_store_relaxed(&sched->drain.phase, (uint32_t)WF_PHASE_CLOSING);
    CHECK(wf_worker_search(worker) == NULL);
    CHECK(worker->closing);
    CHECK_EQ(wf_load_relaxed(&sched->drain.acknowledged), 1);
    CHECK_EQ(count_of(&worker->counters.parks), 0);
    tear_down(0);
}

/* --- On running runtimes --- */

static void wait_until(bool (*condition)(void), const char *what)
{
    weft_time deadline = test_deadline();
    while (!condition()) {
        if (weft_now() > deadline) {
            test_fail(__FILE__, __LINE__, "never became true: %s", what);
        }
        (void)sched_yield();
    }
}

static weft_worker_stats add_stats(weft_runtime *rt)
{
    weft_worker_stats sum = { 0 };
    for (unsigned i = 0; i < weft_runtime_workers(rt); i++) {
        weft_worker_stats one;
        CHECK_EQ(weft_worker_stats_read(rt, i, &one), 0);
        sum.steals += one.steals;
        sum.stolen_tasks += one.stolen_tasks;
        sum.lifo_stolen += one.lifo_stolen;
        sum.completed += one.completed;
    }
    return sum;
}

static struct {
    _Atomic(uint64_t) started;
    _Atomic(uint64_t) ended;
    _Atomic(int) first_worker;
    _Atomic(uint64_t) elsewhere;
} crowd;

static bool has_run_elsewhere(void)
{
    return atomic_load(&crowd.elsewhere) > 0;
}

/* A member on the spawner's worker waits until another worker has run one. */
static int member_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&crowd.started, 1);
    if (weft_worker_current() != atomic_load(&crowd.first_worker)) {
        atomic_fetch_add(&crowd.elsewhere, 1);
    } else {
        wait_until(has_run_elsewhere, "another worker to steal");
    }
    atomic_fetch_add(&crowd.ended, 1);
    return 0;
}

static int spawn_crowd_body(weft_co *co, void *state)
{
    (void)co;
    unsigned count = *(unsigned *)state;
    atomic_store(&crowd.first_worker, weft_worker_current());
    for (unsigned i = 0; i < count; i++) {
        weft_spec spec = { .body = member_body };
        CHECK_EQ(weft_spawn(NULL, &spec), 0);
    }
    return 0;
}

/*
 * Goal:   an idle worker steals tasks from a worker that has too many.
 * Method: a task spawns others on its own worker. The first of them to run there does not return
 *         before another worker has run one.
 */
static void idle_workers_steal_from_busy_worker(void)
{
    unsigned rounds = (unsigned)test_scale(100);
    unsigned count = 16;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = test_workers(2) < 2 ? 2 : test_workers(2);
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    for (unsigned round = 0; round < rounds; round++) {
        atomic_store(&crowd.started, 0);
        atomic_store(&crowd.ended, 0);
        atomic_store(&crowd.elsewhere, 0);
        weft_spec spec = { .body = spawn_crowd_body, .state = &count, .state_size = sizeof count };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        test_wait_for(&crowd.ended, count);
        CHECK_EQ(atomic_load(&crowd.started), count);
    }
    weft_runtime_shutdown(rt);
    weft_worker_stats sum = add_stats(rt);
    CHECK_GE(sum.steals, rounds);
    CHECK_GE(sum.stolen_tasks, sum.steals);
    CHECK_EQ(sum.completed, rounds * (count + 1));
    weft_runtime_destroy(rt);
}

static int homebody(weft_co *co, void *state)
{
    (void)state;
    int err;
    WEFT_BEGIN(co);
    atomic_fetch_add(&crowd.started, 1);
    CHECK_EQ(weft_worker_current(), atomic_load(&crowd.first_worker));
    WEFT_YIELD(co, err);
    CHECK_EQ(err, 0);
    CHECK_EQ(weft_worker_current(), atomic_load(&crowd.first_worker));
    atomic_fetch_add(&crowd.ended, 1);
    WEFT_END(co, 0);
}

static int spawn_homebodies(weft_co *co, void *state)
{
    (void)co;
    atomic_store(&crowd.first_worker, weft_worker_current());
    for (unsigned i = 0; i < *(unsigned *)state; i++) {
        weft_spec spec = { .body = homebody };
        CHECK_EQ(weft_spawn(NULL, &spec), 0);
    }
    return 0;
}

static int end_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&crowd.ended, 1);
    return 0;
}

/*
 * Goal:   with stealing off, no task changes its worker, and none is forgotten.
 * Method: tasks that yield check their worker. They are few enough that the ring does not
 *         overflow. Then many from outside.
 */
static void without_stealing_tasks_stay_on_worker_and_all_run(void)
{
    unsigned count = 100;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 4;
    config.stealing = WEFT_OFF;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    for (unsigned round = 0; round < test_scale(40); round++) {
        atomic_store(&crowd.ended, 0);
        weft_spec spec = { .body = spawn_homebodies, .state = &count, .state_size = sizeof count };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        test_wait_for(&crowd.ended, count);
    }
    atomic_store(&crowd.ended, 0);
    unsigned many = (unsigned)test_scale(20000);
    for (unsigned i = 0; i < many; i++) {
        weft_spec spec = { .body = end_body };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
    }
    test_wait_for(&crowd.ended, many);
    weft_worker_stats sum = add_stats(rt);
    CHECK_EQ(sum.steals, 0);
    CHECK_EQ(sum.lifo_stolen, 0);
    weft_runtime_destroy(rt);
}

static struct {
    _Atomic(int64_t) woken_at;
    _Atomic(int64_t) started_at;
    _Atomic(uint64_t) ended;
} stalled;

static bool second_has_started(void)
{
    return atomic_load(&stalled.started_at) != 0;
}

static int second_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_store(&stalled.started_at, weft_now());
    return 0;
}

/* Wakes the second task by spawning it, and computes until that one has started. */
static int computing_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_spec spec = { .body = second_body };
    atomic_store(&stalled.woken_at, weft_now());
    CHECK_EQ(weft_spawn(NULL, &spec), 0);
    wait_until(second_has_started, "the task woken by one that computes");
    atomic_fetch_add(&stalled.ended, 1);
    return 0;
}

/*
 * Goal:   a task in the LIFO slot of a worker in a long poll is soon run by an idle worker, while
 *         the first still computes.
 * Method: the first task computes until the second has started.
 */
static void task_woken_by_computing_task_starts_on_another_worker(void)
{
    size_t rounds = test_is_sanitized() ? 25 : 100;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    for (size_t i = 0; i < rounds; i++) {
        atomic_store(&stalled.started_at, 0);
        atomic_store(&stalled.ended, 0);
        weft_spec spec = { .body = computing_body };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        test_wait_for(&stalled.ended, 1);
    }
    weft_runtime_shutdown(rt);
    weft_worker_stats sum = add_stats(rt);
    /* A shuffled wake goes through the ring. */
    CHECK_GE(sum.lifo_stolen + sum.steals, rounds);
    CHECK_GE(sum.lifo_stolen, 1);
    weft_runtime_destroy(rt);
}

/*
 * Goal:   the search before a park finds work, with and without search rounds, and a park timeout
 *         only makes parked workers search again.
 * Method: one task at a time from outside, with each setting; each must run.
 */
static void every_search_setting_finds_tasks_from_outside(void)
{
    static const struct {
        uint64_t search_ns;
        uint64_t park_timeout_ns;
    } rows[] = { { UINT64_MAX, 0 }, { 1, 0 }, { 1000 * 1000, 0 }, { 0, 1000 }, { 0, 1000 * 1000 } };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        weft_config config = WEFT_CONFIG_INIT;
        config.workers = 3;
        config.search_ns = rows[row].search_ns;
        config.park_timeout_ns = rows[row].park_timeout_ns;
        weft_runtime *rt;
        CHECK_EQ(weft_runtime_create(&rt, &config), 0);
        atomic_store(&crowd.ended, 0);
        for (unsigned i = 0; i < test_scale(1000); i++) {
            weft_spec spec = { .body = end_body };
            CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
            test_wait_for(&crowd.ended, i + 1);
        }
        weft_runtime_destroy(rt);
    }
}

TEST_MAIN({
    TEST(search_steals_older_half_of_ring),
    TEST(search_starts_at_random_victim_and_never_at_itself),
    TEST(search_finds_only_task_in_any_ring),
    TEST(search_fetches_from_inject_queue),
    TEST(search_without_stealing_leaves_other_workers_alone),
    TEST(lifo_slot_of_worker_in_long_poll_is_stolen),
    TEST(lifo_slot_of_worker_in_new_poll_is_left_alone),
    TEST(lifo_slots_are_searched_after_all_rings),
    TEST(last_searcher_that_finds_work_wakes_another_if_more),
    TEST(worker_that_may_not_search_does_not_sleep_beside_work),
    TEST(worker_with_pinned_task_in_inbox_does_not_sleep),
    TEST(park_timeout_does_not_make_worker_searcher),
    TEST(worker_claimed_by_submitter_is_searcher_and_counts_wake),
    TEST(search_during_shutdown_acknowledges_first),
    TEST(idle_workers_steal_from_busy_worker),
    TEST(without_stealing_tasks_stay_on_worker_and_all_run),
    TEST(task_woken_by_computing_task_starts_on_another_worker),
    TEST(every_search_setting_finds_tasks_from_outside),
})
