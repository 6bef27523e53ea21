/* SPDX-License-Identifier: MIT */
#include "sched/shell.h"

#include <stdatomic.h>

#include <weft.h>

#include "forks.h"
#include "rt.h"
#include "sched/fiber.h"
#include "sched/worker.h"
#include "test.h"

/* --- Forks of a poll -------------------------------------------------------------------- */

static int meet_in_poll(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_task *self = weft_task_current();
    for (unsigned i = 0; i < 100; i++) {
        test_meet();
        CHECK(weft_task_current() == self);
        CHECK(wf_fiber_current() == NULL);
    }
    return 5;
}

static void forks_of_poll_run_on_other_workers(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_join_soon(test_spawn(rt, meet_in_poll, NULL)), 5);
    weft_runtime_destroy(rt);
}

static int grow_in_poll(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    test_grow_many();
    return 0;
}

static void every_fork_runs_once(void)
{
    for (unsigned workers = 1; workers <= 16; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        weft_task *tasks[6];
        for (unsigned i = 0; i < 6; i++) {
            tasks[i] = test_spawn(rt, grow_in_poll, NULL);
        }
        for (unsigned i = 0; i < 6; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        weft_runtime_destroy(rt);
    }
}

/* --- Tasks that run meanwhile ----------------------------------------------------------- */

/* A fork that ends when the test releases it. */
struct held {
    _Atomic(uint64_t) begun;
    _Atomic(uint64_t) release;
    weft_task *task; /* the joiner */
};

static void hold(void *arg)
{
    struct held *held = arg;
    atomic_store(&held->begun, 1);
    /* Runs on a fiber, so it does not occupy its worker. */
    while (atomic_load(&held->release) == 0) {
        CHECK_EQ(weft_sleep(WEFT_US), 0);
    }
}

static int hold_in_poll(weft_co *co, void *state)
{
    (void)co;
    struct held *held = test_arg(state);
    weft_task *self = weft_task_current();
    int worker = weft_worker_current();
    weft_forked forked;
    weft_fork(&forked, hold, held);
    test_wait_for(&held->begun, 1);
    weft_fork_join(&forked);
    CHECK(weft_task_current() == self);
    CHECK_EQ(weft_worker_current(), worker);
    return 3;
}

static weft_task *spawn_on_0(weft_runtime *rt, weft_body_fn body, void *arg)
{
    weft_task *task;
    weft_spec spec = {
        .body = body, .state = &arg, .state_size = sizeof arg, .pinned = WEFT_PINNED_TO(0)
    };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    return task;
}

static int return_worker(void *arg)
{
    (void)arg;
    return weft_worker_current();
}

/*
 * Goal:   the worker of a poll that waits for its fork continues with its tasks.
 * Method: polls that are pinned to worker 0, each waiting in a join. Between them, tasks that
 *         only worker 0 can run, with and without a stack.
 */
static void worker_continues_while_its_poll_waits(void)
{
    enum {
        POLLS = 10,
    };
    weft_runtime *rt = test_start(2);
    struct held held[POLLS] = { 0 };
    for (unsigned i = 0; i < POLLS; i++) {
        held[i].task = spawn_on_0(rt, hold_in_poll, &held[i]);
        test_wait_for(&held[i].begun, 1);
        CHECK_EQ(test_join_soon(spawn_on_0(rt, test_return_7, NULL)), 7);
        weft_task *fiber;
        weft_fiber_spec spec = { .function = return_worker, .pinned = WEFT_PINNED_TO(0) };
        CHECK_EQ(weft_runtime_go(rt, &fiber, &spec), 0);
        CHECK_EQ(test_join_soon(fiber), 0);
    }
    /* In another order than they started, so that worker loops end up on each other's stacks. */
    for (unsigned i = 0; i < POLLS; i++) {
        unsigned which = i * 7 % POLLS;
        atomic_store(&held[which].release, 1);
        CHECK_EQ(test_join_soon(held[which].task), 3);
        CHECK_EQ(test_join_soon(spawn_on_0(rt, grow_in_poll, NULL)), 0);
    }
    weft_runtime_destroy(rt);
}

static int count_spares(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return (int)wf_worker_current()->loops.spares;
}

/* Each waiting poll has a loop. When the polls are over, only a few loops are kept. */
static void few_spare_loops_are_kept(void)
{
    enum {
        POLLS = 20,
    };
    weft_runtime *rt = test_start(2);
    static struct held held[POLLS];
    for (unsigned i = 0; i < POLLS; i++) {
        held[i] = (struct held){ 0 };
        held[i].task = spawn_on_0(rt, hold_in_poll, &held[i]);
        test_wait_for(&held[i].begun, 1);
    }
    for (unsigned i = 0; i < POLLS; i++) {
        atomic_store(&held[i].release, 1);
        CHECK_EQ(test_join_soon(held[i].task), 3);
    }
    CHECK_EQ(test_join_soon(spawn_on_0(rt, count_spares, NULL)), WF_LOOPS_KEPT);
    weft_runtime_destroy(rt);
}

static _Atomic(uint64_t) enough;
static _Atomic(uint64_t) begun;

static int compute_until_enough(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_store(&begun, 1);
    while (atomic_load(&enough) == 0) {
        test_grow(8);
    }
    return 0;
}

static int call_it_enough(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_store(&enough, 1);
    return 0;
}

/*
 * Goal:   tasks run while polls compute.
 * Method: the polls compute until a task has run, either from outside or pinned.
 */
static void forks_of_poll_let_tasks_run(void)
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned workers = 1 + i / 2;
        weft_runtime *rt = test_start(workers);
        atomic_store(&begun, 0);
        atomic_store(&enough, 0);
        weft_task *task = spawn_on_0(rt, compute_until_enough, NULL);
        test_wait_for(&begun, 1);
        if (i % 2 == 0) {
            CHECK_EQ(test_join_soon(spawn_on_0(rt, call_it_enough, NULL)), 0);
        } else {
            CHECK_EQ(test_join_soon(test_spawn(rt, call_it_enough, NULL)), 0);
        }
        CHECK_EQ(test_join_soon(task), 0);
        weft_runtime_destroy(rt);
    }
}

