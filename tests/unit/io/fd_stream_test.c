/* SPDX-License-Identifier: MIT */
/*
 * fd_stream_test.c - descriptors as streams: adopted descriptors, pipes and SIGPIPE, urgent data.
 */
#include "io/fd_stream.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weft.h>

#include "io/io.h"
#include "links.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

static void on_workers(int (*function)(void *arg))
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = test_start(workers[i]);
        CHECK_EQ(test_run(rt, function, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

static int adopt(void *arg)
{
    (void)arg;
    int ends[2];
    weft_stream *stream;
    char buffer[4];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_EQ(weft_stream_adopt(&stream, ends[0]), 0);
    CHECK_EQ(weft_stream_fd(stream), ends[0]);
    CHECK((fcntl(ends[0], F_GETFL) & O_NONBLOCK) != 0);
    CHECK_EQ(write(ends[1], "abc", 3), 3);
    CHECK_EQ(weft_read(stream, buffer, 4, WEFT_NEVER), 3);
    CHECK_EQ(weft_stream_release(stream), ends[0]);
    CHECK_EQ(write(ends[1], "d", 1), 1);
    CHECK_EQ(read(ends[0], buffer, 4), 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
    CHECK_EQ(weft_stream_adopt(&stream, ends[0]), -EBADF);
    CHECK_EQ(weft_stream_adopt(&stream, -1), -EBADF);
    return 0;
}

static void descriptor_can_be_adopted_and_released(void)
{
    on_workers(adopt);
}

static int read_one(void *arg)
{
    char byte;
    return (int)weft_read(arg, &byte, 1, WEFT_NEVER);
}

static int release_while_read(void *arg)
{
    (void)arg;
    weft_task *reader;
    int result;
    struct link link = link_open(LINK_LOCAL);
    CHECK_EQ(weft_go(&reader, read_one, link.far), 0);
    link_wait_for_calls(link.far, 1);
    CHECK_EQ(weft_stream_release(link.far), -EBUSY);
    CHECK_EQ(weft_write(link.near, "x", 1, WEFT_NEVER), 1);
    CHECK_EQ(weft_join(reader, &result, WEFT_NEVER), 0);
    CHECK_EQ(result, 1);
    int fd = weft_stream_release(link.far);
    CHECK(fd >= 0);
    (void)close(fd);
    link.far = NULL;
    link_close(&link);
    return 0;
}

static void release_during_read_returns_ebusy(void)
{
    on_workers(release_while_read);
}

/* Descriptor numbers are reused immediately. */
static int reuse_numbers(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 200; i++) {
        struct link link = link_open(LINK_LOCAL);
        weft_task *reader;
        int result;
        CHECK_EQ(weft_go(&reader, read_one, link.far), 0);
        if (i % 2 == 0) {
            CHECK_EQ(weft_write(link.near, "x", 1, WEFT_NEVER), 1);
            CHECK_EQ(weft_join(reader, &result, WEFT_NEVER), 0);
            CHECK_EQ(result, 1);
            link_close(&link);
        } else {
            link_wait_for_calls(link.far, 1);
            CHECK_EQ(weft_write(link.near, "x", 1, WEFT_NEVER), 1);
            link_close(&link);
            CHECK_EQ(weft_join(reader, &result, WEFT_NEVER), 0);
            CHECK(result == 1 || result == WEFT_ECLOSED);
        }
    }
    return 0;
}

static int reuse_in_parallel(void *arg)
{
    (void)arg;
    weft_task *tasks[4];
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(weft_go(&tasks[i], reuse_numbers, NULL), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(weft_join(tasks[i], NULL, WEFT_NEVER), 0);
    }
    return 0;
}

static void reused_descriptor_numbers_are_kept_apart(void)
{
    on_workers(reuse_in_parallel);
}

/* --- SIGPIPE ---------------------------------------------------------------------------- */

static weft_stream *broken;

static void *write_on_thread(void *arg)
{
    sigset_t pending;
    struct timespec none = { 0 };
    sigset_t only_pipe;
    (void)arg;
    CHECK_EQ(weft_write(broken, "x", 1, WEFT_NEVER), -EPIPE);
    /* A signal that was already pending is left alone. */
    CHECK_EQ(sigemptyset(&only_pipe), 0);
    CHECK_EQ(sigaddset(&only_pipe, SIGPIPE), 0);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &only_pipe, NULL), 0);
    CHECK_EQ(pthread_kill(pthread_self(), SIGPIPE), 0);
    CHECK_EQ(weft_write(broken, "x", 1, WEFT_NEVER), -EPIPE);
    CHECK_EQ(sigpending(&pending), 0);
    CHECK_EQ(sigismember(&pending, SIGPIPE), 1);
    CHECK_EQ(sigtimedwait(&only_pipe, NULL, &none), SIGPIPE);
    return NULL;
}

static int break_pipe(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_PIPE);
    weft_stream_close(link.far);
    broken = link.near;
    return 0;
}

static int write_in_blocking_job(void *arg)
{
    (void)arg;
    return (int)weft_write(broken, "x", 1, WEFT_NEVER);
}

static int write_on_fiber(void *arg)
{
    (void)arg;
    weft_task *job;
    int result;
    CHECK_EQ(weft_write(broken, "x", 1, WEFT_NEVER), -EPIPE);
    CHECK_EQ(weft_spawn_blocking(&job, write_in_blocking_job, NULL), 0);
    CHECK_EQ(weft_join(job, &result, WEFT_NEVER), 0);
    CHECK_EQ(result, -EPIPE);
    return 0;
}

