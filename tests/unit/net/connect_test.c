/* SPDX-License-Identifier: MIT */
/*
 * connect_test.c - outgoing connections: successful ones, and every way to fail. port_run()
 * checks that no descriptor leaks.
 */
#include <weft/net.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft.h>

#include "links.h"
#include "names.h"
#include "ports.h"
#include "rt.h"
#include "test.h"

static int connect_fails(const char *place, const weft_connect_options *options, weft_time deadline)
{
    weft_stream *stream = NULL;
    int err = weft_connect(&stream, place, options, deadline);
    CHECK(stream == NULL);
    return err;
}

/* --- Immediate failures -------------------------------------------------------------- */

static int connect_without_listener(void *arg)
{
    (void)arg;
    struct place where;
    int fd = port_nobody(&where);
    for (unsigned i = 0; i < 20; i++) {
        CHECK_EQ(connect_fails(where.text, NULL, WEFT_NEVER), -ECONNREFUSED);
    }
    (void)close(fd);
    return 0;
}

static void connect_without_listener_returns_econnrefused(void)
{
    port_run_all(connect_without_listener, NULL);
}

static int connect_to_bad_places(void *arg)
{
    (void)arg;
    static const char *const places[] = {
        "",      "tcp://", "127.0.0.1", "127.0.0.1:", ":", "udp://127.0.0.1:1", "unixgram:/tmp/x",
        "unix:", "unix:@"
    };
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        CHECK_EQ(connect_fails(places[i], NULL, WEFT_NEVER), -EINVAL);
    }
    int err = connect_fails("no-such-host.invalid:80", NULL, WEFT_NEVER);
    CHECK(err == WEFT_ENONAME || err == -EAGAIN);
    CHECK_LT(connect_fails("255.255.255.255:9", NULL, WEFT_NEVER), 0);
    return 0;
}

static void invalid_endpoints_are_refused(void)
{
    port_run(1, connect_to_bad_places, NULL);
}

