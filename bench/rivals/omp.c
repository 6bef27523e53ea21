/* SPDX-License-Identifier: MIT */
/*
 * omp.c - the work of the par rows with OpenMP: tasks, loops, reductions and scans.
 *
 * The timed part of a row with tasks runs in one thread of an existing team. The other threads
 * run tasks meanwhile, in the barrier at its end.
 */
#include <omp.h>
#include <stdlib.h>

#include "../work.h"
#include "driver.h"

enum {
    /* Smaller than the 40 of the other rivals, which would take minutes. The figure is per fork. */
    FIB = 32,
    FIB_RESULT = 2178309,
    FIB_FORKS = 3524577,
    WORKERS_MAX = 1000,
};

/* Calls the function in one thread of a team. */
static double in_team(unsigned workers, double (*function)(void))
{
    double figure = 0;
#pragma omp parallel num_threads(workers) shared(figure)
#pragma omp single
    {
        DRIVER_CHECK((unsigned)omp_get_num_threads() == workers);
        figure = function();
    }
    return figure;
}

static long fib_direct(int n)
{
    if (n < 2) {
        return n;
    }
    return fib_direct(n - 1) + fib_direct(n - 2);
}

static long fib(int n)
{
    if (n < 2) {
        return n;
    }
    long second;
#pragma omp task shared(second) firstprivate(n)
    second = fib(n - 2);
    long first = fib(n - 1);
#pragma omp taskwait
    return first + second;
}

static double extra_main(void)
{
    return driver_fork_extra(fib_direct, fib);
}

static double fork_extra(unsigned workers)
{
    return in_team(workers, extra_main);
}

static double fib_main(void)
{
    int64_t start = work_now_ns();
    long result = fib(FIB);
    double ns = (double)(work_now_ns() - start);
    DRIVER_CHECK(result == FIB_RESULT);
    return ns / FIB_FORKS;
}

static double fib_forks(unsigned workers)
{
    return in_team(workers, fib_main);
}

static long queens(uint32_t columns, uint32_t left, uint32_t right)
{
    struct work_board board = { columns, left, right };
    if (columns == WORK_QUEENS_ALL) {
        return 1;
    }
    uint32_t open = work_board_free(board);
    if (open == 0) {
        return 0;
    }
    long parts[WORK_QUEENS];
    int count = 0;
    while ((open & (open - 1)) != 0) {
        struct work_board next = work_board_place(board, open & -open);
        long *part = &parts[count++];
#pragma omp task firstprivate(next, part)
        *part = queens(next.columns, next.left, next.right);
        open &= open - 1;
    }
    struct work_board last = work_board_place(board, open);
    long found = queens(last.columns, last.left, last.right);
    if (count > 0) {
#pragma omp taskwait
    }
    while (count > 0) {
        found += parts[--count];
    }
    return found;
}

static double queens_main(void)
{
    int64_t start = work_now_ns();
    long found = queens(0, 0, 0);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(found == WORK_QUEENS_RESULT);
    return ms;
}

static double nqueens(unsigned workers)
{
    return in_team(workers, queens_main);
}

static long visit(struct work_node node)
{
    unsigned children = work_uts_children(&node);
    if (children == 0) {
        return 1;
    }
    long parts[WORK_UTS_CHILDREN_MAX];
    for (unsigned i = 0; i + 1 < children; i++) {
        struct work_node child = work_uts_child(&node, i);
        long *part = &parts[i];
#pragma omp task firstprivate(child, part)
        *part = visit(child);
    }
    long nodes = 1 + visit(work_uts_child(&node, children - 1));
#pragma omp taskwait
    for (unsigned i = 0; i + 1 < children; i++) {
        nodes += parts[i];
    }
    return nodes;
}

static double uts_main(void)
{
    int64_t start = work_now_ns();
    long nodes = visit(work_uts_root());
    double ms = driver_ms_since(start);
    DRIVER_CHECK(nodes == WORK_UTS_RESULT);
    return ms;
}

static double uts_t1(unsigned workers)
{
    return in_team(workers, uts_main);
}

