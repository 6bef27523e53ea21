/* SPDX-License-Identifier: MIT */
/*
 * handle_test.c - closed handles of streams, listeners, datagram sockets and descriptors, in
 * every call of weft/io.h, weft/net.h, weft/datagram.h and weft/buffered.h that takes one.
 * tools/tidy checks that this file names each of these calls.
 */
#include <weft.h>

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt.h"
#include "test.h"

/* --- Objects ---------------------------------------------------------------------------- */

enum kind {
    STREAM,
    LISTENER,
    DATAGRAM,
    DESCRIPTOR,
    KINDS,
};

/* What backs an object. The first four are streams. */
enum material {
    TCP,
    LOCAL,
    MEMORY,
    PIPE,
    LISTENING,
    UDP,
    COUNTER,
    MATERIALS,
};

static const enum kind kinds[MATERIALS] = { STREAM,   STREAM,   STREAM,    STREAM,
                                            LISTENER, DATAGRAM, DESCRIPTOR };

/* A handle of any kind. */
union handle {
    weft_stream *stream;
    weft_listener *listener;
    weft_datagram *datagram;
    weft_fd *fd;
};

/* An object and its peer. The object has data to read. */
struct object {
    enum material material;
    union handle handle;
    weft_stream *peer;     /* of a stream; or a connection that is pending in the backlog */
    weft_datagram *sender; /* sends to a datagram socket */
    int fd;                /* behind a weft_fd */
};

static const char message[] = "stranger";

enum {
    SIZE = sizeof message,
};

/* Returns two sockets that are connected by TCP. */
static void tcp_pair(int *ends)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&address, size), 0);
    CHECK_EQ(listen(listener, 1), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    CHECK_EQ(connect(ends[0], (struct sockaddr *)&address, size), 0);
    ends[1] = accept(listener, NULL, NULL);
    CHECK(ends[1] >= 0);
    (void)close(listener);
}

static void open_tcp(struct object *object)
{
    int ends[2];
    tcp_pair(ends);
    CHECK_EQ(weft_stream_adopt(&object->handle.stream, ends[0]), 0);
    CHECK_EQ(weft_stream_adopt(&object->peer, ends[1]), 0);
}