static int connect_to_paths(void *arg)
{
    (void)arg;
    struct place path = port_path("unix:");
    CHECK_EQ(connect_fails(path.text, NULL, WEFT_NEVER), -ENOENT);
    int fd = open(port_path_of(&path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK_GE(fd, 0);
    (void)close(fd);
    CHECK_EQ(connect_fails(path.text, NULL, WEFT_NEVER), -ECONNREFUSED);
    CHECK_EQ(unlink(port_path_of(&path)), 0);
    /* A stale socket. */
    weft_listener *listener;
    weft_listen_options keep = { .keep_path = true };
    CHECK_EQ(weft_listen(&listener, path.text, &keep), 0);
    weft_listener_close(listener);
    CHECK_EQ(connect_fails(path.text, NULL, WEFT_NEVER), -ECONNREFUSED);
    CHECK_EQ(unlink(port_path_of(&path)), 0);
    CHECK_EQ(connect_fails(port_name("unix:").text, NULL, WEFT_NEVER), -ECONNREFUSED);
    /* A datagram socket. */
    weft_datagram *socket;
    struct place messages = port_path("unixgram:");
    CHECK_EQ(weft_datagram_open(&socket, messages.text, NULL), 0);
    (void)snprintf(path.text, sizeof path.text, "unix:%s", port_path_of(&messages));
    CHECK_EQ(connect_fails(path.text, NULL, WEFT_NEVER), -EPROTOTYPE);
    weft_datagram_close(socket);
    return 0;
}

static void connect_to_path_requires_listener(void)
{
    port_run_all(connect_to_paths, NULL);
}

static int connect_without_fds(void *arg)
{
    (void)arg;
    struct place where;
    weft_stream *one;
    weft_stream *two;
    weft_listener *listener = port_listen("127.0.0.1:0", &where);
    port_end_fds();
    int tcp = connect_fails(where.text, NULL, WEFT_NEVER);
    int local = connect_fails("unix:@x", NULL, WEFT_NEVER);
    int pair = weft_stream_pair(&one, &two);
    port_mend_fds();
    CHECK_EQ(tcp, -EMFILE);
    CHECK_EQ(local, -EMFILE);
    CHECK_EQ(pair, -EMFILE);
    weft_listener_close(listener);
    return 0;
}

static void connect_without_descriptors_returns_emfile(void)
{
    port_run(1, connect_without_fds, NULL);
}

static int await_bad_address(void *arg)
{
    (void)arg;
    weft_io io;
    weft_stream *stream = NULL;
    weft_address nothing = { .size = 0 };
    weft_connect_init(&io, &stream, &nothing, NULL);
    CHECK_LT(weft_await(&io.future, WEFT_NEVER), 0);
    CHECK(stream == NULL);
    return 0;
}

static void connect_to_empty_address_fails(void)
{
    port_run(1, await_bad_address, NULL);
}

/* --- Source address ------------------------------------------------------------------ */

static int connect_from(void *arg)
{
    (void)arg;
    struct place where;
    weft_stream *near;
    weft_stream *far;
    weft_address address;
    weft_address from = port_address("127.0.0.5:0");
    weft_connect_options options = { .from = &from };
    weft_listener *listener = port_listen("127.0.0.1:0", &where);
    CHECK_EQ(weft_connect(&near, where.text, &options, WEFT_NEVER), 0);
    CHECK_EQ(weft_accept(listener, &far, WEFT_NEVER), 0);
    CHECK_EQ(weft_stream_peer(far, &address), 0);
    CHECK_EQ(address.to.v4.sin_addr.s_addr, from.to.v4.sin_addr.s_addr);
    /* That port is in use now. */
    CHECK_EQ(connect_fails(where.text, &(weft_connect_options){ .from = &address }, WEFT_NEVER),
             -EADDRINUSE);
    weft_address not_here = port_address("203.0.113.1:0");
    CHECK_EQ(connect_fails(where.text, &(weft_connect_options){ .from = &not_here }, WEFT_NEVER),
             -EADDRNOTAVAIL);
    weft_address v6 = port_address("[::1]:0");
    CHECK_LT(connect_fails(where.text, &(weft_connect_options){ .from = &v6 }, WEFT_NEVER), 0);
    weft_stream_close(near);
    weft_stream_close(far);
    weft_listener_close(listener);
    return 0;
}

static void source_address_can_be_chosen(void)
{
    port_run_all(connect_from, NULL);
}

static int connect_from_name(void *arg)
{
    (void)arg;
    struct place there = port_name("unix:");
    struct place here = port_name("unix:");
    struct place seen;
    weft_stream *near;
    weft_stream *far;
    weft_address address;
    weft_address from = port_address(here.text);
    weft_connect_options options = { .from = &from };
    weft_listener *listener = port_listen(there.text, &seen);
    CHECK_EQ(weft_connect(&near, there.text, &options, WEFT_NEVER), 0);
    CHECK_EQ(weft_accept(listener, &far, WEFT_NEVER), 0);
    CHECK_EQ(weft_stream_peer(far, &address), 0);
    (void)weft_address_print(&address, seen.text, sizeof seen.text);
    CHECK_EQ(strcmp(seen.text, here.text), 0);
    weft_stream_close(near);
    weft_stream_close(far);
    weft_listener_close(listener);
    return 0;
}

static void unix_socket_can_have_source_name(void)
{
    port_run(1, connect_from_name, NULL);
}

/* --- A full backlog ------------------------------------------------------------------ */

/* A listener whose connections are never accepted. */
static struct {
    weft_listener *listener;
    struct place where;
    weft_address address;
    struct full full;
    weft_time deadline;
} busy;

static int open_busy(void *place)
{
    weft_listen_options options = { .backlog = 1 };
    CHECK_EQ(weft_listen(&busy.listener, place, &options), 0);
    CHECK_EQ(weft_listener_address(busy.listener, &busy.address), 0);
    (void)weft_address_print(&busy.address, busy.where.text, sizeof busy.where.text);
    busy.full = port_fill(&busy.address);
    busy.deadline = WEFT_NEVER;
    return 0;
}

static weft_runtime *start_busy(unsigned workers, struct place place)
{
    weft_runtime *rt = test_start(workers);
    CHECK_EQ(test_run(rt, open_busy, place.text), 0);
    return rt;
}

static void stop_busy(weft_runtime *rt)
{
    port_empty(&busy.full);
    weft_listener_close(busy.listener);
    weft_runtime_destroy(rt);
}

static struct place of_kind(unsigned kind)
{
    struct place place = port_name("unix:");
    if (kind == 0) {
        (void)snprintf(place.text, sizeof place.text, "127.0.0.1:0");
    }
    return place;
}

static int connect_to_busy(void *arg)
{
    weft_stream *stream = NULL;
    (void)arg;
    int err = weft_connect(&stream, busy.where.text, NULL, busy.deadline);
    CHECK((err == 0) == (stream != NULL));
    weft_stream_close(stream);
    return err;
}

static int accept_from_busy(void *arg)
{
    weft_stream *stream;
    (void)arg;
    CHECK_EQ(weft_accept(busy.listener, &stream, WEFT_NEVER), 0);
    weft_stream_close(stream);
    return 0;
}

/* A Unix socket retries with backoff. For TCP the kernel retries after a second. */
static void connect_completes_when_backlog_has_space(void)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        weft_runtime *rt = start_busy(2, of_kind(kind));
        weft_task *connects = test_go(rt, connect_to_busy, NULL);
        int result;
        CHECK_EQ(weft_join(connects, &result, weft_after(20 * WEFT_MS)), WEFT_ETIMEDOUT);
        CHECK_EQ(test_run(rt, accept_from_busy, NULL), 0);
        CHECK_EQ(test_join_soon(connects), 0);
        stop_busy(rt);
    }
}

