/* SPDX-License-Identifier: MIT */
/*
 * datagram_place_test.c - addresses of datagram sockets: paths, ports, multicast groups.
 */
#include <weft/datagram.h>

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <weft.h>

#include "messages.h"
#include "ports.h"
#include "test.h"

/* --- Endpoints ----------------------------------------------------------------------- */

static int open_at_paths(void *arg)
{
    weft_datagram *socket;
    weft_datagram *other = NULL;
    weft_datagram_options keep = { .keep_path = true };
    struct place path = port_path("unixgram:");
    (void)arg;
    CHECK_EQ(weft_datagram_open(&socket, path.text, NULL), 0);
    CHECK(port_exists(&path));
    CHECK_EQ(weft_datagram_open(&other, path.text, NULL), -EADDRINUSE);
    CHECK(other == NULL);
    CHECK(port_exists(&path));
    weft_datagram_close(socket);
    CHECK(!port_exists(&path));
    CHECK_EQ(weft_datagram_open(&socket, path.text, &keep), 0);
    weft_datagram_close(socket);
    CHECK(port_exists(&path));
    CHECK_EQ(unlink(port_path_of(&path)), 0);
    return 0;
}

static void close_removes_path_unless_it_is_kept(void)
{
    port_run_all(open_at_paths, NULL);
}

static int close_after_path_was_taken(void *arg)
{
    struct place path = port_path("unixgram:");
    weft_datagram *first;
    weft_datagram *second;
    (void)arg;
    CHECK_EQ(weft_datagram_open(&first, path.text, NULL), 0);
    CHECK_EQ(unlink(port_path_of(&path)), 0);
    CHECK_EQ(weft_datagram_open(&second, path.text, NULL), 0);
    weft_datagram_close(first);
    CHECK(port_exists(&path));
    weft_address address = port_address(path.text);
    message_send(second, "to itself", &address);
    message_check(second, "to itself");
    weft_datagram_close(second);
    CHECK(!port_exists(&path));
    return 0;
}

static void close_keeps_path_that_another_owns(void)
{
    port_run_all(close_after_path_was_taken, NULL);
}

/* Returns an address whose path fills it, without a terminating zero. */
static struct sockaddr_un longest_address(const struct place *place)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    memset(address.sun_path, 'x', sizeof address.sun_path);
    const char *path = port_path_of(place);
    memcpy(address.sun_path, path, strlen(path));
    return address;
}

static int new_peer(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* Checks that the sender can be answered, for each call that receives the datagram. */
static void answer(weft_datagram *socket, int peer, const weft_address *from)
{
    char buffer[8];
    CHECK_EQ(weft_datagram_send_to(socket, "no", 2, from, WEFT_NEVER), 2);
    CHECK_EQ(recv(peer, buffer, sizeof buffer, MSG_DONTWAIT), 2);
}

static int answer_longest_path(void *arg)
{
    struct place path = port_path("unixgram:");
    struct place far = port_path("unixgram:");
    struct sockaddr_un longest = longest_address(&far);
    char text[sizeof longest.sun_path + 1] = "";
    weft_address address = port_address(path.text);
    weft_address from;
    weft_datagram *socket;
    char buffer[8];
    (void)arg;
    CHECK_EQ(weft_datagram_open(&socket, path.text, NULL), 0);
    int peer = new_peer();
    CHECK_EQ(bind(peer, (struct sockaddr *)&longest, sizeof longest), 0);
    CHECK_EQ(connect(peer, &address.to.any, address.size), 0);
    CHECK_EQ(send(peer, "yes?", 4, 0), 4);
    CHECK_EQ(weft_datagram_peek(socket, buffer, sizeof buffer, &from, WEFT_NEVER), 4);
    answer(socket, peer, &from);
    CHECK_EQ(weft_datagram_receive_from(socket, buffer, sizeof buffer, &from, WEFT_NEVER), 4);
    answer(socket, peer, &from);
    CHECK_EQ(send(peer, "yes?", 4, 0), 4);
    weft_packet packet = { .data = buffer, .size = sizeof buffer };
    CHECK_EQ(weft_datagram_receive_many(socket, &packet, 1, WEFT_NEVER), 1);
    answer(socket, peer, &packet.address);
    CHECK_EQ(weft_datagram_connect(socket, &packet.address), 0);
    CHECK_EQ(weft_datagram_peer(socket, &from), 0);
    answer(socket, peer, &from);
    weft_datagram *adopted;
    CHECK_EQ(weft_datagram_adopt(&adopted, peer), 0);
    CHECK_EQ(weft_datagram_address(adopted, &from), 0);
    answer(socket, peer, &from);
    memcpy(text, longest.sun_path, sizeof longest.sun_path);
    char printed[WEFT_ADDRESS_TEXT_MAX];
    (void)weft_address_print(&from, printed, sizeof printed);
    CHECK_HAS(printed, text);
    weft_datagram_close(adopted);
    CHECK_EQ(unlink(text), 0);
    weft_datagram_close(socket);
    return 0;
}

static void sender_at_longest_path_can_be_answered(void)
{
    port_run(1, answer_longest_path, NULL);
}

static int open_at_bad_places(void *arg)
{
    static const char *const places[] = {
        "",       "127.0.0.1:0",     "tcp://127.0.0.1:0", "unix:/tmp/x", "unix:@x",
        "udp://", "udp://127.0.0.1", "unixgram:",         "unixgram:@",  "udp://127.0.0.1:"
    };
    weft_datagram *socket = NULL;
    (void)arg;
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        CHECK_EQ(weft_datagram_open(&socket, places[i], NULL), -EINVAL);
    }
    CHECK_EQ(weft_datagram_open(&socket, "udp://203.0.113.1:0", NULL), -EADDRNOTAVAIL);
    CHECK_EQ(weft_datagram_open(&socket, "unixgram:/no/such/folder/x", NULL), -ENOENT);
    port_end_fds();
    int err = weft_datagram_open(&socket, "udp://127.0.0.1:0", NULL);
    port_mend_fds();
    CHECK_EQ(err, -EMFILE);
    CHECK(socket == NULL);
    CHECK_EQ(weft_datagram_open(&socket, "udp://localhost:0", NULL), 0);
    weft_datagram_close(socket);
    return 0;
}

