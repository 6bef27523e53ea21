/* SPDX-License-Identifier: MIT */
#include <weft/future.h>

#include <pthread.h>
#include <sched.h>

#include <weft.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "gate.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

/* A deadline that has passed. */
#define PAST ((weft_time)1)

/* --- Futures to wait for ------------------------------------------------------- */

static int ready_poll(weft_future *future)
{
    (void)future;
    return 3;
}

static bool never_cancel(weft_future *future)
{
    (void)future;
    test_fail(__FILE__, __LINE__, "a future that is not pending is cancelled");
}

static const weft_future_ops ready_ops = { .poll = ready_poll, .cancel = never_cancel };
static weft_future ready = { &ready_ops };

/* --- Awaiting in a stackless task ------------------------------------------------- */

struct simple {
    struct gate gate;
    _Atomic(uint64_t) polls; /* of the stackless task */
    int result;
    int second;
};

static int simple_body(weft_co *co, void *state)
{
    struct simple *simple = test_arg(state);
    (void)atomic_fetch_add(&simple->polls, 1);
    WEFT_BEGIN(co);
    WEFT_AWAIT(co, simple->result, &simple->gate.future);
    WEFT_AWAIT(co, simple->second, &ready);
    WEFT_END(co, simple->result);
}

static void await_of_ready_future_does_not_wait(void)
{
    weft_runtime *rt = test_start(1);
    struct simple simple = { .gate = gate_make(CANCEL_AT_ONCE) };
    gate_open(&simple.gate, 11);
    CHECK_EQ(test_join(test_spawn(rt, simple_body, &simple)), 11);
    CHECK_EQ(simple.second, 3);
    CHECK_EQ(simple.polls, 1);
    weft_runtime_destroy(rt);
}

static void await_continues_when_future_wakes_task(void)
{
    weft_runtime *rt = test_start(1);
    struct simple simple = { .gate = gate_make(CANCEL_AT_ONCE) };
    weft_task *task = test_spawn(rt, simple_body, &simple);
    test_wait_for(&simple.gate.polls, 1);
    gate_open(&simple.gate, 12);
    CHECK_EQ(test_join(task), 12);
    CHECK_EQ(simple.polls, 2);
    CHECK_EQ(simple.gate.polls, 2);
    CHECK_EQ(simple.gate.cancels, 0);
    weft_runtime_destroy(rt);
}

static void cancel_ends_await_and_later_awaits_do_not_start(void)
{
    weft_runtime *rt = test_start(1);
    struct simple simple = { .gate = gate_make(CANCEL_AT_ONCE) };
    weft_task *task = test_spawn(rt, simple_body, &simple);
    test_wait_for(&simple.gate.polls, 1);
    weft_cancel(task);
    CHECK_EQ(test_join(task), WEFT_ECANCELED);
    CHECK_EQ(simple.gate.cancels, 1);
    CHECK_EQ(simple.gate.polls, 2);
    CHECK_EQ(simple.second, WEFT_ECANCELED);
    weft_runtime_destroy(rt);
    weft_waker_drop(simple.gate.waker);
}

static void await_waits_for_slow_cancel(void)
{
    weft_runtime *rt = test_start(1);
    struct simple simple = { .gate = gate_make(CANCEL_LATER) };
    weft_task *task = test_spawn(rt, simple_body, &simple);
    test_wait_for(&simple.gate.polls, 1);
    weft_cancel(task);
    test_wait_for(&simple.gate.cancels, 1);
    CHECK(!weft_task_is_done(task));
    CHECK_EQ(simple.polls, 1); /* The task's function does not run before that. */
    gate_open(&simple.gate, WEFT_ECANCELED);
    CHECK_EQ(test_join(task), WEFT_ECANCELED);
    CHECK_EQ(simple.gate.polls, 2);
    CHECK_EQ(simple.polls, 2);
    weft_runtime_destroy(rt);
}

