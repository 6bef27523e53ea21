/* SPDX-License-Identifier: MIT */
/*
 * splice_test.c - copying inside the kernel: complete copies between files, sockets and pipes,
 * and unsupported cases.
 */
#include "io/splice.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weft.h>

#include "io/transfer.h"
#include "links.h"
#include "rt.h"
#include "test.h"

enum {
    SIZE = LINK_FLOW_SIZE,
};

static int splice_streams(weft_stream *from, weft_stream *to, uint64_t *copied, weft_time deadline)
{
    const struct wf_transfer_end end = { .deadline = deadline };
    return wf_splice(from, to, copied, &end);
}

static enum link_kind target; /* of the running test */

static int splice_to_target(void *arg)
{
    struct link *link = arg;
    struct link_flow flow;
    uint64_t copied = 5;
    link_flow_begin(&flow, link, target);
    int err = splice_streams(link->far, flow.to.near, &copied, WEFT_NEVER);
    if (weft_stream_fd(link->far) < 0 || target == LINK_MEMORY) {
        CHECK_EQ(err, -EOPNOTSUPP);
        CHECK_EQ(copied, 5);
        CHECK_EQ(weft_copy(link->far, flow.to.near, &copied, WEFT_NEVER), 0);
        CHECK_EQ(copied, SIZE);
    } else {
        CHECK_EQ(err, 0);
        CHECK_EQ(copied, 5 + SIZE);
    }
    link_flow_end(&flow);
    return 0;
}

static void splice_copies_all_bytes_between_all_kinds(void)
{
    for (target = 0; target < LINK_KINDS; target++) {
        link_run_all(splice_to_target);
    }
}

/* --- Fallback to reads and writes --------------------------------------------------------- */

struct urgent {
    weft_stream *stream;
    size_t before; /* number of bytes before it, of SIZE */
};

/* Writes an out-of-band byte somewhere between the others. */
static int write_with_urgent_data(void *arg)
{
    static unsigned char data[SIZE];
    const struct urgent *self = arg;
    link_fill(data, sizeof data, 1, 0);
    CHECK_EQ(weft_write_all(self->stream, data, self->before, WEFT_NEVER), 0);
    while (send(weft_stream_fd(self->stream), "!", 1, MSG_OOB) != 1) {
        weft_op room;
        CHECK_EQ(errno, EAGAIN);
        weft_writable_init(&room, self->stream);
        CHECK_EQ(weft_await(&room.future, WEFT_NEVER), 0);
    }
    int err = weft_write_all(self->stream, data + self->before, SIZE - self->before, WEFT_NEVER);
    weft_stream_close(self->stream);
    return err;
}

static int copy_urgent_data(void *arg)
{
    static const size_t places[] = { 0, 1, SIZE / 2, SIZE - 1, SIZE };
    (void)arg;
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct link from = link_open(LINK_TCP);
        struct link to = link_open(LINK_LOCAL);
        struct urgent urgent = { from.near, places[i] };
        weft_task *writer;
        weft_task *reader;
        uint64_t copied = 0;
        CHECK_EQ(weft_go(&writer, write_with_urgent_data, &urgent), 0);
        CHECK_EQ(weft_go(&reader, link_read_flow, to.far), 0);
        int err = splice_streams(from.far, to.near, &copied, WEFT_NEVER);
        CHECK_EQ(err, -EOPNOTSUPP);
        CHECK_EQ(copied, places[i]);
        CHECK_EQ(weft_copy(from.far, to.near, &copied, WEFT_NEVER), 0);
        CHECK_EQ(copied, SIZE - places[i]);
        weft_stream_close(to.near);
        to.near = NULL;
        from.near = NULL;
        link_join(writer);
        link_join(reader);
        link_close(&from);
        link_close(&to);
    }
    return 0;
}

/*
 * Goal:   urgent data neither ends nor blocks a copy.
 * Method: it is sent at the start, in the middle, and right before the end.
 */
static void splice_leaves_urgent_data_to_reads(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, copy_urgent_data, NULL), 0);
    weft_runtime_destroy(rt);
}

/* The pipe accepts the data, and the kernel refuses to splice it out of the pipe: O_APPEND. */
static int copy_to_refusing_stream(void *arg)
{
    struct link *link = arg;
    struct link_flow flow;
    uint64_t copied = 0;
    if (weft_stream_fd(link->far) < 0) {
        return 0;
    }
    link_flow_begin(&flow, link, LINK_LOCAL);
    CHECK_EQ(fcntl(weft_stream_fd(flow.to.near), F_SETFL, O_NONBLOCK | O_APPEND), 0);
    CHECK_EQ(splice_streams(link->far, flow.to.near, &copied, WEFT_NEVER), -EOPNOTSUPP);
    CHECK_GE(copied, 1);
    uint64_t rest;
    CHECK_EQ(weft_copy(link->far, flow.to.near, &rest, WEFT_NEVER), 0);
    CHECK_EQ(copied + rest, SIZE);
    link_flow_end(&flow);
    return 0;
}

static void data_left_in_pipe_is_written(void)
{
    link_run_all(copy_to_refusing_stream);
}

/* --- Files ------------------------------------------------------------------------------ */

