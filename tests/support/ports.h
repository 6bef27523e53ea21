/* SPDX-License-Identifier: MIT */
/*
 * ports.h - endpoints to listen on and to connect to, and runtimes for network tests. Each call
 * checks that it succeeds.
 */
#ifndef TEST_PORTS_H
#define TEST_PORTS_H

#include <weft.h>

/* An endpoint as text. */
struct place {
    char text[WEFT_ADDRESS_TEXT_MAX + 16];
};

/* Runs the function on a fiber with 1, 2 and 8 workers. All descriptors that it opens must be
 * closed when it returns. */
void port_run_all(int (*function)(void *arg), const void *arg);

/* Same as port_run_all(), with the given number of workers only. */
void port_run(unsigned workers, int (*function)(void *arg), const void *arg);

/* On a fiber: listens on an endpoint and stores its actual address. */
weft_listener *port_listen(const char *place, struct place *where);

/* On a fiber: finds a local network endpoint without a listener. Returns the descriptor that
 * reserves it. */
int port_nobody(struct place *where);

/* Returns an unused path with this prefix, such as "unix:". No file exists there. */
struct place port_path(const char *kind);

/* Returns an unused abstract name: "unix:@...". */
struct place port_name(const char *kind);

/* Returns the path without the prefix. */
const char *port_path_of(const struct place *place);

/* Returns whether a file exists at the path. */
bool port_exists(const struct place *place);

/* Returns whether this machine has IPv6. Reports it if not. */
bool port_has_v6(void);

/* Parses an address. */
weft_address port_address(const char *text);

/* Connects to the listener until its backlog is full. Returns the descriptors and their number. */
enum {
    PORT_FULL_MAX = 64,
};
struct full {
    int fds[PORT_FULL_MAX];
    unsigned count;
};
struct full port_fill(const weft_address *address);
void port_empty(struct full *full);

/* From now on no descriptor can be opened; restores the old limit. */
void port_end_fds(void);
void port_mend_fds(void);

/* Waits until count calls are in progress on a stream, a listener or a datagram socket: they
 * wait, or are about to, and can be notified of a close. */
void port_wait_for_users(const void *handle, unsigned count);

/* Checks that nothing is pending and nothing will arrive: the peer is gone. */
void port_check_end(weft_stream *stream);

/* On a fiber: sends a text there and back. */
void port_check_link(weft_stream *one, weft_stream *other);

#endif
