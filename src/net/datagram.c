/* SPDX-License-Identifier: MIT */
/*
 * datagram.c - datagram sockets: UDP and Unix.
 */
#include <weft/datagram.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "io/fd_stream.h"
#include "io/io.h"
#include "io/source.h"
#include "io/transfer.h"
#include "net/path.h"
#include "net/peer.h"
#include "net/place.h"
#include "net/resolve.h"
#include "net/socket.h"

enum {
    ADDRESSES_MAX = 8,
    SENDS_TO = 1, /* in the flags of a sending transfer: to an address */
    LOCAL = 1,    /* kind of the source: a Unix socket */
};

/* In the room of its source. */
struct datagram {
    struct wf_path path;      /* removed when the socket is closed */
    struct wf_source *probes; /* under the latch of its source: see peer.c */
};

_Static_assert(sizeof(struct datagram) <= WF_SOURCE_ROOM, "WF_SOURCE_ROOM is too small");

static struct datagram *datagram_of(struct wf_source *source)
{
    return (struct datagram *)(void *)source->room;
}

/* --- Transfers -------------------------------------------------------------------------- */

/* In the transfer. */
struct message {
    const weft_address *to;
    weft_address *from;
    weft_packet *packets;
    size_t count;
};

static struct message *message_of(struct wf_transfer *self)
{
    return (struct message *)(void *)&self->room[1]; /* The first word is for backoff. */
}

_Static_assert(sizeof(struct message) <= 5 * sizeof(uint64_t), "wf_transfer is too small");

static void send_leave(struct wf_transfer *self)
{
    wf_peer_leave(self, &datagram_of(self->source)->probes);
    wf_transfer_leave(self);
}

/* Returns the receiver's address if this is a send to the address of a Unix socket, whose queue
 * may be full; otherwise NULL. */
static const weft_address *local_receiver(struct wf_transfer *self, uint32_t what)
{
    const struct message *message = message_of(self);
    if (what != WF_SOURCE_WRITABLE || self->flags != SENDS_TO || self->source->kind != LOCAL) {
        return NULL;
    }
    return message->to != NULL ? message->to : &message->packets->address;
}

/* Prepares to wait, for a send or receive that cannot be done now. */
static int wait_for(struct wf_transfer *self, uint32_t seen, uint32_t what)
{
    if ((seen & WF_SOURCE_CLOSED) != 0) {
        return WEFT_ECLOSED;
    }
    const weft_address *receiver = local_receiver(self, what);
    if (receiver != NULL) {
        return wf_peer_wait(self, &datagram_of(self->source)->probes, receiver);
    }
    wf_source_exhausted(self->source, seen, what);
    return wf_transfer_wait(self, what);
}

/* Ends an attempt that has transferred n messages or bytes, or failed. */
static int conclude(struct wf_transfer *self, uint32_t seen, uint32_t what, ssize_t n)
{
    struct wf_source *source = self->source;
    if (n >= 0) {
        wf_source_pass_on(source, what);
        return (int)n;
    }
    switch (errno) {
    case EAGAIN:
        return wait_for(self, seen, what);
    case EINTR:
        return WF_TRANSFER_MORE;
    default:
        break;
    }
    int err = -errno;
    wf_source_pass_on(source, what); /* The error answers only this call. */
    return err;
}

/* Returns whether to try the system call. If not, *result is the result of the attempt. */
static bool may_try(struct wf_transfer *self, uint32_t seen, uint32_t what, int *result)
{
    if ((seen & what) != 0) {
        return true;
    }
    *result = wait_for(self, seen, what);
    return false;
}

static int send_attempt(struct wf_transfer *self)
{
    const struct message *message = message_of(self);
    const struct wf_source *source = self->source;
    uint32_t seen = wf_source_look(source);
    int result;
    if (!may_try(self, seen, WF_SOURCE_WRITABLE, &result)) {
        return result;
    }
    const struct sockaddr *to = message->to != NULL ? &message->to->to.any : NULL;
    ssize_t n = sendto(source->fd, self->own.iov_base, self->own.iov_len, MSG_NOSIGNAL, to,
                       message->to != NULL ? message->to->size : 0);
    return conclude(self, seen, WF_SOURCE_WRITABLE, n);
}

