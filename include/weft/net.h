/* SPDX-License-Identifier: MIT */
/*
 * weft/net.h - TCP and Unix sockets: addresses, name resolution, listeners and connections.
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
 * A connection is a stream, which is read and written with weft/io.h. An endpoint is written as
 *
 *   tcp://127.0.0.1:80   tcp://[::1]:80   tcp://example.org:443   tcp://:80 (any address)
 *   udp://127.0.0.1:53   udp://:0 (any port)
 *   unix:/run/app.sock   unix:@name (an abstract name)   unixgram:/run/log.sock
 *
 * Each call that may wait has a prepared form for stackless tasks, as in weft/io.h.
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

/* The address of a socket or of its peer. */
typedef struct weft_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } to;
    socklen_t size; /* bytes used in to; 0: no address */
} weft_address;

/* Large enough for every printed address with its terminating '\0'. */
#define WEFT_ADDRESS_TEXT_MAX 128

/*
 * Parses a numeric address: "127.0.0.1:80", "[fe80::1%2]:80", "unix:/path", "unix:@name",
 * optionally prefixed with "tcp://" or "udp://". ":80" means any address of this machine. Host
 * names are not accepted.
 *
 * Context: any thread.
 * Errors:  -EINVAL (not an address), -ENAMETOOLONG (the path is too long for a socket).
 */
WEFT_API WEFT_NODISCARD int weft_address_parse(weft_address *address, const char *text);

/*
 * Prints an address in the form that weft_address_parse() reads, without "tcp://", truncated to
 * size bytes including the terminating '\0'. Returns the length of the whole text. Unprintable
 * bytes of a name are printed as '?'.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_address_print(const weft_address *address, char *text, size_t size);

/*
 * Returns the port, or 0 if the address has none.
 *
 * Context: any thread.
 */
WEFT_API uint16_t weft_address_port(const weft_address *address);

/*
 * Sets the port.
 *
 * Context: any thread.
 * Errors:  -EINVAL (an address of this kind has no port).
 */
WEFT_API WEFT_NODISCARD int weft_address_set_port(weft_address *address, uint16_t port);

/*
 * Resolves "host:port", optionally prefixed with "tcp://" or "udp://". The port may be a
 * service name. Stores up to most addresses and returns their number. The C library resolves
 * names, on a blocking-pool thread; numeric addresses are converted immediately.
 *
 * Context:  fiber or plain thread. To resolve a name, a plain thread must run a blocking job.
 * Suspends: until the answer arrives or the deadline passes. After the deadline the pool thread
 *           stays busy until it has the answer.
 * Errors:   WEFT_ENONAME (no such name), -EAGAIN (temporary failure), -EMFILE and -ENFILE (no
 *           descriptor is left for the lookup), -EINVAL, -ENOMEM, WEFT_ETIMEDOUT, WEFT_ECANCELED.
 */
WEFT_API WEFT_NODISCARD int weft_resolve(weft_address *addresses, size_t most, const char *place,
                                         weft_time deadline);

/* --- Connections ------------------------------------------------------------------------ */

typedef struct weft_listener weft_listener;

/* Options of a listener. Zero-initialized options suit most uses. */
typedef struct weft_listen_options {
    int backlog;     /* pending connections; 0: the system's maximum */
    bool reuse_port; /* several listeners share the port (SO_REUSEPORT) */
    bool fresh_port; /* fail while old connections of the port linger (no SO_REUSEADDR) */
    bool v6_only;    /* "[::]" does not accept IPv4 */
    bool nagle;      /* delay small writes of accepted streams (no TCP_NODELAY) */
    unsigned mode;   /* permissions of a socket file; 0: as the umask says */
    /* Keeps the file of a Unix socket. Without it, closing the socket removes the file, unless
     * another socket or file has taken its place. */
    bool keep_path;
    bool replace_path; /* remove an existing socket file without a listener */
} weft_listen_options;

/*
 * Listens for connections on an endpoint. If a host has several addresses, uses the first one
 * that works.
 *
 * Context:  any task or blocking job. A numeric address does not wait. Resolving a host name
 *           does, and aborts in a stackless task.
 * Suspends: while a host name is resolved.
 * Owns:     the caller owns *listener and closes it with weft_listener_close().
 * Errors:   -EADDRINUSE, -EADDRNOTAVAIL, -EACCES and others of bind(2); -EINVAL (not an endpoint
 *           to listen on); those of weft_resolve(); WEFT_ECANCELED (also for a numeric address);
 *           -EMFILE, -ENFILE, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_listen(weft_listener **listener, const char *place,
                                        const weft_listen_options *options);

/*
 * Makes a listener from a socket that already listens, for example an inherited one.
 *
 * Context: any task or blocking job.
 * Owns:    on success the listener owns the descriptor.
 * Errors:  -EINVAL (the socket does not listen), -EEXIST (the descriptor already belongs to
 *          weft), -EBADF, -ENOTSOCK, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_listener_adopt(weft_listener **listener, int fd);

/*
 * Accepts a connection. While the process is out of descriptors (EMFILE and the like), retries
 * with a backoff of up to 100 ms. Skips connections that were aborted before they were
 * accepted.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_accept_init().
 * Suspends: until a connection arrives or the deadline passes.
 * Owns:     the caller owns *stream and closes it with weft_stream_close().
 * Errors:   WEFT_ECLOSED, WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM. No connection was accepted.
 */
