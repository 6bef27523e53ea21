/* SPDX-License-Identifier: MIT */
/*
 * harness.h - benchmark rows of weft-bench and the helpers that they share.
 *
 * A row is a function that does the work once and returns the cost of one operation. The
 * harness calls it for warm-up, then several times, and reports the median and the spread.
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft.h>

struct bench_run {
    weft_runtime *rt; /* created once per row; NULL if the row needs none */
    unsigned workers;
};

struct bench_row {
    const char *name;
    const char *unit; /* "ns", "us", "ms" or "bytes" */
    double (*run)(const struct bench_run *run);
    unsigned warmups;
    unsigned reps_max; /* 0: as requested on the command line */
    bool without_runtime;
    unsigned workers_min; /* skipped with fewer */
    unsigned workers_max; /* 0: as requested; otherwise an upper limit */
};

/* Tables of rows, one per file in micro/. A row without a name ends a table. */
extern const struct bench_row bench_sched_rows[];
extern const struct bench_row bench_wake_rows[];
extern const struct bench_row bench_latency_rows[];
extern const struct bench_row bench_fiber_rows[];
extern const struct bench_row bench_time_rows[];
extern const struct bench_row bench_par_rows[];
extern const struct bench_row bench_loop_rows[];
extern const struct bench_row bench_sort_rows[];
extern const struct bench_row bench_steal_rows[];
extern const struct bench_row bench_wait_rows[];
extern const struct bench_row bench_io_rows[];
extern const struct bench_row bench_blitz_io_rows[];
extern const struct bench_row bench_volt_rows[];

/* Exits if the condition is false: a benchmark with a wrong result measures nothing. */
#define BENCH_CHECK(condition)                                                                     \
    ((condition) ? (void)0 : bench_failed(__FILE__, __LINE__, #condition))
_Noreturn void bench_failed(const char *file, int line, const char *what);

/* Returns the median of n values. Sorts them. */
double bench_median(double *values, size_t n);

/* Spawns a stackless task, waits for it on this thread, and checks both results. */
void bench_run_body(const struct bench_run *run, weft_body_fn body, const void *state,
                    size_t state_size);

/* Same as bench_run_body(), with a fiber. */
void bench_run_fiber(const struct bench_run *run, int (*function)(void *arg), void *arg);

/* Blocks this thread until the given time. */
void bench_wait_until(weft_time time);

/* A gate that one thread opens and another sleeps on. Zero is closed. */
struct bench_gate {
    uint32_t word;
};
void bench_gate_open(struct bench_gate *gate);
void bench_gate_pass(struct bench_gate *gate); /* waits, then closes it again */

int64_t bench_cpu_ns(void);
size_t bench_rss_bytes(void);

#endif
