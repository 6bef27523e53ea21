/* SPDX-License-Identifier: MIT */
/*
 * par_fork.c - functions defined with WEFT_PARALLEL, and recursion deeper than a stack.
 */
#include <stdatomic.h>

#include <weft.h>

#include "forks.h"
#include "rt.h"
#include "test.h"

WEFT_PARALLEL(uint64_t, fib, unsigned, n)
{
    if (n < 2) {
        return n;
    }
    uint64_t first;
    uint64_t second;
    fib_both(&first, n - 1, &second, n - 2);
    return first + second;
}

WEFT_PARALLEL(double, sum_two, const double *, from, size_t, count)
{
    if (count < 4) {
        double sum = 0;
        for (size_t i = 0; i < count; i++) {
            sum += from[i];
        }
        return sum;
    }
    sum_two_forked right;
    sum_two_fork(&right, from + count / 2, count - count / 2);
    double left = sum_two(from, count / 2);
    return left + sum_two_join(&right);
}

struct pair {
    uint64_t low;
    uint64_t high;
};

/* Returns the minimum and the maximum. */
WEFT_PARALLEL(struct pair, range_of, const uint32_t *, from, size_t, count, uint32_t, flip)
{
    if (count == 1) {
        uint32_t value = from[0] ^ flip;
        return (struct pair){ value, value };
    }
    struct pair left;
    struct pair right;
    range_of_both(&left, from, count / 2, flip, &right, from + count / 2, count - count / 2, flip);
    return (struct pair){ left.low < right.low ? left.low : right.low,
                          left.high > right.high ? left.high : right.high };
}

WEFT_PARALLEL(int, ways, int, down, int, right, int, height, int, width)
{
    if (down == height || right == width) {
        return 1;
    }
    int by_down;
    int by_right;
    ways_both(&by_down, down + 1, right, height, width, &by_right, down, right + 1, height, width);
    return by_down + by_right;
}

static int compute_all(void *arg)
{
    static double numbers[1000];
    static uint32_t values[1000];
    (void)arg;
    for (unsigned i = 0; i < 1000; i++) {
        numbers[i] = i;
        values[i] = (i * 7919 + 13) % 1000 + 1000;
    }
    for (uint64_t i = 0; i < test_scale(20); i++) {
        CHECK_EQ(fib(18), 2584);
        CHECK(sum_two(numbers, 1000) == 499500);
        struct pair range = range_of(values, 1000, 0);
        CHECK_EQ(range.low, 1000);
        CHECK_EQ(range.high, 1999);
        CHECK_EQ(ways(0, 0, 6, 6), 924);
    }
    return 0;
}

static void parallel_function_returns_result_of_its_code(void)
{
    CHECK_EQ(compute_all(NULL), 0); /* without a runtime */
    weft_runtime *rt = test_start(test_workers(2));
    CHECK_EQ(test_run(rt, compute_all, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Other tasks in between --------------------------------------------------------------- */

static _Atomic(uint64_t) over;

static int sum_often(void *arg)
{
    double numbers[64];
    (void)arg;
    for (unsigned i = 0; i < 64; i++) {
        numbers[i] = i;
    }
    for (uint64_t i = 0; i < test_scale(20000); i++) {
        CHECK(sum_two(numbers, 64) == 2016);
    }
    atomic_fetch_add(&over, 1);
    return 0;
}

enum {
    FIBERS = 6,
    VISITORS_MIN = 10,
    TRIES_MAX = 200,
};

/* Returns whether forks ran on workers other than their joiner's. */
static bool has_stolen(weft_runtime *rt)
{
    uint64_t stolen = 0;
    for (unsigned i = 0; i < weft_runtime_workers(rt); i++) {
        weft_worker_stats worker;
        CHECK_EQ(weft_worker_stats_read(rt, i, &worker), 0);
        stolen += worker.stolen_forks;
    }
    return stolen > 0;
}

/* Returns the number of injected tasks that ran meanwhile. */
static uint64_t sum_on_fibers(weft_runtime *rt)
{
    weft_task *tasks[FIBERS];
    uint64_t visitors = 0;
    atomic_store(&over, 0);
    for (unsigned i = 0; i < FIBERS; i++) {
        tasks[i] = test_go(rt, sum_often, NULL);
    }
    while (atomic_load(&over) < FIBERS) {
        CHECK_EQ(test_join(test_spawn(rt, test_return_7, NULL)), 7);
        visitors++;
    }
    for (unsigned i = 0; i < FIBERS; i++) {
        CHECK_EQ(test_join(tasks[i]), 0);
    }
    return visitors;
}

/*
 * Goal:   the result of a stolen fork is not lost when its joiner lets other tasks run, which fork,
 *         too.
 * Method: more fibers than workers, and injected tasks all the time, for which the fibers are asked
 *         to yield. Repeated until forks were stolen and injected tasks ran.
 */
static void fork_results_survive_tasks_run_in_between(void)
{
    weft_runtime *rt = test_start(test_workers(2));
    bool can_steal = weft_runtime_workers(rt) > 1;
    uint64_t visitors = 0;
    int tries = 0;
    do {
        CHECK_LT(tries++, TRIES_MAX);
        visitors += sum_on_fibers(rt);
    } while (visitors < VISITORS_MIN || (can_steal && !has_stolen(rt)));
    weft_runtime_destroy(rt);
}

/* --- Deep recursion --------------------------------------------------------------------- */

struct level {
    uint64_t depth;
    uint64_t sum;
};

static void descend_by_pointer(void *arg)
{
    struct level *level = arg;
    level->sum = 0;
    if (level->depth > 0) {
        struct level below = { .depth = level->depth - 1 };
        struct level leaf = { .depth = 0 };
        weft_join2(descend_by_pointer, &below, descend_by_pointer, &leaf);
        level->sum = below.sum + leaf.sum + 1;
    }
}

/* The last call of each level recurses, not the first one. */
WEFT_PARALLEL(uint64_t, descend_last, uint64_t, depth)
{
    if (depth == 0) {
        return 0;
    }
    descend_last_forked leaf;
    descend_last_fork(&leaf, 0);
    uint64_t below = descend_last(depth - 1);
    return below + descend_last_join(&leaf) + 1;
}

static int go_deep(void *arg)
{
    (void)arg;
    uint64_t depth = test_scale(400000);
    test_descend(depth);
    CHECK_EQ(descend_last(depth), depth);
    struct level level = { .depth = depth };
    descend_by_pointer(&level);
    CHECK_EQ(level.sum, depth);
    return 0;
}

/*
 * Goal:   recursion continues on another stack before the current one overflows.
 * Method: stacks of several sizes, none of which could hold the whole recursion.
 */
static void recursion_deeper_than_stack_succeeds(void)
{
    weft_runtime *rt = test_start(test_workers(2));
    for (size_t size = 16 << 10; size <= 1 << 20; size *= 4) {
        weft_task *task;
        weft_fiber_spec spec = { .function = go_deep, .stack_size = size };
        CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
        CHECK_EQ(test_join(task), 0);
    }
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(parallel_function_returns_result_of_its_code),
    TEST(fork_results_survive_tasks_run_in_between),
    TEST(recursion_deeper_than_stack_succeeds),
})
