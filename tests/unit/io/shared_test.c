/* SPDX-License-Identifier: MIT */
/*
 * shared_test.c - terminals and standard pipes as streams: other users of them are not affected.
 */
#include "io/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <weft.h>

#include "links.h"
#include "rt.h"
#include "sandbox.h"
#include "test.h"

/*
 * A pseudo-terminal. near is what a program gets as its standard input, and shell is another
 * descriptor of the same open file description.
 */
static struct {
    int far; /* the master */
    int near;
    int shell;
} terminal;

static void open_terminal(void)
{
    struct termios settings;
    terminal.far = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK_GE(terminal.far, 0);
    CHECK_EQ(grantpt(terminal.far), 0);
    CHECK_EQ(unlockpt(terminal.far), 0);
    terminal.near = open(ptsname(terminal.far), O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK_GE(terminal.near, 0);
    CHECK_EQ(tcgetattr(terminal.near, &settings), 0);
    cfmakeraw(&settings);
    CHECK_EQ(tcsetattr(terminal.near, TCSANOW, &settings), 0);
    terminal.shell = dup(terminal.near);
    CHECK_GE(terminal.shell, 0);
}

static void close_terminal(void)
{
    CHECK_EQ(close(terminal.far), 0);
    CHECK_EQ(close(terminal.shell), 0);
}

static bool blocks(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    CHECK_GE(flags, 0);
    return (flags & O_NONBLOCK) == 0;
}

static void check_stream(weft_stream *stream)
{
    char buffer[8];
    CHECK_EQ(weft_read(stream, buffer, sizeof buffer, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(write(terminal.far, "in", 2), 2);
    CHECK_EQ(weft_read(stream, buffer, 2, WEFT_NEVER), 2);
    CHECK_EQ(memcmp(buffer, "in", 2), 0);
    CHECK_EQ(weft_write_all(stream, "out", 3, WEFT_NEVER), 0);
    CHECK_EQ(read(terminal.far, buffer, 3), 3);
    CHECK_EQ(memcmp(buffer, "out", 3), 0);
}

/* --- Terminals -------------------------------------------------------------------------- */

static int adopt_terminal(void *arg)
{
    weft_stream *stream;
    bool is_borrowed = *(const bool *)arg; /* because no other descriptor can be opened */
    CHECK_EQ(weft_stream_adopt(&stream, terminal.near), 0);
    CHECK_EQ(blocks(terminal.shell), !is_borrowed);
    check_stream(stream);
    CHECK_EQ(weft_stream_release(stream), terminal.near);
    CHECK(blocks(terminal.shell));
    CHECK(blocks(terminal.near));
    CHECK_EQ(weft_stream_adopt(&stream, terminal.near), 0);
    CHECK_EQ(blocks(terminal.shell), !is_borrowed);
    weft_stream_close(stream);
    CHECK(blocks(terminal.shell));
    CHECK_EQ(fcntl(terminal.near, F_GETFL), -1); /* It is closed. */
    return 0;
}

static void run_with_terminal(bool is_borrowed)
{
    unsigned before = link_fds();
    open_terminal();
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, adopt_terminal, &is_borrowed), 0);
    weft_runtime_destroy(rt);
    close_terminal();
    CHECK_EQ(link_fds(), before);
}

static void adopted_terminal_stays_blocking_for_others(void)
{
    run_with_terminal(false);
}

static int leave_open(void *arg)
{
    weft_stream *stream;
    (void)arg;
    return weft_stream_adopt(&stream, terminal.near);
}

static void runtime_closes_terminal_left_open(void)
{
    unsigned before = link_fds();
    open_terminal();
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, leave_open, NULL), 0);
    weft_runtime_destroy(rt);
    CHECK(blocks(terminal.shell));
    close_terminal();
    CHECK_EQ(link_fds(), before);
}

static int adopt_non_blocking(void *arg)
{
    weft_stream *stream;
    unsigned before = link_fds();
    (void)arg;
    CHECK_EQ(fcntl(terminal.near, F_SETFL, fcntl(terminal.near, F_GETFL) | O_NONBLOCK), 0);
    CHECK_EQ(weft_stream_adopt(&stream, terminal.near), 0);
    CHECK_EQ(link_fds(), before); /* There is nothing to protect. */
    check_stream(stream);
    CHECK_EQ(weft_stream_release(stream), terminal.near);
    CHECK(!blocks(terminal.shell));
    CHECK_EQ(close(terminal.near), 0);
    return 0;
}

