/* SPDX-License-Identifier: MIT */
/*
 * fiber.c - rows for fibers: the same work as in sched.c, with stacks.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "crew.h"
#include "fiber/context.h"
#include "harness.h"

enum {
    SWITCHES = 10000000,
    SPAWN_JOIN = 100000,
    BATCH = 10000,
    BATCH_ROUNDS = 10,
    IDLE_FIBERS = 1000000,
};

static _Atomic(uint64_t) counted;

/* fiber.switch: a bare one-way context switch between two stacks. */

static struct wf_context here;
static struct wf_context there;
static uint64_t arrivals;

static void switch_back(void *carried)
{
    (void)carried;
    wf_context_begin(&there);
    for (;;) {
        arrivals++;
        (void)wf_context_switch(&there, &here, NULL);
    }
}

static double switches(const struct bench_run *run)
{
    enum {
        STACK = 65536
    };
    (void)run;
    char *stack = aligned_alloc(16, STACK);
    BENCH_CHECK(stack != NULL);
    wf_context_init_thread(&here);
    wf_context_init(&there, stack, STACK, stack + STACK, switch_back, wf_fp_control_read());
    arrivals = 0;
    weft_time start = weft_now();
    for (uint32_t i = 0; i < SWITCHES; i++) {
        (void)wf_context_switch(&here, &there, NULL);
    }
    double ns = (double)(weft_now() - start);
    BENCH_CHECK(arrivals == SWITCHES);
    wf_context_fini(&there);
    free(stack);
    return ns / SWITCHES / 2;
}

static int count(void *arg)
{
    (void)arg;
    atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed);
    return 0;
}

/* fiber.spawn_join: spawn and join one fiber at a time. */

static int spawn_join_main(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < SPAWN_JOIN; i++) {
        weft_task *task;
        BENCH_CHECK(weft_go(&task, count, NULL) == 0);
        BENCH_CHECK(weft_join(task, NULL, WEFT_NEVER) == 0);
    }
    return 0;
}

static double spawn_join(const struct bench_run *run)
{
    atomic_store(&counted, 0);
    weft_time start = weft_now();
    bench_run_fiber(run, spawn_join_main, NULL);
    double ns = (double)(weft_now() - start);
    BENCH_CHECK(atomic_load(&counted) == SPAWN_JOIN);
    return ns / SPAWN_JOIN;
}

/* fiber.spawn_batch: spawn 10 000 fibers, then join them all. */

static int spawn_batch_main(void *arg)
{
    weft_task **tasks = arg;
    for (uint32_t round = 0; round < BATCH_ROUNDS; round++) {
        for (uint32_t i = 0; i < BATCH; i++) {
            BENCH_CHECK(weft_go(&tasks[i], count, NULL) == 0);
        }
        for (uint32_t i = 0; i < BATCH; i++) {
            BENCH_CHECK(weft_join(tasks[i], NULL, WEFT_NEVER) == 0);
        }
    }
    return 0;
}

static double spawn_batch(const struct bench_run *run)
{
    weft_task **tasks = calloc(BATCH, sizeof *tasks);
    BENCH_CHECK(tasks != NULL);
    atomic_store(&counted, 0);
    weft_time start = weft_now();
    bench_run_fiber(run, spawn_batch_main, tasks);
    double ns = (double)(weft_now() - start);
    BENCH_CHECK(atomic_load(&counted) == BATCH * BATCH_ROUNDS);
    free(tasks);
    return ns / (BATCH * BATCH_ROUNDS);
}

/* fiber.yield: 1000 fibers yield 1000 times each. */

static double yields(const struct bench_run *run)
{
    return bench_yields(run, 1000, 1000);
}

/* fiber.bytes: memory per fiber that waits forever. */

static int idler(void *arg)
{
    (void)arg;
    unsigned char state[32];
    for (size_t i = 0; i < sizeof state; i++) {
        state[i] = (unsigned char)i;
    }
    atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed);
    BENCH_CHECK(weft_sleep_until(WEFT_NEVER) == WEFT_ECANCELED);
    for (size_t i = 0; i < sizeof state; i++) {
        BENCH_CHECK(state[i] == (unsigned char)i);
    }
    return 0;
}

static int spawn_idlers(void *arg)
{
    uint64_t n = *(uint64_t *)arg;
    atomic_store(&counted, 0);
    for (uint64_t i = 0; i < n; i++) {
        BENCH_CHECK(weft_go(NULL, idler, NULL) == 0);
        if (i % 64 == 0) {
            BENCH_CHECK(weft_yield() == 0);
        }
    }
    while (atomic_load_explicit(&counted, memory_order_relaxed) < n) {
        BENCH_CHECK(weft_yield() == 0);
    }
    return 0;
}

static double fiber_bytes(const struct bench_run *run)
{
    struct bench_run own = *run;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = run->workers;
    BENCH_CHECK(weft_runtime_create(&own.rt, &config) == 0);
    uint64_t few = 1000; /* one-time allocations do not count */
    bench_run_fiber(&own, spawn_idlers, &few);
    size_t before = bench_rss_bytes();
    uint64_t many = IDLE_FIBERS;
    bench_run_fiber(&own, spawn_idlers, &many);
    double bytes = (double)(bench_rss_bytes() - before) / IDLE_FIBERS;
    weft_runtime_destroy(own.rt);
    return bytes;
}

const struct bench_row bench_fiber_rows[] = {
    { .name = "fiber.switch",
      .unit = "ns",
      .run = switches,
      .warmups = 1,
      .without_runtime = true },
    { .name = "fiber.yield", .unit = "ns", .run = yields, .warmups = 2 },
    { .name = "fiber.spawn_join", .unit = "ns", .run = spawn_join, .warmups = 2 },
    { .name = "fiber.spawn_batch", .unit = "ns", .run = spawn_batch, .warmups = 2 },
    { .name = "fiber.bytes", .unit = "bytes", .run = fiber_bytes, .reps_max = 1 },
    { 0 },
};
