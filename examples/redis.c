/* SPDX-License-Identifier: MIT */
/*
 * redis.c - server for the Redis protocol: one fiber per connection, one shared table.
 *
 *     redis tcp://127.0.0.1:6379      serves until SIGINT or SIGTERM
 *     redis                           runs a self-test
 *
 * It supports PING, ECHO, GET, SET, DEL, INCR, and the commands that redis-cli and
 * redis-benchmark send on start. Commands may be pipelined: their answers are collected, and
 * written before the server waits for more. The server stops reading from a client that does
 * not read its answers (backpressure).
 *
 * A connection has buffers only while it has commands; http.c explains why.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <weft.h>

#include "resp.h"
#include "server.h"
#include "store.h"

_Static_assert((int)RESP_WORD_MAX <= (int)STORE_VALUE_MAX, "a word can be a value");

static struct store store;

/* State of a connection while it has commands. */
struct connection {
    weft_stream *peer;
    weft_reader reader;
    weft_writer writer;
    struct resp_parser parser;
    const char *data; /* of the command */
    bool ends;        /* close after this answer */
    char in[RESP_COMMAND_MAX];
    char out[4096];
    char value[STORE_VALUE_MAX];
};

/* --- Answers ---------------------------------------------------------------------------------- */

static int answer_line(struct connection *self, const char *line)
{
    return weft_writer_print(&self->writer, WEFT_NEVER, "%s\r\n", line);
}

static int answer_number(struct connection *self, int64_t number)
{
    return weft_writer_print(&self->writer, WEFT_NEVER, ":%lld\r\n", (long long)number);
}

static int answer_text(struct connection *self, weft_text text)
{
    int err = weft_writer_print(&self->writer, WEFT_NEVER, "$%zu\r\n", text.size);
    err = err != 0 ? err : weft_writer_write(&self->writer, text.at, text.size, WEFT_NEVER);
    return err != 0 ? err : weft_writer_write(&self->writer, "\r\n", 2, WEFT_NEVER);
}

/* --- Commands --------------------------------------------------------------------------------- */

static weft_text word(const struct connection *self, size_t index)
{
    struct resp_span span = self->parser.words[index];
    return (weft_text){ self->data + span.at, span.size };
}

static int ping(struct connection *self)
{
    return self->parser.count > 1 ? answer_text(self, word(self, 1)) : answer_line(self, "+PONG");
}

static int echo(struct connection *self)
{
    return answer_text(self, word(self, 1));
}

static int get(struct connection *self)
{
    ssize_t size = store_get(&store, word(self, 1), self->value);
    if (size < 0) {
        return answer_line(self, "$-1");
    }
    return answer_text(self, (weft_text){ self->value, (size_t)size });
}

static int answer_error(struct connection *self, int err)
{
    switch (err) {
    case -EINVAL:
        return answer_line(self, "-ERR value is not an integer or out of range");
    case -ERANGE:
        return answer_line(self, "-ERR increment or decrement would overflow");
    default:
        return answer_line(self, "-OOM there is no room for it");
    }
}

static int set(struct connection *self)
{
    int err = store_set(&store, word(self, 1), word(self, 2));
    return err == 0 ? answer_line(self, "+OK") : answer_error(self, err);
}

static int del(struct connection *self)
{
    int count = 0;
    for (size_t i = 1; i < self->parser.count; i++) {
        count += store_remove(&store, word(self, i));
    }
    return answer_number(self, count);
}

static int incr(struct connection *self)
{
    int64_t value;
    int err = store_increment(&store, word(self, 1), &value);
    return err == 0 ? answer_number(self, value) : answer_error(self, err);
}

/* All settings are empty. */
static int config(struct connection *self)
{
    weft_text what = word(self, 1);
    if (what.size != 3 || strncasecmp(what.at, "get", 3) != 0) {
        return answer_line(self, "-ERR nothing can be set");
    }
    int err = answer_line(self, "*2");
    err = err != 0 ? err : answer_text(self, word(self, 2));
    return err != 0 ? err : answer_text(self, (weft_text){ "", 0 });
}

/* Reports no commands. */
static int command(struct connection *self)
{
    return answer_line(self, "*0");
}

static int quit(struct connection *self)
{
    self->ends = true;
    return answer_line(self, "+OK");
}

/*
 * Closes the connection of a browser without an answer. A web page can make its visitor's
 * browser send a request to this port, and each line of its body, which the attacker controls,
 * would be a command. As in Redis, "POST" and "Host:" give such a request away.
 */
static int end_attack(struct connection *self)
{
    (void)self;
    return -ECONNABORTED;
}

static const struct {
    const char *name;
    int (*run)(struct connection *self);
    size_t least; /* words, including the name */
    size_t most;
} commands[] = {
    { "ping", ping, 1, 2 },
    { "echo", echo, 2, 2 },
    { "get", get, 2, 2 },
    { "set", set, 3, 3 },
    { "del", del, 2, SIZE_MAX },
    { "incr", incr, 2, 2 },
    { "config", config, 3, 3 },
    { "command", command, 1, SIZE_MAX },
    { "quit", quit, 1, SIZE_MAX },
    { "post", end_attack, 1, SIZE_MAX },
    { "host:", end_attack, 1, SIZE_MAX },
};

