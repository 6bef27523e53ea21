/* SPDX-License-Identifier: MIT */
/*
 * socket.c - common code of listeners, connections and datagram sockets: addresses and options.
 */
#include "net/socket.h"

#include <errno.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include <weft/task.h>

#include "io/source.h"
#include "sched/await.h"

int wf_socket_new(int family, int type)
{
    int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd >= 0 ? fd : -errno;
}

int wf_socket_undo(int fd, int err)
{
    (void)close(fd);
    return err;
}

int wf_socket_bind(int fd, const weft_address *address)
{
    return bind(fd, &address->to.any, address->size) == 0 ? 0 : -errno;
}

int wf_socket_set(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : -errno;
}

int wf_socket_get(int fd, int level, int name, int *value)
{
    socklen_t size = sizeof *value;
    *value = 0;
    return getsockopt(fd, level, name, value, &size) == 0 ? 0 : -errno;
}

/* --- Addresses -------------------------------------------------------------------------- */

typedef int (*name_fn)(int fd, struct sockaddr *address, socklen_t *size);

static int name_of(int fd, weft_address *address, name_fn function)
{
    memset(address, 0, sizeof *address);
    socklen_t size = sizeof address->to;
    if (function(fd, &address->to.any, &size) != 0) {
        return errno == ENOTSOCK ? -EOPNOTSUPP : -errno;
    }
    address->size = wf_socket_size(size);
    return 0;
}

int wf_socket_address(int fd, weft_address *address)
{
    return name_of(fd, address, getsockname);
}

int wf_socket_peer(int fd, weft_address *address)
{
    return name_of(fd, address, getpeername);
}

/* --- Options ---------------------------------------------------------------------------- */

/* Level and name of each option, for IPv4 and for IPv6. */
static const struct {
    int level;
    int name;
    int v6_level; /* 0: same as for IPv4 */
    int v6_name;
} options[] = {
    [WEFT_OPTION_NODELAY] = { IPPROTO_TCP, TCP_NODELAY, 0, 0 },
    [WEFT_OPTION_CORK] = { IPPROTO_TCP, TCP_CORK, 0, 0 },
    [WEFT_OPTION_QUICK_ACK] = { IPPROTO_TCP, TCP_QUICKACK, 0, 0 },
    [WEFT_OPTION_KEEPALIVE] = { SOL_SOCKET, SO_KEEPALIVE, 0, 0 },
    [WEFT_OPTION_KEEPALIVE_IDLE] = { IPPROTO_TCP, TCP_KEEPIDLE, 0, 0 },
    [WEFT_OPTION_KEEPALIVE_INTERVAL] = { IPPROTO_TCP, TCP_KEEPINTVL, 0, 0 },
    [WEFT_OPTION_KEEPALIVE_COUNT] = { IPPROTO_TCP, TCP_KEEPCNT, 0, 0 },
    [WEFT_OPTION_USER_TIMEOUT] = { IPPROTO_TCP, TCP_USER_TIMEOUT, 0, 0 },
    [WEFT_OPTION_LINGER] = { SOL_SOCKET, SO_LINGER, 0, 0 },
    [WEFT_OPTION_SEND_BUFFER] = { SOL_SOCKET, SO_SNDBUF, 0, 0 },
    [WEFT_OPTION_RECEIVE_BUFFER] = { SOL_SOCKET, SO_RCVBUF, 0, 0 },
    [WEFT_OPTION_LOW_WATER] = { SOL_SOCKET, SO_RCVLOWAT, 0, 0 },
    [WEFT_OPTION_REUSE_ADDRESS] = { SOL_SOCKET, SO_REUSEADDR, 0, 0 },
    [WEFT_OPTION_REUSE_PORT] = { SOL_SOCKET, SO_REUSEPORT, 0, 0 },
    [WEFT_OPTION_V6_ONLY] = { IPPROTO_IPV6, IPV6_V6ONLY, 0, 0 },
    [WEFT_OPTION_TTL] = { IPPROTO_IP, IP_TTL, IPPROTO_IPV6, IPV6_UNICAST_HOPS },
    [WEFT_OPTION_TOS] = { IPPROTO_IP, IP_TOS, IPPROTO_IPV6, IPV6_TCLASS },
    [WEFT_OPTION_PRIORITY] = { SOL_SOCKET, SO_PRIORITY, 0, 0 },
    [WEFT_OPTION_BROADCAST] = { SOL_SOCKET, SO_BROADCAST, 0, 0 },
    [WEFT_OPTION_MULTICAST_TTL] = { IPPROTO_IP, IP_MULTICAST_TTL, IPPROTO_IPV6,
                                    IPV6_MULTICAST_HOPS },
    [WEFT_OPTION_MULTICAST_LOOP] = { IPPROTO_IP, IP_MULTICAST_LOOP, IPPROTO_IPV6,
                                     IPV6_MULTICAST_LOOP },
    [WEFT_OPTION_DEFER_ACCEPT] = { IPPROTO_TCP, TCP_DEFER_ACCEPT, 0, 0 },
    [WEFT_OPTION_FAST_OPEN] = { IPPROTO_TCP, TCP_FASTOPEN, 0, 0 },
    [WEFT_OPTION_PASS_CREDENTIALS] = { SOL_SOCKET, SO_PASSCRED, 0, 0 },
};

