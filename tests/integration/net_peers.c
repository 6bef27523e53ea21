/* SPDX-License-Identifier: MIT */
/*
 * Misbehaving peers: they reset, half-close, fall silent, do not read, or send urgent data.
 * Every waiter is notified, no worker spins, and no signal kills the process.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weft.h>

#include "ledger.h"
#include "links.h"
#include "ports.h"
#include "quiet.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

static void run(int (*function)(void *arg), const void *arg)
{
    port_run(test_workers(2), function, arg);
}

static void reset(weft_stream *stream)
{
    CHECK_EQ(weft_stream_set_option(stream, WEFT_OPTION_LINGER, 0), 0);
    weft_stream_close(stream);
}

static void sleep_for(int64_t ns)
{
    CHECK_EQ(weft_sleep(ns), 0);
}

/* On a fiber: checks that hardly any thread runs while it sleeps. */
static void check_that_nobody_runs(int64_t ns)
{
    quiet_must_be_near(ns, sleep_for);
}

/* --- Resets ----------------------------------------------------------------------------- */

enum {
    RESETS = 20,
};

/* The errors that a reset connection may report to a reader or a writer. */
static void check_reset(ssize_t result)
{
    CHECK(result == -ECONNRESET || result == -EPIPE);
}

/* A system may hide reset connections, or report them as broken ones. */
static int accept_after_resets(void *arg)
{
    struct place where;
    char buffer[4];
    weft_stream *stream;
    weft_stream *peer;
    ssize_t n;
    (void)arg;
    weft_listener *listener = port_listen("tcp://127.0.0.1:0", &where);
    for (unsigned i = 0; i < RESETS; i++) {
        CHECK_EQ(weft_connect(&stream, where.text, NULL, WEFT_NEVER), 0);
        reset(stream);
    }
    CHECK_EQ(weft_connect(&stream, where.text, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_write_all(stream, "good", 4, WEFT_NEVER), 0);
    unsigned accepted = 0;
    do {
        CHECK_EQ(weft_accept(listener, &peer, WEFT_NEVER), 0);
        n = weft_read(peer, buffer, sizeof buffer, WEFT_NEVER);
        CHECK(n == sizeof buffer || n == -ECONNRESET);
        weft_stream_close(peer);
        accepted++;
    } while (n < 0);
    CHECK_LE(accepted, RESETS + 1);
    CHECK_EQ(weft_accept(listener, &peer, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    weft_stream_close(stream);
    weft_listener_close(listener);
    return 0;
}

static void accept_after_client_resets_gets_next_client(void)
{
    run(accept_after_resets, NULL);
}

static int read_some(void *stream)
{
    char buffer[64];
    return (int)weft_read(stream, buffer, sizeof buffer, WEFT_NEVER);
}

static int read_all(void *stream)
{
    char buffer[64];
    return weft_read_exact(stream, buffer, sizeof buffer, WEFT_NEVER);
}

static int write_much(void *stream)
{
    static const char zeros[64 * 1024];
    int err;
    while ((err = weft_write_all(stream, zeros, sizeof zeros, WEFT_NEVER)) == 0) {
    }
    return err;
}

/* A stackless task: it transfers until its first error or the end. */
struct transfer {
    weft_stream *stream;
    bool writes;
    weft_io io;
    char buffer[64];
};

static int transfer_body(weft_co *co, void *state)
{
    struct transfer *self = state;
    int result;
    WEFT_BEGIN(co);
    do {
        if (self->writes) {
            weft_write_init(&self->io, self->stream, self->buffer, sizeof self->buffer);
        } else {
            weft_read_init(&self->io, self->stream, self->buffer, sizeof self->buffer);
        }
        WEFT_AWAIT(co, result, &self->io.future);
    } while (result > 0);
    WEFT_END(co, result);
}

static weft_task *start_body(weft_stream *stream, bool writes)
{
    weft_task *task;
    struct transfer transfer = { .stream = stream, .writes = writes };
    weft_spec spec = { .body = transfer_body, .state = &transfer, .state_size = sizeof transfer };
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    return task;
}

enum {
    VICTIMS = 5,
};

/* All waiters of one connection, in both directions. The kernel notifies only one of them. */
static int reset_while_many_wait(void *arg)
{
    struct link link = link_open(LINK_TCP);
    weft_task *victims[VICTIMS];
    bool waits_long = arg != NULL;
    CHECK_EQ(weft_go(&victims[0], read_some, link.far), 0);
    CHECK_EQ(weft_go(&victims[1], read_all, link.far), 0);
    CHECK_EQ(weft_go(&victims[2], write_much, link.far), 0);
    victims[3] = start_body(link.far, false);
    victims[4] = start_body(link.far, true);
    if (waits_long) {
        CHECK_EQ(weft_sleep(20 * WEFT_MS), 0); /* Until the buffers are full. */
    } else {
        CHECK_EQ(weft_yield(), 0);
    }
    reset(link.near);
    for (unsigned i = 0; i < VICTIMS; i++) {
        int result = test_join_soon(victims[i]);
        CHECK(result <= 0); /* The kernel reports an error once, and then the end. */
        CHECK(result == 0 || result == WEFT_EEND || result == -ECONNRESET || result == -EPIPE);
    }
    CHECK_LE(read_some(link.far), 0);
    check_reset(weft_write(link.far, "x", 1, WEFT_NEVER));
    weft_stream_close(link.far);
    return 0;
}

static void reset_wakes_all_waiters_with_error(void)
{
    for (uintptr_t i = 0; i < 10; i++) {
        run(reset_while_many_wait, (void *)(i % 2));
    }
}

/* --- One side ends ---------------------------------------------------------------------- */

static int write_after_the_end(void *arg)
{
    struct link *link = arg;
    char data[1000];
    char buffer[1000];
    CHECK_EQ(weft_stream_shutdown(link->near, WEFT_WRITE_SIDE), 0);
    for (uint64_t i = 0; i < 100; i++) {
        CHECK_EQ(weft_read(link->far, buffer, sizeof buffer, WEFT_NEVER), 0);
        link_fill(data, sizeof data, 7, i * sizeof data);
        CHECK_EQ(weft_write_all(link->far, data, sizeof data, WEFT_NEVER), 0);
        CHECK_EQ(weft_read_exact(link->near, buffer, sizeof buffer, WEFT_NEVER), 0);
        link_check(buffer, sizeof buffer, 7, i * sizeof data);
    }
    CHECK_EQ(weft_write(link->near, "x", 1, WEFT_NEVER), -EPIPE);
    return 0;
}

static void half_closed_stream_still_receives(void)
{
    link_run_both_ways(write_after_the_end);
}

/* --- Silence ---------------------------------------------------------------------------- */

static int be_given_up(void *arg)
{
    struct link link = link_open(LINK_TCP);
    weft_task *writer;
    char byte;
    (void)arg;
    CHECK_EQ(weft_stream_set_option(link.far, WEFT_OPTION_USER_TIMEOUT, 100), 0);
    CHECK_EQ(weft_go(&writer, write_much, link.far), 0);
    CHECK_EQ(test_join_soon(writer), -ETIMEDOUT);
    CHECK(weft_read(link.far, &byte, 1, WEFT_NEVER) <= 0);
    link_close(&link);
    return 0;
}

/* The peer reads nothing for longer than the timeout. */
static void write_to_silent_peer_times_out(void)
{
    run(be_given_up, NULL);
}

/* --- Backpressure ----------------------------------------------------------------------- */

enum {
    MUCH = 8 * 1000 * 1000, /* more than the buffers of any link hold */
};

struct flood {
    weft_stream *to;
    unsigned char *data;
    _Atomic(uint64_t) left; /* bytes not written, once the call has ended */
    weft_time deadline;
};

static int write_flood(void *arg)
{
    struct flood *flood = arg;
    struct iovec vectors[2] = { { flood->data, MUCH / 2 }, { flood->data + MUCH / 2, MUCH / 2 } };
    int err = weft_writev_all(flood->to, vectors, 2, flood->deadline);
    atomic_store(&flood->left, vectors[0].iov_len + vectors[1].iov_len);
    return err;
}

/* Reads to the end and checks for exactly these bytes. */
static void check_all(weft_stream *stream, uint64_t count)
{
    static unsigned char buffer[65536];
    uint64_t at = 0;
    ssize_t n;
    while ((n = weft_read(stream, buffer, sizeof buffer, WEFT_NEVER)) > 0) {
        link_check(buffer, (size_t)n, 9, at);
        at += (uint64_t)n;
    }
    CHECK_EQ(n, 0);
    CHECK_EQ(at, count);
}

enum ending {
    READ_ALL,
    CANCEL,
    BE_LATE,
    ENDINGS,
};

static struct ledger ledger;

static int flood_link(struct link *link, enum ending ending)
{
    struct flood flood = { .to = link->near, .data = malloc(MUCH) };
    weft_task *writer;
    CHECK(flood.data != NULL);
    link_fill(flood.data, MUCH, 9, 0);
    flood.deadline = ending == BE_LATE ? weft_after(60 * WEFT_MS) : WEFT_NEVER;
    int64_t before = atomic_load(&ledger.bytes);
    CHECK_EQ(weft_go(&writer, write_flood, &flood), 0);
    if (ending != BE_LATE) {
        check_that_nobody_runs(50 * WEFT_MS); /* The writer waits. */
        CHECK_LT(atomic_load(&ledger.bytes) - before, MUCH / 16);
    }
    if (ending == CANCEL) {
        weft_cancel(writer);
    }
    if (ending == READ_ALL) {
        unsigned char byte;
        CHECK_EQ(weft_read(link->far, &byte, 1, WEFT_NEVER), 1); /* One byte, and then the rest. */
        CHECK_EQ(byte, link_byte(9, 0));
        unsigned char *rest = malloc(MUCH - 1);
        CHECK(rest != NULL);
        CHECK_EQ(weft_read_exact(link->far, rest, MUCH - 1, WEFT_NEVER), 0);
        link_check(rest, MUCH - 1, 9, 1);
        free(rest);
    }
    static const int results[ENDINGS] = { 0, WEFT_ECANCELED, WEFT_ETIMEDOUT };
    CHECK_EQ(test_join_soon(writer), results[ending]);
    CHECK(ending == READ_ALL || atomic_load(&flood.left) > 0);
    weft_stream_close(link->near);
    link->near = NULL;
    uint64_t written = MUCH - atomic_load(&flood.left);
    if (ending == READ_ALL) {
        CHECK_EQ(written, MUCH);
        CHECK_EQ(read_some(link->far), 0);
    } else {
        check_all(link->far, written);
    }
    free(flood.data);
    return 0;
}

static int flood_all(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < LINK_KINDS * ENDINGS; i++) {
        struct link link = link_open((enum link_kind)(i % LINK_KINDS));
        CHECK_EQ(flood_link(&link, (enum ending)(i / LINK_KINDS)), 0);
        link_close(&link);
    }
    return 0;
}

/*
 * Goal:   a writer whose peer does not read waits, uses no memory meanwhile, and continues when the
 *         peer reads. If it is canceled or times out, it knows what the peer receives.
 * Method: much more data than fits. The remaining vectors are compared with what is read until
 *         the end.
 */
static void writer_waits_for_its_reader(void)
{
    weft_allocator allocator = ledger_allocator(&ledger);
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = test_workers(2);
    config.allocator = &allocator;
    weft_runtime *rt = test_start_with(&config);
    CHECK_EQ(test_run(rt, flood_all, NULL), 0);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&ledger.bytes), 0);
}

