/* SPDX-License-Identifier: MIT */
/*
 * load_bulk.c - bulk load generator: one connection, maximum throughput in one direction.
 *
 * It sends blocks to a sink until the time is over. The sink answers with the number of bytes
 * it received and their checksum. From a source it reads blocks and sums them up itself. The
 * socket is blocking: with a single connection there is nothing else to do.
 */
#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "block.h"

/* Bytes transferred and the measured interval; only bytes within the interval count. */
struct meter {
    const struct load_options *options;
    int64_t warm_at;
    int64_t start_at; /* 0: still warming up */
    int64_t end_at;
    uint64_t size;
    uint64_t start_size;
};

static struct meter meter_init(const struct load_options *options)
{
    return (struct meter){ .options = options, .warm_at = load_now_ns() + options->warm_up_ns };
}

/* Counts bytes. Returns false when the time is over. */
static bool meter_add(struct meter *meter, size_t size)
{
    int64_t now = load_now_ns();
    meter->size += size;
    if (meter->start_at == 0 && now >= meter->warm_at) {
        meter->start_at = now;
        meter->start_size = meter->size;
    }
    meter->end_at = now;
    return meter->start_at == 0 || now - meter->start_at < meter->options->measured_ns;
}

static void send_block(int fd, const unsigned char *block)
{
    size_t sent = 0;
    while (sent < BLOCK_SIZE) {
        ssize_t n = send(fd, block + sent, BLOCK_SIZE - sent, MSG_NOSIGNAL);
        if (n < 0) {
            load_fail("send: %s", errno == EAGAIN ? "the sink reads nothing" : strerror(errno));
        }
        sent += (size_t)n;
    }
}

static size_t receive(int fd, void *buffer, size_t size, int flags)
{
    ssize_t n = recv(fd, buffer, size, flags);
    if (n <= 0) {
        load_fail("recv: %s", n == 0            ? "the server has closed the connection"
                              : errno == EAGAIN ? "the server sends nothing"
                                                : strerror(errno));
    }
    return (size_t)n;
}

static void check(struct block_reply got, uint64_t size)
{
    if (got.size != size) {
        load_fail("%llu bytes were sent, but %llu came", (unsigned long long)size,
                  (unsigned long long)got.size);
    }
    if (got.sum != block_expected_sum(size)) {
        load_fail("the checksum of %llu bytes is wrong", (unsigned long long)size);
    }
}

static void feed_sink(int fd, struct meter *meter)
{
    static unsigned char block[BLOCK_SIZE];
    uint64_t number = 0;
    block_fill(block);
    do {
        block_set_number(block, number++);
        send_block(fd, block);
    } while (meter_add(meter, BLOCK_SIZE));

    struct block_reply reply;
    if (shutdown(fd, SHUT_WR) != 0) {
        load_fail("shutdown: %s", strerror(errno));
    }
    if (receive(fd, &reply, sizeof reply, MSG_WAITALL) != sizeof reply) {
        load_fail("the sink has not said what it got");
    }
    check(reply, meter->size);
}

static void drain_source(int fd, struct meter *meter)
{
    static unsigned char buffer[BLOCK_SIZE];
    struct block_sum sum = { 0 };
    size_t n;
    do {
        n = receive(fd, buffer, sizeof buffer, 0);
        block_sum_add(&sum, buffer, n);
    } while (meter_add(meter, n));
    check(block_sum_reply(&sum), meter->size);
}

void load_bulk(const struct load_options *options)
{
    int fd = load_connect(options);
    struct meter meter = meter_init(options);
    bool is_sink = options->bulk == ECHO_BULK_SINK;
    if (is_sink) {
        feed_sink(fd, &meter);
    } else {
        drain_source(fd, &meter);
    }
    (void)close(fd);

    double seconds = (double)(meter.end_at - meter.start_at) / (double)LOAD_S;
    double megabytes = (double)(meter.size - meter.start_size) / 1e6;
    const char *format = options->json ? "{\"mode\":\"bulk\",\"bulk\":\"%s\",\"seconds\":%.3f,"
                                         "\"mb_s\":%.2f}\n"
                                       : "%s, %.3f s: %.2f MB/s\n";
    (void)printf(format, is_sink ? "sink" : "source", seconds, megabytes / seconds);
}
