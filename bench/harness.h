/* SPDX-License-Identifier: MIT */
/*
 * harness.h - rows of weft-bench, and what they are measured with.
 *
 * A row is a function that does the work once and returns what one operation
 * cost. The harness calls it for warm-up, then several times, and reports the
 * median and the spread.
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft.h>

struct bench_run {
    weft_runtime *rt; /* made once per row; NULL if the row wants none */
    unsigned workers;
};

struct bench_row {
    const char *name;
    const char *unit; /* "ns", "ms" or "bytes" */
    double (*run)(const struct bench_run *run);
    unsigned warmups;
    unsigned reps_max; /* 0: as many as asked for */
    bool without_runtime;
    unsigned workers_min; /* left out with fewer */
    unsigned workers_max; /* 0: as many as asked for; else no more than these */
};

/* Tables of rows, one per file in micro/. They end with a row without name. */
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

/* Ends the program: a benchmark whose result is wrong measures nothing. */
#define BENCH_CHECK(condition)                                                                     \
    ((condition) ? (void)0 : bench_failed(__FILE__, __LINE__, #condition))
_Noreturn void bench_failed(const char *file, int line, const char *what);

/* The middle of n values; sorts them. */
double bench_median(double *values, size_t n);

/* Spawns a body and waits, on this thread, for its end; checks both. */
void bench_run_body(const struct bench_run *run, weft_body_fn body, const void *state,
                    size_t state_size);

/* The same with a fiber. */
void bench_run_fiber(const struct bench_run *run, int (*function)(void *arg), void *arg);

/* Waits on this thread until the time. */
void bench_wait_until(weft_time time);

/* A gate that one thread opens and another sleeps at. Zero is shut. */
struct bench_gate {
    uint32_t word;
};
void bench_gate_open(struct bench_gate *gate);
void bench_gate_pass(struct bench_gate *gate); /* shuts it again */

int64_t bench_cpu_ns(void);
size_t bench_rss_bytes(void);

#endif