static int receive_attempt(struct wf_transfer *self)
{
    const struct message *message = message_of(self);
    const struct wf_source *source = self->source;
    uint32_t seen = wf_source_look(source);
    int result;
    if (!may_try(self, seen, WF_SOURCE_READABLE, &result)) {
        return result;
    }
    weft_address *from = message->from;
    socklen_t size = sizeof from->to;
    if (from != NULL) {
        memset(from, 0, sizeof *from);
    }
    /* MSG_TRUNC: returns the full size of the message even if it does not fit. */
    ssize_t n = recvfrom(source->fd, self->own.iov_base, self->own.iov_len, MSG_TRUNC | self->flags,
                         from != NULL ? &from->to.any : NULL, from != NULL ? &size : NULL);
    if (n >= 0 && from != NULL) {
        from->size = wf_socket_size(size);
    }
    return conclude(self, seen, WF_SOURCE_READABLE, n);
}

/* --- Batches ---------------------------------------------------------------------------- */

/* The packets as the system calls take them. */
struct batch {
    struct mmsghdr headers[WEFT_PACKETS_MAX];
    struct iovec vectors[WEFT_PACKETS_MAX];
};

static unsigned fill(struct batch *batch, weft_packet *packets, size_t count)
{
    unsigned most = count < WEFT_PACKETS_MAX ? (unsigned)count : WEFT_PACKETS_MAX;
    memset(batch->headers, 0, most * sizeof batch->headers[0]);
    for (unsigned i = 0; i < most; i++) {
        batch->vectors[i] = (struct iovec){ packets[i].data, packets[i].size };
        batch->headers[i].msg_hdr.msg_iov = &batch->vectors[i];
        batch->headers[i].msg_hdr.msg_iovlen = 1;
    }
    return most;
}

static int send_many_attempt(struct wf_transfer *self)
{
    const struct message *message = message_of(self);
    const struct wf_source *source = self->source;
    struct batch batch;
    uint32_t seen = wf_source_look(source);
    int result;
    if (message->count == 0) {
        return 0;
    }
    if (!may_try(self, seen, WF_SOURCE_WRITABLE, &result)) {
        return result;
    }
    unsigned count = fill(&batch, message->packets, message->count);
    for (unsigned i = 0; i < count; i++) {
        weft_address *to = &message->packets[i].address;
        if (to->size > 0) {
            batch.headers[i].msg_hdr.msg_name = &to->to;
            batch.headers[i].msg_hdr.msg_namelen = to->size;
        }
    }
    int n = sendmmsg(source->fd, batch.headers, count, MSG_NOSIGNAL);
    return conclude(self, seen, WF_SOURCE_WRITABLE, n);
}

static int receive_many_attempt(struct wf_transfer *self)
{
    const struct message *message = message_of(self);
    const struct wf_source *source = self->source;
    struct batch batch;
    uint32_t seen = wf_source_look(source);
    int result;
    if (message->count == 0) {
        return 0;
    }
    if (!may_try(self, seen, WF_SOURCE_READABLE, &result)) {
        return result;
    }
    unsigned count = fill(&batch, message->packets, message->count);
    for (unsigned i = 0; i < count; i++) {
        weft_address *from = &message->packets[i].address;
        memset(from, 0, sizeof *from);
        batch.headers[i].msg_hdr.msg_name = &from->to;
        batch.headers[i].msg_hdr.msg_namelen = sizeof from->to;
    }
    int n = recvmmsg(source->fd, batch.headers, count, MSG_TRUNC, NULL);
    for (int i = 0; i < n; i++) {
        message->packets[i].received = batch.headers[i].msg_len;
        message->packets[i].address.size = wf_socket_size(batch.headers[i].msg_hdr.msg_namelen);
    }
    return conclude(self, seen, WF_SOURCE_READABLE, n);
}

static const struct wf_transfer_ops send_ops = { wf_transfer_enter, send_leave, send_attempt };
static const struct wf_transfer_ops receive_ops = { wf_transfer_enter, wf_transfer_leave,
                                                    receive_attempt };
static const struct wf_transfer_ops send_many_ops = { wf_transfer_enter, send_leave,
                                                      send_many_attempt };
static const struct wf_transfer_ops receive_many_ops = { wf_transfer_enter, wf_transfer_leave,
                                                         receive_many_attempt };

