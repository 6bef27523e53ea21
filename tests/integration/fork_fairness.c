/* SPDX-License-Identifier: MIT */
/*
 * Fairness of parallel computations to the pinned tasks of their worker.
 *
 * The wait of a task is measured as CPU time of its worker, so the load of the machine does not
 * count. The monitor asks a computation to yield. It needs a processor for that, so single waits
 * may be long on a busy machine: the test checks the median.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <weft.h>

#include "base/atomic.h"
#include "rt.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "test.h"
#include "timing.h"

enum {
    RUN_NS = 60 * 1000 * 1000,       /* CPU time of the worker, in each round */
    WAIT_NS = 100 * 1000,            /* minimum CPU time between two turns that counts as a wait */
    MEDIAN_MAX_NS = 5 * 1000 * 1000, /* of all waits; starvation is a single wait of RUN_NS */
    WAITS_MAX = 10000,
    SPINS = 500, /* in a leaf */
    DEPTH = 10,
    CELLS = 100000,
};

/* Written by tasks that are pinned to worker 0. */
static struct {
    int64_t started;
    int64_t last_turn;
    unsigned count;
    int64_t ns[WAITS_MAX];
} waits;

static _Atomic(bool) is_over;

static int64_t cpu_of_thread(void)
{
    struct timespec cpu;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (int64_t)cpu.tv_sec * WEFT_S + cpu.tv_nsec;
}

/* A leaf of the computation, on any worker. */
static void compute(void)
{
    for (unsigned i = 0; i < SPINS; i++) {
        __asm__ volatile("");
    }
    if (weft_worker_current() == 0 && cpu_of_thread() - waits.started > RUN_NS) {
        atomic_store(&is_over, true);
    }
}

static int compute_range(size_t first, size_t end, void *arg)
{
    (void)arg;
    for (size_t i = first; i < end; i += SPINS) {
        compute();
    }
    return 0;
}

static void compute_tree(void *arg)
{
    unsigned depth = *(const unsigned *)arg;
    if (depth == 0) {
        compute();
        return;
    }
    unsigned below = depth - 1;
    weft_join2(compute_tree, &below, compute_tree, &below);
}

static int loop_in_fiber(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        CHECK_EQ(weft_for(0, CELLS, compute_range, NULL, NULL), 0);
    }
    return 0;
}

static int tree_in_fiber(void *arg)
{
    (void)arg;
    unsigned depth = DEPTH;
    while (!atomic_load(&is_over)) {
        compute_tree(&depth);
    }
    return 0;
}

static int loop_in_stackless_task(weft_co *co, void *state)
{
    (void)co;
    return loop_in_fiber(state);
}

/* Yields, and records how long it waited for each turn. */
static int take_turns(weft_co *co, void *state)
{
    (void)state;
    int err = 0;
    WEFT_BEGIN(co);
    waits.started = cpu_of_thread();
    waits.last_turn = waits.started;
    while (!atomic_load(&is_over)) {
        WEFT_YIELD(co, err);
        CHECK_EQ(err, 0);
        int64_t now = cpu_of_thread();
        if (now - waits.last_turn > WAIT_NS && waits.count < WAITS_MAX) {
            waits.ns[waits.count++] = now - waits.last_turn;
        }
        waits.last_turn = now;
    }
    WEFT_END(co, 0);
}

static int yield_until_over(weft_co *co, void *state)
{
    (void)state;
    int err = 0;
    WEFT_BEGIN(co);
    while (!atomic_load(&is_over)) {
        WEFT_YIELD(co, err);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, 0);
}

static weft_task *spawn_pinned(weft_runtime *rt, weft_body_fn body, unsigned worker)
{
    weft_task *task;
    weft_spec spec = { .body = body, .pinned = WEFT_PINNED_TO(worker) };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    return task;
}

static weft_task *go_pinned(weft_runtime *rt, int (*function)(void *arg))
{
    weft_task *task;
    weft_fiber_spec spec = { .function = function, .pinned = WEFT_PINNED_TO(0) };
    CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
    return task;
}

