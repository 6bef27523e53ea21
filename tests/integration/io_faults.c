/* SPDX-License-Identifier: MIT */
/*
 * Streams and datagrams of known bytes under failing system calls. tests/scripts/faults.py
 * injects the failures, one kind after another.
 *
 * Goal:   whatever fails, bytes arrive in order, each once and unchanged, up to some point; a
 *         reader that sees the end of a stream has everything that was written to it; nothing is
 *         left open or allocated; and the program terminates.
 * Method: each stream counts the bytes accepted and received, and checks each byte by its
 *         position (support/flow.h). A task that gets an error gives up. WEFT_TEST_FAULTS says
 *         what to expect: "visible" errors, or "hidden" ones, from which the library recovers;
 *         without it there are none, and the program does not wait for the script.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <weft.h>

#include "flow.h"
#include "ledger.h"
#include "links.h"
#include "ports.h"
#include "test.h"

enum {
    SMALL_ROOM = 4096, /* of a socket's buffer, so that writers wait */
    MESSAGES = 16,
    MESSAGE = 100, /* bytes */
    WORKERS_MAX = 32,
};

/* --- Tasks ------------------------------------------------------------------------------------ */

/* The tasks that could be started. */
struct crew {
    weft_task *tasks[8];
    unsigned count;
};

static bool add(struct crew *crew, int err)
{
    flow_note(err);
    crew->count += err == 0;
    return err == 0;
}

static bool start_fiber(struct crew *crew, int (*function)(void *arg), void *arg)
{
    return add(crew, weft_go(&crew->tasks[crew->count], function, arg));
}

/* The state of a spawned stackless task is a pointer. */
static bool start_body(struct crew *crew, weft_body_fn body, void *arg)
{
    weft_spec spec = { .body = body, .state = &arg, .state_size = sizeof arg };
    return add(crew, weft_spawn(&crew->tasks[crew->count], &spec));
}

static void *arg_of(void *state)
{
    return *(void **)state;
}

static void join_crew(struct crew *crew)
{
    for (unsigned i = 0; i < crew->count; i++) {
        CHECK_EQ(weft_join(crew->tasks[i], NULL, WEFT_NEVER), 0);
    }
    crew->count = 0;
}

/* --- One way: pipes and pairs ----------------------------------------------------------------- */

static int write_and_close(void *arg)
{
    struct flow *flow = arg;
    int err = flow_write(flow);
    weft_stream_close(flow->to);
    return err;
}

static int read_and_close(void *arg)
{
    struct flow *flow = arg;
    int err = flow_read(flow);
    weft_stream_close(flow->from);
    return err;
}

static int write_and_close_body(weft_co *co, void *state)
{
    struct flow *flow = arg_of(state);
    int err;
    WEFT_BEGIN(co);
    weft_co_init(&flow->write_co, flow_write_body, flow);
    WEFT_AWAIT(co, err, &flow->write_co.future);
    weft_stream_close(flow->to);
    WEFT_END(co, err);
}

static int read_and_close_body(weft_co *co, void *state)
{
    struct flow *flow = arg_of(state);
    int err;
    WEFT_BEGIN(co);
    weft_co_init(&flow->read_co, flow_read_body, flow);
    WEFT_AWAIT(co, err, &flow->read_co.future);
    weft_stream_close(flow->from);
    WEFT_END(co, err);
}

/* One end is a fiber, the other a stackless task. */
static void pass_one_way(struct flow *flow, bool fiber_writes)
{
    struct crew crew = { .count = 0 };
    if (!(fiber_writes ? start_fiber(&crew, write_and_close, flow)
                       : start_body(&crew, write_and_close_body, flow))) {
        weft_stream_close(flow->to);
    }
    if (!(fiber_writes ? start_body(&crew, read_and_close_body, flow)
                       : start_fiber(&crew, read_and_close, flow))) {
        weft_stream_close(flow->from);
    }
    join_crew(&crew);
}

