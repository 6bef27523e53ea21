/* SPDX-License-Identifier: MIT */
/*
 * rt.c - public calls with checks.
 */
#include "rt.h"

#include <sched.h>
#include <stdatomic.h>

#include "test.h"
#include "timing.h"

weft_runtime *test_start(unsigned workers)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = workers;
    return test_start_with(&config);
}

weft_runtime *test_start_with(const weft_config *config)
{
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, config), 0);
    return rt;
}

weft_task *test_spawn(weft_runtime *rt, weft_body_fn body, void *arg)
{
    weft_task *task;
    weft_spec spec = { .body = body, .state = &arg, .state_size = sizeof arg };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    return task;
}

void *test_arg(void *state)
{
    return *(void **)state;
}

weft_task *test_go(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    weft_task *task;
    weft_fiber_spec spec = { .function = function, .arg = arg };
    CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
    return task;
}

int test_run(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    return test_join_soon(test_go(rt, function, arg));
}

/* Occupies its worker. */
static int occupy(void *arg)
{
    _Atomic(uint64_t) *left = arg;
    while (atomic_load(left) == 0) {
    }
    return 0;
}

void test_move(void)
{
    int before = weft_worker_current();
    _Atomic(uint64_t) left = 0;
    weft_task *guard;
    weft_fiber_spec spec = { .function = occupy,
                             .arg = &left,
                             .pinned = WEFT_PINNED_TO((unsigned)before) };
    CHECK_EQ(weft_go_with(&guard, &spec), 0);
    while (weft_worker_current() == before) {
        CHECK_EQ(weft_yield(), 0);
    }
    atomic_store(&left, 1);
    CHECK_EQ(test_join_soon(guard), 0);
}

static int join_until(weft_task *task, weft_time deadline)
{
    int result = 0;
    CHECK_EQ(weft_join(task, &result, deadline), 0);
    return result;
}

int test_join(weft_task *task)
{
    return join_until(task, WEFT_NEVER);
}

int test_join_soon(weft_task *task)
{
    return join_until(task, test_deadline());
}

int test_return_7(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return 7;
}

uint64_t test_wakes(weft_runtime *rt)
{
    uint64_t wakes = 0;
    for (unsigned i = 0; i < weft_runtime_workers(rt); i++) {
        weft_worker_stats stats;
        CHECK_EQ(weft_worker_stats_read(rt, i, &stats), 0);
        wakes += stats.wakes;
    }
    return wakes;
}

static uint64_t parks(weft_runtime *rt)
{
    weft_worker_stats stats;
    CHECK_EQ(weft_worker_stats_read(rt, 0, &stats), 0);
    return stats.parks;
}

/* While this runs, the worker is not asleep. */
static int count_parks(void *arg)
{
    *(uint64_t *)arg = parks(weft_runtime_current());
    return 0;
}

void test_settle(weft_runtime *rt)
{
    uint64_t before = 0;
    CHECK_EQ(weft_runtime_workers(rt), 1);
    CHECK_EQ(test_run(rt, count_parks, &before), 0);
    int64_t deadline = test_deadline();
    while (parks(rt) == before) {
        CHECK_LT(weft_now(), deadline);
        sched_yield();
    }
}

void test_wait_until_asleep(const weft_runtime *rt)
{
    int64_t deadline = test_deadline();
    weft_stats stats;
    do {
        CHECK_LT(weft_now(), deadline);
        sched_yield();
        weft_runtime_stats(rt, &stats);
    } while (stats.parked < stats.workers);
}

weft_task *test_go_first(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    weft_task *task = test_go(rt, function, arg);
    test_settle(rt);
    return task;
}
