/* SPDX-License-Identifier: MIT */
/*
 * Empty transfers: reads and writes of 0 bytes, vectors with empty elements or none, and empty
 * datagrams, which are messages.
 */
#include <errno.h>
#include <string.h>

#include <weft.h>

#include "links.h"
#include "ports.h"
#include "rt.h"
#include "test.h"

/* --- Streams ---------------------------------------------------------------------------- */

/* Same as move_nothing(), with the prepared operations. */
static void move_nothing_prepared(weft_stream *from, weft_stream *to)
{
    struct iovec none[2] = { { NULL, 0 }, { NULL, 0 } };
    weft_io io;
    weft_read_init(&io, from, NULL, 0);
    CHECK_EQ(weft_await(&io.future, WEFT_NEVER), 0);
    weft_read_exact_init(&io, from, NULL, 0);
    CHECK_EQ(weft_await(&io.future, WEFT_NEVER), 0);
    weft_write_init(&io, to, NULL, 0);
    CHECK_EQ(weft_await(&io.future, WEFT_NEVER), 0);
    weft_write_all_init(&io, to, NULL, 0);
    CHECK_EQ(weft_await(&io.future, WEFT_NEVER), 0);
    for (int count = 0; count <= 2; count++) {
        struct iovec *vectors = count > 0 ? none : NULL;
        weft_readv_init(&io, from, vectors, count);
        CHECK_EQ(weft_await(&io.future, WEFT_NEVER), 0);
        weft_readv_exact_init(&io, from, vectors, count);
        CHECK_EQ(weft_await(&io.future, WEFT_NEVER), 0);
        weft_writev_init(&io, to, vectors, count);
        CHECK_EQ(weft_await(&io.future, WEFT_NEVER), 0);
        weft_writev_all_init(&io, to, vectors, count);
        CHECK_EQ(weft_await(&io.future, WEFT_NEVER), 0);
    }
}

