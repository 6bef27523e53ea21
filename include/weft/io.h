/* SPDX-License-Identifier: MIT */
/*
 * weft/io.h - byte streams, pipes, and readiness of descriptors.
 *
 *     char buffer[4096];
 *     ssize_t n;
 *     while ((n = weft_read(stream, buffer, sizeof buffer, WEFT_NEVER)) > 0) {
 *         if (weft_write_all(stream, buffer, (size_t)n, WEFT_NEVER) != 0) {
 *             break;
 *         }
 *     }
 *
 * A stream is a connection, a pipe or another descriptor, or an object that behaves like one.
 * weft/net.h opens network streams. One task may read while another one writes. If several
 * tasks read, or several write, each of them transfers some of the bytes.
 *
 * A weft_stream pointer is a handle, not an address. Tasks may share it, and any of them may
 * close the stream at any time. Every call with a closed handle returns WEFT_ECLOSED, even
 * after other streams were opened or the runtime was destroyed; it never reaches another
 * stream. The same holds for weft_fd, weft_listener and weft_datagram.
 *
 * Each call that may wait has a prepared form for stackless tasks and weft_select(): a function
 * with _init, which prepares a weft_io to await. An operation that loses a select transfers
 * nothing. Only the _exact and _all calls can stop part-way: any other call that was canceled,
 * or whose deadline has passed, has transferred nothing. No buffer is in use after a call has
 * returned.
 *
 * A weft_io that has completed, was canceled or has lost a select may be awaited again without
 * being prepared again: it repeats the operation, with the same buffer. An _exact or _all
 * operation continues where it stopped. Only one task may await a weft_io at a time.
 */
#ifndef WEFT_IO_H
#define WEFT_IO_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base.h"
#include "clock.h"
#include "future.h"
#include "op.h"
#include "runtime.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_stream weft_stream;

/* An I/O operation. It must stay in place until its future completes. */
typedef struct weft_io {
    weft_future future;
    uint64_t opaque[32];
} weft_io;

/*
 * Reads at least one byte, up to size bytes, and at most 2 GiB - 4 KiB. Returns the number of
 * bytes read; 0 means end of stream, or that size is 0.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_read_init().
 * Suspends: until data or the end of the stream arrives, or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED (before or during the call), those of
 *           recv(2) such as -ECONNRESET; -ENOMEM (first wait of a thread, or out of kernel
 *           memory), -ENOSPC (the kernel cannot wait for more descriptors).
 */
WEFT_API WEFT_NODISCARD ssize_t weft_read(weft_stream *stream, void *buffer, size_t size,
                                          weft_time deadline);

/*
 * Same as weft_read(), into several buffers, up to 1024, one after the other.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_readv_init().
 * Errors:  those of weft_read(), -EINVAL (the count is negative).
 */
WEFT_API WEFT_NODISCARD ssize_t weft_readv(weft_stream *stream, const struct iovec *vectors,
                                           int count, weft_time deadline);

/*
 * Reads exactly size bytes. An error, or the end of the stream, may occur after some bytes were
 * read, and these are lost. weft_readv_exact() reports how many.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_read_exact_init().
 * Errors:  those of weft_read(); WEFT_EEND (the stream ended early).
 */
WEFT_API WEFT_NODISCARD int weft_read_exact(weft_stream *stream, void *buffer, size_t size,
                                            weft_time deadline);

/*
 * Same as weft_read_exact(), into several buffers. Each vector is advanced as it is filled:
 * after an error the vectors describe the bytes that are missing, and the call may be repeated
 * with them.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_readv_exact_init().
 * Errors:  those of weft_read_exact(), -EINVAL (the count is negative).
 */
WEFT_API WEFT_NODISCARD int weft_readv_exact(weft_stream *stream, struct iovec *vectors, int count,
                                             weft_time deadline);

