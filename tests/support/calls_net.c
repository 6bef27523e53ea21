/* SPDX-License-Identifier: MIT */
/*
 * calls_net.c - awaiting calls of the network: weft/net.h, datagram.h. Peers are plain
 * descriptors.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"
#include "test.h"

static void close_fd(int *fd)
{
    if (*fd > 0) {
        CHECK_EQ(close(*fd), 0);
        *fd = 0;
    }
}

static void no_setup(void *state)
{
    (void)state;
}

/* --- Connections -------------------------------------------------------------------------- */

enum {
    BACKLOG_MAX = 16,
};

struct listen_state {
    weft_listener *listener;
    weft_stream *stream;
    weft_address address;
    char place[WEFT_ADDRESS_TEXT_MAX];
    int listens;          /* a plain listener */
    int fds[BACKLOG_MAX]; /* connections in its backlog */
    weft_address found[2];
    weft_io io;
};
CALL_STATE(struct listen_state);

static void accept_setup(void *state)
{
    struct listen_state *self = state;
    CHECK_EQ(weft_listen(&self->listener, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(weft_listener_address(self->listener, &self->address), 0);
}

static void accept_ready(void *state)
{
    struct listen_state *self = state;
    self->fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(self->fds[0] > 0);
    CHECK_EQ(connect(self->fds[0], &self->address.to.any, self->address.size), 0);
}

static int64_t accept_call(void *state, weft_time deadline)
{
    struct listen_state *self = state;
    return weft_accept(self->listener, &self->stream, deadline);
}

static weft_future *accept_prep(void *state)
{
    struct listen_state *self = state;
    weft_accept_init(&self->io, self->listener, &self->stream);
    return &self->io.future;
}

static void accept_undo(void *state)
{
    struct listen_state *self = state;
    weft_stream_close(self->stream);
    self->stream = NULL;
    close_fd(&self->fds[0]);
}

static void accept_close(void *state)
{
    weft_listener_close(((struct listen_state *)state)->listener);
}

static void accept_teardown(void *state)
{
    struct listen_state *self = state;
    weft_listener_close(self->listener);
    close_fd(&self->fds[0]);
}

/* Connects until the backlog is full. */
static void fill_backlog(struct listen_state *self)
{
    for (unsigned i = 0; i < BACKLOG_MAX; i++) {
        self->fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CHECK(self->fds[i] > 0);
        if (connect(self->fds[i], &self->address.to.any, self->address.size) != 0) {
            CHECK_EQ(errno, EAGAIN);
            close_fd(&self->fds[i]);
            return;
        }
    }
    CHECK(!"the backlog has an end");
}

static void connect_setup(void *state)
{
    struct listen_state *self = state;
    struct sockaddr_un any = { .sun_family = AF_UNIX };
    self->listens = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(self->listens > 0);
    /* An abstract name that the kernel chooses. */
    CHECK_EQ(bind(self->listens, (struct sockaddr *)&any, sizeof any.sun_family), 0);
    CHECK_EQ(listen(self->listens, 0), 0);
    self->address.size = sizeof self->address.to;
    CHECK_EQ(getsockname(self->listens, &self->address.to.any, &self->address.size), 0);
    CHECK(weft_address_print(&self->address, self->place, sizeof self->place) > 0);
    fill_backlog(self);
}

static void connect_ready(void *state)
{
    struct listen_state *self = state;
    int fd;
    while ((fd = accept(self->listens, NULL, NULL)) >= 0) {
        CHECK_EQ(close(fd), 0);
    }
    CHECK_EQ(errno, EAGAIN);
}

static int64_t connect_call(void *state, weft_time deadline)
{
    struct listen_state *self = state;
    return weft_connect(&self->stream, self->place, NULL, deadline);
}

static weft_future *connect_prep(void *state)
{
    struct listen_state *self = state;
    weft_connect_init(&self->io, &self->stream, &self->address, NULL);
    return &self->io.future;
}

static void connect_undo(void *state)
{
    struct listen_state *self = state;
    weft_stream_close(self->stream);
    self->stream = NULL;
}

static void connect_teardown(void *state)
{
    struct listen_state *self = state;
    for (unsigned i = 0; i < BACKLOG_MAX; i++) {
        close_fd(&self->fds[i]);
    }
    close_fd(&self->listens);
}

static int64_t resolve_call(void *state, weft_time deadline)
{
    struct listen_state *self = state;
    return weft_resolve(self->found, 2, "127.0.0.1:80", deadline);
}

/* --- Passed descriptors --------------------------------------------------------------------- */

struct passing_state {
    weft_stream *stream;
    int peer;
    size_t filled; /* bytes in flight to the peer */
    char bytes[16];
    int fds[4];
    size_t count;
    weft_io io;
};
CALL_STATE(struct passing_state);

static void passing_setup(void *state)
{
    struct passing_state *self = state;
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_EQ(weft_stream_adopt(&self->stream, ends[0]), 0);
    self->peer = ends[1];
    self->count = 4;
}

static void passing_ready(void *state)
{
    CHECK_EQ(write(((struct passing_state *)state)->peer, "x", 1), 1);
}

static int64_t read_fds_call(void *state, weft_time deadline)
{
    struct passing_state *self = state;
    self->count = 4;
    return weft_read_fds(self->stream, self->bytes, sizeof self->bytes, self->fds, &self->count,
                         deadline);
}

static weft_future *read_fds_prep(void *state)
{
    struct passing_state *self = state;
    self->count = 4;
    weft_read_fds_init(&self->io, self->stream, self->bytes, sizeof self->bytes, self->fds,
                       &self->count);
    return &self->io.future;
}

static void read_fds_undo(void *state)
{
    struct passing_state *self = state;
    CHECK_EQ(self->bytes[0], 'x');
    CHECK_EQ(self->count, 0);
}

static void fill(struct passing_state *self)
{
    ssize_t n;
    while ((n = weft_try_write(self->stream, "yyyyyyyy", 8)) > 0) {
        self->filled += (size_t)n;
    }
    CHECK_EQ(n, -EAGAIN);
}

static void write_fds_setup(void *state)
{
    passing_setup(state);
    fill(state);
}

static void write_fds_ready(void *state)
{
    struct passing_state *self = state;
    char bytes[256];
    while (self->filled > 0) {
        size_t part = self->filled < sizeof bytes ? self->filled : sizeof bytes;
        ssize_t n = read(self->peer, bytes, part);
        CHECK(n > 0);
        self->filled -= (size_t)n;
    }
}

static int64_t write_fds_call(void *state, weft_time deadline)
{
    struct passing_state *self = state;
    return weft_write_fds(self->stream, "w", 1, &self->peer, 1, deadline);
}

static weft_future *write_fds_prep(void *state)
{
    struct passing_state *self = state;
    weft_write_fds_init(&self->io, self->stream, "w", 1, &self->peer, 1);
    return &self->io.future;
}

static void write_fds_undo(void *state)
{
    struct passing_state *self = state;
    char byte = 0;
    CHECK_EQ(read(self->peer, &byte, 1), 1);
    CHECK_EQ(byte, 'w');
    fill(self);
}

static void passing_close(void *state)
{
    weft_stream_close(((struct passing_state *)state)->stream);
}

static void passing_teardown(void *state)
{
    struct passing_state *self = state;
    weft_stream_close(self->stream);
    close_fd(&self->peer);
}

/* --- Datagrams ---------------------------------------------------------------------------- */

struct datagram_state {
    weft_datagram *socket;
    weft_address address;
    weft_address from;
    int peer;
    unsigned filled; /* packets in flight to the peer */
    char bytes[16];
    weft_packet packet;
    weft_io io;
    weft_op op;
};
CALL_STATE(struct datagram_state);

static void datagram_setup(void *state)
{
    struct datagram_state *self = state;
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_EQ(weft_datagram_adopt(&self->socket, ends[0]), 0);
    self->peer = ends[1];
}

static void datagram_ready(void *state)
{
    CHECK_EQ(send(((struct datagram_state *)state)->peer, "x", 1, 0), 1);
}

static int64_t receive_call(void *state, weft_time deadline)
{
    struct datagram_state *self = state;
    return weft_datagram_receive(self->socket, self->bytes, sizeof self->bytes, deadline);
}

static weft_future *receive_prep(void *state)
{
    struct datagram_state *self = state;
    weft_datagram_receive_init(&self->io, self->socket, self->bytes, sizeof self->bytes);
    return &self->io.future;
}

static int64_t receive_from_call(void *state, weft_time deadline)
{
    struct datagram_state *self = state;
    return weft_datagram_receive_from(self->socket, self->bytes, sizeof self->bytes, &self->from,
                                      deadline);
}

static weft_future *receive_from_prep(void *state)
{
    struct datagram_state *self = state;
    weft_datagram_receive_from_init(&self->io, self->socket, self->bytes, sizeof self->bytes,
                                    &self->from);
    return &self->io.future;
}

static int64_t peek_call(void *state, weft_time deadline)
{
    struct datagram_state *self = state;
    return weft_datagram_peek(self->socket, self->bytes, sizeof self->bytes, &self->from, deadline);
}

static weft_future *peek_prep(void *state)
{
    struct datagram_state *self = state;
    weft_datagram_peek_init(&self->io, self->socket, self->bytes, sizeof self->bytes, &self->from);
    return &self->io.future;
}

static weft_packet *one_packet(struct datagram_state *self)
{
    self->packet = (weft_packet){ .data = self->bytes, .size = sizeof self->bytes };
    return &self->packet;
}

static int64_t receive_many_call(void *state, weft_time deadline)
{
    struct datagram_state *self = state;
    return weft_datagram_receive_many(self->socket, one_packet(self), 1, deadline);
}

static weft_future *receive_many_prep(void *state)
{
    struct datagram_state *self = state;
    weft_datagram_receive_many_init(&self->io, self->socket, one_packet(self), 1);
    return &self->io.future;
}

static void receive_undo(void *state)
{
    struct datagram_state *self = state;
    CHECK_EQ(self->bytes[0], 'x');
    self->bytes[0] = 0;
}

static void take_packet(void *state)
{
    struct datagram_state *self = state;
    int fd = weft_datagram_fd(self->socket);
    CHECK_EQ(recv(fd, self->bytes, sizeof self->bytes, 0), 1);
    CHECK_EQ(self->bytes[0], 'x');
}

static weft_future *readable_prep(void *state)
{
    struct datagram_state *self = state;
    weft_datagram_readable_init(&self->op, self->socket);
    return &self->op.future;
}

static void fill_queue(struct datagram_state *self)
{
    int fd = weft_datagram_fd(self->socket);
    while (send(fd, "y", 1, 0) == 1) {
        self->filled++;
    }
    CHECK_EQ(errno, EAGAIN);
}

static void send_setup(void *state)
{
    datagram_setup(state);
    fill_queue(state);
}

static void send_ready(void *state)
{
    struct datagram_state *self = state;
    char bytes[16];
    for (; self->filled > 0; self->filled--) {
        CHECK_EQ(recv(self->peer, bytes, sizeof bytes, 0), 1);
    }
}

static int64_t send_call(void *state, weft_time deadline)
{
    return weft_datagram_send(((struct datagram_state *)state)->socket, "w", 1, deadline);
}

static weft_future *send_prep(void *state)
{
    struct datagram_state *self = state;
    weft_datagram_send_init(&self->io, self->socket, "w", 1);
    return &self->io.future;
}

static weft_packet *w_packet(struct datagram_state *self)
{
    self->bytes[0] = 'w';
    self->packet = (weft_packet){ .data = self->bytes, .size = 1 };
    return &self->packet;
}

static int64_t send_many_call(void *state, weft_time deadline)
{
    struct datagram_state *self = state;
    return weft_datagram_send_many(self->socket, w_packet(self), 1, deadline);
}

static weft_future *send_many_prep(void *state)
{
    struct datagram_state *self = state;
    weft_datagram_send_many_init(&self->io, self->socket, w_packet(self), 1);
    return &self->io.future;
}

static weft_future *writable_prep(void *state)
{
    struct datagram_state *self = state;
    weft_datagram_writable_init(&self->op, self->socket);
    return &self->op.future;
}

static void send_undo(void *state)
{
    struct datagram_state *self = state;
    char byte = 0;
    CHECK_EQ(recv(self->peer, &byte, 1, 0), 1);
    CHECK_EQ(byte, 'w');
    fill_queue(self);
}

static void writable_undo(void *state)
{
    fill_queue(state);
}

/* Sends to an address: that of a receiver whose queue is full. */
static void send_to_setup(void *state)
{
    struct datagram_state *self = state;
    struct sockaddr_un any = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd > 0);
    self->peer = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(self->peer > 0);
    CHECK_EQ(bind(self->peer, (struct sockaddr *)&any, sizeof any.sun_family), 0);
    self->address.size = sizeof self->address.to;
    CHECK_EQ(getsockname(self->peer, &self->address.to.any, &self->address.size), 0);
    CHECK_EQ(weft_datagram_adopt(&self->socket, fd), 0);
    while (sendto(fd, "y", 1, 0, &self->address.to.any, self->address.size) == 1) {
        self->filled++;
    }
    CHECK_EQ(errno, EAGAIN);
}

static int64_t send_to_call(void *state, weft_time deadline)
{
    struct datagram_state *self = state;
    return weft_datagram_send_to(self->socket, "w", 1, &self->address, deadline);
}

static weft_future *send_to_prep(void *state)
{
    struct datagram_state *self = state;
    weft_datagram_send_to_init(&self->io, self->socket, "w", 1, &self->address);
    return &self->io.future;
}

static void datagram_close(void *state)
{
    weft_datagram_close(((struct datagram_state *)state)->socket);
}

static void datagram_teardown(void *state)
{
    struct datagram_state *self = state;
    weft_datagram_close(self->socket);
    close_fd(&self->peer);
}

#define DATAGRAM_CLOSE                                                                             \
    .close = datagram_close, .closed = WEFT_ECLOSED, .teardown = datagram_teardown
#define RECEIVES(call_name, call_fn, prep_fn, result, after)                                       \
    {                                                                                              \
        .name = (call_name), .ready = (result), .setup = datagram_setup,                           \
        .make_ready = datagram_ready, .call = (call_fn), .prep = (prep_fn), .undo = (after),       \
        DATAGRAM_CLOSE                                                                             \
    }
#define SENDS(call_name, call_fn, prep_fn, result, after)                                          \
    {                                                                                              \
        .name = (call_name), .ready = (result), .setup = send_setup, .make_ready = send_ready,     \
        .call = (call_fn), .prep = (prep_fn), .undo = (after), DATAGRAM_CLOSE                      \
    }

static const struct call table[] = {
    { .name = "weft_accept",
      .setup = accept_setup,
      .make_ready = accept_ready,
      .call = accept_call,
      .prep = accept_prep,
      .undo = accept_undo,
      .close = accept_close,
      .closed = WEFT_ECLOSED,
      .teardown = accept_teardown },
    { .name = "weft_connect",
      .flags = CALL_TASKS_ONLY,
      .setup = connect_setup,
      .make_ready = connect_ready,
      .call = connect_call,
      .prep = connect_prep,
      .undo = connect_undo,
      .teardown = connect_teardown },
    { .name = "weft_resolve",
      .flags = CALL_NEVER_WAITS,
      .ready = 1,
      .setup = no_setup,
      .make_ready = no_setup,
      .call = resolve_call },
    { .name = "weft_read_fds",
      .ready = 1,
      .setup = passing_setup,
      .make_ready = passing_ready,
      .call = read_fds_call,
      .prep = read_fds_prep,
      .undo = read_fds_undo,
      .close = passing_close,
      .closed = WEFT_ECLOSED,
      .teardown = passing_teardown },
    { .name = "weft_write_fds",
      .ready = 1,
      .setup = write_fds_setup,
      .make_ready = write_fds_ready,
      .call = write_fds_call,
      .prep = write_fds_prep,
      .undo = write_fds_undo,
      .close = passing_close,
      .closed = WEFT_ECLOSED,
      .teardown = passing_teardown },
    RECEIVES("weft_datagram_receive", receive_call, receive_prep, 1, receive_undo),
    RECEIVES("weft_datagram_receive_from", receive_from_call, receive_from_prep, 1, receive_undo),
    RECEIVES("weft_datagram_receive_many", receive_many_call, receive_many_prep, 1, receive_undo),
    RECEIVES("weft_datagram_peek", peek_call, peek_prep, 1, take_packet),
    RECEIVES("weft_datagram_readable", NULL, readable_prep, 0, take_packet),
    SENDS("weft_datagram_send", send_call, send_prep, 1, send_undo),
    SENDS("weft_datagram_send_many", send_many_call, send_many_prep, 1, send_undo),
    SENDS("weft_datagram_writable", NULL, writable_prep, 0, writable_undo),
    { .name = "weft_datagram_send_to",
      .ready = 1,
      .setup = send_to_setup,
      .make_ready = send_ready,
      .call = send_to_call,
      .prep = send_to_prep,
      DATAGRAM_CLOSE },
};

CALL_GROUP(calls_net, table);
