/* SPDX-License-Identifier: MIT */
/*
 * writer_test.c - buffered writing to a stream.
 */
#include <weft/buffered.h>

#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "links.h"
#include "rt.h"
#include "test.h"

static char buffer[16];
static weft_writer writer;

static void check_comes(struct link *link, const char *wanted)
{
    char data[64];
    size_t size = strlen(wanted);
    if (size > 0) {
        CHECK_EQ(weft_read_exact(link->far, data, size, WEFT_NEVER), 0);
        CHECK_EQ(memcmp(data, wanted, size), 0);
    }
    CHECK_EQ(weft_try_read(link->far, data, sizeof data), -EAGAIN);
}

static int collect(void *arg)
{
    struct link *link = arg;
    weft_writer_init(&writer, link->near, buffer, sizeof buffer);
    CHECK_EQ(weft_writer_write(&writer, "0123456789", 10, WEFT_NEVER), 0);
    check_comes(link, "");
    CHECK_EQ(weft_writer_write(&writer, "abcdef", 6, WEFT_NEVER), 0);
    check_comes(link, "");
    CHECK_EQ(weft_writer_write(&writer, "g", 1, WEFT_NEVER), 0);
    check_comes(link, "0123456789abcdef");
    CHECK_EQ(weft_writer_write(&writer, "more than the buffer holds", 26, WEFT_NEVER), 0);
    check_comes(link, "gmore than the buffer holds");
    CHECK_EQ(weft_writer_write(&writer, "x", 1, WEFT_NEVER), 0);
    CHECK_EQ(weft_writer_write(&writer, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_writer_flush(&writer, WEFT_NEVER), 0);
    CHECK_EQ(weft_writer_flush(&writer, WEFT_NEVER), 0);
    check_comes(link, "x");
    return 0;
}

static void writes_that_fit_are_buffered(void)
{
    link_run_all(collect);
}

static int print(void *arg)
{
    struct link *link = arg;
    weft_writer_init(&writer, link->near, buffer, sizeof buffer);
    CHECK_EQ(weft_writer_print(&writer, WEFT_NEVER, "%d and %s", 12, "more"), 0);
    check_comes(link, "");
    CHECK_EQ(weft_writer_print(&writer, WEFT_NEVER, "%s", "fifteen bytes 1"), 0);
    check_comes(link, "12 and more");
    CHECK_EQ(weft_writer_print(&writer, WEFT_NEVER, "%s", "seventeen bytes 1"), -EMSGSIZE);
    CHECK_EQ(weft_writer_flush(&writer, WEFT_NEVER), 0);
    check_comes(link, "fifteen bytes 1");
    return 0;
}

static void text_is_printed(void)
{
    link_run_all(print);
}

/* Prints text of each length, with each number of bytes already in the buffer. */
static int print_each_length(void *arg)
{
    static const char text[] = "0123456789abcdefg";
    struct link *link = arg;
    for (int before = 0; before <= (int)sizeof buffer; before++) {
        for (int length = 0; length <= (int)sizeof buffer + 1; length++) {
            char wanted[3 * sizeof buffer] = "";
            weft_writer_init(&writer, link->near, buffer, sizeof buffer);
            CHECK_EQ(weft_writer_write(&writer, text, (size_t)before, WEFT_NEVER), 0);
            int err = weft_writer_print(&writer, WEFT_NEVER, "%.*s", length, text);
            CHECK_EQ(err, length <= (int)sizeof buffer ? 0 : -EMSGSIZE);
            CHECK_EQ(weft_writer_flush(&writer, WEFT_NEVER), 0);
            (void)snprintf(wanted, sizeof wanted, "%.*s%.*s", before, text, err == 0 ? length : 0,
                           text);
            check_comes(link, wanted);
        }
    }
    return 0;
}

static void text_up_to_buffer_size_is_printed(void)
{
    link_run_all(print_each_length);
}

static int write_frames(void *arg)
{
    struct link *link = arg;
    char reading[64];
    char long_one[300];
    weft_reader reader;
    weft_text frame;
    weft_writer_init(&writer, link->near, buffer, sizeof buffer);
    weft_reader_init(&reader, link->far, reading, sizeof reading);
    memset(long_one, 'x', sizeof long_one);
    for (unsigned bytes = 1; bytes <= 8; bytes++) {
        CHECK_EQ(weft_write_frame(&writer, bytes, "hello", 5, WEFT_NEVER), 0);
        CHECK_EQ(weft_write_frame(&writer, bytes, "", 0, WEFT_NEVER), 0);
        CHECK_EQ(weft_writer_flush(&writer, WEFT_NEVER), 0);
        CHECK_EQ(weft_read_frame(&reader, bytes, &frame, WEFT_NEVER), 1);
        CHECK_EQ(frame.size, 5);
        CHECK_EQ(memcmp(frame.at, "hello", 5), 0);
        CHECK_EQ(weft_read_frame(&reader, bytes, &frame, WEFT_NEVER), 1);
        CHECK_EQ(frame.size, 0);
    }
    CHECK_EQ(weft_write_frame(&writer, 1, long_one, 256, WEFT_NEVER), -EMSGSIZE);
    CHECK_EQ(weft_write_frame(&writer, 0, long_one, 1, WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_write_frame(&writer, 9, long_one, 1, WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_write_frame(&writer, 2, long_one, 256, WEFT_NEVER), 0);
    CHECK_EQ(weft_read_exact(link->far, reading, 2, WEFT_NEVER), 0);
    CHECK_EQ(memcmp(reading, "\1\0", 2), 0);
    return 0;
}

static void frames_are_read_as_written(void)
{
    link_run_all(write_frames);
}

static int flush_late(void *arg)
{
    struct link *link = arg;
    char data[4096];
    uint64_t full = 0;
    ssize_t n;
    while ((n = weft_try_write(link->near, memset(data, '-', sizeof data), sizeof data)) > 0) {
        full += (uint64_t)n;
    }
    weft_writer_init(&writer, link->near, buffer, sizeof buffer);
    CHECK_EQ(weft_writer_write(&writer, "later", 5, WEFT_NEVER), 0);
    CHECK_EQ(weft_writer_flush(&writer, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    while (full > 0) {
        size_t part = full < sizeof data ? (size_t)full : sizeof data;
        n = weft_read(link->far, data, part, WEFT_NEVER);
        CHECK(n > 0);
        full -= (uint64_t)n;
    }
    CHECK_EQ(weft_writer_flush(&writer, WEFT_NEVER), 0);
    check_comes(link, "later");
    return 0;
}

static int write_too_much(void *arg)
{
    static const char data[2 * sizeof buffer];
    (void)arg;
    return weft_writer_write(&writer, data, sizeof data, WEFT_NEVER);
}

static int write_frame(void *arg)
{
    static const char data[2 * sizeof buffer];
    (void)arg;
    return weft_write_frame(&writer, 4, data, sizeof data, WEFT_NEVER);
}

/* A call that writes more than once counts as a user of the stream, also between its writes. */
static int close_meanwhile(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        struct link link = link_open(LINK_LOCAL);
        weft_task *task;
        int result;
        while (weft_try_write(link.near, "-", 1) > 0) {
        }
        weft_writer_init(&writer, link.near, buffer, sizeof buffer);
        CHECK_EQ(weft_writer_write(&writer, "x", 1, WEFT_NEVER), 0);
        CHECK_EQ(weft_go(&task, i == 0 ? write_too_much : write_frame, NULL), 0);
        link_wait_for_calls(link.near, 2);
        weft_stream_close(link.near);
        link.near = NULL;
        CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
        CHECK_EQ(result, WEFT_ECLOSED);
        link_close(&link);
    }
    return 0;
}

static void close_ends_pending_call(void)
{
    link_run_all(close_meanwhile);
}

static void flush_continues_after_timeout(void)
{
    link_run_all(flush_late);
}

static void use_no_buffer(void)
{
    weft_writer_init(&writer, NULL, buffer, 0);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(use_no_buffer, "weft_writer_init: a buffer of no bytes");
}

TEST_MAIN({
    TEST(misuse_aborts_with_message),
    TEST(writes_that_fit_are_buffered),
    TEST(text_is_printed),
    TEST(text_up_to_buffer_size_is_printed),
    TEST(frames_are_read_as_written),
    TEST(flush_continues_after_timeout),
    TEST(close_ends_pending_call),
})
