/* SPDX-License-Identifier: MIT */
/*
 * drain.c - server with a graceful shutdown.
 *
 *     drain tcp://127.0.0.1:7000 5000      serves until SIGINT or SIGTERM
 *     drain                                runs a self-test
 *
 * A request is a line with a number. The server answers "begun", works for that many
 * milliseconds, and answers "done". After the signal it accepts no more connections and
 * requests, closes idle connections, and lets pending requests finish. Requests that take
 * longer than the second argument, in milliseconds, are canceled and answered with "cancelled".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "server.h"

static weft_shutdown service; /* zero-initialized: open */
static weft_token deaf;       /* canceled when accepting connections fails */
static const weft_time write_time = 5 * WEFT_S;
static const uint64_t work_max_ms = 600000;

/* --- Requests --------------------------------------------------------------------------------- */

/* Does work that takes a while and ends early when it is canceled. */
static int work(uint64_t ms)
{
    weft_sleep_future sleep;
    weft_sleep_init(&sleep, weft_after((weft_time)ms * WEFT_MS), 0);
    return weft_token_await(weft_shutdown_token(&service), &sleep.future, WEFT_NEVER);
}

static bool parse(weft_text line, uint64_t *ms)
{
    *ms = 0;
    for (size_t i = 0; i < line.size; i++) {
        if (line.at[i] < '0' || line.at[i] > '9') {
            return false;
        }
        *ms = *ms * 10 + (uint64_t)(line.at[i] - '0');
        if (*ms > work_max_ms) {
            return false;
        }
    }
    return line.size > 0;
}

static int write_line(weft_stream *peer, const char *line)
{
    return weft_write_all(peer, line, strlen(line), weft_after(write_time));
}

static int answer(weft_stream *peer, weft_text line)
{
    uint64_t ms;
    if (!parse(line, &ms)) {
        return write_line(peer, "what?\n");
    }
    int err = write_line(peer, "begun\n");
    if (err == 0) {
        err = work(ms);
        err = write_line(peer, err == 0 ? "done\n" : "cancelled\n");
    }
    return err;
}

/* --- Connections ------------------------------------------------------------------------------ */

/*
 * Returns 1 with the next line, 0 at the end of the stream, WEFT_ESHUTDOWN if the server shuts
 * down, or an error.
 */
static int next_line(weft_stream *peer, weft_reader *reader, weft_text *line)
{
    for (;;) {
        int err = weft_read_line(reader, line, weft_now()); /* only if it has arrived */
        if (err != WEFT_ETIMEDOUT) {
            return err;
        }
        weft_op readable;
        weft_op stop;
        weft_readable_init(&readable, peer);
        weft_shutdown_wait_init(&stop, &service);
        weft_branch branches[] = { { .future = &readable.future }, { .future = &stop.future } };
        int winner = weft_select(branches, 2, 0, WEFT_NEVER);
        if (winner != 0) {
            return winner == 1 ? WEFT_ESHUTDOWN : winner;
        }
    }
}

static int serve(void *arg)
{
    weft_stream *peer = arg;
    char buffer[128];
    weft_reader reader;
    weft_text line;
    int err;
    weft_reader_init(&reader, peer, buffer, sizeof buffer);
    while ((err = next_line(peer, &reader, &line)) == 1) {
        err = weft_shutdown_enter(&service);
        if (err == 0) {
            err = answer(peer, line);
            weft_shutdown_leave(&service);
        }
        if (err != 0) {
            break;
        }
    }
    if (err == WEFT_ESHUTDOWN) {
        server_linger(peer); /* The client may have sent more, and must be able to read its last
                              * answers. */
    }
    weft_stream_close(peer);
    return err;
}

struct acceptor {
    weft_listener *listener;
    weft_scope *scope; /* of the connections */
};

static int accept_all(void *arg)
{
    struct acceptor *self = arg;
    for (;;) {
        weft_stream *peer;
        weft_io accepted;
        weft_op stop;
        weft_accept_init(&accepted, self->listener, &peer);
        weft_shutdown_wait_init(&stop, &service);
        weft_branch branches[] = { { .future = &accepted.future }, { .future = &stop.future } };
        int winner = weft_select(branches, 2, 0, WEFT_NEVER);
        if (winner != 0) {
            return winner == 1 ? 0 : winner;
        }
        if (branches[0].result != 0) {
            weft_token_cancel(&deaf);
            return branches[0].result;
        }
        if (weft_scope_go(self->scope, serve, peer) != 0) {
            weft_stream_close(peer);
        }
    }
}

