/* SPDX-License-Identifier: MIT */
/*
 * fds_test.c - descriptor passing over Unix sockets: all descriptors arrive once, and none leaks.
 */
#include <weft/net.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weft.h>

#include "crowd.h"
#include "links.h"
#include "ports.h"
#include "rt.h"
#include "test.h"

/* --- Recognizable descriptors -------------------------------------------------------- */

/* Returns a file that contains a number. */
static int make_file(uint32_t number)
{
    int fd = memfd_create("fds_test", MFD_CLOEXEC);
    CHECK_GE(fd, 0);
    CHECK_EQ(pwrite(fd, &number, sizeof number, 0), (ssize_t)sizeof number);
    return fd;
}

/* Checks that it is that file and is close-on-exec, and closes it. */
static void check_file(int fd, uint32_t wanted)
{
    uint32_t number = ~wanted;
    CHECK_EQ(pread(fd, &number, sizeof number, 0), (ssize_t)sizeof number);
    CHECK_EQ(number, wanted);
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK_EQ(close(fd), 0);
}

static void make_files(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fds[i] = make_file((uint32_t)i);
    }
}

static void close_files(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(close(fds[i]), 0);
    }
}

/* --- Number of descriptors ----------------------------------------------------------- */

static int pass_some(void *arg)
{
    size_t count = *(const size_t *)arg;
    struct link link = link_open(LINK_LOCAL);
    int fds[WEFT_FDS_MAX];
    int received[WEFT_FDS_MAX + 1];
    size_t room = WEFT_FDS_MAX;
    char text[8] = "";
    make_files(fds, count);
    CHECK_EQ(weft_write_fds(link.near, "some", 4, fds, count, WEFT_NEVER), 4);
    close_files(fds, count); /* They still belonged to the caller. */
    received[count] = -7;
    CHECK_EQ(weft_read_fds(link.far, text, sizeof text, received, &room, WEFT_NEVER), 4);
    CHECK_EQ(memcmp(text, "some", 4), 0);
    CHECK_EQ(room, count);
    CHECK_EQ(received[count], -7);
    for (size_t i = 0; i < count; i++) {
        check_file(received[i], (uint32_t)i);
    }
    link_close(&link);
    return 0;
}

static void descriptors_arrive_in_order(void)
{
    static const size_t counts[] = { 0, 1, 2, 17, WEFT_FDS_MAX };
    for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        port_run_all(pass_some, &counts[i]);
    }
}