/* --- The task itself -------------------------------------------------------------------- */

static _Atomic(uint64_t) polls;

static int hold_in_future(weft_future *future)
{
    (void)future;
    static struct held held;
    if (atomic_fetch_add(&polls, 1) > 0) {
        return 9;
    }
    weft_forked forked;
    weft_fork(&forked, hold, &held);
    test_wait_for(&held.begun, 1);
    weft_waker_fire(weft_waker_current());
    atomic_store(&held.release, 1);
    weft_fork_join(&forked);
    return WEFT_PENDING;
}

static int await_in_poll(weft_co *co, void *state)
{
    static const weft_future_ops ops = { .poll = hold_in_future };
    static weft_future future = { .ops = &ops };
    static int result;
    (void)state;
    WEFT_BEGIN(co);
    WEFT_AWAIT(co, result, &future);
    WEFT_END(co, result);
}

static void wake_during_waiting_poll_is_kept(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_join_soon(test_spawn(rt, await_in_poll, NULL)), 9);
    CHECK_EQ(atomic_load(&polls), 2);
    weft_runtime_destroy(rt);
}

static int descend_in_poll(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    test_descend(test_scale(200000)); /* 20 MB */
    return 0;
}

static void recursion_in_poll_exceeds_stack(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_join_soon(test_spawn(rt, descend_in_poll, NULL)), 0);
    weft_runtime_destroy(rt);
}

static int grow_until_canceled(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&begun, 1);
    while (!weft_cancelled()) {
        test_grow(10);
    }
    return 0;
}

static void shutdown_waits_for_waiting_polls(void)
{
    for (unsigned i = 0; i < 20; i++) {
        weft_runtime *rt = test_start(1 + i % 4);
        atomic_store(&begun, 0);
        for (unsigned k = 0; k < 3; k++) {
            weft_detach(test_spawn(rt, grow_until_canceled, NULL));
        }
        test_wait_for(&begun, 1);
        weft_runtime_destroy(rt);
    }
}

TEST_MAIN({
    TEST(forks_of_poll_run_on_other_workers),
    TEST(every_fork_runs_once),
    TEST(worker_continues_while_its_poll_waits),
    TEST(few_spare_loops_are_kept),
    TEST(forks_of_poll_let_tasks_run),
    TEST(wake_during_waiting_poll_is_kept),
    TEST(recursion_in_poll_exceeds_stack),
    TEST(shutdown_waits_for_waiting_polls),
})
