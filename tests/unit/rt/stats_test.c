/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "base/clock.h"
#include "rt.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "test.h"
#include "timing.h"

static weft_stats stats_of(const weft_runtime *rt)
{
    weft_stats stats;
    memset(&stats, 0xff, sizeof stats);
    weft_runtime_stats(rt, &stats);
    return stats;
}

static weft_worker_stats worker_stats_of(const weft_runtime *rt, unsigned worker)
{
    weft_worker_stats stats;
    memset(&stats, 0xff, sizeof stats);
    CHECK_EQ(weft_worker_stats_read(rt, worker, &stats), 0);
    return stats;
}

static weft_worker_stats add_stats(const weft_runtime *rt)
{
    weft_worker_stats sum = { 0 };
    for (unsigned i = 0; i < weft_runtime_workers(rt); i++) {
        weft_worker_stats one = worker_stats_of(rt, i);
        sum.polls += one.polls;
        sum.spawned += one.spawned;
        sum.completed += one.completed;
        sum.injected_tasks += one.injected_tasks;
        sum.inject_fetches += one.inject_fetches;
        sum.budget_yields += one.budget_yields;
        sum.unannounced_work += one.unannounced_work;
    }
    return sum;
}

static void stats_of_nonexistent_worker_return_einval(void)
{
    weft_runtime *rt = test_start(3);
    weft_worker_stats stats;
    CHECK_EQ(weft_worker_stats_read(rt, 2, &stats), 0);
    memset(&stats, 0x5a, sizeof stats);
    weft_worker_stats before = stats;
    CHECK_EQ(weft_worker_stats_read(rt, 3, &stats), -EINVAL);
    CHECK_EQ(weft_worker_stats_read(rt, UINT_MAX, &stats), -EINVAL);
    CHECK_EQ(memcmp(&before, &stats, sizeof stats), 0);
    weft_runtime_destroy(rt);
}

static void new_runtime_has_initial_stats(void)
{
    weft_runtime *rt = test_start(3);
    test_wait_until_asleep(rt);
    weft_stats stats = stats_of(rt);
    CHECK_EQ(stats.workers, 3);
    CHECK_EQ(stats.searching, 0);
    CHECK_EQ(stats.parked, 3);
    CHECK_EQ(stats.inject_length, 0);
    CHECK_EQ(stats.tasks_alive, 0);
    CHECK_EQ(stats.tasks_spawned, 0);
    CHECK_EQ(stats.blocking_threads, 0);
    CHECK_EQ(stats.blocking_idle, 0);
    CHECK_EQ(stats.blocking_queued, 0);
    for (unsigned i = 0; i < 3; i++) {
        weft_worker_stats worker = worker_stats_of(rt, i);
        CHECK_EQ(worker.polls, 0);
        CHECK_EQ(worker.steals, 0);
        CHECK_EQ(worker.wakes, 0);
        CHECK_EQ(worker.average_poll_ns, 50000);
        CHECK_EQ(worker.inject_interval, 20);
        CHECK_EQ(worker.queue_length, 0);
        CHECK_EQ(worker.state, WEFT_WORKER_PARKED);
    }
    weft_runtime_destroy(rt);
}

struct parent {
    unsigned children;
    unsigned yields;
};

static int parent_task(weft_co *co, void *state)
{
    struct parent *self = state;
    int err;
    WEFT_BEGIN(co);
    while (self->children > 0) {
        self->children--;
        struct parent child = { .yields = 2 };
        weft_spec spec = { .body = parent_task, .state = &child, .state_size = sizeof child };
        CHECK_EQ(weft_spawn(NULL, &spec), 0);
    }
    while (self->yields > 0) {
        self->yields--;
        WEFT_YIELD(co, err);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, 0);
}

/*
 * Goal:   the counters of all workers add up to the known workload.
 * Method: spawn a known number of tasks from outside and from workers, each with a known number
 *         of polls. Some workers steal, which must not change the sums.
 */
