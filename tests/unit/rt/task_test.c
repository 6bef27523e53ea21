/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

static weft_task *spawn(weft_runtime *rt, weft_body_fn body)
{
    weft_task *task;
    weft_spec spec = { .body = body };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    return task;
}

static _Atomic(uint64_t) begun;
static _Atomic(uint64_t) gate;
static _Atomic(uint64_t) drops;

static int end_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&begun, 1);
    return 7;
}

/* Waits for ever, without awaiting anything. */
static int wait_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&begun, 1);
    return WEFT_PENDING;
}

/* Keeps its worker until the gate opens. */
static int gate_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&begun, 1);
    test_wait_for(&gate, 1);
    return 5;
}

static void close_gate(void)
{
    atomic_store(&begun, 0);
    atomic_store(&gate, 0);
}

static int spawning_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_spec spec = { .body = end_body };
    weft_task *task;
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    weft_detach(task);
    return weft_spawn(NULL, &spec);
}

static void spawn_needs_no_handle_on_a_worker(void)
{
    weft_runtime *rt = test_start(2);
    close_gate();
    CHECK_EQ(test_join_soon(spawn(rt, spawning_body)), 0);
    test_wait_for(&begun, 2);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&begun), 2);
}

static int spawning_main(void *arg)
{
    (void)arg;
    weft_spec spec = { .body = end_body };
    weft_task *task;
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    return test_join_soon(task);
}

static void spawn_needs_no_handle_inside_run(void)
{
    CHECK_EQ(weft_run(NULL, spawning_main, NULL), 7);
}

static void a_join_waits_until_its_deadline_and_leaves_the_handle(void)
{
    weft_runtime *rt = test_start(1);
    close_gate();
    weft_task *task = spawn(rt, gate_body);
    int result = -99;
    weft_time deadline = weft_now() + 2 * WEFT_MS;
    CHECK_EQ(weft_join(task, &result, deadline), WEFT_ETIMEDOUT);
    CHECK_GE(weft_now(), deadline);
    CHECK_EQ(weft_join(task, &result, 0), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_try_join(task, &result), -EAGAIN);
    CHECK_EQ(result, -99);
    CHECK(!weft_task_is_done(task));
    atomic_store(&gate, 1);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    weft_runtime_destroy(rt);
}

static void a_task_that_is_done_is_joined_at_once(void)
{
    weft_runtime *rt = test_start(1);
    for (unsigned i = 0; i < 3; i++) {
        weft_task *task = spawn(rt, end_body);
        while (!weft_task_is_done(task)) {
            (void)sched_yield();
        }
        int result = 0;
        if (i == 0) {
            CHECK_EQ(weft_try_join(task, &result), 0);
        } else if (i == 1) {
            CHECK_EQ(weft_join(task, &result, 0), 0); /* Late, but done. */
        } else {
            CHECK_EQ(weft_try_join(task, NULL), 0);
            result = 7;
        }
        CHECK_EQ(result, 7);
    }
    weft_runtime_destroy(rt);
}

struct joiner {
    weft_task *task;
    int err;
    int result;
};

static void *join_in_thread(void *arg)
{
    struct joiner *self = arg;
    self->err = weft_join(self->task, &self->result, weft_now() + 60 * WEFT_S);
    return NULL;
}

/*
 * Goal:   one joiner at a time: a second one is told.
 * Method: a thread joins; once try_join reports it, a second join is tried.
 */
static void a_second_joiner_is_refused(void)
{
    weft_runtime *rt = test_start(1);
    close_gate();
    struct joiner joiner = { .task = spawn(rt, gate_body) };
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, join_in_thread, &joiner), 0);
    int result = -99;
    while (weft_try_join(joiner.task, &result) == -EAGAIN) {
        (void)sched_yield();
    }
    CHECK_EQ(weft_try_join(joiner.task, &result), WEFT_EJOINED);
    CHECK_EQ(weft_join(joiner.task, &result, WEFT_NEVER), WEFT_EJOINED);
    CHECK_EQ(result, -99);
    atomic_store(&gate, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(joiner.err, 0);
    CHECK_EQ(joiner.result, 5);
    weft_runtime_destroy(rt);
}

static void count_drop(void *state)
{
    (void)state;
    atomic_fetch_add(&drops, 1);
}

