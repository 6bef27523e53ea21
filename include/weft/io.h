/* SPDX-License-Identifier: MIT */
/*
 * weft/io.h - streams of bytes, and descriptors that become ready.
 *
 *     char buffer[4096];
 *     ssize_t n;
 *     while ((n = weft_read(stream, buffer, sizeof buffer, WEFT_NEVER)) > 0) {
 *         int err = weft_write_all(stream, buffer, (size_t)n, WEFT_NEVER);
 *         ...
 *     }
 *
 * A stream is a connection, a pipe or another descriptor, or something that behaves like
 * one. weft/net.h opens those of the network. One task may read while another one writes;
 * several may do the same, and each then gets some of the bytes.
 *
 * Each call that may wait has a form for bodies and for weft_select(): a function with _init,
 * which prepares a weft_io to await. Nothing is read or written by one that has lost a select,
 * and none but those that say so by their name do a part of their work: a call that was
 * cancelled, or whose deadline has passed, has read and written nothing. No buffer is in use
 * after the call.
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

/* An operation of I/O that is awaited; in the state of who awaits it, until the result. */
typedef struct weft_io {
    weft_future future;
    uint64_t opaque[32];
} weft_io;

/*
 * Reads up to size bytes, at least one. Returns how many; 0: the stream has ended, or size
 * is 0.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_read_init().
 * Suspends: until there is something, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED (it was closed meanwhile), those of
 *           recv(2) such as -ECONNRESET; -ENOMEM (on a thread's first wait, or the kernel's),
 *           -ENOSPC (the kernel waits for no more descriptors).
 */
WEFT_API WEFT_NODISCARD ssize_t weft_read(weft_stream *stream, void *buffer, size_t size,
                                          weft_time deadline);

/*
 * The same into several buffers, up to 1024, one after the other.
 *
 * Context: as weft_read(); a body awaits a weft_readv_init().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_readv(weft_stream *stream, const struct iovec *vectors,
                                           int count, weft_time deadline);

/*
 * Reads size bytes. An error, or the end of the stream, may come after some of them, and they
 * are lost then; weft_readv_exact() tells how many.
 *
 * Context: as weft_read(); a body awaits a weft_read_exact_init().
 * Errors:  as weft_read(); WEFT_EEND: the stream has ended before.
 */
WEFT_API WEFT_NODISCARD int weft_read_exact(weft_stream *stream, void *buffer, size_t size,
                                            weft_time deadline);

/*
 * The same into several buffers. Each vector is moved on as it is filled: after an error they
 * say what is missing, and the call may be repeated with them.
 *
 * Context: as weft_read(); a body awaits a weft_readv_exact_init().
 * Errors:  as weft_read_exact().
 */
WEFT_API WEFT_NODISCARD int weft_readv_exact(weft_stream *stream, struct iovec *vectors, int count,
                                             weft_time deadline);

/*
 * As weft_read(), but what is read is read again by the next call. Sockets only.
 *
 * Context: as weft_read(); a body awaits a weft_peek_init().
 * Errors:  as weft_read(); -EOPNOTSUPP: this is no socket.
 */
WEFT_API WEFT_NODISCARD ssize_t weft_peek(weft_stream *stream, void *buffer, size_t size,
                                          weft_time deadline);

/*
 * Writes up to size bytes, at least one. Returns how many. A peer that has gone is an error,
 * never a SIGPIPE.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_write_init().
 * Suspends: until there is room, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED, those of send(2) such as -EPIPE and
 *           -ECONNRESET; -ENOMEM and -ENOSPC as weft_read().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_write(weft_stream *stream, const void *data, size_t size,
                                           weft_time deadline);

/*
 * The same from several buffers, up to 1024, one after the other.
 *
 * Context: as weft_write(); a body awaits a weft_writev_init().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_writev(weft_stream *stream, const struct iovec *vectors,
                                            int count, weft_time deadline);

/*
 * Writes size bytes. An error may come after some of them; weft_writev_all() tells how many.
 *
 * Context: as weft_write(); a body awaits a weft_write_all_init().
 * Errors:  as weft_write().
 */
WEFT_API WEFT_NODISCARD int weft_write_all(weft_stream *stream, const void *data, size_t size,
                                           weft_time deadline);

