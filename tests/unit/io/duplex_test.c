/* SPDX-License-Identifier: MIT */
/*
 * duplex_test.c - in-memory streams: differences from other streams (stream_test.c).
 */
#include <weft/io.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "links.h"
#include "rt.h"
#include "test.h"

static weft_stream *one;
static weft_stream *other;

static void run(int (*function)(void *arg))
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned i = 0; i < 3; i++) {
        weft_runtime *rt = test_start(workers[i]);
        CHECK_EQ(test_run(rt, function, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

/* --- Capacity --------------------------------------------------------------------------- */

static int fill(void *arg)
{
    char bytes[8] = "abcdefg";
    (void)arg;
    CHECK_EQ(weft_duplex(&one, &other, 5), 0);
    for (unsigned i = 0; i < 20; i++) { /* Wraps around the ring. */
        CHECK_EQ(weft_try_write(one, bytes, 3), 3);
        CHECK_EQ(weft_try_write(one, bytes + 3, 4), 2);
        CHECK_EQ(weft_try_write(one, bytes, 1), -EAGAIN);
        CHECK_EQ(weft_write(one, bytes, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
        char got[8] = "";
        CHECK_EQ(weft_try_read(other, got, 1), 1);
        CHECK_EQ(weft_try_write(one, "x", 1), 1);
        CHECK_EQ(weft_try_read(other, got + 1, 7), 5);
        CHECK_EQ(strcmp(got, "abcdex"), 0);
        CHECK_EQ(weft_try_read(other, got, 1), -EAGAIN);
    }
    weft_stream_close(one);
    weft_stream_close(other);
    return 0;
}

static void capacity_limits_bytes_in_flight(void)
{
    run(fill);
}

enum {
    BYTES = 20000,
};

static int write_bytes(void *arg)
{
    unsigned char bytes[97];
    for (size_t done = 0; done < BYTES;) {
        size_t size = done % sizeof bytes + 1;
        size = size < BYTES - done ? size : BYTES - done;
        link_fill(bytes, size, (uintptr_t)arg == (uintptr_t)one, done);
        CHECK_EQ(weft_write_all(arg, bytes, size, WEFT_NEVER), 0);
        done += size;
    }
    return weft_stream_shutdown(arg, WEFT_WRITE_SIDE);
}

static int read_bytes(weft_stream *stream)
{
    unsigned char bytes[61];
    size_t done = 0;
    ssize_t n;
    while ((n = weft_read(stream, bytes, done % sizeof bytes + 1, WEFT_NEVER)) > 0) {
        link_check(bytes, (size_t)n, stream == other, done);
        done += (size_t)n;
    }
    CHECK_EQ(n, 0);
    CHECK_EQ(done, BYTES);
    return 0;
}

static int talk_both_ways(size_t capacity)
{
    weft_task *writers[2];
    CHECK_EQ(weft_duplex(&one, &other, capacity), 0);
    CHECK_EQ(weft_go(&writers[0], write_bytes, one), 0);
    CHECK_EQ(weft_go(&writers[1], write_bytes, other), 0);
    CHECK_EQ(read_bytes(other), 0);
    CHECK_EQ(read_bytes(one), 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(test_join_soon(writers[i]), 0);
    }
    weft_stream_close(one);
    weft_stream_close(other);
    return 0;
}

static int talk(void *arg)
{
    static const size_t capacities[] = { 1, 7, 4096, 2 * (size_t)BYTES };
    (void)arg;
    for (unsigned i = 0; i < 4; i++) {
        (void)talk_both_ways(capacities[i]);
    }
    return 0;
}

static void bytes_arrive_in_order_with_any_capacity(void)
{
    run(talk);
}

static int request_invalid_capacity(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_duplex(&one, &other, 0), -EINVAL);
    CHECK_EQ(weft_duplex(&one, &other, SIZE_MAX), -EINVAL);
    if (!test_is_sanitized()) { /* A sanitizer aborts on a request of that size. */
        CHECK_EQ(weft_duplex(&one, &other, SIZE_MAX / 4), -ENOMEM);
    }
    return 0;
}

static void invalid_capacity_is_refused(void)
{
    run(request_invalid_capacity);
}

/* --- The end ---------------------------------------------------------------------------- */

static int go_away(void *arg)
{
    char byte;
    (void)arg;
    CHECK_EQ(weft_duplex(&one, &other, 8), 0);
    CHECK_EQ(weft_write_all(one, "ab", 2, WEFT_NEVER), 0);
    weft_stream_close(one);
    CHECK_EQ(weft_write(other, "x", 1, WEFT_NEVER), -EPIPE);
    CHECK_EQ(weft_read(other, &byte, 1, WEFT_NEVER), 1);
    CHECK_EQ(weft_peek(other, &byte, 1, WEFT_NEVER), 1);
    CHECK_EQ(weft_read(other, &byte, 1, WEFT_NEVER), 1);
    CHECK_EQ(byte, 'b');
    CHECK_EQ(weft_read(other, &byte, 1, WEFT_NEVER), 0);
    CHECK_EQ(weft_read(other, &byte, 1, WEFT_NEVER), 0);
    weft_stream_close(other);
    return 0;
}

static void data_written_before_close_can_be_read_after_it(void)
{
    run(go_away);
}

static int write_soon(void *arg)
{
    CHECK_EQ(weft_yield(), 0);
    return weft_write_all(arg, "ab", 2, WEFT_NEVER);
}

static int peek(void *arg)
{
    char bytes[2] = { 0, 0 };
    (void)arg;
    CHECK_EQ(weft_duplex(&one, &other, 8), 0);
    CHECK_EQ(weft_peek(other, bytes, 0, WEFT_NEVER), 0);
    CHECK_EQ(weft_peek(other, bytes, 2, weft_now()), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_go(NULL, write_soon, one), 0);
    CHECK_EQ(weft_peek(other, bytes, 2, WEFT_NEVER), 2);
    CHECK_EQ(bytes[1], 'b');
    CHECK_EQ(weft_read(other, bytes, 2, WEFT_NEVER), 2);
    CHECK_EQ(bytes[0], 'a');
    weft_stream_close(one);
    CHECK_EQ(weft_peek(other, bytes, 2, WEFT_NEVER), 0);
    weft_stream_close(other);
    return 0;
}

static void peek_waits_for_data_and_leaves_it(void)
{
    run(peek);
}

static int shut_sides(void *arg)
{
    char byte;
    (void)arg;
    CHECK_EQ(weft_duplex(&one, &other, 8), 0);
    CHECK_EQ(weft_write_all(one, "ab", 2, WEFT_NEVER), 0);
    CHECK_EQ(weft_stream_shutdown(one, WEFT_WRITE_SIDE), 0);
    CHECK_EQ(weft_write(one, "x", 1, WEFT_NEVER), -EPIPE);
    CHECK_EQ(weft_write_all(other, "cd", 2, WEFT_NEVER), 0); /* The other direction is open. */
    CHECK_EQ(weft_read(one, &byte, 1, WEFT_NEVER), 1);
    CHECK_EQ(weft_stream_shutdown(one, WEFT_READ_SIDE), 0);
    CHECK_EQ(weft_read(one, &byte, 1, WEFT_NEVER), 0);
    CHECK_EQ(weft_write(other, "x", 1, WEFT_NEVER), -EPIPE);
    weft_stream_close(one);
    weft_stream_close(other);
    return 0;
}

static void side_that_is_shut_down_transfers_nothing(void)
{
    run(shut_sides);
}

static int read_one(void *arg)
{
    char byte;
    return (int)weft_read(arg, &byte, 1, WEFT_NEVER);
}

/* The peer closes, a side is shut down, and the stream is closed, while a task waits. */
static int end_while_others_wait(void *arg)
{
    weft_task *reader;
    (void)arg;
    for (unsigned how = 0; how < 3; how++) {
        CHECK_EQ(weft_duplex(&one, &other, 8), 0);
        CHECK_EQ(weft_go(&reader, read_one, other), 0);
        link_wait_for_calls(other, 1);
        if (how == 0) {
            weft_stream_close(one);
        } else if (how == 1) {
            CHECK_EQ(weft_stream_shutdown(other, WEFT_READ_SIDE), 0);
        } else {
            weft_stream_close(other);
        }
        CHECK_EQ(test_join_soon(reader), how == 2 ? WEFT_ECLOSED : 0);
        weft_stream_close(how == 0 ? other : one);
        if (how == 1) {
            weft_stream_close(other);
        }
    }
    return 0;
}

static void end_of_stream_wakes_waiters(void)
{
    run(end_while_others_wait);
}

/* --- Readiness -------------------------------------------------------------------------- */

static int wait_until_ready(void *arg)
{
    char bytes[4];
    weft_op op;
    (void)arg;
    CHECK_EQ(weft_duplex(&one, &other, 4), 0);
    weft_writable_init(&op, one);
    CHECK_EQ(weft_await(&op.future, weft_after(WEFT_MS)), 0);
    weft_readable_init(&op, other);
    CHECK_EQ(weft_await(&op.future, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_write_all(one, "abcd", 4, WEFT_NEVER), 0);
    weft_readable_init(&op, other);
    CHECK_EQ(weft_await(&op.future, WEFT_NEVER), 0);
    weft_writable_init(&op, one);
    CHECK_EQ(weft_await(&op.future, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_read(other, bytes, 4, WEFT_NEVER), 4);
    weft_readable_init(&op, other);
    CHECK_EQ(weft_await(&op.future, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_stream_fd(one), -EOPNOTSUPP);
    CHECK_EQ(weft_stream_release(one), -EOPNOTSUPP);
    weft_stream_close(one);
    weft_readable_init(&op, other);
    CHECK_EQ(weft_await(&op.future, WEFT_NEVER), 0);
    weft_stream_close(other);
    return 0;
}

static void readiness_works_without_descriptor(void)
{
    run(wait_until_ready);
}

/* --- More than 2 GiB per call ------------------------------------------------------------- */

enum {
    PIECE = 1 << 24,
    VECTORS = 160, /* of a piece each: 2.5 GiB */
};

#define MUCH ((size_t)VECTORS * PIECE)

/*
 * Maps memory that occupies one piece, however large it is: after its first page all pieces share
 * the same memory.
 */
static void *map_pieces(size_t size)
{
    static int piece = -1;
    if (piece < 0) {
        piece = memfd_create("piece", MFD_CLOEXEC);
        CHECK(piece >= 0);
        CHECK_EQ(ftruncate(piece, PIECE), 0);
    }
    char *all = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(all != MAP_FAILED);
    for (size_t at = 4096; at < size; at += PIECE) {
        size_t part = size - at < PIECE ? size - at : PIECE;
        CHECK(mmap(all + at, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, piece, 0) !=
              MAP_FAILED);
    }
    return all;
}

static void *allocate(void *context, size_t size, size_t align)
{
    (void)context;
    return size > MUCH ? map_pieces(size)
                       : aligned_alloc(align, (size + align - 1) / align * align);
}

static void deallocate(void *context, void *memory, size_t size, size_t align)
{
    (void)context;
    (void)align;
    if (size > MUCH) {
        CHECK_EQ(munmap(memory, size), 0);
    } else {
        free(memory);
    }
}

static weft_stream *open_device(const char *path, int mode)
{
    weft_stream *stream;
    int fd = open(path, mode | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(weft_stream_adopt(&stream, fd), 0);
    return stream;
}

static int move_much(void *arg)
{
    static struct iovec vectors[VECTORS];
    (void)arg;
    char *much = map_pieces(MUCH);
    for (unsigned i = 0; i < VECTORS; i++) {
        vectors[i] = (struct iovec){ much + (size_t)i * PIECE, PIECE };
    }
    ssize_t most = INT_MAX & ~4095;
    CHECK_EQ(weft_duplex(&one, &other, 2 * MUCH), 0);
    CHECK_EQ(weft_writev(one, vectors, VECTORS, 0), most);
    CHECK_EQ(weft_write(one, much, MUCH, 0), most);
    CHECK_EQ(weft_readv(other, vectors, VECTORS, 0), most);
    CHECK_EQ(weft_read(other, much, MUCH, 0), most);
    CHECK_EQ(weft_try_read(other, much, 1), -EAGAIN);
    weft_stream_close(one);
    weft_stream_close(other);
    one = open_device("/dev/null", O_WRONLY);
    other = open_device("/dev/zero", O_RDONLY);
    CHECK_EQ(weft_writev(one, vectors, VECTORS, 0), most);
    CHECK_EQ(weft_write(one, much, MUCH, 0), most);
    CHECK_EQ(weft_readv(other, vectors, VECTORS, 0), most);
    CHECK_EQ(weft_read(other, much, MUCH, 0), most);
    weft_stream_close(one);
    weft_stream_close(other);
    CHECK_EQ(munmap(much, MUCH), 0);
    return 0;
}

/*
 * Goal: one call transfers no more bytes than its result can represent, for in-memory streams as
 * well as descriptors.
 */
static void byte_count_of_one_transfer_fits_its_result(void)
{
    if (test_is_sanitized()) {
        return; /* Its shadow memory does not profit from the sharing. */
    }
    static const weft_allocator allocator = { .alloc = allocate, .free = deallocate };
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.allocator = &allocator;
    weft_runtime *rt = test_start_with(&config);
    CHECK_EQ(test_run(rt, move_much, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(byte_count_of_one_transfer_fits_its_result),
    TEST(capacity_limits_bytes_in_flight),
    TEST(bytes_arrive_in_order_with_any_capacity),
    TEST(invalid_capacity_is_refused),
    TEST(data_written_before_close_can_be_read_after_it),
    TEST(peek_waits_for_data_and_leaves_it),
    TEST(side_that_is_shut_down_transfers_nothing),
    TEST(end_of_stream_wakes_waiters),
    TEST(readiness_works_without_descriptor),
})
