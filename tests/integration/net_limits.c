/* SPDX-License-Identifier: MIT */
/*
 * Descriptor limits: a server that runs out of descriptors, many descriptors at the same time,
 * and numbers as high as the system allows.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weft.h>

#include "links.h"
#include "ports.h"
#include "quiet.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    GUESTS = 5, /* connections accepted before */
    LATE = 3,   /* connections made when no descriptor is free */
};

static weft_listener *listener;
static weft_address address;
static weft_stream *guests[GUESTS];
static _Atomic(uint64_t) accepted;

/* --- Out of descriptors ----------------------------------------------------------------- */

static int serve(void *arg)
{
    weft_stream *peer = arg;
    char buffer[64];
    ssize_t n;
    while ((n = weft_read(peer, buffer, sizeof buffer, WEFT_NEVER)) > 0) {
        CHECK_EQ(weft_write_all(peer, buffer, (size_t)n, WEFT_NEVER), 0);
    }
    weft_stream_close(peer);
    return (int)n;
}

static int accept_all(void *arg)
{
    weft_stream *peer;
    int err;
    (void)arg;
    while ((err = weft_accept(listener, &peer, WEFT_NEVER)) == 0) {
        CHECK_EQ(weft_go(NULL, serve, peer), 0);
        atomic_fetch_add(&accepted, 1);
    }
    return err;
}

/* Same as accept_all(), as a stackless task. */
struct acceptor {
    weft_io io;
    weft_stream *peer;
};

static int accept_body(weft_co *co, void *state)
{
    struct acceptor *self = state;
    int err;
    WEFT_BEGIN(co);
    for (;;) {
        weft_accept_init(&self->io, listener, &self->peer);
        WEFT_AWAIT(co, err, &self->io.future);
        if (err != 0) {
            break;
        }
        CHECK_EQ(weft_go(NULL, serve, self->peer), 0);
        atomic_fetch_add(&accepted, 1);
    }
    WEFT_END(co, err);
}

static weft_task *start_acceptor(weft_runtime *rt, bool has_stack)
{
    weft_task *task;
    weft_spec spec = { .body = accept_body, .state_size = sizeof(struct acceptor) };
    if (has_stack) {
        return test_go(rt, accept_all, NULL);
    }
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    return task;
}

static int listen_here(void *arg)
{
    struct place where;
    listener = port_listen(arg, &where);
    address = port_address(where.text);
    return 0;
}

static int invite_guests(void *arg)
{
    char text[WEFT_ADDRESS_TEXT_MAX];
    (void)arg;
    (void)weft_address_print(&address, text, sizeof text);
    for (unsigned i = 0; i < GUESTS; i++) {
        CHECK_EQ(weft_connect(&guests[i], text, NULL, WEFT_NEVER), 0);
    }
    return 0;
}

static int talk_to_guests(void *arg)
{
    char byte;
    (void)arg;
    for (unsigned i = 0; i < 20 * GUESTS; i++) {
        CHECK_EQ(weft_write_all(guests[i % GUESTS], "x", 1, WEFT_NEVER), 0);
        CHECK_EQ(weft_read(guests[i % GUESTS], &byte, 1, WEFT_NEVER), 1);
    }
    return 0;
}

static int say_goodbye(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < GUESTS; i++) {
        weft_stream_close(guests[i]);
    }
    return 0;
}

/* Threads run only to check, with increasing backoff, whether descriptors are available again.
 * All workers have started, and slept once, before the measurement. */
static void check_that_it_waits(weft_runtime *rt)
{
    test_wait_until_asleep(rt);
    quiet_must_be_near(300 * WEFT_MS, test_wait_ns);
}

static void use_up_descriptors(const char *place, bool has_stack)
{
    weft_runtime *rt = test_start(test_workers(2));
    int late[LATE];
    unsigned before = link_fds();
    atomic_store(&accepted, 0);
    CHECK_EQ(test_run(rt, listen_here, (void *)(uintptr_t)place), 0);
    weft_task *acceptor = start_acceptor(rt, has_stack);
    CHECK_EQ(test_run(rt, invite_guests, NULL), 0);
    test_wait_for(&accepted, GUESTS);
    for (unsigned i = 0; i < LATE; i++) {
        late[i] = socket(address.to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    }
    int spare = dup(late[0]);
    port_end_fds();
    for (unsigned i = 0; i < LATE; i++) {
        CHECK_EQ(connect(late[i], &address.to.any, address.size), 0);
    }
    check_that_it_waits(rt);
    /* An accept that was about to return without a connection had one more number. */
    uint64_t early = atomic_load(&accepted);
    CHECK_LE(early, GUESTS + 1);
    CHECK_EQ(test_run(rt, talk_to_guests, NULL), 0);
    (void)close(spare); /* One descriptor is free. */
    test_wait_for(&accepted, early + 1);
    CHECK_EQ(write(late[0], "x", 1), 1);
    char byte;
    CHECK_EQ(read(late[0], &byte, 1), 1);
    (void)close(late[0]); /* Frees two numbers: its own and that of the other end. */
    test_wait_for(&accepted, GUESTS + LATE);
    port_mend_fds();
    (void)close(late[1]);
    (void)close(late[2]);
    CHECK_EQ(test_run(rt, say_goodbye, NULL), 0);
    weft_listener_close(listener);
    CHECK_EQ(test_join_soon(acceptor), WEFT_ECLOSED);
    weft_runtime_destroy(rt);
    CHECK_LE(link_fds(), before);
}

/*
 * Goal:   a listener without descriptors waits and does not spin; existing connections are served;
 *         new ones are accepted as soon as descriptors are free.
 * Method: the limit is set to the number in use.
 */
static void server_without_free_descriptors_serves_open_connections(void)
{
    struct place name = port_name("unix:");
    use_up_descriptors("tcp://127.0.0.1:0", true);
    use_up_descriptors("tcp://127.0.0.1:0", false);
    use_up_descriptors(name.text, true);
}

/* --- Many descriptors, and high numbers ----------------------------------------------- */

enum {
    MANY = 100 * 1000,
};

/* Raises the limit as far as the system and the privileges of this process allow. */
static rlim_t raise_limit(void)
{
    struct rlimit limit;
    struct rlimit more = { MANY + 10 * 1000, MANY + 10 * 1000 };
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < more.rlim_max && setrlimit(RLIMIT_NOFILE, &more) == 0) {
        return more.rlim_cur;
    }
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit.rlim_cur;
}

