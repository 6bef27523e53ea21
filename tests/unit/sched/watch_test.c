/* SPDX-License-Identifier: MIT */
#include "sched/watch.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "rt.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "sched/worker.h"
#include "quiet.h"
#include "test.h"
#include "timing.h"

static weft_runtime *create(unsigned workers)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = workers;
    config.thread_name = "idle";
    return test_start_with(&config);
}

static bool is_asleep(const weft_runtime *rt)
{
    return wf_load_relaxed(&rt->sched->watch.asleep) != 0 &&
           wf_idle_unparked(&rt->sched->idle) == 0;
}

static void wait_until_asleep(const weft_runtime *rt)
{
    int64_t deadline = test_deadline();
    while (!is_asleep(rt)) {
        CHECK_LT(wf_clock_now(), deadline);
        test_wait_ns(WEFT_MS);
    }
}

/*
 * Goal:   an idle runtime uses no CPU time.
 * Method: once the monitor sleeps, none of the threads may run even once for a while.
 */
static void idle_runtime_uses_no_cpu(void)
{
    weft_runtime *rt = create(4);
    wait_until_asleep(rt);
    quiet_must_come(150 * WEFT_MS);
    CHECK(is_asleep(rt));
    weft_runtime_destroy(rt);
}

static _Atomic(uint64_t) busy;
static _Atomic(uint64_t) released;

static int busy_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&busy, 1);
    test_wait_for(&released, 1);
    return 0;
}

static _Atomic(int64_t) started_at;
static _Atomic(uint64_t) over;

static int second_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_store(&started_at, weft_now());
    return 0;
}

/* Several tasks, because test builds bypass the slot once in a while. */
static int fill_and_wait_body(weft_co *co, void *state)
{
    weft_spec spec = { .body = second_body };
    for (unsigned i = 0; i < 16; i++) {
        CHECK_EQ(weft_spawn(NULL, &spec), 0);
    }
    return busy_body(co, state);
}

/* Occupies a worker until it is released. */
static void keep_monitor_awake(weft_runtime *rt)
{
    atomic_store(&busy, 0);
    atomic_store(&released, 0);
    weft_spec spec = { .body = fill_and_wait_body };
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
    test_wait_for(&busy, 1);
    int64_t deadline = test_deadline();
    while (wf_load_relaxed(&rt->sched->watch.asleep) != 0) {
        CHECK_LT(wf_clock_now(), deadline);
    }
}

/*
 * Goal:   the monitor goes to sleep soon after the last worker, and not while a worker runs.
 * Method: a task occupies one worker for many of the monitor's looks. It fills the LIFO slot
 *         first, in case the monitor fell asleep before it ran.
 */
static void monitor_stays_awake_while_worker_runs(void)
{
    weft_runtime *rt = create(2);
    keep_monitor_awake(rt);
    for (unsigned i = 0; i < 40; i++) {
        test_wait_ns(WEFT_MS);
        CHECK_EQ(wf_load_relaxed(&rt->sched->watch.asleep), 0);
    }
    atomic_store(&released, 1);
    wait_until_asleep(rt);
    weft_runtime_destroy(rt);
}

/*
 * Goal:   the monitor does not fall asleep as soon as all workers park, because waking it costs a
 *         system call.
 * Method: measure the time from the end of the last task to the monitor's sleep. Load on the
 *         machine makes it longer, never shorter.
 */
static void monitor_stays_awake_for_ten_quiet_milliseconds(void)
{
    weft_runtime *rt = create(2);
    for (unsigned i = 0; i < 8; i++) {
        wait_until_asleep(rt);
        keep_monitor_awake(rt);
        test_wait_ns((int64_t)i * WEFT_MS);
        int64_t start = wf_clock_now();
        int64_t deadline = start + 20 * WEFT_S;
        atomic_store(&released, 1);
        while (!is_asleep(rt)) {
            CHECK_LT(wf_clock_now(), deadline);
            test_wait_ns(200 * 1000);
        }
        CHECK_GE(wf_clock_now() - start, 8 * WEFT_MS);
    }
    weft_runtime_destroy(rt);
}

/* Fills the slot, and does not return before another worker has emptied it. */
static int first_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_spec spec = { .body = second_body };
    CHECK_EQ(weft_spawn(NULL, &spec), 0);
    int64_t deadline = test_deadline();
    while (atomic_load(&started_at) == 0) {
        if (weft_now() > deadline) {
            test_fail(__FILE__, __LINE__, "the monitor never saw the waiting task");
        }
        (void)sched_yield();
    }
    atomic_fetch_add(&over, 1);
    return 0;
}

