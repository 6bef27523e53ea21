/* SPDX-License-Identifier: MIT */
/*
 * harness.c - weft-bench: command line, repetitions and output.
 */
#include "harness.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    REPS_DEFAULT = 7,
    REPS_MAX = 1000
};

struct options {
    bool json;
    unsigned workers; /* 0: one per CPU */
    unsigned reps;
    const char *filter;
};

static const struct bench_row *const tables[] = {
    bench_sched_rows, bench_wake_rows,     bench_latency_rows, bench_fiber_rows, bench_time_rows,
    bench_par_rows,   bench_loop_rows,     bench_sort_rows,    bench_steal_rows, bench_wait_rows,
    bench_io_rows,    bench_blitz_io_rows, bench_volt_rows
};

_Noreturn void bench_failed(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "weft-bench: %s:%d: wrong result: %s\n", file, line, what);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof values[0], compare);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void bench_run_body(const struct bench_run *run, weft_body_fn body, const void *state,
                    size_t state_size)
{
    weft_task *task;
    int result;
    weft_spec spec = { .body = body, .state = state, .state_size = state_size };
    BENCH_CHECK(weft_runtime_spawn(run->rt, &task, &spec) == 0);
    BENCH_CHECK(weft_join(task, &result, WEFT_NEVER) == 0);
    BENCH_CHECK(result == 0);
}

void bench_run_fiber(const struct bench_run *run, int (*function)(void *arg), void *arg)
{
    weft_task *task;
    int result;
    weft_fiber_spec spec = { .function = function, .arg = arg };
    BENCH_CHECK(weft_runtime_go(run->rt, &task, &spec) == 0);
    BENCH_CHECK(weft_join(task, &result, WEFT_NEVER) == 0);
    BENCH_CHECK(result == 0);
}

void bench_wait_until(weft_time at)
{
    struct timespec until = { .tv_sec = at / WEFT_S, .tv_nsec = at % WEFT_S };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
}

void bench_gate_open(struct bench_gate *gate)
{
    __atomic_store_n(&gate->word, 1, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, &gate->word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

void bench_gate_pass(struct bench_gate *gate)
{
    while (__atomic_load_n(&gate->word, __ATOMIC_ACQUIRE) == 0) {
        (void)syscall(SYS_futex, &gate->word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0);
    }
    __atomic_store_n(&gate->word, 0, __ATOMIC_RELAXED);
}

int64_t bench_cpu_ns(void)
{
    struct timespec cpu;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (int64_t)cpu.tv_sec * WEFT_S + cpu.tv_nsec;
}

size_t bench_rss_bytes(void)
{
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    BENCH_CHECK(file != NULL && fscanf(file, "%lu %lu", &size, &resident) == 2);
    (void)fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void print_row(const struct options *options, const struct bench_row *row, unsigned workers,
                      double *values, size_t n)
{
    double median = bench_median(values, n);
    const char *format = options->json
                             ? "{\"bench\":\"%s\",\"workers\":%u,\"unit\":\"%s\",\"median\":%.2f,"
                               "\"min\":%.2f,\"max\":%.2f,\"n\":%zu}\n"
                             : "%-28s %3u  %-5s %12.2f %12.2f %12.2f %4zu\n";
    (void)printf(format, row->name, workers, row->unit, median, values[0], values[n - 1], n);
    (void)fflush(stdout);
}

static void run_row(const struct options *options, const struct bench_row *row)
{
    struct bench_run run = { .rt = NULL, .workers = options->workers };
    weft_config config = WEFT_CONFIG_INIT;
    if (row->workers_max != 0 && (run.workers == 0 || run.workers > row->workers_max)) {
        run.workers = row->workers_max;
    }
    config.workers = run.workers;
    if (!row->without_runtime) {
        BENCH_CHECK(weft_runtime_create(&run.rt, &config) == 0);
        run.workers = weft_runtime_workers(run.rt);
    }
    if (run.workers >= row->workers_min) {
        double values[REPS_MAX];
        unsigned reps = options->reps;
        if (row->reps_max != 0 && reps > row->reps_max) {
            reps = row->reps_max;
        }
        for (unsigned i = 0; i < row->warmups; i++) {
            (void)row->run(&run);
        }
        for (unsigned i = 0; i < reps; i++) {
            values[i] = row->run(&run);
        }
        print_row(options, row, run.workers, values, reps);
    }
    weft_runtime_destroy(run.rt);
}

static void usage(void)
{
    (void)fprintf(stderr, "usage: weft-bench [--json] [--workers N] [--filter NAME] [--reps N]\n"
                          "       weft-bench --list | --version\n");
    exit(2);
}

static unsigned number(const char *text, unsigned long max)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || value > max) {
        usage();
    }
    return (unsigned)value;
}

static struct options parse(int argc, char **argv)
{
    struct options options = { .reps = REPS_DEFAULT, .filter = "" };
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0) {
            options.json = true;
        } else if (strcmp(argv[i], "--workers") == 0 && more) {
            options.workers = number(argv[++i], WEFT_WORKERS_MAX);
        } else if (strcmp(argv[i], "--reps") == 0 && more) {
            options.reps = number(argv[++i], REPS_MAX);
        } else if (strcmp(argv[i], "--filter") == 0 && more) {
            options.filter = argv[++i];
        } else if (strcmp(argv[i], "--list") == 0) {
            options.reps = 0;
        } else if (strcmp(argv[i], "--version") == 0) {
            (void)printf("weft %s\n", weft_version());
            exit(0);
        } else {
            usage();
        }
    }
    return options;
}

static bool matches(const struct bench_row *row, const char *filter, bool exact)
{
    return exact ? strcmp(row->name, filter) == 0 : strncmp(row->name, filter, strlen(filter)) == 0;
}

/* An exact name takes precedence over the rows that it is a prefix of. */
static bool has_exact(const char *filter)
{
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        for (const struct bench_row *row = tables[t]; row->name != NULL; row++) {
            if (matches(row, filter, true)) {
                return true;
            }
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    bool exact = has_exact(options.filter);
    size_t found = 0;
    if (!options.json && options.reps > 0) {
        (void)printf("%-28s %3s  %-5s %12s %12s %12s %4s\n", "bench", "wrk", "unit", "median",
                     "min", "max", "n");
    }
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        for (const struct bench_row *row = tables[t]; row->name != NULL; row++) {
            if (!matches(row, options.filter, exact)) {
                continue;
            }
            found++;
            if (options.reps == 0) {
                (void)printf("%s\n", row->name);
            } else {
                run_row(&options, row);
            }
        }
    }
    if (found == 0) {
        (void)fprintf(stderr, "weft-bench: no row is named %s; see --list\n", options.filter);
        return 2;
    }
    return 0;
}
