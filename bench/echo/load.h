/* SPDX-License-Identifier: MIT */
/*
 * load.h - weft-load: what its parts share.
 */
#ifndef ECHO_LOAD_H
#define ECHO_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "server.h"

#define LOAD_S  INT64_C(1000000000) /* in ns */
#define LOAD_MS INT64_C(1000000)

/* A server that does nothing for so long has failed; this bounds the time of a run. */
#define LOAD_STALL_NS (5 * LOAD_S)

struct load_options {
    uint16_t port;
    unsigned connections;
    size_t size;
    int64_t warm_up_ns;
    int64_t measured_ns;
    pid_t server; /* 0: its CPU time is not measured */
    bool json;
    enum echo_bulk bulk; /* none: echo */
};

int64_t load_now_ns(void);

/* Ends the program with exit code 1: a figure of a server that is wrong is worth nothing. */
__attribute__((format(printf, 1, 2))) _Noreturn void load_fail(const char *format, ...);

/* A socket that is connected, and whose calls end with EAGAIN after LOAD_STALL_NS. */
int load_connect(const struct load_options *options);

/* Runs the load and prints what came of it. */
void load_echo(const struct load_options *options);
void load_bulk(const struct load_options *options);

#endif
