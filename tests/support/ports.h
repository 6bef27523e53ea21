/* SPDX-License-Identifier: MIT */
/*
 * ports.h - places to listen at and to connect to, and what a test of the network runs on. Each
 * call checks that it succeeds.
 */
#ifndef TEST_PORTS_H
#define TEST_PORTS_H

#include <weft.h>

/* A place as text. */
struct place {
    char text[WEFT_ADDRESS_TEXT_MAX + 16];
};

/* Runs the function on a fiber with 1, 2 and 8 workers. All descriptors that it opens must be
 * closed when it returns. */
void port_run_all(int (*function)(void *arg), const void *arg);

/* The same with so many workers. */
void port_run(unsigned workers, int (*function)(void *arg), const void *arg);

/* On a fiber: listens at a place, and tells where that is. */
weft_listener *port_listen(const char *place, struct place *where);

/* On a fiber: a place of the network of this machine where nobody listens, and the descriptor
 * that keeps it. */
int port_nobody(struct place *where);

/* A path that nobody else uses, with this before it: "unix:". Nothing is there. */
struct place port_path(const char *kind);

/* An abstract name that nobody else uses: "unix:@...". */
struct place port_name(const char *kind);

/* The path alone. */
const char *port_path_of(const struct place *place);

/* Is there something? */
bool port_exists(const struct place *place);

/* Is there an IPv6 of this machine? Says so if not. */
bool port_has_v6(void);

/* An address from text. */
weft_address port_address(const char *text);

/* Connects to the listener until its backlog is full. Descriptors, and how many they are. */
enum {
    PORT_FULL_MAX = 64,
};
struct full {
    int fds[PORT_FULL_MAX];
    unsigned count;
};
struct full port_fill(const weft_address *address);
void port_empty(struct full *full);

/* From now on there are no descriptors to be had; and again as many as before. */
void port_end_fds(void);
void port_mend_fds(void);

/* Waits until so many are in a call at a stream, a listener or a datagram: they wait, or are about
 * to, and may be told that it is closed. */
void port_wait_for_users(const void *handle, unsigned count);

/* Nothing is there to be read now, and nothing will come: the other side has gone. */
void port_check_end(weft_stream *stream);

/* On a fiber: sends a text through it and back. */
void port_check_link(weft_stream *one, weft_stream *other);

#endif
