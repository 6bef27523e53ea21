/* SPDX-License-Identifier: MIT */
#include <string.h>

#include <weft.h>

#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    NUMBERS = 10,
};

static const int numbers[NUMBERS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };

static weft_sequence *count_up(void)
{
    return weft_sequence_of_array(numbers, NUMBERS, sizeof(int));
}

static void check_items(weft_sequence *sequence, const int *wanted, int count)
{
    int got[64];
    CHECK_EQ(weft_sequence_collect(sequence, got, 64), count);
    CHECK_EQ(memcmp(got, wanted, (size_t)count * sizeof(int)), 0);
}

static bool is_multiple(const void *item, void *arg)
{
    return *(const int *)item % *(int *)arg == 0;
}

static int square(const void *from, void *to, void *arg)
{
    int number = *(const int *)from;
    *(int *)to = number * number;
    return arg != NULL && number == *(int *)arg ? -EIO : 0;
}

static int spell(const void *from, void *to, void *arg)
{
    (void)arg;
    memset(to, 0, 24);
    memset(to, 'a' + *(const int *)from, 3);
    return 0;
}

static void map_and_filter_transform_items(void)
{
    int two = 2;
    int four = 4;
    check_items(weft_sequence_filter(count_up(), is_multiple, &four), (int[]){ 0, 4, 8 }, 3);
    weft_sequence *sequence = weft_sequence_filter(count_up(), is_multiple, &two);
    check_items(weft_sequence_map(sequence, sizeof(int), square, NULL), (int[]){ 0, 4, 16, 36, 64 },
                5);

    char words[NUMBERS][24];
    CHECK_EQ(weft_sequence_collect(weft_sequence_map(count_up(), 24, spell, NULL), words, NUMBERS),
             10);
    CHECK_EQ(strcmp(words[3], "ddd"), 0);

    int bad = 3;
    int item = 0;
    sequence = weft_sequence_map(count_up(), sizeof(int), square, &bad);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), 1);
    }
    CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), -EIO);
    CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), -EIO);
    weft_sequence_drop(sequence);
}

static void take_and_skip_limit_items(void)
{
    check_items(weft_sequence_take(count_up(), 3), (int[]){ 0, 1, 2 }, 3);
    check_items(weft_sequence_take(count_up(), 0), numbers, 0);
    check_items(weft_sequence_take(count_up(), 99), numbers, 10);
    check_items(weft_sequence_skip(count_up(), 8), (int[]){ 8, 9 }, 2);
    check_items(weft_sequence_skip(count_up(), 0), numbers, 10);
    check_items(weft_sequence_skip(count_up(), 99), numbers, 0);
    check_items(weft_sequence_take(weft_sequence_skip(count_up(), 4), 2), (int[]){ 4, 5 }, 2);
}

static void chunks_group_items(void)
{
    weft_sequence *sequence = weft_sequence_chunks(count_up(), 4);
    weft_chunk chunk;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weft_sequence_next(sequence, &chunk, WEFT_NEVER), 1);
        CHECK_EQ(chunk.count, i < 2 ? 4 : 2);
        CHECK_EQ(memcmp(chunk.items, &numbers[4 * i], chunk.count * sizeof(int)), 0);
    }
    CHECK_EQ(weft_sequence_next(sequence, &chunk, WEFT_NEVER), 0);
    weft_sequence_drop(sequence);

    sequence = weft_sequence_chunks(count_up(), 0);
    CHECK_EQ(weft_sequence_next(sequence, &chunk, WEFT_NEVER), 1);
    CHECK_EQ(chunk.count, 1);
    weft_sequence_drop(sequence);
}

static int join_digits(const void *one, const void *two, void *to, void *arg)
{
    *(int64_t *)to = *(const int *)one * 10 + *(const int *)two;
    return arg != NULL && *(const int *)one == *(int *)arg ? -EIO : 0;
}

static void zip_combines_two_sequences(void)
{
    int64_t got[NUMBERS];
    weft_sequence *sequence =
        weft_sequence_zip(count_up(), weft_sequence_skip(count_up(), 3), 8, join_digits, NULL);
    CHECK_EQ(weft_sequence_collect(sequence, got, NUMBERS), 7);
    CHECK_EQ(got[0], 3);
    CHECK_EQ(got[6], 69);
    int bad = 2;
    sequence = weft_sequence_zip(count_up(), count_up(), 8, join_digits, &bad);
    CHECK_EQ(weft_sequence_collect(sequence, got, NUMBERS), -EIO);
}

/* Makes a channel and returns a sequence of its messages. */
static weft_sequence *listen_to(weft_sender **sender)
{
    weft_receiver *receiver;
    CHECK_EQ(weft_channel_make(sender, &receiver, sizeof(int), 16), 0);
    return weft_sequence_of_channel(receiver, sizeof(int));
}

static void check_times_out(weft_sequence *sequence)
{
    int64_t item = 0;
    weft_time deadline = weft_after(WEFT_MS);
    CHECK_EQ(weft_sequence_next(sequence, &item, deadline), WEFT_ETIMEDOUT);
    CHECK_GE(weft_now(), deadline);
}

static void check_next(weft_sequence *sequence, int wanted)
{
    union {
        int small;
        int64_t large;
    } item;
    CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), 1);
    CHECK_EQ(weft_sequence_size(sequence) == sizeof(int) ? item.small : item.large, wanted);
}

