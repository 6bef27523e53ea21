/* SPDX-License-Identifier: MIT */
/*
 * fd_stream.c - descriptors as streams: sockets, pipes and others.
 */
#include "io/fd_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/call.h"
#include "io/io.h"
#include "io/source.h"
#include "io/stream.h"
#include "sched/thread.h"
#include "sched/worker.h"

_Static_assert(sizeof(weft_stream) <= WF_SOURCE_ROOM, "WF_SOURCE_ROOM is too small");

static struct wf_source *source_of(const weft_stream *stream)
{
    return wf_container_of(stream, struct wf_source, room);
}

enum wf_fd_kind wf_fd_stream_kind(const weft_stream *stream)
{
    return (enum wf_fd_kind)source_of(stream)->kind;
}

static bool is_socket(const weft_stream *stream)
{
    enum wf_fd_kind kind = wf_fd_stream_kind(stream);
    return kind == WF_FD_TCP || kind == WF_FD_LOCAL;
}

static int fd_enter(weft_stream *stream, const char *call)
{
    return wf_source_enter(source_of(stream), call);
}

static void fd_leave(weft_stream *stream)
{
    wf_source_leave(source_of(stream));
}

static size_t bytes_of(const struct iovec *vectors, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += vectors[i].iov_len;
    }
    return bytes;
}

/* --- Reading ---------------------------------------------------------------------------- */

static ssize_t receive(int fd, const struct iovec *vectors, int count, int flags)
{
    if (count == 1) {
        return wf_call_recv(fd, vectors->iov_base, vectors->iov_len, flags);
    }
    struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)vectors,
                              .msg_iovlen = (size_t)count };
    return recvmsg(fd, &message, flags);
}

static inline __attribute__((always_inline)) ssize_t
try_read(weft_stream *stream, const struct iovec *vectors, int count, unsigned flags)
{
    struct wf_source *source = source_of(stream);
    bool peek = (flags & WF_TRY_PEEK) != 0;
    if (peek && !is_socket(stream)) {
        return -EOPNOTSUPP;
    }
    uint32_t seen = wf_source_look(source);
    if ((seen & WF_SOURCE_READABLE) == 0 && (flags & WF_TRY_SURELY) == 0) {
        return -EAGAIN;
    }
    ssize_t n;
    do {
        n = is_socket(stream) ? receive(source->fd, vectors, count, peek ? MSG_PEEK : 0)
                              : readv(source->fd, vectors, count);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return wf_source_failed(source, seen, WF_SOURCE_READABLE);
    }
    if (peek || n == 0) { /* It is all still there, or the end is: for others who wait. */
        wf_source_pass_on(source, WF_SOURCE_READABLE);
    } else {
        wf_source_moved(source, seen, WF_SOURCE_READABLE, (size_t)n, bytes_of(vectors, count));
    }
    return n;
}

static ssize_t fd_try_read(weft_stream *stream, const struct iovec *vectors, int count,
                           unsigned flags)
{
    return try_read(stream, vectors, count, flags);
}

static ssize_t fd_read(weft_stream *stream, void *buffer, size_t size, weft_time deadline)
{
    static const char call[] = "weft_read";
    struct wf_source *source = source_of(stream);
    struct iovec vector = { .iov_base = buffer, .iov_len = size };
    ssize_t n = wf_source_enter(source, call);
    if (wf_unlikely(n != 0)) {
        return n;
    }
    while ((n = try_read(stream, &vector, 1, 0)) == -EAGAIN &&
           (n = wf_source_await(source, WF_SOURCE_READABLE, deadline, call)) == 0) {
    }
    wf_source_leave(source);
    return n;
}

/* --- Writing ---------------------------------------------------------------------------- */

static ssize_t send_vectors(int fd, const struct iovec *vectors, int count)
{
    if (count == 1) {
        return wf_call_send(fd, vectors->iov_base, vectors->iov_len, MSG_NOSIGNAL);
    }
    struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)vectors,
                              .msg_iovlen = (size_t)count };
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* Does this thread keep SIGPIPE from killing the process? All of ours do. */
static bool is_deaf(void)
{
    const struct wf_thread *thread = wf_thread_known();
    return wf_worker_current() != NULL || (thread != NULL && thread->running != NULL);
}

/* Writes to what is no socket: there is no flag against SIGPIPE. */
static ssize_t write_quietly(int fd, const struct iovec *vectors, int count)
{
    if (is_deaf()) {
        return writev(fd, vectors, count);
    }
    sigset_t pipe_only;
    sigset_t before;
    sigset_t pending;
    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)sigpending(&pending);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    ssize_t n = writev(fd, vectors, count);
    int error = errno;
    if (n < 0 && error == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
        struct timespec none = { 0 };
        (void)sigtimedwait(&pipe_only, NULL, &none);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return n;
}

static inline __attribute__((always_inline)) ssize_t
try_write(weft_stream *stream, const struct iovec *vectors, int count, unsigned flags)
{
    struct wf_source *source = source_of(stream);
    uint32_t seen = wf_source_look(source);
    if ((seen & WF_SOURCE_WRITABLE) == 0 && (flags & WF_TRY_SURELY) == 0) {
        return -EAGAIN;
    }
    ssize_t n;
    do {
        n = is_socket(stream) ? send_vectors(source->fd, vectors, count)
                              : write_quietly(source->fd, vectors, count);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return wf_source_failed(source, seen, WF_SOURCE_WRITABLE);
    }
    wf_source_moved(source, seen, WF_SOURCE_WRITABLE, (size_t)n, bytes_of(vectors, count));
    return n;
}

