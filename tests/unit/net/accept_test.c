/* SPDX-License-Identifier: MIT */
/*
 * accept_test.c - accepting connections: one, several at the same time, timeouts, in a select,
 * and without descriptors.
 */
#include <weft/net.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include <weft.h>

#include "crowd.h"
#include "ports.h"
#include "quiet.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

/* A listener and its address. */
static struct {
    weft_listener *listener;
    struct place where;
    weft_address address;
} here;

static int open_here(void *place)
{
    here.listener = port_listen(place, &here.where);
    CHECK_EQ(weft_listener_address(here.listener, &here.address), 0);
    return 0;
}

static weft_runtime *start(unsigned workers, struct place place)
{
    weft_runtime *rt = test_start(workers);
    CHECK_EQ(test_run(rt, open_here, place.text), 0);
    return rt;
}

static void stop(weft_runtime *rt)
{
    weft_listener_close(here.listener);
    weft_runtime_destroy(rt);
}

/* Makes a connection from outside of the runtime that waits to be accepted. */
static int knock(void)
{
    int fd = socket(here.address.to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_GE(fd, 0);
    CHECK_EQ(connect(fd, &here.address.to.any, here.address.size), 0);
    return fd;
}

static int accept_one(void *deadline)
{
    weft_stream *stream;
    int err =
        weft_accept(here.listener, &stream, deadline != NULL ? *(weft_time *)deadline : WEFT_NEVER);
    if (err == 0) {
        weft_stream_close(stream);
    }
    return err;
}

/* Returns a TCP endpoint, or that of a Unix socket. */
static struct place place_of(unsigned kind)
{
    struct place place = port_name("unix:");
    if (kind == 0) {
        (void)snprintf(place.text, sizeof place.text, "127.0.0.1:0");
    }
    return place;
}

/* --- One connection ------------------------------------------------------------------ */

static int accept_and_look(void *arg)
{
    (void)arg;
    weft_stream *stream;
    CHECK_EQ(weft_accept(here.listener, &stream, WEFT_NEVER), 0);
    int fd = weft_stream_fd(stream);
    CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    weft_stream_close(stream);
    return 0;
}

static void waiting_acceptor_gets_connection(void)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        weft_runtime *rt = start(1, place_of(kind));
        weft_task *accepts = test_go_first(rt, accept_and_look, NULL);
        int fd = knock();
        CHECK_EQ(test_join_soon(accepts), 0);
        (void)close(fd);
        fd = knock(); /* It is pending before the accept. */
        CHECK_EQ(test_run(rt, accept_and_look, NULL), 0);
        (void)close(fd);
        stop(rt);
    }
}

static void reset_connection_is_accepted_or_skipped(void)
{
    weft_runtime *rt = start(1, place_of(0));
    struct linger reset = { .l_onoff = 1, .l_linger = 0 };
    int gone = knock();
    CHECK_EQ(setsockopt(gone, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    (void)close(gone);
    int fd = knock();
    CHECK_EQ(test_run(rt, accept_one, NULL), 0);
    (void)close(fd);
    stop(rt);
}

/* --- Timeouts, cancellation, close --------------------------------------------------- */

static void accept_that_times_out_takes_no_connection(void)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        weft_runtime *rt = start(1, place_of(kind));
        weft_time deadline = weft_after(3 * WEFT_MS);
        CHECK_EQ(test_run(rt, accept_one, &deadline), WEFT_ETIMEDOUT);
        CHECK_GE(weft_now(), deadline);
        deadline = 0;
        CHECK_EQ(test_run(rt, accept_one, &deadline), WEFT_ETIMEDOUT);
        int fd = knock();
        CHECK_EQ(test_run(rt, accept_one, NULL), 0);
        (void)close(fd);
        stop(rt);
    }
}

static void canceled_accept_takes_no_connection(void)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        weft_runtime *rt = start(1, place_of(kind));
        weft_task *accepts = test_go_first(rt, accept_one, NULL);
        weft_cancel(accepts);
        CHECK_EQ(test_join_soon(accepts), WEFT_ECANCELED);
        int fd = knock();
        CHECK_EQ(test_run(rt, accept_one, NULL), 0);
        (void)close(fd);
        stop(rt);
    }
}

