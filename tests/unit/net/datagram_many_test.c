/* SPDX-License-Identifier: MIT */
/*
 * datagram_many_test.c - many datagrams: several per call, many senders and receivers, and full
 * queues.
 */
#include <weft/datagram.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "crowd.h"
#include "messages.h"
#include "ports.h"
#include "quiet.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

/* Two sockets that know each other's addresses. */
static struct {
    weft_datagram *one;
    weft_datagram *two;
    weft_address to_one;
    weft_address to_two;
} box;

enum kind {
    UDP,
    NAMED,
    PAIR,
    KINDS,
};

static int open_box(void *kind)
{
    switch (*(const enum kind *)kind) {
    case UDP:
        box.one = message_open("udp://127.0.0.1:0", &box.to_one);
        box.two = message_open("udp://127.0.0.1:0", &box.to_two);
        break;
    case NAMED:
        box.one = message_open(port_name("unixgram:").text, &box.to_one);
        box.two = message_open(port_name("unixgram:").text, &box.to_two);
        break;
    default:
        CHECK_EQ(weft_datagram_pair(&box.one, &box.two), 0);
        box.to_one = box.to_two = (weft_address){ .size = 0 };
        break;
    }
    return 0;
}

static int close_box(void *arg)
{
    (void)arg;
    weft_datagram_close(box.one);
    weft_datagram_close(box.two);
    return 0;
}

static weft_runtime *start(unsigned workers, enum kind kind)
{
    weft_runtime *rt = test_start(workers);
    CHECK_EQ(test_run(rt, open_box, &kind), 0);
    return rt;
}

static void stop(weft_runtime *rt)
{
    CHECK_EQ(test_run(rt, close_box, NULL), 0);
    weft_runtime_destroy(rt);
}

static int (*box_function)(void *arg);

static int run_with_box(void *kind)
{
    CHECK_EQ(open_box(kind), 0);
    CHECK_EQ(box_function(kind), 0);
    return close_box(NULL);
}

static void run_with_boxes(int (*function)(void *kind))
{
    box_function = function;
    for (enum kind kind = UDP; kind < KINDS; kind++) {
        port_run_all(run_with_box, &kind);
    }
}

/* --- Several datagrams per call ------------------------------------------------------ */

enum {
    PACKETS = 100,
    SIZE = 8,
};

static char data[PACKETS][SIZE];
static weft_packet packets[PACKETS];

/* Datagram i has i % SIZE bytes, each of value i. */
static void fill_packets(const weft_address *to)
{
    memset(packets, 0x55, sizeof packets);
    for (unsigned i = 0; i < PACKETS; i++) {
        memset(data[i], (int)i, SIZE);
        packets[i].data = data[i];
        packets[i].size = i % SIZE;
        packets[i].address = *to;
    }
}

static void empty_packets(size_t room)
{
    memset(packets, 0x55, sizeof packets);
    memset(data, '#', sizeof data);
    for (unsigned i = 0; i < PACKETS; i++) {
        packets[i].data = data[i];
        packets[i].size = room;
    }
}

/* Checks that packet i holds datagram at. */
static void check_packet(unsigned i, unsigned at, size_t room)
{
    CHECK_EQ(packets[i].received, at % SIZE);
    for (size_t j = 0; j < SIZE; j++) {
        bool is_there = j < at % SIZE && j < room;
        CHECK_EQ(data[i][j], is_there ? (char)at : '#');
    }
    const weft_address *from = &packets[i].address;
    CHECK_EQ(from->size, box.to_one.size);
    CHECK_EQ(memcmp(&from->to, &box.to_one.to, from->size), 0);
}

/*
 * Sends up to wanted datagrams and receives them, up to at_once per call. Returns the number
 * sent: a Unix socket queues ten, or the number that this machine allows.
 */
static unsigned move_packets(unsigned wanted, unsigned at_once, size_t room)
{
    fill_packets(&box.to_two);
    int sent = weft_datagram_send_many(box.one, packets, wanted, WEFT_NEVER);
    CHECK_GE(sent, 1);
    CHECK_LE(sent, (int)wanted);
    CHECK_LE(sent, WEFT_PACKETS_MAX);
    for (unsigned at = 0; at < (unsigned)sent;) {
        empty_packets(room);
        int received = weft_datagram_receive_many(box.two, packets, at_once, test_deadline());
        CHECK_GE(received, 1);
        CHECK_LE(received, (int)at_once);
        for (unsigned i = 0; i < (unsigned)received; i++) {
            check_packet(i, at + i, room);
        }
        at += (unsigned)received;
    }
    message_check_none(box.two);
    return (unsigned)sent;
}