static int pass_too_many(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_LOCAL);
    int fds[WEFT_FDS_MAX + 1];
    char byte;
    for (size_t i = 0; i <= WEFT_FDS_MAX; i++) {
        fds[i] = STDERR_FILENO;
    }
    CHECK_EQ(weft_write_fds(link.near, "x", 1, fds, WEFT_FDS_MAX + 1, WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_write_fds(link.near, "x", 1, fds, SIZE_MAX / 2, WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_write_fds(link.near, "", 0, fds, 1, WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_write_fds(link.near, "", 0, fds, 0, WEFT_NEVER), -EINVAL);
    fds[1] = -1;
    CHECK_EQ(weft_write_fds(link.near, "x", 1, fds, 2, WEFT_NEVER), -EBADF);
    CHECK_EQ(weft_try_read(link.far, &byte, 1), -EAGAIN); /* Nothing was sent. */
    link_close(&link);
    return 0;
}

static void too_many_or_bad_descriptors_are_refused(void)
{
    port_run_all(pass_too_many, NULL);
}

/* --- Capacity ------------------------------------------------------------------------ */

static int receive_with_less_room(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_LOCAL);
    int fds[10];
    int received[10];
    char byte;
    make_files(fds, 10);
    for (size_t space = 0; space < 10; space += 3) {
        unsigned before = link_fds();
        size_t room = space;
        CHECK_EQ(weft_write_fds(link.near, "x", 1, fds, 10, WEFT_NEVER), 1);
        CHECK_EQ(weft_read_fds(link.far, &byte, 1, received, &room, WEFT_NEVER), 1);
        CHECK_EQ(room, space);
        for (size_t i = 0; i < space; i++) {
            check_file(received[i], (uint32_t)i);
        }
        CHECK_EQ(link_fds(), before); /* The others are closed. */
    }
    close_files(fds, 10);
    link_close(&link);
    return 0;
}

static void descriptors_beyond_capacity_are_closed(void)
{
    port_run_all(receive_with_less_room, NULL);
}

/* Limits the process to this number of additional descriptors. Returns the previous limit. */
static struct rlimit leave_room_for(unsigned count)
{
    int fds[8];
    struct rlimit before;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit limit = before;
    limit.rlim_cur = 0;
    for (unsigned i = 0; i < count; i++) {
        fds[i] = make_file(i);
        limit.rlim_cur = (rlim_t)fds[i] + 1;
    }
    close_files(fds, count);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

static int receive_without_descriptors(void *arg)
{
    enum {
        SENT = 4,
    };
    (void)arg;
    for (unsigned left = 0; left <= SENT; left++) {
        struct link link = link_open(LINK_LOCAL);
        int fds[SENT];
        int received[SENT + 2];
        char text[8];
        make_files(fds, SENT);
        for (size_t room = SENT; room <= SENT + 1; room++) { /* Exactly enough, and more. */
            CHECK_EQ(weft_write_fds(link.near, "some", 4, fds, SENT, WEFT_NEVER), 4);
            size_t count = room;
            struct rlimit before = leave_room_for(left);
            ssize_t n = weft_read_fds(link.far, text, sizeof text, received, &count, WEFT_NEVER);
            CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
            CHECK_EQ(n, 4); /* No byte is lost. */
            CHECK_EQ(memcmp(text, "some", 4), 0);
            CHECK_EQ(count, left < SENT ? left + 1 : SENT);
            for (unsigned i = 0; i < left; i++) {
                check_file(received[i], i);
            }
            if (left < SENT) {
                CHECK_EQ(received[left], -1);
            }
        }
        /* Descriptors beyond the caller's capacity are not reported as lost. */
        CHECK_EQ(weft_write_fds(link.near, "some", 4, fds, SENT, WEFT_NEVER), 4);
        size_t count = left;
        struct rlimit before = leave_room_for(left);
        ssize_t n = weft_read_fds(link.far, text, sizeof text, received, &count, WEFT_NEVER);
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        CHECK_EQ(n, 4);
        CHECK_EQ(count, left);
        for (unsigned i = 0; i < left; i++) {
            check_file(received[i], i);
        }
        close_files(fds, SENT);
        link_close(&link);
    }
    return 0;
}

static void lost_descriptors_are_marked(void)
{
    port_run_all(receive_without_descriptors, NULL);
}

static int read_plainly(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_LOCAL);
    int fds[3];
    char text[16];
    make_files(fds, 3);
    unsigned before = link_fds();
    CHECK_EQ(weft_write(link.near, "ab", 2, WEFT_NEVER), 2);
    CHECK_EQ(weft_write_fds(link.near, "cdef", 4, fds, 3, WEFT_NEVER), 4);
    CHECK_EQ(weft_write(link.near, "gh", 2, WEFT_NEVER), 2);
    CHECK_EQ(weft_write_fds(link.near, "i", 1, fds, 3, WEFT_NEVER), 1);
    CHECK_EQ(weft_read_exact(link.far, text, 9, WEFT_NEVER), 0);
    CHECK_EQ(memcmp(text, "abcdefghi", 9), 0);
    CHECK_EQ(link_fds(), before);
    close_files(fds, 3);
    link_close(&link);
    return 0;
}

static void plain_read_loses_descriptors_but_no_bytes(void)
{
    port_run_all(read_plainly, NULL);
}

static int keep_messages_apart(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_LOCAL);
    int fds[2];
    int received[4];
    char text[16];
    size_t at = 0;
    uint32_t next = 0;
    make_files(fds, 2);
    CHECK_EQ(weft_write(link.near, "ab", 2, WEFT_NEVER), 2);
    CHECK_EQ(weft_write_fds(link.near, "cd", 2, &fds[0], 1, WEFT_NEVER), 2);
    CHECK_EQ(weft_write_fds(link.near, "ef", 2, &fds[1], 1, WEFT_NEVER), 2);
    while (at < 6) {
        size_t room = 4;
        ssize_t n =
            weft_read_fds(link.far, text + at, sizeof text - at, received, &room, WEFT_NEVER);
        CHECK(n > 0);
        at += (size_t)n;
        for (size_t i = 0; i < room; i++) {
            /* Not before the byte with which it was written. */
            CHECK_GE(at, 2 * next + 3);
            check_file(received[i], next++);
        }
    }
    CHECK_EQ(memcmp(text, "abcdef", 6), 0);
    CHECK_EQ(next, 2);
    close_files(fds, 2);
    link_close(&link);
    return 0;
}

static void descriptors_arrive_with_their_bytes(void)
{
    port_run_all(keep_messages_apart, NULL);
}

