/* SPDX-License-Identifier: MIT */
/*
 * datagram_test.c - single datagrams over UDP and Unix sockets. datagram_place_test.c tests the
 * addresses of sockets, and datagram_many_test.c many datagrams and many senders.
 */
#include <weft/datagram.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "messages.h"
#include "ports.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

/* Two sockets that know each other's addresses. */
static struct {
    weft_datagram *one;
    weft_datagram *two;
    weft_address to_one;
    weft_address to_two;
    bool is_udp;
} box;

enum {
    KINDS = 4,
};

static struct place place_of(unsigned kind)
{
    struct place place = kind == 2 ? port_path("unixgram:") : port_name("unixgram:");
    if (kind < 2) {
        (void)snprintf(place.text, sizeof place.text,
                       kind == 0 ? "udp://127.0.0.1:0" : "udp://[::1]:0");
    }
    return place;
}

static void open_box(unsigned kind)
{
    box.one = message_open(place_of(kind).text, &box.to_one);
    box.two = message_open(place_of(kind).text, &box.to_two);
    box.is_udp = kind < 2;
}

static int close_box(void *arg)
{
    (void)arg;
    weft_datagram_close(box.one);
    weft_datagram_close(box.two);
    return 0;
}

static int (*box_function)(void *arg);

static int run_with_box(void *kind)
{
    open_box(*(const unsigned *)kind);
    CHECK_EQ(box_function(NULL), 0);
    return close_box(NULL);
}

/* Runs the function with each kind of socket, and 1, 2 and 8 workers. */
static void run_with_boxes(int (*function)(void *arg))
{
    box_function = function;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        if (kind != 1 || port_has_v6()) {
            port_run_all(run_with_box, &kind);
        }
    }
}

static bool is_same(const weft_address *one, const weft_address *other)
{
    return one->size == other->size && memcmp(&one->to, &other->to, one->size) == 0;
}

/* --- One datagram -------------------------------------------------------------------- */

static int send_and_answer(void *arg)
{
    char buffer[16];
    weft_address from;
    (void)arg;
    message_send(box.one, "question", &box.to_two);
    CHECK_EQ(weft_datagram_receive_from(box.two, buffer, sizeof buffer, &from, WEFT_NEVER), 8);
    CHECK_EQ(memcmp(buffer, "question", 8), 0);
    CHECK(is_same(&from, &box.to_one));
    message_send(box.two, "answer", &from);
    message_check(box.one, "answer");
    message_check_none(box.one);
    message_check_none(box.two);
    return 0;
}

static void receive_from_reports_sender_address(void)
{
    run_with_boxes(send_and_answer);
}

static int keep_apart(void *arg)
{
    (void)arg;
    message_send(box.one, "one", &box.to_two);
    message_send(box.one, "", &box.to_two);
    message_send(box.one, "three", &box.to_two);
    message_check(box.two, "one");
    message_check(box.two, "");
    message_check(box.two, "three");
    return 0;
}

static void datagrams_keep_boundaries_and_may_be_empty(void)
{
    run_with_boxes(keep_apart);
}

static int receive_with_less_room(void *arg)
{
    char buffer[5] = "####";
    weft_address from;
    (void)arg;
    message_send(box.one, "0123456789", &box.to_two);
    message_send(box.one, "next", &box.to_two);
    CHECK_EQ(weft_datagram_peek(box.two, buffer, 1, &from, WEFT_NEVER), 10);
    CHECK_EQ(weft_datagram_receive_from(box.two, buffer, 3, &from, WEFT_NEVER), 10);
    CHECK_EQ(memcmp(buffer, "012#", 4), 0);
    CHECK(is_same(&from, &box.to_one));
    message_check(box.two, "next");
    message_send(box.one, "0123456789", &box.to_two);
    CHECK_EQ(weft_datagram_receive(box.two, buffer, 0, WEFT_NEVER), 10);
    message_check_none(box.two);
    return 0;
}

static void truncated_datagram_reports_its_full_size(void)
{
    run_with_boxes(receive_with_less_room);
}