static struct wf_transfer *prepare(weft_io *io, const struct wf_transfer_ops *ops,
                                   weft_datagram *socket, const void *data, size_t size)
{
    struct wf_transfer *self = wf_transfer_init(io, ops, socket);
    self->own = (struct iovec){ .iov_base = (void *)(uintptr_t)data, .iov_len = size };
    return self;
}

void weft_datagram_send_init(weft_io *io, weft_datagram *socket, const void *data, size_t size)
{
    (void)prepare(io, &send_ops, socket, data, size);
}

void weft_datagram_send_to_init(weft_io *io, weft_datagram *socket, const void *data, size_t size,
                                const weft_address *address)
{
    struct wf_transfer *self = prepare(io, &send_ops, socket, data, size);
    message_of(self)->to = address;
    self->flags = SENDS_TO;
}

void weft_datagram_receive_init(weft_io *io, weft_datagram *socket, void *buffer, size_t size)
{
    (void)prepare(io, &receive_ops, socket, buffer, size);
}

void weft_datagram_receive_from_init(weft_io *io, weft_datagram *socket, void *buffer, size_t size,
                                     weft_address *from)
{
    message_of(prepare(io, &receive_ops, socket, buffer, size))->from = from;
}

void weft_datagram_peek_init(weft_io *io, weft_datagram *socket, void *buffer, size_t size,
                             weft_address *from)
{
    struct wf_transfer *self = prepare(io, &receive_ops, socket, buffer, size);
    message_of(self)->from = from;
    self->flags = MSG_PEEK;
}

void weft_datagram_send_many_init(weft_io *io, weft_datagram *socket, weft_packet *packets,
                                  size_t count)
{
    struct wf_transfer *self = wf_transfer_init(io, &send_many_ops, socket);
    struct message *message = message_of(self);
    message->packets = packets;
    message->count = count;
    self->flags = count > 0 && packets->address.size > 0 ? SENDS_TO : 0;
}

void weft_datagram_receive_many_init(weft_io *io, weft_datagram *socket, weft_packet *packets,
                                     size_t count)
{
    struct message *message = message_of(wf_transfer_init(io, &receive_many_ops, socket));
    message->packets = packets;
    message->count = count;
}

ssize_t weft_datagram_send(weft_datagram *socket, const void *data, size_t size, weft_time deadline)
{
    weft_io io;
    weft_datagram_send_init(&io, socket, data, size);
    return wf_transfer_await(&io, deadline, "weft_datagram_send");
}

ssize_t weft_datagram_send_to(weft_datagram *socket, const void *data, size_t size,
                              const weft_address *address, weft_time deadline)
{
    weft_io io;
    weft_datagram_send_to_init(&io, socket, data, size, address);
    return wf_transfer_await(&io, deadline, "weft_datagram_send_to");
}

ssize_t weft_datagram_receive(weft_datagram *socket, void *buffer, size_t size, weft_time deadline)
{
    weft_io io;
    weft_datagram_receive_init(&io, socket, buffer, size);
    return wf_transfer_await(&io, deadline, "weft_datagram_receive");
}

ssize_t weft_datagram_receive_from(weft_datagram *socket, void *buffer, size_t size,
                                   weft_address *from, weft_time deadline)
{
    weft_io io;
    weft_datagram_receive_from_init(&io, socket, buffer, size, from);
    return wf_transfer_await(&io, deadline, "weft_datagram_receive_from");
}

ssize_t weft_datagram_peek(weft_datagram *socket, void *buffer, size_t size, weft_address *from,
                           weft_time deadline)
{
    weft_io io;
    weft_datagram_peek_init(&io, socket, buffer, size, from);
    return wf_transfer_await(&io, deadline, "weft_datagram_peek");
}

int weft_datagram_send_many(weft_datagram *socket, weft_packet *packets, size_t count,
                            weft_time deadline)
{
    weft_io io;
    weft_datagram_send_many_init(&io, socket, packets, count);
    return wf_transfer_await(&io, deadline, "weft_datagram_send_many");
}

int weft_datagram_receive_many(weft_datagram *socket, weft_packet *packets, size_t count,
                               weft_time deadline)
{
    weft_io io;
    weft_datagram_receive_many_init(&io, socket, packets, count);
    return wf_transfer_await(&io, deadline, "weft_datagram_receive_many");
}

