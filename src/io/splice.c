/* SPDX-License-Identifier: MIT */
/*
 * splice.c - zero-copy transfer between two descriptors inside the kernel: sendfile() and
 * splice().
 *
 * From a file, bytes go to the target directly. From a socket or pipe they go through a private
 * pipe, which is filled from the source and drained into the target in alternation. The pipe is
 * empty before each fill, and not empty before each drain. So a call that fails with EAGAIN has
 * failed because of the stream, which is the one to wait for. If the kernel does not support
 * these descriptors, or not at this point of the data, plain reads and writes take over. The
 * pipe is empty then.
 */
#include "io/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd_stream.h"
#include "io/source.h"
#include "io/transfer.h"
#include "sched/worker.h"

enum {
    PART = 64 * 1024, /* default capacity of a pipe */
};

/* In the room of a transfer: one step into a stream or out of one. */
struct step {
    uint32_t what;            /* direction: WF_SOURCE_WRITABLE if the step goes into the stream */
    int end;                  /* of the private pipe, the other side of the step */
    weft_stream *file;        /* or the file to send from */
    struct wf_source *source; /* of the file, while it is used */
    size_t size;
};

_Static_assert(sizeof(struct step) <= sizeof((struct wf_transfer *)NULL)->room, "no room");

static struct step *step_of(struct wf_transfer *self)
{
    return (struct step *)(void *)self->room;
}

static int step_enter(struct wf_transfer *self)
{
    struct step *step = step_of(self);
    int err = step->file != NULL ? wf_source_enter(step->file, &step->source) : 0;
    if (err != 0) {
        return err;
    }
    err = wf_transfer_enter(self);
    if (err != 0 && step->file != NULL) {
        wf_source_leave(step->source);
    }
    return err;
}

static void step_leave(struct wf_transfer *self)
{
    const struct step *step = step_of(self);
    wf_transfer_leave(self);
    if (step->file != NULL) {
        wf_source_leave(step->source);
    }
}

