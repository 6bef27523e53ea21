/* SPDX-License-Identifier: MIT */
/*
 * net_storm.c - thousands of idle connections, and a storm of short ones beside them.
 *
 * Idle connections use no CPU, no descriptor is leaked, and memory does not grow.
 * WEFT_TEST_SECONDS sets the duration of the storm, test_scale() the number of idle
 * connections.
 *
 * The clients run in a process of their own, because each connection has two ends and the
 * descriptor limit is per process. They follow the server's orders and make the same checks on
 * themselves.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft.h>

#include "ledger.h"
#include "links.h"
#include "ports.h"
#include "quiet.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    OPEN = 500,       /* connections, times the scale */
    OPENING_MAX = 64, /* connections being opened at a time */
    VISITS_PER_SECOND = 2000,
    VISITING_MAX = 200,   /* visits at a time */
    ADDRESSES = 4,        /* of this machine; each has ports for 28 000 connections */
    OWN_FDS_MAX = 500,    /* descriptors of a process apart from connections */
    GROWTH_MAX = 2 << 20, /* bytes: the maximum number of visits, when there were few before */
    BYE = '.',            /* asks the server to close the connection */
};

static struct place places[ADDRESSES];
static uint64_t open_count;
static int64_t storm_ns;

/* --- Checks of both sides --------------------------------------------------------------- */

/* Called on the first thread. Checks that no thread runs during a period without work. */
static void check_idle(const char *who)
{
    int64_t idle = storm_ns / 10 > 200 * WEFT_MS ? storm_ns / 10 : 200 * WEFT_MS;
    quiet_must_come(idle);
    printf("%s: %.1f s with %llu idle connections: no thread ran\n", who, (double)idle / WEFT_S,
           (unsigned long long)open_count);
}

/* --- The clients ------------------------------------------------------------------------ */

static weft_semaphore opening;
static weft_semaphore visiting;
static weft_semaphore closed;
static weft_event may_close;

static weft_stream *connect_and_talk(uint64_t number)
{
    weft_stream *stream;
    uint64_t answer;
    CHECK_EQ(weft_connect(&stream, places[number % ADDRESSES].text, NULL, WEFT_NEVER), 0);
    number = number * 256; /* The first byte is not BYE. */
    CHECK_EQ(weft_write_all(stream, &number, sizeof number, WEFT_NEVER), 0);
    CHECK_EQ(weft_read_exact(stream, &answer, sizeof answer, WEFT_NEVER), 0);
    CHECK_EQ(answer, number);
    return stream;
}

static int hold_connection(void *arg)
{
    weft_stream *stream = connect_and_talk((uintptr_t)arg);
    weft_semaphore_release(&opening, 1);
    CHECK_EQ(weft_event_wait(&may_close, WEFT_NEVER), 0);
    weft_stream_close(stream);
    weft_semaphore_release(&closed, 1);
    return 0;
}

static int open_all(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < open_count; i++) {
        CHECK_EQ(weft_semaphore_acquire(&opening, 1, WEFT_NEVER), 0);
        CHECK_EQ(weft_go(NULL, hold_connection, (void *)(uintptr_t)i), 0);
    }
    CHECK_EQ(weft_semaphore_acquire(&opening, OPENING_MAX, WEFT_NEVER), 0);
    return 0;
}

static int close_all(void *arg)
{
    (void)arg;
    weft_event_set(&may_close);
    CHECK_EQ(weft_semaphore_acquire(&closed, (uint32_t)open_count, WEFT_NEVER), 0);
    return 0;
}

/* A connection whose number selects how it ends: closed by the client, by the server, or by a
 * reset. */
static int visit_server(void *arg)
{
    uintptr_t number = (uintptr_t)arg;
    char byte = BYE;
    weft_stream *stream = connect_and_talk(number);
    if (number % 3 == 1) {
        CHECK_EQ(weft_write_all(stream, &byte, 1, WEFT_NEVER), 0);
        CHECK_EQ(weft_read(stream, &byte, 1, WEFT_NEVER), 0);
    } else if (number % 3 == 2) {
        CHECK_EQ(weft_stream_set_option(stream, WEFT_OPTION_LINGER, 0), 0);
    }
    weft_stream_close(stream);
    weft_semaphore_release(&visiting, 1);
    return 0;
}

