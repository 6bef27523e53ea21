/* SPDX-License-Identifier: MIT */
/*
 * listen.c - listeners and accepted connections.
 *
 * If no descriptors are left, a connection cannot be accepted and stays in the backlog. No
 * event reports when descriptors become available again, so accept retries with increasing
 * backoff.
 */
#include <weft/net.h>

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "io/fd_stream.h"
#include "io/io.h"
#include "io/source.h"
#include "io/transfer.h"
#include "net/nap.h"
#include "net/path.h"
#include "net/place.h"
#include "net/resolve.h"
#include "net/socket.h"

enum {
    ADDRESSES_MAX = 8,
    BACKLOG_DEFAULT = 1 << 16, /* the system limits it */
};

/* In the room of its source. */
struct listener {
    struct wf_path path; /* removed when the listener is closed */
    bool is_tcp;
    bool nagle;
};

_Static_assert(sizeof(struct listener) <= WF_SOURCE_ROOM, "WF_SOURCE_ROOM is too small");

static struct listener *listener_of(struct wf_source *source)
{
    return (struct listener *)(void *)source->room;
}

/* --- Accepting -------------------------------------------------------------------------- */

static void accept_leave(struct wf_transfer *self)
{
    if (self->cancelled) { /* During a backoff: another waiter may try. */
        wf_source_pass_on(self->source, WF_SOURCE_READABLE);
    }
    wf_transfer_leave(self);
}

static int open_accepted(struct wf_source *source, int fd, weft_stream **stream)
{
    const struct listener *listener = listener_of(source);
    struct wf_source *accepted;
    if (listener->is_tcp && !listener->nagle) {
        (void)wf_socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    }
    int err =
        wf_fd_stream_open(source->io, fd, listener->is_tcp ? WF_FD_TCP : WF_FD_LOCAL, &accepted);
    if (err != 0) {
        return wf_socket_undo(fd, err);
    }
    *stream = wf_source_publish(accepted);
    return 0;
}

/* Decides how to continue after a failed accept4(). */
static int judge_failure(struct wf_transfer *self, uint32_t seen, int error)
{
    switch (error) {
    case EAGAIN:
        wf_source_exhausted(self->source, seen, WF_SOURCE_READABLE);
        return wf_transfer_wait(self, WF_SOURCE_READABLE);
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        return wf_nap(self, self->source->io->sched);
    /* Errors of the connection, not of the listener. */
    case EINTR:
    case ECONNABORTED:
    case ECONNRESET:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EPERM: /* a firewall */
    case ETIMEDOUT:
        return WF_TRANSFER_MORE;
    default:
        wf_source_pass_on(self->source, WF_SOURCE_READABLE);
        return -error;
    }
}

static int accept_attempt(struct wf_transfer *self)
{
    struct wf_source *source = self->source;
    uint32_t seen = wf_source_look(source);
    if ((seen & WF_SOURCE_READABLE) == 0) {
        return wf_transfer_wait(self, WF_SOURCE_READABLE);
    }
    int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        return judge_failure(self, seen, errno);
    }
    if ((seen & WF_SOURCE_READERS) != 0) {
        wf_source_pass_on(source, WF_SOURCE_READABLE);
    }
    return open_accepted(source, fd, self->own.iov_base);
}

static const struct wf_transfer_ops accept_ops = { wf_transfer_enter, accept_leave,
                                                   accept_attempt };

void weft_accept_init(weft_io *io, weft_listener *listener, weft_stream **stream)
{
    struct wf_transfer *self = wf_transfer_init(io, &accept_ops, listener);
    self->own.iov_base = stream;
}

int weft_accept(weft_listener *listener, weft_stream **stream, weft_time deadline)
{
    weft_io io;
    weft_accept_init(&io, listener, stream);
    return wf_transfer_await(&io, deadline, "weft_accept");
}

/* --- Listening -------------------------------------------------------------------------- */

static void release_listener(struct wf_source *source)
{
    wf_path_remove(&listener_of(source)->path);
}

static int open_listener(struct wf_io *io, int fd, struct wf_source **out)
{
    struct wf_source *source;
    int family = 0;
    int err = wf_source_open(io, fd, &source);
    if (err != 0) {
        return err;
    }
    struct listener *listener = listener_of(source);
    *listener = (struct listener){ 0 };
    (void)wf_socket_get(fd, SOL_SOCKET, SO_DOMAIN, &family);
    listener->is_tcp = family == AF_INET || family == AF_INET6;
    source->release = release_listener;
    source->wants_proxy = true;
    *out = source;
    return 0;
}

/* Removes a socket file at the path if no process listens there. */
static void remove_stale(const weft_address *address)
{
    struct stat status;
    struct wf_path path;
    wf_path_note(&path, address);
    if (lstat(path.text, &status) != 0 || !S_ISSOCK(status.st_mode)) {
        return;
    }
    int fd = wf_socket_new(AF_UNIX, SOCK_STREAM);
    if (fd < 0) {
        return;
    }
    if (connect(fd, &address->to.any, address->size) != 0 && errno == ECONNREFUSED) {
        wf_path_remove(&path);
    }
    (void)close(fd);
}

