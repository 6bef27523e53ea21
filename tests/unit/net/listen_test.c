/* SPDX-License-Identifier: MIT */
/*
 * listen_test.c - listeners: addresses, paths and cleanup. accept_test.c tests accepting.
 */
#include <weft/net.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft.h>

#include "links.h"
#include "names.h"
#include "ports.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

static const weft_listen_options *const no_options = NULL;

/* Connects to the endpoint and accepts the connection here. */
static void check_listens(weft_listener *listener, const char *place)
{
    weft_stream *near;
    weft_stream *far;
    CHECK_EQ(weft_connect(&near, place, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_accept(listener, &far, WEFT_NEVER), 0);
    port_check_link(near, far);
    weft_stream_close(near);
    weft_stream_close(far);
}

static int listen_fails(const char *place, const weft_listen_options *options)
{
    weft_listener *listener = NULL;
    int err = weft_listen(&listener, place, options);
    CHECK(listener == NULL);
    return err;
}

/* --- Network addresses --------------------------------------------------------------- */

static int listen_and_be_found(void *arg)
{
    struct place where;
    weft_address address;
    weft_listener *listener = port_listen(arg, &where);
    CHECK_EQ(weft_listener_address(listener, &address), 0);
    CHECK(weft_address_port(&address) != 0);
    check_listens(listener, where.text);
    check_listens(listener, where.text);
    weft_listener_close(listener);
    weft_stream *stream;
    CHECK_EQ(weft_connect(&stream, where.text, NULL, WEFT_NEVER), -ECONNREFUSED);
    return 0;
}

static void port_zero_reports_assigned_port(void)
{
    port_run_all(listen_and_be_found, "127.0.0.1:0");
    port_run_all(listen_and_be_found, "tcp://127.0.0.1:0");
    port_run_all(listen_and_be_found, "tcp://localhost:0");
    if (port_has_v6()) {
        port_run_all(listen_and_be_found, "tcp://[::1]:0");
    }
}

static int listen_everywhere(void *arg)
{
    struct place where;
    weft_address address;
    weft_listener *listener = port_listen(arg, &where);
    CHECK_EQ(weft_listener_address(listener, &address), 0);
    (void)snprintf(where.text, sizeof where.text, "127.0.0.1:%u", weft_address_port(&address));
    check_listens(listener, where.text);
    weft_listener_close(listener);
    return 0;
}

static void wildcard_address_accepts_local_connections(void)
{
    port_run(1, listen_everywhere, ":0");
    port_run(1, listen_everywhere, "tcp://0.0.0.0:0");
    if (port_has_v6()) {
        port_run(1, listen_everywhere, "tcp://[::]:0"); /* IPv4 as well. */
    }
}

static int listen_for_v6_only(void *arg)
{
    (void)arg;
    struct place where;
    weft_listener *listener;
    weft_address address;
    weft_stream *stream;
    weft_listen_options options = { .v6_only = true };
    CHECK_EQ(weft_listen(&listener, "tcp://[::]:0", &options), 0);
    CHECK_EQ(weft_listener_address(listener, &address), 0);
    (void)snprintf(where.text, sizeof where.text, "127.0.0.1:%u", weft_address_port(&address));
    CHECK_EQ(weft_connect(&stream, where.text, NULL, WEFT_NEVER), -ECONNREFUSED);
    (void)snprintf(where.text, sizeof where.text, "[::1]:%u", weft_address_port(&address));
    check_listens(listener, where.text);
    weft_listener_close(listener);
    return 0;
}

static void v6_only_listener_refuses_v4(void)
{
    if (port_has_v6()) {
        port_run(1, listen_for_v6_only, NULL);
    }
}

static int listen_twice(void *arg)
{
    (void)arg;
    struct place where;
    weft_listener *listener = port_listen("127.0.0.1:0", &where);
    weft_listen_options shared = { .reuse_port = true };
    CHECK_EQ(listen_fails(where.text, no_options), -EADDRINUSE);
    CHECK_EQ(listen_fails(where.text, &shared), -EADDRINUSE); /* The first one does not share. */
    check_listens(listener, where.text);
    weft_listener_close(listener);
    /* The address is free immediately. */
    CHECK_EQ(weft_listen(&listener, where.text, no_options), 0);
    weft_listener_close(listener);
    return 0;
}

static void second_listener_on_port_returns_eaddrinuse(void)
{
    port_run_all(listen_twice, NULL);
}

static int share_port(void *arg)
{
    (void)arg;
    weft_listen_options shared = { .reuse_port = true };
    struct place where;
    weft_listener *one;
    weft_listener *two;
    weft_address address;
    CHECK_EQ(weft_listen(&one, "127.0.0.1:0", &shared), 0);
    CHECK_EQ(weft_listener_address(one, &address), 0);
    (void)weft_address_print(&address, where.text, sizeof where.text);
    CHECK_EQ(weft_listen(&two, where.text, &shared), 0);
    CHECK_EQ(listen_fails(where.text, no_options), -EADDRINUSE);
    weft_listener_close(one);
    check_listens(two, where.text);
    weft_listener_close(two);
    return 0;
}

static void listeners_share_port_if_all_set_reuse_port(void)
{
    port_run_all(share_port, NULL);
}

static int listen_while_one_lingers(void *arg)
{
    (void)arg;
    struct place where;
    weft_stream *near;
    weft_stream *far;
    weft_listen_options fresh = { .fresh_port = true };
    weft_listener *listener = port_listen("127.0.0.1:0", &where);
    CHECK_EQ(weft_connect(&near, where.text, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_accept(listener, &far, WEFT_NEVER), 0);
    weft_listener_close(listener);
    weft_stream_close(far); /* The side that closes first lingers. */
    port_check_end(near);
    weft_stream_close(near);
    CHECK_EQ(listen_fails(where.text, &fresh), -EADDRINUSE);
    CHECK_EQ(weft_listen(&listener, where.text, no_options), 0);
    check_listens(listener, where.text);
    weft_listener_close(listener);
    return 0;
}

static void lingering_connections_block_only_fresh_port(void)
{
    port_run_all(listen_while_one_lingers, NULL);
}

static int listen_at_bad_places(void *arg)
{
    (void)arg;
    static const char *const places[] = { "",
                                          "tcp://",
                                          "127.0.0.1",
                                          "127.0.0.1:",
                                          "udp://127.0.0.1:0",
                                          "unixgram:/tmp/x",
                                          "unixgram:@x",
                                          "unix:",
                                          "unix:@",
                                          ":" };
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        CHECK_EQ(listen_fails(places[i], no_options), -EINVAL);
    }
    CHECK_EQ(listen_fails("203.0.113.1:0", no_options), -EADDRNOTAVAIL);
    CHECK_EQ(listen_fails("unix:/no/such/folder/x", no_options), -ENOENT);
    return 0;
}

static void invalid_endpoints_are_refused(void)
{
    port_run(1, listen_at_bad_places, NULL);
}

/* A number that is not a valid port must not become another port. */
static int listen_at_bad_ports(void *arg)
{
    (void)arg;
    CHECK_LT(listen_fails("127.0.0.1:65536", no_options), 0);
    CHECK_LT(listen_fails("127.0.0.1:-1", no_options), 0);
    return 0;
}

static void invalid_ports_are_refused(void)
{
    port_run(1, listen_at_bad_ports, NULL);
}

static int listen_at_names(void *arg)
{
    (void)arg;
    static const char *const second[] = { "203.0.113.1", "127.0.0.1", NULL };
    static const char *const none[] = { "203.0.113.1", "203.0.113.2", NULL };
    struct place where;
    names_set(second);
    weft_listener *listener = port_listen("tcp://second.test:0", &where);
    CHECK_EQ(memcmp(where.text, "127.0.0.1:", 10), 0);
    check_listens(listener, where.text);
    weft_listener_close(listener);
    names_set(none);
    CHECK_EQ(listen_fails("none.test:0", no_options), -EADDRNOTAVAIL);
    return 0;
}

static void first_usable_address_of_name_is_used(void)
{
    port_run_all(listen_at_names, NULL);
}

/* --- Paths --------------------------------------------------------------------------- */

static int listen_at_path(void *arg)
{
    (void)arg;
    struct place path = port_path("unix:");
    weft_listener *listener;
    CHECK_EQ(weft_listen(&listener, path.text, no_options), 0);
    CHECK(port_exists(&path));
    check_listens(listener, path.text);
    CHECK_EQ(listen_fails(path.text, no_options), -EADDRINUSE);
    CHECK(port_exists(&path)); /* It belongs to the first listener. */
    check_listens(listener, path.text);
    weft_listener_close(listener);
    CHECK(!port_exists(&path));
    return 0;
}

static void close_removes_path(void)
{
    port_run_all(listen_at_path, NULL);
}

static int listen_and_keep(void *arg)
{
    (void)arg;
    struct place path = port_path("unix:");
    weft_listen_options keep = { .keep_path = true };
    weft_listener *listener;
    CHECK_EQ(weft_listen(&listener, path.text, &keep), 0);
    weft_listener_close(listener);
    CHECK(port_exists(&path));
    CHECK_EQ(listen_fails(path.text, no_options), -EADDRINUSE);
    CHECK_EQ(unlink(port_path_of(&path)), 0);
    return 0;
}

static void keep_path_leaves_path_after_close(void)
{
    port_run(1, listen_and_keep, NULL);
}

/* The runtime closes a listener that is still open when it ends. */
static int forget_listener(void *arg)
{
    weft_listener *listener;
    return weft_listen(&listener, ((struct place *)arg)->text, no_options);
}

static void runtime_closes_forgotten_listener(void)
{
    struct place path = port_path("unix:");
    unsigned before = link_fds();
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, forget_listener, &path), 0);
    weft_runtime_destroy(rt);
    CHECK_EQ(link_fds(), before);
    CHECK(!port_exists(&path));
}

