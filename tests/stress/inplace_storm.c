/* SPDX-License-Identifier: MIT */
/*
 * inplace_storm.c - fibers that block in place, yield, join and cancel each other.
 *
 * The blocking pool has too few threads, and every second round has a shutdown in the middle.
 */
#include <sched.h>
#include <stdatomic.h>

#include <weft.h>

#include "base/rng.h"
#include "rt.h"
#include "test.h"

enum {
    THREADS = 4,
    ROOTS = 16,
    STEPS = 40,
    DEPTH_MAX = 3
};

static struct {
    weft_runtime *rt;
    _Atomic(uint64_t) started; /* fibers that were accepted */
    _Atomic(uint64_t) ended;
    _Atomic(uint64_t) called; /* functions that ran on the pool */
    _Atomic(uint64_t) returned;
    _Atomic(uint64_t) refused;
} storm;

struct strand {
    uint64_t seed;
    uint32_t depth;
};

struct call {
    struct wf_rng rng;
    weft_task *task;
    int number;
    int runs;
};

static int strand_main(void *arg);

static int start_strand(weft_task **task, uint64_t seed, uint32_t depth)
{
    struct strand strand = { .seed = seed, .depth = depth };
    weft_fiber_spec spec = { .function = strand_main,
                             .arg = &strand,
                             .arg_size = sizeof strand,
                             .pinned = seed % 8 == 0 ? WEFT_PINNED : 0 };
    int err = weft_runtime_go(storm.rt, task, &spec);
    if (err == 0) {
        atomic_fetch_add(&storm.started, 1);
    } else {
        CHECK_EQ(err, WEFT_ESHUTDOWN);
    }
    return err;
}

/* Joins the fiber, even if the joiner is canceled. */
static void join_strand(weft_task *task)
{
    weft_shield_enter();
    CHECK_EQ(test_join_soon(task), 0);
    weft_shield_leave();
}

/* Joins a fiber that does not block in place: all pool threads may wait for such fibers. */
static void join_strand_inside_call(struct wf_rng *rng)
{
    weft_task *task;
    if (start_strand(&task, wf_rng_next(rng), DEPTH_MAX) == 0) {
        join_strand(task);
    }
}

static int called(void *arg)
{
    struct call *call = arg;
    atomic_fetch_add(&storm.called, 1);
    call->runs++;
    CHECK_EQ(weft_worker_current(), -1);
    CHECK(weft_task_current() == call->task);
    CHECK_EQ(errno, call->number);
    switch (wf_rng_below(&call->rng, 4)) {
    case 0:
        (void)sched_yield();
        break;
    case 1:
        join_strand_inside_call(&call->rng);
        break;
    default:
        break;
    }
    errno = call->number + 1;
    return call->number + 2;
}

static weft_time some_deadline(struct wf_rng *rng)
{
    switch (wf_rng_below(rng, 8)) {
    case 0:
        return weft_now();
    case 1:
        return weft_after((weft_time)wf_rng_below(rng, 2000) * WEFT_US);
    default:
        return WEFT_NEVER;
    }
}

/* The function was called once, with its result and errno returned here, or not at all. */
static void block_once(struct wf_rng *rng)
{
    struct call call = { .task = weft_task_current(), .number = (int)wf_rng_below(rng, 1000) };
    wf_rng_seed(&call.rng, wf_rng_next(rng), 1);
    bool shielded = wf_rng_below(rng, 8) == 0;
    if (shielded) {
        weft_shield_enter();
    }
    errno = call.number;
    int result = weft_block_in_place(called, &call, some_deadline(rng));
    if (call.runs == 1) {
        CHECK_EQ(result, call.number + 2);
        CHECK_EQ(errno, call.number + 1);
        atomic_fetch_add(&storm.returned, 1);
    } else {
        CHECK_EQ(call.runs, 0);
        CHECK(result == WEFT_ECANCELED || result == WEFT_ETIMEDOUT || result == WEFT_ESHUTDOWN);
        CHECK_EQ(errno, call.number);
        atomic_fetch_add(&storm.refused, 1);
    }
    CHECK_GE(weft_worker_current(), 0);
    CHECK(weft_task_current() == call.task);
    if (shielded) {
        weft_shield_leave();
    }
}

