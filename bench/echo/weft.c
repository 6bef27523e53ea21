/* SPDX-License-Identifier: MIT */
/*
 * weft.c - echo server with weft: one fiber per connection, or with --stackless one stackless
 * task.
 *
 * With --bulk it is a sink or a source, with one fiber per connection.
 *
 * WEFT_IO selects the I/O backend. If the runtime uses a different one, the server exits, so
 * that no figure is recorded under the wrong name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "block.h"
#include "server.h"

static struct echo_options options; /* constant once the runtime has started */

/* --- Connections ------------------------------------------------------------------------------ */

static int echo(void *arg)
{
    weft_stream *peer = arg;
    char buffer[ECHO_BUFFER_SIZE];
    ssize_t n;
    while ((n = weft_read(peer, buffer, sizeof buffer, WEFT_NEVER)) > 0) {
        if (weft_write_all(peer, buffer, (size_t)n, WEFT_NEVER) < 0) {
            break;
        }
    }
    weft_stream_close(peer);
    return 0;
}

struct stackless {
    weft_stream *peer;
    weft_io io;
    char buffer[ECHO_BUFFER_SIZE];
};

static int stackless_echo(weft_co *co, void *state)
{
    struct stackless *self = state;
    int n;
    WEFT_BEGIN(co);
    for (;;) {
        weft_read_init(&self->io, self->peer, self->buffer, sizeof self->buffer);
        WEFT_AWAIT(co, n, &self->io.future);
        if (n <= 0) {
            break;
        }
        weft_write_all_init(&self->io, self->peer, self->buffer, (size_t)n);
        WEFT_AWAIT(co, n, &self->io.future);
        if (n < 0) {
            break;
        }
    }
    WEFT_END(co, 0);
}

static void stackless_drop(void *state)
{
    weft_stream_close(((struct stackless *)state)->peer);
}

static unsigned char *make_block(void)
{
    unsigned char *block = malloc(BLOCK_SIZE);
    if (block == NULL) {
        echo_fail("no memory", 0);
    }
    return block;
}

static int sink(void *arg)
{
    weft_stream *peer = arg;
    unsigned char *block = make_block();
    struct block_sum sum = { 0 };
    ssize_t n;
    while ((n = weft_read(peer, block, BLOCK_SIZE, WEFT_NEVER)) > 0) {
        block_sum_add(&sum, block, (size_t)n);
    }
    struct block_reply reply = block_sum_reply(&sum);
    int err = n == 0 ? weft_write_all(peer, &reply, sizeof reply, WEFT_NEVER) : (int)n;
    free(block);
    weft_stream_close(peer);
    return err;
}

/* Sends until the peer closes the connection. */
static int source(void *arg)
{
    weft_stream *peer = arg;
    unsigned char *block = make_block();
    uint64_t number = 0;
    block_fill(block);
    do {
        block_set_number(block, number++);
    } while (weft_write_all(peer, block, BLOCK_SIZE, WEFT_NEVER) == 0);
    free(block);
    weft_stream_close(peer);
    return 0;
}

/* --- Server ----------------------------------------------------------------------------------- */

static int start(weft_stream *peer)
{
    if (options.stackless) {
        struct stackless state = { .peer = peer };
        return weft_spawn(NULL, &(weft_spec){ .body = stackless_echo,
                                              .drop = stackless_drop,
                                              .state = &state,
                                              .state_size = sizeof state });
    }
    return weft_go(NULL,
                   options.bulk == ECHO_BULK_SINK     ? sink
                   : options.bulk == ECHO_BULK_SOURCE ? source
                                                      : echo,
                   peer);
}

static void must(int err, const char *what)
{
    if (err != 0) {
        (void)fprintf(stderr, "echo: %s\n", weft_strerror(err));
        echo_fail(what, 0);
    }
}

static int serve(void *arg)
{
    (void)arg;
    char place[64];
    weft_listener *listener;
    weft_address address;
    weft_stream *peer;
    int err;
    (void)snprintf(place, sizeof place, "tcp://127.0.0.1:%u", options.port);
    must(weft_listen(&listener, place, NULL), "weft_listen");
    must(weft_listener_address(listener, &address), "weft_listener_address");
    echo_announce(weft_address_port(&address));
    while ((err = weft_accept(listener, &peer, WEFT_NEVER)) == 0) {
        if (start(peer) != 0) {
            weft_stream_close(peer);
        }
    }
    weft_listener_close(listener);
    return err;
}

static void check_backend(weft_runtime *rt)
{
    const char *asked = getenv("WEFT_IO");
    weft_io_info info;
    must(weft_runtime_io(rt, &info), "weft_runtime_io");
    if (asked != NULL && strcmp(asked, "auto") != 0 && strstr(info.backend, asked) == NULL) {
        (void)fprintf(stderr, "echo: WEFT_IO=%s gives %s: %s\n", asked, info.backend, info.reason);
        exit(ECHO_EXIT_REFUSED);
    }
}

int main(int argc, char **argv)
{
    options = echo_parse(argc, argv, ECHO_HAS_STACKLESS | ECHO_HAS_BULK);
    if (options.stackless && options.bulk != ECHO_BULK_NONE) {
        echo_fail("--bulk has fibers only", 0);
    }
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = options.workers;
    weft_runtime *rt;
    must(weft_runtime_create(&rt, &config), "weft_runtime_create");
    check_backend(rt);
    must(weft_runtime_go(rt, NULL, &(weft_fiber_spec){ .function = serve }), "weft_runtime_go");
    echo_wait_for_stdin();
    weft_runtime_destroy(rt); /* cancels every connection and waits for it */
    return 0;
}
