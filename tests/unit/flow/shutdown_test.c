/* SPDX-License-Identifier: MIT */
#include <weft/shutdown.h>

#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

static weft_shutdown service;
static atomic_uint served;
static atomic_uint cut_short;

static void begin(void)
{
    memset(&service, 0, sizeof service);
    atomic_store(&served, 0);
    atomic_store(&cut_short, 0);
}

static int serve(void *arg)
{
    weft_time duration = *(weft_time *)arg;
    weft_sleep_future sleep;
    weft_sleep_init(&sleep, weft_after(duration), 0);
    int err = weft_token_await(weft_shutdown_token(&service), &sleep.future, WEFT_NEVER);
    atomic_fetch_add(err == 0 ? &served : &cut_short, 1);
    weft_shutdown_leave(&service);
    return err;
}

static int wait_for_trigger(void *arg)
{
    (void)arg;
    return weft_shutdown_wait(&service, WEFT_NEVER);
}

static void drain_waits_for_work_in_progress(void)
{
    weft_runtime *rt = test_start(2);
    weft_time briefly = 2 * WEFT_MS;
    weft_task *tasks[10];
    begin();
    weft_task *waiter = test_go(rt, wait_for_trigger, NULL);
    for (unsigned i = 0; i < 10; i++) {
        CHECK_EQ(weft_shutdown_enter(&service), 0);
        tasks[i] = test_go(rt, serve, &briefly);
    }
    CHECK(!weft_shutdown_is_triggered(&service));
    CHECK_EQ(weft_shutdown_drain(&service, test_deadline()), 0);
    CHECK(weft_shutdown_is_triggered(&service));
    CHECK_EQ(weft_shutdown_pending(&service), 0);
    CHECK(!weft_token_is_cancelled(weft_shutdown_token(&service)));
    CHECK_EQ(atomic_load(&served), 10);
    CHECK_EQ(weft_shutdown_enter(&service), WEFT_ESHUTDOWN);
    CHECK_EQ(test_join_soon(waiter), 0);
    for (unsigned i = 0; i < 10; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    weft_runtime_destroy(rt);
}

static void trigger_wakes_all_waiters(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *tasks[3];
    begin();
    CHECK_EQ(weft_shutdown_wait(&service, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = test_go_first(rt, wait_for_trigger, NULL);
        CHECK_EQ(weft_try_join(tasks[i], NULL), -EAGAIN);
    }
    weft_shutdown_trigger(&service);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    CHECK_EQ(weft_shutdown_wait(&service, WEFT_NEVER), 0);
    weft_runtime_destroy(rt);
}

static void drain_deadline_cancels_remaining_work(void)
{
    weft_runtime *rt = test_start(2);
    weft_time briefly = WEFT_MS;
    weft_time long_time = 3600 * WEFT_S;
    weft_task *tasks[4];
    begin();
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(weft_shutdown_enter(&service), 0);
    }
    CHECK_EQ(weft_shutdown_pending(&service), 4);
    for (unsigned i = 0; i < 4; i++) {
        tasks[i] = test_go(rt, serve, i < 2 ? &briefly : &long_time);
    }
    CHECK_EQ(test_join_soon(tasks[0]), 0);
    CHECK_EQ(test_join_soon(tasks[1]), 0);
    CHECK_EQ(weft_shutdown_drain(&service, weft_after(5 * WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(atomic_load(&served), 2);
    CHECK_EQ(atomic_load(&cut_short), 2);
    CHECK_EQ(test_join_soon(tasks[2]), WEFT_ECANCELED);
    CHECK_EQ(test_join_soon(tasks[3]), WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

static int drain(void *arg)
{
    (void)arg;
    return weft_shutdown_drain(&service, WEFT_NEVER);
}

static void several_tasks_can_drain(void)
{
    weft_runtime *rt = test_start(1);
    begin();
    CHECK_EQ(weft_shutdown_enter(&service), 0);
    CHECK_EQ(weft_shutdown_enter(&service), 0);
    weft_task *first = test_go_first(rt, drain, NULL);
    weft_task *second = test_go_first(rt, drain, NULL);
    weft_shutdown_leave(&service);
    test_settle(rt);
    CHECK_EQ(weft_try_join(first, NULL), -EAGAIN);
    CHECK_EQ(weft_try_join(second, NULL), -EAGAIN);
    weft_shutdown_leave(&service);
    CHECK_EQ(test_join_soon(first), 0);
    CHECK_EQ(test_join_soon(second), 0);
    weft_runtime_destroy(rt);
}

/* After the drain, a cancel ends waits as before. */
static int drain_and_sleep(void *arg)
{
    int result = drain(arg);
    CHECK_EQ(weft_sleep(3600 * WEFT_S), WEFT_ECANCELED);
    return result;
}

static void canceled_drain_cancels_work(void)
{
    weft_runtime *rt = test_start(1);
    weft_time long_time = 3600 * WEFT_S;
    begin();
    CHECK_EQ(weft_shutdown_enter(&service), 0);
    weft_task *work = test_go_first(rt, serve, &long_time);
    weft_task *drainer = test_go_first(rt, drain_and_sleep, NULL);
    test_settle(rt);
    weft_cancel(drainer);
    CHECK_EQ(test_join_soon(drainer), WEFT_ECANCELED);
    CHECK_EQ(atomic_load(&cut_short), 1);
    CHECK_EQ(test_join_soon(work), WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

/* All tasks accept work while the service is drained. Accepted work is finished, and no more is
 * accepted. */
static atomic_uint_fast64_t taken;
static atomic_uint_fast64_t done;

static int accept_work(void *arg)
{
    (void)arg;
    while (weft_shutdown_enter(&service) == 0) {
        atomic_fetch_add(&taken, 1);
        (void)weft_yield();
        atomic_fetch_add(&done, 1);
        weft_shutdown_leave(&service);
    }
    return 0;
}

static void no_work_is_accepted_after_drain(void)
{
    static const unsigned workers[] = { 1, 2, 8 };
    for (unsigned w = 0; w < 3; w++) {
        for (unsigned round = 0; round < 20; round++) {
            weft_runtime *rt = test_start(workers[w]);
            weft_task *tasks[6];
            begin();
            atomic_store(&taken, 0);
            atomic_store(&done, 0);
            for (unsigned i = 0; i < 6; i++) {
                tasks[i] = test_go(rt, accept_work, NULL);
            }
            CHECK_EQ(weft_shutdown_drain(&service, WEFT_NEVER), 0);
            uint64_t at_the_end = atomic_load(&done);
            CHECK_EQ(atomic_load(&taken), at_the_end);
            for (unsigned i = 0; i < 6; i++) {
                CHECK_EQ(test_join_soon(tasks[i]), 0);
            }
            CHECK_EQ(atomic_load(&taken), at_the_end);
            weft_runtime_destroy(rt);
        }
    }
}

static void leave_without_enter(void)
{
    begin();
    weft_shutdown_leave(&service);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(leave_without_enter, "weft_shutdown_leave: nothing is under way");
}

TEST_MAIN({
    TEST(drain_waits_for_work_in_progress),
    TEST(trigger_wakes_all_waiters),
    TEST(drain_deadline_cancels_remaining_work),
    TEST(several_tasks_can_drain),
    TEST(canceled_drain_cancels_work),
    TEST(no_work_is_accepted_after_drain),
    TEST(misuse_aborts_with_message),
})
