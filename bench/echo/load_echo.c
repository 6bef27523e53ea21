/* SPDX-License-Identifier: MIT */
/*
 * load_echo.c - closed-loop load generator on many connections.
 *
 * Each connection sends a message, waits until all of it has come back, checks it, and sends
 * the next one. Every message is different: it is derived from the connection's number and the
 * round. So an echo of another connection or of the previous round is detected, and so is an
 * extra byte. When the time is over, each connection still waits for its last echo, so a server
 * that loses one of many connections is detected, too.
 */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cpu.h"
#include "histogram.h"

enum {
    WAIT_MS = 100, /* so that the clock is checked even if no event arrives */
};

struct connection {
    int fd;
    unsigned number;
    uint64_t round;
    int64_t begun_at;
    size_t sent;
    size_t got;
    bool is_blocked; /* waits for epoll to report space in the send buffer */
    bool is_done;    /* has received its last echo */
    unsigned char *message;
    unsigned char *echo;
};

enum phase {
    WARM_UP,
    MEASURED,
    LAST_ECHOES,
};

struct load {
    const struct load_options *options;
    int epoll;
    enum phase phase;
    unsigned unanswered; /* connections that wait for an echo */
    struct connection *connections;
    int64_t phase_at;
    int64_t progress_at;
    /* Results. */
    struct histogram latencies;
    int64_t measured_ns;
    struct cpu_usage cpu_before;
    struct cpu_usage cpu_after;
};

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL) {
        load_fail("no memory");
    }
    return memory;
}

/* --- One connection -------------------------------------------------------------------------- */

