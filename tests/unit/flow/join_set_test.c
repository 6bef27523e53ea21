/* SPDX-License-Identifier: MIT */
#include <weft/join_set.h>

#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"

enum {
    TASKS = 6,
};

static struct runner {
    weft_event gate;
    int result;
} runners[TASKS];

static int run_one(void *arg)
{
    struct runner *self = arg;
    int err = weft_event_wait(&self->gate, WEFT_NEVER);
    return err == 0 ? self->result : err;
}

static void run(int (*function)(void *arg), void *arg, unsigned workers)
{
    weft_runtime *rt = test_start(workers);
    memset(runners, 0, sizeof runners);
    for (int i = 0; i < TASKS; i++) {
        runners[i].result = i % 2 == 0 ? i : -i;
    }
    CHECK_EQ(test_run(rt, function, arg), 0);
    weft_runtime_destroy(rt);
}

static int end_in_other_order(void *arg)
{
    static const unsigned order[TASKS] = { 3, 0, 5, 1, 4, 2 };
    (void)arg;
    weft_join_set set;
    weft_joined joined;
    CHECK_EQ(weft_join_set_begin(&set, NULL), 0);
    CHECK_EQ(weft_join_set_next(&set, &joined, WEFT_NEVER), -ENOENT);
    for (unsigned i = 0; i < TASKS; i++) {
        CHECK_EQ(weft_join_set_go(&set, run_one, &runners[i]), 0);
    }
    CHECK_EQ(weft_join_set_count(&set), TASKS);
    CHECK_EQ(weft_join_set_next(&set, &joined, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    for (unsigned i = 0; i < TASKS; i++) {
        weft_event_set(&runners[order[i]].gate);
        CHECK_EQ(weft_join_set_next(&set, &joined, WEFT_NEVER), 0);
        CHECK(joined.arg == &runners[order[i]]);
        CHECK_EQ(joined.result, runners[order[i]].result);
    }
    CHECK_EQ(weft_join_set_next(&set, &joined, WEFT_NEVER), -ENOENT);

    /* The set can be used again. */
    CHECK_EQ(weft_join_set_go(&set, run_one, &runners[1]), 0);
    CHECK_EQ(weft_join_set_next(&set, &joined, WEFT_NEVER), 0);
    CHECK_EQ(joined.result, -1);
    CHECK_EQ(weft_join_set_end(&set), 0);
    return 0;
}

static void results_arrive_in_completion_order(void)
{
    run(end_in_other_order, NULL, 1);
    run(end_in_other_order, NULL, 2);
}

static int cancel_some(void *arg)
{
    (void)arg;
    weft_join_set set;
    weft_joined joined;
    CHECK_EQ(weft_join_set_begin(&set, NULL), 0);
    for (unsigned i = 0; i < TASKS; i++) {
        CHECK_EQ(weft_join_set_go(&set, run_one, &runners[i]), 0);
    }
    weft_event_set(&runners[2].gate);
    CHECK_EQ(weft_join_set_next(&set, &joined, WEFT_NEVER), 0);
    CHECK_EQ(joined.result, 2);
    weft_join_set_cancel(&set);
    CHECK_EQ(weft_join_set_go(&set, run_one, &runners[2]), WEFT_ECANCELED);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(weft_join_set_next(&set, &joined, WEFT_NEVER), 0);
        CHECK_EQ(joined.result, WEFT_ECANCELED);
    }
    while (weft_scope_children(&set.scope) > 0) {
        CHECK_EQ(weft_yield(), 0);
    }
    CHECK_EQ(weft_join_set_count(&set), 2); /* Ended, but not reported yet. */
    CHECK_EQ(weft_join_set_end(&set), WEFT_ECANCELED);
    return 0;
}

static int begin_too_late(void *arg)
{
    (void)arg;
    weft_join_set set;
    weft_joined joined;
    weft_token cancelled = { { 0 }, 0, { 0 } };
    weft_scope_options options = { .token = &cancelled };
    weft_token_cancel(&cancelled);
    CHECK_EQ(weft_join_set_begin(&set, &options), 0);
    CHECK_EQ(weft_join_set_go(&set, run_one, &runners[0]), WEFT_ECANCELED);
    CHECK_EQ(weft_join_set_count(&set), 0);
    CHECK_EQ(weft_join_set_next(&set, &joined, WEFT_NEVER), -ENOENT);
    weft_sender_close(set.sender);
    CHECK_EQ(weft_try_recv(set.receiver, &joined), WEFT_ECLOSED); /* No slot is reserved. */
    CHECK_EQ(weft_join_set_end(&set), WEFT_ECANCELED);
    weft_token_fini(&cancelled);
    return 0;
}

static void join_set_honors_scope_options(void)
{
    run(begin_too_late, NULL, 1);
}

static void canceled_tasks_report_ecanceled(void)
{
    run(cancel_some, NULL, 1);
    run(cancel_some, NULL, 2);
}

static atomic_uint_fast64_t total;

static int yield_and_add(void *arg)
{
    uint64_t number = (uint64_t)(uintptr_t)arg;
    for (uint64_t i = 0; i < number % 5; i++) {
        (void)weft_yield();
    }
    atomic_fetch_add(&total, number);
    return (int)(number % 1000);
}

/* At most 7 tasks run at a time, and each result is reported once. */
static int run_many(void *arg)
{
    (void)arg;
    weft_scope_options options = { .limit = 7 };
    weft_join_set set;
    weft_joined joined;
    uint64_t count = crowd_rounds();
    uint64_t sum = 0;
    uint64_t told = 0;
    atomic_store(&total, 0);
    CHECK_EQ(weft_join_set_begin(&set, &options), 0);
    for (uint64_t i = 1; i <= count; i++) {
        CHECK_EQ(weft_join_set_go(&set, yield_and_add, (void *)(uintptr_t)i), 0);
        if (i % 3 == 0) {
            CHECK_EQ(weft_join_set_next(&set, &joined, WEFT_NEVER), 0);
            CHECK_EQ((uint64_t)joined.result, (uint64_t)(uintptr_t)joined.arg % 1000);
            sum += (uint64_t)(uintptr_t)joined.arg;
            told++;
        }
    }
    while (weft_join_set_next(&set, &joined, WEFT_NEVER) == 0) {
        sum += (uint64_t)(uintptr_t)joined.arg;
        told++;
    }
    CHECK_EQ(told, count);
    CHECK_EQ(sum, count * (count + 1) / 2);
    CHECK_EQ(atomic_load(&total), sum);
    return weft_join_set_end(&set);
}

static void each_result_is_reported_once(void)
{
    run(run_many, NULL, 1);
    run(run_many, NULL, 2);
    run(run_many, NULL, 8);
}

/* --- Concurrent callers ----------------------------------------------------------------------- */

struct caller {
    weft_join_set *set;
    unsigned results;
    int end;
};

static int call_next(void *arg)
{
    struct caller *self = arg;
    weft_joined joined;
    while ((self->end = weft_join_set_next(self->set, &joined, WEFT_NEVER)) == 0) {
        self->results++;
    }
    return 0;
}

/* One worker: two callers wait for the only task. */
static int wait_twice(void *arg)
{
    weft_join_set set;
    weft_scope callers;
    struct caller two[2] = { { &set, 0, 0 }, { &set, 0, 0 } };
    (void)arg;
    CHECK_EQ(weft_join_set_begin(&set, NULL), 0);
    CHECK_EQ(weft_join_set_go(&set, run_one, &runners[0]), 0);
    weft_scope_begin(&callers, NULL);
    CHECK_EQ(weft_scope_go(&callers, call_next, &two[0]), 0);
    CHECK_EQ(weft_scope_go(&callers, call_next, &two[1]), 0);
    CHECK_EQ(weft_yield(), 0);
    CHECK_EQ(weft_scope_children(&callers), 2);
    weft_event_set(&runners[0].gate);
    CHECK_EQ(weft_scope_end(&callers), 0);
    CHECK_EQ(two[0].results + two[1].results, 1);
    CHECK_EQ(two[0].end, -ENOENT);
    CHECK_EQ(two[1].end, -ENOENT);
    return weft_join_set_end(&set);
}

static void last_result_wakes_other_callers_with_enoent(void)
{
    run(wait_twice, NULL, 1);
}

/* The second task is not started, so the caller must not wait for it. */
static int wait_for_refused_task(void *arg)
{
    weft_join_set set;
    weft_scope callers;
    struct caller one = { &set, 0, 0 };
    weft_scope_options options = { .limit = 1 };
    (void)arg;
    CHECK_EQ(weft_join_set_begin(&set, &options), 0);
    CHECK_EQ(weft_join_set_go(&set, run_one, &runners[0]), 0);
    weft_scope_begin(&callers, NULL);
    CHECK_EQ(weft_scope_go(&callers, call_next, &one), 0);
    CHECK_EQ(weft_yield(), 0);
    weft_join_set_cancel(&set);
    CHECK_EQ(weft_join_set_go(&set, run_one, &runners[0]), WEFT_ECANCELED);
    CHECK_EQ(weft_scope_end(&callers), 0);
    CHECK_EQ(one.results, 1);
    CHECK_EQ(one.end, -ENOENT);
    CHECK_EQ(weft_join_set_end(&set), WEFT_ECANCELED);
    return 0;
}

static void task_that_cannot_be_started_is_not_waited_for(void)
{
    run(wait_for_refused_task, NULL, 1);
}

static int share_results(void *arg)
{
    enum {
        CALLERS = 4,
    };
    uint64_t count = (uint64_t)test_scale(300);
    weft_join_set set;
    struct caller callers[CALLERS];
    unsigned results = 0;
    (void)arg;
    for (unsigned round = 0; round < 20; round++) {
        weft_scope scope;
        CHECK_EQ(weft_join_set_begin(&set, NULL), 0);
        for (uint64_t i = 0; i < count; i++) {
            CHECK_EQ(weft_join_set_go(&set, yield_and_add, (void *)(uintptr_t)i), 0);
        }
        weft_scope_begin(&scope, NULL);
        for (unsigned i = 0; i < CALLERS; i++) {
            callers[i] = (struct caller){ &set, 0, 0 };
            CHECK_EQ(weft_scope_go(&scope, call_next, &callers[i]), 0);
        }
        CHECK_EQ(weft_scope_end(&scope), 0);
        for (unsigned i = 0; i < CALLERS; i++) {
            CHECK_EQ(callers[i].end, -ENOENT);
            results += callers[i].results;
        }
        CHECK_EQ(weft_join_set_end(&set), 0);
    }
    CHECK_EQ(results, 20 * count);
    return 0;
}

static void each_result_goes_to_one_of_several_callers(void)
{
    run(share_results, NULL, 1);
    run(share_results, NULL, 2);
    run(share_results, NULL, 8);
}

TEST_MAIN({
    TEST(results_arrive_in_completion_order),
    TEST(canceled_tasks_report_ecanceled),
    TEST(join_set_honors_scope_options),
    TEST(each_result_is_reported_once),
    TEST(last_result_wakes_other_callers_with_enoent),
    TEST(task_that_cannot_be_started_is_not_waited_for),
    TEST(each_result_goes_to_one_of_several_callers),
})