/* --- Canceled before it waits ----------------------------------------------------------- */

static int cancel_oneself_and_write(void *arg)
{
    struct flood *flood = arg;
    weft_cancel(weft_task_current());
    return write_flood(flood);
}

/* The first try is as without a cancellation, and no waiter is left on the stream. */
static int cancel_before_the_wait(void *arg)
{
    struct link *link = arg;
    struct flood flood = { .to = link->near, .data = malloc(MUCH), .deadline = WEFT_NEVER };
    weft_task *writer;
    CHECK(flood.data != NULL);
    link_fill(flood.data, MUCH, 9, 0);
    CHECK_EQ(weft_go(&writer, cancel_oneself_and_write, &flood), 0);
    CHECK_EQ(test_join_soon(writer), WEFT_ECANCELED);
    int fd = weft_stream_fd(link->near);
    if (fd >= 0) { /* Without waiters, the stream can be released. */
        CHECK_EQ(weft_stream_release(link->near), fd);
        CHECK_EQ(weft_stream_adopt(&link->near, fd), 0);
    }
    weft_stream_close(link->near);
    link->near = NULL;
    check_all(link->far, MUCH - atomic_load(&flood.left));
    free(flood.data);
    return 0;
}

static void write_canceled_before_wait_leaves_no_waiter(void)
{
    link_run_all(cancel_before_the_wait);
}

