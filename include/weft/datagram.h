/* SPDX-License-Identifier: MIT */
/*
 * weft/datagram.h - datagram sockets: UDP and Unix (SOCK_DGRAM).
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
 * A network may lose, duplicate or reorder datagrams. Each call that may wait has a prepared
 * form for stackless tasks, as in weft/io.h.
 */
#ifndef WEFT_DATAGRAM_H
#define WEFT_DATAGRAM_H

#include "net.h"

WEFT_EXTERN_C_BEGIN

typedef struct weft_datagram weft_datagram;

/* Options of a datagram socket. Zero-initialized options suit most uses. */
typedef struct weft_datagram_options {
    bool reuse_address; /* several sockets may bind this address (SO_REUSEADDR) */
    bool reuse_port;    /* and share its messages (SO_REUSEPORT) */
    bool v6_only;       /* "[::]" does not accept IPv4 */
    bool broadcast;     /* may send to broadcast addresses */
    /* Keeps the file of a Unix socket. Without it, closing the socket removes the file, unless
     * another socket or file has taken its place. */
    bool keep_path;
} weft_datagram_options;

/*
 * Opens a socket bound to an endpoint: "udp://127.0.0.1:9000", "udp://[::]:0",
 * "unixgram:/run/log.sock", "unixgram:@name".
 *
 * Context:  any task or blocking job. A numeric address does not wait. Resolving a host name
 *           does, and aborts in a stackless task.
 * Suspends: while a host name is resolved.
 * Owns:     the caller owns *socket and closes it with weft_datagram_close().
 * Errors:   -EADDRINUSE and others of bind(2), -EINVAL, those of weft_resolve(), WEFT_ECANCELED
 *           (also for a numeric address), -EMFILE, -ENFILE, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_open(weft_datagram **socket, const char *place,
                                               const weft_datagram_options *options);

/*
 * Makes a datagram socket from a descriptor.
 *
 * Context: any task or blocking job.
 * Owns:    on success the socket owns the descriptor.
 * Errors:  -EINVAL (a stream socket), -EEXIST (the descriptor already belongs to weft), -EBADF,
 *          -ENOTSOCK, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_adopt(weft_datagram **socket, int fd);

/*
 * Creates two Unix datagram sockets that are connected to each other.
 *
 * Context: any task or blocking job.
 * Errors:  -EMFILE, -ENFILE, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_pair(weft_datagram **one, weft_datagram **other);

/*
 * Connects the socket: it sends to this address by default and receives only from there. NULL
 * disconnects it.
 *
 * Context: any thread.
 * Errors:  those of connect(2), WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_connect(weft_datagram *socket,
                                                  const weft_address *address);

/*
 * Sends a message to the connected peer. Returns its size.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_datagram_send_init().
 * Suspends: until the socket has buffer space or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED; those of send(2): -EMSGSIZE,
 *           -ECONNREFUSED (caused by an earlier message), -EDESTADDRREQ. The message was not
 *           sent.
 */
WEFT_API WEFT_NODISCARD ssize_t weft_datagram_send(weft_datagram *socket, const void *data,
                                                   size_t size, weft_time deadline);

/*
 * Prepares a send. The future's result is that of weft_datagram_send().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_send_init(weft_io *io, weft_datagram *socket, const void *data,
                                      size_t size);

/*
 * Same as weft_datagram_send(), to the given address.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_datagram_send_to_init() and
 *           keeps the address in place.
 * Suspends: as weft_datagram_send(); with a Unix socket also until the receiver's queue has
 *           space. Such a wait uses one more descriptor. If none is available, the send retries
 *           with backoff.
 */
WEFT_API WEFT_NODISCARD ssize_t weft_datagram_send_to(weft_datagram *socket, const void *data,
                                                      size_t size, const weft_address *address,
                                                      weft_time deadline);

/*
 * Prepares a send. The future's result is that of weft_datagram_send_to().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_send_to_init(weft_io *io, weft_datagram *socket, const void *data,
                                         size_t size, const weft_address *address);

/*
 * Receives a message. Returns its size, even if that exceeds the buffer; the rest is then lost.
 * 0 is an empty message.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_datagram_receive_init().
 * Suspends: until a message arrives or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_ECLOSED; those of recv(2): -ECONNREFUSED.
 */
WEFT_API WEFT_NODISCARD ssize_t weft_datagram_receive(weft_datagram *socket, void *buffer,
                                                      size_t size, weft_time deadline);

