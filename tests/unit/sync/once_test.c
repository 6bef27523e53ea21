/* SPDX-License-Identifier: MIT */
#include <weft/once.h>

#include <string.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

static weft_once once;
static uint64_t made;  /* plain; completion publishes it */
static uint64_t tries; /* plain; written by the running attempt only */

static void reset(void)
{
    memset(&once, 0, sizeof once);
    made = 0;
    tries = 0;
}

enum {
    MEMBERS = 12,
    FAILURES = 5,
};

/* The first FAILURES attempts fail. */
static int try_until_done(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    for (;;) {
        weft_once_begin_init(&self->ops[0], &once);
        WEFT_AWAIT(co, self->err, &self->ops[0].future);
        if (self->err == 0) {
            break;
        }
        CHECK_EQ(self->err, 1);
        CHECK_EQ(made, 0);
        tries++;
        WEFT_YIELD(co, self->err);
        if (tries > FAILURES) {
            made = 7;
            weft_once_end(&once, true);
        } else {
            weft_once_end(&once, false);
        }
    }
    self->sum = made;
    WEFT_END(co, 0);
}

static void check_made(uint64_t sum)
{
    CHECK_EQ(sum, 7 * MEMBERS);
    CHECK_EQ(tries, FAILURES + 1);
    CHECK(weft_once_is_done(&once));
}

static void one_caller_at_a_time_tries_until_done(void)
{
    for (uint64_t i = 0; i < crowd_rounds() / 20; i++) {
        crowd_run_all(MEMBERS, try_until_done, NULL, reset, check_made);
    }
}

static int fail_once(void *arg)
{
    (void)arg;
    tries++;
    return tries == 1 ? -55 : 0;
}

static void next_caller_tries_after_failure(void)
{
    reset();
    CHECK_EQ(weft_once_run(&once, fail_once, NULL, WEFT_NEVER), -55);
    CHECK(!weft_once_is_done(&once));
    CHECK_EQ(weft_once_run(&once, fail_once, NULL, WEFT_NEVER), 0);
    CHECK(weft_once_is_done(&once));
    CHECK_EQ(weft_once_run(&once, fail_once, NULL, WEFT_NEVER), 0);
    CHECK_EQ(tries, 2);
}

static int return_3(void *arg)
{
    (void)arg;
    return 3;
}

static void nonzero_result_is_failure(void)
{
    reset();
    CHECK_EQ(weft_once_run(&once, return_3, NULL, WEFT_NEVER), 3);
    CHECK(!weft_once_is_done(&once));
}

static int run_once(void *arg)
{
    (void)arg;
    return weft_once_run(&once, fail_once, NULL, WEFT_NEVER);
}