WEFT_API WEFT_NODISCARD int weft_accept(weft_listener *listener, weft_stream **stream,
                                        weft_time deadline);

/*
 * Prepares an accept. The future's result is that of weft_accept().
 *
 * Context: any thread.
 */
WEFT_API void weft_accept_init(weft_io *io, weft_listener *listener, weft_stream **stream);

/*
 * Gets the local address of a listener, including the port that the system chose.
 *
 * Context: any thread.
 * Errors:  WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_listener_address(weft_listener *listener, weft_address *address);

/*
 * Returns the descriptor of a listener, to inspect it or set its options. It is valid until the
 * listener is closed.
 *
 * Context: any thread.
 * Errors:  WEFT_ECLOSED.
 */
WEFT_API int weft_listener_fd(const weft_listener *listener);

/*
 * Closes a listener. Calls in progress and later calls return WEFT_ECLOSED. The endpoint is
 * free when the last call in progress has returned; with io_uring, a moment later. Does nothing
 * if the listener is already closed or is NULL.
 *
 * Context: any thread.
 */
WEFT_API void weft_listener_close(weft_listener *listener);

/* Options of a connection. Zero-initialized options suit most uses. */
typedef struct weft_connect_options {
    const weft_address *from; /* local address; NULL: the system chooses */
    bool nagle;               /* delay small writes (no TCP_NODELAY) */
} weft_connect_options;

/*
 * Connects to an endpoint. If a name has several addresses, tries them one after the other:
 * moves to the next one when an address has failed, or has not answered for 2 s.
 *
 * Context:  fiber or plain thread that runs a blocking job. A stackless task awaits
 *           weft_connect_init().
 * Suspends: until a connection is established, all addresses have failed, or the deadline
 *           passes.
 * Owns:     the caller owns *stream and closes it with weft_stream_close().
 * Errors:   -ECONNREFUSED, -EHOSTUNREACH and others of connect(2), for the address that failed
 *           last; those of weft_resolve(); -EINVAL; -EMFILE, -ENFILE, -ENOMEM; WEFT_ETIMEDOUT,
 *           WEFT_ECANCELED. No connection was established.
 */
WEFT_API WEFT_NODISCARD int weft_connect(weft_stream **stream, const char *place,
                                         const weft_connect_options *options, weft_time deadline);

/*
 * Prepares a connect to one address. The future's result is that of weft_connect(). The options
 * are copied; address, and the address in options->from, must stay in place.
 *
 * Context: any thread.
 */
WEFT_API void weft_connect_init(weft_io *io, weft_stream **stream, const weft_address *address,
                                const weft_connect_options *options);

/*
 * Creates two streams that are connected to each other by a pair of Unix sockets.
 *
 * Context: any task or blocking job.
 * Errors:  -EMFILE, -ENFILE, -ENOMEM.
 */
WEFT_API WEFT_NODISCARD int weft_stream_pair(weft_stream **one, weft_stream **other);

/*
 * Gets the local address of a stream.
 *
 * Context: any thread.
 * Errors:  -EOPNOTSUPP (not a socket), WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_stream_address(weft_stream *stream, weft_address *address);

/*
 * Gets the address of a stream's peer.
 *
 * Context: any thread.
 * Errors:  -ENOTCONN, -EOPNOTSUPP (not a socket), WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_stream_peer(weft_stream *stream, weft_address *address);

/* --- Socket options --------------------------------------------------------------------- */

