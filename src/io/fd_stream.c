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
#include "io/owned.h"
#include "io/shared.h"
#include "io/source.h"
#include "io/stream.h"
#include "sched/thread.h"
#include "sched/worker.h"

_Static_assert(sizeof(struct wf_stream) <= WF_SOURCE_ROOM, "WF_SOURCE_ROOM is too small");

static bool is_socket(const struct wf_source *source)
{
    return source->kind == WF_FD_TCP || source->kind == WF_FD_LOCAL;
}

/* Returns the size of the vectors, limited to the most that the kernel transfers. */
static size_t bytes_of(const struct iovec *vectors, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += vectors[i].iov_len;
    }
    return bytes < WF_STREAM_BYTES_MAX ? bytes : WF_STREAM_BYTES_MAX;
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
try_read(struct wf_source *source, const struct iovec *vectors, int count, unsigned flags)
{
    bool peek = (flags & WF_TRY_PEEK) != 0;
    if (peek && !is_socket(source)) {
        return -EOPNOTSUPP;
    }
    uint32_t seen = wf_source_look(source);
    if ((seen & WF_SOURCE_READABLE) == 0 && (flags & WF_TRY_SURELY) == 0) {
        return -EAGAIN;
    }
    ssize_t n;
    do {
        n = is_socket(source) ? receive(source->fd, vectors, count, peek ? MSG_PEEK : 0)
                              : readv(source->fd, vectors, count);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return wf_source_failed(source, seen, WF_SOURCE_READABLE);
    }
    if (peek || n == 0) { /* Data or the end remains for other waiters. */
        wf_source_pass_on(source, WF_SOURCE_READABLE);
    } else {
        wf_source_moved(source, seen, WF_SOURCE_READABLE, (size_t)n, bytes_of(vectors, count));
    }
    return n;
}

static ssize_t fd_try_read(struct wf_source *source, const struct iovec *vectors, int count,
                           unsigned flags)
{
    return try_read(source, vectors, count, flags);
}

