/* SPDX-License-Identifier: MIT */
/*
 * socket.h - common code of listeners, connections and datagram sockets.
 */
#ifndef WF_NET_SOCKET_H
#define WF_NET_SOCKET_H

#include <stdbool.h>

#include <weft/net.h>

/* Returns a new non-blocking, close-on-exec socket, or an error. */
int wf_socket_new(int family, int type);

/* Call setsockopt() and getsockopt() for an integer option. */
int wf_socket_set(int fd, int level, int name, int value);
int wf_socket_get(int fd, int level, int name, int *value);

/* Binds the socket. Returns 0 or an error. */
int wf_socket_bind(int fd, const weft_address *address);

/* Get the socket's own address, and that of its peer. */
int wf_socket_address(int fd, weft_address *address);
int wf_socket_peer(int fd, weft_address *address);

/* Returns the size of an address that the kernel has written, limited to sockaddr_un. The
 * kernel counts a zero behind a path that fills the whole sockaddr_un, but refuses an address
 * of that size. */
static inline socklen_t wf_socket_size(socklen_t size)
{
    return size < sizeof(struct sockaddr_un) ? size : sizeof(struct sockaddr_un);
}

/* Set or get an option, as the socket's family defines it. */
int wf_socket_set_option(int fd, weft_option option, int value);
int wf_socket_option(int fd, weft_option option, int *value);

/* Closes a descriptor that no other code has seen, and returns err. */
int wf_socket_undo(int fd, int err);

/* Starts a call of the given name that opens a socket. Returns 0, or WEFT_ECANCELED if the
 * calling task is canceled. Uses up one unit of the poll budget. */
int wf_socket_begin(const char *call);

#endif
