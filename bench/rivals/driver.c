/* SPDX-License-Identifier: MIT */
/*
 * driver.c - command line and report of a rival in C or C++; see driver.h.
 */
#include "driver.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../work.h"

enum {
    REPS_DEFAULT = 7,
    NUMBER_MAX = 1000,
};

struct options {
    bool json;
    const char *filter;
    unsigned workers;
    unsigned reps;
};

void driver_failed(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: wrong: %s\n", file, line, what);
    exit(1);
}

double driver_ms_since(int64_t start_ns)
{
    return (double)(work_now_ns() - start_ns) / 1e6;
}

void *driver_allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    DRIVER_CHECK(memory != NULL);
    return memory;
}

static int64_t time_fib(long (*function)(int n))
{
    volatile int n = WORK_FIB_EXTRA; /* hides the value from the compiler */
    int64_t start = work_now_ns();
    long result = function(n);
    int64_t took = work_now_ns() - start;
    DRIVER_CHECK(result == WORK_FIB_EXTRA_RESULT);
    return took;
}

double driver_fork_extra(long (*direct)(int n), long (*forked)(int n))
{
    int64_t direct_ns = INT64_MAX;
    int64_t forked_ns = INT64_MAX;
    for (int i = 0; i < WORK_FIB_EXTRA_PAIRS; i++) {
        int64_t took = time_fib(direct);
        direct_ns = took < direct_ns ? took : direct_ns;
        took = time_fib(forked);
        forked_ns = took < forked_ns ? took : forked_ns;
    }
    return (double)(forked_ns - direct_ns) / WORK_FIB_EXTRA_FORKS;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_row(const struct driver_row *row, const struct options *options)
{
    static double values[NUMBER_MAX];
    unsigned n = options->reps;
    if (row->reps_max != 0 && n > row->reps_max) {
        n = row->reps_max;
    }
    for (unsigned i = 0; i < row->warmups; i++) {
        (void)row->run(options->workers);
    }
    for (unsigned i = 0; i < n; i++) {
        values[i] = row->run(options->workers);
    }
    qsort(values, n, sizeof values[0], compare);
    double median = (values[(n - 1) / 2] + values[n / 2]) / 2;
    const char *format = options->json
                             ? "{\"bench\":\"%s\",\"workers\":%u,\"unit\":\"%s\",\"median\":%.2f,"
                               "\"min\":%.2f,\"max\":%.2f,\"n\":%u}\n"
                             : "%-22s %3u  %-5s %12.2f %12.2f %12.2f %4u\n";
    (void)printf(format, row->name, options->workers, row->unit, median, values[0], values[n - 1],
                 n);
    (void)fflush(stdout);
}

/* Runs a row in its own process, so that no row inherits another one's memory and threads. */
static void run_in_child(const struct driver_row *row, const struct options *options)
{
    pid_t child = fork();
    DRIVER_CHECK(child >= 0);
    if (child == 0) {
        run_row(row, options);
        exit(0);
    }
    int status;
    DRIVER_CHECK(waitpid(child, &status, 0) == child);
    if (status != 0) {
        exit(1);
    }
}

__attribute__((noreturn)) static void usage(const struct driver *driver)
{
    (void)fprintf(stderr, "usage: %s [--json] [--workers N] [--filter NAME] [--reps R]\n",
                  driver->program);
    exit(2);
}

static unsigned positive(const struct driver *driver, const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || value == 0 || value > NUMBER_MAX) {
        usage(driver);
    }
    return (unsigned)value;
}

static struct options parse(const struct driver *driver, int argc, char **argv)
{
    struct options options = { .filter = "", .workers = 1, .reps = REPS_DEFAULT };
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0) {
            options.json = true;
        } else if (strcmp(argv[i], "--workers") == 0 && more) {
            options.workers = positive(driver, argv[++i]);
        } else if (strcmp(argv[i], "--filter") == 0 && more) {
            options.filter = argv[++i];
        } else if (strcmp(argv[i], "--reps") == 0 && more) {
            options.reps = positive(driver, argv[++i]);
        } else {
            usage(driver);
        }
    }
    return options;
}

int driver_main(const struct driver *driver, int argc, char **argv)
{
    struct options options = parse(driver, argc, argv);
    if (options.workers > driver->workers_max) {
        (void)fprintf(stderr, "%s: no more than %u workers\n", driver->program,
                      driver->workers_max);
        return 2;
    }
    unsigned found = 0;
    for (const struct driver_row *row = driver->rows; row->name != NULL; row++) {
        if (strcmp(row->name, options.filter) == 0) {
            run_row(row, &options);
            return 0;
        }
    }
    for (const struct driver_row *row = driver->rows; row->name != NULL; row++) {
        if (strncmp(row->name, options.filter, strlen(options.filter)) == 0) {
            run_in_child(row, &options);
            found++;
        }
    }
    if (found == 0) {
        (void)fprintf(stderr, "%s: no row is named %s\n", driver->program, options.filter);
        return 2;
    }
    return 0;
}