/*
 * The same from several buffers. Each vector is moved on as it is written: after an error they
 * say what is left, and the call may be repeated with them.
 *
 * Context: as weft_write(); a body awaits a weft_writev_all_init().
 * Errors:  as weft_write().
 */
WEFT_API WEFT_NODISCARD int weft_writev_all(weft_stream *stream, struct iovec *vectors, int count,
                                            weft_time deadline);

typedef enum weft_side {
    WEFT_READ_SIDE,  /* what comes is thrown away */
    WEFT_WRITE_SIDE, /* the peer reads an end; it may go on writing */
    WEFT_BOTH_SIDES,
} weft_side;

/*
 * Ends one direction of a stream, or both. Who waits there is woken: a read gives 0, a write
 * -EPIPE.
 *
 * Context: anywhere.
 * Errors:  those of shutdown(2) such as -ENOTCONN; -EOPNOTSUPP: this is a pipe, which has one
 *          direction.
 */
WEFT_API WEFT_NODISCARD int weft_stream_shutdown(weft_stream *stream, weft_side side);

/*
 * Closes a stream; it must not be used any more. Who waits there gets WEFT_ECLOSED, and the
 * descriptor is closed when the last of them has left. NULL is allowed.
 *
 * Context: anywhere.
 */
WEFT_API void weft_stream_close(weft_stream *stream);

/* --- The same for bodies ---------------------------------------------------------------- */

/*
 * Prepares it: the result of the future is that of weft_read(). Here as below, buffers and
 * vectors must stay in place until then.
 *
 * Context: any thread.
 */
WEFT_API void weft_read_init(weft_io *io, weft_stream *stream, void *buffer, size_t size);

/*
 * Prepares it: the result of the future is that of weft_readv().
 *
 * Context: any thread.
 */
WEFT_API void weft_readv_init(weft_io *io, weft_stream *stream, const struct iovec *vectors,
                              int count);

/*
 * Prepares it: the result of the future is that of weft_read_exact().
 *
 * Context: any thread.
 */
WEFT_API void weft_read_exact_init(weft_io *io, weft_stream *stream, void *buffer, size_t size);

/*
 * Prepares it: the result of the future is that of weft_readv_exact().
 *
 * Context: any thread.
 */
WEFT_API void weft_readv_exact_init(weft_io *io, weft_stream *stream, struct iovec *vectors,
                                    int count);

/*
 * Prepares it: the result of the future is that of weft_peek().
 *
 * Context: any thread.
 */
WEFT_API void weft_peek_init(weft_io *io, weft_stream *stream, void *buffer, size_t size);

/*
 * Prepares it: the result of the future is that of weft_write().
 *
 * Context: any thread.
 */
WEFT_API void weft_write_init(weft_io *io, weft_stream *stream, const void *data, size_t size);

/*
 * Prepares it: the result of the future is that of weft_writev().
 *
 * Context: any thread.
 */
WEFT_API void weft_writev_init(weft_io *io, weft_stream *stream, const struct iovec *vectors,
                               int count);

/*
 * Prepares it: the result of the future is that of weft_write_all().
 *
 * Context: any thread.
 */
WEFT_API void weft_write_all_init(weft_io *io, weft_stream *stream, const void *data, size_t size);

/*
 * Prepares it: the result of the future is that of weft_writev_all().
 *
 * Context: any thread.
 */
WEFT_API void weft_writev_all_init(weft_io *io, weft_stream *stream, struct iovec *vectors,
                                   int count);

/* --- Without waiting -------------------------------------------------------------------- */

/*
 * As weft_read(), if that is possible at once.
 *
 * Context: anywhere.
 * Errors:  -EAGAIN: it is not; else as weft_read().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_try_read(weft_stream *stream, void *buffer, size_t size);

/*
 * As weft_write(), if that is possible at once.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD ssize_t weft_try_write(weft_stream *stream, const void *data, size_t size);

/*
 * Prepares to wait until weft_try_read() has something to say: a number, the end, an error. The
 * result of the operation is 0, or WEFT_ECLOSED. Another task may be faster: then the try says
 * -EAGAIN.
 *
 * Context: any thread.
 */
WEFT_API void weft_readable_init(weft_op *op, weft_stream *stream);