/* Descriptors opened by other code, in blocking mode. */
static int adopt_pipe(struct flow *flow)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -errno;
    }
    int err = weft_stream_adopt(&flow->from, ends[0]);
    if (err != 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return err;
    }
    err = weft_stream_adopt(&flow->to, ends[1]);
    if (err != 0) {
        weft_stream_close(flow->from);
        (void)close(ends[1]);
    }
    return err;
}

static int open_pair(struct flow *flow)
{
    int err = weft_stream_pair(&flow->to, &flow->from);
    if (err == 0) { /* If this fails, there are fewer waits. */
        flow_note(weft_stream_set_option(flow->to, WEFT_OPTION_SEND_BUFFER, SMALL_ROOM));
    }
    return err;
}

static struct flow pipe_flow = { .seed = 1 };
static struct flow pair_flow = { .seed = 2 };
static struct flow adopted_flow = { .seed = 3 };

static int pipes(void *arg)
{
    (void)arg;
    int err = weft_pipe(&pipe_flow.from, &pipe_flow.to);
    flow_note(err);
    if (err == 0) {
        pass_one_way(&pipe_flow, true);
    }
    err = open_pair(&pair_flow);
    flow_note(err);
    if (err == 0) {
        pass_one_way(&pair_flow, false);
    }
    err = adopt_pipe(&adopted_flow);
    flow_note(err);
    if (err == 0) {
        pass_one_way(&adopted_flow, true);
    }
    return 0;
}

/* --- Both directions: connections ------------------------------------------------------------- */

/* The client writes, half-closes, and reads the answer; the server reads, and then answers. */
struct connection {
    struct flow there;
    struct flow back;
    struct place place;
    weft_address address;
    weft_listener *listener;
    weft_stream *client;
    weft_stream *server;
    weft_io client_io;
    weft_io server_io;
};

/* Connected. The small buffer makes writers wait now and then; the test works without it, too. */
static void client_begins(struct connection *self)
{
    flow_note(weft_stream_set_option(self->client, WEFT_OPTION_SEND_BUFFER, SMALL_ROOM));
    self->there.to = self->client;
    self->back.from = self->client;
}

static void server_begins(struct connection *self)
{
    self->there.from = self->server;
    self->back.to = self->server;
}

/* Without the half-close, no answer would come. */
static bool shut_half(const struct connection *self)
{
    int err = weft_stream_shutdown(self->client, WEFT_WRITE_SIDE);
    flow_note(err);
    return err == 0;
}

static int be_client(void *arg)
{
    struct connection *self = arg;
    int err = weft_connect(&self->client, self->place.text, NULL, WEFT_NEVER);
    flow_note(err);
    if (err != 0) {
        return err;
    }
    client_begins(self);
    if (flow_write(&self->there) == 0 && shut_half(self)) {
        err = flow_read(&self->back);
    }
    weft_stream_close(self->client);
    return err;
}

static int be_server(void *arg)
{
    struct connection *self = arg;
    int err = weft_accept(self->listener, &self->server, WEFT_NEVER);
    flow_note(err);
    weft_listener_close(self->listener); /* A client that is not accepted gets an error. */
    if (err != 0) {
        return err;
    }
    server_begins(self);
    err = flow_read(&self->there);
    err = err == 0 ? flow_write(&self->back) : err;
    weft_stream_close(self->server);
    return err;
}

static int be_client_body(weft_co *co, void *state)
{
    struct connection *self = arg_of(state);
    int err;
    WEFT_BEGIN(co);
    weft_connect_init(&self->client_io, &self->client, &self->address, NULL);
    WEFT_AWAIT(co, err, &self->client_io.future);
    flow_note(err);
    if (err != 0) {
        return err;
    }
    client_begins(self);
    weft_co_init(&self->there.write_co, flow_write_body, &self->there);
    WEFT_AWAIT(co, err, &self->there.write_co.future);
    if (err == 0 && shut_half(self)) {
        weft_co_init(&self->back.read_co, flow_read_body, &self->back);
        WEFT_AWAIT(co, err, &self->back.read_co.future);
    }
    weft_stream_close(self->client);
    WEFT_END(co, err);
}