static void nonblocking_terminal_is_adopted_unchanged(void)
{
    weft_runtime *rt = test_start(1);
    weft_io_info info;
    CHECK_EQ(weft_runtime_io(rt, &info), 0); /* Opens the backend. */
    open_terminal();
    CHECK_EQ(test_run(rt, adopt_non_blocking, NULL), 0);
    close_terminal();
    weft_runtime_destroy(rt);
}

/* --- A terminal that cannot be reopened -------------------------------------------------- */

static void borrow_terminal(const void *arg)
{
    (void)arg;
    open_terminal();
    weft_runtime *rt = test_start(2);
    bool is_borrowed = true;
    sandbox_forbid(SYS_openat, EACCES);
    CHECK_EQ(test_run(rt, adopt_terminal, &is_borrowed), 0);
    weft_runtime_destroy(rt);
}

static void borrowed_terminal_is_restored_on_release_and_close(void)
{
    sandbox_run(borrow_terminal, NULL);
}

/* Runs in a child that adopts the terminal and exits without destroying the runtime. */
static void exit_with_terminal(const void *arg)
{
    (void)arg;
    weft_runtime *rt = test_start(1);
    sandbox_forbid(SYS_openat, EACCES);
    CHECK_EQ(test_run(rt, leave_open, NULL), 0);
    CHECK(!blocks(terminal.shell));
    exit(0);
}

static void borrowed_terminal_is_restored_at_exit(void)
{
    open_terminal();
    sandbox_run(exit_with_terminal, NULL);
    CHECK(blocks(terminal.shell));
    CHECK_EQ(close(terminal.near), 0);
    close_terminal();
}

/* --- Pipes ---------------------------------------------------------------------------------- */

static int adopt_standard_pipe(void *arg)
{
    const int *ends = arg;
    weft_stream *stream;
    char buffer[4];
    CHECK_EQ(weft_stream_adopt(&stream, STDIN_FILENO), 0);
    CHECK(blocks(ends[0]));
    CHECK_EQ(weft_read(stream, buffer, sizeof buffer, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(write(ends[1], "in", 2), 2);
    CHECK_EQ(weft_read(stream, buffer, sizeof buffer, WEFT_NEVER), 2);
    CHECK_EQ(close(ends[1]), 0);
    CHECK_EQ(weft_read(stream, buffer, sizeof buffer, WEFT_NEVER), 0);
    CHECK_EQ(weft_stream_release(stream), STDIN_FILENO);
    CHECK(blocks(STDIN_FILENO));
    return 0;
}

/* Runs in a child whose standard input is a pipe that others use as well. */
static void use_standard_pipe(const void *arg)
{
    int ends[2];
    (void)arg;
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, adopt_standard_pipe, ends), 0);
    weft_runtime_destroy(rt);
}

static void adopted_standard_pipe_stays_blocking_for_others(void)
{
    sandbox_run(use_standard_pipe, NULL);
}

/* --- Shared descriptors ----------------------------------------------------------------- */

static void only_terminals_and_standard_pipes_are_shared(void)
{
    int ends[2];
    open_terminal();
    CHECK(wf_shared_is(terminal.near));
    CHECK(!wf_shared_is(terminal.far)); /* A second master would be another terminal. */
    CHECK_EQ(pipe(ends), 0);
    CHECK(!wf_shared_is(ends[0]));
    CHECK_EQ(close(ends[0]), 0);
    CHECK_EQ(close(ends[1]), 0);
    CHECK(!wf_shared_is(ends[0]));
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK(!wf_shared_is(ends[0]));
    CHECK_EQ(close(ends[0]), 0);
    CHECK_EQ(close(ends[1]), 0);
    CHECK_EQ(close(terminal.near), 0);
    close_terminal();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK(!wf_shared_is(null));
    CHECK_EQ(close(null), 0);
}

TEST_MAIN({
    TEST(adopted_terminal_stays_blocking_for_others),
    TEST(runtime_closes_terminal_left_open),
    TEST(nonblocking_terminal_is_adopted_unchanged),
    TEST_NATIVE(borrowed_terminal_is_restored_on_release_and_close, "has no seccomp"),
    TEST_NATIVE(borrowed_terminal_is_restored_at_exit, "has no seccomp"),
    TEST(adopted_standard_pipe_stays_blocking_for_others),
    TEST(only_terminals_and_standard_pipes_are_shared),
})
