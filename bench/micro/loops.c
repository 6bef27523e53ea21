/* SPDX-License-Identifier: MIT */
/*
 * loops.c - rows for parallel loops, reductions and scans.
 */
#include <stdlib.h>

#include "harness.h"
#include "work.h"

/* Allocated once for all runs of a row, as the rivals do. */
static uint64_t *numbers; /* par.sum */
static uint64_t *items;   /* par.scan */
static uint64_t *sums;

static double ms_since(weft_time start)
{
    return (double)(weft_now() - start) / 1e6;
}

static uint64_t *allocate(size_t count)
{
    uint64_t *array = malloc(count * sizeof *array);
    BENCH_CHECK(array != NULL);
    return array;
}

static const uint64_t zero = 0;

static int add_up(void *value, size_t first, size_t end, void *arg)
{
    const uint64_t *array = arg;
    uint64_t sum = *(uint64_t *)value;
    for (size_t i = first; i < end; i++) {
        sum += array[i];
    }
    *(uint64_t *)value = sum;
    return 0;
}

static void combine(void *value, const void *next, void *arg)
{
    (void)arg;
    *(uint64_t *)value += *(const uint64_t *)next;
}

#define SUM                                                                                        \
    {                                                                                              \
        .size = sizeof zero, .identity = &zero, .fold = add_up, .combine = combine                 \
    }

/* par.sum: the sum of 10 million numbers. */

static int sum_main(void *arg)
{
    static const weft_reduction how = SUM;
    uint64_t sum = 0;
    weft_time start = weft_now();
    BENCH_CHECK(weft_reduce(0, WORK_ITEMS, &how, numbers, &sum, NULL) == 0);
    *(double *)arg = ms_since(start);
    BENCH_CHECK(sum == WORK_SUM_RESULT);
    return 0;
}

static double sum_row(const struct bench_run *run)
{
    double ms;
    if (numbers == NULL) {
        numbers = allocate(WORK_ITEMS);
        work_fill_numbers(numbers, WORK_ITEMS);
    }
    bench_run_fiber(run, sum_main, &ms);
    return ms;
}

/* par.scan: running sums of 10 million numbers. */

static int write_sums(void *value, size_t first, size_t end, void *arg)
{
    const uint64_t *array = arg;
    uint64_t sum = *(uint64_t *)value;
    for (size_t i = first; i < end; i++) {
        sum += array[i];
        sums[i] = sum;
    }
    *(uint64_t *)value = sum;
    return 0;
}

static int scan_main(void *arg)
{
    static const weft_scanner how = { .reduction = SUM, .scan = write_sums, .is_exact = true };
    weft_time start = weft_now();
    BENCH_CHECK(weft_scan(0, WORK_ITEMS, &how, items, NULL, NULL) == 0);
    *(double *)arg = ms_since(start);
    return 0;
}

static double scan_row(const struct bench_run *run)
{
    double ms;
    if (items == NULL) {
        items = allocate(WORK_ITEMS);
        sums = allocate(WORK_ITEMS);
        work_fill_small(items, WORK_ITEMS);
        work_fill_small(sums, WORK_ITEMS); /* Faults its pages in before the clock starts. */
    }
    bench_run_fiber(run, scan_main, &ms);
    BENCH_CHECK(work_is_scan(sums, WORK_ITEMS));
    return ms;
}

/* par.for_small: 1000 loops over 10 000 numbers. */

static int add_index(size_t first, size_t end, void *arg)
{
    uint64_t *array = arg;
    for (size_t i = first; i < end; i++) {
        array[i] += i;
    }
    return 0;
}

static uint64_t *small;

static int for_small_main(void *arg)
{
    weft_time start = weft_now();
    for (int i = 0; i < WORK_SMALL_LOOPS; i++) {
        BENCH_CHECK(weft_for(0, WORK_SMALL_ITEMS, add_index, small, NULL) == 0);
    }
    *(double *)arg = ms_since(start) * 1000 / WORK_SMALL_LOOPS;
    return 0;
}

static double for_small(const struct bench_run *run)
{
    double us;
    small = calloc(WORK_SMALL_ITEMS, sizeof *small);
    BENCH_CHECK(small != NULL);
    bench_run_fiber(run, for_small_main, &us);
    BENCH_CHECK(work_is_small_result(small));
    free(small);
    return us;
}

/* par.even, par.uneven: units of equal length, and units of growing length. */

static uint64_t results[WORK_UNITS];

static int run_even(size_t first, size_t end, void *arg)
{
    (void)arg;
    for (size_t i = first; i < end; i++) {
        results[i] = work_unit(i, WORK_UNIT_ROUNDS);
    }
    return 0;
}

static int run_uneven(size_t first, size_t end, void *arg)
{
    (void)arg;
    for (size_t i = first; i < end; i++) {
        results[i] = work_unit(i, work_uneven_rounds(i));
    }
    return 0;
}

struct units {
    weft_range_fn body;
    double ms;
};

static int units_main(void *arg)
{
    struct units *units = arg;
    weft_time start = weft_now();
    BENCH_CHECK(weft_for(0, WORK_UNITS, units->body, NULL, NULL) == 0);
    units->ms = ms_since(start);
    return 0;
}

static double even(const struct bench_run *run)
{
    struct units units = { run_even, 0 };
    bench_run_fiber(run, units_main, &units);
    BENCH_CHECK(work_sum_units(results) == WORK_EVEN_RESULT);
    return units.ms;
}

static double uneven(const struct bench_run *run)
{
    struct units units = { run_uneven, 0 };
    bench_run_fiber(run, units_main, &units);
    BENCH_CHECK(work_sum_units(results) == WORK_UNEVEN_RESULT);
    return units.ms;
}

const struct bench_row bench_loop_rows[] = {
    { .name = "par.sum", .unit = "ms", .run = sum_row, .warmups = 2 },
    { .name = "par.scan", .unit = "ms", .run = scan_row, .warmups = 2 },
    { .name = "par.even", .unit = "ms", .run = even, .warmups = 1 },
    { .name = "par.uneven", .unit = "ms", .run = uneven, .warmups = 1 },
    { .name = "par.for_small", .unit = "us", .run = for_small, .warmups = 2 },
    { 0 },
};
