/* SPDX-License-Identifier: MIT */
/*
 * prepared: every awaiting call in its prepared form, used more than once.
 *
 * A future belongs to one task and to one branch of a select at a time; otherwise the process
 * aborts with a message. A weft_op or a weft_io can be awaited again after it has won, lost a
 * select or timed out, and then does the same again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

/* A deadline that has passed. */
#define PAST ((weft_time)1)

static const struct call_group *const groups[] = { &calls_sync, &calls_chan, &calls_flow,
                                                   &calls_time, &calls_io,   &calls_net };

enum {
    GROUPS = sizeof groups / sizeof groups[0],
};

static _Alignas(64) char state[CALL_STATE_SIZE];
static const struct call *subject;
static weft_future *future;

static bool is_chosen(const struct call *call)
{
    const char *only = getenv("WEFT_CALL");
    return only == NULL || strcmp(only, call->name) == 0;
}

/* Identifies the row in case of a failure. */
static void name_subject(void)
{
    if (getenv("WEFT_TEST_NAMES") != NULL) {
        (void)fprintf(stderr, "%s\n", subject->name);
    }
}

static void for_each_prepared(void (*check)(void))
{
    for (unsigned i = 0; i < GROUPS; i++) {
        for (size_t j = 0; j < groups[i]->count; j++) {
            subject = &groups[i]->calls[j];
            if (subject->prep != NULL && is_chosen(subject)) {
                check();
            }
        }
    }
}

static int prepare(void *arg)
{
    (void)arg;
    memset(state, 0, sizeof state);
    if (subject->setup != NULL) {
        subject->setup(state);
    }
    future = subject->prep(state);
    return 0;
}

static void start(void)
{
    calls_runtime = test_start(1);
    CHECK_EQ(test_run(calls_runtime, prepare, NULL), 0);
}

/* --- At the same time ------------------------------------------------------------------- */

static int await_it(void *arg)
{
    (void)arg;
    return weft_await(future, WEFT_NEVER);
}

static void await_twice(void)
{
    start();
    (void)calls_go(await_it, NULL);
    test_wait_until_asleep(calls_runtime);
    (void)calls_go(await_it, NULL);
    test_wait_until_asleep(calls_runtime);
}

static void check_two_tasks(void)
{
    if ((subject->flags & CALL_NEVER_WAITS) == 0) {
        name_subject();
        CHECK_ABORTS(await_twice, "weft_await: another task awaits this future already");
    }
}

static void future_that_two_tasks_await_aborts(void)
{
    for_each_prepared(check_two_tasks);
}

static int select_twice(void *arg)
{
    weft_branch branches[3] = { { .future = future }, { .future = NULL }, { .future = future } };
    (void)arg;
    return weft_select(branches, 3, 0, WEFT_NEVER);
}

static void run_select_twice(void)
{
    start();
    (void)test_run(calls_runtime, select_twice, NULL);
}

static void check_two_branches(void)
{
    name_subject();
    CHECK_ABORTS(run_select_twice, strcmp(subject->name, "weft_barrier_wait") == 0
                                       ? "cannot be a branch"
                                       : "weft_select: the operation of branch");
}

static void future_in_two_branches_aborts(void)
{
    for_each_prepared(check_two_branches);
}

/* --- One after another ------------------------------------------------------------------ */

static int lose_select(void *arg)
{
    weft_sleep_future sleep;
    weft_branch branches[2] = { { .future = future }, { .future = &sleep.future } };
    (void)arg;
    weft_sleep_init(&sleep, PAST, 0);
    return weft_select(branches, 2, WEFT_SELECT_ORDERED, WEFT_NEVER);
}

static int time_out(void *arg)
{
    (void)arg;
    return weft_await(future, PAST);
}

static int tear_down(void *arg)
{
    (void)arg;
    if (subject->teardown != NULL) {
        subject->teardown(state);
    }
    return 0;
}

static void succeed(void)
{
    subject->make_ready(state);
    int result = test_run(calls_runtime, await_it, NULL);
    if (result != subject->ready && (subject->also == 0 || result != subject->also)) {
        CHECK_EQ(result, subject->ready);
    }
    if (subject->undo != NULL) {
        subject->undo(state);
    }
}

/* Awaited again, it continues with the rest. */
static bool does_rest(void)
{
    return strstr(subject->name, "_exact") != NULL || strstr(subject->name, "_all") != NULL;
}

static void check_again(void)
{
    unsigned skipped = CALL_PREPARED_ANEW | CALL_NEVER_WAITS | CALL_READY_BEFORE;
    if ((subject->flags & skipped) != 0) {
        return;
    }
    name_subject();
    start();
    if (strcmp(subject->name, "weft_barrier_wait") != 0) {
        CHECK_EQ(test_run(calls_runtime, lose_select, NULL), 1);
    }
    CHECK_EQ(test_run(calls_runtime, time_out, NULL), WEFT_ETIMEDOUT);
    CHECK_EQ(test_run(calls_runtime, time_out, NULL), WEFT_ETIMEDOUT);
    succeed();
    if (!does_rest() && subject->undo != NULL) {
        CHECK_EQ(test_run(calls_runtime, time_out, NULL), WEFT_ETIMEDOUT);
        succeed();
    }
    CHECK_EQ(test_run(calls_runtime, tear_down, NULL), 0);
    weft_runtime_destroy(calls_runtime);
}

static void operation_after_loss_timeout_or_result_can_be_awaited_again(void)
{
    for_each_prepared(check_again);
}

TEST_MAIN({
    TEST(future_that_two_tasks_await_aborts),
    TEST(future_in_two_branches_aborts),
    TEST(operation_after_loss_timeout_or_result_can_be_awaited_again),
})