/* From splitmix64: every word of every message is different. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void fill_message(struct connection *connection, size_t size)
{
    uint64_t state = mix(((uint64_t)connection->number << 40) + connection->round);
    for (size_t i = 0; i < size; i += sizeof state) {
        state += 0x9e3779b97f4a7c15u;
        uint64_t word = mix(state);
        memcpy(connection->message + i, &word, size - i < sizeof word ? size - i : sizeof word);
    }
}

static void watch(struct load *load, struct connection *connection, int operation)
{
    struct epoll_event event = { .events = EPOLLIN | (connection->is_blocked ? EPOLLOUT : 0),
                                 .data.ptr = connection };
    if (epoll_ctl(load->epoll, operation, connection->fd, &event) != 0) {
        load_fail("epoll_ctl: %s", strerror(errno));
    }
}

/* Sends the rest of the message, as far as the socket accepts it. */
static void push(struct load *load, struct connection *connection)
{
    size_t size = load->options->size;
    while (connection->sent < size) {
        ssize_t n = send(connection->fd, connection->message + connection->sent,
                         size - connection->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        if (n < 0) {
            load_fail("connection %u: send: %s", connection->number, strerror(errno));
        }
        connection->sent += (size_t)n;
    }
    bool is_blocked = connection->sent < size;
    if (is_blocked != connection->is_blocked) {
        connection->is_blocked = is_blocked;
        watch(load, connection, EPOLL_CTL_MOD);
    }
}

static void begin_request(struct load *load, struct connection *connection, int64_t now)
{
    connection->round++;
    connection->sent = 0;
    connection->got = 0;
    connection->begun_at = now;
    fill_message(connection, load->options->size);
    push(load, connection);
}

static void check_echo(const struct connection *connection, size_t size)
{
    if (connection->sent == size && memcmp(connection->message, connection->echo, size) == 0) {
        return;
    }
    size_t i = 0;
    while (i < connection->sent && connection->message[i] == connection->echo[i]) {
        i++;
    }
    load_fail("connection %u, round %llu: byte %zu of %zu is wrong", connection->number,
              (unsigned long long)connection->round, i, size);
}

static void end_request(struct load *load, struct connection *connection)
{
    check_echo(connection, load->options->size);
    int64_t now = load_now_ns();
    if (load->phase == MEASURED) {
        histogram_add(&load->latencies, (uint64_t)(now - connection->begun_at));
    }
    if (load->phase == LAST_ECHOES) {
        load->unanswered--;
        connection->is_done = true;
    } else {
        begin_request(load, connection, now);
    }
}

/* Reads available data, at most the rest of this message's echo. */
static void pull(struct load *load, struct connection *connection)
{
    size_t size = load->options->size;
    if (connection->is_done) {
        load_fail("connection %u: something came after the last echo", connection->number);
    }
    ssize_t n = recv(connection->fd, connection->echo + connection->got, size - connection->got, 0);
    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (n <= 0) {
        load_fail("connection %u, round %llu: %s", connection->number,
                  (unsigned long long)connection->round,
                  n == 0 ? "the server has closed it" : strerror(errno));
    }
    connection->got += (size_t)n;
    if (connection->got == size) {
        end_request(load, connection);
    }
}

/* --- All connections -------------------------------------------------------------------------- */

static void connect_all(struct load *load)
{
    const struct load_options *options = load->options;
    load->connections = allocate(options->connections, sizeof *load->connections);
    for (unsigned i = 0; i < options->connections; i++) {
        struct connection *connection = &load->connections[i];
        connection->number = i;
        connection->fd = load_connect(options);
        connection->message = allocate(2, options->size);
        connection->echo = connection->message + options->size;
        if (fcntl(connection->fd, F_SETFL, O_NONBLOCK) != 0) {
            load_fail("fcntl: %s", strerror(errno));
        }
        watch(load, connection, EPOLL_CTL_ADD);
    }
    /* Only now, so that no connection has a head start. */
    load->unanswered = options->connections;
    for (unsigned i = 0; i < options->connections; i++) {
        begin_request(load, &load->connections[i], load_now_ns());
    }
}

/* Checks that the server sent no byte that it had not received. */
static void close_all(struct load *load)
{
    for (unsigned i = 0; i < load->options->connections; i++) {
        struct connection *connection = &load->connections[i];
        if (recv(connection->fd, connection->echo, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN) {
            load_fail("connection %u: something came after the last echo", i);
        }
        (void)close(connection->fd);
        free(connection->message);
    }
    free(load->connections);
}

static void read_cpu(const struct load *load, struct cpu_usage *usage)
{
    if (load->options->server != 0 && !cpu_read(usage, load->options->server)) {
        load_fail("the CPU time of process %ld cannot be read", (long)load->options->server);
    }
}

static void enter(struct load *load, enum phase phase, int64_t now)
{
    if (phase == MEASURED) {
        read_cpu(load, &load->cpu_before);
    } else {
        read_cpu(load, &load->cpu_after);
        load->measured_ns = now - load->phase_at;
    }
    load->phase = phase;
    load->phase_at = now;
}

/* Fails and names the connection that has waited longest. */
static void fail_stalled(const struct load *load)
{
    const struct connection *longest = NULL;
    for (unsigned i = 0; i < load->options->connections; i++) {
        const struct connection *other = &load->connections[i];
        if (!other->is_done && (longest == NULL || other->begun_at < longest->begun_at)) {
            longest = other;
        }
    }
    if (longest == NULL) {
        return;
    }
    load_fail("%u connections wait for an echo, connection %u longest: %lld ms; round %llu, "
              "%zu bytes sent, %zu came back",
              load->unanswered, longest->number,
              (long long)((load_now_ns() - longest->begun_at) / LOAD_MS),
              (unsigned long long)longest->round, longest->sent, longest->got);
}

/* Checks the clock, between two batches of events. */
static void look_at_clock(struct load *load, int64_t now)
{
    int64_t in_phase = now - load->phase_at;
    if (load->phase == WARM_UP && in_phase >= load->options->warm_up_ns) {
        enter(load, MEASURED, now);
    } else if (load->phase == MEASURED && in_phase >= load->options->measured_ns) {
        enter(load, LAST_ECHOES, now);
    } else if (load->phase == LAST_ECHOES && in_phase >= LOAD_STALL_NS) {
        fail_stalled(load);
    }
    if (now - load->progress_at >= LOAD_STALL_NS) {
        fail_stalled(load);
    }
}

static void run(struct load *load)
{
    struct epoll_event events[ECHO_EVENTS_MAX];
    load->phase_at = load->progress_at = load_now_ns();
    while (load->unanswered > 0) {
        int n = epoll_wait(load->epoll, events, ECHO_EVENTS_MAX, WAIT_MS);
        if (n < 0 && errno != EINTR) {
            load_fail("epoll_wait: %s", strerror(errno));
        }
        int64_t now = load_now_ns();
        load->progress_at = n > 0 ? now : load->progress_at;
        look_at_clock(load, now);
        for (int i = 0; i < n; i++) {
            struct connection *connection = events[i].data.ptr;
            if (connection->is_blocked) {
                push(load, connection);
            }
            if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
                pull(load, connection);
            }
        }
    }
}

static void report(const struct load *load)
{
    const struct load_options *options = load->options;
    double requests = (double)load->latencies.total;
    double seconds = (double)load->measured_ns / (double)LOAD_S;
    char cpu[32] = "null";
    if (options->server != 0) {
        double used_us = (double)cpu_between(&load->cpu_before, &load->cpu_after) / 1e3;
        (void)snprintf(cpu, sizeof cpu, "%.4f", used_us / requests);
    }
    const char *format = options->json
                             ? "{\"mode\":\"echo\",\"connections\":%u,\"size\":%zu,"
                               "\"seconds\":%.3f,\"rps\":%.1f,\"p50_us\":%.2f,\"p99_us\":%.2f,"
                               "\"cpu_us\":%s}\n"
                             : "%u connections, %zu bytes, %.3f s: %.1f requests/s, "
                               "p50 %.2f us, p99 %.2f us, server CPU %s us/request\n";
    (void)printf(format, options->connections, options->size, seconds, requests / seconds,
                 histogram_quantile(&load->latencies, 0.50) / 1e3,
                 histogram_quantile(&load->latencies, 0.99) / 1e3, cpu);
}

void load_echo(const struct load_options *options)
{
    struct load *load = allocate(1, sizeof *load);
    load->options = options;
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (load->epoll < 0) {
        load_fail("epoll_create1: %s", strerror(errno));
    }
    connect_all(load);
    run(load);
    close_all(load);
    if (load->latencies.total == 0) {
        load_fail("no request was answered in the measured time");
    }
    report(load);
    (void)close(load->epoll);
    free(load);
}