static int be_server_body(weft_co *co, void *state)
{
    struct connection *self = arg_of(state);
    int err;
    WEFT_BEGIN(co);
    weft_accept_init(&self->server_io, self->listener, &self->server);
    WEFT_AWAIT(co, err, &self->server_io.future);
    flow_note(err);
    weft_listener_close(self->listener);
    if (err != 0) {
        return err;
    }
    server_begins(self);
    weft_co_init(&self->there.read_co, flow_read_body, &self->there);
    WEFT_AWAIT(co, err, &self->there.read_co.future);
    if (err == 0) {
        weft_co_init(&self->back.write_co, flow_write_body, &self->back);
        WEFT_AWAIT(co, err, &self->back.write_co.future);
    }
    weft_stream_close(self->server);
    WEFT_END(co, err);
}

/* Starts both ends, each as a task of its own. */
static bool start_connection(struct connection *self, struct crew *clients, struct crew *servers,
                             bool fiber_serves)
{
    if (!(fiber_serves ? start_fiber(servers, be_server, self)
                       : start_body(servers, be_server_body, self))) {
        weft_listener_close(self->listener);
        return false;
    }
    return fiber_serves ? start_body(clients, be_client_body, self)
                        : start_fiber(clients, be_client, self);
}

static int listen_for(struct connection *self, const char *place)
{
    int err = weft_listen(&self->listener, place, NULL);
    if (err == 0) {
        err = weft_listener_address(self->listener, &self->address);
        if (err != 0) {
            weft_listener_close(self->listener);
            return err;
        }
        CHECK_LT(weft_address_print(&self->address, self->place.text, sizeof self->place.text),
                 sizeof self->place.text);
    }
    return err;
}

enum {
    CONNECTIONS = 4,
};

static struct connection connections[CONNECTIONS];
static struct place path; /* of one of the listeners */

/* Runs all connections at the same time. A server whose client is gone is canceled. */
static int connect_all(void *arg)
{
    struct place name = port_name("unix:");
    const char *places[CONNECTIONS] = { "tcp://127.0.0.1:0", path.text, "tcp://127.0.0.1:0",
                                        name.text };
    struct crew clients = { .count = 0 };
    struct crew servers = { .count = 0 };
    bool is_whole = true;
    (void)arg;
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        int err = listen_for(&connections[i], places[i]);
        flow_note(err);
        is_whole =
            err == 0 && start_connection(&connections[i], &clients, &servers, i < 2) && is_whole;
    }
    join_crew(&clients);
    for (unsigned i = 0; i < servers.count; i++) {
        weft_cancel(servers.tasks[i]);
    }
    join_crew(&servers);
    return is_whole ? 0 : -1;
}

/* --- An echo: both directions at the same time ------------------------------------------------ */

static struct echo {
    struct flow flow;
    weft_stream *server;
    weft_task *reader;
} echo = { .flow.seed = 4 };

static int echo_all(void *arg)
{
    (void)arg;
    int err = weft_copy(echo.server, echo.server, NULL, WEFT_NEVER);
    flow_note(err);
    echo.flow.is_cut = err != 0;
    weft_stream_close(echo.server);
    return err;
}

static int read_echo(void *arg)
{
    (void)arg;
    return flow_read(&echo.flow);
}

static int write_echo(void *arg)
{
    (void)arg;
    int err = flow_write(&echo.flow);
    if (err == 0) {
        err = weft_stream_shutdown(echo.flow.to, WEFT_WRITE_SIDE);
        flow_note(err);
    }
    if (err != 0) {
        weft_cancel(echo.reader); /* The stream will not end. */
    }
    return err;
}

static void write_and_read(void)
{
    struct crew readers = { .count = 0 };
    struct crew writers = { .count = 0 };
    if (!start_fiber(&readers, read_echo, NULL)) {
        return;
    }
    echo.reader = weft_task_retain(readers.tasks[0]);
    if (!start_fiber(&writers, write_echo, NULL)) {
        weft_cancel(echo.reader);
    }
    join_crew(&readers);
    if (writers.count > 0) {
        weft_cancel(writers.tasks[0]); /* The echo is no longer read. */
    }
    join_crew(&writers);
    weft_detach(echo.reader);
}

