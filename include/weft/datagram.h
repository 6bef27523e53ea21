/* SPDX-License-Identifier: MIT */
/*
 * weft/datagram.h - messages of the network and of this machine: UDP, and Unix sockets of the
 * kind that keeps messages apart.
 *
 *     weft_datagram *socket;
 *     weft_address from;
 *     char message[1500];
 *     int err = weft_datagram_open(&socket, "udp://127.0.0.1:9000", NULL);
 *     ...
 *     ssize_t n = weft_datagram_receive_from(socket, message, sizeof message, &from, WEFT_NEVER);
 *     if (n >= 0) {
 *         n = weft_datagram_send_to(socket, message, (size_t)n, &from, WEFT_NEVER);
 *     }
 *
 * A message may be lost, doubled or overtaken on its way through a network. Each call that may
 * wait has a form for bodies, as in weft/io.h.
 */
#ifndef WEFT_DATAGRAM_H
#define WEFT_DATAGRAM_H

#include "net.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_datagram weft_datagram;

/* All zeros is what most want. */
typedef struct weft_datagram_options {
    bool reuse_address; /* several sockets may be at this address */
    bool reuse_port;    /* and share what comes */
    bool v6_only;       /* "[::]" is not for IPv4 */
    bool broadcast;     /* may send to all of a network */
    /* Keeps the file of a Unix socket. Without it, closing the socket removes the file, unless
     * another socket or file has taken its place. */
    bool keep_path;
} weft_datagram_options;

/*
 * Opens a socket at a place: "udp://127.0.0.1:9000", "udp://[::]:0", "unixgram:/run/log.sock",
 * "unixgram:@name".
 *
 * Context:  a task, or a blocking job. Numbers do not wait; a name is looked up in a fiber.
 * Suspends: while a name is looked up.
 * Owns:     *socket is the caller's until weft_datagram_close().
 * Errors:   -EADDRINUSE and others of bind(2), -EINVAL, those of weft_resolve(), WEFT_ECANCELED
 *           also for numbers, -EMFILE, -ENFILE, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_open(weft_datagram **socket, const char *place,
                                               const weft_datagram_options *options);

/*
 * Makes one of a descriptor.
 *
 * Context: a task, or a blocking job.
 * Owns:    the descriptor is the socket's, if this succeeds.
 * Errors:  -EINVAL: it is a socket of bytes; -EEXIST: it belongs to weft already; -EBADF,
 *          -ENOTSOCK, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_adopt(weft_datagram **socket, int fd);

/*
 * Makes two Unix sockets that are connected to each other.
 *
 * Context: a task, or a blocking job.
 * Errors:  -EMFILE, -ENFILE, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_pair(weft_datagram **one, weft_datagram **other);

/*
 * From now on it sends to this address and receives from there only; NULL: not any more.
 *
 * Context: anywhere.
 * Errors:  those of connect(2); WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_connect(weft_datagram *socket,
                                                  const weft_address *address);

/*
 * Sends a message, to where the socket is connected to. Returns its size.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_datagram_send_init().
 * Suspends: until there is room in the socket's buffer, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED; those of send(2): -EMSGSIZE,
 *           -ECONNREFUSED (of an earlier one), -EDESTADDRREQ. It was not sent.
 */
WEFT_API WEFT_NODISCARD ssize_t weft_datagram_send(weft_datagram *socket, const void *data,
                                                   size_t size, weft_time deadline);

/*
 * Prepares it: the result of the future is that of weft_datagram_send().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_send_init(weft_io *io, weft_datagram *socket, const void *data,
                                      size_t size);

/*
 * The same, to an address.
 *
 * Context:  as weft_datagram_send(); a body awaits a weft_datagram_send_to_init(), and keeps the
 *           address in place.
 * Suspends: as weft_datagram_send(); for a Unix socket also until the receiver's queue has room. A
 *           send that waits for it uses one more descriptor meanwhile. If there is none, the send
 *           retries with backoff.
 */
WEFT_API WEFT_NODISCARD ssize_t weft_datagram_send_to(weft_datagram *socket, const void *data,
                                                      size_t size, const weft_address *address,
                                                      weft_time deadline);

/*
 * Prepares it: the result of the future is that of weft_datagram_send_to().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_send_to_init(weft_io *io, weft_datagram *socket, const void *data,
                                         size_t size, const weft_address *address);

/*
 * Receives a message. Returns its size, also if there was less room: then the rest is lost. 0 is
 * a message without bytes.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_datagram_receive_init().
 * Suspends: until there is one, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED; those of recv(2): -ECONNREFUSED.
 */
WEFT_API WEFT_NODISCARD ssize_t weft_datagram_receive(weft_datagram *socket, void *buffer,
                                                      size_t size, weft_time deadline);