/* Starts another fiber, cancels it sooner, later or never, and joins it. */
static void run_child(struct wf_rng *rng, uint32_t depth)
{
    weft_task *task;
    if (start_strand(&task, wf_rng_next(rng), depth) != 0) {
        return;
    }
    if (wf_rng_below(rng, 2) == 0) {
        for (uint32_t i = wf_rng_below(rng, 6); i > 0; i--) {
            (void)weft_yield();
        }
        weft_cancel(task);
    }
    join_strand(task);
}

static void take_step(struct wf_rng *rng, uint32_t depth)
{
    uint32_t choice = wf_rng_below(rng, 10);
    if (depth == DEPTH_MAX || choice < 4) {
        (void)weft_yield();
    } else if (choice == 4) {
        run_child(rng, depth + 1);
    } else {
        block_once(rng);
    }
}

static int strand_main(void *arg)
{
    struct strand strand = *(struct strand *)arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, strand.seed, strand.depth);
    for (uint32_t i = 0; i < (uint32_t)STEPS >> strand.depth; i++) {
        take_step(&rng, strand.depth);
    }
    atomic_fetch_add(&storm.ended, 1);
    return 0;
}

static void check_counts(void)
{
    CHECK_EQ(atomic_load(&storm.ended), atomic_load(&storm.started));
    CHECK_EQ(atomic_load(&storm.returned), atomic_load(&storm.called));
    weft_stats stats;
    weft_runtime_stats(storm.rt, &stats);
    CHECK_EQ(stats.tasks_alive, 0);
    CHECK_EQ(stats.blocking_queued, 0);
}

/*
 * Goal:   each function is called once and its result is returned, or the call reports that it
 *         was not. No fiber is left behind.
 * Method: fibers take random steps. Both the called functions and the callers that get a result
 *         count. Every second round shuts down after a part of the calls.
 */
static void each_blocking_call_runs_once_or_is_refused(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = test_workers(2);
    config.blocking_threads = THREADS;
    for (uint64_t round = 0; round < test_scale(60); round++) {
        storm.rt = test_start_with(&config);
        uint64_t before = atomic_load(&storm.called);
        weft_task *tasks[ROOTS];
        for (uint64_t i = 0; i < ROOTS; i++) {
            CHECK_EQ(start_strand(&tasks[i], test_seed() + round * ROOTS + i, 0), 0);
        }
        if (round % 2 == 1) {
            test_wait_for(&storm.called, before + round % 30 * 4);
            weft_runtime_shutdown(storm.rt);
        }
        for (uint64_t i = 0; i < ROOTS; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        weft_runtime_shutdown(storm.rt);
        check_counts();
        weft_runtime_destroy(storm.rt);
    }
    CHECK_LT(0, atomic_load(&storm.returned));
    CHECK_LT(0, atomic_load(&storm.refused));
}

static int count_call(void *arg)
{
    (void)arg;
    atomic_fetch_add(&storm.called, 1);
    return 3;
}

static int block_on_time_and_late(void *arg)
{
    for (uint64_t i = *(uint64_t *)arg; i > 0; i--) {
        CHECK_EQ(weft_block_in_place(count_call, NULL, WEFT_NEVER), 3);
        int result = weft_block_in_place(count_call, NULL, weft_now());
        CHECK(result == 3 || result == WEFT_ETIMEDOUT);
        atomic_fetch_add(&storm.returned, 1 + (result == 3));
    }
    return 0;
}

/*
 * Goal:   a pool thread that has taken the blocking job when the fiber gives up is released.
 * Method: right after a successful call, when its thread looks for more work, make a call whose
 *         deadline has already passed. Repeat both many times.
 */
static void pool_thread_that_comes_too_late_is_released(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = test_workers(2);
    config.blocking_threads = 2;
    storm.rt = test_start_with(&config);
    uint64_t rounds = test_scale(10000);
    weft_task *tasks[3];
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = test_go(storm.rt, block_on_time_and_late, &rounds);
    }
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    weft_runtime_shutdown(storm.rt);
    check_counts();
    weft_runtime_destroy(storm.rt);
}

TEST_MAIN({
    TEST(each_blocking_call_runs_once_or_is_refused),
    TEST(pool_thread_that_comes_too_late_is_released),
})