static struct link raced;
static _Atomic(uint64_t) is_about_to_write;

static int open_raced(void *arg)
{
    raced = link_open((enum link_kind)(uintptr_t)arg);
    return 0;
}

static int write_more_than_fits(void *arg)
{
    static const char zeros[1000 * 1000];
    (void)arg;
    atomic_store(&is_about_to_write, 1);
    int err;
    while ((err = weft_write_all(raced.near, zeros, sizeof zeros, WEFT_NEVER)) == 0) {
    }
    return err;
}

/* Without waiters, the stream can be released and adopted again. */
static int give_and_take(void *arg)
{
    static char buffer[65536];
    (void)arg;
    int fd = weft_stream_release(raced.near);
    CHECK_GE(fd, 0);
    CHECK_EQ(weft_stream_adopt(&raced.near, fd), 0);
    while (weft_try_read(raced.far, buffer, sizeof buffer) > 0) {
    }
    return 0;
}

static int close_raced(void *arg)
{
    (void)arg;
    link_close(&raced);
    return 0;
}

/*
 * Goal:   a cancellation between the first try of a write and its wait leaves no waiter on the
 *         stream.
 * Method: the try takes a while, since it copies much data. Meanwhile another thread cancels it.
 */
static void write_canceled_during_first_try_leaves_no_waiter(void)
{
    static const uintptr_t kinds[] = { LINK_TCP, LINK_LOCAL, LINK_PIPE };
    weft_runtime *rt = test_start(test_workers(2));
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(test_run(rt, open_raced, (void *)kinds[i]), 0);
        for (uint64_t round = 0; round < 20 + test_scale(200); round++) {
            atomic_store(&is_about_to_write, 0);
            weft_task *writer = test_go(rt, write_more_than_fits, NULL);
            test_spin_for(&is_about_to_write, 1);
            weft_time until = weft_now() + (int64_t)(round % 100) * 2 * WEFT_US;
            while (weft_now() < until) {
            }
            weft_cancel(writer);
            CHECK_EQ(test_join_soon(writer), WEFT_ECANCELED);
            CHECK_EQ(test_run(rt, give_and_take, NULL), 0);
        }
        CHECK_EQ(test_run(rt, close_raced, NULL), 0);
    }
    weft_runtime_destroy(rt);
}

