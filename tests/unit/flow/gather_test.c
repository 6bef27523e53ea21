/* SPDX-License-Identifier: MIT */
#include <weft/gather.h>

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "../time/virtual.h"
#include "crowd.h"
#include "rt.h"
#include "test.h"

enum {
    TASKS = 5,
};

/* A task that returns its result once its gate opens, or an error when it is canceled. */
struct runner {
    weft_event gate;
    int result;
};

static struct runner runners[TASKS];
static weft_task *tasks[TASKS];

static int run_one(void *arg)
{
    struct runner *self = arg;
    int err = weft_event_wait(&self->gate, WEFT_NEVER);
    return err == 0 ? self->result : err;
}

/* One worker. All tasks wait when this returns. */
static weft_runtime *begin(void)
{
    weft_runtime *rt = test_start(1);
    memset(runners, 0, sizeof runners);
    for (int i = 0; i < TASKS; i++) {
        runners[i].result = i * 10;
        tasks[i] = test_go(rt, run_one, &runners[i]);
    }
    test_settle(rt);
    return rt;
}

/* Ends the tasks that are not joined yet. */
static void join_rest(void)
{
    for (unsigned i = 0; i < TASKS; i++) {
        weft_event_set(&runners[i].gate);
    }
    CHECK_EQ(weft_join_all(tasks, TASKS, NULL, WEFT_NEVER), 0);
}

static void check_all_are_joined(void)
{
    for (unsigned i = 0; i < TASKS; i++) {
        CHECK(tasks[i] == NULL);
    }
}

static void let_go(unsigned index)
{
    weft_event_set(&runners[index].gate);
}

/* --- Modes ------------------------------------------------------------------------------------ */

static int results[TASKS];

static int join_all(void *arg)
{
    (void)arg;
    return weft_join_all(tasks, TASKS, results, WEFT_NEVER);
}

static void join_all_waits_for_all_tasks(void)
{
    weft_runtime *rt = begin();
    weft_task *joiner = test_go_first(rt, join_all, NULL);
    for (unsigned i = TASKS; i-- > 0;) {
        test_settle(rt);
        CHECK_EQ(weft_try_join(joiner, NULL), -EAGAIN);
        let_go(i);
    }
    CHECK_EQ(test_join_soon(joiner), 0);
    for (int i = 0; i < TASKS; i++) {
        CHECK_EQ(results[i], i * 10);
    }
    check_all_are_joined();
    weft_runtime_destroy(rt);
}

/* The first error in task order, not in time. */
static void join_all_waits_for_all_and_returns_first_error(void)
{
    for (unsigned way = 0; way < 2; way++) {
        weft_runtime *rt = begin();
        weft_task *joiner = test_go_first(rt, join_all, NULL);
        runners[1].result = -EIO;
        runners[3].result = -EPIPE;
        for (unsigned i = 0; i < TASKS; i++) {
            let_go(way == 0 ? i : TASKS - 1 - i);
            test_settle(rt);
        }
        CHECK_EQ(test_join_soon(joiner), -EIO);
        CHECK_EQ(results[3], -EPIPE);
        CHECK_EQ(results[4], 40);
        check_all_are_joined();
        weft_runtime_destroy(rt);
    }
}

static int try_join_all(void *arg)
{
    (void)arg;
    return weft_try_join_all(tasks, TASKS, results, WEFT_NEVER);
}

static void try_join_all_cancels_others_after_error(void)
{
    weft_runtime *rt = begin();
    weft_task *joiner = test_go_first(rt, try_join_all, NULL);
    runners[2].result = -EIO;
    let_go(4);
    test_settle(rt);
    let_go(2);
    CHECK_EQ(test_join_soon(joiner), -EIO);
    CHECK_EQ(results[0], WEFT_ECANCELED);
    CHECK_EQ(results[1], WEFT_ECANCELED);
    CHECK_EQ(results[3], WEFT_ECANCELED);
    CHECK_EQ(results[4], 40);
    check_all_are_joined();
    weft_runtime_destroy(rt);
}

