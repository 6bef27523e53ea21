/* SPDX-License-Identifier: MIT */
/*
 * Descriptors as streams: those of others, pipes and signals, urgent data.
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

static void a_descriptor_is_adopted_and_released(void)
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

static void nothing_is_released_while_somebody_reads(void)
{
    on_workers(release_while_read);
}

/* The numbers of descriptors are used again at once. */
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

static void numbers_that_are_used_again_are_kept_apart(void)
{
    on_workers(reuse_in_parallel);
}

/* --- SIGPIPE ---------------------------------------------------------------------------- */

static weft_stream *broken;

static void *write_on_a_thread(void *arg)
{
    sigset_t pending;
    struct timespec none = { 0 };
    sigset_t only_pipe;
    (void)arg;
    CHECK_EQ(weft_write(broken, "x", 1, WEFT_NEVER), -EPIPE);
    /* One that was pending before is left alone. */
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

static int break_a_pipe(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_PIPE);
    weft_stream_close(link.far);
    broken = link.near;
    return 0;
}

static int write_in_a_job(void *arg)
{
    (void)arg;
    return (int)weft_write(broken, "x", 1, WEFT_NEVER);
}

static int write_on_a_fiber(void *arg)
{
    (void)arg;
    weft_task *job;
    int result;
    CHECK_EQ(weft_write(broken, "x", 1, WEFT_NEVER), -EPIPE);
    CHECK_EQ(weft_spawn_blocking(&job, write_in_a_job, NULL), 0);
    CHECK_EQ(weft_join(job, &result, WEFT_NEVER), 0);
    CHECK_EQ(result, -EPIPE);
    return 0;
}

static void a_broken_pipe_kills_nobody(void)
{
    weft_runtime *rt = test_start(1);
    pthread_t thread;
    CHECK_EQ(test_run(rt, break_a_pipe, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, write_on_a_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(test_run(rt, write_on_a_fiber, NULL), 0);
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
        while (all < 7) { /* A read ends where the urgent byte is. */
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
 * Goal:   a read that is short because of urgent data is not taken for the last one.
 * Method: more follows, in the same moment, and no event after it.
 */
static void urgent_data_does_not_hide_what_follows(void)
{
    on_workers(send_urgent);
}

/* --- Pipes of others -------------------------------------------------------------------- */

static int read_packets(void *arg)
{
    int ends[2];
    char buffer[8];
    weft_stream *reader;
    (void)arg;
    CHECK_EQ(pipe2(ends, O_DIRECT | O_CLOEXEC), 0);
    CHECK_EQ(weft_stream_adopt(&reader, ends[0]), 0);
    CHECK_EQ(weft_read(reader, buffer, 8, weft_after(WEFT_MS)),
             WEFT_ETIMEDOUT); /* It is watched. */
    CHECK_EQ(write(ends[1], "ab", 2), 2);
    CHECK_EQ(write(ends[1], "c", 1), 1);
    CHECK_EQ(weft_read(reader, buffer, 8, weft_after(60 * WEFT_S)), 2);
    CHECK_EQ(weft_read(reader, buffer, 8, weft_after(60 * WEFT_S)), 1);
    (void)close(ends[1]);
    CHECK_EQ(weft_read(reader, buffer, 8, weft_after(60 * WEFT_S)), 0);
    weft_stream_close(reader);
    return 0;
}

/*
 * Goal:   a read that is short because a packet ends is not taken for the last one.
 * Method: the pipe is a packet's; both are there when the first is read.
 */
static void a_packet_does_not_hide_the_next(void)
{
    on_workers(read_packets);
}

static int peek_into_a_pipe(void *arg)
{
    struct link link = link_open(LINK_PIPE);
    char byte;
    (void)arg;
    CHECK_EQ(weft_peek(link.far, &byte, 1, weft_after(60 * WEFT_S)), -EOPNOTSUPP);
    CHECK_EQ(weft_read(link.far, &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_peek(link.far, &byte, 1, weft_after(60 * WEFT_S)), -EOPNOTSUPP);
    link_close(&link);
    return 0;
}

static void who_cannot_peek_does_not_wait(void)
{
    on_workers(peek_into_a_pipe);
}

/* --- What is left behind ---------------------------------------------------------------- */

static int leave_open(void *arg)
{
    struct link *link = arg;
    *link = link_open(LINK_LOCAL);
    struct link in_memory = link_open(LINK_MEMORY);
    weft_stream_close(in_memory.near); /* Who has left one side has left memory to the other. */
    return 0;
}

static void a_runtime_closes_what_was_left_open(void)
{
    unsigned before = link_fds();
    struct link link;
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, leave_open, &link), 0);
    CHECK(link_fds() >= before + 2);
    weft_runtime_destroy(rt);
    CHECK_EQ(link_fds(), before);
}

static int peek_a_byte(void *stream)
{
    char byte;
    return (int)weft_peek(stream, &byte, 1, WEFT_NEVER);
}

static int read_a_byte(void *stream)
{
    char byte;
    return (int)weft_read(stream, &byte, 1, WEFT_NEVER);
}

/* One event, for who has come first, and that one takes nothing. */
static int peek_before_reading(void *arg)
{
    struct link *link = arg;
    weft_task *tasks[2];
    int result;
    CHECK_EQ(weft_go(&tasks[0], peek_a_byte, link->far), 0);
    link_wait_for_calls(link->far, 1);
    CHECK_EQ(weft_sleep(WEFT_MS), 0); /* It is in the queue. */
    CHECK_EQ(weft_go(&tasks[1], read_a_byte, link->far), 0);
    link_wait_for_calls(link->far, 2);
    CHECK_EQ(weft_sleep(WEFT_MS), 0);
    CHECK_EQ(weft_write_all(link->near, "x", 1, WEFT_NEVER), 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(weft_join(tasks[i], &result, weft_after(60 * WEFT_S)), 0);
        CHECK_EQ(result, 1);
    }
    return 0;
}

static void who_peeks_leaves_it_to_others(void)
{
    link_run_both_ways(peek_before_reading);
}

TEST_MAIN({
    TEST(who_peeks_leaves_it_to_others),
    TEST(a_descriptor_is_adopted_and_released),
    TEST(nothing_is_released_while_somebody_reads),
    TEST(numbers_that_are_used_again_are_kept_apart),
    TEST(a_broken_pipe_kills_nobody),
    TEST(urgent_data_does_not_hide_what_follows),
    TEST(a_packet_does_not_hide_the_next),
    TEST(who_cannot_peek_does_not_wait),
    TEST(a_runtime_closes_what_was_left_open),
})
