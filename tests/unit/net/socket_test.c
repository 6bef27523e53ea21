/* SPDX-License-Identifier: MIT */
/*
 * socket_test.c - sockets: addresses, options and peer credentials.
 */
#include "net/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft.h>

#include "links.h"
#include "ports.h"
#include "rt.h"
#include "test.h"

enum {
    OPTIONS = WEFT_OPTION_PASS_CREDENTIALS + 1,
};

/* Returns a connection made through a listener at this endpoint. */
static struct link connect_at(const char *place)
{
    struct place where;
    struct link link;
    weft_listener *listener = port_listen(place, &where);
    CHECK_EQ(weft_connect(&link.near, where.text, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_accept(listener, &link.far, WEFT_NEVER), 0);
    weft_listener_close(listener);
    return link;
}

/* --- Options ------------------------------------------------------------------------- */

/* A value to set, and the value that is read back. */
struct setting {
    weft_option option;
    int value;
    int read; /* ANY: chosen by the system; DOUBLE: twice the value set, see socket(7) */
};

enum {
    ANY = -1000,
    DOUBLE = -1001,
};

static const struct setting of_tcp[] = {
    { WEFT_OPTION_NODELAY, 0, 0 },
    { WEFT_OPTION_NODELAY, 1, 1 },
    { WEFT_OPTION_CORK, 1, 1 },
    { WEFT_OPTION_CORK, 0, 0 },
    { WEFT_OPTION_QUICK_ACK, 1, 1 },
    { WEFT_OPTION_KEEPALIVE, 1, 1 },
    { WEFT_OPTION_KEEPALIVE_IDLE, 77, 77 },
    { WEFT_OPTION_KEEPALIVE_INTERVAL, 11, 11 },
    { WEFT_OPTION_KEEPALIVE_COUNT, 5, 5 },
    { WEFT_OPTION_USER_TIMEOUT, 12345, 12345 },
    { WEFT_OPTION_LINGER, 3, 3 },
    { WEFT_OPTION_LINGER, 0, 0 },
    { WEFT_OPTION_LINGER, -1, -1 },
    { WEFT_OPTION_SEND_BUFFER, 20000, DOUBLE },
    { WEFT_OPTION_RECEIVE_BUFFER, 30000, DOUBLE },
    { WEFT_OPTION_LOW_WATER, 5, 5 },
    { WEFT_OPTION_LOW_WATER, 1, 1 },
    { WEFT_OPTION_REUSE_ADDRESS, 1, 1 },
    { WEFT_OPTION_REUSE_PORT, 1, 1 },
    { WEFT_OPTION_TTL, 33, 33 },
    { WEFT_OPTION_TOS, 0x10, 0x10 },
    { WEFT_OPTION_PRIORITY, 4, 4 },
    { WEFT_OPTION_BROADCAST, 1, 1 },
};

static const struct setting of_local[] = {
    { WEFT_OPTION_LINGER, 3, 3 },
    { WEFT_OPTION_LINGER, -1, -1 },
    { WEFT_OPTION_SEND_BUFFER, 20000, DOUBLE },
    { WEFT_OPTION_RECEIVE_BUFFER, 30000, DOUBLE },
    { WEFT_OPTION_PASS_CREDENTIALS, 1, 1 },
    { WEFT_OPTION_PASS_CREDENTIALS, 0, 0 },
    { WEFT_OPTION_REUSE_ADDRESS, 1, 1 },
    { WEFT_OPTION_PRIORITY, 4, 4 },
};

static const struct setting of_udp[] = {
    { WEFT_OPTION_SEND_BUFFER, 20000, DOUBLE },
    { WEFT_OPTION_RECEIVE_BUFFER, 30000, DOUBLE },
    { WEFT_OPTION_BROADCAST, 1, 1 },
    { WEFT_OPTION_BROADCAST, 0, 0 },
    { WEFT_OPTION_MULTICAST_TTL, 9, 9 },
    { WEFT_OPTION_MULTICAST_LOOP, 0, 0 },
    { WEFT_OPTION_MULTICAST_LOOP, 1, 1 },
    { WEFT_OPTION_TTL, 44, 44 },
    { WEFT_OPTION_TOS, 0x20, 0x20 },
    { WEFT_OPTION_REUSE_PORT, 1, 1 },
};

static const struct setting of_listener[] = {
    { WEFT_OPTION_DEFER_ACCEPT, 3, ANY },
    { WEFT_OPTION_DEFER_ACCEPT, 0, 0 },
    { WEFT_OPTION_FAST_OPEN, 16, 16 },
    { WEFT_OPTION_REUSE_ADDRESS, 1, 1 },
    { WEFT_OPTION_RECEIVE_BUFFER, 30000, DOUBLE },
};

static void check_value(const struct setting *setting, int value)
{
    int read = setting->read;
    bool is_good = read == value || (read == ANY && value > 0) ||
                   (read == DOUBLE && value == 2 * setting->value);
    if (!is_good) {
        test_fail(__FILE__, __LINE__, "option %d was set to %d, and is %d", setting->option,
                  setting->value, value);
    }
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void check_settings(weft_stream *stream, const struct setting *settings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int value = -7;
        int err = weft_stream_set_option(stream, settings[i].option, settings[i].value);
        if (err != 0) {
            test_fail(__FILE__, __LINE__, "option %d: %d", settings[i].option, err);
        }
        CHECK_EQ(weft_stream_option(stream, settings[i].option, &value), 0);
        check_value(&settings[i], value);
    }
}

/* Checks that the settings apply to this socket and not to another one. */
static void check_by_hand(int fd, int level, int name, int wanted)
{
    int value = -7;
    socklen_t size = sizeof value;
    CHECK_EQ(getsockopt(fd, level, name, &value, &size), 0);
    CHECK_EQ(value, wanted);
}

static int set_options_of_tcp(void *arg)
{
    (void)arg;
    struct link link = connect_at("tcp://127.0.0.1:0");
    check_settings(link.near, of_tcp, COUNT(of_tcp));
    check_settings(link.far, of_tcp, COUNT(of_tcp));
    check_by_hand(weft_stream_fd(link.near), IPPROTO_IP, IP_TTL, 33);
    check_by_hand(weft_stream_fd(link.near), SOL_SOCKET, SO_SNDBUF, 2 * 20000);
    check_by_hand(weft_stream_fd(link.near), SOL_SOCKET, SO_RCVBUF, 2 * 30000);
    CHECK_EQ(weft_stream_set_option(link.near, WEFT_OPTION_V6_ONLY, 1), -EOPNOTSUPP);
    port_check_link(link.near, link.far);
    link_close(&link);
    return 0;
}

static int set_options_of_tcp6(void *arg)
{
    (void)arg;
    int value;
    struct link link = connect_at("tcp://[::1]:0");
    check_settings(link.near, of_tcp, COUNT(of_tcp));
    check_settings(link.far, of_tcp, COUNT(of_tcp));
    check_by_hand(weft_stream_fd(link.near), IPPROTO_IPV6, IPV6_UNICAST_HOPS, 33);
    check_by_hand(weft_stream_fd(link.near), IPPROTO_IPV6, IPV6_TCLASS, 0x10);
    CHECK_EQ(weft_stream_option(link.near, WEFT_OPTION_V6_ONLY, &value), 0);
    port_check_link(link.near, link.far);
    link_close(&link);
    return 0;
}

static int set_options_of_local(void *arg)
{
    (void)arg;
    int value;
    struct link link = link_open(LINK_LOCAL);
    check_settings(link.near, of_local, COUNT(of_local));
    static const weft_option none[] = { WEFT_OPTION_NODELAY, WEFT_OPTION_KEEPALIVE_IDLE,
                                        WEFT_OPTION_TTL, WEFT_OPTION_V6_ONLY,
                                        WEFT_OPTION_DEFER_ACCEPT };
    for (unsigned i = 0; i < COUNT(none); i++) {
        CHECK_EQ(weft_stream_set_option(link.near, none[i], 1), -EOPNOTSUPP);
        CHECK_EQ(weft_stream_option(link.near, none[i], &value), -EOPNOTSUPP);
    }
    link_close(&link);
    return 0;
}

static void stream_options_are_set_and_read(void)
{
    port_run(1, set_options_of_tcp, NULL);
    port_run(1, set_options_of_local, NULL);
    if (port_has_v6()) {
        port_run(1, set_options_of_tcp6, NULL);
    }
}

static int set_options_of_listeners(void *arg)
{
    struct place where;
    int value;
    weft_listener *listener = port_listen(arg, &where);
    for (size_t i = 0; i < COUNT(of_listener); i++) {
        CHECK_EQ(weft_listener_set_option(listener, of_listener[i].option, of_listener[i].value),
                 0);
        CHECK_EQ(weft_listener_option(listener, of_listener[i].option, &value), 0);
        check_value(&of_listener[i], value);
    }
    CHECK_EQ(weft_listener_set_option(listener, (weft_option)OPTIONS, 1), -EINVAL);
    weft_listener_close(listener);
    return 0;
}

static void listener_options_are_set_and_read(void)
{
    port_run(1, set_options_of_listeners, "tcp://127.0.0.1:0");
    if (port_has_v6()) {
        port_run(1, set_options_of_listeners, "tcp://[::1]:0");
    }
}

static int set_options_of_datagrams(void *arg)
{
    weft_datagram *socket;
    int value;
    CHECK_EQ(weft_datagram_open(&socket, arg, NULL), 0);
    for (size_t i = 0; i < COUNT(of_udp); i++) {
        CHECK_EQ(weft_datagram_set_option(socket, of_udp[i].option, of_udp[i].value), 0);
        CHECK_EQ(weft_datagram_option(socket, of_udp[i].option, &value), 0);
        check_value(&of_udp[i], value);
    }
    CHECK_EQ(weft_datagram_set_option(socket, WEFT_OPTION_NODELAY, 1), -EOPNOTSUPP);
    CHECK_EQ(weft_datagram_option(socket, (weft_option)OPTIONS, &value), -EINVAL);
    weft_datagram_close(socket);
    return 0;
}

static void datagram_options_are_set_and_read(void)
{
    port_run(1, set_options_of_datagrams, "udp://127.0.0.1:0");
    if (port_has_v6()) {
        port_run(1, set_options_of_datagrams, "udp://[::1]:0");
    }
}

static int set_bad_options(void *arg)
{
    (void)arg;
    static const weft_option bad[] = { (weft_option)-1, (weft_option)OPTIONS, (weft_option)9999 };
    int value;
    struct link link = connect_at("tcp://127.0.0.1:0");
    for (unsigned i = 0; i < COUNT(bad); i++) {
        CHECK_EQ(weft_stream_set_option(link.near, bad[i], 1), -EINVAL);
        CHECK_EQ(weft_stream_option(link.near, bad[i], &value), -EINVAL);
    }
    CHECK_EQ(weft_stream_set_option(link.near, WEFT_OPTION_TTL, 1000), -EINVAL);
    CHECK_EQ(weft_stream_set_option(link.near, WEFT_OPTION_KEEPALIVE_IDLE, -1), -EINVAL);
    link_close(&link);
    return 0;
}

static void invalid_options_are_refused(void)
{
    port_run(1, set_bad_options, NULL);
}

static int ask_pipe(void *arg)
{
    (void)arg;
    struct link link = link_open(LINK_PIPE);
    weft_address address;
    weft_credentials credentials;
    int value;
    for (int i = 0; i < OPTIONS; i++) {
        CHECK_EQ(weft_stream_set_option(link.near, (weft_option)i, 1), -EOPNOTSUPP);
        CHECK_EQ(weft_stream_option(link.far, (weft_option)i, &value), -EOPNOTSUPP);
    }
    CHECK_EQ(weft_stream_address(link.near, &address), -EOPNOTSUPP);
    CHECK_EQ(weft_stream_peer(link.near, &address), -EOPNOTSUPP);
    CHECK_EQ(weft_stream_credentials(link.near, &credentials), -EOPNOTSUPP);
    link_close(&link);
    return 0;
}

static void pipe_returns_eopnotsupp_for_socket_calls(void)
{
    port_run(1, ask_pipe, NULL);
}

/* --- Effects of options -------------------------------------------------------------- */

static int close_with_reset(void *arg)
{
    (void)arg;
    char byte;
    int value;
    struct link link = connect_at("tcp://127.0.0.1:0");
    CHECK_EQ(weft_stream_option(link.near, WEFT_OPTION_LINGER, &value), 0);
    CHECK_EQ(value, -1); /* Off by default. */
    CHECK_EQ(weft_stream_set_option(link.near, WEFT_OPTION_LINGER, 0), 0);
    weft_stream_close(link.near);
    CHECK_EQ(weft_read(link.far, &byte, 1, WEFT_NEVER), -ECONNRESET);
    weft_stream_close(link.far);
    return 0;
}

static void close_with_zero_linger_sends_reset(void)
{
    port_run_all(close_with_reset, NULL);
}

static int check_delays(void *arg)
{
    struct place where;
    weft_stream *streams[2];
    weft_listener *listener;
    weft_address address;
    bool nagle = arg != NULL;
    weft_listen_options options = { .nagle = nagle };
    weft_connect_options to = { .nagle = nagle };
    CHECK_EQ(weft_listen(&listener, "127.0.0.1:0", &options), 0);
    CHECK_EQ(weft_listener_address(listener, &address), 0);
    (void)weft_address_print(&address, where.text, sizeof where.text);
    CHECK_EQ(weft_connect(&streams[0], where.text, &to, WEFT_NEVER), 0);
    CHECK_EQ(weft_accept(listener, &streams[1], WEFT_NEVER), 0);
    for (unsigned i = 0; i < 2; i++) {
        int value;
        CHECK_EQ(weft_stream_option(streams[i], WEFT_OPTION_NODELAY, &value), 0);
        CHECK_EQ(value, !nagle);
        weft_stream_close(streams[i]);
    }
    weft_listener_close(listener);
    return 0;
}

static void nodelay_is_set_unless_nagle_is_requested(void)
{
    port_run(1, check_delays, NULL);
    port_run(1, check_delays, "nagle");
}

/* --- Addresses ----------------------------------------------------------------------- */

static void check_same(const weft_address *one, const weft_address *other)
{
    CHECK_EQ(one->size, other->size);
    CHECK_EQ(memcmp(&one->to, &other->to, one->size), 0);
}

static int compare_addresses(void *arg)
{
    const struct place *place = arg;
    struct place where;
    weft_address near;
    weft_address far;
    weft_address listens;
    struct link link;
    weft_listener *listener = port_listen(place->text, &where);
    CHECK_EQ(weft_listener_address(listener, &listens), 0);
    CHECK_EQ(weft_connect(&link.near, where.text, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_accept(listener, &link.far, WEFT_NEVER), 0);
    CHECK_EQ(weft_stream_peer(link.near, &far), 0);
    check_same(&far, &listens);
    CHECK_EQ(weft_stream_address(link.far, &far), 0);
    check_same(&far, &listens);
    CHECK_EQ(weft_stream_address(link.near, &near), 0);
    CHECK_EQ(weft_stream_peer(link.far, &far), 0);
    check_same(&near, &far);
    CHECK_EQ(near.to.any.sa_family, listens.to.any.sa_family);
    CHECK((near.to.any.sa_family == AF_UNIX) == (weft_address_port(&near) == 0));
    weft_listener_close(listener);
    link_close(&link);
    return 0;
}

static void each_end_knows_its_own_and_peer_address(void)
{
    struct place path = port_path("unix:");
    struct place name = port_name("unix:");
    port_run_all(compare_addresses, &(struct place){ "tcp://127.0.0.1:0" });
    port_run(1, compare_addresses, &path);
    port_run(1, compare_addresses, &name);
    if (port_has_v6()) {
        port_run(1, compare_addresses, &(struct place){ "tcp://[::1]:0" });
    }
}

static int look_at_pair(void *arg)
{
    (void)arg;
    char text[WEFT_ADDRESS_TEXT_MAX];
    weft_address address;
    struct link link = link_open(LINK_LOCAL);
    CHECK_EQ(weft_stream_address(link.near, &address), 0);
    (void)weft_address_print(&address, text, sizeof text);
    CHECK_EQ(strcmp(text, "unix:"), 0);
    CHECK_EQ(weft_stream_peer(link.near, &address), 0);
    (void)weft_address_print(&address, text, sizeof text);
    CHECK_EQ(strcmp(text, "unix:"), 0);
    link_close(&link);
    return 0;
}

static void socket_pair_has_no_names(void)
{
    port_run(1, look_at_pair, NULL);
}

/* The longest possible path. The kernel does not need a terminating NUL. */
static int look_at_long_path(void *arg)
{
    (void)arg;
    weft_address address = { .to.local.sun_family = AF_UNIX, .size = sizeof address.to.local };
    struct place path = port_path("unix:");
    size_t length = strlen(port_path_of(&path));
    memset(address.to.local.sun_path, 'x', sizeof address.to.local.sun_path);
    memcpy(address.to.local.sun_path, port_path_of(&path), length);
    int fd = wf_socket_new(AF_UNIX, SOCK_STREAM);
    CHECK_EQ(wf_socket_bind(fd, &address), 0);
    weft_address found;
    char text[WEFT_ADDRESS_TEXT_MAX];
    CHECK_EQ(wf_socket_address(fd, &found), 0);
    CHECK_LE(found.size, sizeof found.to);
    CHECK_EQ(weft_address_print(&found, text, sizeof text), 5 + 108);
    CHECK_EQ(memcmp(text + 5, address.to.local.sun_path, 108), 0);
    CHECK_EQ(unlink(text + 5), 0);
    CHECK_EQ(wf_socket_undo(fd, -7), -7);
    return 0;
}

static void path_may_fill_whole_address(void)
{
    port_run(1, look_at_long_path, NULL);
}

/* --- Credentials --------------------------------------------------------------------- */

static void check_me(weft_stream *stream)
{
    weft_credentials who = { 0 };
    CHECK_EQ(weft_stream_credentials(stream, &who), 0);
    CHECK_EQ(who.pid, getpid());
    CHECK_EQ(who.uid, geteuid());
    CHECK_EQ(who.gid, getegid());
}

static int ask_credentials(void *arg)
{
    (void)arg;
    weft_credentials who;
    struct link link = link_open(LINK_LOCAL);
    check_me(link.near);
    check_me(link.far);
    link_close(&link);
    link = connect_at(port_name("unix:").text);
    check_me(link.near);
    check_me(link.far);
    link_close(&link);
    link = connect_at("tcp://127.0.0.1:0");
    CHECK_EQ(weft_stream_credentials(link.near, &who), -EOPNOTSUPP);
    CHECK_EQ(weft_stream_credentials(link.far, &who), -EOPNOTSUPP);
    link_close(&link);
    return 0;
}

static void unix_socket_reports_peer_credentials(void)
{
    port_run_all(ask_credentials, NULL);
}

static int ask_foreign_credentials(void *arg)
{
    weft_stream *stream;
    weft_credentials who = { .pid = -1 };
    CHECK_EQ(weft_stream_adopt(&stream, *(int *)arg), 0);
    CHECK_EQ(weft_stream_credentials(stream, &who), 0);
    CHECK_EQ(who.pid, 0); /* It has no pid in this namespace. */
    CHECK_EQ(who.uid, geteuid());
    weft_stream_close(stream);
    return 0;
}

enum {
    NO_NAMESPACE = 77,
};

/* Runs in its own process. Its children do not see the other processes. */
static void ask_from_pid_namespace(int fd)
{
    if (unshare(CLONE_NEWPID) != 0) {
        _exit(NO_NAMESPACE);
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(weft_run(NULL, ask_foreign_credentials, &fd) == 0 ? 0 : 1);
    }
    int status = 1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* A peer that is outside of this container. */
static void peer_outside_of_pid_namespace_has_pid_zero(void)
{
    int ends[2];
    int status = 1;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        ask_from_pid_namespace(ends[0]);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    (void)close(ends[0]);
    (void)close(ends[1]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACE) {
        test_skip("the process may not have namespaces");
        return;
    }
    CHECK_EQ(status, 0);
}

/* --- During close -------------------------------------------------------------------- */

static int read_forever(void *arg)
{
    char byte;
    return (int)weft_read(((struct link *)arg)->near, &byte, 1, WEFT_NEVER);
}

static int call_closed_stream(void *arg)
{
    struct link *link = arg;
    weft_address address;
    weft_credentials who;
    int value;
    weft_stream_close(link->near);
    /* The reader has not returned yet: this is the only worker. */
    CHECK_EQ(weft_stream_address(link->near, &address), WEFT_ECLOSED);
    CHECK_EQ(weft_stream_peer(link->near, &address), WEFT_ECLOSED);
    CHECK_EQ(weft_stream_option(link->near, WEFT_OPTION_LINGER, &value), WEFT_ECLOSED);
    CHECK_EQ(weft_stream_set_option(link->near, WEFT_OPTION_LINGER, 1), WEFT_ECLOSED);
    CHECK_EQ(weft_stream_credentials(link->near, &who), WEFT_ECLOSED);
    weft_stream_close(link->far);
    return 0;
}

static int open_pair(void *arg)
{
    *(struct link *)arg = link_open(LINK_LOCAL);
    return 0;
}

static void calls_on_closed_stream_return_eclosed(void)
{
    struct link link;
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, open_pair, &link), 0);
    weft_task *reader = test_go_first(rt, read_forever, &link);
    CHECK_EQ(test_run(rt, call_closed_stream, &link), 0);
    CHECK_EQ(test_join_soon(reader), WEFT_ECLOSED);
    weft_runtime_destroy(rt);
}

/* --- New sockets --------------------------------------------------------------------- */

static void new_socket_is_nonblocking_and_close_on_exec(void)
{
    static const int families[] = { AF_INET, AF_UNIX };
    for (unsigned i = 0; i < 2; i++) {
        int fd = wf_socket_new(families[i], SOCK_STREAM);
        CHECK_GE(fd, 0);
        CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
        CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
        CHECK_EQ(wf_socket_undo(fd, -EIO), -EIO);
        CHECK_EQ(fcntl(fd, F_GETFD), -1);
    }
    CHECK_EQ(wf_socket_new(-1, SOCK_STREAM), -EAFNOSUPPORT);
}

TEST_MAIN({
    TEST(stream_options_are_set_and_read),
    TEST(listener_options_are_set_and_read),
    TEST(datagram_options_are_set_and_read),
    TEST(invalid_options_are_refused),
    TEST(pipe_returns_eopnotsupp_for_socket_calls),
    TEST(close_with_zero_linger_sends_reset),
    TEST(nodelay_is_set_unless_nagle_is_requested),
    TEST(each_end_knows_its_own_and_peer_address),
    TEST(socket_pair_has_no_names),
    TEST(path_may_fill_whole_address),
    TEST(unix_socket_reports_peer_credentials),
    TEST(calls_on_closed_stream_return_eclosed),
    TEST(new_socket_is_nonblocking_and_close_on_exec),
    TEST(peer_outside_of_pid_namespace_has_pid_zero),
})