static int use_echo(void *arg)
{
    struct crew servers = { .count = 0 };
    (void)arg;
    int err = open_pair(&echo.flow);
    flow_note(err);
    if (err != 0) {
        return err;
    }
    echo.server = echo.flow.from;
    echo.flow.from = echo.flow.to;
    if (start_fiber(&servers, echo_all, NULL)) {
        write_and_read();
    } else {
        weft_stream_close(echo.server);
    }
    weft_stream_close(echo.flow.to);
    join_crew(&servers);
    return 0;
}

/* --- Datagrams -------------------------------------------------------------------------------- */

struct post {
    uint64_t seed;
    weft_datagram *to;
    weft_datagram *from;
    uint64_t sent;
    uint64_t received;
    unsigned send_retries;
    unsigned receive_retries;
    int send_err;
    unsigned char in[4][MESSAGE];
    weft_packet packets[4];
    weft_io io;
};

static void fill_message(const struct post *post, unsigned char *message, uint64_t number)
{
    link_fill(message, MESSAGE, post->seed, number * MESSAGE);
}

/* Sends one message, or several. */
static int send_some(struct post *post)
{
    unsigned char messages[4][MESSAGE];
    weft_packet packets[4];
    memset(packets, 0, sizeof packets);
    for (unsigned i = 0; i < 4; i++) {
        fill_message(post, messages[i], post->sent + i);
        packets[i].data = messages[i];
        packets[i].size = MESSAGE;
    }
    uint64_t left = MESSAGES - post->sent;
    if (left % 3 == 0) {
        return weft_datagram_send_many(post->to, packets, left < 4 ? left : 4, WEFT_NEVER);
    }
    ssize_t n = weft_datagram_send(post->to, messages[0], MESSAGE, WEFT_NEVER);
    CHECK(n < 0 || n == MESSAGE);
    return n < 0 ? (int)n : 1;
}

static int send_messages(void *arg)
{
    struct post *post = arg;
    while (post->send_err == 0 && post->sent < MESSAGES) {
        int n = send_some(post);
        if (n >= 0) {
            post->sent += (uint64_t)n;
        } else if (!flow_may_retry(n, &post->send_retries)) {
            post->send_err = n;
        }
    }
    return post->send_err;
}

/* Messages arrive in order, each once: nothing is lost within one machine. */
static void take_message(struct post *post, unsigned i, size_t size)
{
    unsigned char wanted[MESSAGE];
    fill_message(post, wanted, post->received);
    CHECK_EQ(size, MESSAGE);
    CHECK_EQ(memcmp(post->in[i], wanted, MESSAGE), 0);
    post->received++;
}

static void receive_init(struct post *post)
{
    if (post->received % 2 == 0) {
        weft_datagram_receive_init(&post->io, post->from, post->in[0], MESSAGE);
        return;
    }
    memset(post->packets, 0, sizeof post->packets);
    for (unsigned i = 0; i < 4; i++) {
        post->packets[i].data = post->in[i];
        post->packets[i].size = MESSAGE;
    }
    weft_datagram_receive_many_init(&post->io, post->from, post->packets, 4);
}

static bool conclude_receive(struct post *post, int result)
{
    if (result < 0) {
        return flow_may_retry(result, &post->receive_retries);
    }
    if (post->received % 2 == 0) {
        take_message(post, 0, (size_t)result);
    } else {
        for (int i = 0; i < result; i++) {
            take_message(post, (unsigned)i, post->packets[i].received);
        }
    }
    return post->received < MESSAGES;
}

static int receive_messages(weft_co *co, void *state)
{
    struct post *post = arg_of(state);
    int result;
    WEFT_BEGIN(co);
    do {
        receive_init(post);
        WEFT_AWAIT(co, result, &post->io.future);
    } while (conclude_receive(post, result));
    WEFT_END(co, result < 0 ? result : 0);
}

/* Never waits, so a kernel does not interrupt it or ask for a retry; only injected faults do. */
static int connect_post(struct post *post, const weft_address *address)
{
    int err;
    do {
        err = weft_datagram_connect(post->to, address);
    } while (err == -EINTR || err == -EAGAIN);
    return err;
}

