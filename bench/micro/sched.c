/* SPDX-License-Identifier: MIT */
/*
 * sched.c - rows for spawning, yielding, waking and stealing tasks.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "harness.h"

enum {
    SPAWN_JOIN = 100000,
    BATCH = 10000,
    BATCH_ROUNDS = 10,
    YIELD_TASKS = 1000,
    YIELDS = 1000,
    SELF_WAKES = 1000000,
    INJECTED = 100000,
    IDLE_TASKS = 1000000,
    STEAL_TASKS = 128,
    STEAL_ROUNDS = 200,
};

static _Atomic(uint64_t) counted;

static int count_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed);
    return 0;
}

static const weft_spec count_spec = { .body = count_body };

/* sched.spawn_join: spawn and join one task at a time. */

struct spawn_join {
    uint32_t i;
    weft_task *task;
    weft_join_future join;
};

static int spawn_join_body(weft_co *co, void *state)
{
    struct spawn_join *s = state;
    int err;
    WEFT_BEGIN(co);
    for (s->i = 0; s->i < SPAWN_JOIN; s->i++) {
        BENCH_CHECK(weft_spawn(&s->task, &count_spec) == 0);
        weft_join_init(&s->join, s->task, NULL);
        WEFT_AWAIT(co, err, &s->join.future);
        BENCH_CHECK(err == 0);
    }
    WEFT_END(co, 0);
}

static double spawn_join(const struct bench_run *run)
{
    atomic_store(&counted, 0);
    weft_time start = weft_now();
    bench_run_body(run, spawn_join_body, NULL, sizeof(struct spawn_join));
    double ns = (double)(weft_now() - start);
    BENCH_CHECK(atomic_load(&counted) == SPAWN_JOIN);
    return ns / SPAWN_JOIN;
}

/* sched.spawn_batch: spawn 10 000 tasks, then join them all. */

struct spawn_batch {
    weft_task **tasks;
    uint32_t round;
    uint32_t i;
    weft_join_future join;
};

static int spawn_batch_body(weft_co *co, void *state)
{
    struct spawn_batch *s = state;
    int err;
    WEFT_BEGIN(co);
    for (s->round = 0; s->round < BATCH_ROUNDS; s->round++) {
        for (s->i = 0; s->i < BATCH; s->i++) {
            BENCH_CHECK(weft_spawn(&s->tasks[s->i], &count_spec) == 0);
        }
        for (s->i = 0; s->i < BATCH; s->i++) {
            weft_join_init(&s->join, s->tasks[s->i], NULL);
            WEFT_AWAIT(co, err, &s->join.future);
            BENCH_CHECK(err == 0);
        }
    }
    WEFT_END(co, 0);
}

static double spawn_batch(const struct bench_run *run)
{
    weft_task **tasks = calloc(BATCH, sizeof *tasks);
    BENCH_CHECK(tasks != NULL);
    struct spawn_batch state = { .tasks = tasks };
    atomic_store(&counted, 0);
    weft_time start = weft_now();
    bench_run_body(run, spawn_batch_body, &state, sizeof state);
    double ns = (double)(weft_now() - start);
    BENCH_CHECK(atomic_load(&counted) == BATCH * BATCH_ROUNDS);
    free(tasks);
    return ns / (BATCH * BATCH_ROUNDS);
}

/* sched.yield: 1000 tasks yield 1000 times each. */

struct yielder {
    uint32_t i;
};

static int yielder_body(weft_co *co, void *state)
{
    struct yielder *s = state;
    int err;
    WEFT_BEGIN(co);
    for (s->i = 0; s->i < YIELDS; s->i++) {
        WEFT_YIELD(co, err);
        BENCH_CHECK(err == 0);
    }
    atomic_fetch_add_explicit(&counted, s->i, memory_order_relaxed);
    WEFT_END(co, 0);
}

struct yield_driver {
    weft_task *tasks[YIELD_TASKS];
    uint32_t i;
    weft_join_future join;
};

static int yield_driver_body(weft_co *co, void *state)
{
    static const weft_spec spec = { .body = yielder_body, .state_size = sizeof(struct yielder) };
    struct yield_driver *s = state;
    int err;
    WEFT_BEGIN(co);
    for (s->i = 0; s->i < YIELD_TASKS; s->i++) {
        BENCH_CHECK(weft_spawn(&s->tasks[s->i], &spec) == 0);
    }
    for (s->i = 0; s->i < YIELD_TASKS; s->i++) {
        weft_join_init(&s->join, s->tasks[s->i], NULL);
        WEFT_AWAIT(co, err, &s->join.future);
        BENCH_CHECK(err == 0);
    }
    WEFT_END(co, 0);
}

static double yields(const struct bench_run *run)
{
    atomic_store(&counted, 0);
    weft_time start = weft_now();
    bench_run_body(run, yield_driver_body, NULL, sizeof(struct yield_driver));
    double ns = (double)(weft_now() - start);
    BENCH_CHECK(atomic_load(&counted) == YIELD_TASKS * YIELDS);
    return ns / (YIELD_TASKS * YIELDS);
}

/* sched.self_wake: a task wakes itself and returns WEFT_PENDING. */

struct self_wake {
    uint32_t i;
};

static int self_wake_body(weft_co *co, void *state)
{
    struct self_wake *s = state;
    (void)co;
    if (s->i++ == SELF_WAKES) {
        return 0;
    }
    weft_waker_fire(weft_waker_current());
    return WEFT_PENDING;
}