/*
 * Same as weft_read(), but leaves the data in the stream for the next read. For sockets and the
 * ends of a weft_duplex(). A size of 0 gives 0 on every kind of stream.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_peek_init().
 * Errors:  those of weft_read(); -EOPNOTSUPP (a pipe or another descriptor that is not a socket;
 *          without waiting).
 */
WEFT_API WEFT_NODISCARD ssize_t weft_peek(weft_stream *stream, void *buffer, size_t size,
                                          weft_time deadline);

/*
 * Writes at least one byte, up to size bytes, and at most 2 GiB - 4 KiB. Returns the number of
 * bytes written. A peer that has gone away causes an error, never a SIGPIPE.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_write_init().
 * Suspends: until the stream has buffer space or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED, those of send(2) such as -EPIPE and
 *           -ECONNRESET; -ENOMEM and -ENOSPC as weft_read().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_write(weft_stream *stream, const void *data, size_t size,
                                           weft_time deadline);

/*
 * Same as weft_write(), from several buffers, up to 1024, one after the other.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_writev_init().
 * Errors:  those of weft_write(), -EINVAL (the count is negative).
 */
WEFT_API WEFT_NODISCARD ssize_t weft_writev(weft_stream *stream, const struct iovec *vectors,
                                            int count, weft_time deadline);

/*
 * Writes all size bytes. An error may occur after some bytes were written. weft_writev_all()
 * reports how many.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_write_all_init().
 * Errors:  those of weft_write().
 */
WEFT_API WEFT_NODISCARD int weft_write_all(weft_stream *stream, const void *data, size_t size,
                                           weft_time deadline);

/*
 * Same as weft_write_all(), from several buffers. Each vector is advanced as it is written:
 * after an error the vectors describe the bytes that are left, and the call may be repeated
 * with them.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_writev_all_init().
 * Errors:  those of weft_write(), -EINVAL (the count is negative).
 */
WEFT_API WEFT_NODISCARD int weft_writev_all(weft_stream *stream, struct iovec *vectors, int count,
                                            weft_time deadline);

typedef enum weft_side {
    WEFT_READ_SIDE,  /* reads return 0; see weft_stream_shutdown() */
    WEFT_WRITE_SIDE, /* the peer reads end of stream; it may keep writing */
    WEFT_BOTH_SIDES,
} weft_side;

/*
 * Shuts down one direction of a stream (half-close), or both. Wakes all waiters: a pending read
 * returns 0, a pending write -EPIPE.
 *
 * After WEFT_READ_SIDE a read returns 0 as soon as there is no data to read. The rest depends
 * on the kind of stream. A duplex discards unread data; a socket still delivers it. The peer of
 * a duplex or a Unix socket gets -EPIPE when it writes. The peer of a TCP connection may write
 * until the buffers are full, and data that arrives can be read. To refuse more data from any
 * peer, close the stream.
 *
 * Context: any thread.
 * Errors:  those of shutdown(2) such as -ENOTCONN; -EOPNOTSUPP (a pipe, which has one
 *          direction); WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_stream_shutdown(weft_stream *stream, weft_side side);

/*
 * Closes a stream. Calls in progress and later calls return WEFT_ECLOSED. The descriptor is
 * closed when the last call in progress has returned. Does nothing if the stream is already
 * closed or is NULL.
 *
 * Context: any thread.
 */
WEFT_API void weft_stream_close(weft_stream *stream);

/* --- Prepared forms, for stackless tasks ------------------------------------------------ */

/*
 * Prepares a read. The future's result is that of weft_read(). Here and below, buffers and
 * vectors must stay in place until the future completes.
 *
 * Context: any thread.
 */
WEFT_API void weft_read_init(weft_io *io, weft_stream *stream, void *buffer, size_t size);

/*
 * Prepares a read. The future's result is that of weft_readv().
 *
 * Context: any thread.
 */
WEFT_API void weft_readv_init(weft_io *io, weft_stream *stream, const struct iovec *vectors,
                              int count);

/*
 * Prepares a read. The future's result is that of weft_read_exact().
 *
 * Context: any thread.
 */