static int read_nothing(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_LOCAL);
    int received[2];
    size_t room = 2;
    char byte;
    CHECK_EQ(weft_read_fds(link.far, &byte, 0, received, &room, weft_after(WEFT_S)), 0);
    CHECK_EQ(room, 0);
    int fd = make_file(5);
    CHECK_EQ(weft_write_fds(link.near, "x", 1, &fd, 1, WEFT_NEVER), 1);
    room = 2;
    CHECK_EQ(weft_read_fds(link.far, &byte, 0, received, &room, weft_after(WEFT_S)), 0);
    CHECK_EQ(room, 0);
    room = 2;
    CHECK_EQ(weft_read_fds(link.far, &byte, 1, received, &room, WEFT_NEVER), 1);
    CHECK_EQ(room, 1);
    check_file(received[0], 5);
    (void)close(fd);
    link_close(&link);
    return 0;
}

/* Same as weft_read(). */
static void read_of_zero_bytes_returns_immediately(void)
{
    port_run(1, read_nothing, NULL);
}

static int read_to_end(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_LOCAL);
    int fd = make_file(1);
    int received = -1;
    size_t room = 1;
    char byte;
    CHECK_EQ(weft_write_fds(link.near, "x", 1, &fd, 1, WEFT_NEVER), 1);
    weft_stream_close(link.near);
    CHECK_EQ(weft_read_fds(link.far, &byte, 1, &received, &room, WEFT_NEVER), 1);
    check_file(received, 1);
    room = 1;
    CHECK_EQ(weft_read_fds(link.far, &byte, 1, &received, &room, WEFT_NEVER), 0);
    CHECK_EQ(room, 0);
    CHECK_EQ(weft_write_fds(link.far, "x", 1, &fd, 1, WEFT_NEVER), -EPIPE);
    (void)close(fd);
    weft_stream_close(link.far);
    return 0;
}

static void end_of_stream_has_no_descriptors(void)
{
    port_run_all(read_to_end, NULL);
}

static int leave_unread(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_LOCAL);
    int fd = make_file(1);
    CHECK_EQ(weft_write_fds(link.near, "x", 1, &fd, 1, WEFT_NEVER), 1);
    (void)close(fd);
    link_close(&link);
    return 0;
}

static void unread_descriptors_are_closed_with_stream(void)
{
    port_run(1, leave_unread, NULL);
}

/* The sender's credentials take some of the space for descriptors. */
static int pass_with_credentials(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_LOCAL);
    int fds[WEFT_FDS_MAX];
    int received[WEFT_FDS_MAX];
    size_t room = WEFT_FDS_MAX;
    char byte;
    CHECK_EQ(weft_stream_set_option(link.far, WEFT_OPTION_PASS_CREDENTIALS, 1), 0);
    make_files(fds, WEFT_FDS_MAX);
    CHECK_EQ(weft_write_fds(link.near, "x", 1, fds, WEFT_FDS_MAX, WEFT_NEVER), 1);
    CHECK_EQ(weft_read_fds(link.far, &byte, 1, received, &room, WEFT_NEVER), 1);
    CHECK_EQ(room, WEFT_FDS_MAX);
    for (size_t i = 0; i < room; i++) {
        check_file(received[i], (uint32_t)i);
    }
    close_files(fds, WEFT_FDS_MAX);
    link_close(&link);
    return 0;
}

static void all_descriptors_arrive_beside_credentials(void)
{
    port_run(1, pass_with_credentials, NULL);
}

/* --- Unsupported streams ------------------------------------------------------------- */

static int pass_elsewhere(void *arg)
{
    (void)arg;
    static const enum link_kind kinds[] = { LINK_TCP, LINK_PIPE };
    for (unsigned i = 0; i < 2; i++) {
        struct link link = link_open(kinds[i]);
        int fd = STDERR_FILENO;
        size_t room = 1;
        char byte;
        CHECK_EQ(weft_write_fds(link.near, "x", 1, &fd, 1, WEFT_NEVER), -EOPNOTSUPP);
        CHECK_EQ(weft_read_fds(link.far, &byte, 1, &fd, &room, WEFT_NEVER), -EOPNOTSUPP);
        CHECK_EQ(weft_write(link.near, "y", 1, WEFT_NEVER), 1);
        CHECK_EQ(weft_read(link.far, &byte, 1, WEFT_NEVER), 1);
        CHECK_EQ(byte, 'y');
        link_close(&link);
    }
    return 0;
}