static void result_that_beats_cancel_is_kept(void)
{
    weft_runtime *rt = test_start(1);
    struct simple simple = { .gate = gate_make(CANCEL_LATER) };
    weft_task *task = test_spawn(rt, simple_body, &simple);
    test_wait_for(&simple.gate.polls, 1);
    weft_cancel(task);
    test_wait_for(&simple.gate.cancels, 1);
    gate_open(&simple.gate, 55);
    CHECK_EQ(test_join(task), 55);
    CHECK_EQ(simple.second, WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

static int cancel_self_then_await_body(weft_co *co, void *state)
{
    struct simple *simple = test_arg(state);
    WEFT_BEGIN(co);
    weft_cancel(weft_task_current());
    WEFT_AWAIT(co, simple->result, &simple->gate.future);
    WEFT_END(co, simple->result);
}

static void await_after_cancel_returns_ecanceled_immediately(void)
{
    weft_runtime *rt = test_start(1);
    struct simple simple = { .gate = gate_make(CANCEL_AT_ONCE) };
    CHECK_EQ(test_join(test_spawn(rt, cancel_self_then_await_body, &simple)), WEFT_ECANCELED);
    CHECK_EQ(simple.gate.polls, 0);
    CHECK_EQ(simple.gate.cancels, 0);
    weft_runtime_destroy(rt);
}

static int stubborn_body(weft_co *co, void *state)
{
    (void)co;
    (void)atomic_fetch_add((_Atomic(uint64_t) *)test_arg(state), 1);
    return WEFT_PENDING;
}

static void stackless_task_that_ignores_cancel_is_ended(void)
{
    weft_runtime *rt = test_start(1);
    _Atomic(uint64_t) polls = 0;
    weft_task *task = test_spawn(rt, stubborn_body, (void *)&polls);
    test_wait_for(&polls, 1);
    weft_cancel(task);
    CHECK_EQ(test_join(task), WEFT_ECANCELED);
    CHECK_EQ(polls, 2); /* It was notified once. */
    weft_runtime_destroy(rt);
}

static int forget_await_body(weft_co *co, void *state)
{
    struct simple *simple = test_arg(state);
    int result = weft_await_poll(co, &simple->gate.future);
    CHECK_EQ(result, WEFT_PENDING);
    return 0;
}

static void end_with_await_pending(void)
{
    struct simple simple = { .gate = gate_make(CANCEL_AT_ONCE) };
    (void)test_join(test_spawn(test_start(1), forget_await_body, &simple));
}

static void stackless_task_that_ends_during_await_aborts(void)
{
    CHECK_ABORTS(end_with_await_pending, "returned while an await of its was pending");
}

/* --- Yielding ----------------------------------------------------------------------- */

struct turns {
    _Atomic(uint64_t) count;
    int log[8]; /* written by one worker */
};

static int turns_body(weft_co *co, void *state)
{
    struct turns *turns = test_arg(state);
    int error;
    WEFT_BEGIN(co);
    turns->log[atomic_fetch_add(&turns->count, 1)] = 1;
    WEFT_YIELD(co, error);
    CHECK_EQ(error, 0);
    turns->log[atomic_fetch_add(&turns->count, 1)] = 2;
    WEFT_END(co, 0);
}

static int plug_body(weft_co *co, void *state)
{
    (void)co;
    _Atomic(uint64_t) *steps = test_arg(state);
    (void)atomic_fetch_add(steps, 1);
    test_wait_for(steps, 2);
    return 0;
}

static void yield_lets_other_tasks_run_first(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.inject_interval_min = 65535; /* All three arrive in one batch. */
    config.inject_interval_max = 65535;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    struct turns turns = { .count = 0 };
    _Atomic(uint64_t) steps = 0;
    weft_task *plug = test_spawn(rt, plug_body, (void *)&steps);
    test_wait_for(&steps, 1);
    weft_task *tasks[3];
    for (int i = 0; i < 3; i++) {
        tasks[i] = test_spawn(rt, turns_body, &turns);
    }
    (void)atomic_fetch_add(&steps, 1);
    CHECK_EQ(test_join(plug), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(test_join(tasks[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(turns.log[i], i < 3 ? 1 : 2);
    }
    weft_runtime_destroy(rt);
}

static int yield_canceled_body(weft_co *co, void *state)
{
    int *error = test_arg(state);
    WEFT_BEGIN(co);
    weft_cancel(weft_task_current());
    WEFT_YIELD(co, *error);
    WEFT_END(co, *error);
}

static void yield_of_canceled_task_returns_ecanceled(void)
{
    weft_runtime *rt = test_start(1);
    int error = 0;
    CHECK_EQ(test_join(test_spawn(rt, yield_canceled_body, &error)), WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

/* --- Budget ----------------------------------------------------------------------------- */

struct spender {
    int awaits;
    int i;
    int result;
    int total;
    _Atomic(uint64_t) polls;
    weft_co_future inner;
};

static int spend_body(weft_co *co, void *state)
{
    struct spender *spender = state;
    WEFT_BEGIN(co);
    for (spender->i = 0; spender->i < spender->awaits; spender->i++) {
        WEFT_AWAIT(co, spender->result, &ready);
        CHECK_EQ(spender->result, 3);
    }
    WEFT_END(co, spender->i);
}

static int spend_task_body(weft_co *co, void *state)
{
    struct spender *spender = test_arg(state);
    (void)atomic_fetch_add(&spender->polls, 1);
    return spend_body(co, spender);
}

static int spend_nested_body(weft_co *co, void *state)
{
    struct spender *spender = test_arg(state);
    (void)atomic_fetch_add(&spender->polls, 1);
    WEFT_BEGIN(co);
    weft_co_init(&spender->inner, spend_body, spender);
    WEFT_AWAIT(co, spender->total, &spender->inner.future);
    WEFT_END(co, spender->total);
}

static uint64_t budget_yields(const weft_runtime *rt)
{
    weft_worker_stats stats;
    CHECK_EQ(weft_worker_stats_read(rt, 0, &stats), 0);
    return stats.budget_yields;
}

static void poll_is_cut_after_128_ready_awaits(void)
{
    static const struct {
        int awaits;
        uint64_t cuts;
    } rows[] = { { 1, 0 },   { 127, 0 }, { 128, 0 },  { 129, 1 },
                 { 256, 1 }, { 257, 2 }, { 1000, 7 }, { 1025, 8 } };
    weft_runtime *rt = test_start(1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct spender spender = { .awaits = rows[i].awaits };
        uint64_t before = budget_yields(rt);
        CHECK_EQ(test_join(test_spawn(rt, spend_task_body, &spender)), rows[i].awaits);
        CHECK_EQ(budget_yields(rt) - before, rows[i].cuts);
        CHECK_EQ(spender.polls, rows[i].cuts + 1);
    }
    weft_runtime_destroy(rt);
}

static void budget_is_per_task_not_per_nested_future(void)
{
    weft_runtime *rt = test_start(1);
    struct spender spender = { .awaits = 1000 };
    CHECK_EQ(test_join(test_spawn(rt, spend_nested_body, &spender)), 1000);
    CHECK_EQ(budget_yields(rt), 7);
    CHECK_EQ(spender.polls, 8);
    weft_runtime_destroy(rt);
}

static void plain_thread_has_no_budget(void)
{
    struct spender spender = { .awaits = 1000 };
    weft_co_future future;
    weft_co_init(&future, spend_body, &spender);
    CHECK_EQ(weft_await(&future.future, WEFT_NEVER), 1000);
}

static int spend_forever_body(weft_co *co, void *state)
{
    struct spender *spender = test_arg(state);
    (void)atomic_fetch_add(&spender->polls, 1);
    WEFT_BEGIN(co);
    do {
        WEFT_AWAIT(co, spender->result, &ready);
    } while (spender->result == 3);
    WEFT_END(co, spender->result);
}

static int note_body(weft_co *co, void *state)
{
    (void)co;
    (void)atomic_fetch_add((_Atomic(uint64_t) *)test_arg(state), 1);
    return 0;
}

static void task_with_always_ready_awaits_lets_others_run(void)
{
    weft_runtime *rt = test_start(1);
    struct spender spender = { 0 };
    _Atomic(uint64_t) noted = 0;
    weft_task *greedy = test_spawn(rt, spend_forever_body, &spender);
    test_wait_for(&spender.polls, 3);
    CHECK_EQ(test_join(test_spawn(rt, note_body, (void *)&noted)), 0);
    weft_cancel(greedy);
    CHECK_EQ(test_join(greedy), WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

/* --- Stackless functions as futures ------------------------------------------------------ */

/* Awaits its gate, then yields, then returns. */
struct leaf {
    struct gate gate;
    weft_co_future future;
    int result;
    int yielded;
    _Atomic(uint64_t) polls;
};

static int leaf_body(weft_co *co, void *state)
{
    struct leaf *leaf = state;
    (void)atomic_fetch_add(&leaf->polls, 1);
    WEFT_BEGIN(co);
    WEFT_AWAIT(co, leaf->result, &leaf->gate.future);
    WEFT_YIELD(co, leaf->yielded);
    WEFT_END(co, leaf->result);
}

static struct leaf make_leaf(enum cancel_mode mode)
{
    return (struct leaf){ .gate = gate_make(mode), .yielded = 1234 };
}

struct tree {
    struct leaf leaves[3];
    weft_co_future middle;
    int i;
    int sum;
    int result;
    _Atomic(uint64_t) polls;
};

/* Awaits one leaf after the other. */
static int sequence_body(weft_co *co, void *state)
{
    struct tree *tree = state;
    WEFT_BEGIN(co);
    weft_co_init(&tree->leaves[0].future, leaf_body, &tree->leaves[0]);
    WEFT_AWAIT(co, tree->result, &tree->leaves[0].future.future);
    tree->sum = tree->result;
    weft_co_init(&tree->leaves[1].future, leaf_body, &tree->leaves[1]);
    WEFT_AWAIT(co, tree->result, &tree->leaves[1].future.future);
    tree->sum = 10 * tree->sum + tree->result;
    weft_co_init(&tree->leaves[2].future, leaf_body, &tree->leaves[2]);
    WEFT_AWAIT(co, tree->result, &tree->leaves[2].future.future);
    WEFT_END(co, 10 * tree->sum + tree->result);
}

static int loop_body(weft_co *co, void *state)
{
    struct tree *tree = state;
    WEFT_BEGIN(co);
    for (tree->i = 0; tree->i < 3; tree->i++) {
        weft_co_init(&tree->leaves[tree->i].future, leaf_body, &tree->leaves[tree->i]);
        WEFT_AWAIT(co, tree->result, &tree->leaves[tree->i].future.future);
        tree->sum = 10 * tree->sum + tree->result;
    }
    WEFT_END(co, tree->sum);
}

static int nested_body(weft_co *co, void *state)
{
    struct tree *tree = state;
    WEFT_BEGIN(co);
    weft_co_init(&tree->middle, loop_body, tree);
    WEFT_AWAIT(co, tree->result, &tree->middle.future);
    WEFT_END(co, tree->result + 1000);
}

/* The same as a task, whose state is a pointer. */
static weft_body_fn tree_main;

static int tree_task_body(weft_co *co, void *state)
{
    struct tree *tree = test_arg(state);
    (void)atomic_fetch_add(&tree->polls, 1);
    return tree_main(co, tree);
}

static void tree_init(struct tree *tree, weft_body_fn body, enum cancel_mode mode)
{
    *tree = (struct tree){ .sum = 0 };
    for (int i = 0; i < 3; i++) {
        tree->leaves[i] = make_leaf(mode);
    }
    tree_main = body;
}

static void stackless_functions_compose_in_sequence_loop_and_nested(void)
{
    static const struct {
        weft_body_fn body;
        int expected;
    } rows[] = { { sequence_body, 12 }, { loop_body, 12 }, { nested_body, 1012 } };
    weft_runtime *rt = test_start(1);
    for (int row = 0; row < 3; row++) {
        struct tree tree;
        tree_init(&tree, rows[row].body, CANCEL_AT_ONCE);
        weft_task *task = test_spawn(rt, tree_task_body, &tree);
        for (int i = 0; i < 3; i++) {
            test_wait_for(&tree.leaves[i].gate.polls, 1);
            gate_open(&tree.leaves[i].gate, i);
        }
        CHECK_EQ(test_join(task), rows[row].expected);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(tree.leaves[i].yielded, 0);
            CHECK_EQ(tree.leaves[i].polls, 3); /* Start, after the gate, after the yield. */
        }
        /* Each poll of the task polls one leaf, or two when it moves to the next. */
        CHECK_EQ(tree.polls, 7);
    }
    weft_runtime_destroy(rt);
}

static void *open_leaves(void *arg)
{
    struct tree *tree = arg;
    for (int i = 0; i < 3; i++) {
        test_wait_for(&tree->leaves[i].gate.polls, 1);
        gate_open(&tree->leaves[i].gate, i + 4);
    }
    return NULL;
}

static void plain_thread_awaits_stackless_function(void)
{
    struct tree tree;
    tree_init(&tree, NULL, CANCEL_AT_ONCE);
    weft_co_future future;
    weft_co_init(&future, nested_body, &tree);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, open_leaves, &tree), 0);
    CHECK_EQ(weft_await(&future.future, WEFT_NEVER), 1456);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(tree.leaves[2].yielded, 0);
}

static void deadline_on_plain_thread_cancels_innermost_await(void)
{
    struct tree tree;
    tree_init(&tree, NULL, CANCEL_AT_ONCE);
    weft_co_future future;
    weft_co_init(&future, sequence_body, &tree);
    gate_open(&tree.leaves[0].gate, 1);
    weft_time deadline = weft_now() + WEFT_MS;
    CHECK_EQ(weft_await(&future.future, deadline), 10 * (10 + WEFT_ECANCELED) + WEFT_ECANCELED);
    CHECK_GE(weft_now(), deadline);
    CHECK_EQ(tree.leaves[1].gate.cancels, 1);
    CHECK_EQ(tree.leaves[1].result, WEFT_ECANCELED);
    CHECK_EQ(tree.leaves[1].yielded, WEFT_ECANCELED);
    CHECK_EQ(tree.leaves[2].polls, 0); /* The third never started. */
    weft_waker_drop(tree.leaves[1].gate.waker);
}

static void cancel_reaches_innermost_await(void)
{
    weft_runtime *rt = test_start(1);
    for (int slow = 0; slow < 2; slow++) {
        struct tree tree;
        tree_init(&tree, nested_body, slow == 1 ? CANCEL_LATER : CANCEL_AT_ONCE);
        weft_task *task = test_spawn(rt, tree_task_body, &tree);
        test_wait_for(&tree.leaves[0].gate.polls, 1);
        weft_cancel(task);
        test_wait_for(&tree.leaves[0].gate.cancels, 1);
        if (slow == 1) {
            CHECK(!weft_task_is_done(task));
            CHECK_EQ(tree.leaves[0].polls, 1);
            gate_open(&tree.leaves[0].gate, WEFT_ECANCELED);
        }
        /* Each later await returns it immediately, and the functions add it all up. */
        CHECK_EQ(test_join(task), 111 * WEFT_ECANCELED + 1000);
        CHECK_EQ(tree.leaves[0].result, WEFT_ECANCELED);
        CHECK_EQ(tree.leaves[0].yielded, WEFT_ECANCELED);
        CHECK_EQ(tree.leaves[1].polls, 0);
        CHECK_EQ(tree.leaves[1].gate.polls, 0);
        weft_waker_drop(atomic_exchange(&tree.leaves[0].gate.waker, NULL));
    }
    weft_runtime_destroy(rt);
}

static int yield_until_told_body(weft_co *co, void *state)
{
    int *error = state;
    WEFT_BEGIN(co);
    do {
        WEFT_YIELD(co, *error);
    } while (*error == 0);
    WEFT_END(co, *error);
}

static void yielding_stackless_function_does_not_delay_deadline(void)
{
    int error = 0;
    weft_co_future future;
    weft_co_init(&future, yield_until_told_body, &error);
    CHECK_EQ(weft_await(&future.future, weft_now() + WEFT_MS), WEFT_ETIMEDOUT);
    CHECK_EQ(error, WEFT_ECANCELED);
}

static int stubborn_leaf_body(weft_co *co, void *state)
{
    (void)co;
    (void)atomic_fetch_add(&((struct leaf *)state)->polls, 1);
    return WEFT_PENDING;
}

struct outer {
    struct leaf leaf;
    weft_body_fn leaf_body;
    int result;
    int after;
    int total;
    _Atomic(uint64_t) ended;
};

static int outer_body(weft_co *co, void *state)
{
    struct outer *outer = test_arg(state);
    WEFT_BEGIN(co);
    weft_co_init(&outer->leaf.future, outer->leaf_body, &outer->leaf);
    WEFT_AWAIT(co, outer->result, &outer->leaf.future.future);
    WEFT_AWAIT(co, outer->after, &ready);
    WEFT_END(co, outer->result);
}

static void nested_function_that_ignores_cancel_is_ended(void)
{
    weft_runtime *rt = test_start(1);
    struct outer outer = { .leaf = make_leaf(CANCEL_AT_ONCE), .leaf_body = stubborn_leaf_body };
    weft_task *task = test_spawn(rt, outer_body, &outer);
    test_wait_for(&outer.leaf.polls, 1);
    weft_cancel(task);
    CHECK_EQ(test_join(task), WEFT_ECANCELED);
    CHECK_EQ(outer.leaf.polls, 2);
    CHECK_EQ(outer.after, WEFT_ECANCELED);
    weft_runtime_destroy(rt);

    struct leaf leaf = make_leaf(CANCEL_AT_ONCE);
    weft_co_future future;
    weft_co_init(&future, stubborn_leaf_body, &leaf);
    CHECK_EQ(weft_await(&future.future, PAST), WEFT_ETIMEDOUT);
    CHECK_EQ(leaf.polls, 2);
}

static void resume_at_line_without_await(void)
{
    struct simple simple = { .gate = gate_make(CANCEL_AT_ONCE) };
    void *state = &simple;
    weft_co co = { .resume = 9999 };
    (void)simple_body(&co, &state);
}

static void resume_at_line_without_await_point_aborts(void)
{
    CHECK_ABORTS(resume_at_line_without_await, "a body stands at line 9999, where it has no await");
}

/* --- Shields -------------------------------------------------------------------------------- */

static int shielded_body(weft_co *co, void *state)
{
    struct outer *outer = test_arg(state);
    WEFT_BEGIN(co);
    weft_shield_enter();
    WEFT_AWAIT(co, outer->result, &outer->leaf.gate.future);
    weft_shield_leave();
    WEFT_AWAIT(co, outer->after, &ready);
    WEFT_END(co, outer->result);
}

static void shield_around_await_defers_cancel(void)
{
    weft_runtime *rt = test_start(1);
    struct outer outer = { .leaf = make_leaf(CANCEL_AT_ONCE) };
    weft_task *task = test_spawn(rt, shielded_body, &outer);
    test_wait_for(&outer.leaf.gate.polls, 1);
    weft_cancel(task);
    CHECK(!weft_task_is_done(task));
    gate_open(&outer.leaf.gate, 66);
    CHECK_EQ(test_join(task), 66);
    CHECK_EQ(outer.leaf.gate.cancels, 0);
    CHECK_EQ(outer.after, WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

/*
 * Awaits the function on a fiber, with a deadline that has passed. A function behind a shield is
 * not canceled, whether it awaits a future or only kept its waker.
 */
static int await_shielded_body(void *arg)
{
    weft_co_future future;
    weft_co_init(&future, shielded_body, &arg);
    return weft_await(&future.future, PAST);
}

static void shield_defers_deadline(void)
{
    weft_runtime *rt = test_start(1);
    struct outer outer = { .leaf = make_leaf(CANCEL_AT_ONCE) };
    weft_task *task = test_go(rt, await_shielded_body, &outer);
    test_wait_for(&outer.leaf.gate.polls, 2);
    gate_open(&outer.leaf.gate, 66);
    CHECK_EQ(test_join(task), 66);
    CHECK_EQ(outer.leaf.gate.cancels, 0);
    CHECK_EQ(outer.after, WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

struct recluse {
    _Atomic(weft_waker *) waker;
    _Atomic(uint64_t) polls;
};

static int recluse_body(weft_co *co, void *state)
{
    struct recluse *self = state;
    (void)co;
    uint64_t polls = atomic_fetch_add(&self->polls, 1) + 1;
    if (polls == 1) {
        weft_shield_enter();
        atomic_store(&self->waker, weft_waker_current());
    }
    if (polls < 3) {
        return WEFT_PENDING;
    }
    weft_shield_leave();
    return 7;
}

static int await_recluse(void *arg)
{
    weft_co_future future;
    weft_co_init(&future, recluse_body, arg);
    int result = weft_await(&future.future, PAST);
    CHECK(future.future.ops->cancel(&future.future)); /* It has ended, so this does nothing. */
    return result;
}

static void pending_function_behind_shield_is_not_ended(void)
{
    weft_runtime *rt = test_start(1);
    struct recluse recluse = { .waker = NULL };
    weft_task *task = test_go(rt, await_recluse, &recluse);
    test_wait_for(&recluse.polls, 2);
    weft_waker_fire(atomic_load(&recluse.waker));
    CHECK_EQ(test_join(task), 7);
    CHECK_EQ(recluse.polls, 3);
    weft_runtime_destroy(rt);
}

/* After it learns that it is canceled, it cleans up behind a shield. */
static int cleanup_leaf_body(weft_co *co, void *state)
{
    struct outer *outer = state;
    int error;
    WEFT_BEGIN(co);
    WEFT_AWAIT(co, error, &outer->leaf.gate.future);
    CHECK_EQ(error, WEFT_ECANCELED);
    weft_shield_enter();
    outer->leaf.gate = gate_make(CANCEL_AT_ONCE);
    (void)atomic_fetch_add(&outer->ended, 1);
    WEFT_AWAIT(co, outer->result, &outer->leaf.gate.future);
    weft_shield_leave();
    WEFT_YIELD(co, outer->after);
    WEFT_END(co, outer->result);
}

static int cleanup_body(weft_co *co, void *state)
{
    struct outer *outer = test_arg(state);
    WEFT_BEGIN(co);
    weft_co_init(&outer->leaf.future, cleanup_leaf_body, outer);
    WEFT_AWAIT(co, outer->total, &outer->leaf.future.future);
    WEFT_END(co, outer->total);
}

static void canceled_task_may_await_behind_shield(void)
{
    weft_runtime *rt = test_start(1);
    struct outer outer = { .leaf = make_leaf(CANCEL_AT_ONCE) };
    weft_task *task = test_spawn(rt, cleanup_body, &outer);
    test_wait_for(&outer.leaf.gate.polls, 1);
    weft_cancel(task);
    test_wait_for(&outer.ended, 1);
    test_wait_for(&outer.leaf.gate.polls, 1);
    CHECK(!weft_task_is_done(task));
    gate_open(&outer.leaf.gate, 44);
    CHECK_EQ(test_join(task), 44);
    CHECK_EQ(outer.leaf.gate.cancels, 0);
    CHECK_EQ(outer.after, WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

/* --- Wakers --- */

struct keeper {
    _Atomic(weft_waker *) waker;
    _Atomic(uint64_t) polls;
    uint64_t ends_at; /* number of polls */
};

static int keeper_body(weft_co *co, void *state)
{
    struct keeper *keeper = test_arg(state);
    (void)co;
    if (atomic_load(&keeper->waker) == NULL) {
        atomic_store(&keeper->waker, weft_waker_current());
    }
    return atomic_fetch_add(&keeper->polls, 1) + 1 < keeper->ends_at ? WEFT_PENDING : 0;
}

static void waker_can_be_cloned_woken_fired_and_dropped(void)
{
    weft_runtime *rt = test_start(1);
    struct keeper keeper = { .ends_at = 4 };
    weft_task *task = test_spawn(rt, keeper_body, &keeper);
    test_wait_for(&keeper.polls, 1);
    weft_waker *clone = weft_waker_clone(keeper.waker);
    weft_waker_wake(keeper.waker);
    test_wait_for(&keeper.polls, 2);
    weft_waker_fire(clone);
    test_wait_for(&keeper.polls, 3);
    weft_waker_drop(weft_waker_clone(keeper.waker)); /* Wakes no task. */
    weft_waker_drop(NULL);
    weft_waker_fire(keeper.waker);
    CHECK_EQ(test_join(task), 0);
    CHECK_EQ(keeper.polls, 4);
    weft_runtime_destroy(rt);
}

static void waker_is_harmless_after_its_task(void)
{
    weft_runtime *rt = test_start(1);
    struct keeper keeper = { .ends_at = 1 };
    CHECK_EQ(test_join(test_spawn(rt, keeper_body, &keeper)), 0);
    weft_waker_wake(keeper.waker);
    weft_waker_fire(weft_waker_clone(keeper.waker));
    weft_waker_fire(keeper.waker);
    CHECK_EQ(keeper.polls, 1);
    weft_runtime_destroy(rt);
}

static void waker_is_harmless_after_its_runtime(void)
{
    enum {
        KEPT = 3
    };
    struct keeper keepers[KEPT];
    weft_runtime *rt = test_start(2);
    for (int i = 0; i < KEPT; i++) {
        keepers[i] = (struct keeper){ .ends_at = i == 0 ? 1 : 1000 };
        weft_detach(test_spawn(rt, keeper_body, &keepers[i]));
        test_wait_for(&keepers[i].polls, 1);
    }
    weft_runtime_destroy(rt);
    for (int i = 0; i < KEPT; i++) {
        weft_waker *waker = atomic_load(&keepers[i].waker);
        weft_waker_wake(waker);
        weft_waker *clone = weft_waker_clone(waker);
        weft_waker_fire(waker);
        if (i == 2) {
            weft_waker_fire(clone); /* The last reference: frees the heap. */
        } else {
            weft_waker_drop(clone);
        }
    }
}

struct shooter {
    _Atomic(weft_waker *) waker;
    _Atomic(uint64_t) round;
    _Atomic(uint64_t) done;
    _Atomic(uint32_t) stop;
};

static void *shooter_main(void *arg)
{
    struct shooter *shooter = arg;
    for (uint64_t round = 1;; round++) {
        test_wait_for(&shooter->round, round);
        if (atomic_load(&shooter->stop) != 0) {
            return NULL;
        }
        weft_waker *waker = atomic_exchange(&shooter->waker, NULL);
        weft_waker_wake(waker);
        weft_waker_fire(waker);
        atomic_store(&shooter->done, round);
    }
}

/*
 * Goal:   firing a waker while its task ends and its runtime is destroyed is harmless.
 * Method: a thread fires it while the test shuts the runtime down and destroys it, many times.
 */
static void waker_may_be_fired_while_runtime_is_destroyed(void)
{
    struct shooter shooter = { .stop = 0 };
    struct test_rounds rounds = test_rounds_begin();
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, shooter_main, &shooter), 0);
    for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
        weft_runtime *rt = test_start(1);
        struct keeper keeper = { .ends_at = round % 2 == 0 ? 2 : 1000 };
        weft_detach(test_spawn(rt, keeper_body, &keeper));
        test_wait_for(&keeper.polls, 1);
        atomic_store(&shooter.waker, keeper.waker);
        atomic_store(&shooter.round, round);
        weft_runtime_destroy(rt);
        test_wait_for(&shooter.done, round);
    }
    atomic_store(&shooter.stop, 1);
    atomic_store(&shooter.round, UINT64_MAX);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST_MAIN({
    TEST(await_of_ready_future_does_not_wait),
    TEST(await_continues_when_future_wakes_task),
    TEST(cancel_ends_await_and_later_awaits_do_not_start),
    TEST(await_waits_for_slow_cancel),
    TEST(result_that_beats_cancel_is_kept),
    TEST(await_after_cancel_returns_ecanceled_immediately),
    TEST(stackless_task_that_ignores_cancel_is_ended),
    TEST(stackless_task_that_ends_during_await_aborts),
    TEST(yield_lets_other_tasks_run_first),
    TEST(yield_of_canceled_task_returns_ecanceled),
    TEST(poll_is_cut_after_128_ready_awaits),
    TEST(budget_is_per_task_not_per_nested_future),
    TEST(plain_thread_has_no_budget),
    TEST(task_with_always_ready_awaits_lets_others_run),
    TEST(stackless_functions_compose_in_sequence_loop_and_nested),
    TEST(plain_thread_awaits_stackless_function),
    TEST(deadline_on_plain_thread_cancels_innermost_await),
    TEST(yielding_stackless_function_does_not_delay_deadline),
    TEST(cancel_reaches_innermost_await),
    TEST(nested_function_that_ignores_cancel_is_ended),
    TEST(resume_at_line_without_await_point_aborts),
    TEST(shield_around_await_defers_cancel),
    TEST(shield_defers_deadline),
    TEST(pending_function_behind_shield_is_not_ended),
    TEST(canceled_task_may_await_behind_shield),
    TEST(waker_can_be_cloned_woken_fired_and_dropped),
    TEST(waker_is_harmless_after_its_task),
    TEST(waker_is_harmless_after_its_runtime),
    TEST(waker_may_be_fired_while_runtime_is_destroyed),
})
