/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "rt.h"
#include "test.h"
#include "timing.h"

static atomic_int given;
static atomic_int ended;

static void run(int (*function)(void *arg))
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned w = 0; w < 3; w++) {
        weft_runtime *rt = test_start(workers[w]);
        atomic_store(&given, 0);
        atomic_store(&ended, 0);
        CHECK_EQ(test_run(rt, function, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

/* The items that a generator produces. */
struct plan {
    int first;
    int count;
    int result; /* at the end */
};

static int count_up(weft_generator *to, void *arg)
{
    const struct plan *plan = arg;
    int err = 0;
    for (int i = 0; i < plan->count && err == 0; i++) {
        int item = plan->first + i;
        err = weft_give(to, &item);
        atomic_fetch_add(&given, err == 0);
    }
    atomic_fetch_add(&ended, 1);
    return err != 0 ? err : plan->result;
}

static weft_sequence *generate(struct plan *plan)
{
    return weft_generate(sizeof(int), count_up, plan);
}

static void add(void *value, const void *item, void *arg)
{
    (void)arg;
    *(int *)value += *(const int *)item;
}

static int pull_from_generator(void *arg)
{
    (void)arg;
    struct plan plan = { 1, 100, 0 };
    int sum = 0;
    CHECK_EQ(weft_sequence_fold(generate(&plan), &sum, add, NULL), 0);
    CHECK_EQ(sum, 5050);
    CHECK_EQ(atomic_load(&ended), 1);

    plan.result = -EIO;
    sum = 0;
    CHECK_EQ(weft_sequence_fold(generate(&plan), &sum, add, NULL), -EIO);
    CHECK_EQ(sum, 5050);

    plan.result = 5; /* Not an error. */
    sum = 0;
    CHECK_EQ(weft_sequence_fold(generate(&plan), &sum, add, NULL), 0);
    CHECK_EQ(sum, 5050);
    return 0;
}

static void generator_produces_items(void)
{
    run(pull_from_generator);
}

/* A generator produces no more items than are pulled, and ends when its sequence is dropped. */
static int pull_some(void *arg)
{
    (void)arg;
    struct plan plan = { 1, 1000000, 0 };
    int got[5] = { 0 };
    CHECK_EQ(weft_sequence_collect(weft_sequence_take(generate(&plan), 5), got, 5), 5);
    CHECK_EQ(got[4], 5);
    CHECK_LE(atomic_load(&given), 5);
    CHECK_EQ(atomic_load(&ended), 1);
    weft_sequence_drop(generate(&plan));
    CHECK_EQ(atomic_load(&ended), 2);
    return 0;
}

static void generator_ends_when_no_more_is_pulled(void)
{
    run(pull_some);
}

static int wait_and_give(weft_generator *to, void *arg)
{
    int err = weft_event_wait(arg, WEFT_NEVER);
    int item = 8;
    atomic_fetch_add(&ended, 1);
    return err == 0 ? weft_give(to, &item) : err;
}

static int pull_too_early(void *arg)
{
    (void)arg;
    weft_event happened = { { 0 } };
    int item = 0;
    weft_sequence *sequence = weft_generate(sizeof(int), wait_and_give, &happened);
    CHECK_EQ(weft_sequence_next(sequence, &item, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    weft_event_set(&happened);
    CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), 1);
    CHECK_EQ(item, 8);
    weft_sequence_drop(sequence);
    CHECK_EQ(atomic_load(&ended), 1);

    weft_event_reset(&happened);
    sequence = weft_generate(sizeof(int), wait_and_give, &happened);
    CHECK_EQ(weft_sequence_next(sequence, &item, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    weft_sequence_drop(sequence);
    CHECK_EQ(atomic_load(&ended), 2);
    return 0;
}

static void slow_generator_is_awaited_or_canceled(void)
{
    run(pull_too_early);
}

static int generate_at_shutdown(void *arg)
{
    (void)arg;
    static const int few[2] = { 1, 2 };
    struct plan plan = { 1, 100, 0 };
    CHECK_EQ(weft_sleep(3600 * WEFT_S), WEFT_ECANCELED);
    weft_shield_enter();
    CHECK(generate(&plan) == NULL);
    CHECK(weft_sequence_buffered(weft_sequence_of_array(few, 2, sizeof(int)), 3) == NULL);
    CHECK(weft_sequence_merge(weft_sequence_of_array(few, 2, sizeof(int)),
                              weft_sequence_of_array(few, 2, sizeof(int))) == NULL);
    weft_shield_leave();
    return 0;
}

static void failed_start_returns_null(void)
{
    weft_runtime *rt = test_start(1);
    atomic_store(&ended, 0);
    weft_task *task = test_go_first(rt, generate_at_shutdown, NULL);
    weft_runtime_shutdown(rt);
    CHECK_EQ(test_join_soon(task), 0);
    CHECK_EQ(atomic_load(&ended), 0);
    weft_runtime_destroy(rt);
}

static int pull_ahead(void *arg)
{
    (void)arg;
    struct plan plan = { 1, 100, 0 };
    weft_sequence *sequence = weft_sequence_buffered(generate(&plan), 7);
    int item = 0;
    CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), 1);
    CHECK_EQ(item, 1);
    weft_time deadline = test_deadline();
    while (atomic_load(&given) < 8 && weft_now() < deadline) {
        (void)weft_yield();
    }
    (void)weft_sleep(WEFT_MS);
    CHECK_LE(atomic_load(&given), 10); /* 7 buffered, 1 pulled, 1 held by each fiber. */
    CHECK_GE(atomic_load(&given), 8);
    int sum = 0;
    CHECK_EQ(weft_sequence_fold(sequence, &sum, add, NULL), 0);
    CHECK_EQ(sum, 5049);
    return 0;
}

static void buffered_stage_reads_ahead(void)
{
    run(pull_ahead);
}

static int merge_both(void *arg)
{
    (void)arg;
    struct plan low = { 1, 100, 0 };
    struct plan high = { 1001, 50, 0 };
    weft_sequence *sequence = weft_sequence_merge(generate(&low), generate(&high));
    int last[2] = { 0, 1000 };
    int item = 0;
    int count = 0;
    int result;
    while ((result = weft_sequence_next(sequence, &item, WEFT_NEVER)) == 1) {
        CHECK_EQ(item, ++last[item > 1000]);
        count++;
    }
    CHECK_EQ(result, 0);
    CHECK_EQ(count, 150);
    weft_sequence_drop(sequence);

    /* An error of one input ends the merge, even if the other input would never end. */
    low = (struct plan){ 1, 5, -EIO };
    high = (struct plan){ 1001, 1000000000, 0 };
    int sum = 0;
    sequence = weft_sequence_merge(generate(&low), generate(&high));
    CHECK_EQ(weft_sequence_fold(sequence, &sum, add, NULL), -EIO);
    return 0;
}

static void merge_yields_items_of_both_sequences(void)
{
    run(merge_both);
}

static struct plan endless = { 1, 1000000000, 0 };

static int pull_forever(void *arg)
{
    (void)arg;
    int sum = 0;
    weft_sequence *sequence =
        weft_sequence_buffered(weft_sequence_throttle(generate(&endless), 3600 * WEFT_S), 3);
    return weft_sequence_fold(sequence, &sum, add, NULL);
}

static void canceled_pull_ends_generator(void)
{
    weft_runtime *rt = test_start(1);
    atomic_store(&ended, 0);
    weft_task *task = test_go_first(rt, pull_forever, NULL);
    test_settle(rt);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&ended), 1);
    weft_runtime_destroy(rt);
}

static int merge_wrongly(void *arg)
{
    (void)arg;
    static const char few[4];
    weft_sequence_drop(
        weft_sequence_merge(weft_sequence_of_array(few, 1, 4), weft_sequence_of_array(few, 2, 2)));
    return 0;
}

static void merge_different_sizes(void)
{
    run(merge_wrongly);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(merge_different_sizes, "weft_sequence_merge: items of 4 and of 2 bytes");
}

TEST_MAIN({
    TEST(generator_produces_items),
    TEST(generator_ends_when_no_more_is_pulled),
    TEST(slow_generator_is_awaited_or_canceled),
    TEST(failed_start_returns_null),
    TEST(buffered_stage_reads_ahead),
    TEST(merge_yields_items_of_both_sequences),
    TEST(canceled_pull_ends_generator),
    TEST(misuse_aborts_with_message),
})
