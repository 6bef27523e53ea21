/* SPDX-License-Identifier: MIT */
/*
 * stream.c - reads and writes on streams of any kind.
 */
#include "io/stream.h"

#include "io/fd_stream.h"
#include "io/transfer.h"
#include "sched/op.h"

enum {
    VECTORS_MAX = 1024, /* limit of one system call */
};

/* --- Vectors ---------------------------------------------------------------------------- */

static bool have_room(const struct iovec *vectors, int count)
{
    for (int i = 0; i < count; i++) {
        if (vectors[i].iov_len > 0) {
            return true;
        }
    }
    return false;
}

/* Advances the vectors by the given number of bytes. */
static void move_on(struct iovec *vectors, int count, size_t bytes)
{
    for (int i = 0; i < count && bytes > 0; i++) {
        size_t part = vectors[i].iov_len < bytes ? vectors[i].iov_len : bytes;
        vectors[i].iov_base = (char *)vectors[i].iov_base + part;
        vectors[i].iov_len -= part;
        bytes -= part;
    }
}

/* Skips vectors that are done. */
static void skip_empty(struct wf_transfer *self)
{
    while (self->count > 0 && self->vectors->iov_len == 0) {
        self->vectors++;
        self->count--;
    }
}

/* --- Transfers -------------------------------------------------------------------------- */

/* Limits the number of vectors. A negative number is kept; the first attempt refuses it. */
static int limit(int count)
{
    return count < VECTORS_MAX ? count : VECTORS_MAX;
}

static int attempt_read(struct wf_transfer *self)
{
    struct wf_source *source = self->source;
    if (!have_room(self->vectors, self->count)) {
        return wf_likely(self->count >= 0) ? 0 : -EINVAL;
    }
    ssize_t n = wf_stream_ops(source)->try_read(source, self->vectors, self->count,
                                                self->flags != 0 ? WF_TRY_PEEK : 0);
    return n == -EAGAIN ? wf_transfer_wait(self, WF_SOURCE_READABLE) : (int)n;
}

static int attempt_write(struct wf_transfer *self)
{
    struct wf_source *source = self->source;
    if (!have_room(self->vectors, self->count)) {
        return wf_likely(self->count >= 0) ? 0 : -EINVAL;
    }
    ssize_t n = wf_stream_ops(source)->try_write(source, self->vectors, self->count, 0);
    return n == -EAGAIN ? wf_transfer_wait(self, WF_SOURCE_WRITABLE) : (int)n;
}

/* Advances the transfer by the given number of bytes. Returns 0 if it is complete. */
static int move_transfer_on(struct wf_transfer *self, size_t bytes)
{
    move_on(self->vectors, self->count, bytes);
    skip_empty(self);
    return self->count == 0 ? 0 : WF_TRANSFER_MORE;
}

static int attempt_read_exact(struct wf_transfer *self)
{
    struct wf_source *source = self->source;
    skip_empty(self);
    if (self->count <= 0) {
        return wf_likely(self->count == 0) ? 0 : -EINVAL;
    }
    ssize_t n = wf_stream_ops(source)->try_read(source, self->vectors, limit(self->count), 0);
    if (n <= 0) {
        return n == -EAGAIN ? wf_transfer_wait(self, WF_SOURCE_READABLE)
               : n == 0     ? WEFT_EEND
                            : (int)n;
    }
    return move_transfer_on(self, (size_t)n);
}

static int attempt_write_all(struct wf_transfer *self)
{
    struct wf_source *source = self->source;
    skip_empty(self);
    if (self->count <= 0) {
        return wf_likely(self->count == 0) ? 0 : -EINVAL;
    }
    ssize_t n = wf_stream_ops(source)->try_write(source, self->vectors, limit(self->count), 0);
    if (n < 0) {
        return n == -EAGAIN ? wf_transfer_wait(self, WF_SOURCE_WRITABLE) : (int)n;
    }
    return move_transfer_on(self, (size_t)n);
}

#define TRANSFER_OPS(attempt)                                                                      \
    {                                                                                              \
        wf_transfer_enter, wf_transfer_leave, (attempt)                                            \
    }

static const struct wf_transfer_ops read_ops = TRANSFER_OPS(attempt_read);
static const struct wf_transfer_ops write_ops = TRANSFER_OPS(attempt_write);
static const struct wf_transfer_ops read_exact_ops = TRANSFER_OPS(attempt_read_exact);
static const struct wf_transfer_ops write_all_ops = TRANSFER_OPS(attempt_write_all);

/* Prepares a transfer of one buffer. */
static struct wf_transfer *prepare(weft_io *io, const struct wf_transfer_ops *ops,
                                   weft_stream *stream, void *buffer, size_t size)
{
    struct wf_transfer *self = wf_transfer_init(io, ops, stream);
    self->own = (struct iovec){ .iov_base = buffer, .iov_len = size };
    self->vectors = &self->own;
    self->count = 1;
    return self;
}

