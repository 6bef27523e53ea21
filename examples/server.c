/* SPDX-License-Identifier: MIT */
/*
 * server.c - skeleton of a TCP server: a listener, a fiber that accepts, and shutdown by
 * signal.
 *
 * On shutdown the accepting fiber is canceled and joined, then the listener is closed.
 * Connections are left to the runtime, which cancels them when it is destroyed and waits until
 * each has closed its stream.
 */
#include "server.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* --- Signals ---------------------------------------------------------------------------------- */

static sigset_t signals_of_the_end(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    return set;
}

int server_block_signals(void)
{
    sigset_t set = signals_of_the_end();
    return -pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int open_signals(weft_stream **signals)
{
    sigset_t set = signals_of_the_end();
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    int err = weft_stream_adopt(signals, fd);
    if (err != 0) {
        (void)close(fd);
    }
    return err;
}

int server_wait_for_signal(weft_token *token)
{
    struct signalfd_siginfo info;
    weft_stream *signals;
    weft_io signal;
    int err = open_signals(&signals);
    if (err != 0) {
        return err;
    }
    weft_read_init(&signal, signals, &info, sizeof info);
    int n = weft_token_await(token, &signal.future, WEFT_NEVER);
    weft_stream_close(signals);
    return n < 0 && n != WEFT_ECANCELED ? n : 0;
}

/* --- Accepting -------------------------------------------------------------------------------- */

struct acceptor {
    const struct server *server;
    weft_listener *listener;
};

static int accept_all(void *arg)
{
    struct acceptor *self = arg;
    weft_stream *peer;
    int err;
    while ((err = weft_accept(self->listener, &peer, WEFT_NEVER)) == 0) {
        if (self->server->start(peer) != 0) {
            weft_stream_close(peer); /* Out of memory for another connection. */
        }
    }
    return err;
}

/* --- Program ---------------------------------------------------------------------------------- */

struct program {
    const struct server *server;
    const char *place; /* NULL: self-test */
};

void server_announce(const char *name, const char *scheme, const weft_address *address)
{
    char text[WEFT_ADDRESS_TEXT_MAX];
    (void)weft_address_print(address, text, sizeof text);
    (void)printf("%s: listening at %s%s\n", name, weft_address_port(address) != 0 ? scheme : "",
                 text);
    (void)fflush(stdout);
}

static int serve(const struct program *program, weft_listener *listener)
{
    struct acceptor acceptor = { program->server, listener };
    char place[WEFT_ADDRESS_TEXT_MAX];
    weft_address address;
    int err = weft_listener_address(listener, &address);
    if (err != 0) {
        return err;
    }
    WEFT_SCOPE(scope, NULL, &err)
    {
        err = weft_scope_go(scope, accept_all, &acceptor);
        if (err == 0 && program->place != NULL) {
            server_announce(program->server->name, "tcp://", &address);
            /* If the acceptor fails, the scope cancels this wait and reports the error. */
            err = server_wait_for_signal(weft_scope_token(scope));
        } else if (err == 0) {
            (void)weft_address_print(&address, place, sizeof place);
            err = program->server->try_it(place);
        }
        weft_scope_cancel(scope);
    }
    return err == WEFT_ECANCELED ? 0 : err; /* The acceptor was canceled by the shutdown. */
}

static int run(void *arg)
{
    const struct program *program = arg;
    weft_listener *listener;
    int err =
        weft_listen(&listener, program->place != NULL ? program->place : "tcp://127.0.0.1:0", NULL);
    if (err == 0) {
        err = serve(program, listener);
        weft_listener_close(listener);
    }
    return err;
}

int server_main(const struct server *server, int argc, char **argv)
{
    if (argc > 2) {
        (void)fprintf(stderr, "usage: %s [PLACE]\n", server->name);
        return 2;
    }
    struct program program = { server, argc > 1 ? argv[1] : NULL };
    int err = program.place != NULL ? server_block_signals() : 0;
    if (err == 0) {
        err = weft_run(NULL, run, &program);
    }
    if (err != 0) {
        (void)fprintf(stderr, "%s: %s\n", server->name,
                      err < 0 ? weft_strerror(err) : "an answer was wrong");
    }
    return err != 0;
}

/* --- Helpers for connections ------------------------------------------------------------------ */

int server_wait_for_data(weft_stream *peer, weft_time deadline)
{
    weft_op readable;
    weft_readable_init(&readable, peer);
    return weft_await(&readable.future, deadline);
}

void server_linger(weft_stream *peer)
{
    weft_time deadline = weft_after(WEFT_S);
    char buffer[1024];
    if (weft_stream_shutdown(peer, WEFT_WRITE_SIDE) == 0) {
        while (weft_read(peer, buffer, sizeof buffer, deadline) > 0) {
        }
    }
}
