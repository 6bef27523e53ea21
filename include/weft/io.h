/* SPDX-License-Identifier: MIT */
/*
 * weft/io.h - streams of bytes, and descriptors that become ready.
 *
 *     char buffer[4096];
 *     ssize_t n;
 *     while ((n = weft_read(stream, buffer, sizeof buffer, WEFT_NEVER)) > 0) {
 *         if (weft_write_all(stream, buffer, (size_t)n, WEFT_NEVER) != 0) {
 *             break;
 *         }
 *     }
 *
 * A stream is a connection, a pipe or another descriptor, or something that behaves like
 * one. weft/net.h opens those of the network. One task may read while another one writes;
 * several may do the same, and each then gets some of the bytes.
 *
 * A weft_stream pointer is a handle, not an address. Tasks may share it, and any of them may close
 * the stream at any time: every call with a handle that was closed returns WEFT_ECLOSED, also
 * after other streams were opened, and after its runtime was destroyed. It never reaches another
 * stream. The same holds for weft_fd, weft_listener and weft_datagram.
 *
 * Each call that may wait has a form for bodies and for weft_select(): a function with _init,
 * which prepares a weft_io to await. Nothing is read or written by one that has lost a select,
 * and none but those that say so by their name do a part of their work: a call that was
 * cancelled, or whose deadline has passed, has read and written nothing. No buffer is in use
 * after the call.
 *
 * A weft_io that has its result, or was cancelled, or has lost a select, may be awaited again
 * without being prepared anew: it does the same again, with the same buffer. Those of the _exact
 * and _all forms do what was left to do. One task awaits it at a time.
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
 * Reads up to size bytes, at least one, and at most 2 GiB - 4 KiB. Returns how many; 0: the stream
 * has ended, or size is 0.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_read_init().
 * Suspends: until there is something, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED (before or during the call), those of
 *           recv(2) such as -ECONNRESET; -ENOMEM (on a thread's first wait, or the kernel's),
 *           -ENOSPC (the kernel waits for no more descriptors).
 */
WEFT_API WEFT_NODISCARD ssize_t weft_read(weft_stream *stream, void *buffer, size_t size,
                                          weft_time deadline);

/*
 * The same into several buffers, up to 1024, one after the other.
 *
 * Context: as weft_read(); a body awaits a weft_readv_init().
 * Errors:  as weft_read(); -EINVAL: the count is negative.
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
 * Errors:  as weft_read_exact(); -EINVAL: the count is negative.
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
 * Writes up to size bytes, at least one, and at most 2 GiB - 4 KiB. Returns how many. A peer that
 * has gone is an error, never a SIGPIPE.
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
 * Errors:  as weft_write(); -EINVAL: the count is negative.
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
 * Errors:  as weft_write(); -EINVAL: the count is negative.
 */
WEFT_API WEFT_NODISCARD int weft_writev_all(weft_stream *stream, struct iovec *vectors, int count,
                                            weft_time deadline);

typedef enum weft_side {
    WEFT_READ_SIDE,  /* reads give 0; see weft_stream_shutdown() */
    WEFT_WRITE_SIDE, /* the peer reads an end; it may go on writing */
    WEFT_BOTH_SIDES,
} weft_side;