static _Atomic(uint64_t) accepted;

static int accept_and_count(void *arg)
{
    int err = accept_one(arg);
    atomic_fetch_add(&accepted, err == 0);
    return err;
}

/*
 * Goal:   a connection that arrives while its acceptor is canceled is accepted by another.
 * Method: both at the same time, with one more acceptor, which must get the connection if the
 *         first did not.
 */
static void connection_that_races_with_cancel_is_not_lost(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 6; i++) {
        weft_runtime *rt = start(workers[i % 3], place_of(i / 3));
        for (uint64_t round = test_scale(200); round > 0; round--) {
            atomic_store(&accepted, 0);
            weft_task *first = test_go(rt, accept_and_count, NULL);
            weft_task *second = test_go(rt, accept_and_count, NULL);
            int fd = knock();
            weft_cancel(first);
            int result = test_join_soon(first);
            CHECK(result == 0 || result == WEFT_ECANCELED);
            if (result == 0) {
                weft_cancel(second);
                CHECK_EQ(test_join_soon(second), WEFT_ECANCELED);
            } else {
                CHECK_EQ(test_join_soon(second), 0);
            }
            CHECK_EQ(atomic_load(&accepted), 1);
            (void)close(fd);
        }
        stop(rt);
    }
}

static int close_here(void *arg)
{
    (void)arg;
    weft_listener_close(here.listener);
    return 0;
}

static void close_wakes_all_acceptors_with_eclosed(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 6; i++) {
        weft_runtime *rt = start(workers[i % 3], place_of(i / 3));
        weft_task *tasks[8];
        for (unsigned j = 0; j < 8; j++) {
            tasks[j] = test_go(rt, accept_one, NULL);
        }
        port_wait_for_users(here.listener, 8);
        CHECK_EQ(test_run(rt, close_here, NULL), 0);
        for (unsigned j = 0; j < 8; j++) {
            CHECK_EQ(test_join_soon(tasks[j]), WEFT_ECLOSED);
        }
        weft_runtime_destroy(rt);
    }
}

/* --- Many connections ---------------------------------------------------------------- */

enum {
    MEMBERS = 16,
    NUMBERS_MAX = 10000,
};

/* Even members connect and send a number each round, odd members accept and read one. */
static struct visitor {
    weft_io io;
    weft_stream *stream;
    uint32_t number;
} visitors[MEMBERS];

static _Atomic(uint32_t) seen[NUMBERS_MAX];

static uint64_t visits(void)
{
    return crowd_rounds() / 10 + 3;
}

static int connect_or_accept(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    struct visitor *visitor = &visitors[self->index];
    bool connects = self->index % 2 == 0;
    WEFT_BEGIN(co);
    for (self->round = 0; self->round < visits(); self->round++) {
        visitor->number = (uint32_t)(self->index / 2 * visits() + self->round);
        if (connects) {
            weft_connect_init(&visitor->io, &visitor->stream, &here.address, NULL);
        } else {
            weft_accept_init(&visitor->io, here.listener, &visitor->stream);
        }
        WEFT_AWAIT(co, self->err, &visitor->io.future);
        CHECK_EQ(self->err, 0);
        if (connects) {
            weft_write_all_init(&visitor->io, visitor->stream, &visitor->number, 4);
        } else {
            weft_read_exact_init(&visitor->io, visitor->stream, &visitor->number, 4);
        }
        WEFT_AWAIT(co, self->err, &visitor->io.future);
        CHECK_EQ(self->err, 0);
        weft_stream_close(visitor->stream);
        if (!connects) {
            CHECK_LT(visitor->number, NUMBERS_MAX);
            atomic_fetch_add(&seen[visitor->number], 1);
            self->sum++;
        }
    }
    WEFT_END(co, 0);
}

/*
 * Goal:   each connection is accepted exactly once, and none is left pending.
 * Method: as many acceptors as connectors, with the same number of rounds. Each connection
 *         carries a number. Plain threads do not take part, because they cannot connect.
 */
