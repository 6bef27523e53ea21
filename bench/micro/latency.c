/* SPDX-License-Identifier: MIT */
/*
 * latency.c - rows for the scheduling latency of a runnable task while workers are busy.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "harness.h"

enum {
    PROBES = 1000,
    PROBE_GAP_US = 300, /* plus up to 1000, so that probes hit any phase */
    STALLS = 100,
    STALL_MS = 10,
    BUSY_TASKS_PER_WORKER = 4,
};

static void spin_until(weft_time at)
{
    while (weft_now() < at) {
    }
}

static double percentile_99(double *values, size_t n)
{
    (void)bench_median(values, n);
    return values[n * 99 / 100];
}

/* Tasks that compute for a while and yield, until busy_over is set. */

static _Atomic(bool) busy_over;

struct busy {
    int64_t length;
};

static int busy_body(weft_co *co, void *state)
{
    (void)co;
    spin_until(weft_now() + ((struct busy *)state)->length);
    return atomic_load_explicit(&busy_over, memory_order_relaxed) ? 0 : WEFT_YIELDED;
}

/* A task that records when it starts. */

struct probe {
    weft_time *started;
    struct bench_gate *gate;
};

static int probe_body(weft_co *co, void *state)
{
    (void)co;
    struct probe *probe = state;
    *probe->started = weft_now();
    bench_gate_open(probe->gate);
    return 0;
}

static double probe_once(weft_runtime *rt)
{
    weft_time started = 0;
    struct bench_gate gate = { 0 };
    struct probe probe = { &started, &gate };
    weft_spec spec = { .body = probe_body, .state = &probe, .state_size = sizeof probe };
    bench_wait_until(weft_now() + (PROBE_GAP_US + rand() % 1000) * WEFT_US);
    weft_time before = weft_now();
    BENCH_CHECK(weft_runtime_spawn(rt, NULL, &spec) == 0);
    bench_gate_pass(&gate);
    return (double)(started - before);
}

/*
 * sched.busy_*: the p99 of the time from a plain thread's spawn to the task's first poll, while
 * every worker has tasks of this length in its queue.
 */
static double injected_while_busy(const struct bench_run *run, int64_t length)
{
    weft_task *tasks[BUSY_TASKS_PER_WORKER * 64];
    size_t count = BUSY_TASKS_PER_WORKER * (run->workers < 64 ? run->workers : 64);
    struct busy busy = { length };
    weft_spec spec = { .body = busy_body, .state = &busy, .state_size = sizeof busy };
    atomic_store(&busy_over, false);
    for (size_t i = 0; i < count; i++) {
        BENCH_CHECK(weft_runtime_spawn(run->rt, &tasks[i], &spec) == 0);
    }
    double *latencies = malloc(PROBES * sizeof *latencies);
    BENCH_CHECK(latencies != NULL);
    for (int i = 0; i < PROBES; i++) {
        latencies[i] = probe_once(run->rt);
    }
    atomic_store(&busy_over, true);
    for (size_t i = 0; i < count; i++) {
        BENCH_CHECK(weft_join(tasks[i], NULL, WEFT_NEVER) == 0);
    }
    double p99 = percentile_99(latencies, PROBES);
    free(latencies);
    return p99;
}

static double busy_1us(const struct bench_run *run)
{
    return injected_while_busy(run, WEFT_US);
}

static double busy_10us(const struct bench_run *run)
{
    return injected_while_busy(run, 10 * WEFT_US);
}

static double busy_100us(const struct bench_run *run)
{
    return injected_while_busy(run, 100 * WEFT_US);
}

static double busy_1ms(const struct bench_run *run)
{
    return injected_while_busy(run, WEFT_MS);
}

/*
 * sched.stalled_wake: a task wakes another one and then computes. The figure is the p99 of the
 * time until the other task starts, on a worker that was idle.
 */

struct stalled {
    _Atomic(weft_waker *) waker;
    _Atomic(bool) called;
    _Atomic(weft_time) started;
};

static int sleeper_body(weft_co *co, void *state)
{
    (void)co;
    struct stalled *s = *(struct stalled **)state;
    if (!atomic_load(&s->called)) {
        atomic_store(&s->waker, weft_waker_current());
        return WEFT_PENDING;
    }
    atomic_store(&s->started, weft_now());
    return 0;
}

static int waker_body(weft_co *co, void *state)
{
    (void)co;
    struct stalled *s = *(struct stalled **)state;
    weft_time before = weft_now();
    atomic_store(&s->called, true);
    weft_waker_fire(atomic_load(&s->waker));
    spin_until(before + STALL_MS * WEFT_MS);
    weft_time started = atomic_load(&s->started);
    return started == 0 ? STALL_MS * 1000000 : (int)(started - before);
}

static double stalled_once(const struct bench_run *run)
{
    struct stalled stalled = { .called = false };
    struct stalled *pointer = &stalled;
    weft_task *sleeper;
    weft_task *waker;
    int latency;
    weft_spec spec = { .body = sleeper_body, .state = &pointer, .state_size = sizeof pointer };
    BENCH_CHECK(weft_runtime_spawn(run->rt, &sleeper, &spec) == 0);
    while (atomic_load(&stalled.waker) == NULL) {
    }
    bench_wait_until(weft_now() + 20 * WEFT_MS); /* the monitor sleeps, too */
    spec.body = waker_body;
    BENCH_CHECK(weft_runtime_spawn(run->rt, &waker, &spec) == 0);
    BENCH_CHECK(weft_join(waker, &latency, WEFT_NEVER) == 0);
    BENCH_CHECK(weft_join(sleeper, NULL, WEFT_NEVER) == 0);
    return latency;
}

static double stalled_wake(const struct bench_run *run)
{
    double latencies[STALLS];
    for (int i = 0; i < STALLS; i++) {
        latencies[i] = stalled_once(run);
    }
    return percentile_99(latencies, STALLS);
}

const struct bench_row bench_latency_rows[] = {
    { .name = "sched.busy_1us", .unit = "ns", .run = busy_1us, .reps_max = 5 },
    { .name = "sched.busy_10us", .unit = "ns", .run = busy_10us, .reps_max = 5 },
    { .name = "sched.busy_100us", .unit = "ns", .run = busy_100us, .reps_max = 5 },
    { .name = "sched.busy_1ms", .unit = "ns", .run = busy_1ms, .reps_max = 5 },
    { .name = "sched.stalled_wake",
      .unit = "ns",
      .run = stalled_wake,
      .reps_max = 3,
      .workers_min = 2 },
    { 0 },
};
