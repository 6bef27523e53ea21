/* SPDX-License-Identifier: MIT */
#include "sched/await.h"

#include <errno.h>
#include <stdatomic.h>

#include <weft.h>

#include "gate.h"
#include "rt.h"
#include "sched/worker.h"
#include "test.h"

/* A future that is ready immediately. */
static int ready_poll(weft_future *future)
{
    (void)future;
    return 3;
}

static bool never_asked(weft_future *future)
{
    (void)future;
    CHECK(false);
    return true;
}

static const weft_future_ops ready_ops = { .poll = ready_poll, .cancel = never_asked };

static int await_ready(void *arg)
{
    uint64_t count = *(uint64_t *)arg;
    weft_future future = { .ops = &ready_ops };
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQ(weft_await(&future, WEFT_NEVER), 3);
    }
    return 0;
}

static void await_of_ready_future_does_not_suspend(void)
{
    weft_runtime *rt = test_start(1);
    uint64_t count = 100;
    weft_worker_stats before;
    weft_worker_stats after;
    CHECK_EQ(test_run(rt, await_ready, &count), 0);
    CHECK_EQ(weft_worker_stats_read(rt, 0, &before), 0);
    CHECK_EQ(test_run(rt, await_ready, &count), 0);
    CHECK_EQ(weft_worker_stats_read(rt, 0, &after), 0);
    CHECK_EQ(after.polls - before.polls, 1);
    weft_runtime_destroy(rt);
}

/* Counts its polls and yields to other tasks. */
static _Atomic(uint64_t) turns;
static _Atomic(uint64_t) stop;

static int take_turns(void *arg)
{
    (void)arg;
    while (atomic_load(&stop) == 0) {
        atomic_fetch_add(&turns, 1);
        CHECK_EQ(weft_yield(), 0);
    }
    return 0;
}

static int await_ready_beside(void *arg)
{
    uint64_t count = *(uint64_t *)arg;
    weft_task *task;
    CHECK_EQ(weft_go(&task, take_turns, NULL), 0);
    CHECK_EQ(await_ready(&count), 0);
    atomic_store(&stop, 1);
    return test_join(task);
}

static void ready_awaits_yield_after_budget(void)
{
    weft_runtime *rt = test_start(1);
    uint64_t count = 100 * WF_WORKER_BUDGET;
    CHECK_EQ(test_run(rt, await_ready_beside, &count), 0);
    CHECK_GE(atomic_load(&turns), 95);
    weft_worker_stats stats;
    CHECK_EQ(weft_worker_stats_read(rt, 0, &stats), 0);
    CHECK_GE(stats.budget_yields, 98);
    CHECK_LE(stats.budget_yields, 101);
    weft_runtime_destroy(rt);
}

/* A stackless function as a future, on a fiber. */
struct pair {
    struct gate gates[2];
    int sum;
};

static int pair_body(weft_co *co, void *state)
{
    struct pair *s = state;
    int err;
    WEFT_BEGIN(co);
    WEFT_AWAIT(co, err, &s->gates[0].future);
    s->sum += err;
    WEFT_YIELD(co, err);
    CHECK_EQ(err, 0);
    WEFT_AWAIT(co, err, &s->gates[1].future);
    s->sum += err;
    WEFT_END(co, s->sum);
}

static int await_body(void *arg)
{
    weft_co_future future;
    weft_co_init(&future, pair_body, arg);
    return weft_await(&future.future, WEFT_NEVER);
}

static void fiber_awaits_stackless_function(void)
{
    weft_runtime *rt = test_start(2);
    struct pair pair = { .gates = { gate_make(CANCEL_AT_ONCE), gate_make(CANCEL_AT_ONCE) } };
    weft_task *task = test_go(rt, await_body, &pair);
    test_wait_for(&pair.gates[0].polls, 1);
    gate_open(&pair.gates[0], 20);
    test_wait_for(&pair.gates[1].polls, 1);
    gate_open(&pair.gates[1], 22);
    CHECK_EQ(test_join_soon(task), 42);
    gate_fini(&pair.gates[0]);
    gate_fini(&pair.gates[1]);
    weft_runtime_destroy(rt);
}

/* --- Misuse, each in a child process --- */

static int await_in_poll(weft_future *future)
{
    (void)future;
    weft_future inner = { .ops = &ready_ops };
    return weft_await(&inner, WEFT_NEVER);
}

static const weft_future_ops nested_ops = { .poll = await_in_poll, .cancel = never_asked };

static int await_nested(void *arg)
{
    (void)arg;
    weft_future future = { .ops = &nested_ops };
    return weft_await(&future, WEFT_NEVER);
}

static void await_in_a_poll(void)
{
    weft_runtime *rt = test_start(1);
    (void)test_run(rt, await_nested, NULL);
}

static int awaiting_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_future future = { .ops = &ready_ops };
    return weft_await(&future, WEFT_NEVER);
}

static int yielding_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return weft_yield();
}

static int sleeping_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return weft_sleep(WEFT_MS);
}

static void run_body(weft_body_fn body)
{
    weft_runtime *rt = test_start(1);
    (void)test_join_soon(test_spawn(rt, body, NULL));
}

static void await_in_stackless_task(void)
{
    run_body(awaiting_body);
}

static void yield_in_stackless_task(void)
{
    run_body(yielding_body);
}

static void sleep_in_stackless_task(void)
{
    run_body(sleeping_body);
}

static int sleep_in_range(size_t first, size_t end, void *arg)
{
    (void)first;
    (void)end;
    (void)arg;
    return weft_sleep(1);
}

static int looping_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return weft_for(0, 1, sleep_in_range, NULL, NULL);
}

static void sleep_in_loop_of_body(void)
{
    run_body(looping_body);
}

static void wait_in_wrong_context_aborts_with_advice(void)
{
    CHECK_ABORTS(sleep_in_loop_of_body, "or call the algorithm on a fiber");
    CHECK_ABORTS(await_in_a_poll, "poll the inner future instead");
    CHECK_ABORTS(await_in_stackless_task, "weft_await: called on a worker outside of a fiber");
    CHECK_ABORTS(yield_in_stackless_task, "use WEFT_YIELD() in a body");
    CHECK_ABORTS(sleep_in_stackless_task, "await a weft_sleep_future in a body");
}

static void plain_thread_may_yield(void)
{
    CHECK_EQ(weft_yield(), 0);
}

TEST_MAIN({
    TEST(wait_in_wrong_context_aborts_with_advice),
    TEST(plain_thread_may_yield),
    TEST(await_of_ready_future_does_not_suspend),
    TEST(ready_awaits_yield_after_budget),
    TEST(fiber_awaits_stackless_function),
})