static uint64_t skynet(uint64_t number, uint64_t leaves)
{
    if (leaves == 1) {
        return number;
    }
    uint64_t parts[WORK_SKYNET_WAYS - 1];
    uint64_t part = leaves / WORK_SKYNET_WAYS;
    for (unsigned i = 0; i < WORK_SKYNET_WAYS - 1; i++) {
#pragma omp task shared(parts) firstprivate(i, number, part)
        parts[i] = skynet(number + i * part, part);
    }
    uint64_t sum = skynet(number + (WORK_SKYNET_WAYS - 1) * part, part);
#pragma omp taskwait
    for (unsigned i = 0; i < WORK_SKYNET_WAYS - 1; i++) {
        sum += parts[i];
    }
    return sum;
}

static double skynet_main(void)
{
    int64_t start = work_now_ns();
    uint64_t sum = skynet(0, WORK_SKYNET_LEAVES);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(sum == WORK_SKYNET_RESULT);
    return ms;
}

static double skynet_tree(unsigned workers)
{
    return in_team(workers, skynet_main);
}

static double two_seconds_main(void)
{
    int first = 0;
    int second = 0;
    int64_t start = work_now_ns();
#pragma omp task shared(second)
    {
        work_busy(WORK_SECOND_NS);
        second = 1;
    }
    work_busy(WORK_SECOND_NS);
    first = 1;
#pragma omp taskwait
    double ms = driver_ms_since(start);
    DRIVER_CHECK(first + second == 2);
    return ms;
}

static double two_seconds(unsigned workers)
{
    return in_team(workers, two_seconds_main);
}

struct addition {
    uint64_t to;
    uint64_t number;
};

static __attribute__((noinline)) void add(struct addition *addition)
{
    addition->to += addition->number;
}

/* Creates a team per call, as a program must do that is not inside one. */
static double outside_call(unsigned workers)
{
    struct addition first = { 0, 1 };
    struct addition second = { 0, 2 };
    int64_t start = work_now_ns();
    for (int i = 0; i < WORK_OUTSIDE_CALLS; i++) {
        add(&first);
        add(&second);
    }
    int64_t direct = work_now_ns() - start;
    start = work_now_ns();
    for (int i = 0; i < WORK_OUTSIDE_CALLS; i++) {
#pragma omp parallel sections num_threads(workers)
        {
#pragma omp section
            add(&first);
#pragma omp section
            add(&second);
        }
    }
    int64_t joined = work_now_ns() - start;
    DRIVER_CHECK(first.to == UINT64_C(2) * WORK_OUTSIDE_CALLS);
    DRIVER_CHECK(second.to == UINT64_C(4) * WORK_OUTSIDE_CALLS);
    return (double)(joined - direct) / WORK_OUTSIDE_CALLS;
}

static double imbalance_main(void)
{
    char done[WORK_JOBS] = { 0 };
    int64_t start = work_now_ns();
    for (int i = 0; i < WORK_JOBS; i++) {
#pragma omp task shared(done) firstprivate(i)
        {
            work_busy(WORK_JOB_NS);
            done[i] = 1;
        }
    }
#pragma omp taskwait
    double ms = driver_ms_since(start);
    for (int i = 0; i < WORK_JOBS; i++) {
        DRIVER_CHECK(done[i]);
    }
    return ms;
}

static double imbalance(unsigned workers)
{
    return in_team(workers, imbalance_main);
}

static double sum(unsigned workers)
{
    static uint64_t *items;
    if (items == NULL) {
        items = driver_allocate(WORK_ITEMS * sizeof *items);
        work_fill_numbers(items, WORK_ITEMS);
    }
    int64_t start = work_now_ns();
    uint64_t total = 0;
#pragma omp parallel for num_threads(workers) reduction(+ : total)
    for (size_t i = 0; i < WORK_ITEMS; i++) {
        total += items[i];
    }
    double ms = driver_ms_since(start);
    DRIVER_CHECK(total == WORK_SUM_RESULT);
    return ms;
}

/*
 * Two passes by hand with one part per thread: the sum of the part, then its scan starting at
 * the sum of the parts before it. The scan directive takes five times as long with gcc, and
 * with clang puts a buffer for all items on the stack.
 */
