/* SPDX-License-Identifier: MIT */
/*
 * stream.c - reading from and writing to streams of any kind.
 */
#include "io/stream.h"

#include <limits.h>

#include "io/transfer.h"
#include "sched/op.h"

enum {
    VECTORS_MAX = 1024,          /* of one system call */
    BYTES_MAX = INT_MAX & ~4095, /* that one call moves, as in the kernel */
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

/* So many bytes of them are done. */
static void move_on(struct iovec *vectors, int count, size_t bytes)
{
    for (int i = 0; i < count && bytes > 0; i++) {
        size_t part = vectors[i].iov_len < bytes ? vectors[i].iov_len : bytes;
        vectors[i].iov_base = (char *)vectors[i].iov_base + part;
        vectors[i].iov_len -= part;
        bytes -= part;
    }
}

/* Behind those that are done. */
static void skip_empty(struct wf_transfer *self)
{
    while (self->count > 0 && self->vectors->iov_len == 0) {
        self->vectors++;
        self->count--;
    }
}

/* --- Transfers -------------------------------------------------------------------------- */

static const char *call_of(const struct wf_transfer *self);

static int enter(struct wf_transfer *self)
{
    weft_stream *stream = self->object;
    return stream->ops->enter(stream, call_of(self));
}

static void leave(struct wf_transfer *self)
{
    weft_stream *stream = self->object;
    stream->ops->leave(stream);
}

static int wait_for(struct wf_transfer *self, unsigned what)
{
    weft_stream *stream = self->object;
    stream->ops->wait_init(&self->wait, stream, what, true);
    self->waits_for = &self->wait.future;
    return WEFT_PENDING;
}

static int limit(int count)
{
    return count < VECTORS_MAX ? count : VECTORS_MAX;
}

static int attempt_read(struct wf_transfer *self)
{
    weft_stream *stream = self->object;
    if (!have_room(self->vectors, self->count)) {
        return 0;
    }
    ssize_t n = stream->ops->try_read(stream, self->vectors, self->count,
                                      self->flags != 0 ? WF_TRY_PEEK : 0);
    return n == -EAGAIN ? wait_for(self, WEFT_READABLE) : (int)n;
}

static int attempt_write(struct wf_transfer *self)
{
    weft_stream *stream = self->object;
    if (!have_room(self->vectors, self->count)) {
        return 0;
    }
    ssize_t n = stream->ops->try_write(stream, self->vectors, self->count, 0);
    return n == -EAGAIN ? wait_for(self, WEFT_WRITABLE) : (int)n;
}

/* So many bytes were moved: is that all? */
static int move_transfer_on(struct wf_transfer *self, size_t bytes)
{
    move_on(self->vectors, self->count, bytes);
    skip_empty(self);
    return self->count == 0 ? 0 : WF_TRANSFER_MORE;
}

static int attempt_read_exact(struct wf_transfer *self)
{
    weft_stream *stream = self->object;
    skip_empty(self);
    if (self->count == 0) {
        return 0;
    }
    ssize_t n = stream->ops->try_read(stream, self->vectors, limit(self->count), 0);
    if (n <= 0) {
        return n == -EAGAIN ? wait_for(self, WEFT_READABLE) : n == 0 ? WEFT_EEND : (int)n;
    }
    return move_transfer_on(self, (size_t)n);
}

static int attempt_write_all(struct wf_transfer *self)
{
    weft_stream *stream = self->object;
    skip_empty(self);
    if (self->count == 0) {
        return 0;
    }
    ssize_t n = stream->ops->try_write(stream, self->vectors, limit(self->count), 0);
    if (n < 0) {
        return n == -EAGAIN ? wait_for(self, WEFT_WRITABLE) : (int)n;
    }
    return move_transfer_on(self, (size_t)n);
}

static const struct wf_transfer_ops read_ops = { enter, leave, attempt_read };
static const struct wf_transfer_ops write_ops = { enter, leave, attempt_write };
static const struct wf_transfer_ops read_exact_ops = { enter, leave, attempt_read_exact };
static const struct wf_transfer_ops write_all_ops = { enter, leave, attempt_write_all };

static const char *call_of(const struct wf_transfer *self)
{
    return self->ops == &read_ops         ? "weft_read"
           : self->ops == &write_ops      ? "weft_write"
           : self->ops == &read_exact_ops ? "weft_read_exact"
                                          : "weft_write_all";
}

/* A transfer of one buffer. */
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
    return size < BYTES_MAX ? size : BYTES_MAX;
}