static void only_unix_sockets_pass_descriptors(void)
{
    port_run_all(pass_elsewhere, NULL);
}

/* --- Waiting ------------------------------------------------------------------------- */

static struct link shared;
static int shared_fd;

static int open_shared(void *arg)
{
    (void)arg;
    shared = link_open(LINK_LOCAL);
    shared_fd = make_file(9);
    return 0;
}

static int close_shared(void *arg)
{
    (void)arg;
    link_close(&shared);
    CHECK_EQ(close(shared_fd), 0);
    return 0;
}

/* Fills the stream until it is full. */
static int fill_shared(void *arg)
{
    static char bytes[4096];
    ssize_t n;
    (void)arg;
    do {
        n = weft_try_write(shared.near, bytes, sizeof bytes);
    } while (n > 0);
    CHECK_EQ(n, -EAGAIN);
    return 0;
}

/* In one call, so that there is one event for all the space. */
static int drain_shared(void *arg)
{
    static char bytes[1 << 20];
    (void)arg;
    while (weft_try_read(shared.far, bytes, sizeof bytes) > 0) {
    }
    return 0;
}

static int read_shared(void *deadline)
{
    int received = -1;
    size_t room = 1;
    char byte;
    int result = (int)weft_read_fds(shared.far, &byte, 1, &received, &room,
                                    deadline != NULL ? *(weft_time *)deadline : WEFT_NEVER);
    if (result == 1 && room == 1) {
        check_file(received, 9);
    }
    return result;
}

static int write_shared(void *deadline)
{
    return (int)weft_write_fds(shared.near, "x", 1, &shared_fd, 1,
                               deadline != NULL ? *(weft_time *)deadline : WEFT_NEVER);
}

static void reader_waits_for_descriptors(void)
{
    weft_runtime *rt = test_start(1);
    weft_time late = 0;
    CHECK_EQ(test_run(rt, open_shared, NULL), 0);
    CHECK_EQ(test_run(rt, read_shared, &late), WEFT_ETIMEDOUT);
    weft_task *reader = test_go_first(rt, read_shared, NULL);
    weft_cancel(reader);
    CHECK_EQ(test_join_soon(reader), WEFT_ECANCELED);
    reader = test_go_first(rt, read_shared, NULL);
    CHECK_EQ(test_run(rt, write_shared, NULL), 1);
    CHECK_EQ(test_join_soon(reader), 1);
    CHECK_EQ(test_run(rt, close_shared, NULL), 0);
    weft_runtime_destroy(rt);
}

static int write_four(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(write_shared(NULL), 1);
    }
    return 0;
}

/* The only worker writes all of them before it polls for events. */
static void one_event_for_many_messages_wakes_all_readers(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *readers[4];
    CHECK_EQ(test_run(rt, open_shared, NULL), 0);
    for (unsigned i = 0; i < 4; i++) {
        readers[i] = test_go_first(rt, read_shared, NULL);
    }
    CHECK_EQ(test_run(rt, write_four, NULL), 0);
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(test_join_soon(readers[i]), 1);
    }
    CHECK_EQ(test_run(rt, close_shared, NULL), 0);
    weft_runtime_destroy(rt);
}

static void writer_waits_for_space(void)
{
    weft_runtime *rt = test_start(1);
    weft_time late = 0;
    CHECK_EQ(test_run(rt, open_shared, NULL), 0);
    CHECK_EQ(test_run(rt, fill_shared, NULL), 0);
    CHECK_EQ(test_run(rt, write_shared, &late), WEFT_ETIMEDOUT);
    weft_task *writer = test_go_first(rt, write_shared, NULL);
    weft_cancel(writer);
    CHECK_EQ(test_join_soon(writer), WEFT_ECANCELED);
    writer = test_go_first(rt, write_shared, NULL);
    CHECK_EQ(test_run(rt, drain_shared, NULL), 0);
    CHECK_EQ(test_join_soon(writer), 1);
    /* Only this one was written, not those that timed out or were canceled. */
    CHECK_EQ(test_run(rt, read_shared, NULL), 1);
    CHECK_EQ(test_run(rt, read_shared, &late), WEFT_ETIMEDOUT);
    CHECK_EQ(test_run(rt, close_shared, NULL), 0);
    weft_runtime_destroy(rt);
}

static int write_bad_one(void *arg)
{
    int bad = 1000000;
    (void)arg;
    return (int)weft_write_fds(shared.near, "x", 1, &bad, 1, WEFT_NEVER);
}