static void many_acceptors_get_each_connection_once(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 12; i++) {
        enum crowd_kind kind = i % 2 == 0 ? CROWD_FIBERS : CROWD_BODIES;
        weft_runtime *rt = start(workers[i / 2 % 3], place_of(i / 6));
        uint64_t total = MEMBERS / 2 * visits();
        CHECK_LT(total, NUMBERS_MAX);
        CHECK_EQ(crowd_run(rt, kind, MEMBERS, connect_or_accept, NULL), total);
        for (uint64_t j = 0; j < total; j++) {
            CHECK_EQ(atomic_exchange(&seen[j], 0), 1);
        }
        stop(rt);
    }
}

static int accept_in_crowd(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    struct visitor *visitor = &visitors[self->index];
    WEFT_BEGIN(co);
    weft_accept_init(&visitor->io, here.listener, &visitor->stream);
    WEFT_AWAIT(co, self->err, &visitor->io.future);
    CHECK_EQ(self->err, 0);
    weft_stream_close(visitor->stream);
    self->sum++;
    WEFT_END(co, 0);
}

/* All connections are pending before: one event, or none, for all of them. */
static void tasks_and_threads_accept_pending_connections(void)
{
    for (unsigned i = 0; i < 2 * CROWD_KINDS; i++) {
        weft_runtime *rt = start(i % 2 == 0 ? 1 : 8, place_of(i % 2));
        int fds[MEMBERS];
        for (unsigned j = 0; j < MEMBERS; j++) {
            fds[j] = knock();
        }
        uint64_t sum = crowd_run(rt, (enum crowd_kind)(i / 2), MEMBERS, accept_in_crowd, NULL);
        CHECK_EQ(sum, MEMBERS);
        for (unsigned j = 0; j < MEMBERS; j++) {
            (void)close(fds[j]);
        }
        stop(rt);
    }
}

/* The acceptors wait, then all connections arrive before the first acceptor is awake. */
static void one_event_for_many_connections_wakes_all_acceptors(void)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        weft_runtime *rt = start(1, place_of(kind));
        weft_task *tasks[MEMBERS];
        int fds[MEMBERS];
        for (unsigned i = 0; i < MEMBERS; i++) {
            tasks[i] = test_go_first(rt, accept_one, NULL);
        }
        for (unsigned i = 0; i < MEMBERS; i++) {
            fds[i] = knock();
        }
        for (unsigned i = 0; i < MEMBERS; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
            (void)close(fds[i]);
        }
        stop(rt);
    }
}

/* --- In a select --------------------------------------------------------------------- */

static weft_event event;

static int select_accept_or_event(void *arg)
{
    weft_stream *stream = NULL;
    weft_io io;
    weft_op wait;
    (void)arg;
    weft_accept_init(&io, here.listener, &stream);
    weft_event_wait_init(&wait, &event);
    weft_branch branches[] = { { .future = &wait.future }, { .future = &io.future } };
    int winner = weft_select(branches, 2, 0, WEFT_NEVER);
    if (winner == 1) {
        CHECK_EQ(branches[1].result, 0);
        weft_stream_close(stream);
    } else {
        CHECK(stream == NULL);
    }
    return winner;
}

static void accept_that_loses_select_takes_no_connection(void)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        weft_runtime *rt = start(1, place_of(kind));
        weft_event_reset(&event);
        weft_task *selects = test_go_first(rt, select_accept_or_event, NULL);
        weft_event_set(&event);
        CHECK_EQ(test_join_soon(selects), 0);
        int fd = knock();
        CHECK_EQ(test_run(rt, accept_one, NULL), 0);
        (void)close(fd);
        weft_event_reset(&event);
        selects = test_go_first(rt, select_accept_or_event, NULL);
        fd = knock();
        CHECK_EQ(test_join_soon(selects), 1);
        (void)close(fd);
        stop(rt);
    }
}

