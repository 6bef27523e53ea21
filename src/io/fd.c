/* SPDX-License-Identifier: MIT */
/*
 * fd.c - waits for descriptors of libraries that do their own reading and writing.
 *
 * weft does not see how much such a library reads or writes. So an event only means that it is
 * worth asking the kernel again: it sets READABLE and WRITABLE and wakes all waiters, and each
 * of them calls poll(2) for the events that it waits for. If poll(2) reports none of them, the
 * waiter clears the bits of these events, and only these: a wait for one direction has learned
 * nothing about the other, and no further event would come for a direction that is ready
 * already. A waiter that finds the bits of its events clear does not ask; it waits for an event.
 */
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "io/io.h"
#include "io/source.h"
#include "io/transfer.h"
#include "sched/op.h"

/* The events of a wait convert to bits of the source by a multiplication. */
_Static_assert(WEFT_READABLE *WF_SOURCE_READABLE == WF_SOURCE_READABLE, "");
_Static_assert(WEFT_WRITABLE *WF_SOURCE_READABLE == WF_SOURCE_WRITABLE, "");

/* Returns a set of WEFT_READABLE and WEFT_WRITABLE, or an error. */
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

static int attempt(struct wf_transfer *self)
{
    struct wf_source *source = self->source;
    if (self->flags == 0) {
        return -EINVAL;
    }
    uint32_t what = (uint32_t)self->flags * WF_SOURCE_READABLE;
    uint32_t seen = wf_source_look(source);
    if ((seen & what) != 0) {
        int ready = ask(source->fd, (unsigned)self->flags);
        if (ready != 0) {
            return ready;
        }
        wf_source_exhausted(source, seen, what);
    }
    return wf_transfer_wait(self, what);
}

static const struct wf_transfer_ops wait_ops = { wf_transfer_enter, wf_transfer_leave, attempt };

int weft_fd_open(weft_fd **handle, int fd)
{
    struct wf_source *source;
    struct stat status;
    struct wf_io *io = wf_io_must("weft_fd_open");
    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) {
        return -EPERM; /* as epoll does */
    }
    int err = wf_source_open(io, fd, &source);
    if (err != 0) {
        return err;
    }
    source->is_foreign = true;
    source->wants_proxy = true; /* It may be a listener. */
    err = wf_source_watch(source);
    if (err != 0) {
        wf_source_abandon(source);
        return err;
    }
    *handle = wf_source_publish(source);
    return 0;
}

void weft_fd_wait_init(weft_io *io, weft_fd *handle, unsigned events)
{
    struct wf_transfer *self = wf_transfer_init(io, &wait_ops, handle);
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
        wf_source_close(handle);
    }
}