static void invalid_endpoints_are_refused(void)
{
    port_run(1, open_at_bad_places, NULL);
}

static int share_port(void *arg)
{
    weft_datagram_options shared = { .reuse_port = true };
    weft_datagram_options reused = { .reuse_address = true };
    weft_datagram *one;
    weft_datagram *two;
    weft_address address;
    struct place place = { "udp://" };
    (void)arg;
    CHECK_EQ(weft_datagram_open(&one, "udp://127.0.0.1:0", &shared), 0);
    CHECK_EQ(weft_datagram_address(one, &address), 0);
    (void)weft_address_print(&address, place.text + 6, sizeof place.text - 6);
    CHECK_EQ(weft_datagram_open(&two, place.text, NULL), -EADDRINUSE);
    CHECK_EQ(weft_datagram_open(&two, place.text, &shared), 0);
    weft_datagram_close(one);
    weft_datagram_close(two);
    CHECK_EQ(weft_datagram_open(&one, place.text, &reused), 0);
    CHECK_EQ(weft_datagram_open(&two, place.text, &reused), 0);
    weft_datagram_close(one);
    weft_datagram_close(two);
    return 0;
}

static void sockets_share_address_if_all_request_it(void)
{
    port_run(1, share_port, NULL);
}

static int open_for_both(void *arg)
{
    weft_datagram *socket;
    weft_datagram *sender;
    weft_address address;
    weft_address to;
    weft_datagram_options only = { .v6_only = true };
    (void)arg;
    CHECK_EQ(weft_datagram_open(&socket, "udp://[::]:0", NULL), 0);
    CHECK_EQ(weft_datagram_address(socket, &address), 0);
    sender = message_open("udp://127.0.0.1:0", &to);
    to = port_address("127.0.0.1:1");
    CHECK_EQ(weft_address_set_port(&to, weft_address_port(&address)), 0);
    message_send(sender, "v4", &to);
    message_check(socket, "v4");
    weft_datagram_close(socket);
    CHECK_EQ(weft_datagram_open(&socket, "udp://[::]:0", &only), 0);
    int value = 0;
    CHECK_EQ(weft_datagram_option(socket, WEFT_OPTION_V6_ONLY, &value), 0);
    CHECK_EQ(value, 1);
    weft_datagram_close(socket);
    weft_datagram_close(sender);
    return 0;
}

static void v6_socket_receives_v4_unless_v6_only(void)
{
    if (port_has_v6()) {
        port_run(1, open_for_both, NULL);
    }
}

