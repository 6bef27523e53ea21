/* SPDX-License-Identifier: MIT */
/*
 * I/O programs that are canceled, or time out, at each point where they may be suspended.
 *
 * Goal:   a byte that a call has accepted arrives once and in order, unless an error was reported;
 *         a call that was canceled or timed out has transferred nothing and may be repeated; and
 *         no descriptor is left open.
 * Method: streams of known bytes, counted by the writer and the reader. A call that timed out is
 *         repeated, so those runs must be complete.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "links.h"
#include "ports.h"
#include "sweep.h"
#include "test.h"

enum {
    BYTES = 40 * 1000, /* per flow: more than its socket buffers hold */
    PART = 7 * 1000,   /* per write */
    FRAME = 3000,
    FRAMES = 12,
    BUFFER = 4096,   /* of a reader or writer: one frame */
    MESSAGES = 24,   /* more than a Unix socket queues */
    SMALL_ROOM = 16, /* The kernel rounds it up. */
    FLOWS_MAX = 4,
};

/* Bytes that go in one direction. */
struct flow {
    weft_stream *to;
    weft_stream *from;
    uint64_t seed;
    _Atomic(uint64_t) written; /* accepted by calls, including calls that failed later */
    _Atomic(uint64_t) arrived;
    _Atomic(bool) has_ended; /* its reader has seen the end */
};

static struct flow flows[FLOWS_MAX];
static unsigned fds_before;

static void flows_begin(void)
{
    memset(flows, 0, sizeof flows);
    for (unsigned i = 0; i < FLOWS_MAX; i++) {
        flows[i].seed = i + 1;
    }
    fds_before = link_fds();
}

/* A reader that has seen the end has everything that was written. */
static void check_flow(const struct flow *flow, uint64_t written)
{
    CHECK_LE(atomic_load(&flow->arrived), written);
    if (atomic_load(&flow->has_ended)) {
        CHECK_EQ(atomic_load(&flow->arrived), written);
    }
}

static int write_flow(void *arg)
{
    struct flow *flow = arg;
    unsigned char part[PART];
    int err = 0;
    for (uint64_t at = 0; at < BYTES && err == 0; at = atomic_load(&flow->written)) {
        size_t size = BYTES - at < PART ? BYTES - at : PART;
        link_fill(part, size, flow->seed, at);
        struct iovec rest[2] = { { part, size / 3 }, { part + size / 3, size - size / 3 } };
        do {
            err = weft_writev_all(flow->to, rest, 2, WEFT_NEVER);
        } while (err == WEFT_ETIMEDOUT);
        atomic_fetch_add(&flow->written, size - rest[0].iov_len - rest[1].iov_len);
    }
    weft_stream_close(flow->to);
    return err;
}

static int read_to_end(struct flow *flow)
{
    unsigned char part[PART / 2];
    ssize_t n;
    while ((n = weft_read(flow->from, part, sizeof part, WEFT_NEVER)) > 0 || n == WEFT_ETIMEDOUT) {
        if (n > 0) {
            uint64_t at = atomic_fetch_add(&flow->arrived, (uint64_t)n);
            link_check(part, (size_t)n, flow->seed, at);
        }
    }
    atomic_store(&flow->has_ended, n == 0);
    return (int)n;
}

static int read_flow(void *arg)
{
    struct flow *flow = arg;
    int err = read_to_end(flow);
    weft_stream_close(flow->from);
    return err;
}

/* Starts a task that closes its stream. Closes the stream if the task cannot be started. */
static int start(weft_scope *scope, int (*function)(void *arg), struct flow *flow,
                 weft_stream *stream)
{
    int err = weft_scope_go(scope, function, flow);
    if (err != 0) {
        weft_stream_close(stream);
    }
    return err;
}

static int start_flow(weft_scope *scope, struct flow *flow)
{
    int writes = start(scope, write_flow, flow, flow->to);
    int reads = start(scope, read_flow, flow, flow->from);
    return writes != 0 ? writes : reads;
}

static void open_pair(weft_stream **one, weft_stream **other)
{
    CHECK_EQ(weft_stream_pair(one, other), 0);
    CHECK_EQ(weft_stream_set_option(*one, WEFT_OPTION_SEND_BUFFER, SMALL_ROOM), 0);
    CHECK_EQ(weft_stream_set_option(*other, WEFT_OPTION_SEND_BUFFER, SMALL_ROOM), 0);
}