/*
 * Prepares to wait until weft_try_write() has something to say. Otherwise as
 * weft_readable_init().
 *
 * Context: any thread.
 */
WEFT_API void weft_writable_init(weft_op *op, weft_stream *stream);

/* --- Descriptors ------------------------------------------------------------------------ */

/*
 * Makes a stream of a descriptor: a socket, a pipe, a terminal, whatever poll(2) can wait for.
 * It is set to not block. Regular files block, and are for weft_block_in_place().
 *
 * Context: a task, or a blocking job.
 * Owns:    the descriptor is the stream's, if this succeeds.
 * Errors:  -EBADF, -ENOMEM, -EMFILE.
 */
WEFT_API WEFT_NODISCARD int weft_stream_adopt(weft_stream **stream, int fd);

/*
 * Ends a stream without closing its descriptor, which is returned. It does not block, still.
 *
 * Context: anywhere.
 * Owns:    the descriptor is the caller's.
 * Errors:  -EBUSY: somebody reads or writes; -EOPNOTSUPP: it has none.
 */
WEFT_API WEFT_NODISCARD int weft_stream_release(weft_stream *stream);

/*
 * Returns the descriptor of a stream, to look at or to set options of; or -EOPNOTSUPP.
 *
 * Context: anywhere.
 */
WEFT_API int weft_stream_fd(const weft_stream *stream);

/*
 * Makes a pipe: what is written to the second is read from the first.
 *
 * Context: a task, or a blocking job.
 * Errors:  -EMFILE, -ENFILE, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_pipe(weft_stream **reader, weft_stream **writer);

/*
 * Makes two streams that are connected to each other in memory, as those of weft_stream_pair()
 * are by the kernel: for tests, and for parts of a program that speak a protocol with each
 * other. Up to capacity bytes are under way in each direction.
 *
 * Context: a task, or a blocking job.
 * Errors:  -EINVAL (a capacity of 0), -ENOMEM, and those of weft_pipe() on the first use of I/O.
 */
WEFT_API WEFT_NODISCARD int weft_duplex(weft_stream **one, weft_stream **other, size_t capacity);

enum {
    WEFT_READABLE = 1,
    WEFT_WRITABLE = 2,
};

/*
 * A descriptor of a library that does its own reading and writing: one waits for it here, and
 * then calls the library. It must not be a stream's.
 */
typedef struct weft_fd weft_fd;

/*
 * Begins to wait for events of a descriptor, which stays its owner's, and should not block.
 *
 * Context: a task, or a blocking job.
 * Errors:  -EBADF, -EPERM (a regular file is always ready), -EEXIST (it is waited for
 *          elsewhere; with epoll only), -ENOMEM, -ENOSPC.
 */
WEFT_API WEFT_NODISCARD int weft_fd_open(weft_fd **handle, int fd);

/*
 * Waits until the descriptor is readable (WEFT_READABLE), writable (WEFT_WRITABLE) or one of
 * both; returns what it is. An error or the end of the peer is both. What it is stays true as
 * long as it is.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_fd_wait_init().
 * Suspends: until then, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED; -EINVAL: neither was asked for.
 */
WEFT_API WEFT_NODISCARD int weft_fd_wait(weft_fd *handle, unsigned events, weft_time deadline);

/*
 * Prepares it: the result of the future is that of weft_fd_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_fd_wait_init(weft_io *io, weft_fd *handle, unsigned events);

/*
 * Ends that; who waits gets WEFT_ECLOSED. The descriptor stays open. NULL is allowed.
 *
 * Context: anywhere; before the descriptor is closed.
 */
WEFT_API void weft_fd_close(weft_fd *handle);

/* --- How the kernel is asked ------------------------------------------------------------ */

/* What a runtime uses, and why. */
typedef struct weft_io_info {
    const char *backend; /* "epoll", "io_uring" */
    char reason[96];     /* a sentence for a log */
} weft_io_info;

/*
 * Tells how this runtime does its I/O. That is decided by its first use, or here.
 *
 * Context: any thread.
 * Errors:  those of opening it: -EMFILE, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_runtime_io(weft_runtime *rt, weft_io_info *info);

WEFT_EXTERN_C_END

#endif
