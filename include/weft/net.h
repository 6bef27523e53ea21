/* SPDX-License-Identifier: MIT */
/*
 * weft/net.h - connections and datagrams, of the network and of this machine.
 *
 *     weft_listener *listener;
 *     int err = weft_listen(&listener, "tcp://127.0.0.1:8080", NULL);
 *     ...
 *     weft_stream *peer;
 *     while ((err = weft_accept(listener, &peer, WEFT_NEVER)) == 0) {
 *         if (weft_go(NULL, serve, peer) != 0) {
 *             weft_stream_close(peer);
 *         }
 *     }
 *
 * What is connected is a stream: weft/io.h reads and writes it. A place is written as
 *
 *   tcp://127.0.0.1:80   tcp://[::1]:80   tcp://example.org:443   tcp://:80 (any address)
 *   udp://127.0.0.1:53   udp://:0 (any port)
 *   unix:/run/app.sock   unix:@name (an abstract name)   unixgram:/run/log.sock
 *
 * Each call that may wait has a form for bodies, as in weft/io.h.
 */
#ifndef WEFT_NET_H
#define WEFT_NET_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base.h"
#include "clock.h"
#include "io.h"

WEFT_EXTERN_C_BEGIN

/* --- Addresses -------------------------------------------------------------------------- */

/* Where a socket is, or its peer. */
typedef struct weft_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } to;
    socklen_t size; /* of what is used of it; 0: no address */
} weft_address;

/* Enough for every address that is printed, and its end. */
#define WEFT_ADDRESS_TEXT_MAX 128

/*
 * Reads an address: "127.0.0.1:80", "[fe80::1%2]:80", "unix:/path", "unix:@name"; with "tcp://" or
 * "udp://" before it, or without. ":80" is any address of this machine. No names of hosts.
 *
 * Context: any thread.
 * Errors:  -EINVAL: it is none; -ENAMETOOLONG: a path that is too long for a socket.
 */
WEFT_API WEFT_NODISCARD int weft_address_parse(weft_address *address, const char *text);

/*
 * Writes an address as weft_address_parse() reads it, without "tcp://", and a '\0', as far as
 * there is room. Returns the length of the whole text. Bytes of a name that cannot be printed
 * are written as '?'.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_address_print(const weft_address *address, char *text, size_t size);

/*
 * Returns the port; 0 if it has none. And sets it: -EINVAL if it cannot have one.
 *
 * Context: any thread.
 */
WEFT_API uint16_t weft_address_port(const weft_address *address);

/*
 * Sets the port. -EINVAL: it cannot have one.
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_address_set_port(weft_address *address, uint16_t port);

/*
 * Looks up "host:port" (or a place with "tcp://", "udp://"), and returns how many addresses it
 * has, up to most. A service may stand for the port. Names are looked up by the C library, on a
 * thread of the blocking pool; numbers at once.
 *
 * Context:  a fiber, or a plain thread.
 * Suspends: until there is an answer, or the deadline: then the thread goes on until it has it.
 * Errors:   WEFT_ENONAME: there is no such name; -EAGAIN: no answer, for now; -EMFILE, -ENFILE: no
 *           descriptor is left for the lookup; -EINVAL; -ENOMEM; WEFT_ETIMEDOUT, WEFT_ECANCELED.
 */
WEFT_API WEFT_NODISCARD int weft_resolve(weft_address *addresses, size_t most, const char *place,
                                         weft_time deadline);

/* --- Connections ------------------------------------------------------------------------ */

typedef struct weft_listener weft_listener;

/* All zeros is what most want. */
typedef struct weft_listen_options {
    int backlog;     /* connections that wait to be accepted; 0: as many as the system allows */
    bool reuse_port; /* several listeners share the port */
    bool fresh_port; /* not while connections of the last listener linger */
    bool v6_only;    /* "[::]" is not for IPv4 */
    bool nagle;      /* small writes of accepted streams are held back (no TCP_NODELAY) */
    unsigned mode;   /* of a path; 0: as the umask says */
    /* Keeps the file of a Unix socket. Without it, closing the socket removes the file, unless
     * another socket or file has taken its place. */
    bool keep_path;
    bool replace_path; /* removes a socket that is there and that nobody listens at */
} weft_listen_options;