static void scan_items(unsigned workers, const uint64_t *items, uint64_t *sums)
{
    uint64_t before[WORKERS_MAX + 1] = { 0 };
#pragma omp parallel num_threads(workers)
    {
        size_t me = (size_t)omp_get_thread_num();
        size_t team = (size_t)omp_get_num_threads();
        size_t from = WORK_ITEMS * me / team;
        size_t to = WORK_ITEMS * (me + 1) / team;
        uint64_t total = 0;
        for (size_t i = from; me + 1 < team && i < to; i++) { /* the last sum is not needed */
            total += items[i];
        }
        before[me + 1] = total;
#pragma omp barrier
        total = 0;
        for (size_t i = 0; i <= me; i++) {
            total += before[i];
        }
        for (size_t i = from; i < to; i++) {
            total += items[i];
            sums[i] = total;
        }
    }
}

static double scan(unsigned workers)
{
    static uint64_t *items;
    static uint64_t *sums;
    if (items == NULL) {
        items = driver_allocate(WORK_ITEMS * sizeof *items);
        sums = driver_allocate(WORK_ITEMS * sizeof *sums);
        work_fill_small(items, WORK_ITEMS);
        work_fill_small(sums, WORK_ITEMS); /* faults its pages in before the clock starts */
    }
    int64_t start = work_now_ns();
    scan_items(workers, items, sums);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_is_scan(sums, WORK_ITEMS));
    return ms;
}

static double for_small(unsigned workers)
{
    uint64_t *items = driver_allocate(WORK_SMALL_ITEMS * sizeof *items);
    for (size_t i = 0; i < WORK_SMALL_ITEMS; i++) {
        items[i] = 0;
    }
    int64_t start = work_now_ns();
    for (int loop = 0; loop < WORK_SMALL_LOOPS; loop++) {
#pragma omp parallel for num_threads(workers)
        for (size_t i = 0; i < WORK_SMALL_ITEMS; i++) {
            items[i] += i;
        }
    }
    double us = (double)(work_now_ns() - start) / 1e3;
    DRIVER_CHECK(work_is_small_result(items));
    free(items);
    return us / WORK_SMALL_LOOPS;
}

static uint64_t results[WORK_UNITS];

/* Static schedule, OpenMP's usual default: equal parts per thread. par.uneven is guided. */
static double even(unsigned workers)
{
    int64_t start = work_now_ns();
#pragma omp parallel for num_threads(workers)
    for (size_t i = 0; i < WORK_UNITS; i++) {
        results[i] = work_unit(i, WORK_UNIT_ROUNDS);
    }
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_sum_units(results) == WORK_EVEN_RESULT);
    return ms;
}

static double uneven(unsigned workers)
{
    int64_t start = work_now_ns();
#pragma omp parallel for num_threads(workers) schedule(guided)
    for (size_t i = 0; i < WORK_UNITS; i++) {
        results[i] = work_unit(i, work_uneven_rounds(i));
    }
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_sum_units(results) == WORK_UNEVEN_RESULT);
    return ms;
}

static const struct driver_row rows[] = {
    { .name = "par.fork_extra", .unit = "ns", .run = fork_extra },
    { .name = "par.fork_extra2", .unit = "ns", .run = fork_extra },
    { .name = "par.fib", .unit = "ns", .run = fib_forks, .warmups = 1 },
    { .name = "par.nqueens", .unit = "ms", .run = nqueens, .warmups = 1 },
    { .name = "par.uts_t1", .unit = "ms", .run = uts_t1, .warmups = 1 },
    { .name = "par.skynet", .unit = "ms", .run = skynet_tree, .warmups = 2 },
    { .name = "par.two_seconds", .unit = "ms", .run = two_seconds, .reps_max = 3 },
    { .name = "par.outside_call", .unit = "ns", .run = outside_call, .warmups = 1 },
    { .name = "par.imbalance", .unit = "ms", .run = imbalance, .reps_max = 5 },
    { .name = "par.sum", .unit = "ms", .run = sum, .warmups = 2 },
    { .name = "par.scan", .unit = "ms", .run = scan, .warmups = 2 },
    { .name = "par.even", .unit = "ms", .run = even, .warmups = 1 },
    { .name = "par.uneven", .unit = "ms", .run = uneven, .warmups = 1 },
    { .name = "par.for_small", .unit = "us", .run = for_small, .warmups = 2 },
    { .name = NULL },
};

int main(int argc, char **argv)
{
    struct driver driver = { .program = "rival-omp", .rows = rows, .workers_max = WORKERS_MAX };
    omp_set_dynamic(0);
    return driver_main(&driver, argc, argv);
}