static int move_by_counts(void *kind)
{
    CHECK_EQ(move_packets(1, 1, SIZE), 1);
    CHECK_EQ(move_packets(5, PACKETS, SIZE), 5);
    CHECK_EQ(move_packets(9, 4, 3), 9);
    unsigned most = move_packets(PACKETS, PACKETS, SIZE);
    if (*(const enum kind *)kind == UDP) {
        CHECK_EQ(most, WEFT_PACKETS_MAX);
        CHECK_EQ(move_packets(WEFT_PACKETS_MAX, WEFT_PACKETS_MAX, SIZE), WEFT_PACKETS_MAX);
    }
    return 0;
}

static void one_call_transfers_several_datagrams(void)
{
    run_with_boxes(move_by_counts);
}

static int receive_all_at_once(void *kind)
{
    (void)kind;
    for (unsigned i = 0; i < 7; i++) {
        message_send(box.one, "x", box.to_two.size > 0 ? &box.to_two : NULL);
    }
    empty_packets(SIZE);
    CHECK_EQ(weft_datagram_receive_many(box.two, packets, PACKETS, WEFT_NEVER), 7);
    return 0;
}

static void one_call_receives_all_available_datagrams(void)
{
    run_with_boxes(receive_all_at_once);
}

static int move_none(void *kind)
{
    (void)kind;
    CHECK_EQ(weft_datagram_send_many(box.one, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_datagram_receive_many(box.two, NULL, 0, WEFT_NEVER), 0);
    empty_packets(SIZE);
    CHECK_EQ(weft_datagram_receive_many(box.two, packets, 3, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    return 0;
}

static void empty_transfer_returns_immediately(void)
{
    run_with_boxes(move_none);
}

static int send_bad_datagram(void *kind)
{
    static char much[1 << 20];
    (void)kind;
    fill_packets(&box.to_two);
    packets[2].data = much;
    packets[2].size = sizeof much;
    CHECK_EQ(weft_datagram_send_many(box.one, packets, 5, WEFT_NEVER), 2);
    CHECK_EQ(weft_datagram_send_many(box.one, packets + 2, 3, WEFT_NEVER), -EMSGSIZE);
    empty_packets(SIZE);
    CHECK_EQ(weft_datagram_receive_many(box.two, packets, 5, WEFT_NEVER), 2);
    check_packet(1, 1, SIZE);
    message_check_none(box.two);
    return 0;
}

static void datagrams_before_bad_one_are_sent(void)
{
    run_with_boxes(send_bad_datagram);
}

static int send_to_several(void *arg)
{
    weft_datagram *third;
    weft_address to_third;
    (void)arg;
    third = message_open("udp://127.0.0.1:0", &to_third);
    fill_packets(&box.to_two);
    packets[1].address = to_third;
    packets[3].address = to_third;
    CHECK_EQ(weft_datagram_send_many(box.one, packets, 4, WEFT_NEVER), 4);
    message_check(third, "\1");
    message_check(third, "\3\3\3");
    message_check(box.two, "");
    message_check(box.two, "\2\2");
    weft_datagram_close(third);
    return 0;
}

static void each_datagram_has_its_own_address(void)
{
    box_function = send_to_several;
    port_run_all(run_with_box, &(enum kind){ UDP });
}

/* --- Waiting for space --------------------------------------------------------------- */

static int send_one(weft_datagram *socket, weft_time deadline)
{
    return box.to_two.size > 0 ? (int)weft_datagram_send_to(socket, "x", 1, &box.to_two, deadline)
                               : (int)weft_datagram_send(socket, "x", 1, deadline);
}

static int send_from_one(void *arg)
{
    (void)arg;
    return send_one(box.one, WEFT_NEVER);
}

/*
 * Sends until the queue is full, from the first socket or another. Returns the number of
 * datagrams sent.
 */
static int fill_up(void *other)
{
    int count = 0;
    int err;
    while ((err = send_one(other != NULL ? other : box.one, 0)) == 1) {
        count++;
    }
    CHECK_EQ(err, WEFT_ETIMEDOUT);
    return count;
}

static int open_third(void *third)
{
    weft_address address;
    *(weft_datagram **)third = message_open(port_name("unixgram:").text, &address);
    return 0;
}

static int receive_count(void *count)
{
    char byte;
    for (int i = 0; i < *(const int *)count; i++) {
        CHECK_EQ(weft_datagram_receive(box.two, &byte, 1, test_deadline()), 1);
    }
    return 0;
}

/* Checks that a waiting sender uses no CPU time. */
static void check_idle(void)
{
    quiet_must_be_near(200 * WEFT_MS, test_wait_ns);
}

static void check_that_it_waits(weft_runtime *rt, weft_datagram *filler)
{
    int count = test_run(rt, fill_up, filler);
    CHECK_GE(count, 1);
    weft_task *sender = test_go_first(rt, send_from_one, NULL);
    weft_cancel(sender);
    CHECK_EQ(test_join_soon(sender), WEFT_ECANCELED);
    sender = test_go_first(rt, send_from_one, NULL);
    check_idle();
    CHECK_EQ(test_run(rt, receive_count, &count), 0);
    CHECK_EQ(test_join_soon(sender), 1);
    CHECK_EQ(test_run(rt, receive_count, &(int){ 1 }), 0);
    stop(rt);
}

static void sender_in_pair_waits_for_space(void)
{
    check_that_it_waits(start(1, PAIR), NULL);
}

static void sender_waits_for_space_it_has_used(void)
{
    check_that_it_waits(start(1, NAMED), NULL);
}

static void connected_sender_waits_for_space_used_by_others(void)
{
    weft_runtime *rt = start(1, NAMED);
    weft_datagram *third;
    CHECK_EQ(test_run(rt, open_third, &third), 0);
    CHECK_EQ(weft_datagram_connect(box.one, &box.to_two), 0);
    check_that_it_waits(rt, third);
}

/*
 * The kernel does not notify an unconnected sender when space is available: it reports an event
 * at each attempt, even if the attempt failed.
 */
static void unconnected_sender_waits_for_space_used_by_others(void)
{
    weft_runtime *rt = start(1, NAMED);
    weft_datagram *third;
    CHECK_EQ(test_run(rt, open_third, &third), 0);
    check_that_it_waits(rt, third);
}

static int send_much_from_one(void *arg)
{
    static char much[1 << 20];
    (void)arg;
    return (int)weft_datagram_send(box.one, much, sizeof much, WEFT_NEVER);
}

/*
 * Goal:   a woken sender that fails passes the free space on to the next waiter.
 * Method: two senders wait for space, the first with a datagram that is too large. Then the only
 *         worker receives everything, which is one event.
 */
static void sender_that_fails_wakes_next_waiter(void)
{
    weft_runtime *rt = start(1, PAIR);
    int count = test_run(rt, fill_up, NULL);
    weft_task *bad = test_go_first(rt, send_much_from_one, NULL);
    weft_task *good = test_go_first(rt, send_from_one, NULL);
    CHECK_EQ(test_run(rt, receive_count, &count), 0);
    CHECK_EQ(test_join_soon(bad), -EMSGSIZE);
    CHECK_EQ(test_join_soon(good), 1);
    stop(rt);
}

/* --- Many senders and receivers ------------------------------------------------------ */

enum {
    MEMBERS = 16,
    NUMBERS_MAX = 10000,
};

/* Even members send a number each round, odd members receive one. */
static struct talker {
    weft_io io;
    uint32_t number;
} talkers[MEMBERS];

static _Atomic(uint32_t) seen[NUMBERS_MAX];

static uint64_t talks(void)
{
    return crowd_rounds() / 10 + 3;
}

static int send_or_receive(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    struct talker *talker = &talkers[self->index];
    bool sends = self->index % 2 == 0;
    WEFT_BEGIN(co);
    for (self->round = 0; self->round < talks(); self->round++) {
        talker->number = (uint32_t)(self->index / 2 * talks() + self->round);
        if (sends) {
            weft_datagram_send_init(&talker->io, box.one, &talker->number, 4);
        } else {
            weft_datagram_receive_init(&talker->io, box.two, &talker->number, 4);
        }
        WEFT_AWAIT(co, self->err, &talker->io.future);
        CHECK_EQ(self->err, 4);
        if (!sends) {
            CHECK_LT(talker->number, NUMBERS_MAX);
            atomic_fetch_add(&seen[talker->number], 1);
            self->sum++;
        }
    }
    WEFT_END(co, 0);
}

/*
 * Goal:   each datagram is received once, and no receiver waits while one is available.
 * Method: as many receivers as senders, with the same number of rounds. Each datagram is a
 *         number. A pair loses none.
 */
static void many_receivers_of_one_socket_miss_no_datagram(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3 * CROWD_KINDS; i++) {
        weft_runtime *rt = start(workers[i % 3], PAIR);
        uint64_t total = MEMBERS / 2 * talks();
        CHECK_LT(total, NUMBERS_MAX);
        CHECK_EQ(crowd_run(rt, (enum crowd_kind)(i / 3), MEMBERS, send_or_receive, NULL), total);
        for (uint64_t j = 0; j < total; j++) {
            CHECK_EQ(atomic_exchange(&seen[j], 0), 1);
        }
        stop(rt);
    }
}

static int receive_one(void *arg)
{
    uint32_t number = NUMBERS_MAX;
    (void)arg;
    CHECK_EQ(weft_datagram_receive(box.two, &number, 4, WEFT_NEVER), 4);
    CHECK_LT(number, NUMBERS_MAX);
    atomic_fetch_add(&seen[number], 1);
    return 0;
}

static int send_all_at_once(void *arg)
{
    static uint32_t numbers[MEMBERS];
    (void)arg;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        numbers[i] = i;
        packets[i] = (weft_packet){ .data = &numbers[i], .size = 4, .address = box.to_two };
    }
    CHECK_EQ(weft_datagram_send_many(box.one, packets, MEMBERS, WEFT_NEVER), MEMBERS);
    return 0;
}

/* All receivers wait, then one call sends all datagrams. */
static void one_event_for_many_datagrams_wakes_all_receivers(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = start(workers[i], UDP);
        weft_task *tasks[MEMBERS];
        for (unsigned j = 0; j < MEMBERS; j++) {
            tasks[j] = test_go(rt, receive_one, NULL);
        }
        port_wait_for_users(box.two, MEMBERS);
        CHECK_EQ(test_run(rt, send_all_at_once, NULL), 0);
        for (unsigned j = 0; j < MEMBERS; j++) {
            CHECK_EQ(test_join_soon(tasks[j]), 0);
        }
        for (unsigned j = 0; j < MEMBERS; j++) {
            CHECK_EQ(atomic_exchange(&seen[j], 0), 1);
        }
        stop(rt);
    }
}