/* --- Frames over a connection ------------------------------------------------------------- */

static weft_listener *listener;
static struct place where;
static struct flow *const frames = &flows[0]; /* counted in frames */

static int write_frames(weft_stream *stream)
{
    char buffer[BUFFER];
    unsigned char frame[FRAME];
    weft_writer writer;
    int err = 0;
    weft_writer_init(&writer, stream, buffer, sizeof buffer);
    for (uint64_t i = 0; i < FRAMES && err == 0; i++) {
        link_fill(frame, FRAME, frames->seed, i * FRAME);
        err = weft_write_frame(&writer, 2, frame, FRAME, WEFT_NEVER);
        CHECK(err == 0 || err == WEFT_ECANCELED); /* It fits. */
        while (err == 0 && (err = weft_writer_flush(&writer, WEFT_NEVER)) == WEFT_ETIMEDOUT) {
            err = 0;
        }
        atomic_fetch_add(&frames->written, err == 0);
    }
    return err;
}

static int read_answer(weft_stream *stream)
{
    char buffer[64];
    weft_reader reader;
    weft_text line;
    int result;
    weft_reader_init(&reader, stream, buffer, sizeof buffer);
    do {
        result = weft_read_line(&reader, &line, WEFT_NEVER);
    } while (result == WEFT_ETIMEDOUT);
    if (result != 1) {
        return result == 0 ? WEFT_EEND : result;
    }
    CHECK_EQ(line.size, 2);
    CHECK_EQ(memcmp(line.at, "12", 2), 0);
    return 0;
}

/* Retries a connect that timed out; the server finds the first connection closed. */
static int send_frames(void *arg)
{
    weft_stream *stream;
    int err;
    (void)arg;
    do {
        err = weft_connect(&stream, where.text, NULL, WEFT_NEVER);
    } while (err == WEFT_ETIMEDOUT);
    if (err != 0) {
        return err;
    }
    err = write_frames(stream);
    err = err == 0 ? weft_stream_shutdown(stream, WEFT_WRITE_SIDE) : err;
    err = err == 0 ? read_answer(stream) : err;
    weft_stream_close(stream);
    return err;
}

static int read_frames(weft_stream *stream)
{
    char buffer[BUFFER];
    weft_reader reader;
    weft_text frame;
    int result;
    weft_reader_init(&reader, stream, buffer, sizeof buffer);
    while ((result = weft_read_frame(&reader, 2, &frame, WEFT_NEVER)) == 1 ||
           result == WEFT_ETIMEDOUT) {
        if (result == 1) {
            uint64_t at = atomic_fetch_add(&frames->arrived, 1);
            CHECK_EQ(frame.size, FRAME);
            link_check(frame.at, FRAME, frames->seed, at * FRAME);
        }
    }
    return result;
}

static int write_answer(weft_stream *stream)
{
    char buffer[64];
    weft_writer writer;
    int err;
    weft_writer_init(&writer, stream, buffer, sizeof buffer);
    err = weft_writer_print(&writer, WEFT_NEVER, "%d\r\n", (int)atomic_load(&frames->arrived));
    CHECK(err == 0 || err == WEFT_ECANCELED); /* It fits. */
    while (err == 0 && (err = weft_writer_flush(&writer, WEFT_NEVER)) == WEFT_ETIMEDOUT) {
        err = 0;
    }
    return err;
}

static int receive_frames(void *arg)
{
    int err = 0;
    (void)arg;
    while (err == 0 && atomic_load(&frames->arrived) < FRAMES) {
        weft_stream *stream;
        do {
            err = weft_accept(listener, &stream, WEFT_NEVER);
        } while (err == WEFT_ETIMEDOUT);
        if (err == 0) {
            err = read_frames(stream);
            err = err == 0 && atomic_load(&frames->arrived) == FRAMES ? write_answer(stream) : err;
            weft_stream_close(stream);
        }
    }
    return err;
}

static int streams(void *arg)
{
    int err = 0;
    (void)arg;
    weft_shield_enter();
    listener = port_listen("tcp://127.0.0.1:0", &where);
    weft_shield_leave();
    open_pair(&flows[1].to, &flows[1].from);
    CHECK_EQ(weft_pipe(&flows[2].from, &flows[2].to), 0);
    WEFT_SCOPE(scope, NULL, &err)
    {
        int errs[] = { start_flow(scope, &flows[1]), weft_scope_go(scope, send_frames, NULL),
                       start_flow(scope, &flows[2]), weft_scope_go(scope, receive_frames, NULL) };
        for (unsigned i = 0; i < 4 && err == 0; i++) {
            err = errs[i];
        }
    }
    weft_listener_close(listener);
    return err;
}

