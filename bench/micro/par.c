/* SPDX-License-Identifier: MIT */
/*
 * par.c - rows for fork-join: the cost of a fork, and fork-join programs.
 *
 * The rivals do the same work, see work.h.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "harness.h"
#include "work.h"

static double ms_since(weft_time start)
{
    return (double)(weft_now() - start) / WEFT_MS;
}

/* par.fork_extra: the cost of a fork that is not stolen, beyond that of a direct call. */

static long fib_direct(int n)
{
    if (n < 2) {
        return n;
    }
    return fib_direct(n - 1) + fib_direct(n - 2);
}

WEFT_PARALLEL(long, fib, int, n)
{
    if (n < 2) {
        return n;
    }
    long first;
    long second;
    fib_both(&first, n - 1, &second, n - 2);
    return first + second;
}

struct fib2 {
    long n;
    long result;
};

static void fib_join2(void *arg)
{
    struct fib2 *all = arg;
    if (all->n < 2) {
        all->result = all->n;
        return;
    }
    struct fib2 first = { all->n - 1, 0 };
    struct fib2 second = { all->n - 2, 0 };
    weft_join2(fib_join2, &first, fib_join2, &second);
    all->result = first.result + second.result;
}

/* Same as fib_join2(), with direct calls. */
static void fib_direct2(void *arg)
{
    struct fib2 *all = arg;
    if (all->n < 2) {
        all->result = all->n;
        return;
    }
    struct fib2 first = { all->n - 1, 0 };
    struct fib2 second = { all->n - 2, 0 };
    fib_direct2(&first);
    fib_direct2(&second);
    all->result = first.result + second.result;
}

static long fib_by_direct2(int n)
{
    struct fib2 all = { n, 0 };
    fib_direct2(&all);
    return all.result;
}

static long fib_by_join2(int n)
{
    struct fib2 all = { n, 0 };
    fib_join2(&all);
    return all.result;
}

static long fib_by_parallel(int n)
{
    return fib(n);
}

static weft_time time_fib(long (*function)(int n))
{
    volatile int n = WORK_FIB_EXTRA; /* hides the value from the compiler */
    weft_time start = weft_now();
    long result = function(n);
    weft_time took = weft_now() - start;
    BENCH_CHECK(result == WORK_FIB_EXTRA_RESULT);
    return took;
}

struct extra {
    long (*direct)(int n);
    long (*forked)(int n);
    double ns;
};

/* Uses the shortest run of each kind: disturbances only make a run longer. */
static int extra_main(void *arg)
{
    struct extra *extra = arg;
    weft_time direct = INT64_MAX;
    weft_time forked = INT64_MAX;
    for (int i = 0; i < WORK_FIB_EXTRA_PAIRS; i++) {
        weft_time took = time_fib(extra->direct);
        direct = took < direct ? took : direct;
        took = time_fib(extra->forked);
        forked = took < forked ? took : forked;
    }
    extra->ns = (double)(forked - direct) / WORK_FIB_EXTRA_FORKS;
    return 0;
}

static double fork_extra(const struct bench_run *run)
{
    struct extra extra = { fib_direct, fib_by_parallel, 0 };
    bench_run_fiber(run, extra_main, &extra);
    return extra.ns;
}

static double fork_extra2(const struct bench_run *run)
{
    struct extra extra = { fib_by_direct2, fib_by_join2, 0 };
    bench_run_fiber(run, extra_main, &extra);
    return extra.ns;
}

/* par.fib: nothing but forks. */

static int fib_main(void *arg)
{
    weft_time start = weft_now();
    long result = fib(WORK_FIB);
    *(double *)arg = (double)(weft_now() - start) / WORK_FIB_FORKS;
    BENCH_CHECK(result == WORK_FIB_RESULT);
    return 0;
}

static double fib_forks(const struct bench_run *run)
{
    double ns;
    bench_run_fiber(run, fib_main, &ns);
    return ns;
}

/* par.nqueens: forks for each queen that can be placed, except the last one of a row. */

WEFT_PARALLEL(long, queens, uint32_t, columns, uint32_t, left, uint32_t, right)
{
    struct work_board board = { columns, left, right };
    if (columns == WORK_QUEENS_ALL) {
        return 1;
    }
    uint32_t open = work_board_free(board);
    if (open == 0) {
        return 0;
    }
    queens_forked forked[WORK_QUEENS];
    int count = 0;
    while ((open & (open - 1)) != 0) {
        struct work_board next = work_board_place(board, open & -open);
        queens_fork(&forked[count++], next.columns, next.left, next.right);
        open &= open - 1;
    }
    struct work_board last = work_board_place(board, open);
    long found = queens(last.columns, last.left, last.right);
    while (count > 0) {
        found += queens_join(&forked[--count]);
    }
    return found;
}

