/* SPDX-License-Identifier: MIT */
#include <weft/par.h>

#include <stdatomic.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

static int return_worker(void *arg)
{
    (void)arg;
    return weft_worker_current();
}

static int run_on_worker(void *arg)
{
    return weft_par_run(arg, return_worker, NULL);
}

static void par_run_calls_function_on_calling_thread(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(weft_par_run(rt, return_worker, NULL), -1);
    CHECK_EQ(test_run(rt, run_on_worker, rt), 0);
    weft_runtime_destroy(rt);
}

enum {
    WORKERS = 4,
};

static _Atomic(unsigned) calls[WORKERS];

static int count_worker(void *arg)
{
    (void)arg;
    int worker = weft_worker_current();
    CHECK_EQ(weft_yield(), 0);
    CHECK_EQ(weft_worker_current(), worker);
    atomic_fetch_add(&calls[worker], 1);
    return worker == 2 || worker == 3 ? -worker : 0;
}

static int broadcast(void *arg)
{
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < WORKERS; i++) {
            atomic_store(&calls[i], 0);
        }
        CHECK_EQ(weft_par_broadcast(arg, count_worker, NULL), -2);
        for (unsigned i = 0; i < WORKERS; i++) {
            CHECK_EQ(atomic_load(&calls[i]), 1);
        }
    }
    return 0;
}

static void broadcast_runs_once_on_each_worker(void)
{
    weft_runtime *rt = test_start(WORKERS);
    CHECK_EQ(broadcast(rt), 0);
    CHECK_EQ(test_run(rt, broadcast, rt), 0);
    weft_runtime_destroy(rt);
}

static _Atomic(uint64_t) held;
static _Atomic(uint64_t) release;

static int hold(void *arg)
{
    atomic_fetch_add(&held, 1);
    test_wait_for(&release, 1);
    atomic_fetch_add((_Atomic(uint64_t) *)arg, 1);
    return 0;
}

static int broadcast_and_count(void *arg)
{
    _Atomic(uint64_t) over = 0; /* lives in this frame */
    CHECK_EQ(weft_par_broadcast(arg, hold, &over), 0);
    CHECK_EQ(over, 1);
    return weft_cancelled() ? 5 : 6;
}

static void canceled_broadcast_waits_for_all_workers(void)
{
    weft_runtime *rt = test_start(1);
    weft_runtime *caller = test_start(1);
    weft_task *task = test_go(caller, broadcast_and_count, rt);
    test_wait_for(&held, 1);
    weft_cancel(task);
    CHECK_EQ(weft_join(task, NULL, weft_now() + WEFT_MS), WEFT_ETIMEDOUT);
    atomic_store(&release, 1);
    CHECK_EQ(test_join_soon(task), 5);
    weft_runtime_destroy(caller);
    weft_runtime_destroy(rt);
}

static _Atomic(uint64_t) sleeping;

static int sleep_for_long(void *arg)
{
    (void)arg;
    atomic_fetch_add(&sleeping, 1);
    return weft_sleep(3600 * WEFT_S);
}

static int broadcast_sleep(void *arg)
{
    return weft_par_broadcast(arg, sleep_for_long, NULL);
}

static void canceled_broadcast_cancels_calls(void)
{
    weft_runtime *rt = test_start(WORKERS);
    weft_task *task = test_go(rt, broadcast_sleep, rt);
    test_wait_for(&sleeping, WORKERS);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    weft_runtime_destroy(rt);
}

static void broadcast_after_shutdown_returns_eshutdown(void)
{
    weft_runtime *rt = test_start(2);
    weft_runtime_shutdown(rt);
    CHECK_EQ(weft_par_broadcast(rt, count_worker, NULL), WEFT_ESHUTDOWN);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(par_run_calls_function_on_calling_thread),
    TEST(broadcast_runs_once_on_each_worker),
    TEST(canceled_broadcast_waits_for_all_workers),
    TEST(canceled_broadcast_cancels_calls),
    TEST(broadcast_after_shutdown_returns_eshutdown),
})