/*
 * Prepares a receive. The future's result is that of weft_datagram_receive().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_receive_init(weft_io *io, weft_datagram *socket, void *buffer,
                                         size_t size);

/*
 * Same as weft_datagram_receive(), and stores the sender's address in *from.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_datagram_receive_from_init().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_datagram_receive_from(weft_datagram *socket, void *buffer,
                                                           size_t size, weft_address *from,
                                                           weft_time deadline);

/*
 * Prepares a receive. The future's result is that of weft_datagram_receive_from().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_receive_from_init(weft_io *io, weft_datagram *socket, void *buffer,
                                              size_t size, weft_address *from);

/*
 * Same as weft_datagram_receive_from(), but leaves the message in the socket for the next call.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_datagram_peek_init().
 */
WEFT_API WEFT_NODISCARD ssize_t weft_datagram_peek(weft_datagram *socket, void *buffer, size_t size,
                                                   weft_address *from, weft_time deadline);

/*
 * Prepares a peek. The future's result is that of weft_datagram_peek().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_peek_init(weft_io *io, weft_datagram *socket, void *buffer, size_t size,
                                      weft_address *from);

/* One message of a batch. */
typedef struct weft_packet {
    void *data;
    size_t size;          /* send: size of the message; receive: size of the buffer */
    size_t received;      /* size of the received message, which may exceed the buffer */
    weft_address address; /* destination (size 0: the connected peer), or sender */
} weft_packet;

#define WEFT_PACKETS_MAX 64

/*
 * Sends at least one and up to WEFT_PACKETS_MAX messages with one system call. Returns the
 * number sent.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_datagram_send_many_init().
 * Errors:  those of weft_datagram_send(), for the first message.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_send_many(weft_datagram *socket, weft_packet *packets,
                                                    size_t count, weft_time deadline);

/*
 * Prepares a send. The future's result is that of weft_datagram_send_many().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_send_many_init(weft_io *io, weft_datagram *socket, weft_packet *packets,
                                           size_t count);

/*
 * Receives the pending messages, at least one and up to WEFT_PACKETS_MAX, with one system call.
 * Returns the number received.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_datagram_receive_many_init().
 */
WEFT_API WEFT_NODISCARD int weft_datagram_receive_many(weft_datagram *socket, weft_packet *packets,
                                                       size_t count, weft_time deadline);

/*
 * Prepares a receive. The future's result is that of weft_datagram_receive_many().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_receive_many_init(weft_io *io, weft_datagram *socket,
                                              weft_packet *packets, size_t count);

/*
 * Joins an IPv4 or IPv6 multicast group, to receive the messages sent to it. interface is an
 * index (see if_nametoindex(3)); 0: the system chooses.
 *
 * Context: any thread.
 * Errors:  -EADDRINUSE (already joined), -EADDRNOTAVAIL, -ENODEV, -EINVAL (not a multicast
 *          group), WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_join(weft_datagram *socket, const weft_address *group,
                                               unsigned interface);

/*
 * Leaves a multicast group. Otherwise like weft_datagram_join().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_leave(weft_datagram *socket, const weft_address *group,
                                                unsigned interface);

/*
 * Prepares to wait until a message can be received, for weft_select().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_readable_init(weft_op *op, weft_datagram *socket);

/*
 * Prepares to wait until a message can be sent, for weft_select().
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_writable_init(weft_op *op, weft_datagram *socket);

/*
 * Gets the local address of a socket.
 *
 * Context: any thread.
 * Errors:  WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_address(weft_datagram *socket, weft_address *address);

/*
 * Gets the address that the socket is connected to.
 *
 * Context: any thread.
 * Errors:  -ENOTCONN, WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_peer(weft_datagram *socket, weft_address *address);

/*
 * Sets a socket option. Otherwise like weft_stream_set_option().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_set_option(weft_datagram *socket, weft_option option,
                                                     int value);

/*
 * Gets a socket option. Otherwise like weft_stream_option().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_datagram_option(weft_datagram *socket, weft_option option,
                                                 int *value);

/*
 * Returns the descriptor of a socket, to inspect it or set its options. It is valid until the
 * socket is closed.
 *
 * Context: any thread.
 * Errors:  WEFT_ECLOSED.
 */
WEFT_API int weft_datagram_fd(const weft_datagram *socket);

/*
 * Closes a socket. Calls in progress and later calls return WEFT_ECLOSED. Does nothing if the
 * socket is already closed or is NULL.
 *
 * Context: any thread.
 */
WEFT_API void weft_datagram_close(weft_datagram *socket);

WEFT_EXTERN_C_END

#endif