static weft_stream *open_file(size_t size)
{
    static unsigned char data[SIZE];
    weft_stream *file;
    int fd = memfd_create("splice_test", MFD_CLOEXEC);
    CHECK(fd >= 0);
    link_fill(data, size, 1, 0);
    CHECK_EQ(write(fd, data, size), size);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(weft_stream_adopt(&file, fd), 0);
    return file;
}

static int send_file(void *arg)
{
    struct link *link = arg;
    weft_stream *file = open_file(SIZE);
    weft_task *reader;
    uint64_t copied;
    CHECK_EQ(weft_go(&reader, link_read_flow, link->far), 0);
    CHECK_EQ(weft_copy(file, link->near, &copied, WEFT_NEVER), 0);
    CHECK_EQ(copied, SIZE);
    weft_stream_close(link->near);
    link->near = NULL;
    link_join(reader);
    weft_stream_close(file);
    return 0;
}

static void file_can_be_sent(void)
{
    link_run_all(send_file);
}

/* A file is never spliced into: its writer may want to append. */
static int receive_file(void *arg)
{
    struct link *link = arg;
    weft_stream *file = open_file(0);
    weft_task *writer;
    uint64_t copied = 0;
    CHECK_EQ(weft_go(&writer, link_write_flow, link->near), 0);
    link->near = NULL;
    CHECK_EQ(splice_streams(link->far, file, &copied, WEFT_NEVER), -EOPNOTSUPP);
    CHECK_EQ(weft_copy(link->far, file, &copied, WEFT_NEVER), 0);
    CHECK_EQ(copied, SIZE);
    link_join(writer);
    CHECK_EQ(lseek(weft_stream_fd(file), 0, SEEK_SET), 0);
    CHECK_EQ(link_read_flow(file), 0);
    weft_stream_close(file);
    return 0;
}

static void copy_into_file_uses_writes(void)
{
    link_run_all(receive_file);
}

/* --- What ends a copy ------------------------------------------------------------------- */

/*
 * There is no reader: the copy stops when everything is full, and the bytes it reports as copied
 * arrive.
 */
static int stop_in_middle(void *arg)
{
    static unsigned char data[SIZE];
    struct link *link = arg;
    if (weft_stream_fd(link->near) < 0) {
        return 0;
    }
    uint64_t copied = 0;
    uint64_t came = 0;
    unsigned before = link_fds();
    for (int err = 0; err == 0;) {
        weft_stream *file = open_file(SIZE);
        err = splice_streams(file, link->near, &copied, weft_after(2 * WEFT_MS));
        CHECK(err == 0 || err == WEFT_ETIMEDOUT);
        weft_stream_close(file);
    }
    CHECK_EQ(link_fds(), before);
    weft_stream_close(link->near);
    link->near = NULL;
    ssize_t n;
    while ((n = weft_read(link->far, data, sizeof data, WEFT_NEVER)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            CHECK_EQ(data[i], link_byte(1, (came + (uint64_t)i) % SIZE));
        }
        came += (uint64_t)n;
    }
    CHECK_EQ(n, 0);
    CHECK_EQ(came, copied);
    return 0;
}

static void deadline_ends_splice_in_middle(void)
{
    link_run_all(stop_in_middle);
}

static int splice_to_closed_peer(void *arg)
{
    struct link *link = arg;
    if (weft_stream_fd(link->near) < 0) {
        return 0;
    }
    weft_stream *file = open_file(SIZE);
    uint64_t copied = 0;
    int err = 0;
    weft_stream_close(link->far);
    link->far = NULL;
    while (err == 0) {
        CHECK_EQ(lseek(weft_stream_fd(file), 0, SEEK_SET), 0);
        err = splice_streams(file, link->near, &copied, WEFT_NEVER);
    }
    CHECK(err == -EPIPE || err == -ECONNRESET);
    weft_stream_close(file);
    return 0;
}

static void splice_to_closed_peer_returns_error_without_signal(void)
{
    link_run_all(splice_to_closed_peer);
}

/* No descriptor is available for a pipe, so the copy uses reads and writes. */
static int copy_without_descriptors(void *arg)
{
    struct link *link = arg;
    struct link_flow flow;
    struct rlimit limit;
    uint64_t copied = 0;
    link_flow_begin(&flow, link, LINK_LOCAL);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit none = { .rlim_cur = 3, .rlim_max = limit.rlim_max };
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    CHECK_EQ(splice_streams(link->far, flow.to.near, &copied, WEFT_NEVER), -EOPNOTSUPP);
    CHECK_EQ(weft_copy(link->far, flow.to.near, &copied, WEFT_NEVER), 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(copied, SIZE);
    link_flow_end(&flow);
    return 0;
}

static void copy_without_descriptors_is_complete(void)
{
    link_run_both_ways(copy_without_descriptors);
}

TEST_MAIN({
    TEST(splice_copies_all_bytes_between_all_kinds),
    TEST(splice_leaves_urgent_data_to_reads),
    TEST(data_left_in_pipe_is_written),
    TEST(file_can_be_sent),
    TEST(copy_into_file_uses_writes),
    TEST(deadline_ends_splice_in_middle),
    TEST(splice_to_closed_peer_returns_error_without_signal),
    TEST(copy_without_descriptors_is_complete),
})
