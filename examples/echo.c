/* SPDX-License-Identifier: MIT */
/*
 * echo.c - a server that sends back what it gets: one fiber for each connection.
 *
 *     echo tcp://127.0.0.1:7000      serves until it is killed
 *     echo                           tries itself
 */
#include <stdio.h>
#include <string.h>

#include <weft.h>

static int echo(void *arg)
{
    weft_stream *peer = arg;
    char buffer[4096];
    ssize_t n;
    while ((n = weft_read(peer, buffer, sizeof buffer, WEFT_NEVER)) > 0) {
        if (weft_write_all(peer, buffer, (size_t)n, WEFT_NEVER) < 0) {
            break;
        }
    }
    weft_stream_close(peer);
    return 0;
}

/* Where it listens; for a port of 0 the system has chosen one. */
static int place_of(weft_listener *listener, char *place)
{
    weft_address address;
    int err = weft_listener_address(listener, &address);
    if (err == 0) {
        (void)weft_address_print(&address, place, WEFT_ADDRESS_TEXT_MAX);
    }
    return err;
}

static int serve(void *arg)
{
    weft_listener *listener = arg;
    weft_stream *peer;
    int err;
    while ((err = weft_accept(listener, &peer, WEFT_NEVER)) == 0) {
        if (weft_go(NULL, echo, peer) != 0) {
            weft_stream_close(peer);
        }
    }
    return err;
}

/* Sends a line and gets it back. */
static int try_it(weft_listener *listener)
{
    static const char line[] = "hello, echo";
    char place[WEFT_ADDRESS_TEXT_MAX];
    char reply[sizeof line];
    weft_stream *stream;
    int err = place_of(listener, place);
    if (err == 0) {
        err = weft_connect(&stream, place, NULL, weft_after(WEFT_S));
    }
    if (err != 0) {
        return err;
    }
    err = weft_write_all(stream, line, sizeof line, weft_after(WEFT_S));
    if (err == 0) {
        err = weft_read_exact(stream, reply, sizeof reply, weft_after(WEFT_S));
    }
    weft_stream_close(stream);
    if (err == 0) {
        (void)printf("%s came back from %s\n", reply, place);
        err = strcmp(line, reply) != 0;
    }
    return err;
}

static int run(void *arg)
{
    const char *place = arg;
    weft_listener *listener;
    int err = weft_listen(&listener, place != NULL ? place : "tcp://127.0.0.1:0", NULL);
    if (err != 0) {
        (void)fprintf(stderr, "echo: cannot listen: %s\n", weft_strerror(err));
        return err;
    }
    if (place != NULL) {
        char text[WEFT_ADDRESS_TEXT_MAX];
        err = place_of(listener, text);
        (void)printf("echo: listening at %s\n", err == 0 ? text : place);
        (void)fflush(stdout);
        err = serve(listener);
    } else {
        weft_task *server;
        err = weft_go(&server, serve, listener);
        if (err == 0) {
            err = try_it(listener);
            weft_cancel(server);
            int joined = weft_join(server, NULL, WEFT_NEVER);
            err = err != 0 ? err : joined;
        }
    }
    weft_listener_close(listener);
    return err;
}

int main(int argc, char **argv)
{
    return weft_run(NULL, run, argc > 1 ? argv[1] : NULL) == 0 ? 0 : 1;
}