static int race(void *arg)
{
    return weft_race(tasks, TASKS, arg, WEFT_NEVER);
}

static void race_returns_first_task_that_ends(void)
{
    weft_runtime *rt = begin();
    int result = 0;
    runners[3].result = -EIO;
    weft_task *joiner = test_go_first(rt, race, &result);
    test_settle(rt);
    let_go(3);
    CHECK_EQ(test_join_soon(joiner), 3);
    CHECK_EQ(result, -EIO);
    check_all_are_joined();
    weft_runtime_destroy(rt);

    /* A caller that wants no result. */
    rt = begin();
    joiner = test_go_first(rt, race, NULL);
    let_go(2);
    CHECK_EQ(test_join_soon(joiner), 2);
    check_all_are_joined();
    weft_runtime_destroy(rt);
}

static int first_success(void *arg)
{
    return weft_first_success(tasks, TASKS, arg, WEFT_NEVER);
}

static void first_success_skips_failed_tasks(void)
{
    weft_runtime *rt = begin();
    int result = 0;
    runners[3].result = -EIO;
    weft_task *joiner = test_go_first(rt, first_success, &result);
    let_go(3);
    test_settle(rt);
    CHECK_EQ(weft_try_join(joiner, NULL), -EAGAIN);
    let_go(2);
    CHECK_EQ(test_join_soon(joiner), 2);
    CHECK_EQ(result, 20);
    check_all_are_joined();
    weft_runtime_destroy(rt);

    rt = begin();
    joiner = test_go_first(rt, first_success, &result);
    for (unsigned i = 0; i < TASKS; i++) {
        runners[i].result = -1 - (int)i;
        let_go(i);
        test_settle(rt);
    }
    CHECK_EQ(test_join_soon(joiner), -TASKS);
    check_all_are_joined();
    weft_runtime_destroy(rt);
}