static void counters_match_known_workload(void)
{
    uint64_t parents = test_scale(1000);
    weft_runtime *rt = test_start(test_workers(3));
    for (uint64_t i = 0; i < parents; i++) {
        struct parent state = { .children = 10, .yields = 3 };
        weft_spec spec = { .body = parent_task, .state = &state, .state_size = sizeof state };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
    }
    weft_time deadline = test_deadline();
    while (stats_of(rt).tasks_alive > 0 || stats_of(rt).tasks_spawned < 11 * parents) {
        CHECK_LT(weft_now(), deadline);
        (void)sched_yield();
    }
    test_wait_until_asleep(rt);
    weft_worker_stats sum = add_stats(rt);
    CHECK_EQ(sum.polls, parents * (4 + 10 * 3));
    CHECK_EQ(sum.spawned, parents * 10);
    CHECK_EQ(sum.completed, parents * 11);
    CHECK_GE(sum.injected_tasks, parents); /* Tasks that overflowed are counted, too. */
    CHECK_LE(sum.inject_fetches, sum.injected_tasks);
    CHECK_EQ(sum.budget_yields, 0);
    CHECK_EQ(sum.unannounced_work, 0);
    weft_stats stats = stats_of(rt);
    CHECK_EQ(stats.tasks_spawned, parents * 11);
    CHECK_EQ(stats.tasks_alive, 0);
    CHECK_EQ(stats.inject_length, 0);
    weft_runtime_shutdown(rt);
    /* Still available after the shutdown. */
    CHECK_EQ(add_stats(rt).completed, parents * 11);
    for (unsigned i = 0; i < weft_runtime_workers(rt); i++) {
        CHECK_EQ(worker_stats_of(rt, i).state, WEFT_WORKER_STOPPED);
        CHECK_EQ(worker_stats_of(rt, i).queue_length, 0);
    }
    weft_runtime_destroy(rt);
}

static struct {
    _Atomic(uint64_t) running;
    _Atomic(uint64_t) go_on;
} blocker;

static int blocker_task(weft_co *co, void *state)
{
    unsigned children = *(unsigned *)state;
    (void)co;
    for (unsigned i = 0; i < children; i++) {
        struct parent child = { 0 };
        weft_spec spec = { .body = parent_task, .state = &child, .state_size = sizeof child };
        CHECK_EQ(weft_spawn(NULL, &spec), 0);
    }
    atomic_fetch_add(&blocker.running, 1);
    test_wait_for(&blocker.go_on, 1);
    return 0;
}

static void stats_show_queue_length_and_worker_state(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.stealing = WEFT_OFF;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    test_wait_until_asleep(rt);
    atomic_store(&blocker.running, 0);
    atomic_store(&blocker.go_on, 0);
    unsigned children = 20;
    weft_spec spec = { .body = blocker_task,
                       .state = &children,
                       .state_size = sizeof children,
                       .pinned = WEFT_PINNED_TO(1) };
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    test_wait_for(&blocker.running, 1);
    weft_worker_stats worker = worker_stats_of(rt, 1);
    CHECK_EQ(worker.state, WEFT_WORKER_RUNNING);
    CHECK_EQ(worker.polls, 1);
    CHECK_EQ(worker.spawned, 20);
    CHECK_EQ(worker.completed, 0);
    CHECK_GE(worker.queue_length, 19); /* The last may be in the LIFO slot. */
    CHECK_LE(worker.queue_length, 20);
    CHECK_EQ(worker_stats_of(rt, 0).state, WEFT_WORKER_PARKED);
    CHECK_EQ(stats_of(rt).parked, 1);
    CHECK_EQ(stats_of(rt).tasks_alive, 21);
    atomic_store(&blocker.go_on, 1);
    CHECK_EQ(test_join_soon(task), 0);
    weft_runtime_destroy(rt);
}

static void searching_workers_are_counted(void)
{
    weft_runtime *rt = test_start(4);
    struct wf_idle *idle = &rt->sched->idle;
    test_wait_until_asleep(rt);
    for (unsigned i = 1; i <= 2; i++) {
        wf_idle_search(idle); /* Like a worker that begins to search. */
        CHECK_EQ(stats_of(rt).searching, i);
    }
    CHECK(!wf_idle_found(idle));
    CHECK(wf_idle_found(idle));
    CHECK_EQ(stats_of(rt).searching, 0);
    weft_runtime_destroy(rt);
}

static void stats_show_inject_queue_length(void)
{
    weft_runtime *rt = test_start(1);
    atomic_store(&blocker.running, 0);
    atomic_store(&blocker.go_on, 0);
    unsigned children = 0;
    weft_spec spec = { .body = blocker_task, .state = &children, .state_size = sizeof children };
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
    test_wait_for(&blocker.running, 1);
    struct parent state = { 0 };
    weft_spec waits = { .body = parent_task, .state = &state, .state_size = sizeof state };
    for (unsigned i = 0; i < 30; i++) {
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &waits), 0);
    }
    CHECK_EQ(stats_of(rt).inject_length, 30);
    CHECK_EQ(stats_of(rt).tasks_alive, 31);
    atomic_store(&blocker.go_on, 1);
    weft_runtime_destroy(rt);
}

