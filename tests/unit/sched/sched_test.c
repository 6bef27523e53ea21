/* SPDX-License-Identifier: MIT */
#include "sched/sched.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include <weft.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "ledger.h"
#include "rt/runtime.h"
#include "sched/heap.h"
#include "sched/spawn.h"
#include "sched/worker.h"
#include "scheduler.h"
#include "test.h"
#include "timing.h"

static struct wf_sched_options plain_options(unsigned workers)
{
    struct wf_sched_options options = test_sched_options(workers);
    options.inject_interval_min = 8;
    options.search_ns = 20 * 1000;
    return options;
}

static void wait_until_all_sleep(struct wf_sched *sched)
{
    int64_t deadline = test_deadline();
    while (wf_idle_unparked(&sched->idle) != 0) {
        CHECK_LT(wf_clock_now(), deadline);
        test_wait_ns(100 * 1000);
    }
}

static uint64_t sum_of(struct wf_sched *sched, size_t offset)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < sched->options.workers; i++) {
        const char *counters = (const char *)&sched->workers[i].counters;
        sum += wf_counter_read((const wf_counter *)(const void *)(counters + offset));
    }
    return sum;
}

#define SUM_OF(sched, counter) sum_of((sched), offsetof(struct wf_worker_counters, counter))

static _Atomic(uint64_t) ended;
static _Atomic(int) ran_on;

static int end_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_store(&ran_on, weft_worker_current());
    atomic_fetch_add(&ended, 1);
    return 0;
}

static void task_is_queued_by_pin_and_by_waker(void)
{
    struct wf_sched_options options = plain_options(2);
    struct wf_sched *sched = test_sched_create(&options);
    struct wf_worker *workers = sched->workers;
    weft_spec spec = { .body = end_body };
    weft_spec pinned = { .body = end_body, .pinned = WEFT_PINNED_TO(1) };

    /* Outside. */
    CHECK_EQ(wf_spawn(sched, NULL, &spec), 0);
    CHECK_EQ(wf_inject_len(&sched->inject), 1);
    CHECK_EQ(wf_spawn(sched, NULL, &pinned), 0);
    CHECK_EQ(wf_inject_len(&sched->inject), 1);
    CHECK(!wf_mpsc_is_empty(&workers[1].inbox));

    /* On the worker that it is pinned to: no detour through the inbox. */
    test_be_worker(&workers[1]);
    struct wf_task *task = wf_worker_next(&workers[1]);
    CHECK_EQ(task->pin, 2);
    CHECK(wf_mpsc_is_empty(&workers[1].inbox));
    wf_worker_run(&workers[1], task);
    CHECK_EQ(wf_spawn(sched, NULL, &pinned), 0);
    CHECK(wf_mpsc_is_empty(&workers[1].inbox));
    CHECK_EQ(workers[1].pinned.count, 1);

    /* On another worker. */
    test_be_worker(&workers[0]);
    CHECK_EQ(wf_spawn(sched, NULL, &pinned), 0);
    CHECK(!wf_mpsc_is_empty(&workers[1].inbox));
    CHECK_EQ(wf_spawn(sched, NULL, &spec), 0);
    CHECK_EQ(wf_ring_len(&workers[0].ring) + (wf_load_relaxed(&workers[0].lifo) != NULL), 1);

    for (unsigned i = 0; i < 2; i++) {
        test_be_worker(&workers[i]);
        while ((task = wf_worker_next(&workers[i])) != NULL) {
            wf_worker_run(&workers[i], task);
        }
    }
    CHECK_EQ(SUM_OF(sched, completed), 5);
    test_be_worker(NULL);
    wf_sched_fini(sched);
}

static void worker_of_another_scheduler_counts_as_outside(void)
{
    struct wf_sched_options options = plain_options(2);
    struct wf_sched *sched = test_sched_create(&options);
    struct wf_sched *other = test_sched_create(&options);
    weft_spec spec = { .body = end_body };
    test_be_worker(&other->workers[0]);
    CHECK_EQ(wf_spawn(sched, NULL, &spec), 0);
    CHECK_EQ(wf_inject_len(&sched->inject), 1);
    CHECK_EQ(SUM_OF(other, spawned), 0);
    test_be_worker(&sched->workers[0]);
    wf_worker_run(&sched->workers[0], wf_worker_next(&sched->workers[0]));
    test_be_worker(NULL);
    wf_sched_fini(sched);
    wf_sched_fini(other);
}

