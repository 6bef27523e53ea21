/* SPDX-License-Identifier: MIT */
/*
 * socket.h - what listeners, connections and datagrams have in common.
 */
#ifndef WF_NET_SOCKET_H
#define WF_NET_SOCKET_H

#include <stdbool.h>

#include <weft/net.h>

/* A new socket that does not block and is closed at exec; or an error. */
int wf_socket_new(int family, int type);

/* setsockopt() of a number, and getsockopt(). */
int wf_socket_set(int fd, int level, int name, int value);
int wf_socket_get(int fd, int level, int name, int *value);

/* Binds it; 0 or an error. */
int wf_socket_bind(int fd, const weft_address *address);

/* Where it is, and where its peer is. */
int wf_socket_address(int fd, weft_address *address);
int wf_socket_peer(int fd, weft_address *address);

/* The size of an address that the kernel has written, in bytes. It counts a zero behind a path that
 * takes all of a sockaddr_un, and refuses an address that is so large. */
static inline socklen_t wf_socket_size(socklen_t size)
{
    return size < sizeof(struct sockaddr_un) ? size : sizeof(struct sockaddr_un);
}

/* An option, in the words of its family. */
int wf_socket_set_option(int fd, weft_option option, int value);
int wf_socket_option(int fd, weft_option option, int *value);

/* Closes a descriptor that nobody has seen, and returns the error that led to it. */
int wf_socket_undo(int fd, int err);

/* The start of a call of that name that opens a socket at a place: returns 0, or WEFT_ECANCELED if
 * the calling task is canceled, and takes one from the poll budget. */
int wf_socket_begin(const char *call);

#endif