static int bind_local(int fd, const weft_address *address, const weft_listen_options *options,
                      struct wf_path *path)
{
    if (!wf_path_is_named(address)) {
        return wf_socket_bind(fd, address);
    }
    if (options->replace_path) {
        remove_stale(address);
    }
    /* Set before bind, so that the file is never more accessible than allowed, not even
     * briefly. Set again afterwards, since bind applies the umask. */
    if (options->mode != 0 && fchmod(fd, options->mode) != 0) {
        return -errno;
    }
    int err = wf_socket_bind(fd, address);
    if (err == 0) {
        wf_path_note(path, address);
        if (options->mode != 0 && chmod(address->to.local.sun_path, options->mode) != 0) {
            err = -errno;
        }
    }
    return err;
}

static int bind_inet(int fd, const weft_address *address, const weft_listen_options *options)
{
    int err = 0;
    if (!options->fresh_port) {
        err = wf_socket_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    }
    if (err == 0 && options->reuse_port) {
        err = wf_socket_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    }
    if (err == 0 && address->to.any.sa_family == AF_INET6) {
        err = wf_socket_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, options->v6_only);
    }
    return err != 0 ? err : wf_socket_bind(fd, address);
}

/* Returns a socket that listens at the address, or an error. Notes its path. */
static int listen_at(const weft_address *address, const weft_listen_options *options,
                     struct wf_path *path)
{
    memset(path, 0, sizeof *path);
    int fd = wf_socket_new(address->to.any.sa_family, SOCK_STREAM);
    if (fd < 0) {
        return fd;
    }
    bool is_local = address->to.any.sa_family == AF_UNIX;
    int err = is_local ? bind_local(fd, address, options, path) : bind_inet(fd, address, options);
    int backlog = options->backlog > 0 ? options->backlog : BACKLOG_DEFAULT;
    if (err == 0 && listen(fd, backlog) != 0) {
        err = -errno;
    }
    if (err != 0) {
        wf_path_remove(path);
        return wf_socket_undo(fd, err);
    }
    return fd;
}

/* Turns a listening socket into a listener. */
static int finish(struct wf_io *io, int fd, const struct wf_path *path,
                  const weft_listen_options *options, weft_listener **out)
{
    struct wf_source *source;
    int err = open_listener(io, fd, &source);
    if (err != 0) {
        wf_path_remove(path);
        return wf_socket_undo(fd, err);
    }
    struct listener *listener = listener_of(source);
    listener->nagle = options->nagle;
    if (!options->keep_path) {
        listener->path = *path;
    }
    *out = wf_source_publish(source);
    return 0;
}

int weft_listen(weft_listener **listener, const char *place, const weft_listen_options *options)
{
    static const weft_listen_options defaults;
    struct wf_io *io = wf_io_must("weft_listen");
    const char *rest = place;
    enum wf_place kind = wf_place_kind(&rest);
    int err = wf_socket_begin("weft_listen");
    if (err != 0) {
        return err;
    }
    if (kind == WF_PLACE_UDP || kind == WF_PLACE_UNIXGRAM) {
        return -EINVAL;
    }
    options = options != NULL ? options : &defaults;
    weft_address addresses[ADDRESSES_MAX];
    int count = wf_resolve(addresses, ADDRESSES_MAX, place, true, WEFT_NEVER, "weft_listen");
    struct wf_path path;
    int fd = count;
    for (int at = 0; at < count; at++) {
        fd = listen_at(&addresses[at], options, &path);
        if (fd >= 0) {
            break;
        }
    }
    return fd < 0 ? fd : finish(io, fd, &path, options, listener);
}

int weft_listener_adopt(weft_listener **listener, int fd)
{
    struct wf_source *source;
    struct wf_io *io = wf_io_must("weft_listener_adopt");
    int listens = 0;
    int err = wf_socket_get(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens);
    if (err == 0 && listens == 0) {
        err = -EINVAL;
    }
    if (err == 0) {
        err = wf_fd_adopt(io, fd, open_listener, &source);
    }
    if (err != 0) {
        return err;
    }
    *listener = wf_source_publish(source);
    return 0;
}

/* --- Other functions -------------------------------------------------------------------- */

/* Evaluates an expression with the descriptor fd, which is not closed in the meantime. */
#define WITH_FD(listener, ...)                                                                     \
    do {                                                                                           \
        struct wf_source *source;                                                                  \
        int err = wf_source_enter((listener), &source);                                            \
        if (err == 0) {                                                                            \
            int fd = source->fd;                                                                   \
            err = __VA_ARGS__;                                                                     \
            wf_source_leave(source);                                                               \
        }                                                                                          \
        return err;                                                                                \
    } while (0)

int weft_listener_address(weft_listener *listener, weft_address *address)
{
    WITH_FD(listener, wf_socket_address(fd, address));
}

int weft_listener_fd(const weft_listener *listener)
{
    WITH_FD(listener, fd);
}

int weft_listener_set_option(weft_listener *listener, weft_option option, int value)
{
    WITH_FD(listener, wf_socket_set_option(fd, option, value));
}

int weft_listener_option(weft_listener *listener, weft_option option, int *value)
{
    WITH_FD(listener, wf_socket_option(fd, option, value));
}

void weft_listener_close(weft_listener *listener)
{
    if (listener != NULL) {
        wf_source_close(listener);
    }
}
