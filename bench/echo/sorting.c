/* SPDX-License-Identifier: MIT */
/*
 * sorting.c - echo server with weft whose workers sort all the time, or stay idle with --idle.
 *
 * At exit it reports how long requests took inside the server: from the time at which the
 * kernel received a message to the time at which the answer was sent.
 *
 * Kernel timestamps come with recvmsg(2), which streams do not offer. So each connection is a
 * descriptor of the application, and weft only waits for its readiness.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <weft.h>

#include "histogram.h"
#include "server.h"

enum {
    NUMBERS = 4 * 1000 * 1000,
};

static struct echo_options options; /* constant once the runtime has started */

static void must(int err, const char *what)
{
    if (err != 0) {
        (void)fprintf(stderr, "echo: %s\n", weft_strerror(err));
        echo_fail(what, 0);
    }
}

/* --- Sorting ---------------------------------------------------------------------------------- */

static uint64_t sorts; /* written by the fiber; read by the main thread after the fiber has ended */

static int compare(const void *one, const void *other, void *arg)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;
    (void)arg;
    return (a > b) - (a < b);
}

static int fill(size_t first, size_t end, void *arg)
{
    uint64_t *numbers = arg;
    for (size_t i = first; i < end; i++) {
        uint64_t mixed = (i + sorts * NUMBERS) * 0x9E3779B97F4A7C15u;
        numbers[i] = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9u;
    }
    return 0;
}

static int must_be_sorted(size_t first, size_t end, void *arg)
{
    const uint64_t *numbers = arg;
    for (size_t i = first > 0 ? first : 1; i < end; i++) {
        if (numbers[i - 1] > numbers[i]) {
            echo_fail("the numbers are not sorted", 0);
        }
    }
    return 0;
}

static int sort_for_ever(void *arg)
{
    uint64_t *numbers = malloc(NUMBERS * sizeof *numbers);
    int err = numbers != NULL ? 0 : -ENOMEM;
    (void)arg;
    while (err == 0) {
        err = weft_for(0, NUMBERS, fill, numbers, NULL);
        err = err == 0 ? weft_sort(numbers, NUMBERS, sizeof *numbers, compare, NULL, NULL) : err;
        err = err == 0 ? weft_for(0, NUMBERS, must_be_sorted, numbers, NULL) : err;
        sorts += err == 0;
        err = err == 0 ? weft_yield() : err; /* Fails when the runtime shuts down. */
    }
    free(numbers);
    return err == WEFT_ECANCELED ? 0 : err;
}

/* --- Connections ------------------------------------------------------------------------------ */

struct connection {
    int fd;
    struct histogram delays;
    struct connection *next;
};

static weft_mutex mutex;               /* guards the list */
static struct connection *connections; /* all connections so far, closed ones included */

/* Returns when the kernel received this message, or 0 if it has no timestamp. */
static int64_t received_at(struct msghdr *message)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec time;
            memcpy(&time, CMSG_DATA(at), sizeof time);
            return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
        }
    }
    return 0;
}

static int64_t kernel_time(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_REALTIME, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/*
 * Echoes the data that is available without waiting. Returns the number of bytes sent back, 0
 * at the end of the stream, or an error.
 */
static ssize_t echo_message(struct connection *self)
{
    char buffer[ECHO_BUFFER_SIZE];
    char control[CMSG_SPACE(sizeof(struct timespec))];
    struct iovec vector = { .iov_base = buffer, .iov_len = sizeof buffer };
    struct msghdr message = { .msg_iov = &vector,
                              .msg_iovlen = 1,
                              .msg_control = control,
                              .msg_controllen = sizeof control };
    ssize_t n = recvmsg(self->fd, &message, MSG_DONTWAIT);
    if (n <= 0) {
        return n == 0 ? 0 : -errno;
    }
    if (send(self->fd, buffer, (size_t)n, MSG_NOSIGNAL) != n) {
        return -EPIPE; /* Messages are small, and the load generator reads all of them. */
    }
    int64_t received = received_at(&message);
    int64_t delay = kernel_time() - received;
    if (received != 0) { /* The first message may precede the request for timestamps. */
        histogram_add(&self->delays, delay > 0 ? (uint64_t)delay : 0);
    }
    return n;
}

static int echo(void *arg)
{
    struct connection *self = arg;
    weft_fd *handle;
    ssize_t n = weft_fd_open(&handle, self->fd);
    if (n == 0) {
        do {
            n = weft_fd_wait(handle, WEFT_READABLE, WEFT_NEVER);
            n = n > 0 ? echo_message(self) : n;
        } while (n > 0 || n == -EAGAIN);
        weft_fd_close(handle);
    }
    (void)close(self->fd);
    return 0;
}

static int begin(weft_stream *peer)
{
    int on = 1;
    int fd = weft_stream_release(peer);
    struct connection *self = calloc(1, sizeof *self);
    if (self == NULL || setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0) {
        echo_fail("a connection cannot be watched", errno);
    }
    self->fd = fd;
    WEFT_LOCKED(&mutex)
    {
        self->next = connections;
        connections = self;
    }
    return weft_go(NULL, echo, self);
}

static int serve(void *arg)
{
    char place[64];
    weft_listener *listener;
    weft_address address;
    weft_stream *peer;
    int err;
    (void)arg;
    (void)snprintf(place, sizeof place, "tcp://127.0.0.1:%u", options.port);
    must(weft_listen(&listener, place, NULL), "weft_listen");
    must(weft_listener_address(listener, &address), "weft_listener_address");
    echo_announce(weft_address_port(&address));
    while ((err = weft_accept(listener, &peer, WEFT_NEVER)) == 0) {
        must(begin(peer), "weft_go");
    }
    weft_listener_close(listener);
    return err;
}

/* --- Shutdown --------------------------------------------------------------------------------- */

/* Reports the delays of all connections. */
static void report(void)
{
    static struct histogram all;
    while (connections != NULL) {
        struct connection *next = connections->next;
        for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
            all.counts[i] += connections->delays.counts[i];
        }
        all.total += connections->delays.total;
        free(connections);
        connections = next;
    }
    (void)printf("{\"sorts\":%llu,\"requests\":%llu,\"p50_us\":%.2f,\"p99_us\":%.2f}\n",
                 (unsigned long long)sorts, (unsigned long long)all.total,
                 histogram_quantile(&all, 0.5) / 1000, histogram_quantile(&all, 0.99) / 1000);
}

int main(int argc, char **argv)
{
    options = echo_parse(argc, argv, ECHO_HAS_IDLE);
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = options.workers;
    weft_runtime *rt;
    must(weft_runtime_create(&rt, &config), "weft_runtime_create");
    must(weft_runtime_go(rt, NULL, &(weft_fiber_spec){ .function = serve }), "weft_runtime_go");
    if (!options.idle) {
        weft_fiber_spec sorter = { .function = sort_for_ever };
        must(weft_runtime_go(rt, NULL, &sorter), "weft_runtime_go");
    }
    echo_wait_for_stdin();
    weft_runtime_destroy(rt); /* cancels every connection and waits for it */
    report();
    return 0;
}