static int open_udp(struct post *post)
{
    weft_address address;
    int err = weft_datagram_open(&post->from, "udp://127.0.0.1:0", NULL);
    if (err != 0) {
        return err;
    }
    err = weft_datagram_open(&post->to, "udp://127.0.0.1:0", NULL);
    if (err == 0) {
        err = weft_datagram_address(post->from, &address);
        err = err == 0 ? connect_post(post, &address) : err;
        if (err != 0) {
            weft_datagram_close(post->to);
        }
    }
    if (err != 0) {
        weft_datagram_close(post->from);
    }
    return err;
}

/* Datagrams have no end: a receiver that waits for messages that will not come is canceled. */
static void send_and_receive(struct post *post)
{
    struct crew senders = { .count = 0 };
    struct crew receivers = { .count = 0 };
    if (start_body(&receivers, receive_messages, post)) {
        if (!start_fiber(&senders, send_messages, post)) {
            post->send_err = -ENOMEM;
        }
        join_crew(&senders);
        if (post->send_err != 0) {
            weft_cancel(receivers.tasks[0]);
        }
        join_crew(&receivers);
    }
    weft_datagram_close(post->to);
    weft_datagram_close(post->from);
}

static struct post posts[2] = { { .seed = 20 }, { .seed = 21 } };

static int use_datagrams(void *arg)
{
    (void)arg;
    int err = open_udp(&posts[0]);
    flow_note(err);
    if (err == 0) {
        send_and_receive(&posts[0]);
    }
    err = weft_datagram_pair(&posts[1].to, &posts[1].from);
    flow_note(err);
    if (err == 0) {
        send_and_receive(&posts[1]);
    }
    return 0;
}

/* --- Descriptors ------------------------------------------------------------------------------ */

static int wait_for_byte(void *arg)
{
    int result = weft_fd_wait(arg, WEFT_READABLE, WEFT_NEVER);
    flow_note(result);
    return result;
}

/* A descriptor owned by a library: weft waits for it, the library reads from it. */
static int wait_for_foreign(void *arg)
{
    int ends[2];
    weft_fd *handle;
    struct crew crew = { .count = 0 };
    (void)arg;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        flow_note(-errno);
        return -errno;
    }
    int err = weft_fd_open(&handle, ends[0]);
    flow_note(err);
    if (err == 0) {
        (void)start_fiber(&crew, wait_for_byte, handle);
        flow_note(weft_yield());
        CHECK_EQ(write(ends[1], "x", 1), 1);
        join_crew(&crew);
        weft_fd_close(handle);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    return err;
}

/* Received descriptors are open and belong to the receiver. */
static void close_received(const int *fds, size_t count)
{
    CHECK_LE(count, 2);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(close(fds[i]), 0);
    }
}

static int pass_fds(void *arg)
{
    weft_stream *one;
    weft_stream *other;
    const int sent[2] = { STDOUT_FILENO, STDERR_FILENO };
    (void)arg;
    int err = weft_stream_pair(&one, &other);
    flow_note(err);
    if (err != 0) {
        return err;
    }
    ssize_t n = weft_write_fds(one, "xy", 2, sent, 2, WEFT_NEVER);
    flow_note((int)n);
    if (n > 0) {
        int received[2];
        size_t count = 2;
        char bytes[2];
        n = weft_read_fds(other, bytes, sizeof bytes, received, &count, WEFT_NEVER);
        flow_note((int)n);
        if (n > 0) {
            CHECK_EQ(n, 2);
            close_received(received, count);
        }
    }
    weft_stream_close(one);
    weft_stream_close(other);
    return 0;
}

/* --- All of it -------------------------------------------------------------------------------- */

static int (*const programs[])(void *arg) = { connect_all,      pipes,   use_echo, use_datagrams,
                                              wait_for_foreign, pass_fds };

static struct flow thread_flow = { .seed = 5 }; /* read by a plain thread */

static int open_thread_flow(void *arg)
{
    (void)arg;
    return open_pair(&thread_flow);
}

