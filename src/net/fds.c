/* SPDX-License-Identifier: MIT */
/*
 * fds.c - passing of descriptors over Unix sockets, along with data.
 */
#include <weft/net.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "io/source.h"
#include "io/transfer.h"
#include "net/socket.h"

/* In the transfer. */
struct passing {
    const int *fds; /* to send */
    int *received;
    size_t *room; /* capacity of received; afterwards the number of received descriptors */
    size_t count; /* to send */
};

static struct passing *passing_of(struct wf_transfer *self)
{
    return (struct passing *)(void *)self->room;
}

_Static_assert(sizeof(struct passing) <= 6 * sizeof(uint64_t), "wf_transfer is too small");

union control {
    struct cmsghdr align;
    /* Extra space for what else the system may add: credentials, a label, times. */
    char bytes[CMSG_SPACE(WEFT_FDS_MAX * sizeof(int)) + 512];
};

static int passing_enter(struct wf_transfer *self)
{
    int family = 0;
    int err = wf_transfer_enter(self);
    if (err != 0) {
        return err;
    }
    int fd = self->source->fd;
    if (fd < 0 || wf_socket_get(fd, SOL_SOCKET, SO_DOMAIN, &family) != 0 || family != AF_UNIX) {
        wf_transfer_leave(self);
        return -EOPNOTSUPP;
    }
    return 0;
}

/* Ends an attempt whose system call failed with an error other than EAGAIN. */
static int give_up(struct wf_source *source, uint32_t what)
{
    int err = -errno;
    if (err == -EINTR) {
        return WF_TRANSFER_MORE;
    }
    wf_source_pass_on(source, what); /* The error answers only this call. */
    return err;
}

/* --- Writing ---------------------------------------------------------------------------- */

static int write_attempt(struct wf_transfer *self)
{
    const struct passing *passing = passing_of(self);
    struct wf_source *source = self->source;
    union control control;
    if (passing->count > WEFT_FDS_MAX || self->own.iov_len == 0) {
        return -EINVAL;
    }
    uint32_t seen = wf_source_look(source);
    if ((seen & WF_SOURCE_WRITABLE) == 0) {
        return wf_transfer_wait(self, WF_SOURCE_WRITABLE);
    }
    struct msghdr message = { .msg_iov = &self->own, .msg_iovlen = 1 };
    if (passing->count > 0) {
        size_t bytes = passing->count * sizeof(int);
        message.msg_control = memset(&control, 0, sizeof control);
        message.msg_controllen = CMSG_SPACE(bytes);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(bytes);
        memcpy(CMSG_DATA(header), passing->fds, bytes);
    }
    ssize_t n = sendmsg(source->fd, &message, MSG_NOSIGNAL);
    if (n >= 0) {
        wf_source_moved(source, seen, WF_SOURCE_WRITABLE, (size_t)n, self->own.iov_len);
        return (int)n;
    }
    if (errno == EAGAIN) {
        wf_source_exhausted(source, seen, WF_SOURCE_WRITABLE);
        return wf_transfer_wait(self, WF_SOURCE_WRITABLE);
    }
    return give_up(source, WF_SOURCE_WRITABLE);
}

/* --- Reading ---------------------------------------------------------------------------- */

/*
 * Stores the received descriptors, up to the given capacity, and closes the others. If the
 * kernel could not open all of them, since the process has reached its limit, a -1 reports
 * that. The kernel does not say how many are lost.
 */
static void take_fds(struct msghdr *message, const struct passing *passing)
{
    size_t room = *passing->room;
    size_t count = 0;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t came = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < came; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
            if (count < room) {
                passing->received[count++] = fd;
            } else {
                (void)close(fd);
            }
        }
    }
    if ((message->msg_flags & MSG_CTRUNC) != 0 && count < room) {
        passing->received[count++] = -1;
    }
    *passing->room = count;
}

static int read_attempt(struct wf_transfer *self)
{
    const struct passing *passing = passing_of(self);
    struct wf_source *source = self->source;
    union control control;
    if (self->own.iov_len == 0) {
        *passing->room = 0;
        return 0;
    }
    uint32_t seen = wf_source_look(source);
    if ((seen & WF_SOURCE_READABLE) == 0) {
        return wf_transfer_wait(self, WF_SOURCE_READABLE);
    }
    struct msghdr message = { .msg_iov = &self->own,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof control };
    ssize_t n = recvmsg(source->fd, &message, MSG_CMSG_CLOEXEC);
    if (n >= 0) {
        take_fds(&message, passing);
        /* A message with descriptors ends a read early: more data may be available. */
        wf_source_pass_on(source, WF_SOURCE_READABLE);
        return (int)n;
    }
    if (errno == EAGAIN) {
        wf_source_exhausted(source, seen, WF_SOURCE_READABLE);
        return wf_transfer_wait(self, WF_SOURCE_READABLE);
    }
    return give_up(source, WF_SOURCE_READABLE);
}

static const struct wf_transfer_ops write_ops = { passing_enter, wf_transfer_leave, write_attempt };
static const struct wf_transfer_ops read_ops = { passing_enter, wf_transfer_leave, read_attempt };

void weft_write_fds_init(weft_io *io, weft_stream *stream, const void *data, size_t size,
                         const int *fds, size_t count)
{
    struct wf_transfer *self = wf_transfer_init(io, &write_ops, stream);
    self->own = (struct iovec){ .iov_base = (void *)(uintptr_t)data, .iov_len = size };
    *passing_of(self) = (struct passing){ .fds = fds, .count = count };
}

ssize_t weft_write_fds(weft_stream *stream, const void *data, size_t size, const int *fds,
                       size_t count, weft_time deadline)
{
    weft_io io;
    weft_write_fds_init(&io, stream, data, size, fds, count);
    return wf_transfer_await(&io, deadline, "weft_write_fds");
}

void weft_read_fds_init(weft_io *io, weft_stream *stream, void *buffer, size_t size, int *fds,
                        size_t *count)
{
    struct wf_transfer *self = wf_transfer_init(io, &read_ops, stream);
    self->own = (struct iovec){ .iov_base = buffer, .iov_len = size };
    *passing_of(self) = (struct passing){ .received = fds, .room = count };
}

ssize_t weft_read_fds(weft_stream *stream, void *buffer, size_t size, int *fds, size_t *count,
                      weft_time deadline)
{
    weft_io io;
    weft_read_fds_init(&io, stream, buffer, size, fds, count);
    return wf_transfer_await(&io, deadline, "weft_read_fds");
}