static void connection_that_races_with_select_is_not_lost(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 6; i++) {
        weft_runtime *rt = start(workers[i % 3], place_of(i / 3));
        for (uint64_t round = test_scale(200); round > 0; round--) {
            weft_event_reset(&event);
            weft_task *selects = test_go(rt, select_accept_or_event, NULL);
            int fd = knock();
            weft_event_set(&event);
            if (test_join_soon(selects) == 0) {
                CHECK_EQ(test_run(rt, accept_one, NULL), 0); /* It is still pending. */
            }
            (void)close(fd);
        }
        stop(rt);
    }
}

/* --- Without descriptors ------------------------------------------------------------- */

static void accept_without_descriptors_retries_with_backoff(void)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        weft_runtime *rt = start(kind == 0 ? 1 : 8, place_of(kind));
        int fd = knock();
        port_end_fds();
        weft_task *accepts = test_go(rt, accept_one, NULL);
        quiet_must_be_near(400 * WEFT_MS, test_wait_ns);
        int result;
        CHECK_EQ(weft_join(accepts, &result, weft_now()), WEFT_ETIMEDOUT);
        port_mend_fds();
        CHECK_EQ(test_join_soon(accepts), 0);
        (void)close(fd);
        stop(rt);
    }
}

static void deadline_ends_backoff(void)
{
    weft_runtime *rt = start(1, place_of(0));
    int fd = knock();
    weft_time deadline = weft_after(30 * WEFT_MS);
    port_end_fds();
    CHECK_EQ(test_run(rt, accept_one, &deadline), WEFT_ETIMEDOUT);
    CHECK_GE(weft_now(), deadline);
    port_mend_fds();
    CHECK_EQ(test_run(rt, accept_one, NULL), 0);
    (void)close(fd);
    stop(rt);
}

static void close_ends_backoff(void)
{
    weft_runtime *rt = start(1, place_of(0));
    int fd = knock();
    port_end_fds();
    weft_task *accepts = test_go_first(rt, accept_one, NULL);
    weft_listener_close(here.listener);
    int result = test_join_soon(accepts);
    port_mend_fds();
    CHECK_EQ(result, WEFT_ECLOSED);
    (void)close(fd);
    weft_runtime_destroy(rt);
}

/*
 * Goal:   an acceptor that is canceled in its backoff does not consume the event of the
 *         connection.
 * Method: two acceptors wait. A connection wakes the first, which finds no free descriptor and is
 *         canceled in its backoff. When descriptors are available again, the second accepts.
 */
static void cancel_during_backoff_leaves_connection_to_others(void)
{
    weft_runtime *rt = start(1, place_of(0));
    weft_task *first = test_go_first(rt, accept_one, NULL);
    weft_task *second = test_go_first(rt, accept_one, NULL);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    port_end_fds();
    CHECK_EQ(connect(fd, &here.address.to.any, here.address.size), 0);
    for (unsigned i = 0; i < 3; i++) { /* It sleeps, gets an event, and sleeps again. */
        test_settle(rt);
    }
    weft_cancel(first);
    int result = test_join_soon(first);
    port_mend_fds();
    CHECK_EQ(result, WEFT_ECANCELED);
    CHECK_EQ(test_join_soon(second), 0);
    (void)close(fd);
    stop(rt);
}

TEST_MAIN({
    TEST(waiting_acceptor_gets_connection),
    TEST(reset_connection_is_accepted_or_skipped),
    TEST(accept_that_times_out_takes_no_connection),
    TEST(canceled_accept_takes_no_connection),
    TEST(connection_that_races_with_cancel_is_not_lost),
    TEST(close_wakes_all_acceptors_with_eclosed),
    TEST(many_acceptors_get_each_connection_once),
    TEST(tasks_and_threads_accept_pending_connections),
    TEST(one_event_for_many_connections_wakes_all_acceptors),
    TEST(accept_that_loses_select_takes_no_connection),
    TEST(connection_that_races_with_select_is_not_lost),
    TEST(accept_without_descriptors_retries_with_backoff),
    TEST(deadline_ends_backoff),
    TEST(close_ends_backoff),
    TEST(cancel_during_backoff_leaves_connection_to_others),
})
