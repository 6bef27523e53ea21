/* SPDX-License-Identifier: MIT */
/*
 * volt.c - the benchmark rows that volt publishes, with the same operation counts.
 */
#include <stdatomic.h>

#include "crew.h"
#include "harness.h"

enum {
    SPSC = 100000,
    MPMC = 200000,
    PIPELINE = 50000,
    CAPACITY = 64,
    HOT_BATCHES = 20,
    HOT_TASKS = 1000,
    PARALLEL = 256,
    PARALLEL_ROUNDS = 50000,
};

static double yields(const struct bench_run *run)
{
    return bench_yields(run, 2, 100000);
}

/* --- Messages --------------------------------------------------------------------------------- */

static double spsc(const struct bench_run *run)
{
    return bench_messages(run, (struct bench_flow){ 1, 1, 16, SPSC });
}

static double mpmc_1(const struct bench_run *run)
{
    return bench_messages(run, (struct bench_flow){ 1, 1, CAPACITY, MPMC });
}

static double mpmc_2(const struct bench_run *run)
{
    return bench_messages(run, (struct bench_flow){ 2, 2, CAPACITY, MPMC });
}

static double mpmc_4(const struct bench_run *run)
{
    return bench_messages(run, (struct bench_flow){ 4, 4, CAPACITY, MPMC });
}

static bench_numbers_sender *to[2];
static bench_numbers_receiver *from[2];

static uint64_t mix(uint64_t hash)
{
    hash ^= hash >> 13;
    hash *= UINT64_C(0x100000001b3);
    return hash ^ hash >> 23;
}

static int feed(void *arg)
{
    (void)arg;
    return bench_send_share(to[0], 0, PIPELINE);
}

static int mix_all(void *arg)
{
    (void)arg;
    uint64_t number = 0;
    int err;
    while ((err = bench_numbers_recv(from[0], &number, WEFT_NEVER)) == 0) {
        BENCH_CHECK(bench_numbers_send(to[1], mix(number), WEFT_NEVER) == 0);
    }
    bench_numbers_receiver_drop(from[0]);
    bench_numbers_sender_drop(to[1]);
    return err == WEFT_ECLOSED ? 0 : err;
}

static int drain(void *arg)
{
    return bench_receive_all(from[1], arg);
}

static uint64_t run_pipeline(void)
{
    for (unsigned i = 0; i < 2; i++) {
        BENCH_CHECK(bench_numbers_make(&to[i], &from[i], CAPACITY) == 0);
    }
    bench_start(0, 1, drain);
    bench_start(1, 1, mix_all);
    bench_start(2, 1, feed);
    bench_join(1, 2);
    bench_join(0, 1);
    return bench_right(0, 1);
}

static double pipeline(const struct bench_run *run)
{
    double ns = bench_time(run, run_pipeline, PIPELINE);
    uint64_t expected = 0;
    for (uint64_t i = 0; i < PIPELINE; i++) {
        expected += mix(i);
    }
    BENCH_CHECK(bench_sum(0, 1) == expected);
    return ns;
}

/* --- Locks ------------------------------------------------------------------------------------ */

static double mutex(const struct bench_run *run)
{
    return bench_mutex(run, 8, 50000);
}

/* --- Spawns ----------------------------------------------------------------------------------- */

static struct bench_counter counted;
static weft_notify batch_done;

/* The last task of a batch notifies the spawner; none is joined. */
static int count(void *arg)
{
    (void)arg;
    /* relaxed: only the count matters; the notification orders the rest. */
    if ((atomic_fetch_add_explicit(&counted.value, 1, memory_order_relaxed) + 1) % HOT_TASKS == 0) {
        weft_notify_one(&batch_done);
    }
    return 0;
}

static uint64_t spawn_batches(void)
{
    for (uint32_t n = 0; n < HOT_BATCHES; n++) {
        for (uint32_t i = 0; i < HOT_TASKS; i++) {
            BENCH_CHECK(weft_go(NULL, count, NULL) == 0);
        }
        BENCH_CHECK(weft_notify_wait(&batch_done, WEFT_NEVER) == 0);
    }
    return atomic_load(&counted.value);
}

static double spawn_hot(const struct bench_run *run)
{
    atomic_store(&counted.value, 0);
    return bench_time(run, spawn_batches, HOT_BATCHES * HOT_TASKS);
}

/* --- Computing -------------------------------------------------------------------------------- */

static uint64_t xorshift(uint64_t x)
{
    for (uint32_t i = 0; i < PARALLEL_ROUNDS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

static int compute(void *arg)
{
    struct bench_hand *hand = arg;
    hand->sum = xorshift(hand->index + 1);
    hand->right++;
    return 0;
}

static uint64_t compute_all(void)
{
    bench_start(0, PARALLEL, compute);
    bench_join(0, PARALLEL);
    return bench_right(0, PARALLEL);
}

static double parallel(const struct bench_run *run)
{
    double ns = bench_time(run, compute_all, PARALLEL);
    uint64_t expected = 0;
    for (uint64_t i = 0; i < PARALLEL; i++) {
        expected += xorshift(i + 1);
    }
    BENCH_CHECK(bench_sum(0, PARALLEL) == expected);
    return ns * PARALLEL / WEFT_MS; /* total, not per task */
}

const struct bench_row bench_volt_rows[] = {
    { .name = "volt.yield", .unit = "ns", .run = yields, .warmups = 2 },
    { .name = "volt.spsc", .unit = "ns", .run = spsc, .warmups = 2 },
    { .name = "volt.mpmc_1", .unit = "ns", .run = mpmc_1, .warmups = 2 },
    { .name = "volt.mpmc_2", .unit = "ns", .run = mpmc_2, .warmups = 2 },
    { .name = "volt.mpmc_4", .unit = "ns", .run = mpmc_4, .warmups = 2 },
    { .name = "volt.pipeline", .unit = "ns", .run = pipeline, .warmups = 2 },
    { .name = "volt.mutex", .unit = "ns", .run = mutex, .warmups = 2 },
    { .name = "volt.spawn_hot", .unit = "ns", .run = spawn_hot, .warmups = 2 },
    { .name = "volt.parallel", .unit = "ms", .run = parallel, .warmups = 2 },
    { 0 },
};
