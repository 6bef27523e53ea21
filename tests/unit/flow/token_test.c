/* SPDX-License-Identifier: MIT */
#include <weft/token.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "../base/asleep.h"
#include "crowd.h"
#include "rt.h"
#include "test.h"

static void cancel_reaches_descendants_only(void)
{
    weft_token root = { { 0 }, 0, { 0 } };
    weft_token left;
    weft_token right;
    weft_token below[3];
    weft_token_init(&left, &root);
    weft_token_init(&right, &root);
    weft_token_init(&below[0], &left);
    weft_token_init(&below[1], &below[0]);
    weft_token_init(&below[2], &left);
    CHECK(!weft_token_is_cancelled(&root));

    weft_token_cancel(&left);
    CHECK(!weft_token_is_cancelled(&root));
    CHECK(!weft_token_is_cancelled(&right));
    CHECK(weft_token_is_cancelled(&left));
    for (unsigned i = 0; i < 3; i++) {
        CHECK(weft_token_is_cancelled(&below[i]));
    }
    weft_token late;
    weft_token_init(&late, &below[1]);
    CHECK(weft_token_is_cancelled(&late));
    weft_token_fini(&late);

    weft_token_cancel(&root);
    weft_token_cancel(&root);
    CHECK(weft_token_is_cancelled(&right));
    CHECK_EQ(weft_token_wait(&right, 0), 0);
    weft_token_fini(&below[1]);
    weft_token_fini(&below[0]);
    weft_token_fini(&below[2]);
    weft_token_fini(&left);
    weft_token_fini(&right);
    weft_token_fini(&root);
}

/* --- Waiting ---------------------------------------------------------------------------------- */

static int wait_for_cancel(void *arg)
{
    return weft_token_wait(arg, WEFT_NEVER);
}