static size_t most(size_t size)
{
    return size < WF_STREAM_BYTES_MAX ? size : WF_STREAM_BYTES_MAX;
}

/* Prepares a transfer of several buffers. Transfers of a single try do not change the vectors. */
static struct wf_transfer *prepare_vectors(weft_io *io, const struct wf_transfer_ops *ops,
                                           weft_stream *stream, const struct iovec *vectors,
                                           int count)
{
    struct wf_transfer *self = wf_transfer_init(io, ops, stream);
    self->vectors = (struct iovec *)(uintptr_t)vectors;
    self->count = count;
    return self;
}

void weft_read_init(weft_io *io, weft_stream *stream, void *buffer, size_t size)
{
    (void)prepare(io, &read_ops, stream, buffer, most(size));
}

void weft_readv_init(weft_io *io, weft_stream *stream, const struct iovec *vectors, int count)
{
    (void)prepare_vectors(io, &read_ops, stream, vectors, limit(count));
}

void weft_read_exact_init(weft_io *io, weft_stream *stream, void *buffer, size_t size)
{
    (void)prepare(io, &read_exact_ops, stream, buffer, size);
}

void weft_readv_exact_init(weft_io *io, weft_stream *stream, struct iovec *vectors, int count)
{
    (void)prepare_vectors(io, &read_exact_ops, stream, vectors, count);
}

void weft_peek_init(weft_io *io, weft_stream *stream, void *buffer, size_t size)
{
    prepare(io, &read_ops, stream, buffer, most(size))->flags = 1;
}

/* Removes const for a struct iovec. No code writes through these vectors. */
static void *no_const(const void *data)
{
    return (void *)(uintptr_t)data;
}

void weft_write_init(weft_io *io, weft_stream *stream, const void *data, size_t size)
{
    (void)prepare(io, &write_ops, stream, no_const(data), most(size));
}

void weft_writev_init(weft_io *io, weft_stream *stream, const struct iovec *vectors, int count)
{
    (void)prepare_vectors(io, &write_ops, stream, vectors, limit(count));
}

void weft_write_all_init(weft_io *io, weft_stream *stream, const void *data, size_t size)
{
    (void)prepare(io, &write_all_ops, stream, no_const(data), size);
}

void weft_writev_all_init(weft_io *io, weft_stream *stream, struct iovec *vectors, int count)
{
    (void)prepare_vectors(io, &write_all_ops, stream, vectors, count);
}

/* --- Calls with a stack ----------------------------------------------------------------- */

/* A function of its own, so that most reads have a small frame. */
static __attribute__((noinline)) ssize_t read_by_transfer(weft_stream *stream, void *buffer,
                                                          size_t size, weft_time deadline)
{
    weft_io io;
    weft_read_init(&io, stream, buffer, size);
    return wf_transfer_await(&io, deadline, "weft_read");
}

/* Reads from a kind of stream that has no read function. */
static __attribute__((noinline)) ssize_t read_by_tries(struct wf_source *source, void *buffer,
                                                       size_t size, weft_time deadline)
{
    static const char call[] = "weft_read";
    struct iovec vector = { .iov_base = buffer, .iov_len = size };
    ssize_t n;
    while ((n = wf_stream_ops(source)->try_read(source, &vector, 1, 0)) == -EAGAIN &&
           (n = wf_source_await(source, WF_SOURCE_READABLE, deadline, call)) == 0) {
    }
    wf_source_leave(source);
    return n;
}

ssize_t weft_read(weft_stream *stream, void *buffer, size_t size, weft_time deadline)
{
    struct wf_source *source;
    wf_await_point(&deadline);
    if (wf_unlikely(size == 0 || !wf_op_may_take())) {
        return read_by_transfer(stream, buffer, size, deadline);
    }
    ssize_t n = wf_source_enter(stream, &source);
    if (wf_unlikely(n != 0)) {
        return n;
    }
    const struct wf_stream_ops *ops = wf_stream_ops(source);
    n = wf_likely(ops->read != NULL) ? ops->read(source, buffer, most(size), deadline)
                                     : read_by_tries(source, buffer, most(size), deadline);
    __asm__ volatile("" : "+r"(n)); /* No tail call: a debugger finds the call by its frame. */
    return n;
}

ssize_t weft_readv(weft_stream *stream, const struct iovec *vectors, int count, weft_time deadline)
{
    weft_io io;
    weft_readv_init(&io, stream, vectors, count);
    return wf_transfer_await(&io, deadline, "weft_readv");
}

int weft_read_exact(weft_stream *stream, void *buffer, size_t size, weft_time deadline)
{
    weft_io io;
    weft_read_exact_init(&io, stream, buffer, size);
    return wf_transfer_await(&io, deadline, "weft_read_exact");
}

int weft_readv_exact(weft_stream *stream, struct iovec *vectors, int count, weft_time deadline)
{
    weft_io io;
    weft_readv_exact_init(&io, stream, vectors, count);
    return wf_transfer_await(&io, deadline, "weft_readv_exact");
}