static void open_listener(struct object *object)
{
    weft_address address;
    char text[WEFT_ADDRESS_TEXT_MAX];
    CHECK_EQ(weft_listen(&object->handle.listener, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(weft_listener_address(object->handle.listener, &address), 0);
    CHECK(weft_address_print(&address, text, sizeof text) < sizeof text);
    CHECK_EQ(weft_connect(&object->peer, text, NULL, WEFT_NEVER), 0);
}

static void open_datagram(struct object *object)
{
    weft_address address;
    CHECK_EQ(weft_datagram_open(&object->handle.datagram, "udp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(weft_datagram_address(object->handle.datagram, &address), 0);
    CHECK_EQ(weft_datagram_open(&object->sender, "udp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(weft_datagram_send_to(object->sender, message, SIZE, &address, WEFT_NEVER), SIZE);
}

static void open_counter(struct object *object)
{
    object->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK(object->fd >= 0);
    CHECK_EQ(weft_fd_open(&object->handle.fd, object->fd), 0);
}

/* Opens the handle first, so that it reuses the slot that was freed last. */
static struct object open_object(enum material material)
{
    struct object object = { .material = material, .fd = -1 };
    switch (material) {
    case TCP:
        open_tcp(&object);
        break;
    case LOCAL:
        CHECK_EQ(weft_stream_pair(&object.handle.stream, &object.peer), 0);
        break;
    case MEMORY:
        CHECK_EQ(weft_duplex(&object.handle.stream, &object.peer, 64), 0);
        break;
    case PIPE:
        CHECK_EQ(weft_pipe(&object.handle.stream, &object.peer), 0);
        break;
    case LISTENING:
        open_listener(&object);
        break;
    case UDP:
        open_datagram(&object);
        break;
    default:
        open_counter(&object);
        break;
    }
    if (kinds[material] == STREAM) {
        CHECK_EQ(weft_write_all(object.peer, message, SIZE, WEFT_NEVER), 0);
    }
    return object;
}

static void close_handle(enum kind kind, union handle handle)
{
    switch (kind) {
    case STREAM:
        weft_stream_close(handle.stream);
        break;
    case LISTENER:
        weft_listener_close(handle.listener);
        break;
    case DATAGRAM:
        weft_datagram_close(handle.datagram);
        break;
    default:
        weft_fd_close(handle.fd);
        break;
    }
}

/* Closes the handle last, so that the next handle to be opened reuses its slot. */
static void close_object(struct object *object)
{
    weft_stream_close(object->peer);
    weft_datagram_close(object->sender);
    close_handle(kinds[object->material], object->handle);
    if (object->fd >= 0) {
        (void)close(object->fd);
    }
}

/*
 * Checks that no other call has used the object: its data is still there to read, and nothing was
 * written or shut down.
 */
static void check_untouched(const struct object *object)
{
    char buffer[64];
    weft_stream *accepted;
    weft_address from;
    switch (kinds[object->material]) {
    case STREAM:
        CHECK_EQ(weft_read(object->handle.stream, buffer, sizeof buffer, 0), SIZE);
        CHECK_EQ(memcmp(buffer, message, SIZE), 0);
        if (object->material != PIPE) {
            CHECK_EQ(weft_try_read(object->peer, buffer, sizeof buffer), -EAGAIN);
            CHECK_EQ(weft_write_all(object->handle.stream, message, SIZE, 0), 0);
            CHECK_EQ(weft_read_exact(object->peer, buffer, SIZE, WEFT_NEVER), 0);
        }
        break;
    case LISTENER:
        CHECK_EQ(weft_accept(object->handle.listener, &accepted, WEFT_NEVER), 0);
        weft_stream_close(accepted);
        break;
    case DATAGRAM:
        CHECK_EQ(weft_datagram_receive_from(object->handle.datagram, buffer, sizeof buffer, &from,
                                            WEFT_NEVER),
                 SIZE);
        CHECK_EQ(weft_datagram_send_to(object->handle.datagram, message, SIZE, &from, 0), SIZE);
        CHECK_EQ(weft_datagram_receive(object->sender, buffer, sizeof buffer, WEFT_NEVER), SIZE);
        break;
    default:
        CHECK_EQ(weft_fd_wait(object->handle.fd, WEFT_READABLE, 0), WEFT_READABLE);
        break;
    }
}

/* --- Calls ------------------------------------------------------------------------------ */

/* Arguments of the calls other than the handle. They outlive the operations prepared with them. */
static struct {
    char bytes[64];
    struct iovec vectors[2];
    weft_address address;
    weft_credentials credentials;
    weft_packet packets[2];
    weft_stream *accepted;
    weft_stream *other; /* source or destination of copies: open, and never readable */
    weft_io io;
    weft_op op;
    int fds[2];
    size_t fd_count;
    int value;
    uint64_t copied;
    weft_reader reader;
    weft_writer writer;
    weft_text text;
} use;

static void fill_use(void)
{
    use.vectors[0] = (struct iovec){ use.bytes, 8 };
    use.vectors[1] = (struct iovec){ use.bytes + 8, 8 };
    use.fds[0] = 0;
    use.fd_count = 1;
    CHECK_EQ(weft_address_parse(&use.address, "127.0.0.1:9"), 0);
    for (unsigned i = 0; i < 2; i++) {
        use.packets[i] = (weft_packet){ .data = use.bytes, .size = 8, .address = use.address };
    }
}

/* Returns a reader that has not read anything yet. */
static weft_reader *reader_of(union handle handle)
{
    weft_reader_init(&use.reader, handle.stream, use.bytes, 16);
    return &use.reader;
}

/* Returns a writer without space for another ten bytes. */
static weft_writer *writer_of(union handle handle)
{
    weft_writer_init(&use.writer, handle.stream, use.bytes, 16);
    CHECK_EQ(weft_writer_write(&use.writer, "0123456789", 10, 0), 0);
    return &use.writer;
}

/*
 * Define the functions of the table: one makes the call, the other prepares an operation to
 * await.
 */
#define RUN(name, ...)                                                                             \
    static int64_t name(union handle handle)                                                       \
    {                                                                                              \
        return (__VA_ARGS__);                                                                      \
    }
#define PREPARE(name, awaited, ...)                                                                \
    static weft_future *name(union handle handle)                                                  \
    {                                                                                              \
        (__VA_ARGS__);                                                                             \
        return (awaited);                                                                          \
    }

RUN(call_read, weft_read(handle.stream, use.bytes, sizeof use.bytes, 0))
RUN(call_readv, weft_readv(handle.stream, use.vectors, 2, 0))
RUN(call_read_exact, weft_read_exact(handle.stream, use.bytes, sizeof use.bytes, 0))
RUN(call_readv_exact, weft_readv_exact(handle.stream, use.vectors, 2, 0))
RUN(call_peek, weft_peek(handle.stream, use.bytes, sizeof use.bytes, 0))
RUN(call_write, weft_write(handle.stream, use.bytes, sizeof use.bytes, 0))
RUN(call_writev, weft_writev(handle.stream, use.vectors, 2, 0))
RUN(call_write_all, weft_write_all(handle.stream, use.bytes, sizeof use.bytes, 0))
RUN(call_writev_all, weft_writev_all(handle.stream, use.vectors, 2, 0))
RUN(call_try_read, weft_try_read(handle.stream, use.bytes, sizeof use.bytes))
RUN(call_try_write, weft_try_write(handle.stream, use.bytes, sizeof use.bytes))
RUN(call_stream_shutdown, weft_stream_shutdown(handle.stream, WEFT_BOTH_SIDES))
RUN(call_stream_release, weft_stream_release(handle.stream))
RUN(call_stream_fd, weft_stream_fd(handle.stream))
RUN(call_fd_wait, weft_fd_wait(handle.fd, WEFT_READABLE | WEFT_WRITABLE, 0))
RUN(call_accept, weft_accept(handle.listener, &use.accepted, 0))
RUN(call_listener_address, weft_listener_address(handle.listener, &use.address))
RUN(call_listener_fd, weft_listener_fd(handle.listener))
RUN(call_listener_set_option, weft_listener_set_option(handle.listener, WEFT_OPTION_KEEPALIVE, 1))
RUN(call_listener_option, weft_listener_option(handle.listener, WEFT_OPTION_KEEPALIVE, &use.value))
RUN(call_stream_address, weft_stream_address(handle.stream, &use.address))
RUN(call_stream_peer, weft_stream_peer(handle.stream, &use.address))
RUN(call_stream_set_option, weft_stream_set_option(handle.stream, WEFT_OPTION_KEEPALIVE, 1))
RUN(call_stream_option, weft_stream_option(handle.stream, WEFT_OPTION_KEEPALIVE, &use.value))
RUN(call_stream_credentials, weft_stream_credentials(handle.stream, &use.credentials))
RUN(call_write_fds, weft_write_fds(handle.stream, use.bytes, sizeof use.bytes, use.fds, 1, 0))
RUN(call_read_fds,
    weft_read_fds(handle.stream, use.bytes, sizeof use.bytes, use.fds, &use.fd_count, 0))
RUN(call_datagram_connect, weft_datagram_connect(handle.datagram, &use.address))
RUN(call_datagram_send, weft_datagram_send(handle.datagram, use.bytes, sizeof use.bytes, 0))
RUN(call_datagram_send_to,
    weft_datagram_send_to(handle.datagram, use.bytes, sizeof use.bytes, &use.address, 0))
RUN(call_datagram_receive, weft_datagram_receive(handle.datagram, use.bytes, sizeof use.bytes, 0))
RUN(call_datagram_receive_from,
    weft_datagram_receive_from(handle.datagram, use.bytes, sizeof use.bytes, &use.address, 0))
RUN(call_datagram_peek,
    weft_datagram_peek(handle.datagram, use.bytes, sizeof use.bytes, &use.address, 0))
RUN(call_datagram_send_many, weft_datagram_send_many(handle.datagram, use.packets, 2, 0))
RUN(call_datagram_receive_many, weft_datagram_receive_many(handle.datagram, use.packets, 2, 0))
RUN(call_datagram_join, weft_datagram_join(handle.datagram, &use.address, 0))
RUN(call_datagram_leave, weft_datagram_leave(handle.datagram, &use.address, 0))
RUN(call_datagram_address, weft_datagram_address(handle.datagram, &use.address))
RUN(call_datagram_peer, weft_datagram_peer(handle.datagram, &use.address))
RUN(call_datagram_set_option, weft_datagram_set_option(handle.datagram, WEFT_OPTION_BROADCAST, 1))
RUN(call_datagram_option, weft_datagram_option(handle.datagram, WEFT_OPTION_BROADCAST, &use.value))
RUN(call_datagram_fd, weft_datagram_fd(handle.datagram))
RUN(call_reader_read, weft_reader_read(reader_of(handle), use.bytes + 16, 8, 0))
RUN(call_reader_exact, weft_reader_exact(reader_of(handle), use.bytes + 16, 8, 0))
RUN(call_reader_peek, weft_reader_peek(reader_of(handle), 1, &use.text, 0))
RUN(call_read_until, weft_read_until(reader_of(handle), ';', &use.text, 0))
RUN(call_read_line, weft_read_line(reader_of(handle), &use.text, 0))
RUN(call_read_frame, weft_read_frame(reader_of(handle), 2, &use.text, 0))
RUN(call_writer_write, weft_writer_write(writer_of(handle), "0123456789", 10, 0))
RUN(call_writer_print, weft_writer_print(writer_of(handle), 0, "%s", "0123456789"))
RUN(call_write_frame, weft_write_frame(writer_of(handle), 2, "0123456789", 10, 0))
RUN(call_writer_flush, weft_writer_flush(writer_of(handle), 0))
RUN(call_copy, weft_copy(handle.stream, use.other, &use.copied, 0))
RUN(call_copy_to, weft_copy(use.other, handle.stream, &use.copied, 0))
RUN(call_copy_both, weft_copy_both(handle.stream, use.other, 0))
RUN(call_copy_both_other, weft_copy_both(use.other, handle.stream, 0))
PREPARE(prepare_read, &use.io.future,
        weft_read_init(&use.io, handle.stream, use.bytes, sizeof use.bytes))
PREPARE(prepare_readv, &use.io.future, weft_readv_init(&use.io, handle.stream, use.vectors, 2))
PREPARE(prepare_read_exact, &use.io.future,
        weft_read_exact_init(&use.io, handle.stream, use.bytes, sizeof use.bytes))
PREPARE(prepare_readv_exact, &use.io.future,
        weft_readv_exact_init(&use.io, handle.stream, use.vectors, 2))
PREPARE(prepare_peek, &use.io.future,
        weft_peek_init(&use.io, handle.stream, use.bytes, sizeof use.bytes))
PREPARE(prepare_write, &use.io.future,
        weft_write_init(&use.io, handle.stream, use.bytes, sizeof use.bytes))
PREPARE(prepare_writev, &use.io.future, weft_writev_init(&use.io, handle.stream, use.vectors, 2))
PREPARE(prepare_write_all, &use.io.future,
        weft_write_all_init(&use.io, handle.stream, use.bytes, sizeof use.bytes))
PREPARE(prepare_writev_all, &use.io.future,
        weft_writev_all_init(&use.io, handle.stream, use.vectors, 2))
PREPARE(prepare_readable, &use.op.future, weft_readable_init(&use.op, handle.stream))
PREPARE(prepare_writable, &use.op.future, weft_writable_init(&use.op, handle.stream))
PREPARE(prepare_fd_wait, &use.io.future,
        weft_fd_wait_init(&use.io, handle.fd, WEFT_READABLE | WEFT_WRITABLE))
PREPARE(prepare_accept, &use.io.future, weft_accept_init(&use.io, handle.listener, &use.accepted))
PREPARE(prepare_write_fds, &use.io.future,
        weft_write_fds_init(&use.io, handle.stream, use.bytes, sizeof use.bytes, use.fds, 1))
PREPARE(prepare_read_fds, &use.io.future,
        weft_read_fds_init(&use.io, handle.stream, use.bytes, sizeof use.bytes, use.fds,
                           &use.fd_count))
PREPARE(prepare_datagram_send, &use.io.future,
        weft_datagram_send_init(&use.io, handle.datagram, use.bytes, sizeof use.bytes))
PREPARE(prepare_datagram_send_to, &use.io.future,
        weft_datagram_send_to_init(&use.io, handle.datagram, use.bytes, sizeof use.bytes,
                                   &use.address))
PREPARE(prepare_datagram_receive, &use.io.future,
        weft_datagram_receive_init(&use.io, handle.datagram, use.bytes, sizeof use.bytes))
PREPARE(prepare_datagram_receive_from, &use.io.future,
        weft_datagram_receive_from_init(&use.io, handle.datagram, use.bytes, sizeof use.bytes,
                                        &use.address))
PREPARE(prepare_datagram_peek, &use.io.future,
        weft_datagram_peek_init(&use.io, handle.datagram, use.bytes, sizeof use.bytes,
                                &use.address))
PREPARE(prepare_datagram_send_many, &use.io.future,
        weft_datagram_send_many_init(&use.io, handle.datagram, use.packets, 2))
PREPARE(prepare_datagram_receive_many, &use.io.future,
        weft_datagram_receive_many_init(&use.io, handle.datagram, use.packets, 2))
PREPARE(prepare_datagram_readable, &use.op.future,
        weft_datagram_readable_init(&use.op, handle.datagram))
PREPARE(prepare_datagram_writable, &use.op.future,
        weft_datagram_writable_init(&use.op, handle.datagram))
struct call {
    const char *name;
    enum kind kind;
    int64_t (*run)(union handle handle);
    weft_future *(*prepare)(union handle handle); /* NULL if run is set */
    bool is_for_fibers;
};

static const struct call calls[] = {
    { "weft_read", STREAM, .run = call_read },
    { "weft_readv", STREAM, .run = call_readv },
    { "weft_read_exact", STREAM, .run = call_read_exact },
    { "weft_readv_exact", STREAM, .run = call_readv_exact },
    { "weft_peek", STREAM, .run = call_peek },
    { "weft_write", STREAM, .run = call_write },
    { "weft_writev", STREAM, .run = call_writev },
    { "weft_write_all", STREAM, .run = call_write_all },
    { "weft_writev_all", STREAM, .run = call_writev_all },
    { "weft_try_read", STREAM, .run = call_try_read },
    { "weft_try_write", STREAM, .run = call_try_write },
    { "weft_stream_shutdown", STREAM, .run = call_stream_shutdown },
    { "weft_stream_release", STREAM, .run = call_stream_release },
    { "weft_stream_fd", STREAM, .run = call_stream_fd },
    { "weft_fd_wait", DESCRIPTOR, .run = call_fd_wait },
    { "weft_accept", LISTENER, .run = call_accept },
    { "weft_listener_address", LISTENER, .run = call_listener_address },
    { "weft_listener_fd", LISTENER, .run = call_listener_fd },
    { "weft_listener_set_option", LISTENER, .run = call_listener_set_option },
    { "weft_listener_option", LISTENER, .run = call_listener_option },
    { "weft_stream_address", STREAM, .run = call_stream_address },
    { "weft_stream_peer", STREAM, .run = call_stream_peer },
    { "weft_stream_set_option", STREAM, .run = call_stream_set_option },
    { "weft_stream_option", STREAM, .run = call_stream_option },
    { "weft_stream_credentials", STREAM, .run = call_stream_credentials },
    { "weft_write_fds", STREAM, .run = call_write_fds },
    { "weft_read_fds", STREAM, .run = call_read_fds },
    { "weft_datagram_connect", DATAGRAM, .run = call_datagram_connect },
    { "weft_datagram_send", DATAGRAM, .run = call_datagram_send },
    { "weft_datagram_send_to", DATAGRAM, .run = call_datagram_send_to },
    { "weft_datagram_receive", DATAGRAM, .run = call_datagram_receive },
    { "weft_datagram_receive_from", DATAGRAM, .run = call_datagram_receive_from },
    { "weft_datagram_peek", DATAGRAM, .run = call_datagram_peek },
    { "weft_datagram_send_many", DATAGRAM, .run = call_datagram_send_many },
    { "weft_datagram_receive_many", DATAGRAM, .run = call_datagram_receive_many },
    { "weft_datagram_join", DATAGRAM, .run = call_datagram_join },
    { "weft_datagram_leave", DATAGRAM, .run = call_datagram_leave },
    { "weft_datagram_address", DATAGRAM, .run = call_datagram_address },
    { "weft_datagram_peer", DATAGRAM, .run = call_datagram_peer },
    { "weft_datagram_set_option", DATAGRAM, .run = call_datagram_set_option },
    { "weft_datagram_option", DATAGRAM, .run = call_datagram_option },
    { "weft_datagram_fd", DATAGRAM, .run = call_datagram_fd },
    { "weft_reader_read", STREAM, .run = call_reader_read },
    { "weft_reader_exact", STREAM, .run = call_reader_exact },
    { "weft_reader_peek", STREAM, .run = call_reader_peek },
    { "weft_read_until", STREAM, .run = call_read_until },
    { "weft_read_line", STREAM, .run = call_read_line },
    { "weft_read_frame", STREAM, .run = call_read_frame },
    { "weft_writer_write", STREAM, .run = call_writer_write },
    { "weft_writer_print", STREAM, .run = call_writer_print },
    { "weft_write_frame", STREAM, .run = call_write_frame },
    { "weft_writer_flush", STREAM, .run = call_writer_flush },
    { "weft_copy", STREAM, .run = call_copy },
    { "weft_copy_to", STREAM, .run = call_copy_to },
    { "weft_copy_both", STREAM, .run = call_copy_both, .is_for_fibers = true },
    { "weft_copy_both_other", STREAM, .run = call_copy_both_other, .is_for_fibers = true },
    { "weft_read_init", STREAM, .prepare = prepare_read },
    { "weft_readv_init", STREAM, .prepare = prepare_readv },
    { "weft_read_exact_init", STREAM, .prepare = prepare_read_exact },
    { "weft_readv_exact_init", STREAM, .prepare = prepare_readv_exact },
    { "weft_peek_init", STREAM, .prepare = prepare_peek },
    { "weft_write_init", STREAM, .prepare = prepare_write },
    { "weft_writev_init", STREAM, .prepare = prepare_writev },
    { "weft_write_all_init", STREAM, .prepare = prepare_write_all },
    { "weft_writev_all_init", STREAM, .prepare = prepare_writev_all },
    { "weft_readable_init", STREAM, .prepare = prepare_readable },
    { "weft_writable_init", STREAM, .prepare = prepare_writable },
    { "weft_fd_wait_init", DESCRIPTOR, .prepare = prepare_fd_wait },
    { "weft_accept_init", LISTENER, .prepare = prepare_accept },
    { "weft_write_fds_init", STREAM, .prepare = prepare_write_fds },
    { "weft_read_fds_init", STREAM, .prepare = prepare_read_fds },
    { "weft_datagram_send_init", DATAGRAM, .prepare = prepare_datagram_send },
    { "weft_datagram_send_to_init", DATAGRAM, .prepare = prepare_datagram_send_to },
    { "weft_datagram_receive_init", DATAGRAM, .prepare = prepare_datagram_receive },
    { "weft_datagram_receive_from_init", DATAGRAM, .prepare = prepare_datagram_receive_from },
    { "weft_datagram_peek_init", DATAGRAM, .prepare = prepare_datagram_peek },
    { "weft_datagram_send_many_init", DATAGRAM, .prepare = prepare_datagram_send_many },
    { "weft_datagram_receive_many_init", DATAGRAM, .prepare = prepare_datagram_receive_many },
    { "weft_datagram_readable_init", DATAGRAM, .prepare = prepare_datagram_readable },
    { "weft_datagram_writable_init", DATAGRAM, .prepare = prepare_datagram_writable },
};

enum {
    CALLS = sizeof calls / sizeof calls[0],
};

static void check_closed(const struct call *call, union handle handle)
{
    int64_t result = call->run != NULL ? call->run(handle) : weft_await(call->prepare(handle), 0);
    if (result != WEFT_ECLOSED) {
        test_fail(__FILE__, __LINE__, "%s returned %lld, wanted WEFT_ECLOSED", call->name,
                  (long long)result);
    }
}

/* --- Tests ------------------------------------------------------------------------------ */

static int close_by_task(void *arg)
{
    close_object(arg);
    return 0;
}

/* Closes the object in another task. */
static void close_elsewhere(struct object *object)
{
    weft_task *task;
    CHECK_EQ(weft_go(&task, close_by_task, object), 0);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
}

static void begin(weft_stream **silent)
{
    fill_use();
    CHECK_EQ(weft_duplex(&use.other, silent, 64), 0);
}

/* Replaces the other stream: each copy shuts it down. */
static void renew_other(weft_stream **silent)
{
    weft_stream_close(*silent);
    weft_stream_close(use.other);
    CHECK_EQ(weft_duplex(&use.other, silent, 64), 0);
}

static void end(weft_stream *silent)
{
    weft_stream_close(silent);
    weft_stream_close(use.other);
}

/* Runs the function on a fiber, with 1 and 2 workers. */
static void run(int (*function)(void *arg))
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        weft_runtime *rt = test_start(workers);
        CHECK_EQ(test_run(rt, function, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

static int call_closed(void *arg)
{
    (void)arg;
    weft_stream *silent;
    begin(&silent);
    for (unsigned material = 0; material < MATERIALS; material++) {
        for (unsigned i = 0; i < CALLS; i++) {
            if (calls[i].kind == kinds[material]) {
                fill_use();
                renew_other(&silent);
                struct object object = open_object(material);
                close_elsewhere(&object);
                check_closed(&calls[i], object.handle);
            }
        }
    }
    end(silent);
    return 0;
}

static void call_after_close_by_other_task_returns_eclosed(void)
{
    run(call_closed);
}

/* Returns the handle's slot in the handle table. */
static uintptr_t slot_of(union handle handle)
{
    return (uintptr_t)handle.stream & 0xffffff;
}

static int call_reused(void *arg)
{
    (void)arg;
    weft_stream *silent;
    begin(&silent);
    for (unsigned both = 0; both < MATERIALS * MATERIALS; both++) {
        enum material first = both / MATERIALS;
        enum material second = both % MATERIALS;
        for (unsigned i = 0; i < CALLS; i++) {
            if (calls[i].kind == kinds[first]) {
                fill_use();
                renew_other(&silent);
                struct object object = open_object(first);
                close_elsewhere(&object);
                struct object stranger = open_object(second);
                CHECK_EQ(slot_of(stranger.handle), slot_of(object.handle));
                check_closed(&calls[i], object.handle);
                check_untouched(&stranger);
                close_object(&stranger);
            }
        }
    }
    end(silent);
    return 0;
}

/*
 * Goal:   a stale handle does not reach the object that reuses its slot.
 * Method: make each call on an object of each material, after an object of each material has
 *         reused its slot.
 */
static void call_after_reuse_returns_eclosed_and_leaves_stranger_alone(void)
{
    run(call_reused);
}

static int await_prepared(void *arg)
{
    (void)arg;
    weft_stream *silent;
    begin(&silent);
    for (unsigned material = 0; material < MATERIALS; material++) {
        for (unsigned i = 0; i < CALLS; i++) {
            if (calls[i].kind == kinds[material] && calls[i].prepare != NULL) {
                for (unsigned is_reused = 0; is_reused < 2; is_reused++) {
                    fill_use();
                    struct object object = open_object(material);
                    weft_future *future = calls[i].prepare(object.handle);
                    close_elsewhere(&object);
                    struct object stranger = { 0 };
                    if (is_reused == 1) {
                        stranger = open_object(material);
                        CHECK_EQ(slot_of(stranger.handle), slot_of(object.handle));
                    }
                    CHECK_EQ(weft_await(future, 0), WEFT_ECLOSED);
                    if (is_reused == 1) {
                        check_untouched(&stranger);
                        close_object(&stranger);
                    }
                }
            }
        }
    }
    end(silent);
    return 0;
}

static void operation_prepared_before_close_returns_eclosed(void)
{
    run(await_prepared);
}

static int close_again(void *arg)
{
    (void)arg;
    for (unsigned both = 0; both < MATERIALS * MATERIALS; both++) {
        struct object object = open_object(both / MATERIALS);
        enum kind kind = kinds[object.material];
        close_elsewhere(&object);
        close_handle(kind, object.handle);
        struct object stranger = open_object(both % MATERIALS);
        CHECK_EQ(slot_of(stranger.handle), slot_of(object.handle));
        close_handle(kind, object.handle);
        check_untouched(&stranger);
        close_object(&stranger);
        close_handle(kind, object.handle);
    }
    weft_stream_close(NULL);
    weft_listener_close(NULL);
    weft_datagram_close(NULL);
    weft_fd_close(NULL);
    return 0;
}

static void close_of_closed_handle_does_nothing(void)
{
    run(close_again);
}

/* --- After the runtime is destroyed ------------------------------------------------------- */

static struct object left[MATERIALS];

/*
 * Opens an object of each material, and closes them if the argument says so. Otherwise the
 * runtime closes them.
 */
static int leave_open(void *arg)
{
    const bool *is_closed = arg;
    for (unsigned material = 0; material < MATERIALS; material++) {
        left[material] = open_object(material);
    }
    for (unsigned material = 0; *is_closed && material < MATERIALS; material++) {
        close_object(&left[material]);
        left[material].fd = -1;
    }
    return 0;
}

static void call_all_left(bool is_fiber)
{
    fill_use();
    for (unsigned material = 0; material < MATERIALS; material++) {
        for (unsigned i = 0; i < CALLS; i++) {
            if (calls[i].kind == kinds[material] && (is_fiber || !calls[i].is_for_fibers)) {
                check_closed(&calls[i], left[material].handle);
            }
        }
        close_handle(kinds[material], left[material].handle);
    }
}

static int call_in_next_runtime(void *arg)
{
    (void)arg;
    weft_stream *silent;
    struct object strangers[MATERIALS];
    begin(&silent);
    for (unsigned material = 0; material < MATERIALS; material++) {
        strangers[material] = open_object(material);
    }
    for (unsigned material = 0; material < MATERIALS; material++) {
        for (unsigned i = 0; i < CALLS; i++) {
            if (calls[i].kind == kinds[material]) {
                fill_use();
                renew_other(&silent);
                check_closed(&calls[i], left[material].handle);
            }
        }
        close_handle(kinds[material], left[material].handle);
    }
    for (unsigned material = 0; material < MATERIALS; material++) {
        check_untouched(&strangers[material]);
        close_object(&strangers[material]);
    }
    end(silent);
    return 0;
}

/*
 * Goal: the handles of a destroyed runtime are closed, both on a plain thread and in another
 * runtime whose objects reuse their slots.
 */
static void call_after_runtime_is_destroyed_returns_eclosed(void)
{
    for (unsigned i = 0; i < 2; i++) {
        bool is_closed = i == 1;
        weft_runtime *rt = test_start(2);
        CHECK_EQ(test_run(rt, leave_open, &is_closed), 0);
        weft_runtime_destroy(rt);
        use.other = left[MEMORY].peer;
        call_all_left(false);
        rt = test_start(2);
        CHECK_EQ(test_run(rt, call_in_next_runtime, NULL), 0);
        weft_runtime_destroy(rt);
        if (left[COUNTER].fd >= 0) {
            (void)close(left[COUNTER].fd);
        }
    }
}

/* --- Buffered bytes ----------------------------------------------------------------------- */

static int use_buffers(void *arg)
{
    (void)arg;
    struct object object = open_object(LOCAL);
    char in[16];
    char out[16];
    weft_reader reader;
    weft_writer writer;
    weft_text text;
    weft_reader_init(&reader, object.handle.stream, in, sizeof in);
    weft_writer_init(&writer, object.handle.stream, out, sizeof out);
    CHECK_EQ(weft_reader_peek(&reader, SIZE, &text, WEFT_NEVER), 0);
    close_elsewhere(&object);
    CHECK_EQ(weft_read_until(&reader, 'r', &text, 0), 1);
    CHECK_EQ(text.size, 2);
    CHECK_EQ(weft_reader_peek(&reader, 1, &text, 0), 0);
    weft_reader_take(&reader, text.size);
    CHECK_EQ(weft_reader_peek(&reader, 1, &text, 0), WEFT_ECLOSED);
    CHECK_EQ(weft_writer_write(&writer, "abc", 3, 0), 0);
    CHECK_EQ(weft_writer_flush(&writer, 0), WEFT_ECLOSED);
    return 0;
}

/* weft/buffered.h promises it. */
static void buffered_bytes_can_be_read_after_close(void)
{
    run(use_buffers);
}

TEST_MAIN({
    TEST(call_after_close_by_other_task_returns_eclosed),
    TEST(call_after_reuse_returns_eclosed_and_leaves_stranger_alone),
    TEST(operation_prepared_before_close_returns_eclosed),
    TEST(close_of_closed_handle_does_nothing),
    TEST(call_after_runtime_is_destroyed_returns_eclosed),
    TEST(buffered_bytes_can_be_read_after_close),
})