/* The file at the path belongs to another listener, or is unknown to the library. */
static int close_after_path_was_taken(void *arg)
{
    struct place path = port_path("unix:");
    weft_listener *first;
    weft_listener *second;
    (void)arg;
    CHECK_EQ(weft_listen(&first, path.text, no_options), 0);
    CHECK_EQ(unlink(port_path_of(&path)), 0);
    CHECK_EQ(weft_listen(&second, path.text, no_options), 0);
    weft_listener_close(first);
    CHECK(port_exists(&path));
    check_listens(second, path.text);
    CHECK_EQ(unlink(port_path_of(&path)), 0);
    int fd = open(port_path_of(&path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    weft_listener_close(second);
    CHECK(port_exists(&path));
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(unlink(port_path_of(&path)), 0);
    CHECK_EQ(weft_listen(&first, path.text, no_options), 0);
    CHECK_EQ(unlink(port_path_of(&path)), 0);
    weft_listener_close(first); /* The path does not exist. */
    return 0;
}

static void close_keeps_path_that_another_owns(void)
{
    port_run_all(close_after_path_was_taken, NULL);
}

static unsigned mode_of(const struct place *place)
{
    struct stat status;
    CHECK_EQ(stat(port_path_of(place), &status), 0);
    CHECK(S_ISSOCK(status.st_mode));
    return status.st_mode & 0777;
}

static int listen_with_modes(void *arg)
{
    (void)arg;
    static const struct {
        unsigned umask;
        unsigned mode;
        unsigned wanted;
    } cases[] = { { 022, 0, 0755 },  { 077, 0, 0700 },    { 0, 0600, 0600 },
                  { 0, 0777, 0777 }, { 077, 0666, 0666 }, { 0777, 0640, 0640 } };
    mode_t before = umask(0);
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct place path = port_path("unix:");
        weft_listen_options options = { .mode = cases[i].mode };
        weft_listener *listener;
        (void)umask(cases[i].umask);
        CHECK_EQ(weft_listen(&listener, path.text, &options), 0);
        CHECK_EQ(mode_of(&path), cases[i].wanted);
        check_listens(listener, path.text);
        weft_listener_close(listener);
        CHECK(!port_exists(&path));
    }
    (void)umask(before);
    return 0;
}

static void path_has_requested_mode(void)
{
    port_run(1, listen_with_modes, NULL);
}

static int replace_a_path(void *arg)
{
    (void)arg;
    struct place path = port_path("unix:");
    weft_listen_options replace = { .replace_path = true };
    weft_listen_options keep = { .keep_path = true };
    weft_listener *listener;
    /* The path does not exist. */
    CHECK_EQ(weft_listen(&listener, path.text, &replace), 0);
    weft_listener_close(listener);
    /* A stale socket. */
    CHECK_EQ(weft_listen(&listener, path.text, &keep), 0);
    weft_listener_close(listener);
    CHECK(port_exists(&path));
    CHECK_EQ(weft_listen(&listener, path.text, &replace), 0);
    check_listens(listener, path.text);
    weft_listener_close(listener);
    CHECK(!port_exists(&path));
    return 0;
}

static void stale_socket_is_replaced(void)
{
    port_run_all(replace_a_path, NULL);
}

static int replace_live_listener(void *arg)
{
    (void)arg;
    struct place path = port_path("unix:");
    weft_listen_options replace = { .replace_path = true };
    weft_listen_options short_one = { .backlog = 1 };
    weft_listener *listener;
    weft_stream *visitor;
    weft_address address = port_address(path.text);
    CHECK_EQ(weft_listen(&listener, path.text, &short_one), 0);
    CHECK_EQ(listen_fails(path.text, &replace), -EADDRINUSE);
    CHECK(port_exists(&path));
    /* The check for a live listener connected to it. */
    CHECK_EQ(weft_accept(listener, &visitor, WEFT_NEVER), 0);
    port_check_end(visitor);
    weft_stream_close(visitor);
    /* The same while the backlog is full. */
    struct full full = port_fill(&address);
    CHECK_EQ(listen_fails(path.text, &replace), -EADDRINUSE);
    CHECK(port_exists(&path));
    port_empty(&full);
    weft_listener_close(listener);
    return 0;
}

static void live_listener_is_not_replaced(void)
{
    port_run_all(replace_live_listener, NULL);
}

static int replace_other_things(void *arg)
{
    (void)arg;
    weft_listen_options replace = { .replace_path = true };
    struct place path = port_path("unix:");
    int fd = open(port_path_of(&path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK_GE(fd, 0);
    (void)close(fd);
    CHECK_EQ(listen_fails(path.text, &replace), -EADDRINUSE);
    CHECK(port_exists(&path));
    CHECK_EQ(unlink(port_path_of(&path)), 0);
    CHECK_EQ(mkdir(port_path_of(&path), 0700), 0);
    CHECK_EQ(listen_fails(path.text, &replace), -EADDRINUSE);
    CHECK_EQ(rmdir(port_path_of(&path)), 0);
    /* A datagram socket receives there. */
    weft_datagram *socket;
    struct place messages = port_path("unixgram:");
    CHECK_EQ(weft_datagram_open(&socket, messages.text, NULL), 0);
    (void)snprintf(path.text, sizeof path.text, "unix:%s", port_path_of(&messages));
    CHECK_EQ(listen_fails(path.text, &replace), -EADDRINUSE);
    CHECK(port_exists(&messages));
    weft_datagram_close(socket);
    return 0;
}

static void only_sockets_are_replaced(void)
{
    port_run(1, replace_other_things, NULL);
}

static int listen_at_name(void *arg)
{
    (void)arg;
    struct place name = port_name("unix:");
    weft_listener *listener;
    weft_listen_options options = { .mode = 0600, .replace_path = true };
    CHECK_EQ(weft_listen(&listener, name.text, &options), 0);
    check_listens(listener, name.text);
    CHECK_EQ(listen_fails(name.text, &options), -EADDRINUSE);
    weft_listener_close(listener);
    weft_stream *stream;
    CHECK_EQ(weft_connect(&stream, name.text, NULL, WEFT_NEVER), -ECONNREFUSED);
    return 0;
}

static void abstract_name_creates_no_path(void)
{
    port_run_all(listen_at_name, NULL);
}

static int listen_with_backlog(void *arg)
{
    struct place path = port_path("unix:");
    weft_listen_options options = { .backlog = *(const int *)arg };
    weft_listener *listener;
    weft_address address = port_address(path.text);
    CHECK_EQ(weft_listen(&listener, path.text, &options), 0);
    struct full full = port_fill(&address);
    CHECK_EQ(full.count, (unsigned)options.backlog + 1);
    port_empty(&full);
    weft_listener_close(listener);
    return 0;
}

static void backlog_has_requested_length(void)
{
    port_run(1, listen_with_backlog, &(int){ 1 });
    port_run(1, listen_with_backlog, &(int){ 20 });
}

/* --- Adopting ------------------------------------------------------------------------ */

static int adopt_socket(void *arg)
{
    weft_address address = port_address(arg);
    struct place where;
    weft_listener *listener;
    int fd = socket(address.to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(fd, &address.to.any, address.size), 0);
    CHECK_EQ(weft_listener_adopt(&listener, fd), -EINVAL); /* It does not listen. */
    CHECK_EQ(listen(fd, 5), 0);
    CHECK_EQ(weft_listener_adopt(&listener, fd), 0);
    CHECK_EQ(weft_listener_fd(listener), fd);
    CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK_EQ(weft_listener_address(listener, &address), 0);
    (void)weft_address_print(&address, where.text, sizeof where.text);
    check_listens(listener, where.text);
    weft_listener_close(listener);
    CHECK_EQ(fcntl(fd, F_GETFD), -1);
    return 0;
}

static int adopt_other_things(void *arg)
{
    (void)arg;
    weft_listener *listener;
    int ends[2];
    CHECK_EQ(weft_listener_adopt(&listener, -1), -EBADF);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQ(weft_listener_adopt(&listener, ends[0]), -ENOTSOCK);
    CHECK_EQ(close(ends[0]), 0); /* They still belong to the caller. */
    CHECK_EQ(close(ends[1]), 0);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(weft_listener_adopt(&listener, fd), -EINVAL);
    CHECK_EQ(close(fd), 0);
    return 0;
}

static void listening_socket_can_be_adopted(void)
{
    struct place name = port_name("unix:");
    port_run_all(adopt_socket, "127.0.0.1:0");
    port_run_all(adopt_socket, name.text);
    port_run(1, adopt_other_things, NULL);
}

/* --- Closing ------------------------------------------------------------------------- */

static weft_listener *closed_one;

static int accept_forever(void *arg)
{
    weft_stream *stream;
    (void)arg;
    return weft_accept(closed_one, &stream, WEFT_NEVER);
}

static int call_closed_listener(void *arg)
{
    struct place *path = arg;
    weft_address address;
    int value;
    weft_listener_close(closed_one);
    /* The accepting task has not returned yet: this is the only worker. */
    CHECK_EQ(weft_listener_address(closed_one, &address), WEFT_ECLOSED);
    CHECK_EQ(weft_listener_option(closed_one, WEFT_OPTION_LINGER, &value), WEFT_ECLOSED);
    CHECK_EQ(weft_listener_set_option(closed_one, WEFT_OPTION_LINGER, 1), WEFT_ECLOSED);
    CHECK_EQ(accept_forever(NULL), WEFT_ECLOSED);
    CHECK(port_exists(path));
    return 0;
}

static int open_one_to_close(void *arg)
{
    return weft_listen(&closed_one, ((struct place *)arg)->text, no_options);
}

static void calls_on_closed_listener_return_eclosed(void)
{
    struct place path = port_path("unix:");
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, open_one_to_close, &path), 0);
    weft_task *accepts = test_go_first(rt, accept_forever, NULL);
    CHECK_EQ(test_run(rt, call_closed_listener, &path), 0);
    CHECK_EQ(test_join_soon(accepts), WEFT_ECLOSED);
    CHECK(!port_exists(&path));
    weft_runtime_destroy(rt);
}

/* io_uring releases a descriptor only when the thread that waited on it runs again, so retry. */
static void open_again(weft_runtime *rt, struct place *place)
{
    weft_time limit = test_deadline();
    int err;
    do {
        err = test_run(rt, open_one_to_close, place);
    } while (err == -EADDRINUSE && weft_now() < limit);
    CHECK_EQ(err, 0);
}

/* Also if a request for connection events is pending in the kernel. */
static void address_is_free_when_last_user_has_left(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 6; i++) {
        weft_runtime *rt = test_start(workers[i % 3]);
        struct place place = i < 3 ? (struct place){ "127.0.0.1:0" } : port_name("unix:");
        weft_address address;
        for (uint64_t round = test_scale(40) + 2; round > 0; round--) {
            open_again(rt, &place);
            CHECK_EQ(weft_listener_address(closed_one, &address), 0);
            (void)weft_address_print(&address, place.text, sizeof place.text);
            weft_task *accepts = test_go(rt, accept_forever, NULL);
            port_wait_for_users(closed_one, 1);
            weft_listener_close(closed_one);
            CHECK_EQ(test_join_soon(accepts), WEFT_ECLOSED);
        }
        weft_runtime_destroy(rt);
    }
}