static void a_detached_task_runs_on(void)
{
    weft_runtime *rt = test_start(1);
    close_gate();
    atomic_store(&drops, 0);
    weft_spec spec = { .body = gate_body, .drop = count_drop };
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    test_wait_for(&begun, 1);
    weft_detach(task);
    weft_detach(NULL);
    atomic_store(&gate, 1);
    test_wait_for(&drops, 1);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&drops), 1);
}

static void further_handles_look_and_cancel_and_are_detached(void)
{
    weft_runtime *rt = test_start(2);
    weft_task *task = spawn(rt, wait_body);
    weft_task *second = weft_task_retain(task);
    weft_task *third = weft_task_retain(second);
    CHECK(second == task);
    CHECK_EQ(weft_task_id(second), weft_task_id(task));
    weft_cancel(third);
    weft_detach(third);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    CHECK(weft_task_is_done(second));
    weft_runtime_destroy(rt);
    /* Still valid. */
    CHECK(weft_task_is_done(second));
    weft_cancel(second);
    weft_detach(second);
}

static void a_cancel_after_the_end_changes_nothing(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task = spawn(rt, end_body);
    while (!weft_task_is_done(task)) {
        (void)sched_yield();
    }
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 7);
    weft_runtime_destroy(rt);
}

/* Has the last word, in spite of its cancellation. */
static int stubborn_body(weft_co *co, void *state)
{
    (void)co;
    unsigned *polls = state;
    atomic_fetch_add(&begun, 1);
    if (!weft_cancelled()) {
        return WEFT_PENDING;
    }
    return ++*polls < 3 ? WEFT_YIELDED : 9;
}

static void a_body_decides_what_to_do_about_its_cancellation(void)
{
    weft_runtime *rt = test_start(1);
    close_gate();
    weft_task *task;
    weft_spec spec = { .body = stubborn_body, .state_size = sizeof(unsigned) };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    test_wait_for(&begun, 1);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 9);
    /* Three after it was told, which may have been in its first. */
    CHECK_GE(atomic_load(&begun), 3);
    CHECK_LE(atomic_load(&begun), 4);
    weft_runtime_destroy(rt);
}

static int current_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_task *self = weft_task_current();
    CHECK(self != NULL);
    CHECK_EQ(strcmp(weft_task_name(self), "me"), 0);
    weft_detach(weft_task_retain(self));
    CHECK(!weft_cancelled());
    weft_cancel(self);
    CHECK(weft_cancelled());
    return (int)weft_task_id(self);
}

static void the_current_task_is_the_one_that_runs_here(void)
{
    weft_runtime *rt = test_start(1);
    CHECK(weft_task_current() == NULL);
    CHECK(!weft_cancelled());
    weft_task *task;
    weft_spec spec = { .body = current_body, .name = "me" };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    int id = (int)weft_task_id(task);
    CHECK_EQ(test_join_soon(task), id);
    weft_runtime_destroy(rt);
}

static int shield_body(weft_co *co, void *state)
{
    int err = 0;
    (void)state;
    WEFT_BEGIN(co);
    for (unsigned i = 0; i < 255; i++) {
        weft_shield_enter();
    }
    weft_cancel(weft_task_current());
    CHECK(!weft_cancelled());
    WEFT_YIELD(co, err);
    CHECK_EQ(err, 0);
    for (unsigned i = 0; i < 254; i++) {
        weft_shield_leave();
        CHECK(!weft_cancelled());
    }
    WEFT_YIELD(co, err);
    CHECK_EQ(err, 0);
    weft_shield_leave();
    CHECK(weft_cancelled());
    WEFT_YIELD(co, err);
    CHECK_EQ(err, WEFT_ECANCELED);
    /* And once more. */
    weft_shield_enter();
    WEFT_YIELD(co, err);
    CHECK_EQ(err, 0);
    weft_shield_leave();
    WEFT_END(co, 3);
}

static void a_shield_defers_the_cancellation_until_the_last_is_left(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_join_soon(spawn(rt, shield_body)), 3);
    weft_runtime_destroy(rt);
}

struct shielded {
    weft_task *child;
    weft_join_future join;
    int result;
};

