/* SPDX-License-Identifier: MIT */
/*
 * proxy.c - TCP proxy: forwards connections to another server, in both directions.
 *
 *     proxy tcp://:8080 tcp://example.org:80      serves until SIGINT or SIGTERM
 *     proxy                                       runs a self-test
 */
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "server.h"

static const char *target;

/* Serves a client: connects to the target and copies until both sides have ended. */
static int pass_on(void *arg)
{
    weft_stream *client = arg;
    weft_stream *server;
    int err = weft_connect(&server, target, NULL, weft_after(10 * WEFT_S));
    if (err == 0) {
        err = weft_copy_both(client, server, WEFT_NEVER);
        weft_stream_close(server);
    }
    weft_stream_close(client);
    return err;
}

static int start(weft_stream *client)
{
    return weft_go(NULL, pass_on, client);
}

/* --- Self-test -------------------------------------------------------------------------------- */

/* The target: answers a line with the same line in upper case. */
static int shout(void *arg)
{
    weft_stream *client;
    char room[256];
    weft_reader reader;
    weft_text line;
    int err = weft_accept(arg, &client, WEFT_NEVER);
    if (err != 0) {
        return err;
    }
    weft_reader_init(&reader, client, room, sizeof room);
    while ((err = weft_read_line(&reader, &line, WEFT_NEVER)) == 1) {
        char answer[256];
        int length = snprintf(answer, sizeof answer, "%.*s!\n", (int)line.size, line.at);
        err = weft_write_all(client, answer, (size_t)length, WEFT_NEVER);
        if (err != 0) {
            break;
        }
    }
    weft_stream_close(client);
    return err;
}

/* Sends a line to the proxy and reads the answer. */
static int ask(const char *place)
{
    weft_stream *stream;
    char room[64];
    weft_reader reader;
    weft_text line;
    int err = weft_connect(&stream, place, NULL, weft_after(WEFT_S));
    if (err != 0) {
        return err;
    }
    weft_reader_init(&reader, stream, room, sizeof room);
    err = weft_write_all(stream, "hello\n", 6, WEFT_NEVER);
    int found = err == 0 ? weft_read_line(&reader, &line, weft_after(WEFT_S)) : err;
    if (found == 1) {
        (void)printf("%.*s came through %s\n", (int)line.size, line.at, place);
        err = line.size == 6 && memcmp(line.at, "hello!", 6) == 0 ? 0 : 1;
    } else {
        err = found == 0 ? WEFT_EEND : found;
    }
    weft_stream_close(stream);
    return err;
}

static int try_it(const char *place)
{
    char target_place[WEFT_ADDRESS_TEXT_MAX];
    weft_address address;
    weft_listener *listener;
    int err = weft_listen(&listener, "tcp://127.0.0.1:0", NULL);
    if (err != 0) {
        return err;
    }
    err = weft_listener_address(listener, &address);
    WEFT_SCOPE(scope, NULL, &err)
    {
        if (err == 0) {
            (void)weft_address_print(&address, target_place, sizeof target_place);
            target = target_place;
            err = weft_scope_go(scope, shout, listener);
        }
        err = err != 0 ? err : ask(place);
        if (err != 0) {
            weft_scope_cancel(scope);
        }
    }
    weft_listener_close(listener);
    return err;
}

int main(int argc, char **argv)
{
    static const struct server server = { "proxy", start, try_it };
    if (argc != 1 && argc != 3) {
        (void)fprintf(stderr, "usage: proxy [PLACE TARGET]\n");
        return 2;
    }
    target = argc == 3 ? argv[2] : NULL;
    return server_main(&server, argc == 3 ? 2 : 1, argv);
}
