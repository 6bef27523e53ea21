/* SPDX-License-Identifier: MIT */
/*
 * uring.c - echo server without a runtime: one thread, one io_uring.
 *
 * Each connection has one operation in flight, a recv or a send, and its own buffer, since the
 * kernel uses the buffer meanwhile. Submissions go out with the call that waits for
 * completions.
 *
 * This variant, with COOP_TASKRUN, was the fastest. Rejected: multishot recv with provided
 * buffers, multishot poll, recv with a direct send, DEFER_TASKRUN.
 */
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"

enum {
    SUBMISSIONS = 1024,
    COMPLETIONS = 8192,
    KIND_SHIFT = 32,
};

/* Kind of a completion. The user data has the kind in its upper half, the descriptor below. */
enum kind {
    KIND_ACCEPT,
    KIND_STDIN,
    KIND_RECV,
    KIND_SEND,
};

struct connection {
    size_t begin; /* bytes still to be sent */
    size_t end;
    char buffer[ECHO_BUFFER_SIZE];
};

static struct connection *connections[ECHO_FDS_MAX]; /* by descriptor */
static struct io_uring ring;

static struct io_uring_sqe *next_sqe(enum kind kind, int fd)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    if (sqe == NULL) {
        (void)io_uring_submit(&ring);
        sqe = io_uring_get_sqe(&ring);
    }
    if (sqe == NULL) {
        echo_fail("the submission queue stays full", 0);
    }
    /* Set before the prep call, which leaves the user data alone since liburing 2.2. */
    io_uring_sqe_set_data64(sqe, (uint64_t)kind << KIND_SHIFT | (uint32_t)fd);
    return sqe;
}

static void start_accept(int listener)
{
    struct io_uring_sqe *sqe = next_sqe(KIND_ACCEPT, listener);
    io_uring_prep_multishot_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
}

static void start_stdin(void)
{
    static char bytes[64];
    struct io_uring_sqe *sqe = next_sqe(KIND_STDIN, STDIN_FILENO);
    io_uring_prep_read(sqe, STDIN_FILENO, bytes, sizeof bytes, 0);
}

static void start_recv(int fd)
{
    struct io_uring_sqe *sqe = next_sqe(KIND_RECV, fd);
    io_uring_prep_recv(sqe, fd, connections[fd]->buffer, ECHO_BUFFER_SIZE, 0);
}

static void start_send(int fd)
{
    const struct connection *connection = connections[fd];
    struct io_uring_sqe *sqe = next_sqe(KIND_SEND, fd);
    io_uring_prep_send(sqe, fd, connection->buffer + connection->begin,
                       connection->end - connection->begin, MSG_NOSIGNAL);
}

static void drop(int fd)
{
    free(connections[fd]);
    connections[fd] = NULL;
    (void)close(fd);
}

static void accepted(int listener, int fd, bool more)
{
    if (fd >= ECHO_FDS_MAX) {
        echo_fail("too many connections", 0);
    }
    if (fd >= 0) {
        connections[fd] = malloc(sizeof *connections[fd]);
        if (connections[fd] == NULL) {
            echo_fail("no memory", 0);
        }
        echo_set_nodelay(fd);
        start_recv(fd);
    } else if (fd != -ECONNABORTED && fd != -EINTR && fd != -EAGAIN) {
        echo_fail("accept", -fd);
    }
    if (!more) {
        start_accept(listener);
    }
}

static void received(int fd, int n)
{
    if (n <= 0) {
        drop(fd);
        return;
    }
    connections[fd]->begin = 0;
    connections[fd]->end = (size_t)n;
    start_send(fd);
}

static void sent(int fd, int n)
{
    struct connection *connection = connections[fd];
    if (n < 0) {
        drop(fd);
        return;
    }
    connection->begin += (size_t)n;
    if (connection->begin < connection->end) {
        start_send(fd);
    } else {
        start_recv(fd);
    }
}

/* Handles a completion. Returns false at the end of stdin. */
static bool completed(const struct io_uring_cqe *cqe)
{
    int fd = (int)(uint32_t)cqe->user_data;
    switch ((enum kind)(cqe->user_data >> KIND_SHIFT)) {
    case KIND_ACCEPT:
        accepted(fd, cqe->res, (cqe->flags & IORING_CQE_F_MORE) != 0);
        break;
    case KIND_STDIN:
        if (cqe->res <= 0) {
            return false;
        }
        start_stdin();
        break;
    case KIND_RECV:
        received(fd, cqe->res);
        break;
    case KIND_SEND:
        sent(fd, cqe->res);
        break;
    }
    return true;
}

static void open_ring(void)
{
    struct io_uring_params params = { 0 };
    params.flags = IORING_SETUP_CQSIZE | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    params.cq_entries = COMPLETIONS;
    int err = io_uring_queue_init_params(SUBMISSIONS, &ring, &params);
    if (err != 0) {
        (void)fprintf(stderr, "echo: no io_uring here: %s\n", strerror(-err));
        exit(ECHO_EXIT_REFUSED);
    }
}

int main(int argc, char **argv)
{
    struct echo_options options = echo_parse(argc, argv, 0);
    open_ring();
    int listener = echo_listen(options.port, 0);
    start_accept(listener);
    start_stdin();
    echo_announce_socket(listener);
    for (;;) {
        int err = io_uring_submit_and_wait(&ring, 1);
        if (err < 0 && err != -EINTR) {
            echo_fail("io_uring_enter", -err);
        }
        struct io_uring_cqe *cqe;
        unsigned head;
        unsigned count = 0;
        io_uring_for_each_cqe(&ring, head, cqe)
        {
            if (!completed(cqe)) {
                return 0;
            }
            count++;
        }
        io_uring_cq_advance(&ring, count);
    }
}
