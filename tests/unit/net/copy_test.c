/* SPDX-License-Identifier: MIT */
/*
 * copy_test.c - copying from one stream to another, and in both directions.
 */
#include <weft/buffered.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft.h>

#include "links.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    SIZE = 300 * 1000,
};

static int write_bytes(void *arg)
{
    static unsigned char data[SIZE];
    weft_stream *stream = arg;
    link_fill(data, SIZE, 1, 0);
    CHECK_EQ(weft_write_all(stream, data, SIZE, WEFT_NEVER), 0);
    return weft_stream_shutdown(stream, WEFT_WRITE_SIDE);
}

static int read_bytes(void *arg)
{
    static unsigned char data[SIZE];
    CHECK_EQ(weft_read_exact(arg, data, SIZE, WEFT_NEVER), 0);
    link_check(data, SIZE, 1, 0);
    CHECK_EQ(weft_read(arg, data, 1, WEFT_NEVER), 0);
    return 0;
}

static int copy_through(void *arg)
{
    struct link *link = arg;
    struct link_flow flow;
    uint64_t copied;
    link_flow_begin(&flow, link, LINK_LOCAL);
    CHECK_EQ(weft_copy(link->far, flow.to.near, &copied, WEFT_NEVER), 0);
    CHECK_EQ(copied, LINK_FLOW_SIZE);
    link_flow_end(&flow);
    return 0;
}

static void copy_transfers_all_bytes(void)
{
    link_run_both_ways(copy_through);
}

