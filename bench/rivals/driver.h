/* SPDX-License-Identifier: MIT */
/*
 * driver.h - command line and report of a rival in C or C++, the same as those of weft-bench.
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
    double (*run)(unsigned workers); /* does the work once, checks it and returns the figure */
    unsigned warmups;
    unsigned reps_max; /* 0: as requested */
};

/* A rival: its name and its rows. A row without a name ends the table. */
struct driver {
    const char *program;
    const struct driver_row *rows;
    unsigned workers_max;
};

int driver_main(const struct driver *driver, int argc, char **argv);

/* Exits if the condition is false: a wrong result must never look like a figure. */
#define DRIVER_CHECK(condition)                                                                    \
    ((condition) ? (void)0 : driver_failed(__FILE__, __LINE__, #condition))
__attribute__((noreturn)) void driver_failed(const char *file, int line, const char *what);

double driver_ms_since(int64_t start_ns);
void *driver_allocate(size_t bytes);

/*
 * Does the work of par.fork_extra: runs fib(32) with both functions alternately and uses the
 * shortest time of each. Returns the cost of a fork beyond that of a direct call.
 */
double driver_fork_extra(long (*direct)(int n), long (*forked)(int n));

#ifdef __cplusplus
}
#endif

#endif
