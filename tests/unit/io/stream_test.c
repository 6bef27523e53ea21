/* SPDX-License-Identifier: MIT */
/*
 * stream_test.c - stream reads and writes on fibers, in stackless tasks and on plain threads, up
 * to their limits.
 */
#include "io/stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "crowd.h"
#include "links.h"
#include "rt.h"
#include "test.h"

/* --- One byte, many bytes --------------------------------------------------------------- */

static int write_hello(void *arg)
{
    struct link *link = arg;
    CHECK_EQ(weft_yield(), 0);
    CHECK_EQ(weft_write(link->near, "hello", 5, WEFT_NEVER), 5);
    return 0;
}

static int read_before_it_is_written(void *arg)
{
    struct link *link = arg;
    weft_task *writer;
    char buffer[16];
    CHECK_EQ(weft_go(&writer, write_hello, link), 0);
    CHECK_EQ(weft_read(link->far, buffer, sizeof buffer, WEFT_NEVER), 5);
    CHECK_EQ(memcmp(buffer, "hello", 5), 0);
    CHECK_EQ(weft_join(writer, NULL, WEFT_NEVER), 0);
    return 0;
}

static void read_waits_for_data(void)
{
    link_run_all(read_before_it_is_written);
}

static int read_twice(void *arg)
{
    struct link *link = arg;
    char buffer[8];
    for (unsigned i = 0; i < 100; i++) {
        CHECK_EQ(weft_write(link->near, "abcdef", 6, WEFT_NEVER), 6);
        CHECK_EQ(weft_read(link->far, buffer, 4, WEFT_NEVER), 4);
        CHECK_EQ(weft_read(link->far, buffer + 4, 4, WEFT_NEVER), 2);
        CHECK_EQ(memcmp(buffer, "abcdef", 6), 0);
        CHECK_EQ(weft_try_read(link->far, buffer, sizeof buffer), -EAGAIN);
    }
    return 0;
}

static void remaining_bytes_are_returned_by_next_read(void)
{
    link_run_all(read_twice);
}

static int read_to_end(void *arg)
{
    struct link *link = arg;
    char buffer[8];
    CHECK_EQ(weft_write(link->near, "xy", 2, WEFT_NEVER), 2);
    weft_stream_close(link->near);
    link->near = NULL;
    CHECK_EQ(weft_read(link->far, buffer, sizeof buffer, WEFT_NEVER), 2);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(weft_read(link->far, buffer, sizeof buffer, WEFT_NEVER), 0);
        CHECK_EQ(weft_try_read(link->far, buffer, sizeof buffer), 0);
    }
    CHECK_EQ(weft_read_exact(link->far, buffer, 1, WEFT_NEVER), WEFT_EEND);
    return 0;
}

static void read_at_end_of_stream_returns_zero(void)
{
    link_run_all(read_to_end);
}

static int end_during_read(void *arg)
{
    struct link *link = arg;
    char buffer[8];
    CHECK_EQ(weft_yield(), 0);
    CHECK_EQ(weft_sleep(WEFT_MS), 0);
    weft_stream_close(link->near);
    link->near = NULL;
    (void)buffer;
    return 0;
}

static int read_until_it_ends(void *arg)
{
    struct link *link = arg;
    weft_task *ender;
    char buffer[8];
    CHECK_EQ(weft_go(&ender, end_during_read, link), 0);
    CHECK_EQ(weft_read(link->far, buffer, sizeof buffer, WEFT_NEVER), 0);
    CHECK_EQ(weft_join(ender, NULL, WEFT_NEVER), 0);
    return 0;
}

static void end_of_stream_wakes_pending_read(void)
{
    link_run_all(read_until_it_ends);
}

