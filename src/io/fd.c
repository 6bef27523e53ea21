/* SPDX-License-Identifier: MIT */
/*
 * fd.c - descriptors of libraries that do their own reading and writing.
 *
 * Nobody tells how much such a library has read. So an event only says that it is worth to
 * ask the kernel again, and who waits asks by poll(2) first. All who wait do so for any
 * event: they are in one queue, that of the readers.
 */
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "io/io.h"
#include "io/source.h"
#include "io/transfer.h"
#include "sched/op.h"

/* In the room of its source. */
struct weft_fd {
    char unused;
};

static struct wf_source *source_of(const weft_fd *handle)
{
    return wf_container_of(handle, struct wf_source, room);
}

/* Some of WEFT_READABLE and WEFT_WRITABLE, or an error. */
static int ask(int fd, unsigned events)
{
    struct pollfd poll_fd = { .fd = fd };
    if ((events & WEFT_READABLE) != 0) {
        poll_fd.events |= POLLIN | POLLPRI | POLLRDHUP;
    }
    if ((events & WEFT_WRITABLE) != 0) {
        poll_fd.events |= POLLOUT;
    }
    int count;
    do {
        count = poll(&poll_fd, 1, 0);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        return -errno;
    }
    if ((poll_fd.revents & POLLNVAL) != 0) {
        return -EBADF;
    }
    int ready = 0;
    if ((poll_fd.revents & (POLLIN | POLLPRI | POLLRDHUP)) != 0) {
        ready |= WEFT_READABLE;
    }
    if ((poll_fd.revents & POLLOUT) != 0) {
        ready |= WEFT_WRITABLE;
    }
    return (poll_fd.revents & (POLLERR | POLLHUP)) != 0 ? (int)events : ready;
}

static int enter(struct wf_transfer *self)
{
    return wf_source_enter(self->object, "weft_fd_wait");
}

static void leave(struct wf_transfer *self)
{
    wf_source_leave(self->object);
}

static int attempt(struct wf_transfer *self)
{
    struct wf_source *source = self->object;
    if (self->flags == 0) {
        return -EINVAL;
    }
    uint32_t seen = wf_source_look(source);
    if ((seen & WF_SOURCE_READABLE) != 0) {
        int ready = ask(source->fd, (unsigned)self->flags);
        if (ready != 0) {
            return ready;
        }
        wf_source_exhausted(source, seen, WF_SOURCE_READABLE);
    }
    wf_source_wait_init(&self->wait, source, WF_SOURCE_READABLE, true);
    self->waits_for = &self->wait.future;
    return WEFT_PENDING;
}

static const struct wf_transfer_ops wait_ops = { enter, leave, attempt };

int weft_fd_open(weft_fd **handle, int fd)
{
    struct wf_source *source;
    struct stat status;
    struct wf_io *io = wf_io_must("weft_fd_open");
    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) {
        return -EPERM; /* As epoll says. */
    }
    int err = wf_source_open(io, fd, &source);
    if (err != 0) {
        return err;
    }
    source->is_foreign = true;
    err = wf_source_watch(source);
    if (err != 0) {
        wf_source_close(source, "weft_fd_open");
        return err;
    }
    *handle = (weft_fd *)(void *)source->room;
    return 0;
}

void weft_fd_wait_init(weft_io *io, weft_fd *handle, unsigned events)
{
    struct wf_transfer *self = wf_transfer_init(io, &wait_ops, source_of(handle));
    self->flags = (int)(events & (WEFT_READABLE | WEFT_WRITABLE));
}

int weft_fd_wait(weft_fd *handle, unsigned events, weft_time deadline)
{
    weft_io io;
    weft_fd_wait_init(&io, handle, events);
    return wf_transfer_await(&io, deadline, "weft_fd_wait");
}

void weft_fd_close(weft_fd *handle)
{
    if (handle != NULL) {
        wf_source_close(source_of(handle), "weft_fd_close");
    }
}