/* One of several, which are read only by transfers of one try. */
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

/* Nothing writes through these vectors. */
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

/* --- Where there is a stack ------------------------------------------------------------- */

/* Apart, so that most reads have a small frame. */
static __attribute__((noinline)) ssize_t read_by_transfer(weft_stream *stream, void *buffer,
                                                          size_t size, weft_time deadline)
{
    weft_io io;
    weft_read_init(&io, stream, buffer, size);
    return wf_transfer_await(&io, deadline, "weft_read");
}

ssize_t weft_read(weft_stream *stream, void *buffer, size_t size, weft_time deadline)
{
    wf_await_point(&deadline);
    if (wf_unlikely(stream->ops->read == NULL || size == 0 || !wf_op_may_take())) {
        return read_by_transfer(stream, buffer, size, deadline);
    }
    ssize_t n = stream->ops->read(stream, buffer, most(size), deadline);
    __asm__ volatile("" : "+r"(n)); /* No jump: a debugger finds the call by its frame. */
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

/* The rest of a write that has begun. */
static __attribute__((noinline)) int write_rest(weft_stream *stream, const char *data, size_t size,
                                                weft_time deadline)
{
    weft_io io;
    prepare(&io, &write_all_ops, stream, no_const(data), size)->is_in = true;
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
    wf_await_point(&deadline);
    if (wf_unlikely(stream->ops->write_begin == NULL || size == 0 || !wf_op_may_take())) {
        return write_by_transfer(stream, data, size, deadline);
    }
    ssize_t n = stream->ops->write_begin(stream, data, size);
    if (wf_likely(n < 0 || (size_t)n == size)) {
        return n < 0 ? (int)n : 0;
    }
    return write_rest(stream, (const char *)data + n, size - (size_t)n, deadline);
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
    ssize_t n = stream->ops->enter(stream, "weft_try_read");
    if (n == 0) {
        n = size > 0 ? stream->ops->try_read(stream, &vector, 1, WF_TRY_SURELY) : 0;
        stream->ops->leave(stream);
    }
    return n;
}

ssize_t weft_try_write(weft_stream *stream, const void *data, size_t size)
{
    struct iovec vector = { .iov_base = no_const(data), .iov_len = most(size) };
    ssize_t n = stream->ops->enter(stream, "weft_try_write");
    if (n == 0) {
        n = size > 0 ? stream->ops->try_write(stream, &vector, 1, WF_TRY_SURELY) : 0;
        stream->ops->leave(stream);
    }
    return n;
}

void weft_readable_init(weft_op *op, weft_stream *stream)
{
    stream->ops->wait_init(op, stream, WEFT_READABLE, false);
}

void weft_writable_init(weft_op *op, weft_stream *stream)
{
    stream->ops->wait_init(op, stream, WEFT_WRITABLE, false);
}

/* --- The rest --------------------------------------------------------------------------- */

int weft_stream_shutdown(weft_stream *stream, weft_side side)
{
    int err = stream->ops->enter(stream, "weft_stream_shutdown");
    if (err == 0) {
        err = stream->ops->shutdown(stream, side);
        stream->ops->leave(stream);
    }
    return err;
}

void weft_stream_close(weft_stream *stream)
{
    if (stream != NULL) {
        stream->ops->close(stream);
    }
}

int weft_stream_fd(const weft_stream *stream)
{
    return stream->ops->fd != NULL ? stream->ops->fd(stream) : -EOPNOTSUPP;
}

int weft_stream_release(weft_stream *stream)
{
    return stream->ops->release != NULL ? stream->ops->release(stream) : -EOPNOTSUPP;
}