/* --- Self-test -------------------------------------------------------------------------------- */

struct client {
    weft_stream *stream;
    weft_reader reader;
    char buffer[64];
};

static int expect(struct client *self, const char *wanted)
{
    weft_text line;
    int err = weft_read_line(&self->reader, &line, weft_after(10 * WEFT_S));
    if (err != 1) {
        return err < 0 ? err : WEFT_EEND;
    }
    (void)printf("%.*s\n", (int)line.size, line.at);
    return line.size != strlen(wanted) || memcmp(line.at, wanted, line.size) != 0;
}

/* Sends a request and checks that the work has begun. */
static int ask(struct client *self, const char *place, const char *request)
{
    int err = weft_connect(&self->stream, place, NULL, weft_after(WEFT_S));
    weft_reader_init(&self->reader, self->stream, self->buffer, sizeof self->buffer);
    err = err != 0 ? err : write_line(self->stream, request);
    return err != 0 ? err : expect(self, "begun");
}

/* One client's work finishes in time, another one's does not, and a third client sends nothing. */
static int try_it(const char *place, weft_time grace)
{
    struct client clients[3] = { { .stream = NULL } };
    int err = ask(&clients[0], place, "10\n10\n");
    err = err != 0 ? err : ask(&clients[1], place, "600000\n");
    err = err != 0 ? err : weft_connect(&clients[2].stream, place, NULL, weft_after(WEFT_S));
    if (err == 0 && weft_shutdown_drain(&service, weft_after(grace)) != WEFT_ETIMEDOUT) {
        err = 1;
    }
    err = err != 0 ? err : expect(&clients[0], "done");
    err = err != 0 ? err : expect(&clients[1], "cancelled");
    for (int i = 0; i < 3; i++) {
        weft_stream_close(clients[i].stream);
    }
    return err;
}

/* --- Program ---------------------------------------------------------------------------------- */

struct program {
    const char *place; /* NULL: self-test */
    weft_time grace;
};

/* Serves until the signal, then drains. */
static int serve_and_drain(const struct program *program, const weft_address *address)
{
    char place[WEFT_ADDRESS_TEXT_MAX];
    if (program->place == NULL) {
        (void)weft_address_print(address, place, sizeof place);
        return try_it(place, program->grace);
    }
    server_announce("drain", "tcp://", address);
    int err = server_wait_for_signal(&deaf);
    size_t pending = weft_shutdown_pending(&service);
    int drained = weft_shutdown_drain(&service, weft_after(program->grace));
    (void)printf("drain: %zu requests were under way: %s\n", pending,
                 drained == 0 ? "all are done" : "some were cancelled");
    return err;
}

static int run(void *arg)
{
    const struct program *program = arg;
    weft_listener *listener;
    weft_address address;
    int err =
        weft_listen(&listener, program->place != NULL ? program->place : "tcp://127.0.0.1:0", NULL);
    if (err != 0) {
        return err;
    }
    err = weft_listener_address(listener, &address);
    if (err == 0) {
        /* A connection that fails does not affect the others. */
        weft_scope_options options = { .is_supervised = true };
        weft_scope scope;
        struct acceptor acceptor = { listener, &scope };
        weft_scope_begin(&scope, &options);
        err = weft_scope_go(&scope, accept_all, &acceptor);
        err = err != 0 ? err : serve_and_drain(program, &address);
        weft_shutdown_trigger(&service);
        (void)weft_scope_end(&scope); /* Each connection closes its own stream. */
    }
    weft_listener_close(listener);
    return err;
}

int main(int argc, char **argv)
{
    struct program program = { NULL, WEFT_S };
    if (argc == 3) {
        char *end;
        program.place = argv[1];
        program.grace = (weft_time)strtoul(argv[2], &end, 10) * WEFT_MS;
        argc = *argv[2] != '\0' && *end == '\0' ? argc : 0;
    }
    if (argc != 1 && argc != 3) {
        (void)fprintf(stderr, "usage: drain [PLACE MILLISECONDS]\n");
        return 2;
    }
    int err = program.place != NULL ? server_block_signals() : 0;
    err = err != 0 ? err : weft_run(NULL, run, &program);
    if (err != 0) {
        (void)fprintf(stderr, "drain: %s\n", err < 0 ? weft_strerror(err) : "not as it should be");
    }
    return err != 0;
}