static void streams_check(bool is_whole)
{
    CHECK_EQ(link_fds(), fds_before);
    CHECK_LE(atomic_load(&frames->arrived), FRAMES);
    CHECK(!is_whole || atomic_load(&frames->arrived) == FRAMES);
    for (unsigned i = 1; i <= 2; i++) {
        check_flow(&flows[i], atomic_load(&flows[i].written));
        CHECK(!is_whole || atomic_load(&flows[i].arrived) == BYTES);
    }
}

static void interrupted_streams_continue_where_they_stopped(void)
{
    sweep(&(struct program){ streams, flows_begin, streams_check, true });
}

/* --- Copies ------------------------------------------------------------------------------- */

static weft_stream *client; /* of the proxy: one task writes to it, another reads */
static weft_stream *proxy[2];
static weft_stream *server;
static uint64_t copied;

static int write_to_client(void *arg)
{
    int err = 0;
    unsigned char part[PART];
    struct flow *flow = arg;
    for (uint64_t at = 0; at < BYTES && err == 0; at += PART) {
        size_t size = BYTES - at < PART ? BYTES - at : PART;
        link_fill(part, size, flow->seed, at);
        err = weft_write_all(client, part, size, WEFT_NEVER);
    }
    atomic_store(&flow->written, BYTES);
    return err == 0 ? weft_stream_shutdown(client, WEFT_WRITE_SIDE) : err;
}

static int pass_both_ways(void *arg)
{
    (void)arg;
    int err = weft_copy_both(proxy[0], proxy[1], WEFT_NEVER);
    weft_stream_close(proxy[0]);
    weft_stream_close(proxy[1]);
    return err;
}

static int echo(void *arg)
{
    (void)arg;
    int err = weft_copy(server, server, NULL, WEFT_NEVER);
    weft_stream_close(server);
    return err;
}

/* Copies from one pipe to another. */
static int pass_on(void *arg)
{
    (void)arg;
    int err = weft_copy(flows[1].from, flows[2].to, &copied, WEFT_NEVER);
    weft_stream_close(flows[1].from);
    weft_stream_close(flows[2].to);
    return err;
}

/* Closes the streams of children that could not be started. */
static int start_proxy(weft_scope *scope)
{
    int passes = weft_scope_go(scope, pass_both_ways, NULL);
    if (passes != 0) {
        weft_stream_close(proxy[0]);
        weft_stream_close(proxy[1]);
    }
    int echoes = start(scope, echo, NULL, server);
    return passes != 0 ? passes : echoes;
}

static int start_pipes(weft_scope *scope)
{
    int writes = start(scope, write_flow, &flows[1], flows[1].to);
    int passes = weft_scope_go(scope, pass_on, NULL);
    if (passes != 0) {
        weft_stream_close(flows[1].from);
        weft_stream_close(flows[2].to);
    }
    int reads = start(scope, read_flow, &flows[2], flows[2].from);
    return writes != 0 ? writes : passes != 0 ? passes : reads;
}

static int copies(void *arg)
{
    int err = 0;
    (void)arg;
    flows[2].seed = flows[1].seed;
    copied = 0;
    open_pair(&client, &proxy[0]);
    open_pair(&proxy[1], &server);
    flows[0].from = client;
    CHECK_EQ(weft_pipe(&flows[1].from, &flows[1].to), 0);
    CHECK_EQ(weft_pipe(&flows[2].from, &flows[2].to), 0);
    WEFT_SCOPE(scope, NULL, &err)
    {
        int errs[] = { start_proxy(scope), start_pipes(scope),
                       weft_scope_go(scope, write_to_client, &flows[0]) };
        for (unsigned i = 0; i < 3 && err == 0; i++) {
            err = errs[i];
        }
        int read = read_to_end(&flows[0]);
        err = err == 0 ? read : err;
    }
    weft_stream_close(client); /* No task writes to it any more. */
    return err;
}

static void copies_check(bool is_whole)
{
    CHECK_EQ(link_fds(), fds_before);
    CHECK_LE(atomic_load(&flows[0].arrived), BYTES);
    CHECK_LE(copied, atomic_load(&flows[1].written));
    check_flow(&flows[2], copied);
    for (unsigned i = 0; i <= 2; i += 2) {
        CHECK(!is_whole || atomic_load(&flows[i].arrived) == BYTES);
    }
}