static int peek_first(void *arg)
{
    char buffer[8];
    weft_address from;
    (void)arg;
    message_send(box.one, "first", &box.to_two);
    message_send(box.one, "second", &box.to_two);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(weft_datagram_peek(box.two, buffer, sizeof buffer, &from, WEFT_NEVER), 5);
        CHECK_EQ(memcmp(buffer, "first", 5), 0);
        CHECK(is_same(&from, &box.to_one));
    }
    message_check(box.two, "first");
    message_check(box.two, "second");
    message_check_none(box.two);
    return 0;
}

static void peeked_datagram_can_be_received_again(void)
{
    run_with_boxes(peek_first);
}

static int send_too_much(void *arg)
{
    static char much[1 << 20];
    (void)arg;
    CHECK_EQ(weft_datagram_send_to(box.one, much, sizeof much, &box.to_two, WEFT_NEVER), -EMSGSIZE);
    message_check_none(box.two);
    message_send(box.one, "still here", &box.to_two);
    message_check(box.two, "still here");
    return 0;
}

static void oversized_datagram_is_refused(void)
{
    run_with_boxes(send_too_much);
}

/* --- Connected ----------------------------------------------------------------------- */

static int connect_and_disconnect(void *arg)
{
    weft_address address;
    (void)arg;
    ssize_t none = weft_datagram_send(box.one, "x", 1, WEFT_NEVER);
    CHECK(none == -EDESTADDRREQ || none == -ENOTCONN);
    CHECK_EQ(weft_datagram_peer(box.one, &address), -ENOTCONN);
    CHECK_EQ(weft_datagram_connect(box.one, &box.to_two), 0);
    CHECK_EQ(weft_datagram_peer(box.one, &address), 0);
    CHECK(is_same(&address, &box.to_two));
    CHECK_EQ(weft_datagram_send(box.one, "hello", 5, WEFT_NEVER), 5);
    message_check(box.two, "hello");
    message_send(box.two, "back", &box.to_one);
    message_check(box.one, "back");
    CHECK_EQ(weft_datagram_connect(box.one, NULL), 0);
    CHECK_EQ(weft_datagram_peer(box.one, &address), -ENOTCONN);
    CHECK_LT(weft_datagram_send(box.one, "x", 1, WEFT_NEVER), 0);
    return 0;
}

static void connected_socket_needs_no_address(void)
{
    run_with_boxes(connect_and_disconnect);
}

static int disconnect_and_stay(void *arg)
{
    weft_address address;
    (void)arg;
    CHECK_EQ(weft_datagram_connect(box.one, &box.to_two), 0);
    CHECK_EQ(weft_datagram_connect(box.one, NULL), 0);
    CHECK_EQ(weft_datagram_address(box.one, &address), 0);
    CHECK(is_same(&address, &box.to_one));
    message_send(box.two, "found", &box.to_one);
    message_check(box.one, "found");
    return 0;
}

static void disconnected_socket_keeps_its_address(void)
{
    run_with_boxes(disconnect_and_stay);
}

static int receive_from_stranger(void *arg)
{
    weft_address address;
    weft_datagram *stranger;
    (void)arg;
    if (box.is_udp) {
        bool is_v4 = box.to_one.to.any.sa_family == AF_INET;
        stranger = message_open(place_of(is_v4 ? 0 : 1).text, &address);
        CHECK_EQ(weft_datagram_connect(box.one, &box.to_two), 0);
        message_send(stranger, "not for you", &box.to_one);
    } else {
        stranger = message_open(place_of(3).text, &address);
        CHECK_EQ(weft_datagram_connect(box.one, &box.to_two), 0);
        CHECK_EQ(weft_datagram_send_to(stranger, "no", 2, &box.to_one, WEFT_NEVER), -EPERM);
    }
    message_send(box.two, "for you", &box.to_one);
    message_check(box.one, "for you");
    message_check_none(box.one);
    weft_datagram_close(stranger);
    return 0;
}

static void connected_socket_receives_only_from_peer(void)
{
    run_with_boxes(receive_from_stranger);
}

