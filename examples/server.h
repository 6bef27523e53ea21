/* SPDX-License-Identifier: MIT */
/*
 * server.h - what the servers among the examples share: they listen at the place that they are
 * given, say where that is, and end cleanly by SIGINT or SIGTERM. Without a place they try
 * themselves.
 */
#ifndef EXAMPLES_SERVER_H
#define EXAMPLES_SERVER_H

#include <weft.h>

struct server {
    const char *name; /* of the program */
    /* Begins to serve a connection, which is its from now on. If it fails, it is not. */
    int (*start)(weft_stream *peer);
    /* Is a client for once. 0: all is well. */
    int (*try_it)(const char *place);
};

/* The whole program: returns what main() is to return. */
int server_main(const struct server *server, int argc, char **argv);

/*
 * Ends what is written, and waits a moment for the client to do the same. Who closes while there
 * is something to read resets the connection, and the client may never see the last answer.
 */
void server_linger(weft_stream *peer);

/* Waits until there is something to read, the end included, without a buffer: 0. Or an error. */
int server_wait_for_data(weft_stream *peer, weft_time deadline);

/* --- Its parts, for servers of other kinds ---------------------------------------------------- */

/* SIGINT and SIGTERM no longer end the program. main() calls it before there are threads. */
int server_block_signals(void);

/* Waits for one of them, or until the token is cancelled: 0. Or an error. */
int server_wait_for_signal(weft_token *token);

/* Tells the user where the program listens; who started it may wait for this line. */
void server_announce(const char *name, const char *scheme, const weft_address *address);

#endif