/* Returns the number of visits. */
static int storm(void *arg)
{
    uint64_t rate = test_is_sanitized() ? VISITS_PER_SECOND / 20 : VISITS_PER_SECOND;
    weft_interval interval;
    weft_time begin = weft_now();
    uint64_t number = 0;
    (void)arg;
    weft_interval_init(&interval, begin, WEFT_MS, WEFT_INTERVAL_BURST);
    for (int64_t passed = 0; passed < storm_ns; passed = interval.next - begin) {
        CHECK_GE(weft_interval_tick(&interval), 1);
        for (; number < rate * (uint64_t)(interval.next - begin) / WEFT_S; number++) {
            CHECK_EQ(weft_semaphore_acquire(&visiting, 1, WEFT_NEVER), 0);
            CHECK_EQ(weft_go(NULL, visit_server, (void *)(uintptr_t)number), 0);
        }
    }
    CHECK_EQ(weft_semaphore_acquire(&visiting, VISITING_MAX, WEFT_NEVER), 0);
    weft_semaphore_release(&visiting, VISITING_MAX);
    printf("clients: %llu visits in %.2f s\n", (unsigned long long)number,
           (double)(weft_now() - begin) / WEFT_S);
    return (int)number;
}

enum order {
    ORDER_OPEN,
    ORDER_BE_IDLE,
    ORDER_STORM,
    ORDER_CLOSE,
    ORDERS,
};

static int run_order(weft_runtime *rt, enum order order)
{
    static int (*const functions[ORDERS])(
        void *arg) = { [ORDER_OPEN] = open_all, [ORDER_STORM] = storm, [ORDER_CLOSE] = close_all };
    if (order == ORDER_BE_IDLE) {
        check_idle("clients");
        return 0;
    }
    unsigned fds = link_fds();
    int result = test_join(test_go(rt, functions[order], NULL));
    CHECK(order != ORDER_STORM || link_fds() == fds);
    return result;
}

/* The main function of the client process. */
static _Noreturn void run_clients(int control)
{
    enum order order;
    CHECK_EQ(read(control, places, sizeof places), sizeof places);
    weft_semaphore_init(&opening, OPENING_MAX);
    weft_semaphore_init(&visiting, VISITING_MAX);
    weft_runtime *rt = test_start(2);
    do {
        CHECK_EQ(read(control, &order, sizeof order), sizeof order);
        int result = run_order(rt, order);
        CHECK_EQ(write(control, &result, sizeof result), sizeof result);
    } while (order != ORDER_CLOSE);
    weft_runtime_destroy(rt);
    exit(0);
}

/* --- The server ------------------------------------------------------------------------- */

static weft_listener *listeners[ADDRESSES];
static _Atomic(uint64_t) begun;
static _Atomic(uint64_t) ended;

static void end_service(weft_stream *peer, ssize_t result)
{
    CHECK(result >= 0 || result == -ECONNRESET || result == -EPIPE);
    weft_stream_close(peer);
    atomic_fetch_add(&ended, 1);
}

static int serve_fiber(void *arg)
{
    weft_stream *peer = arg;
    char buffer[64];
    ssize_t n;
    while ((n = weft_read(peer, buffer, sizeof buffer, WEFT_NEVER)) > 0 && buffer[0] != BYE) {
        n = weft_write_all(peer, buffer, (size_t)n, WEFT_NEVER);
        if (n < 0) {
            break;
        }
    }
    end_service(peer, n);
    return 0;
}

static int accept_fiber(void *arg)
{
    weft_listener *listener = arg;
    weft_stream *peer;
    int err;
    while ((err = weft_accept(listener, &peer, WEFT_NEVER)) == 0) {
        atomic_fetch_add(&begun, 1);
        CHECK_EQ(weft_go(NULL, serve_fiber, peer), 0);
    }
    CHECK_EQ(err, WEFT_ECLOSED);
    return 0;
}

/* Same as serve_fiber() and accept_fiber(), as stackless tasks. */
struct service {
    weft_stream *peer;
    weft_io io;
    char buffer[64];
};

static int serve_task(weft_co *co, void *state)
{
    struct service *self = state;
    int n;
    WEFT_BEGIN(co);
    for (;;) {
        weft_read_init(&self->io, self->peer, self->buffer, sizeof self->buffer);
        WEFT_AWAIT(co, n, &self->io.future);
        if (n <= 0 || self->buffer[0] == BYE) {
            break;
        }
        weft_write_all_init(&self->io, self->peer, self->buffer, (size_t)n);
        WEFT_AWAIT(co, n, &self->io.future);
        if (n < 0) {
            break;
        }
    }
    end_service(self->peer, n);
    WEFT_END(co, 0);
}

struct acceptor {
    weft_listener *listener;
    weft_io io;
    struct service service;
};

static int accept_task(weft_co *co, void *state)
{
    struct acceptor *self = state;
    int err;
    WEFT_BEGIN(co);
    for (;;) {
        weft_accept_init(&self->io, self->listener, &self->service.peer);
        WEFT_AWAIT(co, err, &self->io.future);
        if (err != 0) {
            CHECK_EQ(err, WEFT_ECLOSED);
            break;
        }
        atomic_fetch_add(&begun, 1);
        weft_spec spec = { .body = serve_task,
                           .state = &self->service,
                           .state_size = sizeof self->service };
        CHECK_EQ(weft_spawn(NULL, &spec), 0);
    }
    WEFT_END(co, 0);
}

