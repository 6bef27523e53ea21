/* SPDX-License-Identifier: MIT */
/*
 * load.c - weft-load: command line of the load generator that measures all echo servers.
 *
 * The load itself is in load_echo.c and load_bulk.c.
 */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    PORT_MAX = 65535,
    SIZE_LIMIT = 1 << 20,
    SECONDS_MAX = 3600,
    GRACE_S = 60, /* for connecting and for the last echoes */
};

int64_t load_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * LOAD_S + now.tv_nsec;
}

_Noreturn void load_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("weft-load: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    exit(1);
}

int load_connect(const struct load_options *options)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(options->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval patience = { .tv_sec = LOAD_STALL_NS / LOAD_S };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        load_fail("socket: %s", strerror(errno));
    }
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
        load_fail("setsockopt: %s", strerror(errno));
    }
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        load_fail("connect to port %u: %s", options->port, strerror(errno));
    }
    echo_set_nodelay(fd);
    return fd;
}

static _Noreturn void usage(void)
{
    (void)fprintf(stderr,
                  "usage: weft-load --port P [--mode echo] [--connections N] [--size BYTES]\n"
                  "                 [--seconds S] [--warm-up S] [--server-pid PID] [--json]\n"
                  "       weft-load --port P --mode bulk --bulk sink|source\n"
                  "                 [--seconds S] [--warm-up S] [--json]\n");
    exit(2);
}

static unsigned parse_number(const char *text, unsigned long max)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || value == 0 || value > max) {
        usage();
    }
    return (unsigned)value;
}

static int64_t parse_seconds(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0 && value <= SECONDS_MAX)) {
        usage();
    }
    return (int64_t)(value * (double)LOAD_S);
}

static bool parse_mode(const char *text)
{
    if (strcmp(text, "echo") != 0 && strcmp(text, "bulk") != 0) {
        usage();
    }
    return text[0] == 'b';
}

/* Parses an option with its value. */
static void parse_one(struct load_options *options, bool *is_bulk, const char *name,
                      const char *value)
{
    if (strcmp(name, "--port") == 0) {
        options->port = (uint16_t)parse_number(value, PORT_MAX);
    } else if (strcmp(name, "--connections") == 0) {
        options->connections = parse_number(value, ECHO_FDS_MAX);
    } else if (strcmp(name, "--size") == 0) {
        options->size = parse_number(value, SIZE_LIMIT);
    } else if (strcmp(name, "--seconds") == 0) {
        options->measured_ns = parse_seconds(value);
    } else if (strcmp(name, "--warm-up") == 0) {
        options->warm_up_ns = parse_seconds(value);
    } else if (strcmp(name, "--server-pid") == 0) {
        options->server = (pid_t)parse_number(value, INT32_MAX);
    } else if (strcmp(name, "--mode") == 0) {
        *is_bulk = parse_mode(value);
    } else if (strcmp(name, "--bulk") != 0 || !echo_bulk_parse(value, &options->bulk)) {
        usage();
    }
}

static struct load_options parse(int argc, char **argv)
{
    struct load_options options = {
        .connections = 1, .size = 64, .measured_ns = LOAD_S, .warm_up_ns = LOAD_S / 4
    };
    bool is_bulk = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            options.json = true;
        } else if (i + 1 < argc) {
            parse_one(&options, &is_bulk, argv[i], argv[i + 1]);
            i++;
        } else {
            usage();
        }
    }
    if (options.port == 0 || options.measured_ns == 0 ||
        is_bulk != (options.bulk != ECHO_BULK_NONE)) {
        usage();
    }
    return options;
}

int main(int argc, char **argv)
{
    struct load_options options = parse(argc, argv);
    /* The last resort, against a server that is slow in an unforeseen way. */
    (void)alarm((unsigned)((options.warm_up_ns + options.measured_ns) / LOAD_S) + GRACE_S);
    if (options.bulk == ECHO_BULK_NONE) {
        load_echo(&options);
    } else {
        load_bulk(&options);
    }
    return 0;
}
