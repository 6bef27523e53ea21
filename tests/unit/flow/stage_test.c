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

static weft_stream *count_up(void)
{
    return weft_stream_of_array(numbers, NUMBERS, sizeof(int));
}

static void check_items(weft_stream *stream, const int *wanted, int count)
{
    int got[64];
    CHECK_EQ(weft_stream_collect(stream, got, 64), count);
    CHECK_EQ(memcmp(got, wanted, (size_t)count * sizeof(int)), 0);
}

static bool is_even(const void *item, void *arg)
{
    (void)arg;
    return *(const int *)item % 2 == 0;
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

static void items_are_mapped_and_filtered(void)
{
    weft_stream *stream = weft_stream_filter(count_up(), is_even, NULL);
    check_items(weft_stream_map(stream, sizeof(int), square, NULL), (int[]){ 0, 4, 16, 36, 64 }, 5);

    char words[NUMBERS][24];
    CHECK_EQ(weft_stream_collect(weft_stream_map(count_up(), 24, spell, NULL), words, NUMBERS), 10);
    CHECK_EQ(strcmp(words[3], "ddd"), 0);

    int bad = 3;
    int item = 0;
    stream = weft_stream_map(count_up(), sizeof(int), square, &bad);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weft_stream_next(stream, &item, WEFT_NEVER), 1);
    }
    CHECK_EQ(weft_stream_next(stream, &item, WEFT_NEVER), -EIO);
    CHECK_EQ(weft_stream_next(stream, &item, WEFT_NEVER), -EIO);
    weft_stream_drop(stream);
}

static void some_are_taken_or_skipped(void)
{
    check_items(weft_stream_take(count_up(), 3), (int[]){ 0, 1, 2 }, 3);
    check_items(weft_stream_take(count_up(), 0), numbers, 0);
    check_items(weft_stream_take(count_up(), 99), numbers, 10);
    check_items(weft_stream_skip(count_up(), 8), (int[]){ 8, 9 }, 2);
    check_items(weft_stream_skip(count_up(), 0), numbers, 10);
    check_items(weft_stream_skip(count_up(), 99), numbers, 0);
    check_items(weft_stream_take(weft_stream_skip(count_up(), 4), 2), (int[]){ 4, 5 }, 2);
}

static void items_come_in_chunks(void)
{
    weft_stream *stream = weft_stream_chunks(count_up(), 4);
    weft_chunk chunk;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(weft_stream_next(stream, &chunk, WEFT_NEVER), 1);
        CHECK_EQ(chunk.count, i < 2 ? 4 : 2);
        CHECK_EQ(memcmp(chunk.items, &numbers[4 * i], chunk.count * sizeof(int)), 0);
    }
    CHECK_EQ(weft_stream_next(stream, &chunk, WEFT_NEVER), 0);
    weft_stream_drop(stream);
}

static int multiply(const void *one, const void *two, void *to, void *arg)
{
    *(int64_t *)to = (int64_t) * (const int *)one * *(const int *)two;
    return arg != NULL && *(const int *)one == *(int *)arg ? -EIO : 0;
}

static void two_streams_are_zipped(void)
{
    int64_t got[NUMBERS];
    weft_stream *stream =
        weft_stream_zip(count_up(), weft_stream_skip(count_up(), 3), 8, multiply, NULL);
    CHECK_EQ(weft_stream_collect(stream, got, NUMBERS), 7);
    CHECK_EQ(got[0], 0);
    CHECK_EQ(got[6], 54);
    int bad = 2;
    stream = weft_stream_zip(count_up(), count_up(), 8, multiply, &bad);
    CHECK_EQ(weft_stream_collect(stream, got, NUMBERS), -EIO);
}

/* A pull that is too late loses nothing: what a stage has got is kept. */
static void a_pull_that_is_too_late_can_be_done_again(void)
{
    weft_sender *sender;
    weft_receiver *receiver;
    weft_chunk chunk;
    CHECK_EQ(weft_channel_make(&sender, &receiver, sizeof(int), 16), 0);
    weft_stream *stream = weft_stream_chunks(weft_stream_of_channel(receiver, sizeof(int)), 3);
    CHECK_EQ(weft_send(sender, &numbers[4], WEFT_NEVER), 0);
    CHECK_EQ(weft_send(sender, &numbers[5], WEFT_NEVER), 0);
    CHECK_EQ(weft_stream_next(stream, &chunk, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_send(sender, &numbers[6], WEFT_NEVER), 0);
    CHECK_EQ(weft_stream_next(stream, &chunk, WEFT_NEVER), 1);
    CHECK_EQ(chunk.count, 3);
    CHECK_EQ(memcmp(chunk.items, &numbers[4], 3 * sizeof(int)), 0);
    weft_stream_drop(stream);
    CHECK_EQ(weft_send(sender, &numbers[6], WEFT_NEVER), WEFT_ECLOSED);
    weft_sender_drop(sender);
}

static int pull_slowly(void *arg)
{
    (void)arg;
    weft_stream *stream = weft_stream_throttle(count_up(), 3 * WEFT_MS);
    weft_time start = weft_now();
    int item = 0;
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(weft_stream_next(stream, &item, WEFT_NEVER), 1);
        CHECK_EQ(item, i);
        CHECK_GE(weft_now() - start, i * 3 * WEFT_MS);
    }
    CHECK_EQ(weft_stream_next(stream, &item, weft_now()), WEFT_ETIMEDOUT);
    weft_stream_drop(stream);
    return 0;
}

static void a_throttle_lets_time_pass(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, pull_slowly, NULL), 0);
    weft_runtime_destroy(rt);
    CHECK_EQ(pull_slowly(NULL), 0);
}

TEST_MAIN({
    TEST(items_are_mapped_and_filtered),
    TEST(some_are_taken_or_skipped),
    TEST(items_come_in_chunks),
    TEST(two_streams_are_zipped),
    TEST(a_pull_that_is_too_late_can_be_done_again),
    TEST(a_throttle_lets_time_pass),
})
