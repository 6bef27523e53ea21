/* SPDX-License-Identifier: MIT */
/*
 * echo_stackless.c - TCP echo server with one stackless task per connection.
 *
 *     echo_stackless tcp://127.0.0.1:7000      serves until SIGINT or SIGTERM
 *     echo_stackless                           runs a self-test
 *
 * Millions of stackless tasks can wait at the same time. Each is as large as its state.
 */
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "server.h"

/* State that must survive an await. */
struct echo {
    weft_stream *peer;
    weft_io io;
    char buffer[1024];
};

static int echo_body(weft_co *co, void *state)
{
    struct echo *self = state;
    int n;
    WEFT_BEGIN(co);
    for (;;) {
        weft_read_init(&self->io, self->peer, self->buffer, sizeof self->buffer);
        WEFT_AWAIT(co, n, &self->io.future);
        if (n <= 0) {
            break; /* End of stream, an error, or WEFT_ECANCELED. */
        }
        weft_write_all_init(&self->io, self->peer, self->buffer, (size_t)n);
        WEFT_AWAIT(co, n, &self->io.future);
        if (n < 0) {
            break;
        }
    }
    WEFT_END(co, n < 0 ? n : 0);
}

/* Runs however the task ends. */
static void echo_drop(void *state)
{
    weft_stream_close(((struct echo *)state)->peer);
}

static int start(weft_stream *peer)
{
    struct echo state = { .peer = peer };
    return weft_spawn(NULL, &(weft_spec){ .body = echo_body,
                                          .drop = echo_drop,
                                          .state = &state,
                                          .state_size = sizeof state,
                                          .name = "echo" });
}

/* Sends more than a buffer holds and reads the echo at the same time. */
static int try_it(const char *place)
{
    static char sent[100000];
    static char back[sizeof sent];
    weft_stream *stream;
    size_t out = 0;
    size_t in = 0;
    ssize_t n = weft_connect(&stream, place, NULL, weft_after(WEFT_S));
    if (n != 0) {
        return (int)n;
    }
    for (size_t i = 0; i < sizeof sent; i++) {
        sent[i] = (char)(i * 2654435761u >> 13);
    }
    while (n >= 0 && in < sizeof back) {
        size_t part = sizeof sent - out < 5000 ? sizeof sent - out : 5000;
        int err = part > 0 ? weft_write_all(stream, sent + out, part, weft_after(WEFT_S)) : 0;
        out += part;
        n = err != 0 ? err : weft_read(stream, back + in, sizeof back - in, weft_after(WEFT_S));
        in += n > 0 ? (size_t)n : 0;
        n = n == 0 ? WEFT_EEND : n;
    }
    weft_stream_close(stream);
    if (n < 0) {
        return (int)n;
    }
    (void)printf("%zu bytes came back from %s\n", in, place);
    return memcmp(sent, back, sizeof sent) != 0;
}

int main(int argc, char **argv)
{
    static const struct server server = { "echo_stackless", start, try_it };
    return server_main(&server, argc, argv);
}