static int queens_main(void *arg)
{
    weft_time start = weft_now();
    long found = queens(0, 0, 0);
    *(double *)arg = ms_since(start);
    BENCH_CHECK(found == WORK_QUEENS_RESULT);
    return 0;
}

static double nqueens(const struct bench_run *run)
{
    double ms;
    bench_run_fiber(run, queens_main, &ms);
    return ms;
}

/* par.uts_t1: an unpredictable tree; forks for each child except the last one. */

WEFT_PARALLEL(long, visit, struct work_node, node)
{
    unsigned children = work_uts_children(&node);
    if (children == 0) {
        return 1;
    }
    visit_forked forked[WORK_UTS_CHILDREN_MAX];
    for (unsigned i = 0; i + 1 < children; i++) {
        visit_fork(&forked[i], work_uts_child(&node, i));
    }
    long nodes = 1 + visit(work_uts_child(&node, children - 1));
    for (unsigned i = children - 1; i > 0; i--) {
        nodes += visit_join(&forked[i - 1]);
    }
    return nodes;
}

static int uts_main(void *arg)
{
    weft_time start = weft_now();
    long nodes = visit(work_uts_root());
    *(double *)arg = ms_since(start);
    BENCH_CHECK(nodes == WORK_UTS_RESULT);
    return 0;
}

static double uts_t1(const struct bench_run *run)
{
    double ms;
    bench_run_fiber(run, uts_main, &ms);
    return ms;
}

/* par.skynet: ten children per node; computes the sum of the leaves' numbers. */

WEFT_PARALLEL(uint64_t, skynet, uint64_t, number, uint64_t, leaves)
{
    if (leaves == 1) {
        return number;
    }
    skynet_forked forked[WORK_SKYNET_WAYS - 1];
    uint64_t part = leaves / WORK_SKYNET_WAYS;
    for (unsigned i = 0; i < WORK_SKYNET_WAYS - 1; i++) {
        skynet_fork(&forked[i], number + i * part, part);
    }
    uint64_t sum = skynet(number + (WORK_SKYNET_WAYS - 1) * part, part);
    for (unsigned i = WORK_SKYNET_WAYS - 1; i > 0; i--) {
        sum += skynet_join(&forked[i - 1]);
    }
    return sum;
}

static int skynet_main(void *arg)
{
    weft_time start = weft_now();
    uint64_t sum = skynet(0, WORK_SKYNET_LEAVES);
    *(double *)arg = ms_since(start);
    BENCH_CHECK(sum == WORK_SKYNET_RESULT);
    return 0;
}

static double skynet_tree(const struct bench_run *run)
{
    double ms;
    bench_run_fiber(run, skynet_main, &ms);
    return ms;
}

/* par.two_seconds: two long computations of one second each. */

static void one_second(void *arg)
{
    work_busy(WORK_SECOND_NS);
    *(bool *)arg = true;
}

static int two_seconds_main(void *arg)
{
    bool first = false;
    bool second = false;
    weft_time start = weft_now();
    weft_join2(one_second, &first, one_second, &second);
    *(double *)arg = ms_since(start);
    BENCH_CHECK(first && second);
    return 0;
}

static double two_seconds(const struct bench_run *run)
{
    double ms;
    bench_run_fiber(run, two_seconds_main, &ms);
    return ms;
}

/*
 * par.outside_call: a trivial computation submitted by a plain thread. The figure is its cost
 * beyond that of the two direct calls.
 */

struct addition {
    uint64_t to;
    uint64_t number;
};

static __attribute__((noinline)) void add(void *arg)
{
    struct addition *addition = arg;
    addition->to += addition->number;
}

static int add_both(void *arg)
{
    struct addition *additions = arg;
    weft_join2(add, &additions[0], add, &additions[1]);
    return 0;
}

static double outside_call(const struct bench_run *run)
{
    struct addition additions[2] = { { 0, 1 }, { 0, 2 } };
    weft_time start = weft_now();
    for (int i = 0; i < WORK_OUTSIDE_CALLS; i++) {
        add(&additions[0]);
        add(&additions[1]);
    }
    weft_time direct = weft_now() - start;
    start = weft_now();
    for (int i = 0; i < WORK_OUTSIDE_CALLS; i++) {
        BENCH_CHECK(weft_par_run(run->rt, add_both, additions) == 0);
    }
    weft_time joined = weft_now() - start;
    BENCH_CHECK(additions[0].to == UINT64_C(2) * WORK_OUTSIDE_CALLS);
    BENCH_CHECK(additions[1].to == UINT64_C(4) * WORK_OUTSIDE_CALLS);
    return (double)(joined - direct) / WORK_OUTSIDE_CALLS;
}

/*
 * par.task_wait_p99: how long a task that a plain thread spawns waits while all workers
 * compute. They compute in rounds of about 100 ms of work.
 */