static void interrupted_copies_lose_nothing(void)
{
    sweep(&(struct program){ copies, flows_begin, copies_check, false });
}

/* --- Datagrams ---------------------------------------------------------------------------- */

struct post {
    weft_datagram *to;
    weft_datagram *from;
    _Atomic(uint64_t) sent;
    _Atomic(uint64_t) received;
};

static struct post posts[2];

static int send_messages(void *arg)
{
    struct post *post = arg;
    int n = 0;
    for (uint64_t next = 0; next < MESSAGES && n >= 0;) {
        uint64_t numbers[4] = { next, next + 1, next + 2, next + 3 };
        weft_packet packets[4];
        memset(packets, 0, sizeof packets);
        for (unsigned i = 0; i < 4; i++) {
            packets[i].data = &numbers[i];
            packets[i].size = sizeof numbers[i];
        }
        size_t left = MESSAGES - next < 4 ? MESSAGES - next : 4;
        do {
            n = next % 2 == 0 ? weft_datagram_send_many(post->to, packets, left, WEFT_NEVER)
                              : (int)weft_datagram_send(post->to, numbers, 8, WEFT_NEVER);
        } while (n == WEFT_ETIMEDOUT);
        if (n > 0) {
            uint64_t count = next % 2 == 0 ? (uint64_t)n : 1;
            next += count;
            atomic_fetch_add(&post->sent, count);
        }
    }
    weft_datagram_close(post->to);
    return n < 0 ? n : 0;
}

/* Messages arrive in order, each once: nothing is lost within one machine. */
static int receive_messages(void *arg)
{
    struct post *post = arg;
    ssize_t n = 0;
    while (atomic_load(&post->received) < MESSAGES && (n >= 0 || n == WEFT_ETIMEDOUT)) {
        uint64_t number = UINT64_MAX;
        n = weft_datagram_receive(post->from, &number, sizeof number, WEFT_NEVER);
        if (n >= 0) {
            CHECK_EQ(n, sizeof number);
            CHECK_EQ(number, atomic_fetch_add(&post->received, 1));
        }
    }
    weft_datagram_close(post->from);
    return n < 0 ? (int)n : 0;
}

static int start_post(weft_scope *scope, struct post *post)
{
    int sends = weft_scope_go(scope, send_messages, post);
    if (sends != 0) {
        weft_datagram_close(post->to);
    }
    int receives = weft_scope_go(scope, receive_messages, post);
    if (receives != 0) {
        weft_datagram_close(post->from);
    }
    return sends != 0 ? sends : receives;
}

static int datagrams(void *arg)
{
    int err = 0;
    weft_address address;
    (void)arg;
    CHECK_EQ(weft_datagram_pair(&posts[0].to, &posts[0].from), 0);
    weft_shield_enter();
    CHECK_EQ(weft_datagram_open(&posts[1].from, "udp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(weft_datagram_open(&posts[1].to, "udp://127.0.0.1:0", NULL), 0);
    weft_shield_leave();
    CHECK_EQ(weft_datagram_address(posts[1].from, &address), 0);
    CHECK_EQ(weft_datagram_connect(posts[1].to, &address), 0);
    WEFT_SCOPE(scope, NULL, &err)
    {
        int errs[] = { start_post(scope, &posts[0]), start_post(scope, &posts[1]) };
        err = errs[0] != 0 ? errs[0] : errs[1];
    }
    return err;
}

static void datagrams_begin(void)
{
    memset(posts, 0, sizeof posts);
    fds_before = link_fds();
}

static void datagrams_check(bool is_whole)
{
    CHECK_EQ(link_fds(), fds_before);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_LE(atomic_load(&posts[i].received), atomic_load(&posts[i].sent));
        CHECK(!is_whole || atomic_load(&posts[i].received) == MESSAGES);
    }
}

static void interrupted_datagrams_arrive_once(void)
{
    sweep(&(struct program){ datagrams, datagrams_begin, datagrams_check, true });
}

TEST_MAIN({
    TEST_DEBUG(interrupted_streams_continue_where_they_stopped),
    TEST_DEBUG(interrupted_copies_lose_nothing),
    TEST_DEBUG(interrupted_datagrams_arrive_once),
})