/* A pull from each stage times out. Then an item arrives, and the next pull returns it. */
static void pull_from_each_stage_waits_until_deadline(void)
{
    int one = 1;
    for (int stage = 0; stage < 7; stage++) {
        weft_sender *sender;
        weft_sequence *sequence = listen_to(&sender);
        switch (stage) {
        case 0:
            sequence = weft_sequence_map(sequence, sizeof(int), square, NULL);
            break;
        case 1:
            sequence = weft_sequence_filter(sequence, is_multiple, &one);
            break;
        case 2:
            sequence = weft_sequence_take(sequence, 1);
            break;
        case 3:
            sequence = weft_sequence_skip(sequence, 0);
            break;
        case 4:
            sequence = weft_sequence_zip(sequence, count_up(), sizeof(int64_t), join_digits, NULL);
            break;
        case 5:
            sequence = weft_sequence_throttle(sequence, 1);
            break;
        default:
            break;
        }
        check_times_out(sequence);
        CHECK_EQ(weft_send(sender, &numbers[stage == 4 ? 0 : 1], WEFT_NEVER), 0);
        check_next(sequence, stage == 4 ? 0 : 1);
        weft_sequence_drop(sequence);
        weft_sender_drop(sender);
    }
}

static void skip_and_zip_keep_progress_after_timeout(void)
{
    weft_sender *sender;
    weft_sequence *sequence = weft_sequence_skip(listen_to(&sender), 2);
    CHECK_EQ(weft_send(sender, &numbers[1], WEFT_NEVER), 0);
    check_times_out(sequence);
    CHECK_EQ(weft_send(sender, &numbers[2], WEFT_NEVER), 0);
    CHECK_EQ(weft_send(sender, &numbers[3], WEFT_NEVER), 0);
    check_next(sequence, 3);
    weft_sequence_drop(sequence);
    weft_sender_drop(sender);

    sequence =
        weft_sequence_zip(count_up(), listen_to(&sender), sizeof(int64_t), join_digits, NULL);
    check_times_out(sequence);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weft_send(sender, &numbers[5], WEFT_NEVER), 0);
        check_next(sequence, i * 10 + 5);
    }
    weft_sequence_drop(sequence);
    weft_sender_drop(sender);
}

/* A pull that times out loses nothing: a stage keeps the items that it has. */
static void timed_out_pull_can_be_retried(void)
{
    weft_sender *sender;
    weft_receiver *receiver;
    weft_chunk chunk;
    CHECK_EQ(weft_channel_make(&sender, &receiver, sizeof(int), 16), 0);
    weft_sequence *sequence =
        weft_sequence_chunks(weft_sequence_of_channel(receiver, sizeof(int)), 3);
    CHECK_EQ(weft_send(sender, &numbers[4], WEFT_NEVER), 0);
    CHECK_EQ(weft_send(sender, &numbers[5], WEFT_NEVER), 0);
    CHECK_EQ(weft_sequence_next(sequence, &chunk, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_send(sender, &numbers[6], WEFT_NEVER), 0);
    CHECK_EQ(weft_sequence_next(sequence, &chunk, WEFT_NEVER), 1);
    CHECK_EQ(chunk.count, 3);
    CHECK_EQ(memcmp(chunk.items, &numbers[4], 3 * sizeof(int)), 0);
    weft_sequence_drop(sequence);
    CHECK_EQ(weft_send(sender, &numbers[6], WEFT_NEVER), WEFT_ECLOSED);
    weft_sender_drop(sender);
}

static int pull_slowly(void *arg)
{
    (void)arg;
    weft_sequence *sequence = weft_sequence_throttle(count_up(), 3 * WEFT_MS);
    weft_time start = weft_now();
    int item = 0;
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), 1);
        CHECK_EQ(item, i);
        CHECK_GE(weft_now() - start, i * 3 * WEFT_MS);
    }
    CHECK_EQ(weft_sequence_next(sequence, &item, weft_now()), WEFT_ETIMEDOUT);
    weft_sequence_drop(sequence);
    sequence = weft_sequence_throttle(count_up(), 3600 * WEFT_S);
    check_next(sequence, 0); /* The first item is not delayed. */
    check_times_out(sequence);
    weft_sequence_drop(sequence);
    return 0;
}

static int pull_with_deadline(void *arg)
{
    weft_sequence *sequence = weft_sequence_throttle(count_up(), 3600 * WEFT_S);
    int item = 0;
    CHECK_EQ(weft_sequence_next(sequence, &item, WEFT_NEVER), 1);
    int result = weft_sequence_next(sequence, &item, *(weft_time *)arg);
    weft_sequence_drop(sequence);
    return result;
}

static void canceled_throttled_pull_returns_ecanceled(void)
{
    weft_runtime *rt = test_start(1);
    weft_time deadlines[2] = { weft_after(1800 * WEFT_S), WEFT_NEVER };
    for (unsigned i = 0; i < 2; i++) {
        weft_task *task = test_go_first(rt, pull_with_deadline, &deadlines[i]);
        weft_cancel(task);
        CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    }
    weft_runtime_destroy(rt);
}

static void throttle_spaces_out_items(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, pull_slowly, NULL), 0);
    weft_runtime_destroy(rt);
    CHECK_EQ(pull_slowly(NULL), 0);
}

TEST_MAIN({
    TEST(map_and_filter_transform_items),
    TEST(take_and_skip_limit_items),
    TEST(chunks_group_items),
    TEST(zip_combines_two_sequences),
    TEST(pull_from_each_stage_waits_until_deadline),
    TEST(skip_and_zip_keep_progress_after_timeout),
    TEST(timed_out_pull_can_be_retried),
    TEST(throttle_spaces_out_items),
    TEST(canceled_throttled_pull_returns_ecanceled),
})