enum {
    ROUND_FIB = 36,
    ROUND_FIB_RESULT = 14930352,
};

struct probe {
    weft_time spawned;
    weft_time started;
    _Atomic(uint32_t) *done;
};

static int probe_body(weft_co *co, void *state)
{
    (void)co;
    struct probe *probe = *(struct probe **)state;
    probe->started = weft_now();
    atomic_fetch_add_explicit(probe->done, 1, memory_order_release);
    return 0;
}

static int round_main(void *arg)
{
    (void)arg;
    BENCH_CHECK(fib(ROUND_FIB) == ROUND_FIB_RESULT);
    return 0;
}

static int rounds_main(void *arg)
{
    _Atomic(bool) *over = arg;
    while (!atomic_load_explicit(over, memory_order_relaxed)) {
        weft_task *task;
        BENCH_CHECK(weft_go(&task, round_main, NULL) == 0);
        BENCH_CHECK(weft_join(task, NULL, WEFT_NEVER) == 0);
    }
    return 0;
}

static void spawn_probes(weft_runtime *rt, struct probe *probes, _Atomic(uint32_t) *done)
{
    weft_time next = weft_now() + 20 * WEFT_MS; /* by then all workers compute */
    for (int i = 0; i < WORK_PROBES; i++) {
        struct probe *probe = &probes[i];
        weft_spec spec = { .body = probe_body, .state = &probe, .state_size = sizeof probe };
        bench_wait_until(next);
        next += WORK_PROBE_EVERY_NS;
        probe->done = done;
        probe->spawned = weft_now();
        BENCH_CHECK(weft_runtime_spawn(rt, NULL, &spec) == 0);
    }
    while (atomic_load_explicit(done, memory_order_acquire) < WORK_PROBES) {
        bench_wait_until(weft_now() + WEFT_MS);
    }
}

static double task_wait_p99(const struct bench_run *run)
{
    _Atomic(bool) over = false;
    _Atomic(uint32_t) done = 0;
    struct probe probes[WORK_PROBES];
    double waits[WORK_PROBES];
    weft_task *rounds;
    weft_fiber_spec spec = { .function = rounds_main, .arg = &over };
    BENCH_CHECK(weft_runtime_go(run->rt, &rounds, &spec) == 0);
    spawn_probes(run->rt, probes, &done);
    atomic_store(&over, true);
    BENCH_CHECK(weft_join(rounds, NULL, WEFT_NEVER) == 0);
    for (int i = 0; i < WORK_PROBES; i++) {
        BENCH_CHECK(probes[i].started >= probes[i].spawned);
        waits[i] = (double)(probes[i].started - probes[i].spawned);
    }
    return work_p99(waits, WORK_PROBES);
}

/* par.imbalance: 750 forks of 1 ms each, all forked by one fiber. */

static void one_job(void *arg)
{
    work_busy(WORK_JOB_NS);
    *(bool *)arg = true;
}

static int imbalance_main(void *arg)
{
    static weft_forked forked[WORK_JOBS];
    bool done[WORK_JOBS] = { false };
    weft_time start = weft_now();
    for (int i = 0; i < WORK_JOBS; i++) {
        weft_fork(&forked[i], one_job, &done[i]);
    }
    for (int i = WORK_JOBS; i > 0; i--) {
        weft_fork_join(&forked[i - 1]);
    }
    *(double *)arg = ms_since(start);
    for (int i = 0; i < WORK_JOBS; i++) {
        BENCH_CHECK(done[i]);
    }
    return 0;
}

static double imbalance(const struct bench_run *run)
{
    double ms;
    bench_run_fiber(run, imbalance_main, &ms);
    return ms;
}

const struct bench_row bench_par_rows[] = {
    { .name = "par.fork_extra", .unit = "ns", .run = fork_extra, .warmups = 1, .workers_max = 1 },
    { .name = "par.fork_extra2", .unit = "ns", .run = fork_extra2, .warmups = 1, .workers_max = 1 },
    { .name = "par.fib", .unit = "ns", .run = fib_forks, .warmups = 1 },
    { .name = "par.nqueens", .unit = "ms", .run = nqueens, .warmups = 2 },
    { .name = "par.uts_t1", .unit = "ms", .run = uts_t1, .warmups = 1 },
    { .name = "par.skynet", .unit = "ms", .run = skynet_tree, .warmups = 2 },
    { .name = "par.two_seconds", .unit = "ms", .run = two_seconds, .reps_max = 3 },
    { .name = "par.outside_call", .unit = "ns", .run = outside_call, .warmups = 1 },
    { .name = "par.task_wait_p99", .unit = "ns", .run = task_wait_p99, .reps_max = 5 },
    { .name = "par.imbalance", .unit = "ms", .run = imbalance, .reps_max = 5 },
    { 0 },
};