static ssize_t fd_read(struct wf_source *source, void *buffer, size_t size, weft_time deadline)
{
    static const char call[] = "weft_read";
    struct iovec vector = { .iov_base = buffer, .iov_len = size };
    ssize_t n;
    while ((n = try_read(source, &vector, 1, 0)) == -EAGAIN &&
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

/* Writes to a descriptor that is not a socket, for which no flag suppresses SIGPIPE. Workers
 * block the signal. */
static ssize_t write_quietly(int fd, const struct iovec *vectors, int count)
{
    if (wf_worker_current() != NULL) {
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
try_write(struct wf_source *source, const struct iovec *vectors, int count, unsigned flags)
{
    uint32_t seen = wf_source_look(source);
    if ((seen & WF_SOURCE_WRITABLE) == 0 && (flags & WF_TRY_SURELY) == 0) {
        return -EAGAIN;
    }
    ssize_t n;
    do {
        n = is_socket(source) ? send_vectors(source->fd, vectors, count)
                              : write_quietly(source->fd, vectors, count);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return wf_source_failed(source, seen, WF_SOURCE_WRITABLE);
    }
    wf_source_moved(source, seen, WF_SOURCE_WRITABLE, (size_t)n, bytes_of(vectors, count));
    return n;
}

static ssize_t fd_try_write(struct wf_source *source, const struct iovec *vectors, int count,
                            unsigned flags)
{
    return try_write(source, vectors, count, flags);
}

static ssize_t fd_write_begin(struct wf_source *source, const void *data, size_t size)
{
    struct iovec vector = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
    ssize_t n = try_write(source, &vector, 1, 0);
    if (wf_unlikely(n == -EAGAIN)) {
        return 0;
    }
    if (wf_likely(n < 0 || (size_t)n == size)) {
        wf_source_leave(source);
    }
    return n;
}

/* --- Other functions -------------------------------------------------------------------- */

static int fd_shutdown(struct wf_source *source, weft_side side)
{
    static const int sides[] = {
        [WEFT_READ_SIDE] = SHUT_RD, [WEFT_WRITE_SIDE] = SHUT_WR, [WEFT_BOTH_SIDES] = SHUT_RDWR
    };
    if (!is_socket(source)) {
        return -EOPNOTSUPP;
    }
    return shutdown(source->fd, sides[side]) == 0 ? 0 : -errno;
}

static const struct wf_stream_ops fd_ops = {
    .try_read = fd_try_read,
    .try_write = fd_try_write,
    .read = fd_read,
    .write_begin = fd_write_begin,
    .shutdown = fd_shutdown,
};

int wf_fd_stream_open(struct wf_io *io, int fd, enum wf_fd_kind kind, struct wf_source **out)
{
    struct wf_source *source;
    int err = wf_source_open(io, fd, &source);
    if (err != 0) {
        return err;
    }
    struct wf_stream *stream = (struct wf_stream *)(void *)source->room;
    stream->ops = &fd_ops;
    source->kind = (uint8_t)kind;
    /* A terminal returns one line per read, and passed descriptors end a Unix socket's read. */
    source->drains = kind == WF_FD_TCP || kind == WF_FD_PIPE;
    *out = source;
    return 0;
}

bool wf_fd_stream_is(const struct wf_source *source)
{
    return wf_stream_ops(source) == &fd_ops;
}

/* --- Adopted descriptors ---------------------------------------------------------------- */

/* Makes the descriptor non-blocking. Returns 0 or -EBADF. */
static int do_not_block(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0) {
        return -errno;
    }
    bool does = (flags & O_NONBLOCK) == 0;
    return does && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? -errno : 0;
}

/* Same as wf_fd_adopt(). A shared file description is left as it is. */
static int adopt(struct wf_io *io, int fd, bool is_shared, wf_fd_open_fn *open,
                 struct wf_source **out)
{
    if (!wf_owned_claim(fd)) {
        return -EEXIST;
    }
    int err = is_shared ? 0 : do_not_block(fd);
    if (err == 0) {
        err = open(io, fd, out);
    }
    if (err != 0) {
        wf_owned_release(fd);
    }
    return err;
}

int wf_fd_adopt(struct wf_io *io, int fd, wf_fd_open_fn *open, struct wf_source **out)
{
    return adopt(io, fd, false, open, out);
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

/* In the room of an adopted stream whose file description is shared: see shared.c. */
struct shared_stream {
    struct wf_stream stream;
    int fd; /* the adopted descriptor: that of the source, or an additional one */
};

_Static_assert(sizeof(struct shared_stream) <= WF_SOURCE_ROOM, "WF_SOURCE_ROOM is too small");

static struct shared_stream *shared_of(struct wf_source *source)
{
    return (struct shared_stream *)(void *)source->room;
}

/* The source's descriptor is -1 if it was given up. The caller then gets the adopted
 * descriptor. */
static void release_shared(struct wf_source *source)
{
    int fd = shared_of(source)->fd;
    wf_owned_release(fd);
    if (source->fd == fd || source->fd < 0) {
        wf_shared_restore(fd);
    } else {
        (void)close(fd);
    }
}

/* Opens the stream with a file description that other processes do not share. */
static int open_shared(struct wf_io *io, int fd, struct wf_source **out)
{
    int own = wf_shared_open(fd);
    if (own < 0) {
        return own;
    }
    int err = wf_fd_stream_open(io, own, kind_of(own), out);
    if (err == 0) {
        shared_of(*out)->fd = fd;
        (*out)->release = release_shared;
    } else if (own == fd) {
        wf_shared_restore(fd);
    } else {
        (void)close(own);
    }
    return err;
}

static int open_own(struct wf_io *io, int fd, struct wf_source **out)
{
    return wf_fd_stream_open(io, fd, kind_of(fd), out);
}

int wf_fd_stream_give_up(struct wf_source *source)
{
    int adopted = source->release == release_shared ? shared_of(source)->fd : -1;
    int fd = wf_source_give_up(source);
    if (fd >= 0 && adopted >= 0 && adopted != fd) {
        (void)close(fd);
        fd = adopted;
    }
    return fd;
}

int weft_stream_adopt(weft_stream **stream, int fd)
{
    struct wf_source *source;
    struct wf_io *io = wf_io_must("weft_stream_adopt");
    bool is_shared = wf_shared_is(fd);
    int err = adopt(io, fd, is_shared, is_shared ? open_shared : open_own, &source);
    if (err != 0) {
        return err;
    }
    if (source->kind == WF_FD_PIPE) {
        /* The other end may write packets (O_DIRECT), and each of them ends a read. */
        source->drains = false;
    }
    *stream = wf_source_publish(source);
    return 0;
}

int wf_fd_stream_open_both(struct wf_io *io, const int *ends, enum wf_fd_kind kind,
                           weft_stream **one, weft_stream **other)
{
    struct wf_source *sources[2];
    int err = wf_fd_stream_open(io, ends[0], kind, &sources[0]);
    if (err != 0) {
        goto undo_first;
    }
    err = wf_fd_stream_open(io, ends[1], kind, &sources[1]);
    if (err != 0) {
        goto undo_one;
    }
    *one = wf_source_publish(sources[0]);
    *other = wf_source_publish(sources[1]);
    return 0;

undo_one:
    wf_source_abandon(sources[0]);
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
