/* SPDX-License-Identifier: MIT */
/*
 * reader_test.c - buffered reading from a stream: bytes, lines, frames.
 */
#include <weft/buffered.h>

#include <string.h>

#include <weft.h>

#include "links.h"
#include "rt.h"
#include "test.h"

/* A reader with a small buffer at the far end. */
static char buffer[16];
static weft_reader reader;

static void begin(struct link *link)
{
    weft_reader_init(&reader, link->far, buffer, sizeof buffer);
}

static void put(struct link *link, const char *text, size_t size)
{
    CHECK_EQ(weft_write_all(link->near, text, size, WEFT_NEVER), 0);
}

static void end(struct link *link)
{
    weft_stream_close(link->near);
    link->near = NULL;
}

static void check_text(weft_text text, const char *wanted)
{
    CHECK_EQ(text.size, strlen(wanted));
    CHECK_EQ(memcmp(text.at, wanted, text.size), 0);
}

static int read_lines(void *arg)
{
    struct link *link = arg;
    weft_text line;
    begin(link);
    put(link, "one\ntwo\r\n\n\r\nfourteen bytes\r\nlast", 32);
    end(link);
    static const char *const wanted[] = { "one", "two", "", "", "fourteen bytes", "last" };
    for (unsigned i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        CHECK_EQ(weft_read_line(&reader, &line, WEFT_NEVER), 1);
        check_text(line, wanted[i]);
    }
    CHECK_EQ(weft_read_line(&reader, &line, WEFT_NEVER), 0);
    CHECK_EQ(weft_read_line(&reader, &line, WEFT_NEVER), 0);
    return 0;
}

static void lines_end_with_newline(void)
{
    link_run_all(read_lines);
}

static int read_long_line(void *arg)
{
    struct link *link = arg;
    weft_text text;
    begin(link);
    put(link, "fifteen bytes 15\nx", 18);
    CHECK_EQ(weft_read_line(&reader, &text, WEFT_NEVER), -EMSGSIZE);
    CHECK_EQ(weft_read_line(&reader, &text, WEFT_NEVER), -EMSGSIZE);
    CHECK_EQ(weft_reader_peek(&reader, 16, &text, WEFT_NEVER), 0);
    check_text(text, "fifteen bytes 15");
    weft_reader_take(&reader, 1);
    CHECK_EQ(weft_read_line(&reader, &text, WEFT_NEVER), 1);
    check_text(text, "ifteen bytes 15");
    return 0;
}

static void line_that_does_not_fit_stays_in_buffer(void)
{
    link_run_all(read_long_line);
}