static int listen_on_all_addresses(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < ADDRESSES; i++) {
        char place[32];
        (void)snprintf(place, sizeof place, "tcp://127.0.0.%u:0", i + 1);
        listeners[i] = port_listen(place, &places[i]);
    }
    return 0;
}

static weft_task *start_acceptor(weft_runtime *rt, weft_listener *listener, bool has_stack)
{
    weft_task *task;
    struct acceptor acceptor = { .listener = listener };
    weft_spec spec = { .body = accept_task, .state = &acceptor, .state_size = sizeof acceptor };
    if (has_stack) {
        return test_go(rt, accept_fiber, listener);
    }
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    return task;
}

/* --- Together --------------------------------------------------------------------------- */

static void give_order(int control, enum order order)
{
    CHECK_EQ(write(control, &order, sizeof order), sizeof order);
}

static int get_answer(int control)
{
    int result = -1;
    CHECK_EQ(read(control, &result, sizeof result), sizeof result);
    return result;
}

static void check_storm(int control, struct ledger *ledger)
{
    unsigned fds = link_fds();
    give_order(control, ORDER_STORM);
    test_wait_ns(storm_ns / 4);
    int64_t bytes = atomic_load(&ledger->bytes);
    size_t resident = test_rss_bytes();
    uint64_t visits = (uint64_t)get_answer(control);
    test_wait_for(&ended, visits);
    CHECK_EQ(atomic_load(&begun), open_count + visits);
    CHECK_EQ(link_fds(), fds);
    printf("server: %lld bytes allocated, %zu kB resident; in the first quarter %lld, %zu\n",
           (long long)atomic_load(&ledger->bytes), test_rss_bytes() / 1024, (long long)bytes,
           resident / 1024);
    CHECK_LE(atomic_load(&ledger->bytes), bytes + GROWTH_MAX);
    if (!test_is_sanitized()) {
        CHECK_LE(test_rss_bytes(), resident + GROWTH_MAX);
    }
    give_order(control, ORDER_CLOSE);
    CHECK_EQ(get_answer(control), 0);
    test_wait_for(&ended, visits + open_count);
}

static void serve_clients(int control, bool has_stack)
{
    struct ledger ledger = { 0 };
    weft_allocator allocator = ledger_allocator(&ledger);
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = test_workers(2);
    config.allocator = &allocator;
    unsigned fds = link_fds();
    weft_runtime *rt = test_start_with(&config);
    weft_task *acceptors[ADDRESSES];
    CHECK_EQ(test_run(rt, listen_on_all_addresses, NULL), 0);
    for (unsigned i = 0; i < ADDRESSES; i++) {
        acceptors[i] = start_acceptor(rt, listeners[i], has_stack);
    }
    CHECK_EQ(write(control, places, sizeof places), sizeof places);
    give_order(control, ORDER_OPEN);
    CHECK_EQ(get_answer(control), 0);
    give_order(control, ORDER_BE_IDLE);
    check_idle("server");
    CHECK_EQ(get_answer(control), 0);
    check_storm(control, &ledger);
    for (unsigned i = 0; i < ADDRESSES; i++) {
        weft_listener_close(listeners[i]);
        CHECK_EQ(test_join_soon(acceptors[i]), 0);
    }
    weft_runtime_destroy(rt);
    CHECK_EQ(link_fds(), fds);
    CHECK_EQ(atomic_load(&ledger.bytes), 0);
}

/* Chooses the requested number of connections, or as many as the system allows. */
static void choose_size(void)
{
    const char *text = getenv("WEFT_TEST_SECONDS");
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    storm_ns = (int64_t)(strtod(text != NULL ? text : "0.5", NULL) * WEFT_S);
    open_count = test_scale(OPEN);
    CHECK(limit.rlim_cur > OWN_FDS_MAX + VISITING_MAX);
    uint64_t most = limit.rlim_cur - OWN_FDS_MAX - VISITING_MAX;
    if (open_count > most) {
        printf("the limit of descriptors allows %llu connections, not %llu\n",
               (unsigned long long)most, (unsigned long long)open_count);
        open_count = most;
    }
}

static void run_storm(bool has_stack)
{
    int ends[2];
    int status = -1;
    choose_size();
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    (void)fflush(stdout);
    pid_t clients = fork();
    CHECK(clients >= 0);
    if (clients == 0) {
        (void)close(ends[0]);
        run_clients(ends[1]);
    }
    (void)close(ends[1]);
    serve_clients(ends[0], has_stack);
    CHECK_EQ(waitpid(clients, &status, 0), clients);
    CHECK_EQ(status, 0);
    (void)close(ends[0]);
}

static void fibers_survive_connection_storm(void)
{
    run_storm(true);
}

static void stackless_tasks_survive_connection_storm(void)
{
    run_storm(false);
}

TEST_MAIN({
    TEST(fibers_survive_connection_storm),
    TEST(stackless_tasks_survive_connection_storm),
})
