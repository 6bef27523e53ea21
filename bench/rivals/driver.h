/* SPDX-License-Identifier: MIT */
/*
 * driver.h - the command line and the report of a rival in C or C++: those of weft-bench.
 */
#ifndef RIVALS_DRIVER_H
#define RIVALS_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct driver_row {
    const char *name;
    const char *unit;
    double (*run)(unsigned workers); /* does the work once and checks it; returns the figure */
    unsigned warmups;
    unsigned reps_max; /* 0: as many as asked for */
};

/* The rival: its name, and its rows, which end with one without name. */
struct driver {
    const char *program;
    const struct driver_row *rows;
    unsigned workers_max;
};

int driver_main(const struct driver *driver, int argc, char **argv);

/* Ends the program: a wrong result must never look like a figure. */
#define DRIVER_CHECK(condition)                                                                    \
    ((condition) ? (void)0 : driver_failed(__FILE__, __LINE__, #condition))
__attribute__((noreturn)) void driver_failed(const char *file, int line, const char *what);

double driver_ms_since(int64_t start_ns);
void *driver_allocate(size_t bytes);

/* The work of par.fork_extra: fib(32) by each function in turn, the shortest time of
 * each; returns what a fork costs beyond a direct call. */
double driver_fork_extra(long (*direct)(int n), long (*forked)(int n));

#ifdef __cplusplus
}
#endif

#endif