/* A future that is always ready. */
static int ready_poll(weft_future *future)
{
    (void)future;
    return 0;
}

static bool ready_cancel(weft_future *future)
{
    (void)future;
    return true;
}

static const weft_future_ops ready_ops = { .poll = ready_poll, .cancel = ready_cancel };

static int greedy_task(weft_co *co, void *state)
{
    static weft_future ready = { &ready_ops };
    unsigned *left = state;
    int err;
    WEFT_BEGIN(co);
    while (*left > 0) {
        --*left;
        WEFT_AWAIT(co, err, &ready);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, 0);
}

static void budget_yields_are_counted(void)
{
    weft_runtime *rt = test_start(1);
    unsigned awaits = 128 * 10 + 1;
    weft_spec spec = { .body = greedy_task, .state = &awaits, .state_size = sizeof awaits };
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(test_join_soon(task), 0);
    test_wait_until_asleep(rt);
    CHECK_EQ(worker_stats_of(rt, 0).budget_yields, 10);
    CHECK_EQ(worker_stats_of(rt, 0).polls, 11);
    weft_runtime_destroy(rt);
}

static int busy_task(weft_co *co, void *state)
{
    (void)co;
    weft_time until = weft_now() + *(weft_time *)state;
    while (weft_now() < until) {
    }
    return 0;
}

/* Returns whether the times add up. They do not if the worker started late, or lost its core
 * between two clock reads. */
static bool times_add_up(void)
{
    int64_t created = wf_clock_now();
    weft_runtime *rt = test_start(1);
    test_wait_until_asleep(rt);
    test_wait_ns(60 * WEFT_MS);
    weft_time duration = 60 * WEFT_MS;
    weft_spec spec = { .body = busy_task, .state = &duration, .state_size = sizeof duration };
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(test_join_soon(task), 0);
    test_wait_until_asleep(rt);
    weft_worker_stats stats = worker_stats_of(rt, 0);
    int64_t wall = wf_clock_now() - created;
    int64_t sum = (int64_t)(stats.running_ns + stats.searching_ns + stats.parked_ns);
    CHECK_LE(sum, wall);
    CHECK_GE(stats.parked_ns, 55 * WEFT_MS);
    CHECK_GE(stats.running_ns, 60 * WEFT_MS);

    /* The current state counts while it lasts. */
    test_wait_ns(20 * WEFT_MS);
    CHECK_GE(worker_stats_of(rt, 0).parked_ns, stats.parked_ns + 20 * WEFT_MS);
    weft_runtime_shutdown(rt);
    stats = worker_stats_of(rt, 0);
    test_wait_ns(WEFT_MS);
    weft_worker_stats later = worker_stats_of(rt, 0);
    CHECK_EQ(later.running_ns, stats.running_ns);
    CHECK_EQ(later.searching_ns, stats.searching_ns);
    CHECK_EQ(later.parked_ns, stats.parked_ns);
    weft_runtime_destroy(rt);
    return sum >= wall - wall / 5;
}

/*
 * Goal:   the times that a worker counts as running, searching and parked add up to wall time.
 * Method: a worker sleeps for a while and computes for a while. The sum of its times is
 *         compared with the clock, and each of the two must show.
 */
static void state_times_add_up_to_wall_time(void)
{
    for (int i = 0; !times_add_up(); i++) {
        CHECK_LT(i, 100);
    }
}

static _Atomic(uint64_t) fork_begun;

/* Runs until its joiner waits for it. */
static void begin_and_hold(void *arg)
{
    weft_runtime *rt = arg;
    uint64_t waits;
    atomic_store(&fork_begun, 1);
    do {
        waits = worker_stats_of(rt, 0).fork_waits + worker_stats_of(rt, 1).fork_waits;
    } while (waits == 0);
}

static void wait_for_begin(void *arg)
{
    (void)arg;
    test_wait_for(&fork_begun, 1);
}

static int fork_one(void *arg)
{
    weft_join2(wait_for_begin, NULL, begin_and_hold, arg);
    return 0;
}