static void write_to_broken_pipe_raises_no_signal(void)
{
    weft_runtime *rt = test_start(1);
    pthread_t thread;
    CHECK_EQ(test_run(rt, break_pipe, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, write_on_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(test_run(rt, write_on_fiber, NULL), 0);
    weft_stream_close(broken);
    weft_runtime_destroy(rt);
}

/* --- Urgent data ------------------------------------------------------------------------ */

static int send_urgent(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_TCP);
    char buffer[64];
    for (unsigned i = 0; i < 20; i++) {
        size_t all = 0;
        int fd = weft_stream_fd(link.near);
        CHECK_EQ(send(fd, "abc", 3, 0), 3);
        CHECK_EQ(send(fd, "!", 1, MSG_OOB), 1);
        CHECK_EQ(send(fd, "defg", 4, 0), 4);
        while (all < 7) { /* A read ends at the urgent byte. */
            ssize_t n = weft_read(link.far, buffer + all, sizeof buffer - all, WEFT_NEVER);
            CHECK(n > 0);
            all += (size_t)n;
        }
        CHECK_EQ(memcmp(buffer, "abcdefg", 7), 0);
    }
    link_close(&link);
    return 0;
}

/*
 * Goal:   a read that is short because of urgent data does not mark the stream as drained.
 * Method: more data follows at the same time, and no event after it.
 */
static void urgent_data_does_not_hide_data_after_it(void)
{
    on_workers(send_urgent);
}

/* --- Adopted pipes ---------------------------------------------------------------------- */

static int read_packets(void *arg)
{
    int ends[2];
    char buffer[8];
    weft_stream *reader;
    (void)arg;
    CHECK_EQ(pipe2(ends, O_DIRECT | O_CLOEXEC), 0);
    CHECK_EQ(weft_stream_adopt(&reader, ends[0]), 0);
    CHECK_EQ(weft_read(reader, buffer, 8, weft_after(WEFT_MS)),
             WEFT_ETIMEDOUT); /* It is registered now. */
    CHECK_EQ(write(ends[1], "ab", 2), 2);
    CHECK_EQ(write(ends[1], "c", 1), 1);
    CHECK_EQ(weft_read(reader, buffer, 8, test_deadline()), 2);
    CHECK_EQ(weft_read(reader, buffer, 8, test_deadline()), 1);
    (void)close(ends[1]);
    CHECK_EQ(weft_read(reader, buffer, 8, test_deadline()), 0);
    weft_stream_close(reader);
    return 0;
}

/*
 * Goal:   a read that is short because a packet ends does not mark the stream as drained.
 * Method: the pipe is in packet mode. Both packets are available when the first is read.
 */
static void packet_does_not_hide_next_packet(void)
{
    on_workers(read_packets);
}

static int peek_into_pipe(void *arg)
{
    struct link link = link_open(LINK_PIPE);
    char byte;
    (void)arg;
    CHECK_EQ(weft_peek(link.far, &byte, 1, test_deadline()), -EOPNOTSUPP);
    CHECK_EQ(weft_peek(link.far, &byte, 0, test_deadline()), 0);
    CHECK_EQ(weft_read(link.far, &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_peek(link.far, &byte, 1, test_deadline()), -EOPNOTSUPP);
    link_close(&link);
    return 0;
}

static void peek_into_pipe_fails_without_waiting(void)
{
    on_workers(peek_into_pipe);
}

/* --- Streams left open ------------------------------------------------------------------ */

static int leave_open(void *arg)
{
    struct link *link = arg;
    *link = link_open(LINK_LOCAL);
    struct link in_memory = link_open(LINK_MEMORY);
    weft_stream_close(in_memory.near); /* The memory then belongs to the other side. */
    return 0;
}

static void runtime_closes_streams_left_open(void)
{
    unsigned before = link_fds();
    struct link link;
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, leave_open, &link), 0);
    CHECK(link_fds() >= before + 2);
    weft_runtime_destroy(rt);
    CHECK_EQ(link_fds(), before);
}

static int peek_byte(void *stream)
{
    char byte;
    return (int)weft_peek(stream, &byte, 1, WEFT_NEVER);
}

static int read_byte(void *stream)
{
    char byte;
    return (int)weft_read(stream, &byte, 1, WEFT_NEVER);
}

/* There is one event, for the first waiter, which consumes nothing. */
static int peek_before_reading(void *arg)
{
    struct link *link = arg;
    weft_task *tasks[2];
    int result;
    CHECK_EQ(weft_go(&tasks[0], peek_byte, link->far), 0);
    link_wait_for_calls(link->far, 1);
    CHECK_EQ(weft_sleep(WEFT_MS), 0); /* It is enqueued. */
    CHECK_EQ(weft_go(&tasks[1], read_byte, link->far), 0);
    link_wait_for_calls(link->far, 2);
    CHECK_EQ(weft_sleep(WEFT_MS), 0);
    CHECK_EQ(weft_write_all(link->near, "x", 1, WEFT_NEVER), 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(weft_join(tasks[i], &result, test_deadline()), 0);
        CHECK_EQ(result, 1);
    }
    return 0;
}

static void peek_leaves_data_to_other_waiters(void)
{
    link_run_both_ways(peek_before_reading);
}

TEST_MAIN({
    TEST(peek_leaves_data_to_other_waiters),
    TEST(descriptor_can_be_adopted_and_released),
    TEST(release_during_read_returns_ebusy),
    TEST(reused_descriptor_numbers_are_kept_apart),
    TEST(write_to_broken_pipe_raises_no_signal),
    TEST(urgent_data_does_not_hide_data_after_it),
    TEST(packet_does_not_hide_next_packet),
    TEST(peek_into_pipe_fails_without_waiting),
    TEST(runtime_closes_streams_left_open),
})