static int read_in_parts(void *arg)
{
    struct link *link = arg;
    weft_text text;
    begin(link);
    put(link, "ab", 2);
    CHECK_EQ(weft_read_until(&reader, ';', &text, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    put(link, "c;d", 3);
    CHECK_EQ(weft_read_until(&reader, ';', &text, WEFT_NEVER), 1);
    check_text(text, "abc");
    CHECK_EQ(weft_reader_peek(&reader, 2, &text, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    end(link);
    CHECK_EQ(weft_reader_peek(&reader, 2, &text, WEFT_NEVER), 0);
    check_text(text, "d");
    CHECK_EQ(weft_reader_peek(&reader, 17, &text, WEFT_NEVER), -EMSGSIZE);
    CHECK_EQ(weft_read_until(&reader, ';', &text, WEFT_NEVER), 1);
    check_text(text, "d");
    return 0;
}

static void bytes_read_before_deadline_are_kept(void)
{
    link_run_all(read_in_parts);
}

static int wait_for_line(void *arg)
{
    weft_text text;
    (void)arg;
    return weft_read_line(&reader, &text, WEFT_NEVER);
}

static int wait_for_frame(void *arg)
{
    weft_text text;
    (void)arg;
    return weft_read_frame(&reader, 4, &text, WEFT_NEVER);
}

/* A call that reads more than once counts as a user of the stream, also between its reads. */
static int close_meanwhile(void *arg)
{
    struct link *link = arg;
    for (unsigned i = 0; i < 2; i++) {
        struct link other = link_open(LINK_LOCAL);
        struct link *used = i == 0 ? link : &other;
        weft_task *task;
        int result;
        begin(used);
        put(used, "ab", 2);
        CHECK_EQ(weft_go(&task, i == 0 ? wait_for_line : wait_for_frame, NULL), 0);
        /* The call and its read; a frame is peeked at twice. */
        link_wait_for_calls(used->far, i == 0 ? 2 : 3);
        weft_stream_close(used->far);
        used->far = NULL;
        CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
        CHECK_EQ(result, WEFT_ECLOSED);
        link_close(&other);
    }
    return 0;
}

static void close_ends_pending_call(void)
{
    link_run_all(close_meanwhile);
}

static int read_with_another_delimiter(void *arg)
{
    struct link *link = arg;
    weft_text text;
    begin(link);
    put(link, "a,b\nc", 5);
    CHECK_EQ(weft_read_until(&reader, ';', &text, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_read_until(&reader, ',', &text, WEFT_NEVER), 1);
    check_text(text, "a");
    CHECK_EQ(weft_read_until(&reader, ';', &text, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_read_line(&reader, &text, WEFT_NEVER), 1);
    check_text(text, "b");
    return 0;
}

static void other_delimiter_rescans_buffered_bytes(void)
{
    link_run_all(read_with_another_delimiter);
}

static int read_bytes(void *arg)
{
    struct link *link = arg;
    char data[40];
    begin(link);
    put(link, "0123456789", 10);
    CHECK_EQ(weft_reader_exact(&reader, data, 3, WEFT_NEVER), 0);
    CHECK_EQ(memcmp(data, "012", 3), 0);
    CHECK_EQ(weft_reader_read(&reader, data, 40, WEFT_NEVER), 7);
    CHECK_EQ(memcmp(data, "3456789", 7), 0);
    CHECK_EQ(weft_reader_read(&reader, data, 0, WEFT_NEVER), 0);
    put(link, "abcdefghijklmnopqrstuvwxyz", 26);
    CHECK_EQ(weft_reader_exact(&reader, data, 2, WEFT_NEVER), 0);
    CHECK_EQ(weft_reader_exact(&reader, data, 20, WEFT_NEVER), 0);
    CHECK_EQ(memcmp(data, "cdefghijklmnopqrstuv", 20), 0);
    end(link);
    CHECK_EQ(weft_reader_exact(&reader, data, 5, WEFT_NEVER), WEFT_EEND);
    CHECK_EQ(weft_reader_exact(&reader, data, 4, WEFT_NEVER), 0); /* They were kept. */
    CHECK_EQ(memcmp(data, "wxyz", 4), 0);
    CHECK_EQ(weft_reader_read(&reader, data, 5, WEFT_NEVER), 0);
    CHECK_EQ(weft_reader_exact(&reader, data, 40, WEFT_NEVER), WEFT_EEND);
    return 0;
}

static void buffered_bytes_are_returned_first(void)
{
    link_run_all(read_bytes);
}

static int read_frames(void *arg)
{
    struct link *link = arg;
    weft_text frame;
    begin(link);
    put(link, "\3abc\0\0\5hello\0\0\0\0\0\0\0\2hi", 22);
    CHECK_EQ(weft_read_frame(&reader, 1, &frame, WEFT_NEVER), 1);
    check_text(frame, "abc");
    CHECK_EQ(weft_read_frame(&reader, 1, &frame, WEFT_NEVER), 1);
    CHECK_EQ(frame.size, 0);
    CHECK_EQ(weft_read_frame(&reader, 2, &frame, WEFT_NEVER), 1);
    check_text(frame, "hello");
    CHECK_EQ(weft_read_frame(&reader, 8, &frame, WEFT_NEVER), 1);
    check_text(frame, "hi");
    CHECK_EQ(weft_read_frame(&reader, 0, &frame, WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_read_frame(&reader, 9, &frame, WEFT_NEVER), -EINVAL);
    put(link, "\17fifteen bytes 1\20", 17);
    CHECK_EQ(weft_read_frame(&reader, 1, &frame, WEFT_NEVER), 1);
    check_text(frame, "fifteen bytes 1");
    CHECK_EQ(weft_read_frame(&reader, 1, &frame, WEFT_NEVER), -EMSGSIZE);
    weft_reader_take(&reader, 1);
    put(link, "\377\377\377\377\377\377\377\377", 8);
    CHECK_EQ(weft_read_frame(&reader, 8, &frame, WEFT_NEVER), -EMSGSIZE);
    weft_reader_take(&reader, 8);
    put(link, "\4ab", 3);
    end(link);
    CHECK_EQ(weft_read_frame(&reader, 1, &frame, WEFT_NEVER), WEFT_EEND);
    weft_reader_take(&reader, 3);
    CHECK_EQ(weft_read_frame(&reader, 1, &frame, WEFT_NEVER), 0);
    return 0;
}

static void frame_length_prefix_is_decoded(void)
{
    link_run_all(read_frames);
}

static void take_too_much(void)
{
    weft_reader_init(&reader, NULL, buffer, sizeof buffer);
    weft_reader_take(&reader, 1);
}

static void use_no_buffer(void)
{
    weft_reader_init(&reader, NULL, buffer, 0);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(take_too_much, "weft_reader_take: 1 bytes of 0");
    CHECK_ABORTS(use_no_buffer, "weft_reader_init: a buffer of no bytes");
}

TEST_MAIN({
    TEST(misuse_aborts_with_message),
    TEST(lines_end_with_newline),
    TEST(line_that_does_not_fit_stays_in_buffer),
    TEST(bytes_read_before_deadline_are_kept),
    TEST(other_delimiter_rescans_buffered_bytes),
    TEST(close_ends_pending_call),
    TEST(buffered_bytes_are_returned_first),
    TEST(frame_length_prefix_is_decoded),
})