/* Moves the stream to another descriptor number. */
static void move_up(weft_stream **stream, int number)
{
    int fd = weft_stream_release(*stream);
    CHECK_GE(fd, 0);
    CHECK_EQ(fcntl(fd, F_DUPFD_CLOEXEC, number), number);
    (void)close(fd);
    CHECK_EQ(weft_stream_adopt(stream, number), 0);
    CHECK_EQ(weft_stream_fd(*stream), number);
}

static int echo_back(void *arg)
{
    char byte;
    CHECK_EQ(weft_read(arg, &byte, 1, WEFT_NEVER), 1);
    return weft_write_all(arg, &byte, 1, WEFT_NEVER);
}

static int use_high_numbers(void *arg)
{
    int highest = *(const int *)arg;
    for (int i = 0; i < 2 * LINK_MEMORY; i++) {
        struct link link = link_open((enum link_kind)(i % LINK_MEMORY));
        weft_task *peer;
        char byte;
        move_up(&link.near, highest - 2 * i);
        move_up(&link.far, highest - 2 * i - 1);
        CHECK_EQ(weft_go(&peer, echo_back, link.far), 0);
        CHECK_EQ(weft_read(link.near, &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
        CHECK_EQ(weft_write_all(link.near, "x", 1, WEFT_NEVER), 0);
        CHECK_EQ(weft_read(link.near, &byte, 1, WEFT_NEVER), 1);
        CHECK_EQ(byte, 'x');
        CHECK_EQ(test_join_soon(peer), 0);
        link_close(&link);
    }
    return 0;
}

static void highest_descriptor_numbers_work(void)
{
    struct rlimit before;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlim_t limit = raise_limit();
    int highest = limit <= MANY + 10 * 1000 ? (int)limit - 1 : MANY + 9999;
    printf("the highest descriptor is %d%s\n", highest,
           highest >= MANY ? "" : ": more are not allowed here");
    port_run(test_workers(2), use_high_numbers, &highest);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* A stackless task that waits for a stream. */
struct reader {
    weft_stream *stream;
    weft_io io;
    unsigned char byte;
};

static int read_byte(weft_co *co, void *state)
{
    struct reader *self = state;
    int n;
    WEFT_BEGIN(co);
    weft_read_init(&self->io, self->stream, &self->byte, 1);
    WEFT_AWAIT(co, n, &self->io.future);
    weft_stream_close(self->stream);
    WEFT_END(co, n == 1 ? self->byte : -1);
}

struct pair {
    weft_stream *near;
    weft_task *reader;
};

static int use_many(void *arg)
{
    size_t count = *(const size_t *)arg;
    struct pair *pairs = malloc(count * sizeof *pairs);
    unsigned before = link_fds();
    CHECK(pairs != NULL);
    for (size_t i = 0; i < count; i++) {
        struct reader state = { 0 };
        CHECK_EQ(weft_stream_pair(&pairs[i].near, &state.stream), 0);
        CHECK_EQ(weft_spawn(&pairs[i].reader, &(weft_spec){ .body = read_byte,
                                                            .state = &state,
                                                            .state_size = sizeof state }),
                 0);
    }
    CHECK_EQ(link_fds(), before + 2 * count);
    for (size_t i = count; i-- > 0;) {
        unsigned char byte = link_byte(5, i);
        CHECK_EQ(weft_write_all(pairs[i].near, &byte, 1, WEFT_NEVER), 0);
    }
    for (size_t i = 0; i < count; i++) {
        int result;
        CHECK_EQ(weft_join(pairs[i].reader, &result, WEFT_NEVER), 0);
        CHECK_EQ(result, link_byte(5, i));
        weft_stream_close(pairs[i].near);
    }
    free(pairs);
    return 0;
}

/*
 * Goal:   with the maximum number of descriptors, each with a waiter, each waiter gets its byte.
 * Method: more than 100 000 at a scale of 20, where the system allows it.
 */
static void each_of_many_gets_its_byte(void)
{
    struct rlimit before;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    size_t most = (size_t)raise_limit() / 2 - 1000;
    size_t count = test_scale(2600);
    count = count < most ? count : most;
    printf("%zu descriptors\n", 2 * count);
    port_run(test_workers(2), use_many, &count);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_MAIN({
    TEST(each_of_many_gets_its_byte),
    TEST(server_without_free_descriptors_serves_open_connections),
    TEST(highest_descriptor_numbers_work),
})