static int stop_copy(void *arg)
{
    struct link *link = arg;
    struct link next = link_open(LINK_LOCAL);
    uint64_t copied;
    char buffer[8];
    CHECK_EQ(weft_write(link->near, "abc", 3, WEFT_NEVER), 3);
    CHECK_EQ(weft_copy(link->far, next.near, &copied, weft_after(5 * WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(copied, 3);
    CHECK_EQ(weft_read(next.far, buffer, 8, WEFT_NEVER), 3);
    weft_stream_close(next.far);
    CHECK_EQ(weft_write(link->near, "abc", 3, WEFT_NEVER), 3);
    int err = weft_copy(link->far, next.near, NULL, WEFT_NEVER);
    CHECK(err == -EPIPE || err == -ECONNRESET);
    weft_stream_close(next.near);
    return 0;
}

static void interrupted_copy_reports_number_of_bytes(void)
{
    link_run_both_ways(stop_copy);
}

/* --- Close during a copy ---------------------------------------------------------------- */

static void fill(weft_stream *stream)
{
    static const char zeros[64 * 1024];
    ssize_t n;
    while ((n = weft_try_write(stream, zeros, sizeof zeros)) > 0) {
    }
    CHECK_EQ(n, -EAGAIN);
}

static int read_to_end(void *stream)
{
    static char buffer[64 * 1024];
    ssize_t n;
    while ((n = weft_read(stream, buffer, sizeof buffer, WEFT_NEVER)) > 0) {
    }
    return (int)n;
}

struct both {
    weft_stream *one;
    weft_stream *other;
};

static int copy_one_way(void *arg)
{
    const struct both *both = arg;
    return weft_copy(both->one, both->other, NULL, WEFT_NEVER);
}

/* The copy waits for the second stream, and the first one is closed. */
static int close_first(void *arg)
{
    struct link *link = arg;
    struct link next = link_open(LINK_LOCAL);
    struct both both = { link->far, next.near };
    weft_task *copy;
    weft_task *reader;
    int result;
    fill(next.near);
    CHECK_EQ(weft_go(&copy, copy_one_way, &both), 0);
    CHECK_EQ(weft_write_all(link->near, "x", 1, WEFT_NEVER), 0);
    link_wait_for_calls(next.near, 2); /* The copy and its write. */
    weft_stream_close(link->far);
    link->far = NULL;
    CHECK_EQ(weft_join(copy, &result, test_deadline()), 0);
    CHECK_EQ(result, WEFT_ECLOSED);
    CHECK_EQ(weft_go(&reader, read_to_end, next.far), 0);
    weft_stream_close(next.near);
    next.near = NULL;
    CHECK_EQ(weft_join(reader, &result, WEFT_NEVER), 0);
    CHECK_EQ(result, 0);
    link_close(&next);
    return 0;
}

/* The copy waits for the first stream, and the second one is closed. */
static int close_second(void *arg)
{
    struct link *link = arg;
    struct link next = link_open(LINK_LOCAL);
    struct both both = { link->far, next.near };
    weft_task *copy;
    int result;
    CHECK_EQ(weft_go(&copy, copy_one_way, &both), 0);
    link_wait_for_calls(link->far, 2);
    weft_stream_close(next.near);
    next.near = NULL;
    CHECK_EQ(weft_join(copy, &result, test_deadline()), 0);
    CHECK_EQ(result, WEFT_ECLOSED);
    link_close(&next);
    return 0;
}

static void close_of_stream_ends_copy(void)
{
    link_run_both_ways(close_first);
    link_run_both_ways(close_second);
}

/* --- Both directions ------------------------------------------------------------------------ */

static int copy_both(void *arg)
{
    const struct both *both = arg;
    return weft_copy_both(both->one, both->other, WEFT_NEVER);
}

static int copy_both_in_place(void *arg)
{
    return weft_block_in_place(copy_both, arg, WEFT_NEVER);
}

static int start_on_fiber(weft_task **task, struct both *both)
{
    return weft_go(task, copy_both, both);
}

static int start_in_place(weft_task **task, struct both *both)
{
    return weft_go(task, copy_both_in_place, both);
}

static int start_blocking_job(weft_task **task, struct both *both)
{
    return weft_spawn_blocking(task, copy_both, both);
}

/* Starts a task that copies in both directions. */
static int (*start_copy)(weft_task **task, struct both *both) = start_on_fiber;

static void run_with_each_start(int (*function)(void *arg))
{
    static int (*const starts[])(weft_task * *task, struct both * both) = {
        start_on_fiber,
        start_in_place,
        start_blocking_job,
    };
    for (unsigned i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        start_copy = starts[i];
        link_run_both_ways(function);
    }
    start_copy = start_on_fiber;
}

/* client: link.near; the copy is between link.far and next.near; server: next.far */
static int copy_both_ways(void *arg)
{
    struct link *link = arg;
    struct link next = link_open(LINK_TCP);
    struct both both = { link->far, next.near };
    weft_task *tasks[5];
    CHECK_EQ(start_copy(&tasks[0], &both), 0);
    CHECK_EQ(weft_go(&tasks[1], write_bytes, link->near), 0);
    CHECK_EQ(weft_go(&tasks[2], read_bytes, next.far), 0);
    CHECK_EQ(weft_join(tasks[1], NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_join(tasks[2], NULL, WEFT_NEVER), 0);
    /* One direction has ended, the other continues. */
    CHECK_EQ(weft_go(&tasks[3], write_bytes, next.far), 0);
    CHECK_EQ(weft_go(&tasks[4], read_bytes, link->near), 0);
    int result;
    CHECK_EQ(weft_join(tasks[3], NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_join(tasks[4], NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_join(tasks[0], &result, WEFT_NEVER), 0);
    CHECK_EQ(result, 0);
    link_close(&next);
    return 0;
}

static void directions_end_independently(void)
{
    run_with_each_start(copy_both_ways);
}

static int end_both(void *arg)
{
    struct link *link = arg;
    struct link next = link_open(LINK_LOCAL);
    struct both both = { link->far, next.near };
    weft_task *task;
    int result;
    CHECK_EQ(weft_copy_both(link->far, next.near, weft_after(2 * WEFT_MS)), WEFT_ETIMEDOUT);
    struct link again = link_open(LINK_LOCAL);
    struct link last = link_open(LINK_LOCAL);
    both = (struct both){ again.far, last.near };
    CHECK_EQ(start_copy(&task, &both), 0);
    link_wait_for_calls(again.far, 3); /* both directions, and the read of one */
    weft_cancel(task);
    CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
    CHECK_EQ(result, WEFT_ECANCELED);
    link_close(&again);
    link_close(&last);
    link_close(&next);
    return 0;
}

static void deadline_or_cancel_ends_both_directions(void)
{
    run_with_each_start(end_both);
}

/* The server has ended its direction, and the client stays silent forever. */
static int cancel_rest(void *arg)
{
    struct link *link = arg;
    struct link next = link_open(LINK_LOCAL);
    struct both both = { link->far, next.near };
    weft_task *task;
    int result;
    char byte;
    CHECK_EQ(start_copy(&task, &both), 0);
    CHECK_EQ(weft_stream_shutdown(next.far, WEFT_WRITE_SIDE), 0);
    CHECK_EQ(weft_read(link->near, &byte, 1, WEFT_NEVER), 0);
    link_wait_for_calls(link->far, 2); /* The rest of the copy, and its read. */
    weft_cancel(task);
    CHECK_EQ(weft_join(task, &result, test_deadline()), 0);
    CHECK_EQ(result, WEFT_ECANCELED);
    link_close(&next);
    return 0;
}

static void cancel_ends_remaining_direction(void)
{
    run_with_each_start(cancel_rest);
}

/* --- One direction fails ----------------------------------------------------------------- */

/* Streams that are never readable and are not sockets. */
enum silent {
    TERMINAL,
    FIFO,
    SILENT_KINDS,
};

static int terminal; /* its other side, which keeps it alive */

static weft_stream *open_silent(enum silent kind)
{
    char path[64];
    int fd;
    if (kind == TERMINAL) {
        terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        CHECK(terminal >= 0);
        CHECK_EQ(grantpt(terminal), 0);
        CHECK_EQ(unlockpt(terminal), 0);
        CHECK_EQ(ptsname_r(terminal, path, sizeof path), 0);
        fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    } else {
        (void)snprintf(path, sizeof path, "/tmp/weft-copy-%ld", (long)getpid());
        CHECK_EQ(mkfifo(path, 0600), 0);
        fd = open(path, O_RDWR | O_CLOEXEC);
        CHECK_EQ(unlink(path), 0);
    }
    CHECK(fd >= 0);
    weft_stream *stream;
    CHECK_EQ(weft_stream_adopt(&stream, fd), 0);
    return stream;
}

/*
 * Goal:   an error in one direction ends the other one, which waits for a stream that is not a
 *         socket and cannot be shut down.
 * Method: the peer of a TCP connection resets it while both directions wait. The stream that
 *         fails is once the first of the two, and once the second.
 */
static int fail_one_way(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 2 * SILENT_KINDS; i++) {
        struct link link = link_open(LINK_TCP);
        weft_stream *silent = open_silent(i % SILENT_KINDS);
        struct both both = { link.far, silent };
        if (i >= SILENT_KINDS) {
            both = (struct both){ silent, link.far };
        }
        weft_task *task;
        int result;
        CHECK_EQ(start_copy(&task, &both), 0);
        link_wait_for_calls(link.far, 3); /* Both directions, and the read of one. */
        link_wait_for_calls(silent, 3);
        CHECK_EQ(weft_stream_set_option(link.near, WEFT_OPTION_LINGER, 0), 0);
        weft_stream_close(link.near);
        link.near = NULL;
        CHECK_EQ(weft_join(task, &result, test_deadline()), 0);
        CHECK_EQ(result, -ECONNRESET);
        link_close(&link);
        weft_stream_close(silent);
        if (i % SILENT_KINDS == TERMINAL) {
            (void)close(terminal);
        }
    }
    return 0;
}

static void error_in_one_direction_ends_other(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = test_start(workers[i]);
        CHECK_EQ(test_run(rt, fail_one_way, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

/* Goal: closing one stream in another task ends both directions with WEFT_ECLOSED. */
static int close_under_copy(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 2 * SILENT_KINDS * 2; i++) {
        struct link link = link_open(LINK_TCP);
        weft_stream *silent = open_silent(i % SILENT_KINDS);
        bool is_second = i / SILENT_KINDS % 2 == 1;
        bool closes_silent = i / SILENT_KINDS / 2 == 1;
        struct both both = { is_second ? silent : link.far, is_second ? link.far : silent };
        weft_task *task;
        int result;
        CHECK_EQ(start_copy(&task, &both), 0);
        link_wait_for_calls(link.far, 3);
        link_wait_for_calls(silent, 3);
        weft_stream_close(closes_silent ? silent : link.far);
        CHECK_EQ(weft_join(task, &result, test_deadline()), 0);
        CHECK_EQ(result, WEFT_ECLOSED);
        link_close(&link);
        weft_stream_close(silent);
        if (i % SILENT_KINDS == TERMINAL) {
            (void)close(terminal);
        }
    }
    return 0;
}

static void close_of_one_stream_ends_both_directions(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, close_under_copy, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- A shielded copy during a shutdown -------------------------------------------------- */

static weft_event copying;
static int copy_result;

/* One byte in each direction, then the end of both. */
static int exchange_and_close(void *arg)
{
    weft_stream **ends = arg;
    char bytes[2] = { 'a', 'b' };
    CHECK_EQ(weft_sleep(3600 * WEFT_S), WEFT_ECANCELED); /* until the shutdown */
    weft_shield_enter();
    for (unsigned i = 0; i < 2; i++) {
        char byte = 0;
        CHECK_EQ(weft_write_all(ends[i], &bytes[i], 1, WEFT_NEVER), 0);
        CHECK_EQ(weft_read(ends[1 - i], &byte, 1, WEFT_NEVER), 1);
        CHECK_EQ(byte, bytes[i]);
    }
    weft_stream_close(ends[0]);
    weft_stream_close(ends[1]);
    weft_shield_leave();
    return 0;
}

static int copy_in_shield(void *arg)
{
    struct link link = link_open(LINK_LOCAL);
    struct link next = link_open(LINK_LOCAL);
    weft_stream *ends[] = { link.near, next.far };
    weft_task *peer;
    (void)arg;
    CHECK_EQ(weft_go(&peer, exchange_and_close, ends), 0);
    weft_shield_enter();
    weft_event_set(&copying);
    copy_result = weft_copy_both(link.far, next.near, WEFT_NEVER);
    CHECK_EQ(weft_join(peer, NULL, WEFT_NEVER), 0);
    weft_stream_close(link.far);
    weft_stream_close(next.near);
    weft_shield_leave();
    return 0;
}

static void shield_covers_both_directions_during_shutdown(void)
{
    for (int is_job = 0; is_job < 2; is_job++) {
        weft_runtime *rt = test_start(2);
        copying = (weft_event){ 0 };
        copy_result = -1;
        if (is_job) {
            CHECK_EQ(weft_runtime_spawn_blocking(rt, NULL, copy_in_shield, NULL), 0);
        } else {
            weft_detach(test_go(rt, copy_in_shield, NULL));
        }
        CHECK_EQ(weft_event_wait(&copying, WEFT_NEVER), 0);
        test_wait_until_asleep(rt);
        weft_runtime_destroy(rt);
        CHECK_EQ(copy_result, 0);
    }
}

static void copy_both_on_plain_thread(void)
{
    CHECK_EQ(weft_copy_both(NULL, NULL, WEFT_NEVER), 0);
}

static void copy_both_without_runtime_aborts(void)
{
    CHECK_ABORTS(copy_both_on_plain_thread,
                 "weft_copy_both: this thread belongs to no runtime; call it from a task");
}

TEST_MAIN({
    TEST(shield_covers_both_directions_during_shutdown),
    TEST(error_in_one_direction_ends_other),
    TEST(close_of_one_stream_ends_both_directions),
    TEST(copy_transfers_all_bytes),
    TEST(interrupted_copy_reports_number_of_bytes),
    TEST(close_of_stream_ends_copy),
    TEST(directions_end_independently),
    TEST(deadline_or_cancel_ends_both_directions),
    TEST(cancel_ends_remaining_direction),
    TEST(copy_both_without_runtime_aborts),
})
