/* SPDX-License-Identifier: MIT */
/*
 * connect.c - outgoing connections.
 */
#include <weft/net.h>

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "io/fd_stream.h"
#include "io/io.h"
#include "io/source.h"
#include "io/transfer.h"
#include "net/nap.h"
#include "net/place.h"
#include "net/resolve.h"
#include "net/socket.h"
#include "sched/await.h"
#include "sched/thread.h"

enum {
    ADDRESSES_MAX = 16,
};

/* Time that each address but the last has to answer. */
#define PATIENCE (2 * WEFT_S)

/* In the transfer, after room[0], which backoff uses. */
struct connecting {
    struct wf_source *source; /* of the stream being connected; not visible to other code */
    const weft_address *from;
    bool nagle;
};

static struct connecting *connecting_of(struct wf_transfer *self)
{
    return (struct connecting *)(void *)&self->room[1];
}

_Static_assert(sizeof(struct connecting) <= 5 * sizeof(uint64_t), "wf_transfer is too small");

static int connect_enter(struct wf_transfer *self)
{
    connecting_of(self)->source = NULL;
    self->flags = 0;
    self->done = 0;
    return 0;
}

/* Closes the stream if the connection failed. */
static void connect_leave(struct wf_transfer *self)
{
    struct wf_source *source = connecting_of(self)->source;
    if (self->done == 0 && source != NULL) {
        wf_source_abandon(source);
    }
}

/* Publishes the connected stream. */
static int finish(struct wf_transfer *self)
{
    weft_stream **out = self->own.iov_base;
    *out = wf_source_publish(connecting_of(self)->source);
    self->done = 1;
    return 0;
}

static int wait_for_answer(struct wf_transfer *self)
{
    wf_source_wait_init(&self->wait, connecting_of(self)->source, WF_SOURCE_WRITABLE);
    self->waits_for = &self->wait.future;
    return WEFT_PENDING;
}

static int prepare_socket(int fd, const weft_address *address, const struct connecting *connecting)
{
    bool is_tcp = address->to.any.sa_family != AF_UNIX;
    int err = connecting->from != NULL ? wf_socket_bind(fd, connecting->from) : 0;
    if (err == 0 && is_tcp && !connecting->nagle) {
        err = wf_socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    }
    return err;
}

/* Makes a stream that is not connected yet. */
static int make_stream(struct wf_transfer *self, const weft_address *address)
{
    struct connecting *connecting = connecting_of(self);
    struct wf_io *io = wf_io_must("weft_connect");
    int fd = wf_socket_new(address->to.any.sa_family, SOCK_STREAM);
    if (fd < 0) {
        return fd;
    }
    int err = prepare_socket(fd, address, connecting);
    if (err == 0) {
        bool is_local = address->to.any.sa_family == AF_UNIX;
        err = wf_fd_stream_open(io, fd, is_local ? WF_FD_LOCAL : WF_FD_TCP, &connecting->source);
    }
    return err != 0 ? wf_socket_undo(fd, err) : 0;
}

/* Starts the connection, or retries. */
static int ask(struct wf_transfer *self, const weft_address *address)
{
    struct wf_source *source = connecting_of(self)->source;
    if (connect(source->fd, &address->to.any, address->size) == 0) {
        return finish(self);
    }
    switch (errno) {
    case EAGAIN: /* A Unix socket whose backlog is full. */
        return wf_nap_briefly(self, source->io->sched);
    case EINTR: /* The connection may be in progress or not: the next connect() reports it. */
        return WF_TRANSFER_MORE;
    case EISCONN:
        return finish(self);
    case EINPROGRESS:
    case EALREADY:
        self->flags = 1; /* In progress; an event reports the outcome. */
        wf_source_exhausted(source, wf_source_look(source), WF_SOURCE_WRITABLE);
        return wait_for_answer(self);
    default:
        return -errno;
    }
}

/* Checks the outcome after an event. */
static int hear(struct wf_transfer *self)
{
    struct wf_source *source = connecting_of(self)->source;
    uint32_t seen = wf_source_look(source);
    int error = 0;
    weft_address peer;
    int err = wf_socket_get(source->fd, SOL_SOCKET, SO_ERROR, &error);
    if (err != 0 || error != 0) {
        return err != 0 ? err : -error;
    }
    if (wf_socket_peer(source->fd, &peer) == -ENOTCONN) {
        wf_source_exhausted(source, seen, WF_SOURCE_WRITABLE);
        return wait_for_answer(self);
    }
    return finish(self);
}

static int connect_attempt(struct wf_transfer *self)
{
    const weft_address *address = self->object;
    if (self->flags != 0) {
        return hear(self);
    }
    if (connecting_of(self)->source == NULL) {
        int err = make_stream(self, address);
        if (err != 0) {
            return err;
        }
    }
    return ask(self, address);
}

static const struct wf_transfer_ops connect_ops = { connect_enter, connect_leave, connect_attempt };

void weft_connect_init(weft_io *io, weft_stream **stream, const weft_address *address,
                       const weft_connect_options *options)
{
    struct wf_transfer *self =
        wf_transfer_init(io, &connect_ops, (void *)(uintptr_t)(const void *)address);
    struct connecting *connecting = connecting_of(self);
    connecting->from = options != NULL ? options->from : NULL;
    connecting->nagle = options != NULL && options->nagle;
    self->own.iov_base = stream;
}

int weft_connect(weft_stream **stream, const char *place, const weft_connect_options *options,
                 weft_time deadline)
{
    const char *rest = place;
    enum wf_place kind = wf_place_kind(&rest);
    int err = wf_await_begin(&deadline, "weft_connect", "in a body, await a weft_connect_init()");
    if (err != 0) {
        return err;
    }
    if (kind == WF_PLACE_UDP || kind == WF_PLACE_UNIXGRAM) {
        return -EINVAL;
    }
    weft_address addresses[ADDRESSES_MAX];
    int count = wf_resolve(addresses, ADDRESSES_MAX, place, false, deadline, "weft_connect");
    err = count;
    for (int i = 0; i < count; i++) {
        weft_time patience = weft_after(PATIENCE);
        bool is_last = i == count - 1;
        weft_io io;
        weft_connect_init(&io, stream, &addresses[i], options);
        err = wf_transfer_await(&io, is_last || deadline < patience ? deadline : patience,
                                "weft_connect");
        if (err == 0 || err == WEFT_ECANCELED ||
            (err == WEFT_ETIMEDOUT && weft_now() >= deadline)) {
            break;
        }
    }
    return err;
}

int weft_stream_pair(weft_stream **one, weft_stream **other)
{
    struct wf_io *io = wf_io_must("weft_stream_pair");
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
        return -errno;
    }
    return wf_fd_stream_open_both(io, ends, WF_FD_LOCAL, one, other);
}