/* Awaits under a shield, and then without one. */
static int shielded_await_body(weft_co *co, void *state)
{
    struct shielded *self = state;
    int err = 0;
    WEFT_BEGIN(co);
    weft_shield_enter();
    atomic_fetch_add(&begun, 1);
    weft_join_init(&self->join, self->child, &self->result);
    WEFT_AWAIT(co, err, &self->join.future);
    CHECK_EQ(err, 0);
    CHECK_EQ(self->result, WEFT_ECANCELED);
    CHECK(self->join.task == NULL);
    weft_shield_leave();
    WEFT_YIELD(co, err);
    WEFT_END(co, err);
}

static void an_await_under_a_shield_is_not_cut_short(void)
{
    weft_runtime *rt = test_start(2);
    for (unsigned i = 0; i < test_scale(200); i++) {
        close_gate();
        struct shielded state = { .child = spawn(rt, wait_body) };
        weft_task *child = weft_task_retain(state.child);
        weft_spec spec = { .body = shielded_await_body,
                           .state = &state,
                           .state_size = sizeof state };
        weft_task *task;
        CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
        test_wait_for(&begun, 2);
        weft_cancel(task);
        CHECK(!weft_task_is_done(task));
        weft_cancel(child);
        weft_detach(child);
        CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    }
    weft_runtime_destroy(rt);
}

static int blocking_function(void *arg)
{
    return *(int *)arg;
}

static int blocking_main(void *arg)
{
    weft_task *task;
    CHECK_EQ(weft_spawn_blocking(&task, blocking_function, arg), 0);
    CHECK(weft_task_name(task) == NULL);
    CHECK_NE(weft_task_id(task), 0);
    return test_join_soon(task);
}

static void spawn_blocking_needs_no_handle_inside_run(void)
{
    int argument = 13;
    CHECK_EQ(weft_run(NULL, blocking_main, &argument), 13);
}

/* Mistakes. Each runs in a child of its own. */

static void run_body(weft_body_fn body)
{
    (void)test_join_soon(spawn(test_start(1), body));
}

static int join_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_task *task;
    weft_spec spec = { .body = end_body };
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    return weft_join(task, NULL, WEFT_NEVER);
}

static void join_on_a_worker(void)
{
    run_body(join_body);
}

static int leave_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_shield_leave();
    return 0;
}

static void leave_without_a_shield(void)
{
    run_body(leave_body);
}

static int deep_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        weft_shield_enter();
    }
    return 0;
}

static void enter_too_many_shields(void)
{
    run_body(deep_body);
}

static int self_join_body(weft_co *co, void *state)
{
    static weft_join_future future;
    int err = 0;
    (void)state;
    WEFT_BEGIN(co);
    weft_join_init(&future, weft_task_retain(weft_task_current()), NULL);
    WEFT_AWAIT(co, err, &future.future);
    WEFT_END(co, err);
}

static void join_oneself(void)
{
    run_body(self_join_body);
}

static void mistakes_abort_with_a_sentence(void)
{
    CHECK_ABORTS(weft_shield_enter, "weft_shield_enter: no task runs here");
    CHECK_ABORTS(weft_shield_leave, "weft_shield_leave: no task runs here");
    CHECK_ABORTS(join_on_a_worker, "weft_join: called on a worker");
    CHECK_ABORTS(leave_without_a_shield, "weft_shield_leave: no shield is entered");
    CHECK_ABORTS(enter_too_many_shields, "weft_shield_enter: over 255 shields are nested");
    CHECK_ABORTS(join_oneself, "a task joins itself");
}

TEST_MAIN({
    TEST(mistakes_abort_with_a_sentence),
    TEST(spawn_needs_no_handle_on_a_worker),
    TEST(spawn_needs_no_handle_inside_run),
    TEST(a_join_waits_until_its_deadline_and_leaves_the_handle),
    TEST(a_task_that_is_done_is_joined_at_once),
    TEST(a_second_joiner_is_refused),
    TEST(a_detached_task_runs_on),
    TEST(further_handles_look_and_cancel_and_are_detached),
    TEST(a_cancel_after_the_end_changes_nothing),
    TEST(a_body_decides_what_to_do_about_its_cancellation),
    TEST(the_current_task_is_the_one_that_runs_here),
    TEST(a_shield_defers_the_cancellation_until_the_last_is_left),
    TEST(an_await_under_a_shield_is_not_cut_short),
    TEST(spawn_blocking_needs_no_handle_inside_run),
})