/* --- Urgent data ------------------------------------------------------------------------ */

/* A read that reaches the urgent byte skips it. Without a read it stays. */
static void send_urgent(weft_stream *stream)
{
    char data[16] = "";
    CHECK_EQ(send(weft_stream_fd(stream), "!", 1, MSG_OOB), 1);
    CHECK_EQ(send(weft_stream_fd(stream), data, sizeof data, 0), sizeof data);
}

/* Some urgent data arrives before the tasks wait, some while they wait. */
static int receive_urgent(void *arg)
{
    struct link link = link_open(LINK_TCP);
    weft_task *reader = NULL;
    weft_task *writer;
    bool is_read = arg != NULL;
    send_urgent(link.near);
    CHECK_EQ(weft_go(&writer, write_much, link.far), 0);
    if (is_read) {
        CHECK_EQ(weft_go(&reader, read_all, link.far), 0);
    }
    check_that_nobody_runs(50 * WEFT_MS);
    for (unsigned i = 0; i < 2; i++) {
        send_urgent(link.near);
        check_that_nobody_runs(50 * WEFT_MS);
    }
    send_urgent(link.near); /* Now 64 bytes are not urgent. */
    CHECK_EQ(is_read ? test_join_soon(reader) : read_all(link.far), 0);
    reset(link.near);
    check_reset(test_join_soon(writer));
    weft_stream_close(link.far);
    return 0;
}

/* Urgent data satisfies neither waiting readers nor waiting writers. */
static void urgent_data_wakes_no_task(void)
{
    run(receive_urgent, NULL);
    run(receive_urgent, "read");
}

TEST_MAIN({
    TEST(accept_after_client_resets_gets_next_client),
    TEST(reset_wakes_all_waiters_with_error),
    TEST(half_closed_stream_still_receives),
    TEST(write_to_silent_peer_times_out),
    TEST(writer_waits_for_its_reader),
    TEST(write_canceled_before_wait_leaves_no_waiter),
    TEST(write_canceled_during_first_try_leaves_no_waiter),
    TEST(urgent_data_wakes_no_task),
})