/* --- In stackless tasks -------------------------------------------------------------- */

struct echo {
    weft_io io;
    weft_address from;
    weft_packet packet;
    char buffer[SIZE];
    int err;
};

/* Awaits each datagram operation in a stackless task. */
static int echo_in_stackless_task(weft_co *co, void *state)
{
    struct echo *self = test_arg(state);
    WEFT_BEGIN(co);
    weft_datagram_peek_init(&self->io, box.two, self->buffer, SIZE, &self->from);
    WEFT_AWAIT(co, self->err, &self->io.future);
    CHECK_EQ(self->err, 3);
    weft_datagram_receive_from_init(&self->io, box.two, self->buffer, SIZE, &self->from);
    WEFT_AWAIT(co, self->err, &self->io.future);
    CHECK_EQ(self->err, 3);
    weft_datagram_send_to_init(&self->io, box.two, self->buffer, 3, &self->from);
    WEFT_AWAIT(co, self->err, &self->io.future);
    CHECK_EQ(self->err, 3);
    self->packet = (weft_packet){ .data = self->buffer, .size = SIZE };
    weft_datagram_receive_many_init(&self->io, box.one, &self->packet, 1);
    WEFT_AWAIT(co, self->err, &self->io.future);
    CHECK_EQ(self->err, 1);
    CHECK_EQ(self->packet.received, 3);
    self->packet.size = 3;
    self->packet.address = box.to_two;
    weft_datagram_send_many_init(&self->io, box.one, &self->packet, 1);
    WEFT_AWAIT(co, self->err, &self->io.future);
    CHECK_EQ(self->err, 1);
    WEFT_END(co, 0);
}

