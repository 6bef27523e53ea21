/* SPDX-License-Identifier: MIT */
/*
 * peer_test.c - sends to a Unix datagram receiver whose queue is full.
 *
 * With the clock paused, no backoff ends: only an event wakes a sender.
 */
#include "net/peer.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weft.h>

#include "io/source.h"
#include "links.h"
#include "ports.h"
#include "rt.h"
#include "test.h"

enum {
    SENDERS = 3,
};

static struct {
    int receiver;
    weft_address address; /* the receiver's */
    weft_datagram *socket;
    bool many; /* use weft_datagram_send_many() */
    weft_time deadline;
    unsigned fds; /* descriptors of the process at the start */
} rig;

static int new_receiver(weft_address *address)
{
    struct place name = port_name("unixgram:");
    *address = port_address(name.text);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK_GE(fd, 0);
    CHECK_EQ(bind(fd, &address->to.any, address->size), 0);
    return fd;
}

static void fill_receiver(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK_GE(fd, 0);
    while (sendto(fd, "x", 1, 0, &rig.address.to.any, rig.address.size) == 1) {
    }
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(close(fd), 0);
}

static int open_socket(void *arg)
{
    (void)arg;
    return weft_datagram_open(&rig.socket, port_name("unixgram:").text, NULL);
}

static int close_socket(void *arg)
{
    (void)arg;
    weft_datagram_close(rig.socket);
    return 0;
}

static weft_runtime *start(unsigned workers)
{
    rig.fds = link_fds();
    rig.deadline = WEFT_NEVER;
    rig.receiver = new_receiver(&rig.address);
    weft_runtime *rt = test_start(workers);
    CHECK_EQ(test_run(rt, open_socket, NULL), 0);
    return rt;
}

static void stop(weft_runtime *rt)
{
    weft_runtime_destroy(rt);
    if (rig.receiver >= 0) {
        CHECK_EQ(close(rig.receiver), 0);
    }
    CHECK_EQ(link_fds(), rig.fds);
}

static int send_one(void *arg)
{
    char byte = 'y';
    (void)arg;
    if (rig.many) {
        weft_packet packet = { .data = &byte, .size = 1, .address = rig.address };
        return weft_datagram_send_many(rig.socket, &packet, 1, rig.deadline);
    }
    return (int)weft_datagram_send_to(rig.socket, &byte, 1, &rig.address, rig.deadline);
}

static void go_send(weft_runtime *rt, weft_task **senders)
{
    for (unsigned i = 0; i < SENDERS; i++) {
        senders[i] = test_go(rt, send_one, NULL);
    }
    port_wait_for_users(rig.socket, SENDERS);
}

/* Reads until a datagram of this test arrives. */
static void receive_one(void)
{
    char byte = '\0';
    while (byte != 'y') {
        ssize_t n = recv(rig.receiver, &byte, 1, 0);
        CHECK(n == 1 || errno == EAGAIN); /* It arrives soon. */
    }
}

static const unsigned workers[] = { 1, 2, 8 };

/* Calls the function with each number of workers, for both calls, with a full receiver. */
static void run_all(void (*function)(weft_runtime *rt))
{
    for (unsigned i = 0; i < 6; i++) {
        rig.many = i >= 3;
        weft_runtime *rt = start(workers[i % 3]);
        fill_receiver();
        function(rt);
        stop(rt);
    }
}

/* --- Waiting ---------------------------------------------------------------------------- */

static void send_while_full(weft_runtime *rt)
{
    weft_task *senders[SENDERS];
    go_send(rt, senders);
    for (unsigned i = 0; i < SENDERS; i++) {
        receive_one();
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        CHECK_EQ(test_join(senders[i]), 1);
    }
    CHECK_EQ(test_run(rt, close_socket, NULL), 0);
}

static void space_wakes_senders_without_timers(void)
{
    weft_clock_pause();
    run_all(send_while_full);
    weft_clock_resume();
}

static void close_while_full(weft_runtime *rt)
{
    weft_task *senders[SENDERS];
    go_send(rt, senders);
    CHECK_EQ(test_run(rt, close_socket, NULL), 0);
    for (unsigned i = 0; i < SENDERS; i++) {
        CHECK_EQ(test_join(senders[i]), WEFT_ECLOSED);
    }
}

static void close_wakes_senders_with_eclosed(void)
{
    weft_clock_pause();
    run_all(close_while_full);
    weft_clock_resume();
}

/* The socket has the maximum number of users, so that no call can enter it. */
static void close_while_full_and_busy(weft_runtime *rt)
{
    weft_task *senders[SENDERS];
    char byte = 'z';
    go_send(rt, senders);
    struct wf_source *source = wf_source_of(rig.socket);
    uint64_t users = atomic_load(&source->users);
    uint64_t added = WF_SOURCE_USERS_MAX - (users & WF_SOURCE_USERS_MAX);
    (void)atomic_fetch_add(&source->users, added);
    CHECK_EQ(weft_datagram_send(rig.socket, &byte, 1, 0), -EBUSY);
    CHECK_EQ(test_run(rt, close_socket, NULL), 0);
    for (unsigned i = 0; i < SENDERS; i++) {
        CHECK_EQ(test_join(senders[i]), WEFT_ECLOSED);
    }
    (void)atomic_fetch_sub(&source->users, added - 1);
    wf_source_leave(source);
}