/*
 * Goal:   the first fill of a LIFO slot wakes a monitor that sleeps without a timeout, and the
 *         monitor then finds the task in the slot.
 * Method: with everything asleep, a task spawns another and computes until that one has started.
 *         Only the monitor can cause that.
 */
static void fill_of_lifo_slot_wakes_monitor(void)
{
    weft_runtime *rt = create(2);
    unsigned rounds = test_is_sanitized() ? 12 : 40;
    uint64_t stolen = 0;
    for (unsigned i = 0; i < rounds; i++) {
        wait_until_asleep(rt);
        atomic_store(&started_at, 0);
        atomic_store(&over, 0);
        weft_spec spec = { .body = first_body };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        test_wait_for(&over, 1);
    }
    weft_runtime_shutdown(rt);
    for (unsigned i = 0; i < 2; i++) {
        weft_worker_stats stats;
        CHECK_EQ(weft_worker_stats_read(rt, i, &stats), 0);
        stolen += stats.lifo_stolen;
    }
    /* A shuffled wake goes through the ring and is announced. */
    CHECK_GE(stolen, 1);
    weft_runtime_destroy(rt);
}

/*
 * Goal:   a monitor that is awake also sees a second and a third stall.
 * Method: as above, without letting it fall asleep in between.
 */
static void awake_monitor_sees_every_stall(void)
{
    weft_runtime *rt = create(3);
    for (unsigned i = 0; i < test_scale(100); i++) {
        atomic_store(&started_at, 0);
        atomic_store(&over, 0);
        weft_spec spec = { .body = first_body };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        test_wait_for(&over, 1);
    }
    weft_runtime_destroy(rt);
}

/*
 * Goal:   without stealing, the monitor wakes no worker for a slot that no other worker may
 *         empty.
 * Method: a task waits in the slot of a busy worker for many looks; the other worker is not
 *         woken.
 */
static void stall_without_stealing_wakes_no_worker(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.stealing = WEFT_OFF;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    wait_until_asleep(rt);
    atomic_store(&busy, 0);
    atomic_store(&released, 0);
    atomic_store(&started_at, 0);
    weft_spec spec = { .body = fill_and_wait_body };
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    test_wait_for(&busy, 1);
    test_wait_ns(10 * WEFT_MS);
    weft_stats stats;
    weft_runtime_stats(rt, &stats);
    CHECK_EQ(stats.parked, 1);
    CHECK_EQ(atomic_load(&started_at), 0);
    atomic_store(&released, 1);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    wait_until_asleep(rt);
    uint64_t wakes = 0;
    for (unsigned i = 0; i < 2; i++) {
        weft_worker_stats one;
        CHECK_EQ(weft_worker_stats_read(rt, i, &one), 0);
        wakes += one.wakes;
    }
    CHECK_EQ(wakes, 1);
    CHECK_NE(atomic_load(&started_at), 0);
    weft_runtime_destroy(rt);
}

/* --- Calm monitor ----------------------------------------------------------------------- */

static weft_runtime *calm_runtime;
static _Atomic(uint64_t) ended;

static bool is_calm(void)
{
    return wf_load_relaxed(&calm_runtime->sched->watch.calm) != 0;
}

/*
 * Does what the monitor does before its next look, which may follow immediately and decide
 * otherwise.
 */
static void calm_down(void)
{
    wf_store_relaxed(&calm_runtime->sched->watch.calm, 1u);
}

static void fork_nothing(void *arg)
{
    (void)arg;
}

/* Counts how often the calm was over after a fork. */
static int fork_while_calm(void *arg)
{
    unsigned *over_at_once = arg;
    for (unsigned i = 0; i < 100; i++) {
        CHECK_EQ(weft_yield(), 0);
        calm_down();
        weft_join2(fork_nothing, NULL, fork_nothing, NULL);
        *over_at_once += !is_calm();
    }
    return 0;
}

/*
 * Goal:   a fork ends the monitor's calm immediately, not at its next look.
 * Method: a fiber forks while the monitor is calm, and checks whether it still is afterwards.
 */
static void fork_ends_calm_of_monitor(void)
{
    unsigned over_at_once = 0;
    calm_runtime = create(1);
    CHECK_EQ(test_run(calm_runtime, fork_while_calm, &over_at_once), 0);
    CHECK_GE(over_at_once, 90);
    weft_runtime_destroy(calm_runtime);
}

struct sleeps {
    _Atomic(bool) is_due; /* a worker is about to park */
    unsigned seen;
    unsigned calm; /* number of times it was still calm afterwards */
};

static int sleep_while_calm(void *arg)
{
    struct sleeps *sleeps = arg;
    for (unsigned i = 0; i < 20; i++) {
        calm_down();
        atomic_store(&sleeps->is_due, true);
        CHECK_EQ(weft_sleep(5 * WEFT_MS), 0);
    }
    atomic_store(&ended, 1);
    return 0;
}