/*
 * Ends one direction of a stream, or both. Who waits there is woken: a read gives 0, a write
 * -EPIPE.
 *
 * After WEFT_READ_SIDE a read gives 0 as soon as nothing is there to read. The kinds of streams
 * differ in the rest. A duplex drops what was not read; sockets still give it. The peer of a duplex
 * or a Unix socket gets -EPIPE when it writes; the peer of a TCP connection may write until the
 * buffers are full, and what arrives can be read. To refuse more data from any peer, close.
 *
 * Context: anywhere.
 * Errors:  those of shutdown(2) such as -ENOTCONN; -EOPNOTSUPP: this is a pipe, which has one
 *          direction; WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_stream_shutdown(weft_stream *stream, weft_side side);

/*
 * Closes a stream. Calls in progress and later calls return WEFT_ECLOSED; the descriptor is closed
 * when the last call in progress has returned. Does nothing if the stream was closed before, or if
 * it is NULL.
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
 * It becomes non-blocking, except that a blocking terminal, and a blocking pipe that is descriptor
 * 0, 1 or 2, stay as they are, since other programs share them: the stream opens them again, by
 * /proc/self/fd, and uses one more descriptor. If that fails, the shared one is non-blocking until
 * the stream is closed or released, or the process calls exit(). Regular files block, and are for
 * weft_block_in_place().
 *
 * Context: a task, or a blocking job.
 * Owns:    the descriptor is the stream's, if this succeeds.
 * Errors:  -EBADF, -ENOMEM, -EMFILE; -EEXIST: the descriptor belongs to a stream, listener or
 *          socket of weft already, which would close it, too.
 */
WEFT_API WEFT_NODISCARD int weft_stream_adopt(weft_stream **stream, int fd);

/*
 * Ends a stream without closing its descriptor, which is returned. The descriptor stays
 * non-blocking, unless it is one that weft_stream_adopt() has left as it was.
 *
 * Context: anywhere.
 * Owns:    the descriptor is the caller's.
 * Errors:  -EBUSY: another call is in progress; -EOPNOTSUPP: it has none; WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_stream_release(weft_stream *stream);

/*
 * Returns the descriptor of a stream, to look at or to set options of. It is valid until the
 * stream is closed.
 *
 * Context: anywhere.
 * Errors:  -EOPNOTSUPP: it has none; WEFT_ECLOSED.
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
 * Begins to wait for events of a descriptor, which stays its owner's, and should be non-blocking.
 * There may be several handles of one descriptor: each gets all events.
 *
 * Context: a task, or a blocking job.
 * Errors:  -EBADF, -EPERM (it has no events and is always ready: a regular file, a directory,
 *          /dev/null), -ENOMEM, -ENOSPC, -EMFILE (a second handle needs a descriptor).
 */
WEFT_API WEFT_NODISCARD int weft_fd_open(weft_fd **handle, int fd);

/*
 * Waits until the descriptor is readable (WEFT_READABLE), writable (WEFT_WRITABLE) or, if both are
 * asked for, either. Returns the events that are ready, out of those asked for. An error or the
 * end of the peer is both. Readiness is level-triggered, for each direction: several tasks may
 * wait for the same or for different events of one handle.
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
 * Ends that. Calls in progress and later calls return WEFT_ECLOSED. The descriptor stays open. Does
 * nothing if it was closed before, or if it is NULL.
 *
 * Context: anywhere; before the descriptor is closed.
 */
WEFT_API void weft_fd_close(weft_fd *handle);

/* --- How the kernel is asked ------------------------------------------------------------ */

/* What a runtime uses, and why. */
typedef struct weft_io_info {
    const char *backend; /* "epoll", "io_uring" */
    char reason[96];     /* for a log */
} weft_io_info;

/*
 * Reports which I/O backend this runtime uses, and why. The runtime opens its backend on the first
 * use of I/O, or here.
 *
 * WEFT_IO_AUTO never fails because of io_uring. If WEFT_IO_URING was asked for and the kernel, a
 * sandbox or the build does not allow it, this call and every call that opens a stream, a listener
 * or a socket returns the error, and the runtime sends one message that names the system call and
 * the error (on_message in weft_config). On failure, info has the backend that was asked for, and
 * the reason for the failure.
 *
 * Context: any thread.
 * Errors:  those of opening the backend: -EMFILE, -ENOMEM; for io_uring also -ENOSYS, -EPERM and
 *          what else a sandbox answers with.
 */
WEFT_API WEFT_NODISCARD int weft_runtime_io(weft_runtime *rt, weft_io_info *info);

WEFT_EXTERN_C_END

#endif
