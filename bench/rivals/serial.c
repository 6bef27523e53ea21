/* SPDX-License-Identifier: MIT */
/*
 * serial.c - the work of the par rows with direct calls and plain loops: one core, no runtime.
 *
 * The compiler must not drop repeated work: inputs are volatile or come from memory, and
 * results are checked.
 */
#include <stdlib.h>

#include "../work.h"
#include "driver.h"

static long fib(int n)
{
    if (n < 2) {
        return n;
    }
    return fib(n - 1) + fib(n - 2);
}

static double fib_calls(unsigned workers)
{
    (void)workers;
    volatile int n = WORK_FIB;
    int64_t start = work_now_ns();
    long result = fib(n);
    double ns = (double)(work_now_ns() - start);
    DRIVER_CHECK(result == WORK_FIB_RESULT);
    return ns / WORK_FIB_FORKS;
}

static long queens(uint32_t columns, uint32_t left, uint32_t right)
{
    struct work_board board = { columns, left, right };
    if (columns == WORK_QUEENS_ALL) {
        return 1;
    }
    long found = 0;
    for (uint32_t open = work_board_free(board); open != 0; open &= open - 1) {
        struct work_board next = work_board_place(board, open & -open);
        found += queens(next.columns, next.left, next.right);
    }
    return found;
}

static double nqueens(unsigned workers)
{
    (void)workers;
    int64_t start = work_now_ns();
    long found = queens(0, 0, 0);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(found == WORK_QUEENS_RESULT);
    return ms;
}

static long visit(struct work_node node)
{
    long nodes = 1;
    unsigned children = work_uts_children(&node);
    for (unsigned i = 0; i < children; i++) {
        nodes += visit(work_uts_child(&node, i));
    }
    return nodes;
}

static double uts_t1(unsigned workers)
{
    (void)workers;
    int64_t start = work_now_ns();
    long nodes = visit(work_uts_root());
    double ms = driver_ms_since(start);
    DRIVER_CHECK(nodes == WORK_UTS_RESULT);
    return ms;
}

static uint64_t skynet(uint64_t number, uint64_t leaves)
{
    if (leaves == 1) {
        return number;
    }
    uint64_t sum = 0;
    uint64_t part = leaves / WORK_SKYNET_WAYS;
    for (unsigned i = 0; i < WORK_SKYNET_WAYS; i++) {
        sum += skynet(number + i * part, part);
    }
    return sum;
}

static double skynet_tree(unsigned workers)
{
    (void)workers;
    volatile uint64_t leaves = WORK_SKYNET_LEAVES;
    int64_t start = work_now_ns();
    uint64_t sum = skynet(0, leaves);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(sum == WORK_SKYNET_RESULT);
    return ms;
}

static double two_seconds(unsigned workers)
{
    (void)workers;
    int64_t start = work_now_ns();
    work_busy(WORK_SECOND_NS);
    work_busy(WORK_SECOND_NS);
    return driver_ms_since(start);
}

static double imbalance(unsigned workers)
{
    (void)workers;
    int64_t start = work_now_ns();
    for (int i = 0; i < WORK_JOBS; i++) {
        work_busy(WORK_JOB_NS);
    }
    return driver_ms_since(start);
}

static double sum(unsigned workers)
{
    (void)workers;
    static uint64_t *items;
    if (items == NULL) {
        items = driver_allocate(WORK_ITEMS * sizeof *items);
        work_fill_numbers(items, WORK_ITEMS);
    }
    int64_t start = work_now_ns();
    uint64_t total = 0;
    for (size_t i = 0; i < WORK_ITEMS; i++) {
        total += items[i];
    }
    double ms = driver_ms_since(start);
    DRIVER_CHECK(total == WORK_SUM_RESULT);
    return ms;
}

static double scan(unsigned workers)
{
    (void)workers;
    static uint64_t *items;
    static uint64_t *sums;
    if (items == NULL) {
        items = driver_allocate(WORK_ITEMS * sizeof *items);
        sums = driver_allocate(WORK_ITEMS * sizeof *sums);
        work_fill_small(items, WORK_ITEMS);
        work_fill_small(sums, WORK_ITEMS); /* faults its pages in before the clock starts */
    }
    int64_t start = work_now_ns();
    uint64_t total = 0;
    for (size_t i = 0; i < WORK_ITEMS; i++) {
        total += items[i];
        sums[i] = total;
    }
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_is_scan(sums, WORK_ITEMS));
    return ms;
}