static void stolen_forks_are_counted(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, fork_one, rt), 0);
    weft_worker_stats first = worker_stats_of(rt, 0);
    weft_worker_stats second = worker_stats_of(rt, 1);
    CHECK_EQ(first.stolen_forks + second.stolen_forks, 1);
    CHECK_EQ(first.fork_waits + second.fork_waits, 1);
    /* The worker that waits is not the one that stole the fork. */
    CHECK(first.stolen_forks != first.fork_waits);
    weft_runtime_destroy(rt);
}

static _Atomic(uint64_t) load_over;

static void check_monotonic(const weft_worker_stats *old, const weft_worker_stats *now)
{
    CHECK_GE(now->polls, old->polls);
    CHECK_GE(now->spawned, old->spawned);
    CHECK_GE(now->completed, old->completed);
    CHECK_GE(now->steals, old->steals);
    CHECK_GE(now->stolen_tasks, old->stolen_tasks);
    CHECK_GE(now->lifo_hits, old->lifo_hits);
    CHECK_GE(now->lifo_stolen, old->lifo_stolen);
    CHECK_GE(now->evictions, old->evictions);
    CHECK_GE(now->inject_fetches, old->inject_fetches);
    CHECK_GE(now->injected_tasks, old->injected_tasks);
    CHECK_GE(now->overflows, old->overflows);
    CHECK_GE(now->parks, old->parks);
    CHECK_GE(now->wakes, old->wakes);
    CHECK_GE(now->idle_wakes, old->idle_wakes);
    CHECK_EQ(now->unannounced_work, 0);
    CHECK_GE(now->inject_interval, 8);
    CHECK_LE(now->inject_interval, 255);
    CHECK_GE(now->average_poll_ns, 1);
    CHECK_LE(now->queue_length, 256);
    CHECK_LE(now->state, WEFT_WORKER_STOPPED);
}

static void *reader_main(void *arg)
{
    const weft_runtime *rt = arg;
    weft_worker_stats old[4] = { { 0 } };
    uint64_t spawned = 0;
    uint64_t reads = 0;
    while (atomic_load(&load_over) == 0 || reads == 0) {
        weft_stats stats = stats_of(rt);
        CHECK_GE(stats.tasks_spawned, spawned);
        CHECK_LE(stats.tasks_alive, stats.tasks_spawned);
        CHECK_LE(stats.parked, 4);
        CHECK_LE(stats.searching, 5); /* A submitter may count as searching for a moment. */
        spawned = stats.tasks_spawned;
        for (unsigned i = 0; i < 4; i++) {
            weft_worker_stats now = worker_stats_of(rt, i);
            check_monotonic(&old[i], &now);
            old[i] = now;
        }
        reads++;
    }
    return NULL;
}

/*
 * Goal:   a reader gets whole values that only grow while the runtime is busy.
 * Method: a thread reads as fast as it can while tasks are spawned from outside and from
 *         workers.
 */
static void concurrent_reader_sees_monotonic_counters(void)
{
    atomic_store(&load_over, 0);
    weft_runtime *rt = test_start(4);
    pthread_t reader;
    CHECK_EQ(pthread_create(&reader, NULL, reader_main, rt), 0);
    for (unsigned round = 0; round < test_scale(60); round++) {
        weft_task *tasks[20];
        for (unsigned i = 0; i < 20; i++) {
            struct parent state = { .children = 20, .yields = i };
            weft_spec spec = { .body = parent_task, .state = &state, .state_size = sizeof state };
            CHECK_EQ(weft_runtime_spawn(rt, &tasks[i], &spec), 0);
        }
        for (unsigned i = 0; i < 20; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
    }
    test_wait_until_asleep(rt);
    CHECK_EQ(stats_of(rt).tasks_alive, 0);
    atomic_store(&load_over, 1);
    CHECK_EQ(pthread_join(reader, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(stats_of_nonexistent_worker_return_einval),
    TEST(new_runtime_has_initial_stats),
    TEST(counters_match_known_workload),
    TEST(stats_show_queue_length_and_worker_state),
    TEST(searching_workers_are_counted),
    TEST(stats_show_inject_queue_length),
    TEST(budget_yields_are_counted),
    TEST(stolen_forks_are_counted),
    TEST(state_times_add_up_to_wall_time),
    TEST(concurrent_reader_sees_monotonic_counters),
})
