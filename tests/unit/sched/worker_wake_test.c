/* SPDX-License-Identifier: MIT */
/*
 * worker_wake_test.c - tasks for which a worker wakes another one.
 */
#include "worker_rig.h"

/* Makes worker 1 look parked to worker 0. */
static void let_other_sleep(void)
{
    wf_idle_init(&sched->idle, sched->options.workers);
    wf_store_relaxed(&sched->workers[1].park.word, 0u);
    wf_idle_park(&sched->idle, 1, false);
}

static bool other_was_woken(void)
{
    bool claimed = !wf_idle_is_parked(&sched->idle, 1);
    bool woken = wf_load_relaxed(&sched->workers[1].park.word) != 0;
    CHECK_EQ(claimed, woken);
    return woken;
}

static void fill_of_lifo_slot_wakes_no_worker(void)
{
    set_up(test_sched_options(2));
    calm(1);
    let_other_sleep();
    spawn_here('a');
    CHECK(!other_was_woken());
    run_all();
    CHECK(!other_was_woken());
    tear_down();
}

static void eviction_wakes_parked_worker_immediately(void)
{
    set_up(test_sched_options(2));
    calm(2);
    spawn_here('a');
    let_other_sleep();
    spawn_here('b');
    CHECK(other_was_woken());
    run_all();
    tear_down();
}

static void task_beyond_lifo_cap_wakes_worker_if_it_must_wait(void)
{
    set_up(test_sched_options(2));
    calm(1);
    let_other_sleep();
    worker->shares = false;
    spawn_in_ring('r');
    worker->shares = true;
    spawn_here('x');
    worker->lifo_streak = WF_WORKER_LIFO_MAX;
    CHECK(!other_was_woken());
    CHECK(run_one());
    CHECK(other_was_woken());
    run_all();
    CHECK_RAN("rx");

    /* Alone, it goes through the ring and runs immediately. */
    calm(1);
    let_other_sleep();
    spawn_here('y');
    worker->lifo_streak = WF_WORKER_LIFO_MAX;
    CHECK(run_one());
    CHECK(!other_was_woken());
    CHECK_RAN("rxy");
    tear_down();
}

static void yield_wakes_worker_only_if_another_task_is_queued(void)
{
    set_up(test_sched_options(2));
    let_other_sleep();
    worker->shares = false;
    spawn_yielder('y', 4, 0);
    worker->shares = true;
    CHECK(run_one());
    CHECK(run_one());
    CHECK(!other_was_woken());

    worker->shares = false;
    spawn_in_ring('a');
    worker->shares = true;
    CHECK(!other_was_woken());
    CHECK(run_one());
    CHECK(run_one());
    CHECK(other_was_woken());
    run_all();
    CHECK_RAN("yyyayy");
    tear_down();
}

static void rest_of_batch_is_announced_but_single_task_is_not(void)
{
    set_up(test_sched_options(2));
    spawn_outside('a');
    let_other_sleep();
    CHECK(run_one());
    CHECK(!other_was_woken());

    spawn_outside('b');
    spawn_outside('c');
    let_other_sleep();
    struct wf_task *task = wf_worker_next(worker);
    CHECK(other_was_woken());
    wf_worker_run(worker, task);
    run_all();
    tear_down();
}

static void overflow_wakes_parked_worker_even_without_stealing(void)
{
    struct wf_sched_options options = test_sched_options(2);
    options.stealing = false;
    options.lifo = false;
    set_up(options);
    let_other_sleep();
    for (unsigned i = 0; i < WF_RING_SLOTS; i++) {
        spawn_here('r');
    }
    CHECK(!other_was_woken());
    spawn_here('r');
    CHECK(other_was_woken());
    run_all();
    tear_down();
}

static void ring_without_stealing_wakes_no_worker(void)
{
    struct wf_sched_options options = test_sched_options(2);
    options.stealing = false;
    set_up(options);
    calm(4);
    let_other_sleep();
    spawn_here('a');
    spawn_here('b');
    spawn_here('c');
    run_all();
    CHECK(!other_was_woken());
    CHECK_RAN("cab");
    tear_down();
}

static void first_fill_after_sleep_wakes_sleeping_monitor(void)
{
    set_up(test_sched_options(2));
    calm(3);
    spawn_here('a');
    CHECK_EQ(wf_load_relaxed(&sched->watch.park.word), 0);
    run_all();

    worker->watch_asleep = true;
    spawn_here('b');
    CHECK_NE(wf_load_relaxed(&sched->watch.park.word), 0);
    CHECK(!worker->watch_asleep);
    run_all();
    tear_down();
}

TEST_MAIN({
    TEST(fill_of_lifo_slot_wakes_no_worker),
    TEST(eviction_wakes_parked_worker_immediately),
    TEST(task_beyond_lifo_cap_wakes_worker_if_it_must_wait),
    TEST(yield_wakes_worker_only_if_another_task_is_queued),
    TEST(rest_of_batch_is_announced_but_single_task_is_not),
    TEST(overflow_wakes_parked_worker_even_without_stealing),
    TEST(ring_without_stealing_wakes_no_worker),
    TEST(first_fill_after_sleep_wakes_sleeping_monitor),
})
