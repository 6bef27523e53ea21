/* SPDX-License-Identifier: MIT */
/*
 * Goal:   timers fire during a shutdown as long as a blocking job waits for one.
 * Method: a shielded job, which the shutdown does not cancel, starts to wait after the shutdown has
 *         begun. Without workers it would never wake, and the shutdown would hang.
 */
#include <weft.h>

#include <stdatomic.h>
#include <stddef.h>

#include "rt.h"
#include "test.h"

static atomic_bool has_begun;

/* Returns when the shutdown has canceled this job. */
static void await_shutdown(void)
{
    atomic_store(&has_begun, true);
    while (!weft_cancelled()) {
        (void)weft_yield();
    }
    weft_shield_enter();
}

static int await_sleep(unsigned flags)
{
    weft_sleep_future sleep;
    weft_sleep_init(&sleep, weft_after(2 * WEFT_MS), flags);
    return weft_await(&sleep.future, WEFT_NEVER);
}

static int sleep_in_job(void *arg)
{
    (void)arg;
    await_shutdown();
    CHECK_EQ(await_sleep(0), 0);
    CHECK_EQ(await_sleep(WEFT_PRECISE), 0);
    CHECK_EQ(weft_sleep(WEFT_MS), 0);
    weft_shield_leave();
    return 0;
}

static int time_out_in_job(void *arg)
{
    static weft_event never_set;
    weft_op wait;
    weft_timeout_future timeout;
    (void)arg;
    await_shutdown();
    weft_event_wait_init(&wait, &never_set);
    weft_timeout_init(&timeout, &wait.future, weft_after(2 * WEFT_MS));
    CHECK_EQ(weft_await(&timeout.future, WEFT_NEVER), WEFT_ETIMEDOUT);
    weft_shield_leave();
    return 0;
}

static int tick_in_job(void *arg)
{
    weft_interval interval;
    (void)arg;
    await_shutdown();
    weft_interval_init(&interval, weft_after(WEFT_MS), WEFT_MS, WEFT_INTERVAL_SKIP);
    CHECK_GE(weft_interval_tick(&interval), 1);
    CHECK_GE(weft_interval_tick(&interval), 1);
    weft_shield_leave();
    return 0;
}

static void set_flag(void *arg)
{
    atomic_store((atomic_bool *)arg, true);
}

static int start_timer_in_job(void *arg)
{
    atomic_bool was_called = false;
    weft_timer timer = { { 0 } };
    (void)arg;
    await_shutdown();
    weft_timer_start(&timer, weft_after(WEFT_MS), 0, set_flag, &was_called);
    while (!atomic_load(&was_called)) {
        (void)weft_yield();
    }
    (void)weft_timer_stop(&timer);
    weft_shield_leave();
    return 0;
}

static int in_place(void *arg)
{
    return weft_block_in_place(*(int (**)(void *of))arg, NULL, WEFT_NEVER);
}

static void shut_down_beside(int (*function)(void *arg), bool is_job)
{
    weft_task *task;
    weft_runtime *rt = test_start(2);
    atomic_store(&has_begun, false);
    if (is_job) {
        CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, function, NULL), 0);
    } else {
        weft_fiber_spec spec = { .function = in_place, .arg = (void *)&function };
        CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
    }
    while (!atomic_load(&has_begun)) {
        (void)weft_yield();
    }
    weft_runtime_shutdown(rt);
    CHECK_EQ(test_join(task), 0);
    weft_runtime_destroy(rt);
}

static void timers_fire_for_shielded_jobs_during_shutdown(void)
{
    static int (*const functions[])(void *arg) = { sleep_in_job, time_out_in_job, tick_in_job,
                                                   start_timer_in_job };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        shut_down_beside(functions[i], true);
        shut_down_beside(functions[i], false);
    }
}

TEST_MAIN({ TEST(timers_fire_for_shielded_jobs_during_shutdown) })