static void has_work_checks_inject_queue_and_stealable_rings(void)
{
    struct wf_sched_options options = plain_options(70);
    struct wf_sched *sched = test_sched_create(&options);
    weft_spec spec = { .body = end_body };
    CHECK(!wf_sched_has_work(sched));
    CHECK_EQ(wf_spawn(sched, NULL, &spec), 0);
    CHECK(wf_sched_has_work(sched));
    sched->options.stealing = false;
    CHECK(wf_sched_has_work(sched));

    /* Moved into the ring of the last worker. */
    struct wf_worker *last = &sched->workers[69];
    struct wf_qlist list = { 0 };
    wf_inject_pop(&sched->inject, 1, &list);
    struct wf_qnode *node = wf_qlist_pop(&list);
    CHECK(!wf_sched_has_work(sched));
    CHECK(wf_ring_push(&last->ring, node));
    CHECK(!wf_sched_has_work(sched));
    sched->options.stealing = true;
    CHECK(wf_sched_has_work(sched));

    test_be_worker(last);
    wf_worker_run(last, wf_worker_next(last));
    CHECK(!wf_sched_has_work(sched));
    test_be_worker(NULL);
    wf_sched_fini(sched);
}

static void notify_wakes_one_worker_and_wake_all_wakes_all(void)
{
    struct wf_sched_options options = plain_options(3);
    struct wf_sched *sched = test_sched_create(&options);
    wf_idle_park(&sched->idle, 1, false);
    wf_idle_park(&sched->idle, 2, false);
    wf_sched_notify(sched);
    wf_sched_notify(sched); /* A worker searches now. */
    CHECK_NE(wf_load_relaxed(&sched->workers[1].park.word), 0);
    CHECK_EQ(wf_load_relaxed(&sched->workers[2].park.word), 0);
    wf_sched_wake_all(sched);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_NE(wf_load_relaxed(&sched->workers[i].park.word), 0);
    }
    wf_sched_fini(sched);
}

static void init_without_memory_leaks_nothing(void)
{
    struct ledger ledger = { 0 };
    struct wf_sched_options options = plain_options(2);
    options.allocator = ledger_allocator(&ledger);
    int err;
    int64_t refused = 0;
    do {
        struct wf_sched *sched =
            wf_alloc_zeroed(&wf_alloc_default, sizeof *sched, _Alignof(struct wf_sched));
        atomic_store(&ledger.calls, 0);
        ledger.fail_at++;
        err = wf_sched_init(sched, &options, NULL);
        if (err == 0) {
            /* What fini frees must have come from the same allocator. */
            atomic_fetch_add(&ledger.bytes, (int64_t)sizeof *sched);
            wf_sched_fini(sched);
        } else {
            CHECK_EQ(err, -ENOMEM);
            wf_free(&wf_alloc_default, sched, sizeof *sched, _Alignof(struct wf_sched));
            refused++;
        }
        CHECK_EQ(atomic_load(&ledger.bytes), 0);
    } while (err != 0);
    CHECK_GE(refused, 2);
}

static void scheduler_can_start_and_stop_many_times(void)
{
    for (unsigned i = 0; i < test_scale(100); i++) {
        struct wf_sched_options options = plain_options(1 + i % 5);
        struct wf_sched *sched = test_sched_create(&options);
        CHECK_EQ(wf_sched_start(sched), 0);
        wf_sched_drain(sched);
        wf_sched_stop(sched);
        for (unsigned at = 0; at < options.workers; at++) {
            CHECK_EQ(wf_counter_read(&sched->workers[at].counters.state), WEFT_WORKER_STOPPED);
        }
        wf_sched_fini(sched);
    }
}

static const size_t small_stack = 2 * 1024 * 1024;
static const size_t huge_stack = (size_t)1 << 46;

static size_t default_stack(void)
{
    pthread_attr_t attributes;
    size_t bytes = 0;
    CHECK_EQ(pthread_getattr_default_np(&attributes), 0);
    CHECK_EQ(pthread_attr_getstacksize(&attributes, &bytes), 0);
    CHECK_EQ(pthread_attr_destroy(&attributes), 0);
    return bytes;
}