static void join_many_of_no_tasks(void)
{
    CHECK_EQ(weft_join_all(NULL, 0, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_try_join_all(NULL, 0, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_race(NULL, 0, NULL, WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_first_success(NULL, 0, NULL, WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_race(tasks, (size_t)INT_MAX + 1, NULL, WEFT_NEVER), -EINVAL);

    /* All tasks have already been joined. */
    memset(tasks, 0, sizeof tasks);
    CHECK_EQ(weft_join_all(tasks, TASKS, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_try_join_all(tasks, TASKS, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_race(tasks, TASKS, NULL, WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_first_success(tasks, TASKS, NULL, WEFT_NEVER), -EINVAL);
}

/* --- Timeouts and cancels of the joiner ------------------------------------------------------- */

static void canceled_or_late_joiner_keeps_handles(void)
{
    weft_runtime *rt = begin();
    weft_task *joiner = test_go_first(rt, race, NULL);
    test_settle(rt);
    weft_cancel(joiner);
    CHECK_EQ(test_join_soon(joiner), WEFT_ECANCELED);

    /* A plain thread with a deadline. One task has been joined. */
    let_go(1);
    CHECK_EQ(weft_join_all(tasks, TASKS, results, weft_after(20 * WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK(tasks[1] == NULL);
    CHECK_EQ(results[1], 10);
    for (unsigned i = 0; i < TASKS; i++) {
        let_go(i);
    }
    CHECK_EQ(weft_join_all(tasks, TASKS, results, WEFT_NEVER), 0);
    CHECK_EQ(results[4], 40);
    check_all_are_joined();
    weft_runtime_destroy(rt);
}

/* A task ends with WEFT_ECANCELED after the deadline has passed and before the joiner runs. */
struct late_end {
    weft_time deadline;
    unsigned yields;
    int (*join)(weft_task **tasks, size_t count, int *results, weft_time deadline);
};

static int pass_deadline(void *arg)
{
    const struct late_end *late = arg;
    weft_clock_advance(late->deadline - weft_now());
    for (unsigned i = 0; i < late->yields; i++) {
        CHECK_EQ(weft_yield(), 0);
    }
    let_go(0);
    return 0;
}

static int join_0(void *arg)
{
    const struct late_end *late = arg;
    int result = 0;
    int err = late->join(tasks, 1, &result, late->deadline);
    if (err == WEFT_ETIMEDOUT) {
        CHECK(tasks[0] != NULL);
        CHECK_EQ(weft_join(tasks[0], &result, WEFT_NEVER), 0);
        tasks[0] = NULL;
    } else {
        CHECK_EQ(err, WEFT_ECANCELED);
        CHECK(tasks[0] == NULL);
    }
    return 0;
}

static void late_join_of_canceled_task_leaves_handle_or_returns_its_result(void)
{
    struct late_end late = { 0 };
    for (late.yields = 0; late.yields < 4; late.yields++) {
        for (unsigned mode = 0; mode < 3; mode++) {
            late.join = mode == 0   ? weft_join_all
                        : mode == 1 ? weft_try_join_all
                                    : weft_first_success;
            late.deadline = virtual_begin() + 10 * WEFT_MS;
            weft_runtime *rt = begin();
            runners[0].result = WEFT_ECANCELED;
            weft_task *joiner = virtual_go(rt, join_0, &late);
            virtual_settle(rt);
            weft_task *passer = virtual_go(rt, pass_deadline, &late);
            CHECK_EQ(test_join(joiner), 0);
            CHECK_EQ(test_join(passer), 0);
            join_rest();
            weft_runtime_destroy(rt);
            virtual_end();
        }
    }
}

static int join_2(void *arg)
{
    (void)arg;
    int result = 0;
    CHECK_EQ(weft_join(tasks[2], &result, WEFT_NEVER), 0);
    return result;
}

static void task_with_other_joiner_returns_ejoined(void)
{
    weft_runtime *rt = begin();
    weft_task *other = test_go_first(rt, join_2, NULL);
    test_settle(rt);
    CHECK_EQ(weft_join_all(tasks, TASKS, results, WEFT_NEVER), WEFT_EJOINED);
    let_go(2);
    CHECK_EQ(test_join_soon(other), 20);
    tasks[2] = NULL;
    for (unsigned i = 0; i < TASKS; i++) {
        let_go(i);
    }
    CHECK_EQ(weft_join_all(tasks, TASKS, NULL, WEFT_NEVER), 0);
    weft_runtime_destroy(rt);
}

/* --- One function, many calls ----------------------------------------------------------------- */

enum {
    ITEMS = 1000,
};

static int squares[ITEMS];
static atomic_uint running;
static atomic_uint most;
static atomic_uint calls;

static int square(size_t index, void *arg)
{
    size_t bad = *(size_t *)arg;
    unsigned now = atomic_fetch_add(&running, 1) + 1;
    unsigned before = atomic_load(&most);
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) {
    }
    int err = index % 7 == 0 ? weft_yield() : 0;
    squares[index] = (int)(index * index);
    atomic_fetch_sub(&running, 1);
    atomic_fetch_add(&calls, 1);
    return index == bad ? -EIO : err;
}

static int square_all(void *arg)
{
    size_t limit = *(size_t *)arg;
    size_t bad = ITEMS;
    atomic_store(&most, 0);
    atomic_store(&calls, 0);
    memset(squares, 0, sizeof squares);
    CHECK_EQ(weft_go_each(ITEMS, limit, square, &bad, WEFT_NEVER), 0);
    for (int i = 0; i < ITEMS; i++) {
        CHECK_EQ(squares[i], i * i);
    }
    CHECK_EQ(atomic_load(&calls), ITEMS);
    CHECK_LE(atomic_load(&most), limit != 0 ? limit : 16);
    bad = 30;
    atomic_store(&calls, 0);
    CHECK_EQ(weft_go_each(ITEMS, limit, square, &bad, WEFT_NEVER), -EIO);
    if (weft_runtime_workers(weft_runtime_current()) == 1) {
        CHECK_LE(atomic_load(&calls), 31); /* Others run until canceled. */
    }
    CHECK_EQ(weft_go_each(0, limit, square, &bad, WEFT_NEVER), 0);
    return 0;
}

static void go_each_calls_function_for_each_item(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    static size_t limits[] = { 0, 1, 3, 2 * ITEMS };
    for (unsigned w = 0; w < 3; w++) {
        weft_runtime *rt = test_start(workers[w]);
        for (unsigned i = 0; i < 4; i++) {
            CHECK_EQ(test_run(rt, square_all, &limits[i]), 0);
        }
        weft_runtime_destroy(rt);
    }
}

static weft_barrier all_here;

static int wait_at_barrier(size_t index, void *arg)
{
    (void)index;
    (void)arg;
    int result = weft_barrier_wait(&all_here, WEFT_NEVER);
    return result < 0 ? result : 0;
}

static int fill_barriers(void *arg)
{
    (void)arg;
    weft_barrier_init(&all_here, 3);
    CHECK_EQ(weft_go_each(9, 3, wait_at_barrier, NULL, WEFT_NEVER), 0);
    weft_barrier_init(&all_here, 16);
    CHECK_EQ(weft_go_each(16, 0, wait_at_barrier, NULL, WEFT_NEVER), 0);
    return 0;
}

static void go_each_runs_up_to_limit_calls_concurrently(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, fill_barriers, NULL), 0);
    weft_runtime_destroy(rt);
}

/* The function itself ignores the cancel. */
static int cancel_itself_at_3(size_t index, void *arg)
{
    (void)arg;
    atomic_fetch_add(&calls, 1);
    if (index == 3) {
        weft_cancel(weft_task_current());
    }
    return 0;
}

static int call_until_canceled(void *arg)
{
    (void)arg;
    atomic_store(&calls, 0);
    CHECK_EQ(weft_go_each(10, 1, cancel_itself_at_3, NULL, WEFT_NEVER), WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&calls), 4);
    return 0;
}

static void go_each_fiber_stops_when_canceled(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, call_until_canceled, NULL), 0);
    weft_runtime_destroy(rt);
}

static int sleep_for(size_t index, void *arg)
{
    (void)index;
    return weft_sleep(*(weft_time *)arg);
}

static int each_too_late(void *arg)
{
    return weft_go_each(100, 10, sleep_for, arg, weft_after(5 * WEFT_MS));
}

static int sleep_for_once(void *arg)
{
    return weft_sleep(*(weft_time *)arg);
}

static int call_in_time(void *arg)
{
    return weft_call_until(sleep_for_once, arg, weft_after(3600 * WEFT_S));
}

static int call_too_late(void *arg)
{
    return weft_call_until(sleep_for_once, arg, weft_after(5 * WEFT_MS));
}

static int return_7(void *arg)
{
    (void)arg;
    return 7;
}

static int call_return_7(void *arg)
{
    return weft_call_until(return_7, arg, WEFT_NEVER);
}

static int sleep_and_return_5(void *arg)
{
    CHECK_EQ(sleep_for_once(arg), WEFT_ECANCELED);
    return 5;
}

/* A time in the past is a deadline, too. A call that ends late can still return a result. */
static int call_late(void *arg)
{
    CHECK_EQ(weft_go_each(3, 0, sleep_for, arg, 0), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_call_until(sleep_for_once, arg, 0), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_call_until(sleep_and_return_5, arg, weft_after(2 * WEFT_MS)), 5);
    return 0;
}

static int call_at_shutdown(void *arg)
{
    CHECK_EQ(sleep_for_once(arg), WEFT_ECANCELED);
    weft_shield_enter();
    CHECK_EQ(weft_go_each(3, 0, sleep_for, arg, WEFT_NEVER), WEFT_ESHUTDOWN);
    CHECK_EQ(weft_call_until(return_7, NULL, WEFT_NEVER), WEFT_ESHUTDOWN);
    weft_shield_leave();
    return 0;
}

static void calls_at_shutdown_return_eshutdown(void)
{
    weft_runtime *rt = test_start(1);
    weft_time long_time = 3600 * WEFT_S;
    weft_task *task = test_go_first(rt, call_at_shutdown, &long_time);
    weft_runtime_shutdown(rt);
    CHECK_EQ(test_join_soon(task), 0);
    weft_runtime_destroy(rt);
}

static void deadline_cancels_calls(void)
{
    weft_runtime *rt = test_start(1);
    weft_time long_time = 3600 * WEFT_S;
    weft_time none = 0;
    CHECK_EQ(test_run(rt, each_too_late, &long_time), WEFT_ETIMEDOUT);
    CHECK_EQ(test_run(rt, call_too_late, &long_time), WEFT_ETIMEDOUT);
    CHECK_EQ(test_run(rt, call_in_time, &none), 0);
    CHECK_EQ(test_run(rt, call_return_7, NULL), 7);
    CHECK_EQ(test_run(rt, call_late, &long_time), 0);
    weft_task *task = test_go_first(rt, call_in_time, &long_time);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

static int join_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return weft_join_all(NULL, 0, NULL, WEFT_NEVER);
}

static void join_in_stackless_task(void)
{
    (void)test_join(test_spawn(test_start(1), join_task, NULL));
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(join_in_stackless_task, "weft_join_all: called on a worker outside of a fiber");
}

/* --- Functions that never suspend ------------------------------------------------------------- */

static _Atomic(uint64_t) endless_calls;
static _Atomic(uint64_t) turns;

static int count_call(size_t index, void *arg)
{
    (void)index;
    (void)arg;
    atomic_fetch_add(&endless_calls, 1);
    return 0;
}

static int count_turns(void *arg)
{
    (void)arg;
    while (weft_yield() == 0) {
        atomic_fetch_add(&turns, 1);
    }
    return 0;
}

static int call_without_end(void *deadline)
{
    return weft_go_each(SIZE_MAX, 0, count_call, NULL, *(const weft_time *)deadline);
}

static void go_each_that_never_waits_ends_at_deadline(void)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        weft_runtime *rt = test_start(workers);
        weft_clock_pause();
        weft_time deadline = weft_after(5 * WEFT_MS);
        atomic_store(&endless_calls, 0);
        weft_task *endless = test_go(rt, call_without_end, &deadline);
        test_wait_for(&endless_calls, 1);
        atomic_store(&turns, 0);
        weft_task *other = test_go(rt, count_turns, NULL);
        test_wait_for(&turns, 1);
        weft_clock_advance(5 * WEFT_MS);
        CHECK_EQ(test_join_soon(endless), WEFT_ETIMEDOUT);
        weft_clock_resume();
        weft_cancel(other);
        CHECK_EQ(test_join_soon(other), 0);
        weft_runtime_destroy(rt);
    }
}

static void go_each_that_never_waits_can_be_canceled(void)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        weft_runtime *rt = test_start(workers);
        weft_time deadline = WEFT_NEVER;
        atomic_store(&endless_calls, 0);
        weft_task *task = test_go(rt, call_without_end, &deadline);
        test_wait_for(&endless_calls, 1000);
        weft_cancel(task);
        CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
        weft_runtime_destroy(rt);
    }
}

TEST_MAIN({
    TEST(join_all_waits_for_all_tasks),
    TEST(join_all_waits_for_all_and_returns_first_error),
    TEST(try_join_all_cancels_others_after_error),
    TEST(race_returns_first_task_that_ends),
    TEST(first_success_skips_failed_tasks),
    TEST(join_many_of_no_tasks),
    TEST(canceled_or_late_joiner_keeps_handles),
    TEST(late_join_of_canceled_task_leaves_handle_or_returns_its_result),
    TEST(task_with_other_joiner_returns_ejoined),
    TEST(go_each_calls_function_for_each_item),
    TEST(go_each_runs_up_to_limit_calls_concurrently),
    TEST(go_each_fiber_stops_when_canceled),
    TEST(calls_at_shutdown_return_eshutdown),
    TEST(deadline_cancels_calls),
    TEST(go_each_that_never_waits_ends_at_deadline),
    TEST(go_each_that_never_waits_can_be_canceled),
    TEST(misuse_aborts_with_message),
})
