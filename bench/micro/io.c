/* SPDX-License-Identifier: MIT */
/*
 * io.c - I/O rows within one process. Rows with peer processes are in bench/echo.
 */
#include "harness.h"

/*
 * io.busy_worker_delay: a task waits for data on a worker that then starts to compute, while
 * another worker is idle. The figure is the longest delay until the data is noticed.
 */

enum {
    DELAYS = 40,
    COMPUTE_NS = 25 * 1000 * 1000,
    WRITE_AFTER_NS = 6 * 1000 * 1000, /* by then the monitor has seen that it computes */
};

struct delay {
    weft_stream *near;
    weft_stream *far;
    weft_time noticed;
    struct bench_gate computes;
};

static int compute(void *arg)
{
    struct delay *delay = arg;
    weft_time end = weft_now() + COMPUTE_NS;
    bench_gate_open(&delay->computes);
    while (weft_now() < end) {
    }
    return 0;
}

/* When this fiber waits, the other one starts on the same worker. */
static int wait_beside_it(void *arg)
{
    struct delay *delay = arg;
    char byte;
    weft_task *other;
    weft_fiber_spec spec = { .function = compute,
                             .arg = delay,
                             .pinned = WEFT_PINNED_TO((unsigned)weft_worker_current()) };
    BENCH_CHECK(weft_go_with(&other, &spec) == 0);
    BENCH_CHECK(weft_read(delay->far, &byte, 1, WEFT_NEVER) == 1);
    delay->noticed = weft_now();
    BENCH_CHECK(byte == 'x');
    return weft_join(other, NULL, WEFT_NEVER);
}

static int open_both(void *arg)
{
    struct delay *delay = arg;
    return weft_stream_pair(&delay->near, &delay->far);
}

static int close_both(void *arg)
{
    struct delay *delay = arg;
    weft_stream_close(delay->near);
    weft_stream_close(delay->far);
    return 0;
}

static double busy_worker_delay(const struct bench_run *run)
{
    struct delay delay = { 0 };
    double longest = 0;
    bench_run_fiber(run, open_both, &delay);
    for (unsigned i = 0; i < DELAYS; i++) {
        weft_task *reader;
        int result;
        weft_fiber_spec spec = { .function = wait_beside_it, .arg = &delay };
        BENCH_CHECK(weft_runtime_go(run->rt, &reader, &spec) == 0);
        bench_gate_pass(&delay.computes);
        bench_wait_until(weft_now() + WRITE_AFTER_NS);
        weft_time written = weft_now();
        BENCH_CHECK(weft_try_write(delay.near, "x", 1) == 1);
        BENCH_CHECK(weft_join(reader, &result, WEFT_NEVER) == 0 && result == 0);
        double ns = (double)(delay.noticed - written);
        longest = ns > longest ? ns : longest;
    }
    bench_run_fiber(run, close_both, &delay);
    return longest;
}

const struct bench_row bench_io_rows[] = {
    { .name = "io.busy_worker_delay",
      .unit = "ns",
      .run = busy_worker_delay,
      .reps_max = 5,
      .workers_min = 2 },
    { 0 },
};