static int run_command(struct connection *self)
{
    weft_text name = word(self, 0);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strlen(commands[i].name) == name.size &&
            strncasecmp(name.at, commands[i].name, name.size) == 0) {
            size_t count = self->parser.count;
            return count < commands[i].least || count > commands[i].most
                       ? answer_line(self, "-ERR wrong number of arguments")
                       : commands[i].run(self);
        }
    }
    return answer_line(self, "-ERR unknown command");
}

/* --- One connection --------------------------------------------------------------------------- */

/* Reads a command. Returns RESP_COMPLETE, 0 if no command is available now, or an error. */
static int read_command(struct connection *self)
{
    weft_text data;
    int err = weft_reader_peek(&self->reader, 0, &data, WEFT_NEVER);
    resp_parser_init(&self->parser);
    while (err == 0 && data.size > 0) {
        self->data = data.at;
        int result = resp_parse(&self->parser, data.at, data.size);
        if (result == RESP_COMPLETE) {
            return result;
        }
        if (result != RESP_MORE) {
            err = weft_writer_print(&self->writer, WEFT_NEVER, "-ERR Protocol error: %s\r\n",
                                    resp_error(result));
            self->ends = true;
            return err;
        }
        size_t size = data.size;
        err = weft_writer_flush(&self->writer, WEFT_NEVER);
        err = err != 0 ? err : weft_reader_peek(&self->reader, size + 1, &data, WEFT_NEVER);
        if (err == 0 && data.size == size) {
            return WEFT_EEND; /* The client left in the middle of a command. */
        }
    }
    return err;
}

/*
 * Serves the commands that have arrived. Returns 0 if the connection is idle afterwards,
 * WEFT_EEND at the end of the stream, or an error.
 */
static int serve_commands(struct connection *self)
{
    weft_text data;
    int err = weft_reader_peek(&self->reader, 1, &data, WEFT_NEVER);
    if (err != 0 || data.size == 0) {
        return err != 0 ? err : WEFT_EEND;
    }
    while (!self->ends && (err = read_command(self)) == RESP_COMPLETE) {
        err = self->parser.count > 0 ? run_command(self) : 0;
        weft_reader_take(&self->reader, self->parser.length);
        if (err != 0) {
            return err;
        }
    }
    err = err != 0 ? err : weft_writer_flush(&self->writer, WEFT_NEVER);
    if (err == 0 && self->ends) {
        server_linger(self->peer);
        return WEFT_EEND;
    }
    return err;
}

/* Allocates the buffers, serves commands and frees the buffers again. */
static int serve_with_buffers(weft_stream *peer)
{
    struct connection *self = malloc(sizeof *self);
    if (self == NULL) {
        return -ENOMEM;
    }
    self->peer = peer;
    self->ends = false;
    weft_reader_init(&self->reader, peer, self->in, sizeof self->in);
    weft_writer_init(&self->writer, peer, self->out, sizeof self->out);
    int err = serve_commands(self);
    free(self);
    return err;
}

static int talk(void *arg)
{
    weft_stream *peer = arg;
    int err;
    do {
        err = server_wait_for_data(peer, WEFT_NEVER);
        err = err != 0 ? err : serve_with_buffers(peer);
    } while (err == 0);
    weft_stream_close(peer);
    return err == WEFT_EEND ? 0 : err;
}

static int start(weft_stream *peer)
{
    return weft_go(NULL, talk, peer);
}

/* --- Self-test -------------------------------------------------------------------------------- */

static int try_it(const char *place)
{
    static const char commands_sent[] = "PING\r\n"
                                        "*3\r\n$3\r\nSET\r\n$1\r\nn\r\n$2\r\n41\r\n"
                                        "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"
                                        "*2\r\n$3\r\nGET\r\n$1\r\nn\r\n"
                                        "*3\r\n$3\r\nDEL\r\n$1\r\nn\r\n$1\r\nn\r\n"
                                        "*2\r\n$3\r\nGET\r\n$1\r\nn\r\n"
                                        "*1\r\n$4\r\nQUIT\r\n";
    static const char wanted[] = "+PONG\r\n+OK\r\n:42\r\n$2\r\n42\r\n:1\r\n$-1\r\n+OK\r\n";
    char answers[sizeof wanted - 1];
    char more;
    weft_stream *stream;
    int err = weft_connect(&stream, place, NULL, weft_after(WEFT_S));
    if (err != 0) {
        return err;
    }
    err = weft_write_all(stream, commands_sent, sizeof commands_sent - 1, weft_after(WEFT_S));
    err = err != 0 ? err : weft_read_exact(stream, answers, sizeof answers, weft_after(5 * WEFT_S));
    err = err != 0 ? err : (int)weft_read(stream, &more, 1, weft_after(5 * WEFT_S));
    weft_stream_close(stream);
    if (err == 0) {
        (void)printf("%.*s", (int)sizeof answers, answers);
        err = memcmp(answers, wanted, sizeof answers) != 0;
    }
    return err;
}

int main(int argc, char **argv)
{
    static const struct server server = { "redis", start, try_it };
    int status = server_main(&server, argc, argv);
    store_fini(&store);
    return status;
}