static void close_of_busy_socket_wakes_senders(void)
{
    weft_clock_pause();
    run_all(close_while_full_and_busy);
    weft_clock_resume();
}

static void lose_receiver_while_full(weft_runtime *rt)
{
    weft_task *senders[SENDERS];
    go_send(rt, senders);
    CHECK_EQ(close(rig.receiver), 0);
    rig.receiver = -1;
    for (unsigned i = 0; i < SENDERS; i++) {
        CHECK_EQ(test_join(senders[i]), -ECONNREFUSED);
    }
    CHECK_EQ(test_run(rt, close_socket, NULL), 0);
}

static void close_of_receiver_wakes_senders(void)
{
    weft_clock_pause();
    run_all(lose_receiver_while_full);
    weft_clock_resume();
}

static void give_up_while_full(weft_runtime *rt)
{
    weft_task *senders[SENDERS];
    rig.deadline = weft_after(WEFT_MS);
    CHECK_EQ(test_run(rt, send_one, NULL), WEFT_ETIMEDOUT);
    unsigned before = link_fds(); /* Includes those of the backend. */
    rig.deadline = WEFT_NEVER;
    go_send(rt, senders);
    for (unsigned i = 0; i < SENDERS; i++) {
        weft_cancel(senders[i]);
        CHECK_EQ(test_join_soon(senders[i]), WEFT_ECANCELED);
    }
    rig.deadline = weft_after(WEFT_MS);
    CHECK_EQ(test_run(rt, send_one, NULL), WEFT_ETIMEDOUT);
    rig.deadline = 0;
    CHECK_EQ(test_run(rt, send_one, NULL), WEFT_ETIMEDOUT);
    rig.deadline = WEFT_NEVER;
    CHECK_EQ(link_fds(), before); /* The probes are closed. */
    char byte;
    while (recv(rig.receiver, &byte, 1, 0) == 1) {
        CHECK_EQ(byte, 'x'); /* Nothing was sent. */
    }
    CHECK_EQ(test_run(rt, close_socket, NULL), 0);
}

static void canceled_or_timed_out_send_sends_nothing(void)
{
    run_all(give_up_while_full);
}

/* --- Without a probe ------------------------------------------------------------------------ */

static void send_without_descriptors(weft_runtime *rt)
{
    port_end_fds();
    weft_task *sender = test_go(rt, send_one, NULL);
    port_wait_for_users(rig.socket, 1);
    receive_one();
    CHECK_EQ(test_join_soon(sender), 1);
    port_mend_fds();
    fill_receiver();
    port_end_fds(); /* Once more: closed during the backoff. */
    sender = test_go(rt, send_one, NULL);
    port_wait_for_users(rig.socket, 1);
    CHECK_EQ(test_run(rt, close_socket, NULL), 0);
    CHECK_EQ(test_join_soon(sender), WEFT_ECLOSED);
    port_mend_fds();
}

static void senders_without_descriptors_retry_with_backoff(void)
{
    run_all(send_without_descriptors);
}

/* The buffer of the sending socket is full of datagrams to another receiver. */
static void send_with_full_buffer(weft_runtime *rt)
{
    weft_address other;
    char byte = 'x';
    int idle = new_receiver(&other);
    CHECK_EQ(weft_datagram_set_option(rig.socket, WEFT_OPTION_SEND_BUFFER, 1), 0);
    int fd = weft_datagram_fd(rig.socket);
    while (sendto(fd, &byte, 1, 0, &other.to.any, other.size) == 1) {
    }
    CHECK_EQ(errno, EAGAIN);
    while (recv(rig.receiver, &byte, 1, 0) == 1) { /* This receiver has space. */
    }
    weft_task *sender = test_go(rt, send_one, NULL);
    port_wait_for_users(rig.socket, 1);
    CHECK_EQ(recv(rig.receiver, &byte, 1, 0), -1);
    while (recv(idle, &byte, 1, 0) == 1) {
    }
    CHECK_EQ(test_join_soon(sender), 1);
    receive_one();
    CHECK_EQ(close(idle), 0);
    CHECK_EQ(test_run(rt, close_socket, NULL), 0);
}

static void full_buffer_is_not_mistaken_for_full_receiver(void)
{
    run_all(send_with_full_buffer);
}

TEST_MAIN({
    TEST(space_wakes_senders_without_timers),
    TEST(close_wakes_senders_with_eclosed),
    TEST(close_of_busy_socket_wakes_senders),
    TEST(close_of_receiver_wakes_senders),
    TEST(canceled_or_timed_out_send_sends_nothing),
    TEST(senders_without_descriptors_retry_with_backoff),
    TEST(full_buffer_is_not_mistaken_for_full_receiver),
})
