/* SPDX-License-Identifier: MIT */
/*
 * call_test.c - direct system calls of call.h: they behave like the functions of the C library.
 */
#include "io/call.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "test.h"

static int ends[2];

static void open_ends(void)
{
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
}

static void close_ends(void)
{
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void sent_bytes_are_received(void)
{
    char buffer[8] = { 0 };
    open_ends();
    CHECK_EQ(wf_call_send(ends[0], "weft", 4, MSG_NOSIGNAL), 4);
    CHECK_EQ(wf_call_recv(ends[1], buffer, sizeof buffer, MSG_PEEK), 4);
    CHECK_EQ(wf_call_recv(ends[1], buffer + 4, 2, 0), 2);
    CHECK_EQ(memcmp(buffer, "weftwe", 6), 0);
    close_ends();
}

static void error_is_in_errno(void)
{
    char byte = 0;
    open_ends();
    errno = 0;
    CHECK_EQ(wf_call_recv(ends[0], &byte, 1, 0), -1);
    CHECK_EQ(errno, EAGAIN);
    (void)close(ends[1]);
    CHECK_EQ(wf_call_send(ends[0], &byte, 1, MSG_NOSIGNAL), -1);
    CHECK_EQ(errno, EPIPE);
    CHECK_EQ(wf_call_recv(ends[0], &byte, 1, 0), 0); /* The end. */
    CHECK_EQ(wf_call_recv(-1, &byte, 1, 0), -1);
    CHECK_EQ(errno, EBADF);
    (void)close(ends[0]);
}

static void eventfd_is_incremented(void)
{
    uint64_t count = 0;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK(fd >= 0);
    errno = ERANGE;
    wf_call_count_up(fd);
    wf_call_count_up(fd);
    CHECK_EQ(errno, ERANGE);
    CHECK_EQ(read(fd, &count, sizeof count), sizeof count);
    CHECK_EQ(count, 2);
    (void)close(fd);
}

TEST_MAIN({
    TEST(sent_bytes_are_received),
    TEST(error_is_in_errno),
    TEST(eventfd_is_incremented),
})