static double self_wake(const struct bench_run *run)
{
    weft_time start = weft_now();
    bench_run_body(run, self_wake_body, NULL, sizeof(struct self_wake));
    return (double)(weft_now() - start) / SELF_WAKES;
}

/*
 * sched.inject: a plain thread spawns tasks and sleeps until the last one has run. The inject
 * queue is bounded, so the thread waits when it is far ahead.
 */

static struct bench_gate all_injected;

static int injected_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    if (atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed) + 1 == INJECTED) {
        bench_gate_open(&all_injected);
    }
    return 0;
}

static double inject(const struct bench_run *run)
{
    static const weft_spec spec = { .body = injected_body };
    atomic_store(&counted, 0);
    weft_time start = weft_now();
    for (uint32_t i = 0; i < INJECTED; i++) {
        BENCH_CHECK(weft_runtime_spawn_wait(run->rt, NULL, &spec, WEFT_NEVER) == 0);
    }
    bench_gate_pass(&all_injected);
    return (double)(weft_now() - start) / INJECTED;
}

/* sched.task_bytes: memory per task that waits forever. */

struct idler {
    unsigned char state[32];
};

static int idler_body(weft_co *co, void *state)
{
    struct idler *s = state;
    (void)co;
    for (size_t i = 0; i < sizeof s->state; i++) {
        s->state[i] = (unsigned char)i;
    }
    atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed);
    return WEFT_PENDING;
}

static void idler_drop(void *state)
{
    struct idler *s = state;
    for (size_t i = 0; i < sizeof s->state; i++) {
        BENCH_CHECK(s->state[i] == (unsigned char)i);
    }
}

static void spawn_idlers(weft_runtime *rt, uint64_t count)
{
    static const weft_spec spec = { .body = idler_body,
                                    .drop = idler_drop,
                                    .state_size = sizeof(struct idler) };
    atomic_store(&counted, 0);
    for (uint64_t i = 0; i < count; i++) {
        BENCH_CHECK(weft_runtime_spawn_wait(rt, NULL, &spec, WEFT_NEVER) == 0);
    }
    while (atomic_load_explicit(&counted, memory_order_relaxed) < count) {
    }
}

static double task_bytes(const struct bench_run *run)
{
    weft_runtime *rt = NULL;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = run->workers;
    BENCH_CHECK(weft_runtime_create(&rt, &config) == 0);
    spawn_idlers(rt, 1000); /* one-time allocations do not count */
    size_t before = bench_rss_bytes();
    spawn_idlers(rt, IDLE_TASKS);
    double bytes = (double)(bench_rss_bytes() - before) / IDLE_TASKS;
    weft_runtime_destroy(rt);
    return bytes;
}

/*
 * sched.steal: a task fills its worker's queue and then spins, so the other workers must steal
 * to run the tasks. The figure is the time until the last task has run, per task.
 */

struct stealer {
    uint32_t i;
};

static int stealer_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    for (uint32_t i = 0; i < STEAL_TASKS; i++) {
        BENCH_CHECK(weft_spawn(NULL, &count_spec) == 0);
    }
    /* One more spawn evicts the last task from the LIFO slot and occupies the slot. */
    BENCH_CHECK(weft_spawn(NULL, &count_spec) == 0);
    while (atomic_load_explicit(&counted, memory_order_relaxed) < STEAL_TASKS) {
    }
    return 0;
}

static double steal(const struct bench_run *run)
{
    double ns = 0;
    for (uint32_t i = 0; i < STEAL_ROUNDS; i++) {
        atomic_store(&counted, 0);
        weft_time start = weft_now();
        bench_run_body(run, stealer_body, NULL, sizeof(struct stealer));
        ns += (double)(weft_now() - start);
        while (atomic_load_explicit(&counted, memory_order_relaxed) <= STEAL_TASKS) {
        }
    }
    return ns / STEAL_ROUNDS / STEAL_TASKS;
}

/* sched.idle_cpu: CPU time of an idle runtime within 2 s. */

static double idle_cpu(const struct bench_run *run)
{
    for (uint32_t i = 0; i < BATCH; i++) { /* so that every worker has run tasks */
        BENCH_CHECK(weft_runtime_spawn_wait(run->rt, NULL, &count_spec, WEFT_NEVER) == 0);
    }
    bench_wait_until(weft_now() + 100 * WEFT_MS);
    int64_t before = bench_cpu_ns();
    bench_wait_until(weft_now() + 2 * WEFT_S);
    return (double)(bench_cpu_ns() - before);
}

const struct bench_row bench_sched_rows[] = {
    { .name = "sched.spawn_join", .unit = "ns", .run = spawn_join, .warmups = 2 },
    { .name = "sched.spawn_batch", .unit = "ns", .run = spawn_batch, .warmups = 2 },
    { .name = "sched.yield", .unit = "ns", .run = yields, .warmups = 2 },
    { .name = "sched.self_wake", .unit = "ns", .run = self_wake, .warmups = 2 },
    { .name = "sched.inject", .unit = "ns", .run = inject, .warmups = 2 },
    { .name = "sched.steal", .unit = "ns", .run = steal, .warmups = 2, .workers_min = 2 },
    { .name = "sched.task_bytes", .unit = "bytes", .run = task_bytes, .reps_max = 1 },
    { .name = "sched.idle_cpu", .unit = "ns", .run = idle_cpu, .reps_max = 3 },
    { 0 },
};
