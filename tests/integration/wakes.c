/* SPDX-License-Identifier: MIT */
/*
 * Number of workers that new work wakes.
 */
#include <stdatomic.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

struct totals {
    uint64_t wakes;
    uint64_t idle_wakes;
    uint64_t unannounced;
};

static struct totals read_totals(weft_runtime *rt)
{
    struct totals totals = { 0 };
    for (unsigned i = 0; i < weft_runtime_workers(rt); i++) {
        weft_worker_stats stats;
        CHECK_EQ(weft_worker_stats_read(rt, i, &stats), 0);
        totals.wakes += stats.wakes;
        totals.idle_wakes += stats.idle_wakes;
        totals.unannounced += stats.unannounced_work;
    }
    return totals;
}

static int nothing_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return 0;
}

/*
 * Goal:   one task submitted to a sleeping runtime wakes at most two workers, and the chain of
 *         wakes stops there.
 * Method: eight parked workers, many tasks one after another, counters read when all workers are
 *         parked again. A worker that is counted as parked, but has yet to recheck the queues, may
 *         find the task by itself. So a single round may need no wake, but a hundred do.
 */
static void one_task_wakes_at_most_two_of_eight_workers(void)
{
    weft_runtime *rt;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 8;
    config.seed = test_seed();
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    uint64_t wakes = 0;
    for (int i = 0; i < 100; i++) {
        test_wait_until_asleep(rt);
        struct totals before = read_totals(rt);
        weft_task *task;
        CHECK_EQ(weft_runtime_spawn(rt, &task, &(weft_spec){ .body = nothing_body }), 0);
        CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
        test_wait_until_asleep(rt);
        struct totals after = read_totals(rt);
        CHECK_LE(after.wakes - before.wakes, 2);
        wakes += after.wakes - before.wakes;
    }
    CHECK_GE(wakes, 1);
    CHECK_EQ(read_totals(rt).unannounced, 0);
    weft_runtime_destroy(rt);
}

/* Counts itself and waits until all of them run at the same time. */
struct crowd {
    _Atomic(uint64_t) arrived;
    uint64_t expected;
};

static int crowd_body(weft_co *co, void *state)
{
    (void)co;
    struct crowd *crowd = *(struct crowd **)state;
    atomic_fetch_add(&crowd->arrived, 1);
    test_wait_for(&crowd->arrived, crowd->expected);
    return 0;
}

static int crowd_root_body(weft_co *co, void *state)
{
    (void)co;
    struct crowd *crowd = *(struct crowd **)state;
    weft_spec spec = { .body = crowd_body, .state = state, .state_size = sizeof crowd };
    for (uint64_t i = 0; i < crowd->expected; i++) {
        CHECK_EQ(weft_spawn(NULL, &spec), 0);
    }
    return 0;
}

/*
 * Goal:   pending work wakes as many workers as it can use.
 * Method: one task per worker, each of which ends only when all of them run at the same time. One
 *         task spawns them all, so the other workers must be woken one by one by the chain, or
 *         steal.
 */
static void pending_work_wakes_as_many_workers_as_it_can_use(void)
{
    weft_runtime *rt;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = test_workers(4);
    config.seed = test_seed();
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    /* One per round: a task of the previous round may still read its own. */
    static struct crowd crowds[20];
    for (int i = 0; i < 20; i++) {
        struct crowd *pointer = &crowds[i];
        pointer->expected = config.workers;
        weft_task *task;
        weft_spec spec = { .body = crowd_root_body,
                           .state = &pointer,
                           .state_size = sizeof pointer };
        CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
        test_wait_for(&pointer->arrived, pointer->expected);
        CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
        weft_stats stats;
        do {
            weft_runtime_stats(rt, &stats);
        } while (stats.tasks_alive > 0);
    }
    CHECK_EQ(read_totals(rt).unannounced, 0);
    weft_runtime_destroy(rt);
}

/* The park timeout is a safety net. It must never be the one to find work. */
static void park_timeout_finds_no_unannounced_work(void)
{
    weft_runtime *rt;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.park_timeout_ns = WEFT_MS;
    config.seed = test_seed();
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    for (int i = 0; i < 300; i++) {
        weft_task *task;
        CHECK_EQ(weft_runtime_spawn(rt, &task, &(weft_spec){ .body = nothing_body }), 0);
        CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    }
    CHECK_EQ(read_totals(rt).unannounced, 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(one_task_wakes_at_most_two_of_eight_workers),
    TEST(pending_work_wakes_as_many_workers_as_it_can_use),
    TEST(park_timeout_finds_no_unannounced_work),
})