/* One computation on worker 0; all other workers run short polls. */
struct row {
    int (*fiber)(void *arg); /* or: */
    weft_body_fn body;
    unsigned workers;
    bool monitor_sleeps; /* when the tasks are spawned */
};

static void wait_for_monitor_to_sleep(weft_runtime *rt)
{
    while (wf_load_relaxed(&rt->sched->watch.asleep) == 0) {
        test_wait_ns(WEFT_MS);
    }
}

static int compare(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a;
    int64_t second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

static void run_row(const struct row *row)
{
    weft_runtime *rt = test_start(row->workers);
    weft_task *tasks[4];
    unsigned count = 0;
    if (row->monitor_sleeps) {
        wait_for_monitor_to_sleep(rt);
    }
    waits.count = 0;
    atomic_store(&is_over, false);
    for (unsigned i = 1; i < row->workers; i++) {
        tasks[count++] = spawn_pinned(rt, yield_until_over, i);
    }
    tasks[count++] = spawn_pinned(rt, take_turns, 0);
    tasks[count++] =
        row->fiber != NULL ? go_pinned(rt, row->fiber) : spawn_pinned(rt, row->body, 0);
    for (unsigned i = 0; i < count; i++) {
        CHECK_EQ(test_join(tasks[i]), 0);
    }
    weft_runtime_destroy(rt);
    CHECK_GE(waits.count, 1);
    qsort(waits.ns, waits.count, sizeof waits.ns[0], compare);
    CHECK_LE(waits.ns[waits.count / 2], MEDIAN_MAX_NS);
}

static void pinned_task_gets_turns_beside_parallel_computation(void)
{
    static const struct row rows[] = {
        { .fiber = loop_in_fiber },
        { .fiber = tree_in_fiber },
        { .body = loop_in_stackless_task },
    };
    for (unsigned i = 0; i < 4 * sizeof rows / sizeof rows[0]; i++) {
        struct row row = rows[i / 4];
        row.workers = 1 + i % 2;
        row.monitor_sleeps = i / 2 % 2 != 0;
        run_row(&row);
    }
}

/* --- Out of memory ----------------------------------------------------------------------- */

static _Atomic(bool) has_no_memory;
static _Atomic(bool) has_run;
static _Atomic(bool) has_run_beside;

static void *allocate(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    return atomic_load(&has_no_memory) ? NULL
                                       : aligned_alloc(align, (size + align - 1) / align * align);
}

static void release(void *ctx, void *ptr, size_t size, size_t align)
{
    (void)ctx;
    (void)size;
    (void)align;
    free(ptr);
}

static int note_run(void *arg)
{
    (void)arg;
    atomic_store(&has_run, true);
    return 0;
}

static int loop_without_memory(void *arg)
{
    weft_task *task;
    (void)arg;
    waits.started = cpu_of_thread();
    CHECK_EQ(weft_go(&task, note_run, NULL), 0);
    atomic_store(&has_no_memory, true);
    CHECK_EQ(loop_in_fiber(NULL), 0);
    atomic_store(&has_run_beside, atomic_load(&has_run));
    atomic_store(&has_no_memory, false);
    return weft_join(task, NULL, WEFT_NEVER);
}

/*
 * Goal:   a queued task starts beside a loop that has no memory for a fork context.
 * Method: the loop takes 60 ms of CPU time; the task is queued behind it, on the only worker.
 */
static void queued_task_runs_beside_loop_without_memory(void)
{
    const weft_allocator allocator = { .alloc = allocate, .free = release };
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.allocator = &allocator;
    weft_runtime *rt = test_start_with(&config);
    atomic_store(&is_over, false);
    CHECK_EQ(test_run(rt, loop_without_memory, NULL), 0);
    CHECK(atomic_load(&has_run_beside));
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(queued_task_runs_beside_loop_without_memory),
    TEST(pinned_task_gets_turns_beside_parallel_computation),
})