static void waiting_connect_times_out_or_is_canceled(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 6; i++) {
        weft_runtime *rt = start_busy(workers[i % 3], of_kind(i / 3));
        unsigned before = link_fds();
        busy.deadline = weft_after(20 * WEFT_MS);
        CHECK_EQ(test_run(rt, connect_to_busy, NULL), WEFT_ETIMEDOUT);
        CHECK_GE(weft_now(), busy.deadline);
        busy.deadline = 0;
        CHECK_EQ(test_run(rt, connect_to_busy, NULL), WEFT_ETIMEDOUT);
        busy.deadline = WEFT_NEVER;
        weft_task *connects = test_go(rt, connect_to_busy, NULL);
        int result;
        CHECK_EQ(weft_join(connects, &result, weft_after(5 * WEFT_MS)), WEFT_ETIMEDOUT);
        weft_cancel(connects);
        CHECK_EQ(test_join_soon(connects), WEFT_ECANCELED);
        CHECK_EQ(link_fds(), before);
        stop_busy(rt);
    }
}

static weft_event event;

static int select_connect_or_event(void *arg)
{
    weft_stream *stream = NULL;
    weft_io io;
    weft_op wait;
    (void)arg;
    weft_connect_init(&io, &stream, &busy.address, NULL);
    weft_event_wait_init(&wait, &event);
    weft_branch branches[] = { { .future = &io.future }, { .future = &wait.future } };
    int winner = weft_select(branches, 2, 0, WEFT_NEVER);
    CHECK((winner == 0) == (stream != NULL));
    weft_stream_close(stream);
    return winner;
}

static void connect_that_loses_select_leaks_nothing(void)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        weft_runtime *rt = start_busy(1, of_kind(kind));
        unsigned before = link_fds();
        weft_event_reset(&event);
        weft_task *selects = test_go_first(rt, select_connect_or_event, NULL);
        weft_event_set(&event);
        CHECK_EQ(test_join_soon(selects), 1);
        CHECK_EQ(link_fds(), before);
        stop_busy(rt);
    }
}

static int cancel_soon(void *arg)
{
    weft_stream *stream = NULL;
    int err = weft_connect(&stream, arg, NULL, WEFT_NEVER);
    CHECK(err == 0 || err == WEFT_ECANCELED);
    CHECK((err == 0) == (stream != NULL));
    weft_stream_close(stream);
    return 0;
}

static int cross_connects(void *arg)
{
    struct place where;
    weft_listener *listener = port_listen(arg, &where);
    for (uint64_t i = test_scale(300); i > 0; i--) {
        weft_task *task;
        weft_stream *stream;
        CHECK_EQ(weft_go(&task, cancel_soon, where.text), 0);
        for (uint64_t j = i % 4; j > 0; j--) {
            CHECK_EQ(weft_yield(), 0);
        }
        weft_cancel(task);
        CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
        int err = weft_accept(listener, &stream, 0); /* The connection may have been made. */
        CHECK(err == 0 || err == WEFT_ETIMEDOUT);
        if (err == 0) {
            port_check_end(stream);
            weft_stream_close(stream);
        }
    }
    weft_listener_close(listener);
    return 0;
}