static int move_nothing(void *arg)
{
    struct link *link = arg;
    struct iovec none[2] = { { NULL, 0 }, { NULL, 0 } };
    CHECK_EQ(weft_read(link->far, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_write(link->near, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_read_exact(link->far, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_write_all(link->near, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_readv(link->far, none, 2, WEFT_NEVER), 0);
    CHECK_EQ(weft_writev(link->near, none, 2, WEFT_NEVER), 0);
    CHECK_EQ(weft_readv_exact(link->far, none, 2, WEFT_NEVER), 0);
    CHECK_EQ(weft_writev_all(link->near, none, 2, WEFT_NEVER), 0);
    CHECK_EQ(weft_try_read(link->far, NULL, 0), 0);
    CHECK_EQ(weft_try_write(link->near, NULL, 0), 0);
    return 0;
}

static void empty_transfer_returns_immediately(void)
{
    link_run_all(move_nothing);
}

/* --- More data than fits ---------------------------------------------------------------- */

enum {
    MUCH = 4 * 1000 * 1000,
};

static size_t much(void)
{
    return MUCH / (test_is_sanitized() ? 8 : 1);
}

static int write_much(void *arg)
{
    struct link *link = arg;
    unsigned char *data = malloc(much());
    link_fill(data, much(), 1, 0);
    CHECK_EQ(weft_write_all(link->near, data, much(), WEFT_NEVER), 0);
    free(data);
    weft_stream_close(link->near);
    link->near = NULL;
    return 0;
}

static int read_much(void *arg)
{
    struct link *link = arg;
    weft_task *writer;
    unsigned char buffer[10007];
    uint64_t at = 0;
    ssize_t n;
    CHECK_EQ(weft_go(&writer, write_much, link), 0);
    while ((n = weft_read(link->far, buffer, sizeof buffer, WEFT_NEVER)) > 0) {
        link_check(buffer, (size_t)n, 1, at);
        at += (uint64_t)n;
    }
    CHECK_EQ(n, 0);
    CHECK_EQ(at, much());
    CHECK_EQ(weft_join(writer, NULL, WEFT_NEVER), 0);
    return 0;
}

static void writer_waits_for_slow_reader(void)
{
    link_run_all(read_much);
}

static int read_much_exactly(void *arg)
{
    struct link *link = arg;
    weft_task *writer;
    unsigned char *data = malloc(much() + 1);
    CHECK_EQ(weft_go(&writer, write_much, link), 0);
    CHECK_EQ(weft_read_exact(link->far, data, much() / 2, WEFT_NEVER), 0);
    link_check(data, much() / 2, 1, 0);
    /* One byte less than that is available. */
    size_t rest = much() - much() / 2;
    struct iovec vectors[3] = { { data, 10 }, { data + 10, 0 }, { data + 10, rest - 9 } };
    CHECK_EQ(weft_readv_exact(link->far, vectors, 3, WEFT_NEVER), WEFT_EEND);
    CHECK_EQ(vectors[0].iov_len, 0);
    CHECK_EQ(vectors[2].iov_len, 1);
    CHECK((unsigned char *)vectors[2].iov_base == data + rest);
    link_check(data, rest, 1, much() / 2);
    CHECK_EQ(weft_join(writer, NULL, WEFT_NEVER), 0);
    free(data);
    return 0;
}

static void read_exact_returns_eend_if_stream_ends_early(void)
{
    link_run_all(read_much_exactly);
}

/* Other tasks run although the stream is always readable. */
static int read_all_at_once(void *arg)
{
    struct link *link = arg;
    unsigned char *data = malloc(much());
    CHECK_EQ(weft_read_exact(link->far, data, much(), WEFT_NEVER), 0);
    link_check(data, much(), 1, 0);
    free(data);
    return 0;
}

static int read_beside_writer(void *arg)
{
    weft_task *reader;
    CHECK_EQ(weft_go(&reader, read_all_at_once, arg), 0);
    CHECK_EQ(write_much(arg), 0);
    CHECK_EQ(weft_join(reader, NULL, WEFT_NEVER), 0);
    return 0;
}

static void one_call_reads_large_amount(void)
{
    link_run_all(read_beside_writer);
}

static int move_vectors(void *arg)
{
    struct link *link = arg;
    char one[3];
    char two[4];
    char text[] = "abcdefg";
    struct iovec from[] = { { text, 2 }, { NULL, 0 }, { text + 2, 5 } };
    struct iovec to[] = { { one, sizeof one }, { two, sizeof two } };
    CHECK_EQ(weft_writev(link->near, from, 3, WEFT_NEVER), 7);
    CHECK_EQ(weft_readv(link->far, to, 2, WEFT_NEVER), 7);
    CHECK_EQ(memcmp(one, "abc", 3), 0);
    CHECK_EQ(memcmp(two, "defg", 4), 0);
    CHECK_EQ(weft_writev_all(link->near, from, 3, WEFT_NEVER), 0);
    CHECK_EQ(from[2].iov_len, 0);
    CHECK_EQ(weft_readv_exact(link->far, to, 2, WEFT_NEVER), 0);
    CHECK_EQ(memcmp(two, "defg", 4), 0);
    return 0;
}

static void vectors_are_transferred_in_order(void)
{
    link_run_all(move_vectors);
}

static int move_many_vectors(void *arg)
{
    enum {
        COUNT = 3000,
    };
    struct link *link = arg;
    static unsigned char from[COUNT];
    static unsigned char to[COUNT];
    static struct iovec vectors[COUNT];
    link_fill(from, COUNT, 3, 0);
    for (int i = 0; i < COUNT; i++) {
        vectors[i] = (struct iovec){ from + i, 1 };
    }
    CHECK_EQ(weft_writev_all(link->near, vectors, COUNT, WEFT_NEVER), 0);
    for (int i = 0; i < COUNT; i++) {
        vectors[i] = (struct iovec){ to + i, 1 };
    }
    CHECK_EQ(weft_readv_exact(link->far, vectors, COUNT, WEFT_NEVER), 0);
    link_check(to, COUNT, 3, 0);
    return 0;
}

static void vector_count_may_exceed_system_limit(void)
{
    link_run_all(move_many_vectors);
}

static int peek_first(void *arg)
{
    struct link *link = arg;
    char buffer[4] = "";
    CHECK_EQ(weft_write(link->near, "peek", 4, WEFT_NEVER), 4);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(weft_peek(link->far, buffer, 2, WEFT_NEVER), 2);
        CHECK_EQ(memcmp(buffer, "pe", 2), 0);
    }
    CHECK_EQ(weft_read(link->far, buffer, 4, WEFT_NEVER), 4);
    CHECK_EQ(memcmp(buffer, "peek", 4), 0);
    return 0;
}

static int peek_at_pipe(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_PIPE);
    char byte;
    CHECK_EQ(weft_write(link.near, "x", 1, WEFT_NEVER), 1);
    CHECK_EQ(weft_peek(link.far, &byte, 1, WEFT_NEVER), -EOPNOTSUPP);
    link_close(&link);
    return 0;
}

static void peeked_bytes_can_be_read_again(void)
{
    link_run_both_ways(peek_first);
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, peek_at_pipe, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Deadlines and cancellation --------------------------------------------------------- */

/* Fills the stream until it is full. Returns the number of bytes written. */
static uint64_t fill_up(weft_stream *stream, uint64_t seed)
{
    unsigned char data[4096];
    uint64_t at = 0;
    ssize_t n;
    do {
        link_fill(data, sizeof data, seed, at);
        n = weft_try_write(stream, data, sizeof data);
        at += n > 0 ? (uint64_t)n : 0;
    } while (n > 0);
    CHECK_EQ(n, -EAGAIN);
    return at;
}

static void drain(weft_stream *stream, uint64_t seed, uint64_t count)
{
    unsigned char data[4096];
    for (uint64_t at = 0; at < count;) {
        size_t part = count - at < sizeof data ? (size_t)(count - at) : sizeof data;
        ssize_t n = weft_read(stream, data, part, WEFT_NEVER);
        CHECK(n > 0);
        link_check(data, (size_t)n, seed, at);
        at += (uint64_t)n;
    }
}

static int run_out_of_time(void *arg)
{
    struct link *link = arg;
    char buffer[4];
    weft_time start = weft_now();
    CHECK_EQ(weft_read(link->far, buffer, 4, weft_after(3 * WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_read_exact(link->far, buffer, 4, weft_after(3 * WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_GE(weft_now() - start, 6 * WEFT_MS);
    CHECK_EQ(weft_read(link->far, buffer, 4, 0), WEFT_ETIMEDOUT);
    uint64_t full = fill_up(link->near, 5);
    CHECK_EQ(weft_write(link->near, "no", 2, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    drain(link->far, 5, full);
    CHECK_EQ(weft_write(link->near, "yes", 3, WEFT_NEVER), 3);
    CHECK_EQ(weft_try_read(link->far, buffer, 4), 3);
    CHECK_EQ(weft_try_write(link->near, "yes", 3), 3);
    CHECK_EQ(weft_try_read(link->far, buffer, 4), 3);
    return 0;
}

static void timed_out_call_transfers_nothing(void)
{
    link_run_all(run_out_of_time);
}

static int read_and_be_canceled(void *arg)
{
    struct link *link = arg;
    char buffer[4];
    ssize_t n = weft_read(link->far, buffer, 4, WEFT_NEVER);
    CHECK_EQ(weft_read(link->far, buffer, 4, WEFT_NEVER), WEFT_ECANCELED);
    return (int)n;
}

static int cancel_reader(void *arg)
{
    struct link *link = arg;
    char buffer[4];
    weft_task *reader;
    int result;
    for (unsigned i = 0; i < 50; i++) {
        CHECK_EQ(weft_go(&reader, read_and_be_canceled, link), 0);
        CHECK_EQ(weft_sleep(i % 3 * 100 * WEFT_US), 0);
        CHECK_EQ(weft_write(link->near, "ab", 2, WEFT_NEVER), 2);
        weft_cancel(reader);
        CHECK_EQ(weft_join(reader, &result, WEFT_NEVER), 0);
        /* The data was read, or it is still in the stream. */
        if (result == WEFT_ECANCELED) {
            CHECK_EQ(weft_read(link->far, buffer, 4, WEFT_NEVER), 2);
        } else {
            CHECK_EQ(result, 2);
        }
        CHECK_EQ(weft_try_read(link->far, buffer, 4), -EAGAIN);
    }
    return 0;
}

static void canceled_read_takes_all_or_nothing(void)
{
    link_run_all(cancel_reader);
}

/* --- Closing ---------------------------------------------------------------------------- */

static int read_from_closed(void *arg)
{
    char byte;
    return (int)weft_read(((struct link *)arg)->far, &byte, 1, WEFT_NEVER);
}

static int write_to_closed(void *arg)
{
    return (int)weft_write(((struct link *)arg)->near, "x", 1, WEFT_NEVER);
}

static int close_under_others(void *arg)
{
    struct link *link = arg;
    weft_task *readers[3];
    weft_task *writer;
    int result;
    (void)fill_up(link->near, 1);
    CHECK_EQ(weft_go(&writer, write_to_closed, link), 0);
    link_wait_for_calls(link->near, 1);
    weft_stream_close(link->near);
    CHECK_EQ(weft_join(writer, &result, WEFT_NEVER), 0);
    CHECK_EQ(result, WEFT_ECLOSED);
    link->near = NULL;
    drain(link->far, 1, 0);
    struct link other = link_open(LINK_LOCAL);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(weft_go(&readers[i], read_from_closed, &other), 0);
    }
    link_wait_for_calls(other.far, 3);
    weft_stream_close(other.far);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(weft_join(readers[i], &result, WEFT_NEVER), 0);
        CHECK_EQ(result, WEFT_ECLOSED);
    }
    weft_stream_close(other.near);
    return 0;
}

static void close_wakes_waiters_with_eclosed(void)
{
    link_run_all(close_under_others);
}

static int shut_sides(void *arg)
{
    struct link *link = arg;
    char buffer[4];
    CHECK_EQ(weft_write(link->near, "hi", 2, WEFT_NEVER), 2);
    CHECK_EQ(weft_stream_shutdown(link->near, WEFT_WRITE_SIDE), 0);
    CHECK_EQ(weft_read_exact(link->far, buffer, 2, WEFT_NEVER), 0);
    CHECK_EQ(weft_read(link->far, buffer, 4, WEFT_NEVER), 0);
    CHECK_EQ(weft_write(link->near, "hi", 2, WEFT_NEVER), -EPIPE);
    /* The other direction still works. */
    CHECK_EQ(weft_write(link->far, "back", 4, WEFT_NEVER), 4);
    CHECK_EQ(weft_read(link->near, buffer, 4, WEFT_NEVER), 4);
    CHECK_EQ(weft_stream_shutdown(link->far, WEFT_BOTH_SIDES), 0);
    CHECK_EQ(weft_read(link->near, buffer, 4, WEFT_NEVER), 0);
    return 0;
}

/* As documented for each kind of stream at weft_stream_shutdown(). */
static int shut_read_side(void *arg)
{
    static const struct {
        enum link_kind kind;
        bool keeps_unread;
        bool peer_may_write;
    } kinds[] = { { LINK_TCP, true, true },
                  { LINK_LOCAL, true, false },
                  { LINK_MEMORY, false, false } };
    char buffer[4];
    (void)arg;
    for (unsigned i = 0; i < 3; i++) {
        struct link link = link_open(kinds[i].kind);
        CHECK_EQ(weft_write(link.far, "hi", 2, WEFT_NEVER), 2);
        CHECK_EQ(weft_read(link.near, buffer, 1, WEFT_NEVER), 1);
        CHECK_EQ(weft_stream_shutdown(link.near, WEFT_READ_SIDE), 0);
        if (kinds[i].keeps_unread) {
            CHECK_EQ(weft_read(link.near, buffer, 4, WEFT_NEVER), 1);
        }
        CHECK_EQ(weft_read(link.near, buffer, 4, WEFT_NEVER), 0);
        CHECK_EQ(weft_write(link.far, "x", 1, WEFT_NEVER), kinds[i].peer_may_write ? 1 : -EPIPE);
        CHECK_EQ(weft_write(link.near, "y", 1, WEFT_NEVER), 1); /* The other direction works. */
        CHECK_EQ(weft_read(link.far, buffer, 4, WEFT_NEVER), 1);
        link_close(&link);
    }
    return 0;
}

static void shutdown_of_read_side_ends_reads(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, shut_read_side, NULL), 0);
    weft_runtime_destroy(rt);
}

static int shut_pipe(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_PIPE);
    CHECK_EQ(weft_stream_shutdown(link.near, WEFT_WRITE_SIDE), -EOPNOTSUPP);
    link_close(&link);
    return 0;
}

static void shutdown_of_one_side_leaves_other_open(void)
{
    link_run_both_ways(shut_sides);
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, shut_pipe, NULL), 0);
    weft_runtime_destroy(rt);
}

static int write_to_closed_peer(void *arg)
{
    struct link *link = arg;
    weft_stream_close(link->far);
    link->far = NULL;
    ssize_t n = 0;
    for (unsigned i = 0; i < 1000 && n >= 0; i++) { /* TCP needs a while to notice. */
        n = weft_write(link->near, "x", 1, WEFT_NEVER);
    }
    CHECK(n == -EPIPE || n == -ECONNRESET);
    return 0;
}

static void write_to_closed_peer_returns_error_without_signal(void)
{
    link_run_all(write_to_closed_peer);
}

/* --- In stackless tasks and on plain threads -------------------------------------------- */

enum {
    PAIRS = 6,
    MESSAGE = 1000,
};

/* Member 2i writes to member 2i + 1 over link i. The receiver checks the data. */
static struct end {
    weft_io io;
    unsigned char buffer[MESSAGE];
} ends[2 * PAIRS];

static struct link links[PAIRS];
static enum link_kind crowd_link_kind;

static int talk(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    struct end *end = &ends[self->index];
    struct link *link = &links[self->index / 2];
    bool writes = self->index % 2 == 0;
    WEFT_BEGIN(co);
    for (self->round = 0; self->round < crowd_rounds() / 10 + 2; self->round++) {
        if (writes) {
            link_fill(end->buffer, MESSAGE, self->index / 2, self->round * MESSAGE);
            weft_write_all_init(&end->io, link->near, end->buffer, MESSAGE);
        } else {
            weft_read_exact_init(&end->io, link->far, end->buffer, MESSAGE);
        }
        WEFT_AWAIT(co, self->err, &end->io.future);
        CHECK_EQ(self->err, 0);
        if (!writes) {
            link_check(end->buffer, MESSAGE, self->index / 2, self->round * MESSAGE);
        }
        self->sum++;
    }
    WEFT_END(co, 0);
}

static int open_links(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < PAIRS; i++) {
        links[i] = link_open(crowd_link_kind);
    }
    return 0;
}

static void tasks_of_all_kinds_exchange_messages(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned kind = 0; kind < LINK_KINDS; kind++) {
        crowd_link_kind = (enum link_kind)kind;
        for (unsigned i = 0; i < 3 * CROWD_KINDS; i++) {
            weft_runtime *rt = test_start(workers[i % 3]);
            CHECK_EQ(test_run(rt, open_links, NULL), 0);
            uint64_t sum = crowd_run(rt, (enum crowd_kind)(i / 3), 2 * PAIRS, talk, NULL);
            CHECK_EQ(sum, 2 * PAIRS * (crowd_rounds() / 10 + 2));
            for (unsigned j = 0; j < PAIRS; j++) {
                link_close(&links[j]);
            }
            weft_runtime_destroy(rt);
        }
    }
}

/* --- In a select ------------------------------------------------------------------------ */

static int select_read(void *arg)
{
    struct link *link = arg;
    struct link other = link_open(LINK_LOCAL);
    char one[4];
    char two[4];
    weft_io reads[2];
    for (unsigned i = 0; i < 20; i++) {
        weft_stream *winner = i % 2 == 0 ? link->near : other.near;
        weft_stream *loser = i % 2 == 0 ? other.near : link->near;
        CHECK_EQ(weft_write(winner, "won", 3, WEFT_NEVER), 3);
        weft_read_init(&reads[0], link->far, one, sizeof one);
        weft_read_init(&reads[1], other.far, two, sizeof two);
        weft_branch branches[] = { { .future = &reads[0].future }, { .future = &reads[1].future } };
        CHECK_EQ(weft_select(branches, 2, 0, WEFT_NEVER), (int)(i % 2));
        CHECK_EQ(branches[i % 2].result, 3);
        CHECK_EQ(weft_write(loser, "lost", 4, WEFT_NEVER), 4);
        CHECK_EQ(weft_read(i % 2 == 0 ? other.far : link->far, two, 4, WEFT_NEVER), 4);
        CHECK_EQ(memcmp(two, "lost", 4), 0);
    }
    link_close(&other);
    return 0;
}

static int select_readable(void *arg)
{
    struct link *link = arg;
    weft_op readable;
    weft_op writable;
    char buffer[4];
    weft_readable_init(&readable, link->far);
    weft_writable_init(&writable, link->near);
    weft_branch branches[] = { { .future = &readable.future }, { .future = &writable.future } };
    CHECK_EQ(weft_select(branches, 2, WEFT_SELECT_ORDERED, WEFT_NEVER), 1);
    CHECK_EQ(weft_try_write(link->near, "now", 3), 3);
    CHECK_EQ(weft_select(branches, 1, 0, WEFT_NEVER), 0);
    CHECK_EQ(branches[0].result, 0);
    CHECK_EQ(weft_try_read(link->far, buffer, 4), 3);
    CHECK_EQ(weft_try_read(link->far, buffer, 4), -EAGAIN);
    CHECK_EQ(weft_select(branches, 1, 0, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    return 0;
}

static void read_that_loses_select_transfers_nothing(void)
{
    link_run_all(select_read);
    link_run_all(select_readable);
}

/* --- Several readers of one stream ------------------------------------------------------ */

enum {
    READERS = 10,
    BYTES = 1000,
};

static _Atomic(uint64_t) bytes_read;

static int read_single_bytes(void *arg)
{
    struct link *link = arg;
    char byte;
    ssize_t n;
    while ((n = weft_read(link->far, &byte, 1, WEFT_NEVER)) == 1) {
        atomic_fetch_add(&bytes_read, 1);
    }
    return (int)n;
}

static int share_stream(void *arg)
{
    struct link *link = arg;
    weft_task *readers[READERS];
    char bytes[BYTES] = "";
    int result;
    atomic_store(&bytes_read, 0);
    for (unsigned i = 0; i < READERS; i++) {
        CHECK_EQ(weft_go(&readers[i], read_single_bytes, link), 0);
    }
    CHECK_EQ(weft_sleep(WEFT_MS), 0);
    CHECK_EQ(weft_write_all(link->near, bytes, BYTES, WEFT_NEVER), 0);
    weft_stream_close(link->near);
    link->near = NULL;
    for (unsigned i = 0; i < READERS; i++) {
        CHECK_EQ(weft_join(readers[i], &result, WEFT_NEVER), 0);
        CHECK_EQ(result, 0);
    }
    CHECK_EQ(atomic_load(&bytes_read), BYTES);
    return 0;
}

/*
 * Goal:   with many readers on one stream, none sleeps while data is available.
 * Method: one event for many bytes, each of which is read by a separate call.
 */
static void many_readers_of_one_stream_miss_no_data(void)
{
    link_run_all(share_stream);
}

/* --- Misuse ----------------------------------------------------------------------------- */

static weft_stream *stream_of_body;

static int read_in_stackless_task(weft_co *co, void *state)
{
    char byte;
    (void)co;
    (void)state;
    return (int)weft_read(stream_of_body, &byte, 1, WEFT_NEVER);
}

static int misuse_in_stackless_task(void *arg)
{
    (void)arg;
    weft_task *task;
    struct link link = link_open(LINK_LOCAL);
    stream_of_body = link.near;
    CHECK_EQ(weft_spawn(&task, &(weft_spec){ .body = read_in_stackless_task }), 0);
    return weft_join(task, NULL, WEFT_NEVER);
}

static void run_misuse_in_stackless_task(void)
{
    CHECK_EQ(weft_run(NULL, misuse_in_stackless_task, NULL), 0);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(run_misuse_in_stackless_task, "prepare a weft_io and await it");
}

static void close_of_null_does_nothing(void)
{
    weft_stream_close(NULL);
}

/* --- Invalid counts ----------------------------------------------------------------------- */

static int64_t readv_count(weft_stream *stream, struct iovec *vectors, int count)
{
    return weft_readv(stream, vectors, count, WEFT_NEVER);
}

static int64_t readv_exact_count(weft_stream *stream, struct iovec *vectors, int count)
{
    return weft_readv_exact(stream, vectors, count, WEFT_NEVER);
}

static int64_t writev_count(weft_stream *stream, struct iovec *vectors, int count)
{
    return weft_writev(stream, vectors, count, WEFT_NEVER);
}

static int64_t writev_all_count(weft_stream *stream, struct iovec *vectors, int count)
{
    return weft_writev_all(stream, vectors, count, WEFT_NEVER);
}

static int64_t readv_init_count(weft_stream *stream, struct iovec *vectors, int count)
{
    weft_io io;
    weft_readv_init(&io, stream, vectors, count);
    return weft_await(&io.future, WEFT_NEVER);
}

static int64_t writev_all_init_count(weft_stream *stream, struct iovec *vectors, int count)
{
    weft_io io;
    weft_writev_all_init(&io, stream, vectors, count);
    return weft_await(&io.future, WEFT_NEVER);
}

static int pass_negative_counts(void *arg)
{
    static int64_t (*const calls[])(weft_stream *, struct iovec *, int) = {
        readv_count,      readv_exact_count, writev_count,
        writev_all_count, readv_init_count,  writev_all_init_count,
    };
    struct link *link = arg;
    char bytes[4] = "abc";
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct iovec vector = { bytes, sizeof bytes };
        CHECK_EQ(calls[i](link->near, &vector, -1), -EINVAL);
        CHECK_EQ(calls[i](link->near, &vector, INT_MIN), -EINVAL);
        CHECK_EQ(calls[i](link->near, &vector, 0), 0);
        CHECK_EQ(vector.iov_len, sizeof bytes);
    }
    return 0;
}

static void negative_vector_count_returns_einval(void)
{
    link_run_all(pass_negative_counts);
}

/* --- Large transfers ------------------------------------------------------------------------ */

enum {
    LARGE = 256 * 1024,
    TRANSFERS = 60, /* less than a poll budget of small reads and writes */
};

static _Atomic(unsigned) turns;
static _Atomic(bool) is_over;

static int count_turns(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        atomic_fetch_add(&turns, 1);
        CHECK_EQ(weft_yield(), 0);
    }
    return 0;
}

/* Moves much in each call, and never waits. */
static int move_much(void *arg)
{
    static char bytes[LARGE];
    weft_stream *near;
    weft_stream *far;
    weft_task *other;
    (void)arg;
    CHECK_EQ(weft_duplex(&near, &far, LARGE), 0);
    atomic_store(&is_over, false);
    CHECK_EQ(weft_go(&other, count_turns, NULL), 0);
    CHECK_EQ(weft_yield(), 0);
    unsigned before = atomic_load(&turns);
    for (unsigned i = 0; i < TRANSFERS; i++) {
        CHECK_EQ(weft_write(near, bytes, LARGE, WEFT_NEVER), LARGE);
        CHECK_EQ(weft_read(far, bytes, LARGE, WEFT_NEVER), LARGE);
    }
    CHECK_LE(before + 2, atomic_load(&turns));
    atomic_store(&is_over, true);
    CHECK_EQ(weft_join(other, NULL, WEFT_NEVER), 0);
    weft_stream_close(near);
    weft_stream_close(far);
    return 0;
}

static void large_transfers_yield_to_other_tasks(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, move_much, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(large_transfers_yield_to_other_tasks),
    TEST(negative_vector_count_returns_einval),
    TEST(misuse_aborts_with_message),
    TEST(close_of_null_does_nothing),
    TEST(read_waits_for_data),
    TEST(remaining_bytes_are_returned_by_next_read),
    TEST(read_at_end_of_stream_returns_zero),
    TEST(end_of_stream_wakes_pending_read),
    TEST(empty_transfer_returns_immediately),
    TEST(writer_waits_for_slow_reader),
    TEST(read_exact_returns_eend_if_stream_ends_early),
    TEST(one_call_reads_large_amount),
    TEST(vectors_are_transferred_in_order),
    TEST(vector_count_may_exceed_system_limit),
    TEST(peeked_bytes_can_be_read_again),
    TEST(timed_out_call_transfers_nothing),
    TEST(canceled_read_takes_all_or_nothing),
    TEST(close_wakes_waiters_with_eclosed),
    TEST(shutdown_of_one_side_leaves_other_open),
    TEST(shutdown_of_read_side_ends_reads),
    TEST(write_to_closed_peer_returns_error_without_signal),
    TEST(tasks_of_all_kinds_exchange_messages),
    TEST(read_that_loses_select_transfers_nothing),
    TEST(many_readers_of_one_stream_miss_no_data),
})