static int check_parked_worker(void *arg)
{
    struct sleeps *sleeps = arg;
    while (atomic_load(&ended) == 0) {
        if (wf_idle_unparked(&calm_runtime->sched->idle) == 1 &&
            atomic_exchange(&sleeps->is_due, false)) {
            int64_t deadline = weft_now() + 20 * WEFT_US; /* It has a few steps to go. */
            while (is_calm() && weft_now() < deadline) {
            }
            sleeps->seen++;
            sleeps->calm += is_calm();
        }
        CHECK_EQ(weft_yield(), 0);
    }
    return 0;
}

/*
 * Goal:   a worker that parks ends the calm immediately: it may be needed for a task that another
 *         worker does not get to.
 * Method: a fiber sleeps while the monitor is calm, so its worker parks. A fiber on the other
 *         worker sees that, and checks whether the calm is over. Either may lose its core for a
 *         moment.
 */
static void parking_worker_ends_calm_of_monitor(void)
{
    struct sleeps sleeps = { 0 };
    calm_runtime = create(2);
    atomic_store(&ended, 0);
    weft_task *other;
    weft_fiber_spec spec = { .function = sleep_while_calm, .arg = &sleeps };
    CHECK_EQ(weft_runtime_go(calm_runtime, &other, &spec), 0);
    CHECK_EQ(test_run(calm_runtime, check_parked_worker, &sleeps), 0);
    CHECK_EQ(weft_join(other, NULL, WEFT_NEVER), 0);
    CHECK_LE(sleeps.calm, sleeps.seen / 2);
    weft_runtime_destroy(calm_runtime);
}

static int yield_until_ended(void *arg)
{
    (void)arg;
    while (atomic_load(&ended) == 0) {
        CHECK_EQ(weft_yield(), 0);
    }
    return 0;
}

/*
 * Goal:   while all workers go from poll to poll, the monitor becomes calm.
 * Method: a fiber yields until it is. With other programs on the cores a worker may be without
 *         one at each look, but not forever.
 */
static void monitor_with_nothing_to_do_becomes_calm(void)
{
    calm_runtime = create(1);
    atomic_store(&ended, 0);
    weft_task *task;
    weft_fiber_spec yields = { .function = yield_until_ended };
    CHECK_EQ(weft_runtime_go(calm_runtime, &task, &yields), 0);
    int64_t deadline = test_deadline();
    while (!is_calm()) {
        CHECK_LT(weft_now(), deadline);
        test_wait_ns(WEFT_MS);
    }
    atomic_store(&ended, 1);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    weft_runtime_destroy(calm_runtime);
}

/*
 * Goal:   stop works while the monitor sleeps and while it looks around.
 * Method: stop immediately, after a moment, and after it has fallen asleep. The join of its
 *         thread returns, or the test hangs.
 */
static void stop_works_whether_monitor_sleeps_or_looks(void)
{
    for (unsigned i = 0; i < test_scale(60); i++) {
        weft_runtime *rt = create(1 + i % 3);
        if (i % 3 == 1) {
            test_wait_ns((int64_t)i * 30 * 1000);
        } else if (i % 3 == 2) {
            wait_until_asleep(rt);
        }
        weft_runtime_shutdown(rt);
        CHECK(!rt->sched->watch.started);
        weft_runtime_destroy(rt);
    }
}

static void stop_without_start_does_nothing(void)
{
    struct wf_sched *sched =
        wf_alloc_zeroed(&wf_alloc_default, sizeof *sched, _Alignof(struct wf_sched));
    CHECK(sched != NULL);
    wf_watch_stop(sched);
    CHECK_EQ(wf_load_relaxed(&sched->watch.stopped), 0);
    CHECK(!wf_watch_is_asleep(&sched->watch));
    wf_store_relaxed(&sched->watch.asleep, 1u);
    CHECK(wf_watch_is_asleep(&sched->watch));
    wf_free(&wf_alloc_default, sched, sizeof *sched, _Alignof(struct wf_sched));
}

TEST_MAIN({
    TEST(stop_without_start_does_nothing),
    TEST(idle_runtime_uses_no_cpu),
    TEST(monitor_stays_awake_while_worker_runs),
    TEST(monitor_stays_awake_for_ten_quiet_milliseconds),
    TEST(fill_of_lifo_slot_wakes_monitor),
    TEST(awake_monitor_sees_every_stall),
    TEST(stall_without_stealing_wakes_no_worker),
    TEST(monitor_with_nothing_to_do_becomes_calm),
    TEST(fork_ends_calm_of_monitor),
    TEST(parking_worker_ends_calm_of_monitor),
    TEST(stop_works_whether_monitor_sleeps_or_looks),
})