/*
 * Goal:   a connection that is made while its task is canceled goes to the caller or is closed.
 * Method: cancel after up to three yields. port_run() counts descriptors.
 */
static void connect_that_races_with_cancel_leaks_nothing(void)
{
    struct place name = port_name("unix:");
    port_run_all(cross_connects, "127.0.0.1:0");
    port_run_all(cross_connects, name.text);
}

/* --- Names --------------------------------------------------------------------------- */

static int connect_to_localhost(void *arg)
{
    (void)arg;
    struct place where;
    weft_address address;
    weft_stream *near;
    weft_stream *far;
    weft_listener *listener = port_listen("127.0.0.1:0", &where);
    CHECK_EQ(weft_listener_address(listener, &address), 0);
    (void)snprintf(where.text, sizeof where.text, "tcp://localhost:%u",
                   weft_address_port(&address));
    CHECK_EQ(weft_connect(&near, where.text, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_accept(listener, &far, WEFT_NEVER), 0);
    port_check_link(near, far);
    weft_stream_close(near);
    weft_stream_close(far);
    weft_listener_close(listener);
    return 0;
}

static void host_name_is_resolved(void)
{
    port_run_all(connect_to_localhost, NULL);
}

static int connect_to_third_address(void *arg)
{
    (void)arg;
    static const char *const numbers[] = { "127.0.0.3", "127.0.0.2", "127.0.0.1", NULL };
    static const char *const none[] = { "127.0.0.2", "255.255.255.255", NULL };
    struct place where;
    weft_address address;
    weft_stream *stream;
    weft_listener *listener = port_listen("127.0.0.1:0", &where);
    CHECK_EQ(weft_listener_address(listener, &address), 0);
    (void)snprintf(where.text, sizeof where.text, "third.test:%u", weft_address_port(&address));
    names_set(numbers);
    CHECK_EQ(weft_connect(&stream, where.text, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_stream_peer(stream, &address), 0);
    CHECK_EQ(address.to.v4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    weft_stream_close(stream);
    /* The error is that of the last address. */
    int last = connect_fails("255.255.255.255:9", NULL, WEFT_NEVER);
    names_set(none);
    CHECK_NE(last, -ECONNREFUSED);
    CHECK_EQ(connect_fails("none.test:9", NULL, WEFT_NEVER), last);
    weft_listener_close(listener);
    return 0;
}

static void addresses_of_name_are_tried_in_order(void)
{
    port_run_all(connect_to_third_address, NULL);
}

static int be_canceled_between_addresses(void *arg)
{
    return connect_fails(arg, NULL, WEFT_NEVER);
}

/*
 * Goal:   an address that does not answer for 2 s is given up and the next one is tried. The last
 *         address has no such limit.
 * Method: the clock is paused. The first address is one whose backlog is full.
 */
static void unresponsive_address_is_given_up(void)
{
    static const char *const numbers[] = { "127.0.0.1", "127.0.0.2", NULL };
    struct place place;
    weft_clock_pause();
    weft_runtime *rt = start_busy(1, of_kind(0));
    names_set(numbers);
    (void)snprintf(place.text, sizeof place.text, "two.test:%u", weft_address_port(&busy.address));
    atomic_store(&names_ended, 0);
    weft_task *connects = test_go_first(rt, be_canceled_between_addresses, place.text);
    test_wait_for(&names_ended, 1);
    int result = 0;
    weft_time begin = weft_now();
    while (weft_try_join(connects, &result) == -EAGAIN) {
        CHECK_LT(weft_now() - begin, 60 * WEFT_S);
        test_settle(rt);
        weft_clock_advance(100 * WEFT_MS);
    }
    CHECK_GE(weft_now() - begin, 2 * WEFT_S);
    CHECK_EQ(result, -ECONNREFUSED); /* No listener exists at 127.0.0.2. */
    stop_busy(rt);
    weft_clock_resume();
}

static void deadline_and_cancel_end_all_attempts(void)
{
    static const char *const numbers[] = { "127.0.0.1", "127.0.0.2", NULL };
    struct place place;
    weft_runtime *rt = start_busy(2, of_kind(0));
    names_set(numbers);
    (void)snprintf(place.text, sizeof place.text, "two.test:%u", weft_address_port(&busy.address));
    busy.where = place;
    busy.deadline = weft_after(30 * WEFT_MS);
    CHECK_EQ(test_run(rt, connect_to_busy, NULL), WEFT_ETIMEDOUT);
    busy.deadline = WEFT_NEVER;
    weft_task *connects = test_go(rt, be_canceled_between_addresses, place.text);
    int result;
    CHECK_EQ(weft_join(connects, &result, weft_after(20 * WEFT_MS)), WEFT_ETIMEDOUT);
    weft_cancel(connects);
    CHECK_EQ(test_join_soon(connects), WEFT_ECANCELED);
    stop_busy(rt);
}

/* --- Other contexts ------------------------------------------------------------------ */

static int connect_in_blocking_job(void *arg)
{
    weft_stream *stream;
    int err = weft_connect(&stream, arg, NULL, WEFT_NEVER);
    if (err == 0) {
        CHECK_EQ(weft_write(stream, "job", 3, WEFT_NEVER), 3);
        weft_stream_close(stream);
    }
    return err;
}

static int wait_for_job(void *arg)
{
    struct place where;
    weft_task *job;
    weft_stream *stream;
    char text[3];
    int result;
    weft_listener *listener = port_listen(arg, &where);
    CHECK_EQ(weft_spawn_blocking(&job, connect_in_blocking_job, where.text), 0);
    CHECK_EQ(weft_accept(listener, &stream, WEFT_NEVER), 0);
    CHECK_EQ(weft_read_exact(stream, text, 3, WEFT_NEVER), 0);
    CHECK_EQ(weft_join(job, &result, WEFT_NEVER), 0);
    CHECK_EQ(result, 0);
    weft_stream_close(stream);
    weft_listener_close(listener);
    return 0;
}

static void blocking_job_can_connect(void)
{
    struct place name = port_name("unix:");
    port_run_all(wait_for_job, "127.0.0.1:0");
    port_run_all(wait_for_job, name.text);
}

static int look_at_new_stream(void *arg)
{
    struct place where;
    weft_stream *stream;
    weft_listener *listener = port_listen(arg, &where);
    CHECK_EQ(weft_connect(&stream, where.text, NULL, WEFT_NEVER), 0);
    CHECK((fcntl(weft_stream_fd(stream), F_GETFL) & O_NONBLOCK) != 0);
    CHECK((fcntl(weft_stream_fd(stream), F_GETFD) & FD_CLOEXEC) != 0);
    weft_stream_close(stream);
    weft_listener_close(listener);
    weft_stream *one;
    weft_stream *two;
    CHECK_EQ(weft_stream_pair(&one, &two), 0);
    CHECK((fcntl(weft_stream_fd(one), F_GETFD) & FD_CLOEXEC) != 0);
    port_check_link(one, two);
    port_check_link(two, one);
    weft_stream_close(one);
    port_check_end(two);
    weft_stream_close(two);
    return 0;
}

static void new_streams_are_nonblocking_and_close_on_exec(void)
{
    port_run_all(look_at_new_stream, "127.0.0.1:0");
}

/* The test that pauses the clock comes last. */
TEST_MAIN({
    TEST(connect_without_listener_returns_econnrefused),
    TEST(invalid_endpoints_are_refused),
    TEST(connect_to_path_requires_listener),
    TEST(connect_without_descriptors_returns_emfile),
    TEST(connect_to_empty_address_fails),
    TEST(source_address_can_be_chosen),
    TEST(unix_socket_can_have_source_name),
    TEST(connect_completes_when_backlog_has_space),
    TEST(waiting_connect_times_out_or_is_canceled),
    TEST(connect_that_loses_select_leaks_nothing),
    TEST(connect_that_races_with_cancel_leaks_nothing),
    TEST(host_name_is_resolved),
    TEST(addresses_of_name_are_tried_in_order),
    TEST(deadline_and_cancel_end_all_attempts),
    TEST(blocking_job_can_connect),
    TEST(new_streams_are_nonblocking_and_close_on_exec),
    TEST(unresponsive_address_is_given_up),
})