/*
 * Listens for connections at a place. The first address of a host that works is used.
 *
 * Context:  a fiber, a blocking job, or a plain thread that runs a blocking job; numbers do not
 *           wait.
 * Suspends: while a name is looked up.
 * Owns:     *listener is the caller's until weft_listener_close().
 * Errors:   -EADDRINUSE, -EADDRNOTAVAIL, -EACCES and others of bind(2); -EINVAL: no such place;
 *           those of weft_resolve(), WEFT_ECANCELED also for numbers; -EMFILE, -ENFILE, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_listen(weft_listener **listener, const char *place,
                                        const weft_listen_options *options);

/*
 * Makes a listener of a socket that listens already, for example one that was inherited.
 *
 * Context: a task, or a blocking job.
 * Owns:    the descriptor is the listener's, if this succeeds.
 * Errors:  -EINVAL: it does not listen; -EEXIST: it belongs to weft already; -EBADF, -ENOTSOCK,
 *          -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_listener_adopt(weft_listener **listener, int fd);

/*
 * Accepts a connection. While there are no descriptors left (EMFILE and its like) it waits and
 * tries again, longer each time, up to 100 ms; connections that were broken off before are
 * passed over.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_accept_init().
 * Suspends: until there is one, or the deadline.
 * Owns:     *stream is the caller's until weft_stream_close().
 * Errors:   WEFT_ECLOSED, WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM. None was accepted.
 */
WEFT_API WEFT_NODISCARD int weft_accept(weft_listener *listener, weft_stream **stream,
                                        weft_time deadline);

/*
 * Prepares it: the result of the future is that of weft_accept().
 *
 * Context: any thread.
 */
WEFT_API void weft_accept_init(weft_io *io, weft_listener *listener, weft_stream **stream);

/*
 * Tells where it listens: also which port, if it was to be any.
 *
 * Context: any thread.
 * Errors:  WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_listener_address(weft_listener *listener, weft_address *address);

/*
 * Returns its descriptor, to look at or to set options of. It is valid until the listener is
 * closed.
 *
 * Context: any thread.
 * Errors:  WEFT_ECLOSED.
 */
WEFT_API int weft_listener_fd(const weft_listener *listener);

/*
 * Closes it. Calls in progress and later calls return WEFT_ECLOSED. When the last call in progress
 * has returned, the place is free; with io_uring a moment later. Does nothing if it was closed
 * before, or if it is NULL.
 *
 * Context: anywhere.
 */
WEFT_API void weft_listener_close(weft_listener *listener);

/* All zeros is what most want. */
typedef struct weft_connect_options {
    const weft_address *from; /* where this side is to be; NULL: the system chooses */
    bool nagle;               /* small writes are held back (no TCP_NODELAY) */
} weft_connect_options;

/*
 * Connects to a place. If a name has several addresses, they are tried one after the other: the
 * next one when one has refused, or has not answered for 2 s.
 *
 * Context:  a fiber, or a plain thread that runs a blocking job. A body awaits a
 *           weft_connect_init().
 * Suspends: until there is a connection, all addresses have failed, or the deadline.
 * Owns:     *stream is the caller's until weft_stream_close().
 * Errors:   -ECONNREFUSED, -EHOSTUNREACH and others of connect(2), of the address that failed
 *           last; those of weft_resolve(); -EINVAL; -EMFILE, -ENFILE, -ENOMEM;
 *           WEFT_ETIMEDOUT, WEFT_ECANCELED. There is no connection then.
 */
WEFT_API WEFT_NODISCARD int weft_connect(weft_stream **stream, const char *place,
                                         const weft_connect_options *options, weft_time deadline);

/*
 * Prepares to connect to one address: the result is that of weft_connect(). The options are
 * copied, the address they name stays in place.
 *
 * Context: any thread.
 */
WEFT_API void weft_connect_init(weft_io *io, weft_stream **stream, const weft_address *address,
                                const weft_connect_options *options);

/*
 * Makes two streams that are connected to each other, by a pair of Unix sockets.
 *
 * Context: a task, or a blocking job.
 * Errors:  -EMFILE, -ENFILE, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_stream_pair(weft_stream **one, weft_stream **other);

/*
 * Tells where a stream is, and where its peer is.
 *
 * Context: any thread.
 * Errors:  -ENOTCONN, -EOPNOTSUPP: it is no socket; WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_stream_address(weft_stream *stream, weft_address *address);

/*
 * Tells where the peer of a stream is. Otherwise as weft_stream_address().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_stream_peer(weft_stream *stream, weft_address *address);

/* --- Options of sockets ----------------------------------------------------------------- */

