/* SPDX-License-Identifier: MIT */
/*
 * server.h - what the servers of this folder share: the command line, the socket they listen
 * at, and how they are told to end.
 *
 * All have one way to be started and stopped, so that run.py needs to know nothing else of
 * them: a server listens on 127.0.0.1, prints "port N", and ends when its stdin does.
 */
#ifndef ECHO_SERVER_H
#define ECHO_SERVER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ECHO_BUFFER_SIZE = 4096, /* of each read; the same in all servers */
    ECHO_BACKLOG = 4096,     /* all connections of the load may come at once */
    ECHO_EVENTS_MAX = 256,   /* of one call that waits */
    ECHO_FDS_MAX = 65536,    /* for tables by descriptor */
    ECHO_EXIT_REFUSED = 77,  /* this machine does not have what was asked for */
};

/* Bulk: bytes in one direction only. The server reads (sink) or writes (source). */
enum echo_bulk {
    ECHO_BULK_NONE,
    ECHO_BULK_SINK,
    ECHO_BULK_SOURCE,
};

struct echo_options {
    uint16_t port; /* 0: any */
    unsigned workers;
    bool stackless;
    bool idle;
    enum echo_bulk bulk;
};

/* Options that only some servers have. */
enum {
    ECHO_HAS_STACKLESS = 1,
    ECHO_HAS_BULK = 2,
    ECHO_HAS_IDLE = 4,
};

/* Ends the program with a usage if something is wrong. */
struct echo_options echo_parse(int argc, char **argv, unsigned has);

/* "sink" or "source"; false: neither. */
bool echo_bulk_parse(const char *text, enum echo_bulk *bulk);

/* Ends the program, and says why; err is a positive errno, or 0. */
_Noreturn void echo_fail(const char *what, int err);

/* A socket that listens on loopback; flags are those of socket(2). */
int echo_listen(uint16_t port, int flags);

void echo_announce(uint16_t port);
void echo_announce_socket(int listener);

/* Of an accepted socket: small writes are sent at once. */
void echo_set_nodelay(int fd);

/* Reads stdin once; true: it has ended. */
bool echo_stdin_ended(void);

/* Waits for the end of stdin, for servers whose main thread has nothing else to do. */
void echo_wait_for_stdin(void);

#endif
