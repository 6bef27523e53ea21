/* SPDX-License-Identifier: MIT */
/*
 * sort.c - rows for sorts of 10 million random items.
 */
#include <stdlib.h>

#include "harness.h"
#include "work.h"

#define RECORD_BEFORE(a, b) ((a)->key < (b)->key)
WEFT_SORT_DEFINE(sort_records, struct work_record, RECORD_BEFORE)

static int compare_records(const void *a, const void *b, void *arg)
{
    uint64_t x = ((const struct work_record *)a)->key;
    uint64_t y = ((const struct work_record *)b)->key;
    (void)arg;
    return (x > y) - (x < y);
}

WEFT_KEY(key_of_record, struct work_record, record, record->key)

struct sort {
    void *items;
    int (*sort)(void *items);
    double ms;
};

static int sort_main(void *arg)
{
    struct sort *sort = arg;
    weft_time start = weft_now();
    BENCH_CHECK(sort->sort(sort->items) == 0);
    sort->ms = (double)(weft_now() - start) / WEFT_MS;
    return 0;
}

static void *allocate(size_t size)
{
    void *items = malloc(WORK_ITEMS * size);
    BENCH_CHECK(items != NULL);
    return items;
}

static int by_u32(void *items)
{
    return weft_sort_u32(items, WORK_ITEMS, NULL);
}

static double sort_u32(const struct bench_run *run)
{
    struct sort sort = { .items = allocate(sizeof(uint32_t)), .sort = by_u32 };
    work_fill_u32(sort.items, WORK_ITEMS);
    bench_run_fiber(run, sort_main, &sort);
    BENCH_CHECK(work_is_sorted_u32(sort.items, WORK_ITEMS));
    free(sort.items);
    return sort.ms;
}

static int by_u64(void *items)
{
    return weft_sort_u64(items, WORK_ITEMS, NULL);
}

static double sort_u64(const struct bench_run *run)
{
    struct sort sort = { .items = allocate(sizeof(uint64_t)), .sort = by_u64 };
    work_fill_u64(sort.items, WORK_ITEMS);
    bench_run_fiber(run, sort_main, &sort);
    BENCH_CHECK(work_is_sorted_u64(sort.items, WORK_ITEMS));
    free(sort.items);
    return sort.ms;
}

static int by_f64(void *items)
{
    return weft_sort_f64(items, WORK_ITEMS, NULL);
}

static double sort_f64(const struct bench_run *run)
{
    struct sort sort = { .items = allocate(sizeof(double)), .sort = by_f64 };
    work_fill_f64(sort.items, WORK_ITEMS);
    bench_run_fiber(run, sort_main, &sort);
    BENCH_CHECK(work_is_sorted_f64(sort.items, WORK_ITEMS));
    free(sort.items);
    return sort.ms;
}

static double sort_16_bytes(const struct bench_run *run, int (*by)(void *items))
{
    struct sort sort = { .items = allocate(sizeof(struct work_record)), .sort = by };
    work_fill_records(sort.items, WORK_ITEMS);
    bench_run_fiber(run, sort_main, &sort);
    BENCH_CHECK(work_is_sorted_records(sort.items, WORK_ITEMS));
    free(sort.items);
    return sort.ms;
}

/* The rivals inline the comparison, too. */
static int by_compiled_comparison(void *items)
{
    return sort_records(items, WORK_ITEMS, NULL);
}

static double sort_cmp(const struct bench_run *run)
{
    return sort_16_bytes(run, by_compiled_comparison);
}

static int by_function(void *items)
{
    return weft_sort(items, WORK_ITEMS, sizeof(struct work_record), compare_records, NULL, NULL);
}

static double sort_function(const struct bench_run *run)
{
    return sort_16_bytes(run, by_function);
}

static int by_key(void *items)
{
    return weft_sort_by_key(items, WORK_ITEMS, sizeof(struct work_record), key_of_record, NULL,
                            NULL);
}

static double sort_key(const struct bench_run *run)
{
    return sort_16_bytes(run, by_key);
}

const struct bench_row bench_sort_rows[] = {
    { .name = "par.sort_u32", .unit = "ms", .run = sort_u32, .warmups = 1 },
    { .name = "par.sort_u64", .unit = "ms", .run = sort_u64, .warmups = 1 },
    { .name = "par.sort_f64", .unit = "ms", .run = sort_f64, .warmups = 1 },
    { .name = "par.sort_cmp", .unit = "ms", .run = sort_cmp, .warmups = 1 },
    { .name = "par.sort_function", .unit = "ms", .run = sort_function, .warmups = 1 },
    { .name = "par.sort_key", .unit = "ms", .run = sort_key, .warmups = 1 },
    { 0 },
};