static void waiter_that_gives_up_leaves_attempt_to_others(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    CHECK_EQ(weft_once_begin(&once, WEFT_NEVER), 1);
    CHECK_EQ(weft_once_begin(&once, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_once_run(&once, fail_once, NULL, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(tries, 0);
    weft_task *first = test_go_first(rt, run_once, NULL);
    weft_task *second = test_go_first(rt, run_once, NULL);
    weft_task *third = test_go_first(rt, run_once, NULL);
    test_settle(rt);
    weft_cancel(first);
    CHECK_EQ(test_join_soon(first), WEFT_ECANCELED);
    weft_once_end(&once, false);
    CHECK_EQ(test_join_soon(second), -55);
    CHECK_EQ(test_join_soon(third), 0);
    weft_runtime_destroy(rt);
}

/* --- Once cell ------------------------------------------------------------------------------ */

static int make_pointer(void **value, void *arg)
{
    tries++;
    if (tries == 1) {
        return -ENOMEM;
    }
    *value = arg;
    return 0;
}

static int set_during_make(void **value, void *arg)
{
    weft_once_cell *cell = arg;
    CHECK_EQ(weft_once_cell_set(cell, &tries), -EBUSY);
    CHECK(weft_once_cell_get(cell) == NULL);
    *value = &made;
    CHECK(weft_once_cell_get(cell) == NULL);
    return 0;
}

static void once_cell_is_set_once(void)
{
    weft_once_cell cell = { { { 0 } }, NULL };
    void *value = &once;
    tries = 0;
    CHECK(weft_once_cell_get(&cell) == NULL);
    CHECK_EQ(weft_once_cell_get_or_make(&cell, make_pointer, &made, &value, WEFT_NEVER), -ENOMEM);
    CHECK(value == &once);
    CHECK_EQ(weft_once_cell_get_or_make(&cell, make_pointer, &made, &value, WEFT_NEVER), 0);
    CHECK(value == &made);
    CHECK(weft_once_cell_get(&cell) == &made);
    CHECK_EQ(weft_once_cell_set(&cell, &tries), -EEXIST);
    value = NULL;
    CHECK_EQ(weft_once_cell_get_or_make(&cell, make_pointer, &tries, &value, WEFT_NEVER), 0);
    CHECK(value == &made);
    CHECK_EQ(tries, 2);

    weft_once_cell other = { { { 0 } }, NULL };
    CHECK_EQ(weft_once_cell_set(&other, &tries), 0);
    CHECK(weft_once_cell_get(&other) == &tries);
    weft_once_cell third = { { { 0 } }, NULL };
    CHECK_EQ(weft_once_cell_get_or_make(&third, set_during_make, &third, &value, WEFT_NEVER), 0);
    CHECK(value == &made);
}

static void once_cell_wait_ends_at_deadline(void)
{
    weft_once_cell cell = { { { 0 } }, NULL };
    void *value = &once;
    tries = 1;
    CHECK_EQ(weft_once_begin(&cell.once, WEFT_NEVER), 1);
    weft_time soon = weft_after(WEFT_MS);
    CHECK_EQ(weft_once_cell_get_or_make(&cell, make_pointer, &made, &value, soon), WEFT_ETIMEDOUT);
    CHECK(value == &once);
    CHECK_EQ(tries, 1);
    weft_once_end(&cell.once, false);
    CHECK_EQ(weft_once_cell_get_or_make(&cell, make_pointer, &made, &value, soon), 0);
    CHECK(value == &made);
}

static void end_without_begin(void)
{
    reset();
    weft_once_end(&once, true);
}

static int run_again(void *arg)
{
    return weft_once_run(&once, run_again, arg, WEFT_NEVER);
}

static void run_inside_run(void)
{
    reset();
    (void)run_again(NULL);
}

/* The function may have moved to another worker when it runs again. */
static int yield_and_run_again(void *arg)
{
    CHECK_EQ(weft_yield(), 0);
    return run_again(arg);
}

static int run_in_fiber(void *arg)
{
    return weft_once_run(&once, yield_and_run_again, arg, WEFT_NEVER);
}

static void run_inside_run_of_fiber(void)
{
    reset();
    weft_runtime *rt = test_start(2);
    (void)test_run(rt, run_in_fiber, NULL);
}

static void run_inside_run_of_job(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, run_again, NULL), 0);
    CHECK_EQ(weft_join(job, NULL, WEFT_NEVER), 0);
}

static int await_begin(void *arg)
{
    weft_op op;
    (void)arg;
    weft_once_begin_init(&op, &once);
    return weft_await(&op.future, WEFT_NEVER);
}

static void await_inside_run(void)
{
    reset();
    CHECK_EQ(weft_once_run(&once, await_begin, NULL, WEFT_NEVER), 0);
}

static int make_again(void **value, void *arg)
{
    return weft_once_cell_get_or_make(arg, make_again, arg, value, WEFT_NEVER);
}

static void make_inside_make(void)
{
    weft_once_cell cell = { { { 0 } }, NULL };
    void *value;
    (void)make_again(&value, &cell);
}

static weft_once other_once;

static int run_other(void *arg)
{
    (void)arg;
    return weft_once_run(&other_once, fail_once, NULL, WEFT_NEVER);
}

static void function_can_run_another_once(void)
{
    reset();
    memset(&other_once, 0, sizeof other_once);
    CHECK_EQ(weft_once_run(&once, run_other, NULL, WEFT_NEVER), -55);
    CHECK_EQ(weft_once_run(&once, run_other, NULL, WEFT_NEVER), 0);
    CHECK_EQ(tries, 2);
}

static void misuse_aborts_with_message(void)
{
    static const char waits[] = "weft_once: its function waits for the same weft_once";
    CHECK_ABORTS(run_inside_run, waits);
    CHECK_ABORTS(run_inside_run_of_fiber, waits);
    CHECK_ABORTS(run_inside_run_of_job, waits);
    CHECK_ABORTS(await_inside_run, waits);
    CHECK_ABORTS(make_inside_make, waits);
    CHECK_ABORTS(end_without_begin, "weft_once_end: no call is in progress");
}

TEST_MAIN({
    TEST(one_caller_at_a_time_tries_until_done),
    TEST(next_caller_tries_after_failure),
    TEST(nonzero_result_is_failure),
    TEST(waiter_that_gives_up_leaves_attempt_to_others),
    TEST(once_cell_is_set_once),
    TEST(once_cell_wait_ends_at_deadline),
    TEST(function_can_run_another_once),
    TEST(misuse_aborts_with_message),
})
