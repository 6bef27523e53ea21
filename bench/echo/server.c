/* SPDX-License-Identifier: MIT */
/*
 * server.c - command line, listening socket and shutdown of the servers; see server.h.
 */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    WORKERS_MAX = 1024,
    PORT_MAX = 65535,
};

/* Uses _exit(): the caller may be a worker or a fiber, and other threads still run. */
_Noreturn void echo_fail(const char *what, int err)
{
    (void)fprintf(stderr, "echo: %s%s%s\n", what, err != 0 ? ": " : "",
                  err != 0 ? strerror(err) : "");
    _exit(1);
}

static _Noreturn void usage(const char *program, unsigned has)
{
    (void)fprintf(stderr, "usage: %s [--port N] [--workers N]%s%s%s\n", program,
                  (has & ECHO_HAS_STACKLESS) != 0 ? " [--stackless]" : "",
                  (has & ECHO_HAS_BULK) != 0 ? " [--bulk sink|source]" : "",
                  (has & ECHO_HAS_IDLE) != 0 ? " [--idle]" : "");
    exit(2);
}

static bool parse_number(const char *text, unsigned long max, unsigned long *value)
{
    char *end;
    *value = strtoul(text, &end, 10);
    return end != text && *end == '\0' && *value <= max;
}

bool echo_bulk_parse(const char *text, enum echo_bulk *bulk)
{
    *bulk = strcmp(text, "sink") == 0     ? ECHO_BULK_SINK
            : strcmp(text, "source") == 0 ? ECHO_BULK_SOURCE
                                          : ECHO_BULK_NONE;
    return *bulk != ECHO_BULK_NONE;
}

struct echo_options echo_parse(int argc, char **argv, unsigned has)
{
    struct echo_options options = { .workers = 1 };
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        bool fine = false;
        unsigned long value;
        if (strcmp(argv[i], "--port") == 0 && more) {
            fine = parse_number(argv[++i], PORT_MAX, &value);
            options.port = (uint16_t)value;
        } else if (strcmp(argv[i], "--workers") == 0 && more) {
            fine = parse_number(argv[++i], WORKERS_MAX, &value) && value > 0;
            options.workers = (unsigned)value;
        } else if (strcmp(argv[i], "--stackless") == 0) {
            fine = (has & ECHO_HAS_STACKLESS) != 0;
            options.stackless = true;
        } else if (strcmp(argv[i], "--idle") == 0) {
            fine = (has & ECHO_HAS_IDLE) != 0;
            options.idle = true;
        } else if (strcmp(argv[i], "--bulk") == 0 && more) {
            fine = echo_bulk_parse(argv[++i], &options.bulk) && (has & ECHO_HAS_BULK) != 0;
        }
        if (!fine) {
            usage(argv[0], has);
        }
    }
    return options;
}

int echo_listen(uint16_t port, int flags)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (listener < 0) {
        echo_fail("socket", errno);
    }
    int on = 1;
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0) {
        echo_fail("bind", errno);
    }
    if (listen(listener, ECHO_BACKLOG) != 0) {
        echo_fail("listen", errno);
    }
    return listener;
}

void echo_announce(uint16_t port)
{
    (void)printf("port %u\n", port);
    (void)fflush(stdout);
}

void echo_announce_socket(int listener)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    if (getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        echo_fail("getsockname", errno);
    }
    echo_announce(ntohs(address.sin_port));
}

void echo_set_nodelay(int fd)
{
    int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
        echo_fail("TCP_NODELAY", errno);
    }
}

bool echo_stdin_ended(void)
{
    char bytes[64];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

void echo_wait_for_stdin(void)
{
    while (!echo_stdin_ended()) {
    }
}
