/* SPDX-License-Identifier: MIT */
#include "flow/sequence.h"

#include <string.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

enum {
    NUMBERS = 20,
};

static const int numbers[NUMBERS] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
                                      10, 11, 12, 13, 14, 15, 16, 17, 18, 19 };

static weft_sequence *count_up(void)
{
    return weft_sequence_of_array(numbers, NUMBERS, sizeof(int));
}

static void add(void *value, const void *item, void *arg)
{
    *(int *)value += *(const int *)item * (arg != NULL ? *(int *)arg : 1);
}

static int count_to_5(void *item, void *arg)
{
    (*(int *)arg)++;
    return *(int *)item == 4 ? -EIO : 1; /* A positive result is not an error. */
}

static void next_returns_items_in_order(void)
{
    weft_sequence *sequence = count_up();
    int item = -1;
    CHECK_EQ(weft_sequence_size(sequence), sizeof(int));
    for (int i = 0; i < NUMBERS; i++) {
        CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), 1);
        CHECK_EQ(item, i);
    }
    CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), 0);
    CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), 0);
    weft_sequence_drop(sequence);
    weft_sequence_drop(NULL);
}

static void terminal_calls_consume_sequence(void)
{
    int sum = 0;
    CHECK_EQ(weft_sequence_fold(count_up(), &sum, add, NULL), 0);
    CHECK_EQ(sum, 190);
    int factor = 3;
    CHECK_EQ(weft_sequence_fold(count_up(), &sum, add, &factor), 0);
    CHECK_EQ(sum, 4 * 190);

    int seen = 0;
    CHECK_EQ(weft_sequence_for_each(count_up(), count_to_5, &seen), -EIO);
    CHECK_EQ(seen, 5);

    int got[NUMBERS + 1] = { 0 };
    CHECK_EQ(weft_sequence_collect(count_up(), got, NUMBERS + 1), NUMBERS);
    CHECK_EQ(memcmp(got, numbers, sizeof numbers), 0);
    CHECK_EQ(weft_sequence_collect(count_up(), got, 3), 3);

    weft_sender *sender;
    weft_receiver *receiver;
    CHECK_EQ(weft_channel_make(&sender, &receiver, sizeof(int), WEFT_UNBOUNDED), 0);
    CHECK_EQ(weft_sequence_send_to(count_up(), sender), 0);
    weft_sender_close(sender);
    CHECK_EQ(weft_sequence_send_to(count_up(), sender), WEFT_ECLOSED);
    weft_sender_drop(sender);
    sum = 0;
    weft_sequence *back = weft_sequence_of_channel(receiver, sizeof(int));
    CHECK_EQ(weft_sequence_fold(back, &sum, add, NULL), 0);
    CHECK_EQ(sum, 190);
}

static int count_item(void *item, void *arg)
{
    (void)item;
    (*(int *)arg)++;
    return 0;
}

static void item_of_size_0_is_counted(void)
{
    int seen = 0;
    CHECK_EQ(weft_sequence_for_each(weft_sequence_of_array(numbers, 3, 0), count_item, &seen), 0);
    CHECK_EQ(seen, 3);
}

/* A canceled pull does not end the sequence. */
static int pull_twice(void *arg)
{
    weft_sequence *sequence = arg;
    int item = 0;
    CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), WEFT_ECANCELED);
    weft_shield_enter();
    CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), 1);
    weft_shield_leave();
    return item;
}

static void canceled_pull_can_be_retried(void)
{
    weft_runtime *rt = test_start(1);
    weft_sender *sender;
    weft_receiver *receiver;
    CHECK_EQ(weft_channel_make(&sender, &receiver, sizeof(int), 1), 0);
    weft_sequence *sequence = weft_sequence_of_channel(receiver, sizeof(int));
    weft_task *task = test_go_first(rt, pull_twice, sequence);
    weft_cancel(task);
    test_settle(rt);
    CHECK_EQ(weft_try_send(sender, &numbers[6]), 0);
    CHECK_EQ(test_join_soon(task), 6);
    weft_sequence_drop(sequence);
    weft_sender_drop(sender);
    weft_runtime_destroy(rt);
}

/* If a stage cannot be created, the rest of the chain is NULL and nothing leaks. */
static void failed_stage_makes_rest_of_chain_null(void)
{
    int sum = 0;
    int got[1];
    CHECK(weft_sequence_map(NULL, 4, NULL, NULL) == NULL);
    CHECK(weft_sequence_filter(NULL, NULL, NULL) == NULL);
    CHECK(weft_sequence_take(NULL, 1) == NULL);
    CHECK(weft_sequence_skip(NULL, 1) == NULL);
    CHECK(weft_sequence_chunks(NULL, 1) == NULL);
    CHECK(weft_sequence_throttle(NULL, 1) == NULL);
    CHECK(weft_sequence_buffered(NULL, 1) == NULL);
    CHECK(weft_sequence_zip(count_up(), NULL, 4, NULL, NULL) == NULL);
    CHECK(weft_sequence_zip(NULL, count_up(), 4, NULL, NULL) == NULL);
    CHECK(weft_sequence_merge(NULL, count_up()) == NULL);
    CHECK(weft_sequence_merge(count_up(), NULL) == NULL);
    CHECK(weft_sequence_chunks(count_up(), SIZE_MAX) == NULL);
    CHECK(weft_sequence_chunks(count_up(), SIZE_MAX / sizeof(int) + 2) == NULL);
    CHECK_EQ(weft_sequence_fold(NULL, &sum, add, NULL), -ENOMEM);
    CHECK_EQ(weft_sequence_for_each(NULL, count_to_5, &sum), -ENOMEM);
    CHECK_EQ(weft_sequence_collect(NULL, got, 1), -ENOMEM);
    CHECK_EQ(weft_sequence_send_to(NULL, NULL), -ENOMEM);
}

TEST_MAIN({
    TEST(next_returns_items_in_order),
    TEST(terminal_calls_consume_sequence),
    TEST(item_of_size_0_is_counted),
    TEST(canceled_pull_can_be_retried),
    TEST(failed_stage_makes_rest_of_chain_null),
})