static int adopt_sockets(void *arg)
{
    weft_datagram *socket_of = NULL;
    int ends[2];
    (void)arg;
    CHECK_EQ(weft_datagram_adopt(&socket_of, -1), -EBADF);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQ(weft_datagram_adopt(&socket_of, ends[0]), -ENOTSOCK);
    CHECK_EQ(close(ends[0]) + close(ends[1]), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_EQ(weft_datagram_adopt(&socket_of, ends[0]), -EINVAL);
    CHECK_EQ(close(ends[0]) + close(ends[1]), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_EQ(weft_datagram_adopt(&socket_of, ends[0]), 0);
    CHECK_EQ(weft_datagram_fd(socket_of), ends[0]);
    CHECK((fcntl(ends[0], F_GETFL) & O_NONBLOCK) != 0);
    CHECK_EQ(write(ends[1], "hi", 2), 2);
    message_check(socket_of, "hi");
    weft_datagram_close(socket_of);
    CHECK_EQ(fcntl(ends[0], F_GETFD), -1);
    CHECK_EQ(close(ends[1]), 0);
    return 0;
}

static void datagram_socket_can_be_adopted(void)
{
    port_run_all(adopt_sockets, NULL);
}

/* --- Broadcast and multicast --------------------------------------------------------- */

static int send_to_all(void *arg)
{
    weft_datagram_options may = { .broadcast = true };
    weft_datagram *sender;
    weft_datagram *receiver;
    weft_address address;
    weft_address all = port_address("127.255.255.255:1");
    (void)arg;
    receiver = message_open("udp://0.0.0.0:0", &address);
    CHECK_EQ(weft_address_set_port(&all, weft_address_port(&address)), 0);
    sender = message_open("udp://127.0.0.1:0", &address);
    CHECK_EQ(weft_datagram_send_to(sender, "x", 1, &all, WEFT_NEVER), -EACCES);
    weft_datagram_close(sender);
    CHECK_EQ(weft_datagram_open(&sender, "udp://127.0.0.1:0", &may), 0);
    message_send(sender, "all", &all);
    message_check(receiver, "all");
    weft_datagram_close(sender);
    weft_datagram_close(receiver);
    return 0;
}

static void broadcast_requires_option(void)
{
    port_run(1, send_to_all, NULL);
}

/* Keeps the datagrams on this machine: their hop limit is 0, and they go through lo. */
static void prepare_sender(weft_datagram *sender, int family, unsigned lo)
{
    struct ip_mreqn v4 = { .imr_ifindex = (int)lo };
    int fd = weft_datagram_fd(sender);
    CHECK_EQ(weft_datagram_set_option(sender, WEFT_OPTION_MULTICAST_TTL, 0), 0);
    if (family == AF_INET) {
        CHECK_EQ(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &v4, sizeof v4), 0);
    } else {
        CHECK_EQ(setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &lo, sizeof lo), 0);
    }
}

/*
 * Checks that the group datagram is received by a member, and that others get only the direct one
 * sent after it.
 */
static void check_group(weft_datagram *sender, weft_datagram *receiver, const weft_address *group,
                        const weft_address *direct, bool is_member)
{
    message_send(sender, "group", group);
    message_send(sender, "direct", direct);
    if (is_member) {
        message_check(receiver, "group");
    }
    message_check(receiver, "direct");
}

static int join_and_leave(void *arg)
{
    bool is_v4 = arg == NULL;
    unsigned lo = if_nametoindex("lo");
    weft_address group = port_address(is_v4 ? "239.255.77.77:1" : "[ff01::7777]:1");
    weft_address direct = port_address(is_v4 ? "127.0.0.1:1" : "[::1]:1");
    weft_address address;
    weft_datagram *receiver = message_open(is_v4 ? "udp://0.0.0.0:0" : "udp://[::]:0", &address);
    CHECK_EQ(weft_address_set_port(&group, weft_address_port(&address)), 0);
    CHECK_EQ(weft_address_set_port(&direct, weft_address_port(&address)), 0);
    weft_datagram *sender = message_open(is_v4 ? "udp://127.0.0.1:0" : "udp://[::1]:0", &address);
    int err = weft_datagram_join(receiver, &group, lo);
    prepare_sender(sender, is_v4 ? AF_INET : AF_INET6, lo);
    if (err != 0 || weft_datagram_send_to(sender, "group", 5, &group, WEFT_NEVER) < 0) {
        test_skip("lo has no multicast groups of %s", is_v4 ? "IPv4" : "IPv6");
    } else {
        message_check(receiver, "group");
        check_group(sender, receiver, &group, &direct, true);
        CHECK_EQ(weft_datagram_join(receiver, &group, lo), -EADDRINUSE);
        CHECK_EQ(weft_datagram_leave(receiver, &group, lo), 0);
        check_group(sender, receiver, &group, &direct, false);
        CHECK_EQ(weft_datagram_leave(receiver, &group, lo), -EADDRNOTAVAIL);
    }
    CHECK_EQ(weft_datagram_join(receiver, &direct, lo), -EINVAL);
    CHECK_EQ(weft_datagram_join(receiver, &group, 1000000), -ENODEV);
    weft_address path = port_address("unix:/x");
    weft_address nothing = { .size = 0 };
    CHECK_EQ(weft_datagram_join(receiver, &path, lo), -EINVAL);
    CHECK_EQ(weft_datagram_leave(receiver, &nothing, lo), -EINVAL);
    weft_datagram_close(sender);
    weft_datagram_close(receiver);
    return 0;
}

static void group_member_receives_group_datagrams(void)
{
    port_run(1, join_and_leave, NULL);
    if (port_has_v6()) {
        port_run(1, join_and_leave, "v6");
    }
}

TEST_MAIN({
    TEST(close_removes_path_unless_it_is_kept),
    TEST(close_keeps_path_that_another_owns),
    TEST(sender_at_longest_path_can_be_answered),
    TEST(invalid_endpoints_are_refused),
    TEST(sockets_share_address_if_all_request_it),
    TEST(v6_socket_receives_v4_unless_v6_only),
    TEST(datagram_socket_can_be_adopted),
    TEST(broadcast_requires_option),
    TEST_NATIVE(group_member_receives_group_datagrams,
                "does not know IP_MULTICAST_IF with an interface"),
})