static int lose_peer(void *arg)
{
    char byte;
    (void)arg;
    CHECK_EQ(weft_datagram_connect(box.one, &box.to_two), 0);
    weft_datagram_close(box.two);
    box.two = NULL;
    if (box.is_udp) { /* The kernel gets an ICMP error. */
        CHECK_EQ(weft_datagram_send(box.one, "x", 1, WEFT_NEVER), 1);
        CHECK_EQ(weft_datagram_receive(box.one, &byte, 1, test_deadline()), -ECONNREFUSED);
        message_check_none(box.one); /* It is reported once. */
    } else {
        CHECK_EQ(weft_datagram_send(box.one, "x", 1, WEFT_NEVER), -ECONNREFUSED);
    }
    return 0;
}

static void send_to_closed_peer_returns_econnrefused(void)
{
    run_with_boxes(lose_peer);
}

static int talk_in_pair(void *arg)
{
    weft_datagram *one;
    weft_datagram *two;
    weft_address from;
    char buffer[8];
    (void)arg;
    CHECK_EQ(weft_datagram_pair(&one, &two), 0);
    CHECK((fcntl(weft_datagram_fd(one), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK_EQ(weft_datagram_send(one, "ping", 4, WEFT_NEVER), 4);
    CHECK_EQ(weft_datagram_receive_from(two, buffer, sizeof buffer, &from, WEFT_NEVER), 4);
    CHECK_EQ(weft_address_print(&from, NULL, 0), 0); /* It has no name. */
    CHECK_EQ(weft_datagram_send(two, "pong", 4, WEFT_NEVER), 4);
    message_check(one, "pong");
    weft_datagram_close(one);
    CHECK_LT(weft_datagram_send(two, "x", 1, WEFT_NEVER), 0);
    weft_datagram_close(two);
    port_end_fds();
    int err = weft_datagram_pair(&one, &two);
    port_mend_fds();
    CHECK_EQ(err, -EMFILE);
    return 0;
}

static void datagram_pair_is_connected(void)
{
    port_run_all(talk_in_pair, NULL);
}

/* --- Waiting ------------------------------------------------------------------------- */

static int open_given_box(void *kind)
{
    open_box(*(const unsigned *)kind);
    return 0;
}

static weft_runtime *start(unsigned workers, unsigned kind)
{
    weft_runtime *rt = test_start(workers);
    CHECK_EQ(test_run(rt, open_given_box, &kind), 0);
    return rt;
}

static void stop(weft_runtime *rt)
{
    CHECK_EQ(test_run(rt, close_box, NULL), 0);
    weft_runtime_destroy(rt);
}

static int receive_at_two(void *deadline)
{
    char buffer[8];
    return (int)weft_datagram_receive(box.two, buffer, sizeof buffer,
                                      deadline != NULL ? *(weft_time *)deadline : WEFT_NEVER);
}

static int send_from_one(void *arg)
{
    (void)arg;
    message_send(box.one, "text", &box.to_two);
    return 0;
}

static void waiting_receiver_gets_datagram(void)
{
    for (unsigned kind = 0; kind < KINDS; kind += kind == 0 ? 2 : 1) {
        weft_runtime *rt = start(1, kind);
        weft_time late = weft_after(3 * WEFT_MS);
        CHECK_EQ(test_run(rt, receive_at_two, &late), WEFT_ETIMEDOUT);
        CHECK_GE(weft_now(), late);
        weft_task *receiver = test_go_first(rt, receive_at_two, NULL);
        weft_cancel(receiver);
        CHECK_EQ(test_join_soon(receiver), WEFT_ECANCELED);
        receiver = test_go_first(rt, receive_at_two, NULL);
        CHECK_EQ(test_run(rt, send_from_one, NULL), 0);
        CHECK_EQ(test_join_soon(receiver), 4);
        stop(rt);
    }
}

static int call_closed_socket(void *arg)
{
    weft_address address;
    int value;
    (void)arg;
    weft_datagram_close(box.two);
    /* The receiver has not returned yet: this is the only worker. */
    CHECK_EQ(weft_datagram_address(box.two, &address), WEFT_ECLOSED);
    CHECK_EQ(weft_datagram_peer(box.two, &address), WEFT_ECLOSED);
    CHECK_EQ(weft_datagram_connect(box.two, NULL), WEFT_ECLOSED);
    CHECK_EQ(weft_datagram_option(box.two, WEFT_OPTION_LINGER, &value), WEFT_ECLOSED);
    CHECK_EQ(weft_datagram_set_option(box.two, WEFT_OPTION_LINGER, 1), WEFT_ECLOSED);
    CHECK_EQ(weft_datagram_join(box.two, &box.to_one, 0), WEFT_ECLOSED);
    CHECK_EQ(weft_datagram_send_to(box.two, "x", 1, &box.to_one, WEFT_NEVER), WEFT_ECLOSED);
    box.two = NULL;
    return 0;
}

static void calls_on_closed_socket_return_eclosed(void)
{
    weft_runtime *rt = start(1, 0);
    weft_task *receiver = test_go_first(rt, receive_at_two, NULL);
    CHECK_EQ(test_run(rt, call_closed_socket, NULL), 0);
    CHECK_EQ(test_join_soon(receiver), WEFT_ECLOSED);
    stop(rt);
}

static void close_wakes_all_receivers_with_eclosed(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 6; i++) {
        weft_runtime *rt = start(workers[i % 3], i < 3 ? 0 : 3);
        weft_task *tasks[8];
        for (unsigned j = 0; j < 8; j++) {
            tasks[j] = test_go(rt, receive_at_two, NULL);
        }
        port_wait_for_users(box.two, 8);
        weft_datagram_close(box.two);
        for (unsigned j = 0; j < 8; j++) {
            CHECK_EQ(test_join_soon(tasks[j]), WEFT_ECLOSED);
        }
        box.two = NULL;
        stop(rt);
    }
}

static int select_readable(void *arg)
{
    weft_op readable;
    weft_op writable;
    char buffer[8];
    (void)arg;
    weft_datagram_readable_init(&readable, box.two);
    weft_datagram_writable_init(&writable, box.two);
    weft_branch branches[] = { { .future = &readable.future }, { .future = &writable.future } };
    CHECK_EQ(weft_select(branches, 2, WEFT_SELECT_ORDERED, WEFT_NEVER), 1);
    CHECK_EQ(weft_select(branches, 1, 0, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    message_send(box.one, "now", &box.to_two);
    CHECK_EQ(weft_select(branches, 1, 0, WEFT_NEVER), 0);
    CHECK_EQ(branches[0].result, 0);
    CHECK_EQ(weft_datagram_receive(box.two, buffer, 8, 0), 3);
    CHECK_EQ(weft_select(branches, 1, 0, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    return 0;
}

static void select_waits_for_datagram(void)
{
    run_with_boxes(select_readable);
}

static int select_receive(void *arg)
{
    char one[8];
    char two[8];
    weft_io ios[2];
    (void)arg;
    weft_datagram_receive_init(&ios[0], box.one, one, sizeof one);
    weft_datagram_receive_init(&ios[1], box.two, two, sizeof two);
    message_send(box.one, "won", &box.to_two);
    weft_branch branches[] = { { .future = &ios[0].future }, { .future = &ios[1].future } };
    CHECK_EQ(weft_select(branches, 2, 0, WEFT_NEVER), 1);
    CHECK_EQ(branches[1].result, 3);
    message_send(box.two, "lost", &box.to_one);
    message_check(box.one, "lost");
    return 0;
}

static void receive_that_loses_select_takes_nothing(void)
{
    run_with_boxes(select_receive);
}

TEST_MAIN({
    TEST(receive_from_reports_sender_address),
    TEST(datagrams_keep_boundaries_and_may_be_empty),
    TEST(truncated_datagram_reports_its_full_size),
    TEST(peeked_datagram_can_be_received_again),
    TEST(oversized_datagram_is_refused),
    TEST(connected_socket_needs_no_address),
    TEST(connected_socket_receives_only_from_peer),
    TEST(send_to_closed_peer_returns_econnrefused),
    TEST(datagram_pair_is_connected),
    TEST(waiting_receiver_gets_datagram),
    TEST(calls_on_closed_socket_return_eclosed),
    TEST(close_wakes_all_receivers_with_eclosed),
    TEST(select_waits_for_datagram),
    TEST(receive_that_loses_select_takes_nothing),
    TEST(disconnected_socket_keeps_its_address),
})