/*
 * Goal:   a woken waiter that fails passes the free space on to the next waiter.
 * Method: two writers wait for space, the first with an invalid descriptor. Then much space
 *         becomes free in one event.
 */
static void waiter_that_fails_wakes_next_waiter(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, open_shared, NULL), 0);
    CHECK_EQ(test_run(rt, fill_shared, NULL), 0);
    weft_task *bad = test_go_first(rt, write_bad_one, NULL);
    weft_task *good = test_go_first(rt, write_shared, NULL);
    CHECK_EQ(test_run(rt, drain_shared, NULL), 0);
    CHECK_EQ(test_join_soon(bad), -EBADF);
    CHECK_EQ(test_join_soon(good), 1);
    CHECK_EQ(test_run(rt, close_shared, NULL), 0);
    weft_runtime_destroy(rt);
}

static void close_wakes_waiters_with_eclosed(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = test_start(workers[i]);
        CHECK_EQ(test_run(rt, open_shared, NULL), 0);
        CHECK_EQ(test_run(rt, fill_shared, NULL), 0);
        weft_task *writer = test_go(rt, write_shared, NULL);
        port_wait_for_users(shared.near, 1);
        weft_stream_close(shared.near);
        CHECK_EQ(test_join_soon(writer), WEFT_ECLOSED);
        CHECK_EQ(test_run(rt, drain_shared, NULL), 0);
        weft_stream_close(shared.far);
        shared = (struct link){ 0 };
        CHECK_EQ(test_run(rt, close_shared, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

/* --- All kinds of tasks -------------------------------------------------------------- */

enum {
    PAIRS = 6,
};

/* Even members write to the stream that all members share, odd members read. */
static struct passer {
    weft_io io;
    int fd;
    size_t room;
    char byte;
} passers[2 * PAIRS];

static uint64_t passes(void)
{
    return crowd_rounds() / 10 + 3;
}

static int pass_in_crowd(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    struct passer *passer = &passers[self->index];
    bool writes = self->index % 2 == 0;
    WEFT_BEGIN(co);
    for (self->round = 0; self->round < passes(); self->round++) {
        passer->room = 1;
        if (writes) {
            passer->byte = 'x';
            passer->fd = make_file((uint32_t)self->round);
            weft_write_fds_init(&passer->io, shared.near, &passer->byte, 1, &passer->fd, 1);
        } else {
            weft_read_fds_init(&passer->io, shared.far, &passer->byte, 1, &passer->fd,
                               &passer->room);
        }
        WEFT_AWAIT(co, self->err, &passer->io.future);
        CHECK_EQ(self->err, 1);
        CHECK_EQ(passer->room, 1);
        uint32_t number;
        CHECK_EQ(pread(passer->fd, &number, sizeof number, 0), (ssize_t)sizeof number);
        CHECK_EQ(close(passer->fd), 0);
        self->sum += writes ? 0 : number;
    }
    WEFT_END(co, 0);
}

static void fibers_stackless_tasks_and_threads_pass_descriptors(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3 * CROWD_KINDS; i++) {
        weft_runtime *rt = test_start(workers[i % 3]);
        CHECK_EQ(test_run(rt, open_shared, NULL), 0);
        uint64_t sum = crowd_run(rt, (enum crowd_kind)(i / 3), 2 * PAIRS, pass_in_crowd, NULL);
        CHECK_EQ(sum, PAIRS * (passes() * (passes() - 1) / 2));
        CHECK_EQ(test_run(rt, close_shared, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

TEST_MAIN({
    TEST(descriptors_arrive_in_order),
    TEST(too_many_or_bad_descriptors_are_refused),
    TEST(descriptors_beyond_capacity_are_closed),
    TEST(lost_descriptors_are_marked),
    TEST(plain_read_loses_descriptors_but_no_bytes),
    TEST(descriptors_arrive_with_their_bytes),
    TEST(end_of_stream_has_no_descriptors),
    TEST(unread_descriptors_are_closed_with_stream),
    TEST(only_unix_sockets_pass_descriptors),
    TEST(reader_waits_for_descriptors),
    TEST(one_event_for_many_messages_wakes_all_readers),
    TEST(writer_waits_for_space),
    TEST(close_wakes_waiters_with_eclosed),
    TEST(fibers_stackless_tasks_and_threads_pass_descriptors),
    TEST(read_of_zero_bytes_returns_immediately),
    TEST(all_descriptors_arrive_beside_credentials),
    TEST(waiter_that_fails_wakes_next_waiter),
})
