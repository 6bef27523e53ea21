/* SPDX-License-Identifier: MIT */
/*
 * calls_io.c - awaiting calls of streams: weft/io.h, buffered.h. The peer of a stream is a plain
 * descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"
#include "test.h"

enum {
    BUFFER = 256,
};

struct stream_state {
    weft_stream *stream;
    weft_stream *to; /* for copies */
    weft_fd *handle;
    int own;  /* the handle's descriptor */
    int peer; /* the other end of the stream */
    int to_peer;
    struct iovec vector;
    size_t filled; /* bytes in flight to the peer */
    char bytes[16];
    weft_text text;
    weft_reader reader;
    weft_writer writer;
    char buffer[BUFFER];
    weft_io io;
    weft_op op;
};
CALL_STATE(struct stream_state);

/* Opens a stream and its peer. */
static weft_stream *open_stream(int *peer)
{
    int ends[2];
    int size = 1;
    weft_stream *stream;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_EQ(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    CHECK_EQ(weft_stream_adopt(&stream, ends[0]), 0);
    *peer = ends[1];
    return stream;
}

static void stream_setup(void *state)
{
    struct stream_state *self = state;
    self->stream = open_stream(&self->peer);
    self->own = -1;
    self->to_peer = -1;
    weft_reader_init(&self->reader, self->stream, self->buffer, BUFFER);
    weft_writer_init(&self->writer, self->stream, self->buffer, BUFFER);
}

static void stream_close(void *state)
{
    weft_stream_close(((struct stream_state *)state)->stream);
}

static void close_fd(int fd)
{
    if (fd >= 0) {
        CHECK_EQ(close(fd), 0);
    }
}

static void stream_teardown(void *state)
{
    struct stream_state *self = state;
    weft_stream_close(self->stream);
    weft_stream_close(self->to);
    close_fd(self->peer);
    close_fd(self->to_peer);
}

/* --- Reading ------------------------------------------------------------------------------ */

static void read_ready(void *state)
{
    CHECK_EQ(write(((struct stream_state *)state)->peer, "x", 1), 1);
}

static int64_t read_call(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_read(self->stream, self->bytes, sizeof self->bytes, deadline);
}

static weft_future *read_prep(void *state)
{
    struct stream_state *self = state;
    weft_read_init(&self->io, self->stream, self->bytes, sizeof self->bytes);
    return &self->io.future;
}

static struct iovec *one_vector(struct stream_state *self, size_t size)
{
    self->vector = (struct iovec){ self->bytes, size };
    return &self->vector;
}

static int64_t readv_call(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_readv(self->stream, one_vector(self, sizeof self->bytes), 1, deadline);
}

static weft_future *readv_prep(void *state)
{
    struct stream_state *self = state;
    weft_readv_init(&self->io, self->stream, one_vector(self, sizeof self->bytes), 1);
    return &self->io.future;
}

static int64_t read_exact_call(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_read_exact(self->stream, self->bytes, 1, deadline);
}

static weft_future *read_exact_prep(void *state)
{
    struct stream_state *self = state;
    weft_read_exact_init(&self->io, self->stream, self->bytes, 1);
    return &self->io.future;
}

static int64_t readv_exact_call(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_readv_exact(self->stream, one_vector(self, 1), 1, deadline);
}

static weft_future *readv_exact_prep(void *state)
{
    struct stream_state *self = state;
    weft_readv_exact_init(&self->io, self->stream, one_vector(self, 1), 1);
    return &self->io.future;
}

static int64_t peek_call(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_peek(self->stream, self->bytes, sizeof self->bytes, deadline);
}

static weft_future *peek_prep(void *state)
{
    struct stream_state *self = state;
    weft_peek_init(&self->io, self->stream, self->bytes, sizeof self->bytes);
    return &self->io.future;
}

static void read_undo(void *state)
{
    struct stream_state *self = state;
    CHECK_EQ(self->bytes[0], 'x');
    self->bytes[0] = 0;
}

/* Reads the byte that the call only peeked at. */
static void take_byte(void *state)
{
    struct stream_state *self = state;
    CHECK_EQ(weft_try_read(self->stream, self->bytes, sizeof self->bytes), 1);
    CHECK_EQ(self->bytes[0], 'x');
}

static weft_future *readable_prep(void *state)
{
    struct stream_state *self = state;
    weft_readable_init(&self->op, self->stream);
    return &self->op.future;
}

/* --- Writing ------------------------------------------------------------------------------ */

static void fill(struct stream_state *self)
{
    ssize_t n;
    while ((n = weft_try_write(self->stream, "yyyyyyyy", 8)) > 0) {
        self->filled += (size_t)n;
    }
    CHECK_EQ(n, -EAGAIN);
}

static void full_setup(void *state)
{
    stream_setup(state);
    fill(state);
}

static void write_ready(void *state)
{
    struct stream_state *self = state;
    char bytes[256];
    while (self->filled > 0) {
        size_t part = self->filled < sizeof bytes ? self->filled : sizeof bytes;
        ssize_t n = read(self->peer, bytes, part);
        CHECK(n > 0);
        self->filled -= (size_t)n;
    }
}

static void write_undo(void *state)
{
    struct stream_state *self = state;
    char byte = 0;
    CHECK_EQ(read(self->peer, &byte, 1), 1);
    CHECK_EQ(byte, 'w');
    fill(self);
}

static int64_t write_call(void *state, weft_time deadline)
{
    return weft_write(((struct stream_state *)state)->stream, "w", 1, deadline);
}

static weft_future *write_prep(void *state)
{
    struct stream_state *self = state;
    weft_write_init(&self->io, self->stream, "w", 1);
    return &self->io.future;
}

static struct iovec *w_vector(struct stream_state *self)
{
    self->bytes[0] = 'w';
    return one_vector(self, 1);
}

static int64_t writev_call(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_writev(self->stream, w_vector(self), 1, deadline);
}

static weft_future *writev_prep(void *state)
{
    struct stream_state *self = state;
    weft_writev_init(&self->io, self->stream, w_vector(self), 1);
    return &self->io.future;
}

static int64_t write_all_call(void *state, weft_time deadline)
{
    return weft_write_all(((struct stream_state *)state)->stream, "w", 1, deadline);
}

static weft_future *write_all_prep(void *state)
{
    struct stream_state *self = state;
    weft_write_all_init(&self->io, self->stream, "w", 1);
    return &self->io.future;
}

static int64_t writev_all_call(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_writev_all(self->stream, w_vector(self), 1, deadline);
}

static weft_future *writev_all_prep(void *state)
{
    struct stream_state *self = state;
    weft_writev_all_init(&self->io, self->stream, w_vector(self), 1);
    return &self->io.future;
}

static weft_future *writable_prep(void *state)
{
    struct stream_state *self = state;
    weft_writable_init(&self->op, self->stream);
    return &self->op.future;
}

static void writable_undo(void *state)
{
    fill(state);
}

/* --- Descriptors -------------------------------------------------------------------------- */

static void fd_setup(void *state)
{
    struct stream_state *self = state;
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    self->own = ends[0];
    self->peer = ends[1];
    self->to_peer = -1;
    CHECK_EQ(weft_fd_open(&self->handle, self->own), 0);
}

static int64_t fd_call(void *state, weft_time deadline)
{
    return weft_fd_wait(((struct stream_state *)state)->handle, WEFT_READABLE, deadline);
}

static weft_future *fd_prep(void *state)
{
    struct stream_state *self = state;
    weft_fd_wait_init(&self->io, self->handle, WEFT_READABLE);
    return &self->io.future;
}

static void fd_undo(void *state)
{
    char byte = 0;
    CHECK_EQ(read(((struct stream_state *)state)->own, &byte, 1), 1);
    CHECK_EQ(byte, 'x');
}

static void fd_close(void *state)
{
    weft_fd_close(((struct stream_state *)state)->handle);
}

static void fd_teardown(void *state)
{
    struct stream_state *self = state;
    weft_fd_close(self->handle);
    close_fd(self->own);
    close_fd(self->peer);
}

/* --- Readers ------------------------------------------------------------------------------ */

/* Fills the reader's buffer, so that no call has to wait for the stream. */
static void prefetch(void *state)
{
    struct stream_state *self = state;
    CHECK_EQ(weft_reader_peek(&self->reader, 1, &self->text, WEFT_NEVER), 0);
}

static void line_ready(void *state)
{
    CHECK_EQ(write(((struct stream_state *)state)->peer, "x\n", 2), 2);
}

static void frame_ready(void *state)
{
    CHECK_EQ(write(((struct stream_state *)state)->peer, "\1x", 2), 2);
}

static int64_t reader_read(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_reader_read(&self->reader, self->bytes, sizeof self->bytes, deadline);
}

static int64_t reader_exact(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_reader_exact(&self->reader, self->bytes, 1, deadline);
}

static int64_t reader_peek(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_reader_peek(&self->reader, 1, &self->text, deadline);
}

static void reader_peek_undo(void *state)
{
    struct stream_state *self = state;
    CHECK_EQ(self->text.size, 1);
    CHECK_EQ(self->text.at[0], 'x');
    weft_reader_take(&self->reader, 1);
}

static int64_t read_until(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_read_until(&self->reader, '\n', &self->text, deadline);
}

static int64_t read_line(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_read_line(&self->reader, &self->text, deadline);
}

static int64_t read_frame(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_read_frame(&self->reader, 1, &self->text, deadline);
}

static void text_undo(void *state)
{
    struct stream_state *self = state;
    CHECK_EQ(self->text.size, 1);
    CHECK_EQ(self->text.at[0], 'x');
}

/* --- Writers ------------------------------------------------------------------------------ */

static void no_ready(void *state)
{
    (void)state;
}

static int64_t writer_write(void *state, weft_time deadline)
{
    return weft_writer_write(&((struct stream_state *)state)->writer, "w", 1, deadline);
}

static int64_t writer_print(void *state, weft_time deadline)
{
    return weft_writer_print(&((struct stream_state *)state)->writer, deadline, "%c", 'w');
}

static int64_t write_frame(void *state, weft_time deadline)
{
    return weft_write_frame(&((struct stream_state *)state)->writer, 1, "w", 1, deadline);
}

static void flush_setup(void *state)
{
    struct stream_state *self = state;
    full_setup(state);
    CHECK_EQ(weft_writer_write(&self->writer, "w", 1, WEFT_NEVER), 0);
}

static int64_t writer_flush(void *state, weft_time deadline)
{
    return weft_writer_flush(&((struct stream_state *)state)->writer, deadline);
}

static void flush_undo(void *state)
{
    struct stream_state *self = state;
    write_undo(state);
    CHECK_EQ(weft_writer_write(&self->writer, "w", 1, WEFT_NEVER), 0);
}

/* --- Copies ------------------------------------------------------------------------------- */

static void copy_setup(void *state)
{
    struct stream_state *self = state;
    stream_setup(state);
    self->to = open_stream(&self->to_peer);
}

static void copy_ready(void *state)
{
    read_ready(state);
    CHECK_EQ(shutdown(((struct stream_state *)state)->peer, SHUT_WR), 0);
}

static int64_t copy_call(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    uint64_t copied = 0;
    int result = weft_copy(self->stream, self->to, &copied, deadline);
    CHECK(result != 0 || copied == 1);
    return result;
}

static void copy_undo(void *state)
{
    char byte = 0;
    CHECK_EQ(read(((struct stream_state *)state)->to_peer, &byte, 1), 1);
    CHECK_EQ(byte, 'x');
}

static void both_ready(void *state)
{
    copy_ready(state);
    CHECK_EQ(shutdown(((struct stream_state *)state)->to_peer, SHUT_WR), 0);
}

static int64_t copy_both_call(void *state, weft_time deadline)
{
    struct stream_state *self = state;
    return weft_copy_both(self->stream, self->to, deadline);
}

#define STREAM_CLOSE .close = stream_close, .closed = WEFT_ECLOSED, .teardown = stream_teardown
#define READS(call_name, call_fn, prep_fn, result, after)                                          \
    {                                                                                              \
        .name = (call_name), .ready = (result), .setup = stream_setup, .make_ready = read_ready,   \
        .call = (call_fn), .prep = (prep_fn), .undo = (after), STREAM_CLOSE                        \
    }
#define WRITES(call_name, call_fn, prep_fn, result)                                                \
    {                                                                                              \
        .name = (call_name), .ready = (result), .setup = full_setup, .make_ready = write_ready,    \
        .call = (call_fn), .prep = (prep_fn), .undo = write_undo, STREAM_CLOSE                     \
    }
#define READER(call_name, call_fn, ready_fn, result, after)                                        \
    {                                                                                              \
        .name = (call_name), .ready = (result), .setup = stream_setup, .make_ready = (ready_fn),   \
        .prefetch = prefetch, .call = (call_fn), .undo = (after), .teardown = stream_teardown      \
    }
#define WRITER(call_name, call_fn)                                                                 \
    {                                                                                              \
        .name = (call_name), .flags = CALL_NEVER_WAITS, .setup = stream_setup,                     \
        .make_ready = no_ready, .call = (call_fn), .teardown = stream_teardown                     \
    }

static const struct call table[] = {
    READS("weft_read", read_call, read_prep, 1, read_undo),
    READS("weft_readv", readv_call, readv_prep, 1, read_undo),
    READS("weft_read_exact", read_exact_call, read_exact_prep, 0, read_undo),
    READS("weft_readv_exact", readv_exact_call, readv_exact_prep, 0, read_undo),
    READS("weft_peek", peek_call, peek_prep, 1, take_byte),
    READS("weft_readable", NULL, readable_prep, 0, take_byte),
    WRITES("weft_write", write_call, write_prep, 1),
    WRITES("weft_writev", writev_call, writev_prep, 1),
    WRITES("weft_write_all", write_all_call, write_all_prep, 0),
    WRITES("weft_writev_all", writev_all_call, writev_all_prep, 0),
    { .name = "weft_writable",
      .setup = full_setup,
      .make_ready = write_ready,
      .prep = writable_prep,
      .undo = writable_undo,
      STREAM_CLOSE },
    { .name = "weft_fd_wait",
      .ready = WEFT_READABLE,
      .setup = fd_setup,
      .make_ready = read_ready,
      .call = fd_call,
      .prep = fd_prep,
      .undo = fd_undo,
      .close = fd_close,
      .closed = WEFT_ECLOSED,
      .teardown = fd_teardown },
    READER("weft_reader_read", reader_read, read_ready, 1, read_undo),
    READER("weft_reader_exact", reader_exact, read_ready, 0, read_undo),
    READER("weft_reader_peek", reader_peek, read_ready, 0, reader_peek_undo),
    READER("weft_read_until", read_until, line_ready, 1, text_undo),
    READER("weft_read_line", read_line, line_ready, 1, text_undo),
    READER("weft_read_frame", read_frame, frame_ready, 1, text_undo),
    WRITER("weft_writer_write", writer_write),
    WRITER("weft_writer_print", writer_print),
    WRITER("weft_write_frame", write_frame),
    { .name = "weft_writer_flush",
      .setup = flush_setup,
      .make_ready = write_ready,
      .call = writer_flush,
      .undo = flush_undo,
      STREAM_CLOSE },
    { .name = "weft_copy",
      .setup = copy_setup,
      .make_ready = copy_ready,
      .call = copy_call,
      .undo = copy_undo,
      STREAM_CLOSE },
    { .name = "weft_copy_both",
      .flags = CALL_FIBERS_ONLY | CALL_ENDS,
      .setup = copy_setup,
      .make_ready = both_ready,
      .call = copy_both_call,
      .undo = copy_undo,
      STREAM_CLOSE },
};

CALL_GROUP(calls_io, table);