static void move_nothing(weft_stream *from, weft_stream *to)
{
    struct iovec none[2] = { { NULL, 0 }, { NULL, 0 } };
    CHECK_EQ(weft_read(from, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_read_exact(from, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_try_read(from, NULL, 0), 0);
    CHECK_EQ(weft_write(to, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_write_all(to, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_try_write(to, NULL, 0), 0);
    for (int count = 0; count <= 2; count++) {
        struct iovec *vectors = count > 0 ? none : NULL;
        CHECK_EQ(weft_readv(from, vectors, count, WEFT_NEVER), 0);
        CHECK_EQ(weft_readv_exact(from, vectors, count, WEFT_NEVER), 0);
        CHECK_EQ(weft_writev(to, vectors, count, WEFT_NEVER), 0);
        CHECK_EQ(weft_writev_all(to, vectors, count, WEFT_NEVER), 0);
    }
    move_nothing_prepared(from, to);
}

/* Empty transfers never wait and move nothing, whatever is pending on the stream. */
static int move_nothing_in_any_state(void *arg)
{
    struct link *link = arg;
    char data[4096] = "first";
    char buffer[5];
    move_nothing(link->far, link->near); /* Nothing is pending. */
    CHECK_EQ(weft_write_all(link->near, data, 5, WEFT_NEVER), 0);
    move_nothing(link->far, link->near); /* Some bytes are pending. */
    while (weft_try_write(link->near, data, sizeof data) > 0) {
    }
    move_nothing(link->far, link->near); /* The buffers are full. */
    CHECK_EQ(weft_read_exact(link->far, buffer, 5, WEFT_NEVER), 0);
    CHECK_EQ(memcmp(buffer, "first", 5), 0);
    weft_stream_close(link->near);
    link->near = NULL;
    while (weft_read(link->far, data, sizeof data, WEFT_NEVER) > 0) {
    }
    CHECK_EQ(weft_read(link->far, NULL, 0, WEFT_NEVER), 0); /* The end. */
    CHECK_EQ(weft_read_exact(link->far, NULL, 0, WEFT_NEVER), 0);
    return 0;
}

static void empty_transfer_returns_0_in_any_state(void)
{
    link_run_all(move_nothing_in_any_state);
}

/* The reader is gone. An empty write succeeds all the same. */
static int write_nothing_without_reader(void *arg)
{
    struct link *link = arg;
    weft_stream_close(link->far);
    link->far = NULL;
    CHECK_EQ(weft_write(link->near, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_write_all(link->near, NULL, 0, WEFT_NEVER), 0);
    return 0;
}

static void empty_write_without_reader_returns_0(void)
{
    link_run_all(write_nothing_without_reader);
}

enum {
    PARTS = 3000, /* more than one system call takes, and most are empty */
};

/* Every 700th vector has a byte. The empty ones in between must not be taken for the end. */
static int move_among_empty_parts(void *arg)
{
    struct link *link = arg;
    char text[] = "12345";
    char got[8] = "";
    char *nothing = NULL;
    static struct iovec parts[PARTS];
    unsigned bytes = 0;
    for (unsigned i = 0; i < PARTS; i++) {
        bool has_byte = i % 700 == 699;
        parts[i] = (struct iovec){ has_byte ? &text[bytes++] : nothing, has_byte };
    }
    CHECK_EQ(bytes, 4);
    CHECK_EQ(weft_writev_all(link->near, parts, PARTS, WEFT_NEVER), 0);
    bytes = 0;
    for (unsigned i = 0; i < PARTS; i++) {
        bool has_byte = i % 700 == 699;
        parts[i] = (struct iovec){ has_byte ? &got[bytes++] : nothing, has_byte };
    }
    CHECK_EQ(weft_readv_exact(link->far, parts, PARTS, WEFT_NEVER), 0);
    CHECK_EQ(strcmp(got, "1234"), 0);
    CHECK_EQ(weft_try_read(link->far, got, 1), -EAGAIN);
    return 0;
}

/* The first 1024 vectors are empty, the maximum of one system call. */
static int move_behind_empty_parts(void *arg)
{
    struct link *link = arg;
    static struct iovec parts[PARTS];
    char byte = 'x';
    parts[PARTS - 1] = (struct iovec){ &byte, 1 };
    CHECK_EQ(weft_writev_all(link->near, parts, PARTS, WEFT_NEVER), 0);
    byte = 0;
    parts[PARTS - 1] = (struct iovec){ &byte, 1 };
    CHECK_EQ(weft_readv_exact(link->far, parts, PARTS, WEFT_NEVER), 0);
    CHECK_EQ(byte, 'x');
    return 0;
}

static int move_a_byte_between(void *arg)
{
    struct link *link = arg;
    char byte = 'x';
    struct iovec parts[3] = { { NULL, 0 }, { &byte, 1 }, { NULL, 0 } };
    for (unsigned i = 0; i < 50; i++) {
        CHECK_EQ(weft_writev(link->near, parts, 3, WEFT_NEVER), 1);
        CHECK_EQ(weft_readv(link->far, parts, 3, WEFT_NEVER), 1);
        CHECK_EQ(byte, 'x');
    }
    CHECK_EQ(weft_readv(link->far, parts, 3, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    return 0;
}

static void empty_vector_elements_are_skipped(void)
{
    link_run_all(move_a_byte_between);
    link_run_all(move_among_empty_parts);
    link_run_all(move_behind_empty_parts);
}

/* --- Messages --------------------------------------------------------------------------- */

static int receive_one(void *arg)
{
    char buffer[8];
    return (int)weft_datagram_receive(arg, buffer, sizeof buffer, WEFT_NEVER);
}

/* A waiting receiver gets the empty message, exactly once: the next receive waits. */
static void check_empty_message(weft_datagram *to, weft_datagram *from, const weft_address *address)
{
    char buffer[8];
    weft_task *receiver;
    CHECK_EQ(weft_go(&receiver, receive_one, to), 0);
    CHECK_EQ(weft_sleep(2 * WEFT_MS), 0);
    CHECK_EQ(weft_datagram_send_to(from, NULL, 0, address, WEFT_NEVER), 0);
    CHECK_EQ(test_join_soon(receiver), 0);
    CHECK_EQ(weft_datagram_receive(to, buffer, 8, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_datagram_send_to(from, NULL, 0, address, WEFT_NEVER), 0);
    CHECK_EQ(weft_datagram_peek(to, buffer, 8, NULL, WEFT_NEVER), 0);
    CHECK_EQ(weft_datagram_receive(to, NULL, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_datagram_receive(to, buffer, 8, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
}

/* With an empty buffer, receive returns the message's size and discards the message. */
static void check_no_room(weft_datagram *to, weft_datagram *from, const weft_address *address)
{
    char buffer[8];
    CHECK_EQ(weft_datagram_send_to(from, "lost", 4, address, WEFT_NEVER), 4);
    CHECK_EQ(weft_datagram_receive(to, NULL, 0, WEFT_NEVER), 4);
    CHECK_EQ(weft_datagram_receive(to, buffer, 8, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
}

static void check_several(weft_datagram *to, weft_datagram *from, const weft_address *address)
{
    char data[3][8] = { "a", "", "c" };
    weft_packet packets[3];
    for (unsigned i = 0; i < 3; i++) {
        packets[i] = (weft_packet){ .data = data[i], .size = i != 1, .address = *address };
    }
    CHECK_EQ(weft_datagram_send_many(from, packets, 3, WEFT_NEVER), 3);
    for (unsigned i = 0; i < 3; i++) {
        packets[i] = (weft_packet){ .data = data[i], .size = sizeof data[i], .received = 99 };
    }
    int count = 0;
    while (count < 3) {
        int n = weft_datagram_receive_many(to, packets + count, 3 - (size_t)count, WEFT_NEVER);
        CHECK(n > 0);
        count += n;
    }
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(packets[i].received, i != 1);
    }
}

static int exchange_empty_messages(void *arg)
{
    weft_datagram *to;
    weft_datagram *from;
    weft_address address;
    struct place name = port_name("unixgram:");
    bool is_local = arg != NULL;
    CHECK_EQ(weft_datagram_open(&to, is_local ? name.text : "udp://127.0.0.1:0", NULL), 0);
    struct place other = port_name("unixgram:");
    CHECK_EQ(weft_datagram_open(&from, is_local ? other.text : "udp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(weft_datagram_address(to, &address), 0);
    check_empty_message(to, from, &address);
    check_no_room(to, from, &address);
    check_several(to, from, &address);
    weft_datagram_close(to);
    weft_datagram_close(from);
    return 0;
}

static void empty_datagram_arrives_as_message(void)
{
    port_run(test_workers(2), exchange_empty_messages, NULL);
    port_run(test_workers(2), exchange_empty_messages, "local");
}

TEST_MAIN({
    TEST(empty_transfer_returns_0_in_any_state),
    TEST(empty_write_without_reader_returns_0),
    TEST(empty_vector_elements_are_skipped),
    TEST(empty_datagram_arrives_as_message),
})