static struct {
    _Atomic(uint64_t) started;
    _Atomic(uint64_t) stopped;
    uint64_t allowed;
} starts;

static void refuse_more_threads(void *ctx, unsigned worker)
{
    (void)ctx;
    (void)worker;
    if (atomic_fetch_add(&starts.started, 1) + 1 == starts.allowed) {
        test_set_default_stack(huge_stack);
    }
}

static void note_stop(void *ctx, unsigned worker)
{
    (void)ctx;
    (void)worker;
    atomic_fetch_add(&starts.stopped, 1);
}

/*
 * Starts a thousand workers. Thread creation fails some time after the allowed number has
 * started.
 */
static int try_to_start(uint64_t allowed)
{
    test_set_default_stack(allowed == 0 ? huge_stack : small_stack);
    starts.allowed = allowed;
    atomic_store(&starts.started, 0);
    atomic_store(&starts.stopped, 0);
    struct wf_sched_options options = plain_options(1000);
    options.on_start = refuse_more_threads;
    options.on_stop = note_stop;
    struct wf_sched *sched = test_sched_create(&options);
    int err = wf_sched_start(sched);
    if (err == 0) {
        wf_sched_drain(sched);
        wf_sched_stop(sched);
    } else {
        CHECK_LT(atomic_load(&starts.started), 1000);
    }
    CHECK_GE(atomic_load(&starts.started), allowed);
    CHECK_EQ(atomic_load(&starts.stopped), atomic_load(&starts.started));
    CHECK(!sched->watch.started);
    wf_sched_fini(sched);
    return err;
}

/*
 * Goal:   when the system refuses a thread, start fails and leaves no thread running.
 * Method: a default stack size that fits nowhere makes thread creation fail: immediately for the
 *         monitor's thread, or for a worker's thread after some of them have started and one of
 *         these has set the size. If that was too late, try again.
 */
static void failed_start_leaves_no_thread_running(void)
{
    size_t before = default_stack();
    CHECK_EQ(try_to_start(0), -EAGAIN);
    static const uint64_t allowed[] = { 1, 2, 17 };
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        int err = 0;
        for (unsigned tries = 0; err == 0 && tries < 50; tries++) {
            err = try_to_start(allowed[i]);
        }
        CHECK_EQ(err, -EAGAIN);
    }
    test_set_default_stack(before);
}

/*
 * Goal:   a task for the inbox of a parked worker wakes exactly that worker.
 * Method: with all workers parked, spawn one pinned task after the other to each. A worker that
 *         is still about to park may find the wake left over and park twice for one task, but not
 *         more often.
 */
static void pinned_task_wakes_only_its_worker(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 4;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    unsigned turns = (unsigned)test_scale(100);
    for (unsigned i = 0; i < 4 * turns; i++) {
        wait_until_all_sleep(rt->sched);
        atomic_store(&ended, 0);
        weft_spec spec = { .body = end_body, .pinned = WEFT_PINNED_TO(i % 4) };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        test_wait_for(&ended, 1);
        CHECK_EQ(atomic_load(&ran_on), i % 4);
    }
    wait_until_all_sleep(rt->sched);
    for (unsigned i = 0; i < 4; i++) {
        weft_worker_stats stats;
        CHECK_EQ(weft_worker_stats_read(rt, i, &stats), 0);
        CHECK_EQ(stats.polls, turns);
        CHECK_EQ(stats.wakes, 0);
        CHECK_LE(stats.parks, 1 + 2 * turns);
    }
    weft_runtime_destroy(rt);
}

/*
 * Goal:   one task spawned into an idle runtime wakes one worker, at most two, and the chain of
 *         wakes ends there.
 * Method: eight parked workers, one task, then wait until all are parked again. The counters show
 *         how many were woken.
 */