/* Socket options. Each is a number; boolean options are 1 or 0. */
typedef enum weft_option {
    WEFT_OPTION_NODELAY,            /* send small writes immediately; on by default */
    WEFT_OPTION_CORK,               /* send only full segments */
    WEFT_OPTION_QUICK_ACK,          /* send acknowledgments immediately */
    WEFT_OPTION_KEEPALIVE,          /* probe an idle peer */
    WEFT_OPTION_KEEPALIVE_IDLE,     /* seconds until the first probe */
    WEFT_OPTION_KEEPALIVE_INTERVAL, /* seconds between probes */
    WEFT_OPTION_KEEPALIVE_COUNT,    /* number of probes */
    WEFT_OPTION_USER_TIMEOUT,       /* ms that written data may stay unacknowledged */
    WEFT_OPTION_LINGER,             /* seconds to keep sending after close; 0: reset; -1: off */
    WEFT_OPTION_SEND_BUFFER,        /* bytes */
    WEFT_OPTION_RECEIVE_BUFFER,     /* bytes */
    WEFT_OPTION_LOW_WATER,          /* bytes that make the socket readable */
    WEFT_OPTION_REUSE_ADDRESS,
    WEFT_OPTION_REUSE_PORT,
    WEFT_OPTION_V6_ONLY,
    WEFT_OPTION_TTL, /* of packets sent; with IPv6 the hop limit */
    WEFT_OPTION_TOS, /* with IPv6 the traffic class */
    WEFT_OPTION_PRIORITY,
    WEFT_OPTION_BROADCAST,
    WEFT_OPTION_MULTICAST_TTL,
    WEFT_OPTION_MULTICAST_LOOP,
    WEFT_OPTION_DEFER_ACCEPT, /* seconds: accept only once data has arrived */
    WEFT_OPTION_FAST_OPEN,    /* queue length for connections that arrive with data */
    WEFT_OPTION_PASS_CREDENTIALS,
} weft_option;

/*
 * Sets a socket option of a stream.
 *
 * Context: any thread.
 * Errors:  those of setsockopt(2); -EOPNOTSUPP (not a socket, or it has no such option);
 *          -EINVAL; WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_stream_set_option(weft_stream *stream, weft_option option,
                                                   int value);

/*
 * Gets a socket option of a stream. Otherwise like weft_stream_set_option().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_stream_option(weft_stream *stream, weft_option option, int *value);

/*
 * Sets a socket option of a listener. Otherwise like weft_stream_set_option().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_listener_set_option(weft_listener *listener, weft_option option,
                                                     int value);

/*
 * Gets a socket option of a listener. Otherwise like weft_stream_option().
 *
 * Context: any thread.
 */
WEFT_API WEFT_NODISCARD int weft_listener_option(weft_listener *listener, weft_option option,
                                                 int *value);

/* --- Unix sockets ----------------------------------------------------------------------- */

/* The process at the other end of a Unix socket. */
typedef struct weft_credentials {
    pid_t pid;
    uid_t uid;
    gid_t gid;
} weft_credentials;

/*
 * Gets the credentials of the process that created the other end of a Unix socket.
 *
 * Context: any thread.
 * Errors:  -EOPNOTSUPP (not a Unix socket), WEFT_ECLOSED.
 */
WEFT_API WEFT_NODISCARD int weft_stream_credentials(weft_stream *stream,
                                                    weft_credentials *credentials);

#define WEFT_FDS_MAX 253

/*
 * Writes at least one byte and passes up to WEFT_FDS_MAX descriptors along with the first byte.
 * The descriptors stay open in this process. Returns the number of bytes written.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_write_fds_init().
 * Errors:  those of weft_write(); -EINVAL (too many descriptors, or size is 0), -EBADF,
 *          -EOPNOTSUPP (not a Unix socket).
 */
WEFT_API WEFT_NODISCARD ssize_t weft_write_fds(weft_stream *stream, const void *data, size_t size,
                                               const int *fds, size_t count, weft_time deadline);

/*
 * Prepares a write. The future's result is that of weft_write_fds().
 *
 * Context: any thread.
 */
WEFT_API void weft_write_fds_init(weft_io *io, weft_stream *stream, const void *data, size_t size,
                                  const int *fds, size_t count);

/*
 * Reads like weft_read(), and receives the descriptors that come with the first byte. fds has
 * space for *count descriptors, and *count becomes the number received. Excess descriptors are
 * closed. Received descriptors are close-on-exec.
 *
 * If the process runs out of descriptors, the kernel drops the rest of those that were sent.
 * The bytes are read all the same. The last entry of fds is then -1, and *count includes it:
 * one or more descriptors are lost. Check for it, or use only entries that are not negative.
 *
 * Context: fiber or plain thread. A stackless task awaits weft_read_fds_init().
 * Errors:  those of weft_read(); -EOPNOTSUPP (not a Unix socket).
 */
WEFT_API WEFT_NODISCARD ssize_t weft_read_fds(weft_stream *stream, void *buffer, size_t size,
                                              int *fds, size_t *count, weft_time deadline);

/*
 * Prepares a read. The future's result is that of weft_read_fds().
 *
 * Context: any thread.
 */
WEFT_API void weft_read_fds_init(weft_io *io, weft_stream *stream, void *buffer, size_t size,
                                 int *fds, size_t *count);

WEFT_EXTERN_C_END

#endif
