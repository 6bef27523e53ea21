/* SPDX-License-Identifier: MIT */
/*
 * proxy.c - passes connections on to another place, both ways.
 *
 *     proxy tcp://:8080 tcp://example.org:80      serves until it is killed
 *     proxy                                       tries itself
 */
#include <stdio.h>
#include <string.h>

#include <weft.h>

static const char *target;

/* A client: connects to the target, and copies until both sides have ended. */
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

static int serve(void *arg)
{
    weft_stream *client;
    int err;
    while ((err = weft_accept(arg, &client, WEFT_NEVER)) == 0) {
        if (weft_go(NULL, pass_on, client) != 0) {
            weft_stream_close(client);
        }
    }
    return err;
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

/* --- Trying it -------------------------------------------------------------------------------- */

/* The target: answers a line with the same line, shouted. */
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

/* Sends a line to the proxy, and reads the answer. */
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
    if (err == 0 && (err = weft_read_line(&reader, &line, weft_after(WEFT_S))) == 1) {
        (void)printf("%.*s came through %s\n", (int)line.size, line.at, place);
        err = line.size == 6 && memcmp(line.at, "hello!", 6) == 0 ? 0 : 1;
    }
    weft_stream_close(stream);
    return err;
}

static int try_it(void *arg)
{
    static char target_place[WEFT_ADDRESS_TEXT_MAX];
    char place[WEFT_ADDRESS_TEXT_MAX];
    weft_listener *listeners[2];
    weft_task *tasks[2];
    int result = 0;
    (void)arg;
    int err = weft_listen(&listeners[0], "tcp://127.0.0.1:0", NULL);
    err = err != 0 ? err : weft_listen(&listeners[1], "tcp://127.0.0.1:0", NULL);
    err = err != 0 ? err : place_of(listeners[0], target_place);
    err = err != 0 ? err : place_of(listeners[1], place);
    target = target_place;
    err = err != 0 ? err : weft_go(&tasks[0], shout, listeners[0]);
    err = err != 0 ? err : weft_go(&tasks[1], serve, listeners[1]);
    if (err != 0) {
        return err; /* The end of the runtime ends what has begun. */
    }
    err = ask(place);
    weft_cancel(tasks[1]);
    for (int i = 0; i < 2; i++) {
        int joined = weft_join(tasks[i], &result, WEFT_NEVER);
        err = err != 0 ? err : joined;
        weft_listener_close(listeners[i]);
    }
    return err;
}

static int run(void *arg)
{
    weft_listener *listener;
    int err = weft_listen(&listener, arg, NULL);
    if (err != 0) {
        (void)fprintf(stderr, "proxy: cannot listen: %s\n", weft_strerror(err));
        return err;
    }
    char place[WEFT_ADDRESS_TEXT_MAX];
    err = place_of(listener, place);
    (void)printf("proxy: listening at %s\n", err == 0 ? place : (const char *)arg);
    (void)fflush(stdout);
    err = serve(listener);
    weft_listener_close(listener);
    return err;
}

int main(int argc, char **argv)
{
    if (argc != 1 && argc != 3) {
        (void)fprintf(stderr, "usage: proxy [PLACE TARGET]\n");
        return 2;
    }
    target = argc == 3 ? argv[2] : NULL;
    return weft_run(NULL, argc == 3 ? run : try_it, argc == 3 ? argv[1] : NULL) == 0 ? 0 : 1;
}
