/* SPDX-License-Identifier: MIT */
/*
 * load.h - declarations shared by the parts of weft-load.
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

/* A server that makes no progress for this long has failed. This bounds the duration of a run. */
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

/* Exits with code 1: figures of a faulty server are worthless. */
__attribute__((format(printf, 1, 2))) _Noreturn void load_fail(const char *format, ...);

/* Returns a connected socket whose calls fail with EAGAIN after LOAD_STALL_NS. */
int load_connect(const struct load_options *options);

/* Run the load and print the results. */
void load_echo(const struct load_options *options);
void load_bulk(const struct load_options *options);

#endif