/* Runs the function on a fiber, from a plain thread. Returns its result, or an error. */
static int run(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    weft_task *task;
    weft_fiber_spec spec = { .function = function, .arg = arg };
    int result = 0;
    int err = weft_runtime_go(rt, &task, &spec);
    if (err == 0) {
        CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
    }
    flow_note(err);
    return err != 0 ? err : result;
}

static void read_on_this_thread(weft_runtime *rt)
{
    weft_task *writer;
    weft_fiber_spec spec = { .function = write_and_close, .arg = &thread_flow };
    int err = run(rt, open_thread_flow, NULL);
    flow_note(err);
    if (err != 0) {
        return;
    }
    err = weft_runtime_go(rt, &writer, &spec);
    flow_note(err);
    if (err != 0) {
        weft_stream_close(thread_flow.to);
    }
    (void)read_and_close(&thread_flow);
    if (err == 0) {
        CHECK_EQ(weft_join(writer, NULL, WEFT_NEVER), 0);
    }
}

static unsigned workers(void)
{
    unsigned count = test_workers(2);
    return count < WORKERS_MAX ? count : WORKERS_MAX;
}

static void use_runtime(struct ledger *ledger)
{
    weft_allocator allocator = ledger_allocator(ledger);
    weft_config config = WEFT_CONFIG_INIT;
    weft_runtime *rt;
    config.workers = workers();
    config.allocator = &allocator;
    int err = weft_runtime_create(&rt, &config);
    flow_note(err);
    if (err != 0) {
        return;
    }
    read_on_this_thread(rt);
    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        (void)run(rt, programs[i], NULL);
    }
    weft_stats stats;
    weft_runtime_shutdown(rt);
    weft_runtime_stats(rt, &stats);
    CHECK_EQ(stats.tasks_alive, 0);
    weft_runtime_destroy(rt);
}

static void check_all(void)
{
    flow_check(&pipe_flow);
    flow_check(&pair_flow);
    flow_check(&adopted_flow);
    flow_check(&thread_flow);
    flow_check(&echo.flow);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        flow_check(&connections[i].there);
        flow_check(&connections[i].back);
    }
    for (unsigned i = 0; i < 2; i++) {
        CHECK_LE(posts[i].received, posts[i].sent);
    }
}

/* The script decides when calls may start to fail. */
static void wait_for_script(void)
{
    char byte;
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    CHECK_EQ(read(STDIN_FILENO, &byte, 1), 1);
}

static void check_whole(void)
{
    CHECK_EQ(flow_errors(), 0);
    CHECK_EQ(pipe_flow.arrived, FLOW_BYTES);
    CHECK_EQ(pair_flow.arrived, FLOW_BYTES);
    CHECK_EQ(adopted_flow.arrived, FLOW_BYTES);
    CHECK_EQ(thread_flow.arrived, FLOW_BYTES);
    CHECK_EQ(echo.flow.arrived, FLOW_BYTES);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        CHECK_EQ(connections[i].there.arrived, FLOW_BYTES);
        CHECK_EQ(connections[i].back.arrived, FLOW_BYTES);
    }
    CHECK_EQ(posts[0].received, MESSAGES);
    CHECK_EQ(posts[1].received, MESSAGES);
}

static void streams_under_failing_calls_lose_nothing(void)
{
    const char *faults = getenv("WEFT_TEST_FAULTS");
    struct ledger ledger = { 0 };
    unsigned fds_before = link_fds();
    path = port_path("unix:");
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        connections[i].there.seed = 6 + 2 * i;
        connections[i].back.seed = 7 + 2 * i;
    }
    if (faults != NULL) {
        wait_for_script();
    }
    use_runtime(&ledger);
    check_all();
    if (faults == NULL || strcmp(faults, "visible") != 0) {
        check_whole();
    }
    CHECK_EQ(link_fds(), fds_before);
    CHECK_EQ(atomic_load(&ledger.bytes), 0);
    CHECK(!port_exists(&path));
}

TEST_MAIN({
    TEST(streams_under_failing_calls_lose_nothing),
})
