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
#include "timing.h"

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

static int end_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&begun, 1);
    return 7;
}

/* Stays pending forever without awaiting anything. */
static int wait_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&begun, 1);
    return WEFT_PENDING;
}

/* Occupies its worker until the gate opens. */
static int gate_task(weft_co *co, void *state)
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

static int spawning_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_spec spec = { .body = end_task };
    weft_task *task;
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    weft_detach(task);
    return weft_spawn(NULL, &spec);
}

static void spawn_on_worker_needs_no_runtime_handle(void)
{
    weft_runtime *rt = test_start(2);
    close_gate();
    CHECK_EQ(test_join_soon(spawn(rt, spawning_task)), 0);
    test_wait_for(&begun, 2);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&begun), 2);
}

static int spawning_main(void *arg)
{
    (void)arg;
    weft_spec spec = { .body = end_task };
    weft_task *task;
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    return test_join_soon(task);
}

static void spawn_inside_run_needs_no_runtime_handle(void)
{
    CHECK_EQ(weft_run(NULL, spawning_main, NULL), 7);
}

static void join_that_times_out_keeps_handle(void)
{
    weft_runtime *rt = test_start(1);
    close_gate();
    weft_task *task = spawn(rt, gate_task);
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

static void finished_task_is_joined_immediately(void)
{
    weft_runtime *rt = test_start(1);
    for (unsigned i = 0; i < 3; i++) {
        weft_task *task = spawn(rt, end_task);
        while (!weft_task_is_done(task)) {
            (void)sched_yield();
        }
        int result = 0;
        if (i == 0) {
            CHECK_EQ(weft_try_join(task, &result), 0);
        } else if (i == 1) {
            CHECK_EQ(weft_join(task, &result, 0), 0); /* Past the deadline, but done. */
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
    self->err = weft_join(self->task, &self->result, test_deadline());
    return NULL;
}

/*
 * Goal:   a task has one joiner at a time. A second one gets WEFT_EJOINED.
 * Method: a thread joins. Once weft_try_join() reports it, a second join is tried.
 */
static void second_joiner_gets_ejoined(void)
{
    weft_runtime *rt = test_start(1);
    close_gate();
    struct joiner joiner = { .task = spawn(rt, gate_task) };
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

static void detached_task_continues(void)
{
    weft_runtime *rt = test_start(1);
    close_gate();
    atomic_store(&drops, 0);
    weft_spec spec = { .body = gate_task, .drop = count_drop };
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

static void retained_handle_can_query_cancel_and_detach(void)
{
    weft_runtime *rt = test_start(2);
    weft_task *task = spawn(rt, wait_task);
    weft_task *second = weft_task_retain(task);
    weft_task *third = weft_task_retain(second);
    CHECK(second == task);
    CHECK_EQ(weft_task_id(second), weft_task_id(task));
    weft_cancel(third);
    weft_detach(third);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    CHECK(weft_task_is_done(second));
    weft_runtime_destroy(rt);
    /* The handle is still valid. */
    CHECK(weft_task_is_done(second));
    weft_cancel(second);
    weft_detach(second);
}

static void cancel_after_end_has_no_effect(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task = spawn(rt, end_task);
    while (!weft_task_is_done(task)) {
        (void)sched_yield();
    }
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 7);
    weft_runtime_destroy(rt);
}

/* Decides its own result in spite of the cancel. */
static int stubborn_task(weft_co *co, void *state)
{
    (void)co;
    unsigned *polls = state;
    atomic_fetch_add(&begun, 1);
    if (!weft_cancelled()) {
        return WEFT_PENDING;
    }
    return ++*polls < 3 ? WEFT_YIELDED : 9;
}

static void stackless_task_may_ignore_cancel(void)
{
    weft_runtime *rt = test_start(1);
    close_gate();
    weft_task *task;
    weft_spec spec = { .body = stubborn_task, .state_size = sizeof(unsigned) };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    test_wait_for(&begun, 1);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 9);
    /* Three polls after the cancel, which may have arrived during the first poll. */
    CHECK_GE(atomic_load(&begun), 3);
    CHECK_LE(atomic_load(&begun), 4);
    weft_runtime_destroy(rt);
}

static int current_task(weft_co *co, void *state)
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

static void current_task_is_running_task(void)
{
    weft_runtime *rt = test_start(1);
    CHECK(weft_task_current() == NULL);
    CHECK(!weft_cancelled());
    weft_task *task;
    weft_spec spec = { .body = current_task, .name = "me" };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    int id = (int)weft_task_id(task);
    CHECK_EQ(test_join_soon(task), id);
    weft_runtime_destroy(rt);
}

static int shield_task(weft_co *co, void *state)
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
    /* The shield works a second time. */
    weft_shield_enter();
    WEFT_YIELD(co, err);
    CHECK_EQ(err, 0);
    weft_shield_leave();
    WEFT_END(co, 3);
}

static void nested_shields_defer_cancel_until_last_leave(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_join_soon(spawn(rt, shield_task)), 3);
    weft_runtime_destroy(rt);
}

struct shielded {
    weft_task *child;
    weft_join_future join;
    int result;
};

/* Awaits under a shield, then without one. */
static int shielded_await_task(weft_co *co, void *state)
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

static void cancel_does_not_end_shielded_await(void)
{
    weft_runtime *rt = test_start(2);
    for (unsigned i = 0; i < test_scale(200); i++) {
        close_gate();
        struct shielded state = { .child = spawn(rt, wait_task) };
        weft_task *child = weft_task_retain(state.child);
        weft_spec spec = { .body = shielded_await_task,
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

static void spawn_blocking_inside_run_needs_no_runtime_handle(void)
{
    int argument = 13;
    CHECK_EQ(weft_run(NULL, blocking_main, &argument), 13);
}

/* Misuse. Each case runs in its own child process. */

static void run_task(weft_body_fn body)
{
    (void)test_join_soon(spawn(test_start(1), body));
}

static int join_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_task *task;
    weft_spec spec = { .body = end_task };
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    return weft_join(task, NULL, WEFT_NEVER);
}

static void join_on_worker(void)
{
    run_task(join_task);
}

static int leave_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_shield_leave();
    return 0;
}

static void leave_without_shield(void)
{
    run_task(leave_task);
}

static int deep_task(weft_co *co, void *state)
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
    run_task(deep_task);
}

static int self_join_task(weft_co *co, void *state)
{
    static weft_join_future future;
    int err = 0;
    (void)state;
    WEFT_BEGIN(co);
    weft_join_init(&future, weft_task_retain(weft_task_current()), NULL);
    WEFT_AWAIT(co, err, &future.future);
    WEFT_END(co, err);
}

static void join_self(void)
{
    run_task(self_join_task);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(weft_shield_enter, "weft_shield_enter: no task runs here");
    CHECK_ABORTS(weft_shield_leave, "weft_shield_leave: no task runs here");
    CHECK_ABORTS(join_on_worker, "weft_join: called on a worker");
    CHECK_ABORTS(leave_without_shield, "weft_shield_leave: no shield is entered");
    CHECK_ABORTS(enter_too_many_shields, "weft_shield_enter: over 255 shields are nested");
    CHECK_ABORTS(join_self, "a task joins itself");
}

TEST_MAIN({
    TEST(misuse_aborts_with_message),
    TEST(spawn_on_worker_needs_no_runtime_handle),
    TEST(spawn_inside_run_needs_no_runtime_handle),
    TEST(join_that_times_out_keeps_handle),
    TEST(finished_task_is_joined_immediately),
    TEST(second_joiner_gets_ejoined),
    TEST(detached_task_continues),
    TEST(retained_handle_can_query_cancel_and_detach),
    TEST(cancel_after_end_has_no_effect),
    TEST(stackless_task_may_ignore_cancel),
    TEST(current_task_is_running_task),
    TEST(nested_shields_defer_cancel_until_last_leave),
    TEST(cancel_does_not_end_shielded_await),
    TEST(spawn_blocking_inside_run_needs_no_runtime_handle),
})