static void cancel_wakes_waiters_of_descendants(void)
{
    weft_runtime *rt = test_start(2);
    weft_token root = { { 0 }, 0, { 0 } };
    weft_token below;
    weft_token other;
    weft_token_init(&below, &root);
    weft_token_init(&other, &root);
    weft_task *first = test_go(rt, wait_for_cancel, &root);
    weft_task *second = test_go(rt, wait_for_cancel, &below);
    weft_task *third = test_go(rt, wait_for_cancel, &other);
    CHECK_EQ(weft_token_wait(&below, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    weft_cancel(third);
    CHECK_EQ(test_join_soon(third), WEFT_ECANCELED);
    weft_token_cancel(&below);
    CHECK_EQ(test_join_soon(second), 0);
    CHECK_EQ(weft_try_join(first, NULL), -EAGAIN);
    weft_token_cancel(&root);
    CHECK_EQ(test_join_soon(first), 0);
    weft_token_fini(&below);
    weft_token_fini(&other);
    weft_runtime_destroy(rt);
}

static void cancel_wakes_all_waiters_of_tree(void)
{
    weft_runtime *rt = test_start(1);
    weft_token root = { { 0 }, 0, { 0 } };
    weft_token below;
    weft_task *tasks[4];
    weft_token_init(&below, &root);
    for (unsigned i = 0; i < 4; i++) {
        tasks[i] = test_go_first(rt, wait_for_cancel, i % 2 == 0 ? &root : &below);
    }
    weft_token_cancel(&root);
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    weft_token_fini(&below);
    weft_runtime_destroy(rt);
}

static weft_token cancelled_later;

static int sleep_unless(void *arg)
{
    weft_time duration = *(weft_time *)arg;
    weft_sleep_future sleep;
    weft_sleep_init(&sleep, weft_after(duration), 0);
    return weft_token_await(&cancelled_later, &sleep.future, WEFT_NEVER);
}

static void token_await_returns_result_or_ecanceled(void)
{
    weft_runtime *rt = test_start(1);
    weft_time briefly = WEFT_MS;
    weft_time long_time = 3600 * WEFT_S;
    memset(&cancelled_later, 0, sizeof cancelled_later);
    CHECK_EQ(test_run(rt, sleep_unless, &briefly), 0);
    weft_task *task = test_go_first(rt, sleep_unless, &long_time);
    test_settle(rt);
    weft_token_cancel(&cancelled_later);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    CHECK_EQ(test_run(rt, sleep_unless, &briefly), WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

/* The token and the future are both ready. The cancel takes precedence. */
static void token_await_prefers_cancel_over_ready_future(void)
{
    weft_token token = { { 0 }, 0, { 0 } };
    weft_semaphore closed = WEFT_SEMAPHORE_INIT(1);
    weft_op op;
    weft_semaphore_acquire_init(&op, &closed, 2);
    CHECK_EQ(weft_token_await(&token, &op.future, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    weft_semaphore_close(&closed);
    CHECK_EQ(weft_token_await(&token, &op.future, WEFT_NEVER), WEFT_ECLOSED);
    weft_token_cancel(&token);
    for (unsigned i = 0; i < 64; i++) {
        CHECK_EQ(weft_token_await(&token, &op.future, WEFT_NEVER), WEFT_ECANCELED);
    }
}

/* --- Callbacks -------------------------------------------------------------------------------- */

static void count_call(void *arg)
{
    (*(unsigned *)arg)++;
}

static void callback_runs_once(void)
{
    weft_token root = { { 0 }, 0, { 0 } };
    weft_token below;
    weft_on_cancel calls[4] = { { { 0 } } };
    unsigned counts[4] = { 0 };
    weft_token_init(&below, &root);
    CHECK(!weft_on_cancel_remove(&calls[0]));
    weft_on_cancel_add(&calls[0], &root, count_call, &counts[0]);
    weft_on_cancel_add(&calls[1], &below, count_call, &counts[1]);
    weft_on_cancel_add(&calls[2], &below, count_call, &counts[2]);
    CHECK(weft_on_cancel_remove(&calls[2]));
    weft_token_cancel(&below);
    CHECK_EQ(counts[0], 0);
    CHECK_EQ(counts[1], 1);
    weft_on_cancel_add(&calls[3], &below, count_call, &counts[3]);
    CHECK_EQ(counts[3], 1);
    weft_token_cancel(&root);
    CHECK_EQ(counts[0], 1);
    CHECK_EQ(counts[1], 1);
    CHECK_EQ(counts[2], 0);
    CHECK(!weft_on_cancel_remove(&calls[0]));
    CHECK(!weft_on_cancel_remove(&calls[1]));
    CHECK(!weft_on_cancel_remove(&calls[2]));
    CHECK(!weft_on_cancel_remove(&calls[3]));
    weft_token_fini(&below);
}

static void cancel_runs_all_callbacks_of_tree(void)
{
    weft_token root = { { 0 }, 0, { 0 } };
    weft_token below;
    weft_on_cancel calls[6];
    unsigned count = 0;
    weft_token_init(&below, &root);
    for (unsigned i = 0; i < 6; i++) {
        weft_on_cancel_add(&calls[i], i % 2 == 0 ? &root : &below, count_call, &count);
    }
    weft_token_cancel(&root);
    CHECK_EQ(count, 6);
    for (unsigned i = 0; i < 6; i++) {
        CHECK(!weft_on_cancel_remove(&calls[i]));
    }
    weft_token_fini(&below);
}

/* A callback that runs until its remover waits for it. */
static struct {
    weft_token token;
    weft_on_cancel on_cancel;
    _Atomic(uint64_t) remover;
    _Atomic(uint64_t) runs;
    _Atomic(bool) has_ended;
} meeting;

static void run_until_remover_sleeps(void *arg)
{
    if (arg != NULL) { /* A removal by the callback itself does not wait for it. */
        CHECK(!weft_on_cancel_remove(arg));
    }
    atomic_store(&meeting.runs, 1);
    test_wait_for(&meeting.remover, 1);
    wait_until_asleep(atomic_load(&meeting.remover));
    atomic_store(&meeting.has_ended, true);
}

static void *remove_running_callback(void *arg)
{
    (void)arg;
    test_wait_for(&meeting.runs, 1);
    atomic_store(&meeting.remover, own_tid());
    CHECK(!weft_on_cancel_remove(&meeting.on_cancel));
    CHECK(atomic_load(&meeting.has_ended));
    return NULL;
}

static void remove_while_running(void *arg)
{
    pthread_t thread;
    memset(&meeting, 0, sizeof meeting);
    weft_on_cancel_add(&meeting.on_cancel, &meeting.token, run_until_remover_sleeps, arg);
    CHECK_EQ(pthread_create(&thread, NULL, remove_running_callback, NULL), 0);
    weft_token_cancel(&meeting.token);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void remove_waits_for_running_callback(void)
{
    remove_while_running(NULL);
}

static void remove_waits_for_callback_that_removed_itself(void)
{
    remove_while_running(&meeting.on_cancel);
}

static int sleep_long(void *arg)
{
    (void)arg;
    return weft_sleep(3600 * WEFT_S);
}

static void cancel_of_token_cancels_added_task(void)
{
    weft_runtime *rt = test_start(1);
    weft_token token = { { 0 }, 0, { 0 } };
    weft_on_cancel on_cancel;
    weft_task *task = test_go_first(rt, sleep_long, NULL);
    weft_on_cancel_add_task(&on_cancel, &token, task);
    test_settle(rt);
    weft_token_cancel(&token);
    CHECK(!weft_on_cancel_remove(&on_cancel));
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

/* Each round frees its callback after the removal. The canceler may be about to call it, or may
 * be calling it. */
static weft_token shared_root;
static atomic_uint_fast64_t called;
static atomic_uint_fast64_t not_called;

struct use {
    weft_token token;
    weft_on_cancel on_cancel;
    uint64_t calls;
};

static int add_and_remove(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < crowd_rounds(); i++) {
        struct use *use = calloc(1, sizeof *use);
        CHECK(use != NULL);
        weft_token_init(&use->token, &shared_root);
        weft_on_cancel_add(&use->on_cancel, &use->token, count_call, &use->calls);
        if (i % 3 == 0) {
            weft_token_cancel(&use->token);
        }
        bool is_in_time = weft_on_cancel_remove(&use->on_cancel);
        CHECK_EQ(use->calls, is_in_time ? 0 : 1);
        atomic_fetch_add(is_in_time ? &not_called : &called, 1);
        weft_token_fini(&use->token);
        memset(use, 0xff, sizeof *use);
        free(use);
        if (i % 64 == 0) {
            (void)weft_yield();
        }
    }
    return 0;
}

static int cancel_all(void *arg)
{
    for (unsigned i = 0; i < 200; i++) {
        (void)weft_yield();
    }
    weft_token_cancel(arg);
    return 0;
}

static void add_and_remove_race_with_cancel(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned w = 0; w < 3; w++) {
        weft_runtime *rt = test_start(workers[w]);
        weft_task *tasks[6];
        memset(&shared_root, 0, sizeof shared_root);
        for (unsigned i = 0; i < 5; i++) {
            tasks[i] = test_go(rt, add_and_remove, NULL);
        }
        tasks[5] = test_go(rt, cancel_all, &shared_root);
        for (unsigned i = 0; i < 6; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        weft_runtime_destroy(rt);
        weft_token_fini(&shared_root);
    }
    CHECK(atomic_load(&called) > 0);
    CHECK(atomic_load(&not_called) > 0);
}

/* --- Callbacks that remove callbacks ---------------------------------------------------------- */

/* Two trees whose callbacks run at the same time and remove each other. */
static struct crossing {
    weft_token trees[2];
    weft_on_cancel functions[2];
    _Atomic(uint64_t) began;
    _Atomic(uint64_t) returned;
} crossing;

static void remove_other(void *arg)
{
    size_t self = (size_t)arg;
    (void)atomic_fetch_add(&crossing.began, 1);
    test_wait_for(&crossing.began, 2);
    CHECK(!weft_on_cancel_remove(&crossing.functions[1 - self]));
    (void)atomic_fetch_add(&crossing.returned, 1);
}

static void *cancel_tree(void *arg)
{
    weft_token_cancel(arg);
    return NULL;
}

static void callbacks_that_remove_each_other_both_return(void)
{
    for (unsigned round = 0; round < 100; round++) {
        pthread_t thread;
        memset(&crossing, 0, sizeof crossing);
        for (size_t i = 0; i < 2; i++) {
            weft_on_cancel_add(&crossing.functions[i], &crossing.trees[i], remove_other, (void *)i);
        }
        CHECK_EQ(pthread_create(&thread, NULL, cancel_tree, &crossing.trees[0]), 0);
        weft_token_cancel(&crossing.trees[1]);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(atomic_load(&crossing.returned), 2);
        for (size_t i = 0; i < 2; i++) {
            CHECK(!weft_on_cancel_remove(&crossing.functions[i]));
            weft_token_fini(&crossing.trees[i]);
        }
    }
}

struct own_use {
    weft_on_cancel on_cancel;
    unsigned *calls;
};

static void remove_and_free_itself(void *arg)
{
    struct own_use *self = arg;
    (*self->calls)++;
    CHECK(!weft_on_cancel_remove(&self->on_cancel));
    CHECK(!weft_on_cancel_remove(&self->on_cancel));
    memset(self, 0xa5, sizeof *self);
    free(self);
}

static struct own_use *new_own_use(unsigned *calls)
{
    struct own_use *self = calloc(1, sizeof *self);
    CHECK(self != NULL);
    self->calls = calls;
    return self;
}

/* Before and after the cancel. The second callback is called by weft_on_cancel_add(). */
static void callback_may_remove_and_free_itself(void)
{
    weft_token token = { { 0 }, 0, { 0 } };
    unsigned calls = 0;
    struct own_use *self = new_own_use(&calls);
    weft_on_cancel_add(&self->on_cancel, &token, remove_and_free_itself, self);
    weft_token_cancel(&token);
    CHECK_EQ(calls, 1);
    self = new_own_use(&calls);
    weft_on_cancel_add(&self->on_cancel, &token, remove_and_free_itself, self);
    CHECK_EQ(calls, 2);
    weft_token_fini(&token);
}

static struct {
    weft_token token;
    weft_on_cancel first;
    weft_on_cancel second;
    weft_on_cancel third;
    unsigned counts[2];
} family;

static void change_others(void *arg)
{
    (void)arg;
    CHECK(weft_on_cancel_remove(&family.second));
    weft_on_cancel_add(&family.third, &family.token, count_call, &family.counts[1]);
    CHECK_EQ(family.counts[1], 1);
    CHECK(!weft_on_cancel_remove(&family.third));
}

static void callback_may_add_and_remove_others_of_its_tree(void)
{
    weft_on_cancel_add(&family.first, &family.token, change_others, NULL);
    weft_on_cancel_add(&family.second, &family.token, count_call, &family.counts[0]);
    weft_token_cancel(&family.token);
    CHECK_EQ(family.counts[0], 0);
    CHECK(!weft_on_cancel_remove(&family.first));
    CHECK(!weft_on_cancel_remove(&family.second));
    weft_token_fini(&family.token);
}

/* --- Loops and misuse ------------------------------------------------------------------------- */

static int cancel_in_loop(size_t first, size_t end, void *arg)
{
    (void)end;
    if (first == 0) {
        weft_token_cancel(arg);
    }
    return 0;
}

static void cancel_of_token_ends_parallel_loop(void)
{
    weft_token token = { { 0 }, 0, { 0 } };
    weft_par_options options = { .piece = 1, .stop = &token.stop };
    CHECK_EQ(weft_for(0, 1000000, cancel_in_loop, &token, &options), WEFT_ECANCELED);
}

static void end_token_with_children(void)
{
    weft_token root = { { 0 }, 0, { 0 } };
    weft_token child;
    weft_token_init(&child, &root);
    weft_token_fini(&root);
}

static void end_token_with_callbacks(void)
{
    weft_token root = { { 0 }, 0, { 0 } };
    weft_on_cancel on_cancel;
    unsigned count = 0;
    weft_on_cancel_add(&on_cancel, &root, count_call, &count);
    weft_token_fini(&root);
}

static void end_token_with_waiter(void)
{
    weft_runtime *rt = test_start(1);
    static weft_token root;
    (void)test_go_first(rt, wait_for_cancel, &root);
    test_settle(rt);
    weft_token_fini(&root);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(end_token_with_children, "weft_token_fini: the token has children");
    CHECK_ABORTS(end_token_with_callbacks, "weft_token_fini: the token has functions");
    CHECK_ABORTS(end_token_with_waiter, "weft_token_fini: somebody waits");
}

TEST_MAIN({
    TEST(cancel_reaches_descendants_only),
    TEST(cancel_wakes_waiters_of_descendants),
    TEST(cancel_wakes_all_waiters_of_tree),
    TEST(token_await_returns_result_or_ecanceled),
    TEST(token_await_prefers_cancel_over_ready_future),
    TEST(callback_runs_once),
    TEST(cancel_runs_all_callbacks_of_tree),
    TEST(remove_waits_for_running_callback),
    TEST(remove_waits_for_callback_that_removed_itself),
    TEST(cancel_of_token_cancels_added_task),
    TEST(add_and_remove_race_with_cancel),
    TEST(callbacks_that_remove_each_other_both_return),
    TEST(callback_may_remove_and_free_itself),
    TEST(callback_may_add_and_remove_others_of_its_tree),
    TEST(cancel_of_token_ends_parallel_loop),
    TEST(misuse_aborts_with_message),
})
