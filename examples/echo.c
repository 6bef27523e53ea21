/* SPDX-License-Identifier: MIT */
/*
 * echo.c - TCP echo server with one fiber per connection.
 *
 *     echo tcp://127.0.0.1:7000      serves until SIGINT or SIGTERM
 *     echo                           runs a self-test
 *
 * server.c listens, accepts, and shuts down.
 */
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "server.h"

static int echo(void *arg)
{
    weft_stream *peer = arg;
    char buffer[4096];
    ssize_t n;
    while ((n = weft_read(peer, buffer, sizeof buffer, WEFT_NEVER)) > 0) {
        int err = weft_write_all(peer, buffer, (size_t)n, WEFT_NEVER);
        if (err != 0) {
            n = err;
            break;
        }
    }
    weft_stream_close(peer);
    return (int)n;
}

static int start(weft_stream *peer)
{
    return weft_go(NULL, echo, peer);
}

static int try_it(const char *place)
{
    static const char line[] = "hello, echo";
    char reply[sizeof line];
    weft_stream *stream;
    int err = weft_connect(&stream, place, NULL, weft_after(WEFT_S));
    if (err != 0) {
        return err;
    }
    err = weft_write_all(stream, line, sizeof line, weft_after(WEFT_S));
    if (err == 0) {
        err = weft_read_exact(stream, reply, sizeof reply, weft_after(WEFT_S));
    }
    weft_stream_close(stream);
    if (err == 0) {
        (void)printf("%.*s came back from %s\n", (int)sizeof reply, reply, place);
        err = memcmp(line, reply, sizeof line) != 0;
    }
    return err;
}

int main(int argc, char **argv)
{
    static const struct server server = { "echo", start, try_it };
    return server_main(&server, argc, argv);
}
