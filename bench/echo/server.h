/* SPDX-License-Identifier: MIT */
/*
 * server.h - command line, listening socket and shutdown of the benchmark servers.
 *
 * All servers start and stop the same way, so that run.py needs to know nothing else about
 * them: a server listens on 127.0.0.1, prints "port N", and exits when its stdin is closed.
 */
#ifndef ECHO_SERVER_H
#define ECHO_SERVER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ECHO_BUFFER_SIZE = 4096, /* per read; the same in all servers */
    ECHO_BACKLOG = 4096,     /* all connections of the load may arrive at the same time */
    ECHO_EVENTS_MAX = 256,   /* per wait call */
    ECHO_FDS_MAX = 65536,    /* size of tables indexed by descriptor */
    ECHO_EXIT_REFUSED = 77,  /* this machine lacks a requested feature */
};

/* Bulk transfers go in one direction only. The server reads (sink) or writes (source). */
enum echo_bulk {
    ECHO_BULK_NONE,
    ECHO_BULK_SINK,
    ECHO_BULK_SOURCE,
};

struct echo_options {
    uint16_t port; /* 0: any free port */
    unsigned workers;
    bool stackless;
    bool idle;
    enum echo_bulk bulk;
};

/* Options that only some servers support. */
enum {
    ECHO_HAS_STACKLESS = 1,
    ECHO_HAS_BULK = 2,
    ECHO_HAS_IDLE = 4,
};

/* Parses the command line. Prints the usage and exits on an error. */
struct echo_options echo_parse(int argc, char **argv, unsigned has);

/* Parses "sink" or "source". Returns false for any other text. */
bool echo_bulk_parse(const char *text, enum echo_bulk *bulk);

/* Prints the reason and exits; err is a positive errno or 0. */
_Noreturn void echo_fail(const char *what, int err);

/* Returns a socket that listens on loopback; flags are those of socket(2). */
int echo_listen(uint16_t port, int flags);

void echo_announce(uint16_t port);
void echo_announce_socket(int listener);

/* Makes an accepted socket send small writes immediately. */
void echo_set_nodelay(int fd);

/* Reads stdin once and returns whether it has ended. */
bool echo_stdin_ended(void);

/* Waits for the end of stdin, for servers whose main thread has nothing else to do. */
void echo_wait_for_stdin(void);

#endif