static ssize_t move(int fd, const struct step *step)
{
    const int flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
    ssize_t n;
    do {
        n = step->file != NULL ? sendfile(fd, step->source->fd, NULL, step->size)
            : step->what == WF_SOURCE_WRITABLE
                ? splice(step->end, NULL, fd, NULL, step->size, flags)
                : splice(fd, NULL, step->end, NULL, step->size, flags);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* A splice does not get past urgent data as a read does: it reports EAGAIN or the end. */
static bool is_at_urgent_data(const struct wf_source *source)
{
    int saved = errno;
    bool result = source->kind == WF_FD_TCP && sockatmark(source->fd) == 1;
    errno = saved;
    return result;
}

static int step_attempt(struct wf_transfer *self)
{
    const struct step *step = step_of(self);
    struct wf_source *source = self->source;
    uint32_t seen = wf_source_look(source);
    if ((seen & step->what) != 0) {
        ssize_t n = move(source->fd, step);
        if (n <= 0 && step->what == WF_SOURCE_READABLE && is_at_urgent_data(source)) {
            wf_source_pass_on(source, step->what);
            return -EINVAL;
        }
        if (n >= 0) {
            wf_worker_count_bytes((size_t)n);
            /* A short transfer does not mean that the stream is exhausted. */
            wf_source_pass_on(source, step->what);
            return (int)n;
        }
        int err = wf_source_failed(source, seen, step->what);
        if (err != -EAGAIN) {
            return err;
        }
    }
    return wf_transfer_wait(self, step->what);
}

static const struct wf_transfer_ops step_ops = { step_enter, step_leave, step_attempt };

static int await_step(weft_stream *stream, const struct step *step,
                      const struct wf_transfer_end *end)
{
    weft_io io;
    struct wf_transfer *self = wf_transfer_init(&io, &step_ops, stream);
    *step_of(self) = *step;
    return wf_transfer_await_end(&io, end, "weft_copy");
}

/* Returns whether the call is not supported for these descriptors, or forbidden. That is not an
 * error of the streams. */
static bool is_refusal(int err)
{
    return err == -EINVAL || err == -ENOSYS || err == -EPERM || err == -EOPNOTSUPP;
}

static int send_file(weft_stream *file, weft_stream *to, uint64_t *copied,
                     const struct wf_transfer_end *end)
{
    const struct step send = { .what = WF_SOURCE_WRITABLE, .file = file, .size = PART };
    int n;
    while ((n = await_step(to, &send, end)) > 0) {
        *copied += (uint64_t)n;
    }
    return is_refusal(n) ? -EOPNOTSUPP : n;
}

static ssize_t read_pipe(int end, void *buffer, size_t size)
{
    ssize_t n;
    do {
        n = read(end, buffer, size);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* Empties the pipe by reads and writes. Returns -EOPNOTSUPP if it is empty now. */
static int write_out(int pipe_end, weft_stream *to, uint64_t *copied,
                     const struct wf_transfer_end *end)
{
    char buffer[4096];
    ssize_t n;
    while ((n = read_pipe(pipe_end, buffer, sizeof buffer)) > 0) {
        struct iovec rest = { buffer, (size_t)n };
        weft_io io;
        weft_writev_all_init(&io, to, &rest, 1);
        int err = wf_transfer_await_end(&io, end, "weft_copy");
        *copied += (uint64_t)n - rest.iov_len;
        if (err != 0) {
            return err;
        }
    }
    return n < 0 && errno != EAGAIN ? -errno : -EOPNOTSUPP;
}

static int drain(int pipe_end, size_t held, weft_stream *to, uint64_t *copied,
                 const struct wf_transfer_end *end)
{
    while (held > 0) {
        const struct step out = { .what = WF_SOURCE_WRITABLE, .end = pipe_end, .size = held };
        int n = await_step(to, &out, end);
        if (n < 0) {
            return is_refusal(n) ? write_out(pipe_end, to, copied, end) : n;
        }
        held -= (size_t)n;
        *copied += (uint64_t)n;
    }
    return 0;
}

static int copy_by_pipe(weft_stream *from, weft_stream *to, uint64_t *copied,
                        const struct wf_transfer_end *end)
{
    int ends[2];
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
        return -EOPNOTSUPP;
    }
    const struct step in = { .what = WF_SOURCE_READABLE, .end = ends[1], .size = PART };
    int err = 0;
    int n = 0;
    while (err == 0 && (n = await_step(from, &in, end)) > 0) {
        err = drain(ends[0], (size_t)n, to, copied, end);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    return err != 0 ? err : is_refusal(n) ? -EOPNOTSUPP : n;
}

static bool is_file(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

static bool is_possible(const struct wf_source *from, const struct wf_source *to)
{
    /* Only workers block SIGPIPE, which no flag of these calls suppresses. */
    return wf_fd_stream_is(from) && wf_fd_stream_is(to) && wf_worker_current() != NULL &&
           to->kind != WF_FD_OTHER && (from->kind != WF_FD_OTHER || is_file(from->fd));
}

int wf_splice(weft_stream *from, weft_stream *to, uint64_t *copied,
              const struct wf_transfer_end *end)
{
    struct wf_source *sources[2];
    int err = wf_source_enter(from, &sources[0]);
    if (err != 0) {
        return err;
    }
    err = wf_source_enter(to, &sources[1]);
    if (err != 0) {
        goto leave_from;
    }
    if (!is_possible(sources[0], sources[1])) {
        err = -EOPNOTSUPP;
    } else if (sources[0]->kind == WF_FD_OTHER) {
        err = send_file(from, to, copied, end);
    } else {
        err = copy_by_pipe(from, to, copied, end);
    }
    wf_source_leave(sources[1]);
leave_from:
    wf_source_leave(sources[0]);
    return err;
}