/*
 * Prepares it: the result of the future is that of weft_datagram_receive().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_receive_init(weft_io *io, weft_datagram *socket, void *buffer,
                                         size_t size);

/*
 * The same, and tells from where.
 *
 * Context: as weft_datagram_receive(); a body awaits a weft_datagram_receive_from_init().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_datagram_receive_from(weft_datagram *socket, void *buffer,
                                                           size_t size, weft_address *from,
                                                           weft_time deadline);

/*
 * Prepares it: the result of the future is that of weft_datagram_receive_from().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_receive_from_init(weft_io *io, weft_datagram *socket, void *buffer,
                                              size_t size, weft_address *from);

/*
 * As weft_datagram_receive_from(), but the next call receives the same message again.
 *
 * Context: as weft_datagram_receive(); a body awaits a weft_datagram_peek_init().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_datagram_peek(weft_datagram *socket, void *buffer, size_t size,
                                                   weft_address *from, weft_time deadline);

/*
 * Prepares it: the result of the future is that of weft_datagram_peek().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_peek_init(weft_io *io, weft_datagram *socket, void *buffer, size_t size,
                                      weft_address *from);

/* One of several messages. */
typedef struct weft_packet {
    void *data;
    size_t size;          /* to send: of the message; to receive: of the room */
    size_t received;      /* its size, which may be more than the room */
    weft_address address; /* where to (a size of 0: to where it is connected), or where from */
} weft_packet;

#define WEFT_PACKETS_MAX 64

/*
 * Sends several messages by one system call, up to WEFT_PACKETS_MAX, and at least one. Returns
 * how many.
 *
 * Context: as weft_datagram_send(); a body awaits a weft_datagram_send_many_init().
 * Errors:  as weft_datagram_send(), of the first message.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_send_many(weft_datagram *socket, weft_packet *packets,
                                                    size_t count, weft_time deadline);

/*
 * Prepares it: the result of the future is that of weft_datagram_send_many().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_send_many_init(weft_io *io, weft_datagram *socket, weft_packet *packets,
                                           size_t count);

/*
 * Receives those messages that are there by one system call, up to WEFT_PACKETS_MAX, and at
 * least one. Returns how many.
 *
 * Context: as weft_datagram_receive(); a body awaits a weft_datagram_receive_many_init().
 */
WEFT_API WEFT_NODISCARD int weft_datagram_receive_many(weft_datagram *socket, weft_packet *packets,
                                                       size_t count, weft_time deadline);

/*
 * Prepares it: the result of the future is that of weft_datagram_receive_many().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_receive_many_init(weft_io *io, weft_datagram *socket,
                                              weft_packet *packets, size_t count);

/*
 * Joins a group, of IPv4 or IPv6: what is sent there is received here; and leaves it. interface
 * is its index (if_nametoindex(3)), 0: the system chooses.
 *
 * Context: any thread.
 * Errors:  -EADDRINUSE: it has joined already; -EADDRNOTAVAIL; -ENODEV; -EINVAL: no such group;
 *          WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_join(weft_datagram *socket, const weft_address *group,
                                               unsigned interface);

/*
 * Leaves a group. Otherwise as weft_datagram_join().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_leave(weft_datagram *socket, const weft_address *group,
                                                unsigned interface);

/*
 * Prepares to wait until there is a message, or room to send one, for weft_select().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_readable_init(weft_op *op, weft_datagram *socket);

/*
 * Prepares to wait until there is room to send a message, for weft_select().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_writable_init(weft_op *op, weft_datagram *socket);

/*
 * Tells where it is, and where it is connected to.
 *
 * Context: any thread.
 * Errors:  -ENOTCONN, WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_address(weft_datagram *socket, weft_address *address);

/*
 * Tells where it is connected to. Otherwise as weft_datagram_address().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_peer(weft_datagram *socket, weft_address *address);

/*
 * As weft_stream_set_option() and weft_stream_option().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_set_option(weft_datagram *socket, weft_option option,
                                                     int value);

/*
 * As weft_stream_option().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_option(weft_datagram *socket, weft_option option,
                                                 int *value);

/*
 * Returns its descriptor, to look at or to set options of. It is valid until the socket is closed.
 *
 * Context: any thread.
 * Errors:  WEFT_ECLOSED.
 */
WEFT_API int weft_datagram_fd(const weft_datagram *socket);

/*
 * Closes it. Calls in progress and later calls return WEFT_ECLOSED. Does nothing if it was closed
 * before, or if it is NULL.
 *
 * Context: anywhere.
 */
WEFT_API void weft_datagram_close(weft_datagram *socket);

WEFT_EXTERN_C_END

#endif