void weft_datagram_readable_init(weft_op *op, weft_datagram *socket)
{
    wf_source_ready_init(op, socket, WF_SOURCE_READABLE);
}

void weft_datagram_writable_init(weft_op *op, weft_datagram *socket)
{
    wf_source_ready_init(op, socket, WF_SOURCE_WRITABLE);
}

/* --- Opening and closing ---------------------------------------------------------------- */

static void release_datagram(struct wf_source *source)
{
    wf_path_remove(&datagram_of(source)->path);
}

static int open_source(struct wf_io *io, int fd, struct wf_source **out)
{
    int family = 0;
    int err = wf_source_open(io, fd, out);
    if (err == 0) {
        struct datagram *socket = datagram_of(*out);
        (void)wf_socket_get(fd, SOL_SOCKET, SO_DOMAIN, &family);
        socket->path = (struct wf_path){ 0 };
        socket->probes = NULL;
        (*out)->kind = family == AF_UNIX ? LOCAL : 0;
        (*out)->release = release_datagram;
    }
    return err;
}

static int open_socket(struct wf_io *io, int fd, weft_datagram **out)
{
    struct wf_source *source;
    int err = open_source(io, fd, &source);
    if (err == 0) {
        *out = wf_source_publish(source);
    }
    return err;
}

static int bind_at(int fd, const weft_address *address, const weft_datagram_options *options)
{
    int err = 0;
    if (options->reuse_address) {
        err = wf_socket_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    }
    if (err == 0 && options->reuse_port) {
        err = wf_socket_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    }
    if (err == 0 && options->broadcast) {
        err = wf_socket_set(fd, SOL_SOCKET, SO_BROADCAST, 1);
    }
    if (err == 0 && address->to.any.sa_family == AF_INET6) {
        err = wf_socket_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, options->v6_only);
    }
    return err != 0 ? err : wf_socket_bind(fd, address);
}

/* Returns a socket bound to the address, or an error. Notes its path. */
static int socket_at(const weft_address *address, const weft_datagram_options *options,
                     struct wf_path *path)
{
    int fd = wf_socket_new(address->to.any.sa_family, SOCK_DGRAM);
    if (fd < 0) {
        return fd;
    }
    int err = bind_at(fd, address, options);
    if (err != 0) {
        return wf_socket_undo(fd, err);
    }
    wf_path_note(path, address);
    return fd;
}

static int finish(struct wf_io *io, int fd, const struct wf_path *path, bool keeps_path,
                  weft_datagram **out)
{
    struct wf_source *source;
    int err = open_source(io, fd, &source);
    if (err != 0) {
        wf_path_remove(path);
        return wf_socket_undo(fd, err);
    }
    source->wants_proxy = true;
    if (!keeps_path) {
        datagram_of(source)->path = *path;
    }
    *out = wf_source_publish(source);
    return 0;
}

int weft_datagram_open(weft_datagram **socket, const char *place,
                       const weft_datagram_options *options)
{
    static const weft_datagram_options defaults;
    struct wf_io *io = wf_io_must("weft_datagram_open");
    const char *rest = place;
    enum wf_place kind = wf_place_kind(&rest);
    int err = wf_socket_begin("weft_datagram_open");
    if (err != 0) {
        return err;
    }
    if (kind != WF_PLACE_UDP && kind != WF_PLACE_UNIXGRAM) {
        return -EINVAL;
    }
    options = options != NULL ? options : &defaults;
    weft_address addresses[ADDRESSES_MAX];
    int count = wf_resolve(addresses, ADDRESSES_MAX, place, true, WEFT_NEVER, "weft_datagram_open");
    struct wf_path path;
    int fd = count;
    for (int at = 0; at < count; at++) {
        fd = socket_at(&addresses[at], options, &path);
        if (fd >= 0) {
            break;
        }
    }
    return fd < 0 ? fd : finish(io, fd, &path, options->keep_path, socket);
}