static ssize_t fd_try_write(weft_stream *stream, const struct iovec *vectors, int count,
                            unsigned flags)
{
    return try_write(stream, vectors, count, flags);
}

static ssize_t fd_write_begin(weft_stream *stream, const void *data, size_t size)
{
    struct wf_source *source = source_of(stream);
    struct iovec vector = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
    ssize_t n = wf_source_enter(source, "weft_write_all");
    if (wf_unlikely(n != 0)) {
        return n;
    }
    n = try_write(stream, &vector, 1, 0);
    if (wf_unlikely(n == -EAGAIN)) {
        return 0;
    }
    if (wf_likely(n < 0 || (size_t)n == size)) {
        wf_source_leave(source);
    }
    return n;
}

/* --- The rest --------------------------------------------------------------------------- */

static void fd_wait_init(weft_op *op, weft_stream *stream, unsigned what, bool is_ours)
{
    uint32_t ready = what == WEFT_READABLE ? WF_SOURCE_READABLE : WF_SOURCE_WRITABLE;
    wf_source_wait_init(op, source_of(stream), ready, is_ours);
}

static int fd_shutdown(weft_stream *stream, weft_side side)
{
    static const int sides[] = {
        [WEFT_READ_SIDE] = SHUT_RD, [WEFT_WRITE_SIDE] = SHUT_WR, [WEFT_BOTH_SIDES] = SHUT_RDWR
    };
    if (!is_socket(stream)) {
        return -EOPNOTSUPP;
    }
    return shutdown(source_of(stream)->fd, sides[side]) == 0 ? 0 : -errno;
}

static void fd_close(weft_stream *stream)
{
    wf_source_close(source_of(stream), "weft_stream_close");
}

static int fd_number(const weft_stream *stream)
{
    return source_of(stream)->fd;
}

static int fd_release(weft_stream *stream)
{
    return wf_source_give_up(source_of(stream));
}

static const struct wf_stream_ops fd_ops = {
    .enter = fd_enter,
    .leave = fd_leave,
    .try_read = fd_try_read,
    .try_write = fd_try_write,
    .read = fd_read,
    .write_begin = fd_write_begin,
    .wait_init = fd_wait_init,
    .shutdown = fd_shutdown,
    .close = fd_close,
    .fd = fd_number,
    .release = fd_release,
};

int wf_fd_stream_open(struct wf_io *io, int fd, enum wf_fd_kind kind, weft_stream **out)
{
    struct wf_source *source;
    int err = wf_source_open(io, fd, &source);
    if (err != 0) {
        return err;
    }
    weft_stream *stream = (weft_stream *)(void *)source->room;
    stream->ops = &fd_ops;
    source->kind = (uint8_t)kind;
    /* A terminal gives a line at a time, and a Unix socket ends a read at descriptors. */
    source->drains = kind == WF_FD_TCP || kind == WF_FD_PIPE;
    *out = stream;
    return 0;
}

struct wf_source *wf_fd_stream_source(const weft_stream *stream)
{
    return stream->ops == &fd_ops ? source_of(stream) : NULL;
}

/* --- Descriptors of others -------------------------------------------------------------- */

int wf_fd_do_not_block(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0) {
        return -errno;
    }
    bool does = (flags & O_NONBLOCK) == 0;
    return does && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? -errno : 0;
}

static enum wf_fd_kind kind_of(int fd)
{
    struct stat status;
    int type = 0;
    socklen_t size = sizeof type;
    if (fstat(fd, &status) != 0) {
        return WF_FD_OTHER;
    }
    if (S_ISSOCK(status.st_mode)) {
        int protocol = 0;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) {
            return WF_FD_OTHER;
        }
        size = sizeof protocol;
        (void)getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size);
        return protocol == IPPROTO_TCP ? WF_FD_TCP : WF_FD_LOCAL;
    }
    return S_ISFIFO(status.st_mode) ? WF_FD_PIPE : WF_FD_OTHER;
}

int weft_stream_adopt(weft_stream **stream, int fd)
{
    struct wf_io *io = wf_io_must("weft_stream_adopt");
    int err = wf_fd_do_not_block(fd);
    if (err == 0) {
        err = wf_fd_stream_open(io, fd, kind_of(fd), stream);
    }
    if (err == 0 && wf_fd_stream_kind(*stream) == WF_FD_PIPE) {
        /* The other end may write packets (O_DIRECT), and a read ends with each of them. */
        source_of(*stream)->drains = false;
    }
    return err;
}

int wf_fd_stream_open_both(struct wf_io *io, const int *ends, enum wf_fd_kind kind,
                           weft_stream **one, weft_stream **other)
{
    int err = wf_fd_stream_open(io, ends[0], kind, one);
    if (err != 0) {
        goto undo_first;
    }
    err = wf_fd_stream_open(io, ends[1], kind, other);
    if (err != 0) {
        goto undo_one;
    }
    return 0;

undo_one:
    weft_stream_close(*one);
    (void)close(ends[1]);
    return err;
undo_first:
    (void)close(ends[0]);
    (void)close(ends[1]);
    return err;
}

int weft_pipe(weft_stream **reader, weft_stream **writer)
{
    struct wf_io *io = wf_io_must("weft_pipe");
    int ends[2];
    return pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0
               ? -errno
               : wf_fd_stream_open_both(io, ends, WF_FD_PIPE, reader, writer);
}