ssize_t weft_peek(weft_stream *stream, void *buffer, size_t size, weft_time deadline)
{
    weft_io io;
    weft_peek_init(&io, stream, buffer, size);
    return wf_transfer_await(&io, deadline, "weft_peek");
}

ssize_t weft_write(weft_stream *stream, const void *data, size_t size, weft_time deadline)
{
    weft_io io;
    weft_write_init(&io, stream, data, size);
    return wf_transfer_await(&io, deadline, "weft_write");
}

ssize_t weft_writev(weft_stream *stream, const struct iovec *vectors, int count, weft_time deadline)
{
    weft_io io;
    weft_writev_init(&io, stream, vectors, count);
    return wf_transfer_await(&io, deadline, "weft_writev");
}

/* Writes the rest of a write_all whose first part was written. */
static __attribute__((noinline)) int write_rest(struct wf_source *source, const char *data,
                                                size_t size, weft_time deadline)
{
    weft_io io;
    struct wf_transfer *self = prepare(&io, &write_all_ops, NULL, no_const(data), size);
    self->source = source;
    self->is_in = true;
    return wf_transfer_await(&io, deadline, "weft_write_all");
}

static __attribute__((noinline)) int write_by_transfer(weft_stream *stream, const void *data,
                                                       size_t size, weft_time deadline)
{
    weft_io io;
    weft_write_all_init(&io, stream, data, size);
    return wf_transfer_await(&io, deadline, "weft_write_all");
}

int weft_write_all(weft_stream *stream, const void *data, size_t size, weft_time deadline)
{
    struct wf_source *source;
    wf_await_point(&deadline);
    if (wf_unlikely(size == 0 || !wf_op_may_take())) {
        return write_by_transfer(stream, data, size, deadline);
    }
    int err = wf_source_enter(stream, &source);
    if (wf_unlikely(err != 0)) {
        return err;
    }
    const struct wf_stream_ops *ops = wf_stream_ops(source);
    ssize_t n = wf_likely(ops->write_begin != NULL) ? ops->write_begin(source, data, size) : 0;
    if (wf_likely(n < 0 || (size_t)n == size)) {
        return n < 0 ? (int)n : 0;
    }
    return write_rest(source, (const char *)data + n, size - (size_t)n, deadline);
}

int weft_writev_all(weft_stream *stream, struct iovec *vectors, int count, weft_time deadline)
{
    weft_io io;
    weft_writev_all_init(&io, stream, vectors, count);
    return wf_transfer_await(&io, deadline, "weft_writev_all");
}

/* --- Without waiting -------------------------------------------------------------------- */

ssize_t weft_try_read(weft_stream *stream, void *buffer, size_t size)
{
    struct iovec vector = { .iov_base = buffer, .iov_len = most(size) };
    struct wf_source *source;
    ssize_t n = wf_source_enter(stream, &source);
    if (n == 0) {
        n = size > 0 ? wf_stream_ops(source)->try_read(source, &vector, 1, WF_TRY_SURELY) : 0;
        wf_source_leave(source);
    }
    return n;
}

ssize_t weft_try_write(weft_stream *stream, const void *data, size_t size)
{
    struct iovec vector = { .iov_base = no_const(data), .iov_len = most(size) };
    struct wf_source *source;
    ssize_t n = wf_source_enter(stream, &source);
    if (n == 0) {
        n = size > 0 ? wf_stream_ops(source)->try_write(source, &vector, 1, WF_TRY_SURELY) : 0;
        wf_source_leave(source);
    }
    return n;
}

void weft_readable_init(weft_op *op, weft_stream *stream)
{
    wf_source_ready_init(op, stream, WF_SOURCE_READABLE);
}

void weft_writable_init(weft_op *op, weft_stream *stream)
{
    wf_source_ready_init(op, stream, WF_SOURCE_WRITABLE);
}

/* --- Other functions -------------------------------------------------------------------- */

int weft_stream_shutdown(weft_stream *stream, weft_side side)
{
    struct wf_source *source;
    int err = wf_source_enter(stream, &source);
    if (err == 0) {
        err = wf_stream_ops(source)->shutdown(source, side);
        wf_source_leave(source);
    }
    return err;
}

void weft_stream_close(weft_stream *stream)
{
    if (stream != NULL) {
        wf_source_close(stream);
    }
}

int weft_stream_fd(const weft_stream *stream)
{
    struct wf_source *source;
    int fd = wf_source_enter(stream, &source);
    if (fd == 0) {
        fd = source->fd >= 0 ? source->fd : -EOPNOTSUPP;
        wf_source_leave(source);
    }
    return fd;
}

int weft_stream_release(weft_stream *stream)
{
    struct wf_source *source;
    int fd = wf_source_enter(stream, &source);
    if (fd != 0) {
        return fd;
    }
    fd = source->fd >= 0 ? wf_fd_stream_give_up(source) : -EOPNOTSUPP;
    if (fd < 0) {
        wf_source_leave(source);
    }
    return fd;
}