WEFT_API void weft_read_exact_init(weft_io *io, weft_stream *stream, void *buffer, size_t size);

/*
 * Prepares a read. The future's result is that of weft_readv_exact().
 *
 * Context: any thread.
 */
WEFT_API void weft_readv_exact_init(weft_io *io, weft_stream *stream, struct iovec *vectors,
                                    int count);

/*
 * Prepares a peek. The future's result is that of weft_peek().
 *
 * Context: any thread.
 */
WEFT_API void weft_peek_init(weft_io *io, weft_stream *stream, void *buffer, size_t size);

/*
 * Prepares a write. The future's result is that of weft_write().
 *
 * Context: any thread.
 */
WEFT_API void weft_write_init(weft_io *io, weft_stream *stream, const void *data, size_t size);

/*
 * Prepares a write. The future's result is that of weft_writev().
 *
 * Context: any thread.
 */
WEFT_API void weft_writev_init(weft_io *io, weft_stream *stream, const struct iovec *vectors,
                               int count);

/*
 * Prepares a write. The future's result is that of weft_write_all().
 *
 * Context: any thread.
 */
WEFT_API void weft_write_all_init(weft_io *io, weft_stream *stream, const void *data, size_t size);

/*
 * Prepares a write. The future's result is that of weft_writev_all().
 *
 * Context: any thread.
 */
WEFT_API void weft_writev_all_init(weft_io *io, weft_stream *stream, struct iovec *vectors,
                                   int count);

/* --- Non-blocking calls ----------------------------------------------------------------- */

/*
 * Same as weft_read(), but never waits.
 *
 * Context: any thread.
 * Errors:  -EAGAIN (it would have to wait); otherwise those of weft_read().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_try_read(weft_stream *stream, void *buffer, size_t size);

/*
 * Same as weft_write(), but never waits.
 *
 * Context: any thread.
 * Errors:  -EAGAIN (it would have to wait); otherwise those of weft_write().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_try_write(weft_stream *stream, const void *data, size_t size);

/*
 * Prepares to wait until weft_try_read() can return data, end of stream or an error. The
 * operation's result is 0 or WEFT_ECLOSED. Another task may read first; weft_try_read() then
 * returns -EAGAIN.
 *
 * Context: any thread.
 */
WEFT_API void weft_readable_init(weft_op *op, weft_stream *stream);

/*
 * Prepares to wait until weft_try_write() can write data or return an error. Otherwise like
 * weft_readable_init().
 *
 * Context: any thread.
 */
WEFT_API void weft_writable_init(weft_op *op, weft_stream *stream);

/* --- Descriptors ------------------------------------------------------------------------ */

/*
 * Makes a stream from a descriptor: a socket, a pipe, a terminal, or anything else that poll(2)
 * can wait for. The descriptor becomes non-blocking, with one exception: a blocking terminal,
 * and a blocking pipe that is descriptor 0, 1 or 2, stay blocking, since other programs share
 * them. The stream reopens these through /proc/self/fd and uses one more descriptor. If that
 * fails, the shared descriptor is non-blocking until the stream is closed or released, or the
 * process calls exit(). Regular files block; use weft_block_in_place() for them.
 *
 * Context: any task or blocking job.
 * Owns:    on success the stream owns the descriptor.
 * Errors:  -EBADF, -ENOMEM, -EMFILE, -EEXIST (the descriptor already belongs to a stream,
 *          listener or socket of weft, which would close it too).
 */
WEFT_API WEFT_NODISCARD int weft_stream_adopt(weft_stream **stream, int fd);

/*
 * Ends a stream without closing its descriptor, and returns the descriptor. It stays
 * non-blocking, unless weft_stream_adopt() left it blocking.
 *
 * Context: any thread.
 * Owns:    the caller owns the descriptor.
 * Errors:  -EBUSY (another call is in progress), -EOPNOTSUPP (the stream has no descriptor),
 *          WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_stream_release(weft_stream *stream);

/*
 * Returns the descriptor of a stream, to inspect it or set its options. It is valid until the
 * stream is closed.
 *
 * Context: any thread.
 * Errors:  -EOPNOTSUPP (the stream has no descriptor), WEFT_ECLOSED.
 */