static double for_small(unsigned workers)
{
    (void)workers;
    uint64_t *items = calloc(WORK_SMALL_ITEMS, sizeof *items);
    DRIVER_CHECK(items != NULL);
    int64_t start = work_now_ns();
    for (int loop = 0; loop < WORK_SMALL_LOOPS; loop++) {
        for (size_t i = 0; i < WORK_SMALL_ITEMS; i++) {
            items[i] += i;
        }
        __asm__ volatile("" ::"r"(items) : "memory"); /* keeps the loops separate */
    }
    double us = (double)(work_now_ns() - start) / 1e3;
    DRIVER_CHECK(work_is_small_result(items));
    free(items);
    return us / WORK_SMALL_LOOPS;
}

static double units(bool uneven, uint64_t wanted)
{
    static uint64_t results[WORK_UNITS];
    int64_t start = work_now_ns();
    for (size_t i = 0; i < WORK_UNITS; i++) {
        results[i] = work_unit(i, uneven ? work_uneven_rounds(i) : WORK_UNIT_ROUNDS);
    }
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_sum_units(results) == wanted);
    return ms;
}

static double even(unsigned workers)
{
    (void)workers;
    return units(false, WORK_EVEN_RESULT);
}

static double uneven(unsigned workers)
{
    (void)workers;
    return units(true, WORK_UNEVEN_RESULT);
}

/* C has only one sort, qsort(). */

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int compare_f64(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_records(const void *a, const void *b)
{
    uint64_t x = ((const struct work_record *)a)->key;
    uint64_t y = ((const struct work_record *)b)->key;
    return (x > y) - (x < y);
}

static double sort_u32(unsigned workers)
{
    (void)workers;
    uint32_t *items = driver_allocate(WORK_ITEMS * sizeof *items);
    work_fill_u32(items, WORK_ITEMS);
    int64_t start = work_now_ns();
    qsort(items, WORK_ITEMS, sizeof *items, compare_u32);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_is_sorted_u32(items, WORK_ITEMS));
    free(items);
    return ms;
}

static double sort_u64(unsigned workers)
{
    (void)workers;
    uint64_t *items = driver_allocate(WORK_ITEMS * sizeof *items);
    work_fill_u64(items, WORK_ITEMS);
    int64_t start = work_now_ns();
    qsort(items, WORK_ITEMS, sizeof *items, compare_u64);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_is_sorted_u64(items, WORK_ITEMS));
    free(items);
    return ms;
}

static double sort_f64(unsigned workers)
{
    (void)workers;
    double *items = driver_allocate(WORK_ITEMS * sizeof *items);
    work_fill_f64(items, WORK_ITEMS);
    int64_t start = work_now_ns();
    qsort(items, WORK_ITEMS, sizeof *items, compare_f64);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_is_sorted_f64(items, WORK_ITEMS));
    free(items);
    return ms;
}

static double sort_cmp(unsigned workers)
{
    (void)workers;
    struct work_record *items = driver_allocate(WORK_ITEMS * sizeof *items);
    work_fill_records(items, WORK_ITEMS);
    int64_t start = work_now_ns();
    qsort(items, WORK_ITEMS, sizeof *items, compare_records);
    double ms = driver_ms_since(start);
    DRIVER_CHECK(work_is_sorted_records(items, WORK_ITEMS));
    free(items);
    return ms;
}

static const struct driver_row rows[] = {
    { .name = "par.fib", .unit = "ns", .run = fib_calls, .warmups = 1 },
    { .name = "par.nqueens", .unit = "ms", .run = nqueens, .warmups = 2 },
    { .name = "par.uts_t1", .unit = "ms", .run = uts_t1, .warmups = 1 },
    { .name = "par.skynet", .unit = "ms", .run = skynet_tree, .warmups = 2 },
    { .name = "par.two_seconds", .unit = "ms", .run = two_seconds, .reps_max = 3 },
    { .name = "par.imbalance", .unit = "ms", .run = imbalance, .reps_max = 5 },
    { .name = "par.sum", .unit = "ms", .run = sum, .warmups = 2 },
    { .name = "par.scan", .unit = "ms", .run = scan, .warmups = 2 },
    { .name = "par.for_small", .unit = "us", .run = for_small, .warmups = 2 },
    { .name = "par.even", .unit = "ms", .run = even, .warmups = 1 },
    { .name = "par.uneven", .unit = "ms", .run = uneven, .warmups = 1 },
    { .name = "par.sort_u32", .unit = "ms", .run = sort_u32 },
    { .name = "par.sort_u64", .unit = "ms", .run = sort_u64 },
    { .name = "par.sort_f64", .unit = "ms", .run = sort_f64 },
    { .name = "par.sort_cmp", .unit = "ms", .run = sort_cmp },
    { .name = NULL },
};

int main(int argc, char **argv)
{
    struct driver driver = { .program = "rival-serial", .rows = rows, .workers_max = 1 };
    return driver_main(&driver, argc, argv);
}