static int send_abc(void *arg)
{
    (void)arg;
    message_send(box.one, "abc", &box.to_two);
    return 0;
}

static int check_abc(void *arg)
{
    (void)arg;
    message_check(box.two, "abc");
    return 0;
}

static void stackless_tasks_send_and_receive(void)
{
    static const enum kind kinds[] = { UDP, NAMED };
    for (unsigned i = 0; i < 2; i++) {
        struct echo echo;
        weft_runtime *rt = start(1, kinds[i]);
        weft_task *body = test_spawn(rt, echo_in_stackless_task, &echo);
        test_settle(rt);
        CHECK_EQ(test_run(rt, send_abc, NULL), 0);
        CHECK_EQ(test_join_soon(body), 0);
        CHECK_EQ(test_run(rt, check_abc, NULL), 0);
        stop(rt);
    }
}

TEST_MAIN({
    TEST(one_call_transfers_several_datagrams),
    TEST(one_call_receives_all_available_datagrams),
    TEST(empty_transfer_returns_immediately),
    TEST(datagrams_before_bad_one_are_sent),
    TEST(each_datagram_has_its_own_address),
    TEST(sender_in_pair_waits_for_space),
    TEST(connected_sender_waits_for_space_used_by_others),
    TEST(many_receivers_of_one_socket_miss_no_datagram),
    TEST(one_event_for_many_datagrams_wakes_all_receivers),
    TEST(stackless_tasks_send_and_receive),
    TEST(sender_waits_for_space_it_has_used),
    TEST(unconnected_sender_waits_for_space_used_by_others),
    TEST(sender_that_fails_wakes_next_waiter),
})