/* Each is a number; those that are on or off are 1 or 0. */
typedef enum weft_option {
    WEFT_OPTION_NODELAY,            /* small writes are sent at once; on, unless said otherwise */
    WEFT_OPTION_CORK,               /* only full segments are sent */
    WEFT_OPTION_QUICK_ACK,          /* acknowledgements are sent at once */
    WEFT_OPTION_KEEPALIVE,          /* an idle peer is asked whether it is still there */
    WEFT_OPTION_KEEPALIVE_IDLE,     /* after so many seconds */
    WEFT_OPTION_KEEPALIVE_INTERVAL, /* and then every so many seconds */
    WEFT_OPTION_KEEPALIVE_COUNT,    /* so often */
    WEFT_OPTION_USER_TIMEOUT,       /* ms that written data may stay unacknowledged */
    WEFT_OPTION_LINGER,             /* seconds that close sends for; 0: a reset; -1: off */
    WEFT_OPTION_SEND_BUFFER,        /* bytes */
    WEFT_OPTION_RECEIVE_BUFFER,     /* bytes */
    WEFT_OPTION_LOW_WATER,          /* bytes that must be there before it is readable */
    WEFT_OPTION_REUSE_ADDRESS,
    WEFT_OPTION_REUSE_PORT,
    WEFT_OPTION_V6_ONLY,
    WEFT_OPTION_TTL, /* of what is sent; hops, with IPv6 */
    WEFT_OPTION_TOS, /* traffic class, with IPv6 */
    WEFT_OPTION_PRIORITY,
    WEFT_OPTION_BROADCAST,
    WEFT_OPTION_MULTICAST_TTL,
    WEFT_OPTION_MULTICAST_LOOP,
    WEFT_OPTION_DEFER_ACCEPT, /* seconds: accepted when there is data */
    WEFT_OPTION_FAST_OPEN,    /* a queue of so many, for data that comes with the connection */
    WEFT_OPTION_PASS_CREDENTIALS,
} weft_option;

/*
 * Sets an option of a socket, and gets it.
 *
 * Context: any thread.
 * Errors:  those of setsockopt(2); -EOPNOTSUPP: it is no socket, or has no such option;
 *          -EINVAL; WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_stream_set_option(weft_stream *stream, weft_option option,
                                                   int value);

/*
 * Gets an option of a socket. Otherwise as weft_stream_set_option().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_stream_option(weft_stream *stream, weft_option option, int *value);

/*
 * As weft_stream_set_option().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_listener_set_option(weft_listener *listener, weft_option option,
                                                     int value);

/*
 * As weft_stream_option().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_listener_option(weft_listener *listener, weft_option option,
                                                 int *value);

/* --- Unix sockets ----------------------------------------------------------------------- */

/* Who is at the other end of a Unix socket. */
typedef struct weft_credentials {
    pid_t pid;
    uid_t uid;
    gid_t gid;
} weft_credentials;

/*
 * Tells who has made the other end of a Unix socket.
 *
 * Context: any thread.
 * Errors:  -EOPNOTSUPP: it is none; WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_stream_credentials(weft_stream *stream,
                                                    weft_credentials *credentials);

#define WEFT_FDS_MAX 253

/*
 * Writes at least one byte, and with the first of them descriptors, up to WEFT_FDS_MAX; they
 * stay open here. Returns how many bytes.
 *
 * Context: as weft_write(); a body awaits a weft_write_fds_init().
 * Errors:  as weft_write(); -EINVAL: too many, or no byte; -EBADF; -EOPNOTSUPP: it is no Unix
 *          socket.
 */
WEFT_API WEFT_NODISCARD ssize_t weft_write_fds(weft_stream *stream, const void *data, size_t size,
                                               const int *fds, size_t count, weft_time deadline);

/*
 * Prepares it: the result of the future is that of weft_write_fds().
 *
 * Context: any thread.
 */
WEFT_API void weft_write_fds_init(weft_io *io, weft_stream *stream, const void *data, size_t size,
                                  const int *fds, size_t count);

/*
 * Reads as weft_read(), and receives the descriptors that come with the first byte: fds has room
 * for *count of them, and *count becomes the number received. Descriptors that exceed the room are
 * closed. Received descriptors are closed on exec.
 *
 * If the process runs out of descriptors, the kernel drops the rest of those that were sent. The
 * bytes are read all the same. The last entry of fds is -1 then, and *count includes it: one or
 * more descriptors are lost. Check for it, or use each entry only if it is not negative.
 *
 * Context: as weft_read(); a body awaits a weft_read_fds_init().
 * Errors:  as weft_read(); -EOPNOTSUPP: it is no Unix socket.
 */
WEFT_API WEFT_NODISCARD ssize_t weft_read_fds(weft_stream *stream, void *buffer, size_t size,
                                              int *fds, size_t *count, weft_time deadline);

/*
 * Prepares it: the result of the future is that of weft_read_fds().
 *
 * Context: any thread.
 */
WEFT_API void weft_read_fds_init(weft_io *io, weft_stream *stream, void *buffer, size_t size,
                                 int *fds, size_t *count);

WEFT_EXTERN_C_END

#endif
