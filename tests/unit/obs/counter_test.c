/* SPDX-License-Identifier: MIT */
#include "obs/counter.h"

#include <pthread.h>

#include "test.h"

static void zeroed_counter_reads_zero(void)
{
    wf_counter counter = 0;
    CHECK_EQ(wf_counter_read(&counter), 0);
}

static void add_accumulates(void)
{
    wf_counter counter = 0;
    wf_counter_add(&counter, 1);
    wf_counter_add(&counter, 41);
    wf_counter_add(&counter, 0);
    CHECK_EQ(wf_counter_read(&counter), 42);
    wf_counter_add(&counter, UINT64_C(1) << 40);
    CHECK_EQ(wf_counter_read(&counter), (INT64_C(1) << 40) + 42);
}

static void set_replaces_value(void)
{
    wf_counter counter = 0;
    wf_counter_add(&counter, 5);
    wf_counter_set(&counter, UINT64_MAX);
    CHECK(wf_counter_read(&counter) == UINT64_MAX);
    wf_counter_set(&counter, 3);
    CHECK_EQ(wf_counter_read(&counter), 3);
}

static void add_wraps_around(void)
{
    wf_counter counter = 0;
    wf_counter_set(&counter, UINT64_MAX);
    wf_counter_add(&counter, 2);
    CHECK_EQ(wf_counter_read(&counter), 1);
}

/* Each step changes both halves of the word and keeps them equal. */
#define STEP ((UINT64_C(1) << 32) + 1)

static wf_counter shared;
static uint64_t steps;
static pthread_barrier_t start;

static void *read_until_last_step(void *arg)
{
    (void)pthread_barrier_wait(&start);
    uint64_t last = 0;
    while (last < steps * STEP) {
        uint64_t seen = wf_counter_read(&shared);
        CHECK_EQ(seen >> 32, seen & UINT32_MAX);
        CHECK_LE(last, seen);
        last = seen;
    }
    CHECK_EQ(last, steps * STEP);
    return arg;
}

static void add_all(void)
{
    for (uint64_t i = 0; i < steps; i++) {
        wf_counter_add(&shared, STEP);
    }
}

static void set_all(void)
{
    for (uint64_t i = 1; i <= steps; i++) {
        wf_counter_set(&shared, i * STEP);
    }
}

static void run_with_readers(void (*write)(void))
{
    enum {
        READERS = 2
    };
    pthread_t readers[READERS];
    steps = test_scale(2000000);
    wf_counter_set(&shared, 0);
    CHECK_EQ(pthread_barrier_init(&start, NULL, READERS + 1), 0);
    for (int i = 0; i < READERS; i++) {
        CHECK_EQ(pthread_create(&readers[i], NULL, read_until_last_step, NULL), 0);
    }
    (void)pthread_barrier_wait(&start);
    write();
    for (int i = 0; i < READERS; i++) {
        CHECK_EQ(pthread_join(readers[i], NULL), 0);
    }
    CHECK_EQ(wf_counter_read(&shared), steps * STEP);
    CHECK_EQ(pthread_barrier_destroy(&start), 0);
}

/*
 * Goal:   readers never see a torn value or a decrease, and they see the last value.
 * Method: each addition changes both halves of the word alike. Two readers compare the halves,
 *         and each value with the previous one.
 */
static void concurrent_reads_of_add_never_tear_or_decrease(void)
{
    run_with_readers(add_all);
}

/*
 * Goal:   same as concurrent_reads_of_add_never_tear_or_decrease, for wf_counter_set().
 * Method: the writer sets rising values.
 */
static void concurrent_reads_of_set_never_tear_or_decrease(void)
{
    run_with_readers(set_all);
}

TEST_MAIN({ TEST(zeroed_counter_reads_zero), TEST(add_accumulates), TEST(set_replaces_value),
            TEST(add_wraps_around), TEST(concurrent_reads_of_add_never_tear_or_decrease),
            TEST(concurrent_reads_of_set_never_tear_or_decrease) })