static bool is_option(weft_option option)
{
    return (unsigned)option < sizeof options / sizeof options[0];
}

/* Returns the option's level and name for this socket. */
static int find_option(int fd, weft_option option, int *level, int *name)
{
    if (!is_option(option)) {
        return -EINVAL;
    }
    int family = 0;
    int err = wf_socket_get(fd, SOL_SOCKET, SO_DOMAIN, &family);
    if (err != 0) {
        return err == -ENOTSOCK ? -EOPNOTSUPP : err;
    }
    bool is_v6 = family == AF_INET6 && options[option].v6_level != 0;
    *level = is_v6 ? options[option].v6_level : options[option].level;
    *name = is_v6 ? options[option].v6_name : options[option].name;
    return 0;
}

/* Translates the error for an option that this kind of socket does not have. */
static int no_option(int err)
{
    return err == -ENOPROTOOPT ? -EOPNOTSUPP : err;
}

int wf_socket_set_option(int fd, weft_option option, int value)
{
    int level;
    int name;
    int err = find_option(fd, option, &level, &name);
    if (err != 0) {
        return err;
    }
    if (option == WEFT_OPTION_LINGER) {
        struct linger linger = { .l_onoff = value >= 0, .l_linger = value >= 0 ? value : 0 };
        return setsockopt(fd, level, name, &linger, sizeof linger) == 0 ? 0 : -errno;
    }
    return no_option(wf_socket_set(fd, level, name, value));
}

int wf_socket_option(int fd, weft_option option, int *value)
{
    int level;
    int name;
    int err = find_option(fd, option, &level, &name);
    if (err != 0) {
        return err;
    }
    if (option == WEFT_OPTION_LINGER) {
        struct linger linger = { 0 };
        socklen_t size = sizeof linger;
        err = getsockopt(fd, level, name, &linger, &size) == 0 ? 0 : -errno;
        *value = linger.l_onoff != 0 ? linger.l_linger : -1;
        return err;
    }
    return no_option(wf_socket_get(fd, level, name, value));
}

/* --- Functions of streams --------------------------------------------------------------- */

/* Evaluates an expression with the stream's descriptor fd, which is not closed in the meantime. */
#define WITH_FD(stream, ...)                                                                       \
    do {                                                                                           \
        struct wf_source *source;                                                                  \
        int err = wf_source_enter((stream), &source);                                              \
        if (err == 0) {                                                                            \
            int fd = source->fd;                                                                   \
            err = fd >= 0 ? __VA_ARGS__ : -EOPNOTSUPP;                                             \
            wf_source_leave(source);                                                               \
        }                                                                                          \
        return err;                                                                                \
    } while (0)

int weft_stream_address(weft_stream *stream, weft_address *address)
{
    WITH_FD(stream, wf_socket_address(fd, address));
}

int weft_stream_peer(weft_stream *stream, weft_address *address)
{
    WITH_FD(stream, wf_socket_peer(fd, address));
}

int weft_stream_set_option(weft_stream *stream, weft_option option, int value)
{
    WITH_FD(stream, wf_socket_set_option(fd, option, value));
}

int weft_stream_option(weft_stream *stream, weft_option option, int *value)
{
    WITH_FD(stream, wf_socket_option(fd, option, value));
}

static int credentials_of(int fd, weft_credentials *credentials)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    int family = 0;
    if (wf_socket_get(fd, SOL_SOCKET, SO_DOMAIN, &family) != 0 || family != AF_UNIX) {
        return -EOPNOTSUPP;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        return -errno;
    }
    *credentials = (weft_credentials){ .pid = peer.pid, .uid = peer.uid, .gid = peer.gid };
    return 0;
}

int weft_stream_credentials(weft_stream *stream, weft_credentials *credentials)
{
    WITH_FD(stream, credentials_of(fd, credentials));
}

/* A stackless task may open a socket at a numeric address, which never suspends. */
int wf_socket_begin(const char *call)
{
    weft_time never = WEFT_NEVER;
    if (wf_worker_current() != NULL && wf_fiber_current() == NULL) {
        return weft_cancelled() ? WEFT_ECANCELED : 0;
    }
    return wf_await_begin(&never, call, "resolve names in a fiber");
}
