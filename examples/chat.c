/* SPDX-License-Identifier: MIT */
/*
 * chat.c - line-based chat server: every client receives what the others write.
 *
 *     chat tcp://127.0.0.1:7000      serves until SIGINT or SIGTERM
 *     chat                           runs a self-test
 *
 * A broadcast channel keeps the most recent lines, so no client waits for a slow one. The slow
 * client misses lines and is notified how many. A client that does not read at all is disconnected.
 */
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "server.h"

enum {
    LINE_MAX_BYTES = 512,
    LINES_KEPT = 256,
};

static const weft_time patience = 10 * WEFT_S; /* with a client that does not read */

struct message {
    uint64_t from;
    size_t size;
    char text[LINE_MAX_BYTES + 32];
};

WEFT_BROADCAST(room, struct message)

static room_sender *room; /* exists before the first client and until after the last */

/* --- One client ------------------------------------------------------------------------------- */

struct client {
    weft_stream *peer;
    room_receiver *receiver;
    weft_scope *scope; /* of its two fibers */
    uint64_t number;
};

/* Control characters would reach the terminals of other clients. */
static void make_printable(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 127) {
            text[i] = '?';
        }
    }
}

static int say(const struct client *self, const char *before, const char *behind, weft_text line)
{
    struct message message = { .from = self->number };
    int size = snprintf(message.text, sizeof message.text, "%s%llu%s%.*s", before,
                        (unsigned long long)self->number, behind, (int)line.size, line.at);
    message.size = (size_t)size; /* A line fits, regardless of the number. */
    make_printable(message.text, message.size);
    message.text[message.size++] = '\n';
    return room_send(room, message);
}

static int notice(const struct client *self, const char *what)
{
    return say(self, "* ", what, (weft_text){ "", 0 });
}

static int write_line(struct client *self, const char *format, uint64_t number)
{
    char text[64];
    int size = snprintf(text, sizeof text, format, (unsigned long long)number);
    return weft_write_all(self->peer, text, (size_t)size, weft_after(patience));
}

/* Writes other clients' messages to this client. */
static int tell(void *arg)
{
    struct client *self = arg;
    struct message message;
    uint64_t missed;
    int err;
    while ((err = room_recv(self->receiver, &message, &missed, WEFT_NEVER)) == 0) {
        if (missed > 0) {
            err = write_line(self, "* you have missed %llu lines\n", missed);
        }
        if (err == 0 && message.from != self->number) {
            err = weft_write_all(self->peer, message.text, message.size, weft_after(patience));
        }
        if (err != 0) {
            break;
        }
    }
    return err; /* An error, which cancels the other fiber. */
}

/* Sends this client's lines to the others until it leaves. */
static int hear(void *arg)
{
    struct client *self = arg;
    char buffer[LINE_MAX_BYTES + 2];
    weft_reader reader;
    weft_text line;
    int err;
    weft_reader_init(&reader, self->peer, buffer, sizeof buffer);
    while ((err = weft_read_line(&reader, &line, WEFT_NEVER)) == 1) {
        err = line.size > LINE_MAX_BYTES ? -EMSGSIZE : say(self, "", ": ", line);
        if (err != 0) {
            break;
        }
    }
    if (err == 0) {
        weft_scope_cancel(self->scope); /* An error cancels the scope by itself. */
    }
    return err;
}

/* When one direction ends, the other one ends, too. */
static int converse(struct client *self)
{
    int err = 0;
    WEFT_SCOPE(scope, NULL, &err)
    {
        self->scope = scope;
        err = weft_scope_go(scope, tell, self);
        err = err != 0 ? err : weft_scope_go(scope, hear, self);
    }
    return err;
}

static int talk(void *arg)
{
    static _Atomic uint64_t clients;
    struct client self = { .peer = arg, .number = ++clients };
    int err = room_subscribe(room, &self.receiver);
    if (err == 0) {
        err = write_line(&self, "* you are %llu\n", self.number);
        err = err != 0 ? err : notice(&self, " has come");
        if (err == 0) {
            err = converse(&self);
            (void)!notice(&self, " has left");
        }
        room_receiver_drop(self.receiver);
    }
    if (err == -EMSGSIZE) {
        (void)!write_line(&self, "* a line has %llu bytes at most\n", LINE_MAX_BYTES);
        server_linger(self.peer);
    }
    weft_stream_close(self.peer);
    return err;
}

static int start(weft_stream *peer)
{
    return weft_go(NULL, talk, peer);
}

/* --- Self-test -------------------------------------------------------------------------------- */

struct visitor {
    weft_stream *stream;
    weft_reader reader;
    char buffer[256];
};

static int visit(struct visitor *visitor, const char *place)
{
    int err = weft_connect(&visitor->stream, place, NULL, weft_after(WEFT_S));
    weft_reader_init(&visitor->reader, visitor->stream, visitor->buffer, sizeof visitor->buffer);
    return err;
}

/* Checks that the next line is this one. */
static int expect(struct visitor *visitor, const char *wanted)
{
    weft_text line;
    int err = weft_read_line(&visitor->reader, &line, weft_after(5 * WEFT_S));
    if (err != 1) {
        return err < 0 ? err : WEFT_EEND;
    }
    (void)printf("%.*s\n", (int)line.size, line.at);
    return line.size != strlen(wanted) || memcmp(line.at, wanted, line.size) != 0;
}

/* The first visitor reads what the second one says and does. */
static int meet(struct visitor *one, struct visitor *two, const char *place)
{
    static const char words[] = "hello\r\n\033[2Jtricks\nbye";
    int err = visit(one, place);
    err = err != 0 ? err : expect(one, "* you are 1");
    err = err != 0 ? err : visit(two, place);
    err = err != 0 ? err : expect(two, "* you are 2");
    err = err != 0 ? err : expect(one, "* 2 has come");
    err = err != 0 ? err : weft_write_all(two->stream, words, sizeof words - 1, WEFT_NEVER);
    err = err != 0 ? err : weft_stream_shutdown(two->stream, WEFT_WRITE_SIDE);
    err = err != 0 ? err : expect(one, "2: hello");
    err = err != 0 ? err : expect(one, "2: ?[2Jtricks");
    err = err != 0 ? err : expect(one, "2: bye");
    return err != 0 ? err : expect(one, "* 2 has left");
}

static int try_it(const char *place)
{
    struct visitor one = { .stream = NULL };
    struct visitor two = { .stream = NULL };
    int err = meet(&one, &two, place);
    weft_stream_close(one.stream);
    weft_stream_close(two.stream);
    return err;
}

int main(int argc, char **argv)
{
    static const struct server server = { "chat", start, try_it };
    room_receiver *unused;
    int err = room_make(&room, &unused, LINES_KEPT);
    if (err != 0) {
        (void)fprintf(stderr, "chat: %s\n", weft_strerror(err));
        return 1;
    }
    room_receiver_drop(unused);
    err = server_main(&server, argc, argv);
    room_sender_drop(room);
    return err;
}