WEFT_API int weft_stream_fd(const weft_stream *stream);

/*
 * Creates a pipe: reader reads the bytes that were written to writer.
 *
 * Context: any task or blocking job.
 * Errors:  -EMFILE, -ENFILE, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_pipe(weft_stream **reader, weft_stream **writer);

/*
 * Creates two streams that are connected to each other in memory, as those of
 * weft_stream_pair() are by the kernel. For tests, and for parts of a program that speak a
 * protocol with each other. Each direction buffers up to capacity bytes.
 *
 * Context: any task or blocking job.
 * Errors:  -EINVAL (capacity is 0), -ENOMEM, and those of weft_pipe() on the first use of I/O.
 */
WEFT_API WEFT_NODISCARD int weft_duplex(weft_stream **one, weft_stream **other, size_t capacity);

enum {
    WEFT_READABLE = 1,
    WEFT_WRITABLE = 2,
};

/*
 * A descriptor of a library that does its own reading and writing: wait for readiness here,
 * then call the library. It must not be the descriptor of a stream.
 */
typedef struct weft_fd weft_fd;

/*
 * Registers a descriptor for readiness events. The caller keeps the descriptor, which should be
 * non-blocking. One descriptor may have several handles; each gets all events.
 *
 * Context: any task or blocking job.
 * Errors:  -EBADF, -EPERM (a descriptor without events that is always ready: a regular file, a
 *          directory, /dev/null), -ENOMEM, -ENOSPC, -EMFILE (a second handle needs a
 *          descriptor).
 */
WEFT_API WEFT_NODISCARD int weft_fd_open(weft_fd **handle, int fd);

/*
 * Waits until the descriptor is readable (WEFT_READABLE), writable (WEFT_WRITABLE), or either
 * if both are requested. Returns the requested events that are ready. An error or a hang-up of
 * the peer counts as both. Readiness is level-triggered, separately for each direction: several
 * tasks may wait for the same or for different events of one handle.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_fd_wait_init().
 * Suspends: until the descriptor is ready or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED, -EINVAL (no event requested).
 */
WEFT_API WEFT_NODISCARD int weft_fd_wait(weft_fd *handle, unsigned events, weft_time deadline);

/*
 * Prepares a wait. The future's result is that of weft_fd_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_fd_wait_init(weft_io *io, weft_fd *handle, unsigned events);

/*
 * Ends the registration. Calls in progress and later calls return WEFT_ECLOSED. The descriptor
 * stays open. Does nothing if the handle is already closed or is NULL.
 *
 * Context: any thread; before the descriptor is closed.
 */
WEFT_API void weft_fd_close(weft_fd *handle);

/* --- I/O backend ------------------------------------------------------------------------ */

/* The I/O backend of a runtime, and the reason for it. */
typedef struct weft_io_info {
    const char *backend; /* "epoll", "io_uring" */
    char reason[96];     /* for logs */
} weft_io_info;

/*
 * Reports which I/O backend this runtime uses, and why. The runtime opens its backend on the
 * first use of I/O, or here.
 *
 * WEFT_IO_AUTO never fails because of io_uring. If WEFT_IO_URING was requested and the kernel,
 * a sandbox or the build does not allow it, this call and every call that opens a stream, a
 * listener or a socket returns the error, and the runtime sends one message that names the
 * system call and the error (on_message in weft_config). On failure, info has the requested
 * backend and the reason for the failure.
 *
 * Context: any thread.
 * Errors:  those of opening the backend: -EMFILE, -ENOMEM; for io_uring also -ENOSYS, -EPERM
 *          and any other error that a sandbox returns.
 */
WEFT_API WEFT_NODISCARD int weft_runtime_io(weft_runtime *rt, weft_io_info *info);

WEFT_EXTERN_C_END

#endif
