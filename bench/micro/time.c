/* SPDX-License-Identifier: MIT */
/*
 * time.c - rows for timers.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "harness.h"

enum {
    CREATE_CANCEL = 1000000,
    SLEEPS = 1000000,
    LATE_TASKS = 1000,
    LATE_STEPS = 10,
};

static _Atomic(uint64_t) counted;

/* time.create_cancel: start and stop a timer that never fires, repeatedly. */

static void never_called(void *arg)
{
    (void)arg;
    BENCH_CHECK(false);
}

static int create_cancel_main(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < CREATE_CANCEL; i++) {
        weft_timer timer = { 0 };
        weft_timer_start(&timer, weft_after(WEFT_S), 0, never_called, NULL);
        BENCH_CHECK(weft_timer_stop(&timer));
    }
    return 0;
}

static double create_cancel(const struct bench_run *run)
{
    weft_time start = weft_now();
    bench_run_fiber(run, create_cancel_main, NULL);
    return (double)(weft_now() - start) / CREATE_CANCEL;
}

/* time.million_sleeps_cpu: CPU time of a million tasks that sleep for up to one second. */

struct sleeper {
    uint32_t index;
    weft_sleep_future sleep;
};

static int sleeper_body(weft_co *co, void *state)
{
    struct sleeper *s = state;
    int err;
    WEFT_BEGIN(co);
    weft_sleep_init(&s->sleep, weft_after((1 + s->index * 7919LL % 1000) * WEFT_MS), 0);
    WEFT_AWAIT(co, err, &s->sleep.future);
    BENCH_CHECK(err == 0);
    atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed);
    WEFT_END(co, 0);
}

static int sleeps_main(void *arg)
{
    weft_task **tasks = arg;
    struct sleeper state = { 0 };
    weft_spec spec = { .body = sleeper_body, .state = &state, .state_size = sizeof state };
    for (uint32_t i = 0; i < SLEEPS; i++) {
        state.index = i;
        BENCH_CHECK(weft_spawn(&tasks[i], &spec) == 0);
        if (i % 256 == 255) {
            BENCH_CHECK(weft_yield() == 0); /* Sleeps begin while later tasks are still being
                                             * spawned. */
        }
    }
    for (uint32_t i = 0; i < SLEEPS; i++) {
        BENCH_CHECK(weft_join(tasks[i], NULL, WEFT_NEVER) == 0);
    }
    return 0;
}

static double million_sleeps_cpu(const struct bench_run *run)
{
    weft_task **tasks = calloc(SLEEPS, sizeof *tasks);
    BENCH_CHECK(tasks != NULL);
    atomic_store(&counted, 0);
    int64_t before = bench_cpu_ns();
    bench_run_fiber(run, sleeps_main, tasks);
    double ms = (double)(bench_cpu_ns() - before) / 1e6;
    BENCH_CHECK(atomic_load(&counted) == SLEEPS);
    free(tasks);
    return ms;
}

/* time.lateness_p99: delay between a sleeper's deadline and the moment it resumes. */

static double lateness[LATE_TASKS * LATE_STEPS];

struct late {
    uint32_t task;
    uint32_t step;
    weft_time deadline;
    weft_sleep_future sleep;
};

static int late_body(weft_co *co, void *state)
{
    struct late *s = state;
    int err;
    WEFT_BEGIN(co);
    for (s->step = 0; s->step < LATE_STEPS; s->step++) {
        s->deadline = weft_after((1 + (s->task + 37 * s->step) * 7919LL % 100) * WEFT_MS);
        weft_sleep_init(&s->sleep, s->deadline, 0);
        WEFT_AWAIT(co, err, &s->sleep.future);
        BENCH_CHECK(err == 0);
        weft_time late = weft_now() - s->deadline;
        BENCH_CHECK(late >= 0);
        lateness[s->task * LATE_STEPS + s->step] = (double)late;
    }
    WEFT_END(co, 0);
}

static int late_main(void *arg)
{
    weft_task **tasks = arg;
    struct late state = { 0 };
    weft_spec spec = { .body = late_body, .state = &state, .state_size = sizeof state };
    for (uint32_t i = 0; i < LATE_TASKS; i++) {
        state.task = i;
        BENCH_CHECK(weft_spawn(&tasks[i], &spec) == 0);
    }
    for (uint32_t i = 0; i < LATE_TASKS; i++) {
        BENCH_CHECK(weft_join(tasks[i], NULL, WEFT_NEVER) == 0);
    }
    return 0;
}

static double lateness_p99(const struct bench_run *run)
{
    static weft_task *tasks[LATE_TASKS];
    bench_run_fiber(run, late_main, tasks);
    (void)bench_median(lateness, LATE_TASKS * LATE_STEPS); /* for its side effect: it sorts */
    return lateness[LATE_TASKS * LATE_STEPS * 99 / 100];
}

const struct bench_row bench_time_rows[] = {
    { .name = "time.create_cancel", .unit = "ns", .run = create_cancel, .warmups = 2 },
    { .name = "time.million_sleeps_cpu", .unit = "ms", .run = million_sleeps_cpu, .reps_max = 1 },
    { .name = "time.lateness_p99", .unit = "ns", .run = lateness_p99, .warmups = 0 },
    { 0 },
};