int weft_datagram_adopt(weft_datagram **socket, int fd)
{
    struct wf_source *source;
    struct wf_io *io = wf_io_must("weft_datagram_adopt");
    int type = 0;
    int err = wf_socket_get(fd, SOL_SOCKET, SO_TYPE, &type);
    if (err == 0 && type == SOCK_STREAM) {
        err = -EINVAL;
    }
    if (err == 0) {
        err = wf_fd_adopt(io, fd, open_source, &source);
    }
    if (err != 0) {
        return err;
    }
    source->wants_proxy = true;
    *socket = wf_source_publish(source);
    return 0;
}

int weft_datagram_pair(weft_datagram **one, weft_datagram **other)
{
    struct wf_io *io = wf_io_must("weft_datagram_pair");
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
        return -errno;
    }
    int err = open_socket(io, ends[0], one);
    if (err != 0) {
        (void)close(ends[1]);
        return wf_socket_undo(ends[0], err);
    }
    err = open_socket(io, ends[1], other);
    if (err != 0) {
        weft_datagram_close(*one);
        return wf_socket_undo(ends[1], err);
    }
    return 0;
}

void weft_datagram_close(weft_datagram *socket)
{
    struct wf_source *source = socket != NULL ? wf_source_begin_close(socket) : NULL;
    if (source != NULL) {
        wf_peer_close(source, &datagram_of(source)->probes);
        wf_source_leave(source);
    }
}

/* --- Other functions -------------------------------------------------------------------- */

static int connect_fd(int fd, const weft_address *address)
{
    static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
    if (address != NULL) {
        return connect(fd, &address->to.any, address->size) == 0 ? 0 : -errno;
    }
    weft_address before;
    weft_address after;
    int err = wf_socket_address(fd, &before);
    if (err == 0 && connect(fd, &nowhere, sizeof nowhere) != 0) {
        err = -errno;
    }
    if (err == 0) {
        err = wf_socket_address(fd, &after);
    }
    /* Disconnecting loses a port that the system has chosen. */
    bool is_lost = err == 0 && weft_address_port(&after) != weft_address_port(&before);
    return is_lost ? wf_socket_bind(fd, &before) : err;
}

static int change_group(int fd, const weft_address *group, unsigned interface, bool joins)
{
    struct group_req request = { .gr_interface = interface };
    memcpy(&request.gr_group, &group->to,
           sizeof group->to < sizeof request.gr_group ? sizeof group->to : sizeof request.gr_group);
    int family = group->size > 0 ? group->to.any.sa_family : AF_UNSPEC;
    if (family != AF_INET && family != AF_INET6) {
        return -EINVAL;
    }
    int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
    int name = joins ? MCAST_JOIN_GROUP : MCAST_LEAVE_GROUP;
    return setsockopt(fd, level, name, &request, sizeof request) == 0 ? 0 : -errno;
}

/* Evaluates an expression with the descriptor fd, which is not closed in the meantime. */
#define WITH_FD(socket, ...)                                                                       \
    do {                                                                                           \
        struct wf_source *source;                                                                  \
        int err = wf_source_enter((socket), &source);                                              \
        if (err == 0) {                                                                            \
            int fd = source->fd;                                                                   \
            err = __VA_ARGS__;                                                                     \
            wf_source_leave(source);                                                               \
        }                                                                                          \
        return err;                                                                                \
    } while (0)

int weft_datagram_connect(weft_datagram *socket, const weft_address *address)
{
    WITH_FD(socket, connect_fd(fd, address));
}

int weft_datagram_join(weft_datagram *socket, const weft_address *group, unsigned interface)
{
    WITH_FD(socket, change_group(fd, group, interface, true));
}

int weft_datagram_leave(weft_datagram *socket, const weft_address *group, unsigned interface)
{
    WITH_FD(socket, change_group(fd, group, interface, false));
}

int weft_datagram_address(weft_datagram *socket, weft_address *address)
{
    WITH_FD(socket, wf_socket_address(fd, address));
}

int weft_datagram_peer(weft_datagram *socket, weft_address *address)
{
    WITH_FD(socket, wf_socket_peer(fd, address));
}

int weft_datagram_set_option(weft_datagram *socket, weft_option option, int value)
{
    WITH_FD(socket, wf_socket_set_option(fd, option, value));
}

int weft_datagram_option(weft_datagram *socket, weft_option option, int *value)
{
    WITH_FD(socket, wf_socket_option(fd, option, value));
}

int weft_datagram_fd(const weft_datagram *socket)
{
    WITH_FD(socket, fd);
}
