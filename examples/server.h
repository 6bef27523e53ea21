/* SPDX-License-Identifier: MIT */
/*
 * server.h - skeleton of the example servers.
 *
 * They listen on the address on the command line, print it, and shut down cleanly on SIGINT or
 * SIGTERM. Without an address they run a self-test.
 */
#ifndef EXAMPLES_SERVER_H
#define EXAMPLES_SERVER_H

#include <weft.h>

struct server {
    const char *name; /* of the program */
    /* Starts to serve a connection and takes ownership of it. On an error it does not. */
    int (*start)(weft_stream *peer);
    /* Self-test: acts as a client. Returns 0 on success. */
    int (*try_it)(const char *place);
};

/* Runs the whole program. Returns the exit code for main(). */
int server_main(const struct server *server, int argc, char **argv);

/*
 * Closes the sending direction and briefly waits for the client to do the same. A server that
 * closes a socket with unread data resets the connection, and the client may never see the last
 * answer.
 */
void server_linger(weft_stream *peer);

/* Waits for data or the end of the stream, without a buffer. Returns 0 or an error. */
int server_wait_for_data(weft_stream *peer, weft_time deadline);

/* --- Building blocks for other kinds of servers ----------------------------------------------- */

/* Keeps SIGINT and SIGTERM from killing the program. main() calls it before it starts threads. */
int server_block_signals(void);

/* Waits for one of these signals or until the cancel token is canceled. Returns 0 or an error. */
int server_wait_for_signal(weft_token *token);

/* Prints the address that the program listens on; a parent process may wait for this line. */
void server_announce(const char *name, const char *scheme, const weft_address *address);

#endif