static void one_task_wakes_at_most_two_of_eight_workers(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 8;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    uint64_t woken = 0;
    uint64_t rounds = test_scale(100);
    for (uint64_t i = 0; i < rounds; i++) {
        wait_until_all_sleep(rt->sched);
        uint64_t before = SUM_OF(rt->sched, wakes);
        atomic_store(&ended, 0);
        weft_spec spec = { .body = end_body };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        test_wait_for(&ended, 1);
        wait_until_all_sleep(rt->sched);
        uint64_t wakes = SUM_OF(rt->sched, wakes) - before;
        CHECK_GE(wakes, 1);
        CHECK_LE(wakes, 2);
        woken += wakes;
    }
    (void)printf("%.2f wakes a task\n", (double)woken / (double)rounds);
    CHECK_EQ(SUM_OF(rt->sched, completed), rounds);
    weft_runtime_destroy(rt);
}

static _Atomic(weft_waker *) kept_waker;
static _Atomic(uint64_t) wake_polls;

/* Leaves a waker at each poll. Ends when it is canceled. */
static int wakeable_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    if (!weft_cancelled()) {
        atomic_store(&kept_waker, weft_waker_current());
        atomic_fetch_add(&wake_polls, 1);
    }
    return WEFT_PENDING;
}

/*
 * Goal:   a task that is woken from outside while all workers are parked is run.
 * Method: one task, woken again each time all workers have parked.
 */
static void wake_from_outside_unparks_worker(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 3;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    atomic_store(&wake_polls, 0);
    weft_spec spec = { .body = wakeable_body };
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
    uint64_t rounds = test_scale(200);
    for (uint64_t i = 1; i <= rounds; i++) {
        test_wait_for(&wake_polls, i);
        wait_until_all_sleep(rt->sched);
        weft_waker_fire(atomic_exchange(&kept_waker, NULL));
    }
    test_wait_for(&wake_polls, rounds + 1);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&wake_polls), rounds + 1);
    weft_waker_drop(atomic_exchange(&kept_waker, NULL));
}

/*
 * Goal:   tasks that a thread outside of the runtime wakes all run, also those that go idle and
 *         are woken over and over.
 * Method: tasks that keep a waker and stay pending. A thread fires all wakers until each task has
 *         been polled often enough.
 */
struct sleeper {
    _Atomic(weft_waker *) waker;
    unsigned polls;
};

static struct sleeper sleepers[32];

static int sleeper_body(weft_co *co, void *state)
{
    struct sleeper *self = *(struct sleeper **)state;
    (void)co;
    if (++self->polls > test_scale(400)) {
        atomic_fetch_add(&ended, 1);
        return 0;
    }
    weft_waker *old = atomic_exchange(&self->waker, weft_waker_current());
    weft_waker_drop(old);
    return WEFT_PENDING;
}

static void tasks_woken_from_outside_are_polled_again(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = test_workers(3);
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    atomic_store(&ended, 0);
    uint64_t count = sizeof sleepers / sizeof sleepers[0];
    for (uint64_t i = 0; i < count; i++) {
        struct sleeper *self = &sleepers[i];
        weft_spec spec = { .body = sleeper_body,
                           .state = &self,
                           .state_size = sizeof self,
                           .pinned = i % 4 == 0 ? WEFT_PINNED : 0 };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
    }
    while (atomic_load(&ended) < count) {
        for (uint64_t i = 0; i < count; i++) {
            weft_waker *waker = atomic_exchange(&sleepers[i].waker, NULL);
            if (waker != NULL) {
                weft_waker_fire(waker);
            }
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQ(sleepers[i].polls, test_scale(400) + 1);
        weft_waker_drop(atomic_exchange(&sleepers[i].waker, NULL));
    }
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(task_is_queued_by_pin_and_by_waker),
    TEST(worker_of_another_scheduler_counts_as_outside),
    TEST(has_work_checks_inject_queue_and_stealable_rings),
    TEST(notify_wakes_one_worker_and_wake_all_wakes_all),
    TEST(init_without_memory_leaks_nothing),
    TEST(scheduler_can_start_and_stop_many_times),
    TEST_NATIVE(failed_start_leaves_no_thread_running, "maps a stack of any size"),
    TEST(pinned_task_wakes_only_its_worker),
    TEST(one_task_wakes_at_most_two_of_eight_workers),
    TEST(wake_from_outside_unparks_worker),
    TEST(tasks_woken_from_outside_are_polled_again),
})