static int close_without_accepting(void *arg)
{
    struct place where;
    weft_stream *stream;
    weft_listener *listener = port_listen(arg, &where);
    CHECK_EQ(weft_connect(&stream, where.text, NULL, WEFT_NEVER), 0);
    weft_listener_close(listener);
    port_check_end(stream);
    weft_stream_close(stream);
    return 0;
}

static void close_ends_unaccepted_connections(void)
{
    struct place path = port_path("unix:");
    port_run_all(close_without_accepting, "127.0.0.1:0");
    port_run_all(close_without_accepting, path.text);
}

static int listen_without_fds(void *arg)
{
    (void)arg;
    struct place path = port_path("unix:");
    port_end_fds();
    int tcp = listen_fails("127.0.0.1:0", no_options);
    int local = listen_fails(path.text, no_options);
    port_mend_fds();
    CHECK_EQ(tcp, -EMFILE);
    CHECK_EQ(local, -EMFILE);
    CHECK(!port_exists(&path));
    return 0;
}

static void listen_without_descriptors_returns_emfile(void)
{
    port_run(1, listen_without_fds, NULL);
}

TEST_MAIN({
    TEST(port_zero_reports_assigned_port),
    TEST(wildcard_address_accepts_local_connections),
    TEST(v6_only_listener_refuses_v4),
    TEST(second_listener_on_port_returns_eaddrinuse),
    TEST(listeners_share_port_if_all_set_reuse_port),
    TEST(lingering_connections_block_only_fresh_port),
    TEST(invalid_endpoints_are_refused),
    TEST(first_usable_address_of_name_is_used),
    TEST(close_removes_path),
    TEST(keep_path_leaves_path_after_close),
    TEST(close_keeps_path_that_another_owns),
    TEST(runtime_closes_forgotten_listener),
    TEST(path_has_requested_mode),
    TEST(stale_socket_is_replaced),
    TEST(live_listener_is_not_replaced),
    TEST(only_sockets_are_replaced),
    TEST(abstract_name_creates_no_path),
    TEST(backlog_has_requested_length),
    TEST(listening_socket_can_be_adopted),
    TEST(calls_on_closed_listener_return_eclosed),
    TEST(address_is_free_when_last_user_has_left),
    TEST(close_ends_unaccepted_connections),
    TEST(listen_without_descriptors_returns_emfile),
    TEST(invalid_ports_are_refused),
})
