/* SPDX-License-Identifier: MIT */
/*
 * sleep_test.c - sleeping on fibers, in stackless tasks, in blocking jobs and on plain threads.
 */
#include <stdatomic.h>
#include <stdio.h>

#include <weft.h>

#include "base/rng.h"
#include "nap.h"
#include "rt.h"
#include "test.h"
#include "virtual.h"

/* --- Duration ---------------------------------------------------------------------- */

static void sleep_ends_at_deadline_and_not_before(void)
{
    for (int place = 0; place < PLACES; place++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(2);
        struct nap nap = { .deadline = start + 5 * WEFT_MS };
        nap_start(&nap, rt, (enum place)place);
        nap_wait_asleep(&nap, rt);
        weft_clock_advance(5 * WEFT_MS - 1);
        nap_wait_asleep(&nap, rt);
        weft_clock_advance(1);
        nap_join(&nap);
        CHECK_EQ(nap.result, 0);
        CHECK_EQ(nap.woke, nap.deadline);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static void sleep_until_past_time_returns_immediately(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(1);
    const weft_time deadlines[] = { start, start - 1, start - VIRTUAL_HOUR, 1, 0, -1, INT64_MIN };
    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        for (int place = 0; place < PLACES; place++) {
            struct nap nap = { .deadline = deadlines[i] };
            nap_start(&nap, rt, (enum place)place);
            nap_join(&nap);
            CHECK_EQ(nap.result, 0);
            CHECK_EQ(nap.woke, start);
        }
    }
    weft_runtime_destroy(rt);
    virtual_end();
}

static int sleep_for_zero_or_negative_time(void *arg)
{
    (void)arg;
    const weft_time durations[] = { 0, -1, -WEFT_S, -VIRTUAL_HOUR, INT64_MIN, INT64_MIN + 1 };
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        CHECK_EQ(weft_sleep(durations[i]), 0);
    }
    return 0;
}

static void sleep_of_zero_or_less_returns_immediately(void)
{
    (void)virtual_begin();
    CHECK_EQ(sleep_for_zero_or_negative_time(NULL), 0);
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_join(virtual_go(rt, sleep_for_zero_or_negative_time, NULL)), 0);
    weft_task *job;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, sleep_for_zero_or_negative_time, NULL), 0);
    CHECK_EQ(test_join(job), 0);
    weft_runtime_destroy(rt);
    virtual_end();
}

/*
 * Threads and precise futures wake to the nanosecond. The others wait for the end of the
 * millisecond.
 */
static void sleep_of_one_nanosecond_sleeps(void)
{
    for (int place = 0; place <= PLACES; place++) {
        bool precise = place == PLACES;
        bool exact = precise || place == ON_THREAD || place == IN_JOB;
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        struct nap nap = { .deadline = start + 1, .flags = precise ? WEFT_PRECISE : 0 };
        nap_start(&nap, rt, precise ? IN_BODY : (enum place)place);
        nap_wait_asleep(&nap, rt);
        weft_clock_advance(1);
        if (!exact) {
            nap_wait_asleep(&nap, rt);
            weft_clock_advance(WEFT_MS - 1);
        }
        nap_join(&nap);
        CHECK_EQ(nap.result, 0);
        CHECK_EQ(nap.woke, exact ? start + 1 : start + WEFT_MS);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

/*
 * Goal:   the wheel does not end a long sleep early when it moves the timer between levels.
 * Method: steps of all sizes toward a deadline six weeks away, so that the timer moves down
 *         through the levels of the wheel.
 */
static void sleep_of_weeks_ends_at_deadline(void)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    for (int place = 0; place < PLACES; place++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        struct nap nap = { .deadline = start + 1000 * VIRTUAL_HOUR + 321 * WEFT_MS };
        nap_start(&nap, rt, (enum place)place);
        nap_wait_asleep(&nap, rt);
        for (weft_time left; (left = nap.deadline - weft_now()) > 1;) {
            weft_time most = left < (1 << 20) ? left - 1 : left / 8;
            weft_clock_advance(1 + (weft_time)((uint64_t)most * wf_rng_below(&rng, 1024) / 1024));
            nap_wait_asleep(&nap, rt);
        }
        weft_clock_advance(1);
        nap_join(&nap);
        CHECK_EQ(nap.result, 0);
        CHECK_EQ(nap.woke, nap.deadline);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static int sleep_repeatedly(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        weft_time deadline = weft_after(WEFT_MS);
        CHECK_EQ(weft_sleep_until(deadline), 0);
        CHECK_GE(weft_now(), deadline);
    }
    return 0;
}

/* On the machine's clock. A sleep must not be early. How late it may be depends on the machine. */
static void sleep_on_real_clock_is_never_early(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_join(virtual_go(rt, sleep_repeatedly, NULL)), 0);
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, sleep_repeatedly, NULL), 0);
    CHECK_EQ(test_join(task), 0);
    CHECK_EQ(sleep_repeatedly(NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Futures ------------------------------------------------------------------------- */

static int await_sleeps(void *arg)
{
    weft_sleep_future sleep;
    (void)arg;
    weft_sleep_init(&sleep, weft_after(VIRTUAL_HOUR), 0);
    CHECK_EQ(weft_await(&sleep.future, weft_after(2 * WEFT_MS)), WEFT_ETIMEDOUT);
    /* The same sleep again, which now ends first. */
    weft_sleep_init(&sleep, weft_after(2 * WEFT_MS), 0);
    CHECK_EQ(weft_await(&sleep.future, weft_after(VIRTUAL_HOUR)), 0);
    weft_sleep_init(&sleep, weft_after(2 * WEFT_MS), WEFT_PRECISE);
    CHECK_EQ(weft_await(&sleep.future, WEFT_NEVER), 0);
    weft_sleep_init(&sleep, WEFT_NEVER, WEFT_PRECISE);
    CHECK_EQ(weft_await(&sleep.future, weft_after(2 * WEFT_MS)), WEFT_ETIMEDOUT);
    weft_sleep_init(&sleep, weft_now(), 0);
    CHECK_EQ(weft_await(&sleep.future, weft_now()), 0);
    return 0;
}

static void sleep_future_can_be_awaited_on_fiber_and_blocking_job(void)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        (void)virtual_begin();
        weft_runtime *rt = test_start(2);
        weft_task *task;
        if (blocking) {
            CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, await_sleeps, NULL), 0);
        } else {
            task = virtual_go(rt, await_sleeps, NULL);
        }
        while (!weft_task_is_done(task)) {
            weft_clock_advance(WEFT_MS);
        }
        CHECK_EQ(test_join(task), 0);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static _Atomic(uint64_t) flag;

static int set_flag_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_store(&flag, 1);
    return 0;
}

static int sleep_until_flag(void *arg)
{
    (void)arg;
    int sleeps = 0;
    for (; atomic_load(&flag) == 0; sleeps++) {
        CHECK_EQ(weft_sleep(0), 0);
    }
    return sleeps;
}

static int sleep_until_flag_task(weft_co *co, void *state)
{
    weft_sleep_future *sleep = state;
    int err = 0;
    WEFT_BEGIN(co);
    while (atomic_load(&flag) == 0) {
        weft_sleep_init(sleep, weft_now(), 0);
        WEFT_AWAIT(co, err, &sleep->future);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, 0);
}

/*
 * Goal:   a task that sleeps for no time in a loop does not starve others.
 * Method: one worker, and a second task that the first one waits for in such a loop.
 */
static void zero_length_sleeps_let_others_run(void)
{
    weft_runtime *rt = test_start(1);
    weft_spec setter = { .body = set_flag_task };
    weft_spec waiter = { .body = sleep_until_flag_task, .state_size = sizeof(weft_sleep_future) };
    for (int i = 0; i < 10; i++) {
        atomic_store(&flag, 0);
        weft_task *task = virtual_go(rt, sleep_until_flag, NULL);
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &setter), 0);
        CHECK_GE(test_join(task), 0);

        atomic_store(&flag, 0);
        CHECK_EQ(weft_runtime_spawn(rt, &task, &waiter), 0);
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &setter), 0);
        CHECK_EQ(test_join(task), 0);
    }
    weft_runtime_destroy(rt);
}

struct woken {
    weft_sleep_future sleep;
    weft_time deadline;
    weft_waker *waker;
    _Atomic(uint64_t) begun;
};

static int woken_fiber(void *arg)
{
    struct woken *woken = arg;
    woken->waker = weft_waker_current();
    (void)atomic_fetch_add(&woken->begun, 1);
    CHECK_EQ(weft_sleep_until(woken->deadline), 0);
    CHECK_GE(weft_now(), woken->deadline);
    return 0;
}

static int woken_stackless(weft_co *co, void *state)
{
    struct woken *woken = test_arg(state);
    int err = 0;
    WEFT_BEGIN(co);
    woken->waker = weft_waker_current();
    (void)atomic_fetch_add(&woken->begun, 1);
    weft_sleep_init(&woken->sleep, woken->deadline, 0);
    WEFT_AWAIT(co, err, &woken->sleep.future);
    CHECK_GE(weft_now(), woken->deadline);
    WEFT_END(co, err);
}

static void spurious_wake_does_not_end_sleep(void)
{
    for (int body = 0; body < 2; body++) {
        struct woken woken = { .deadline = virtual_begin() + WEFT_MS };
        weft_runtime *rt = test_start(2);
        weft_task *task =
            body ? test_spawn(rt, woken_stackless, &woken) : virtual_go(rt, woken_fiber, &woken);
        test_wait_for(&woken.begun, 1);
        for (int i = 0; i < 20; i++) {
            virtual_settle(rt);
            CHECK(!weft_task_is_done(task));
            weft_waker_wake(woken.waker);
        }
        virtual_settle(rt);
        weft_clock_advance(WEFT_MS);
        CHECK_EQ(test_join(task), 0);
        weft_waker_drop(woken.waker);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

/* --- Parked workers ---------------------------------------------------------------------- */

static _Atomic(uint64_t) unparks[2];

static void count_unpark(void *ctx, unsigned worker)
{
    (void)ctx;
    (void)atomic_fetch_add(&unparks[worker], 1);
}

/*
 * Goal:   an advance of the clock wakes a worker when its timer is due, and no worker earlier.
 * Method: one task sleeps on each worker, pinned to it. Both deadlines are in the lowest level
 *         of the wheel, so no worker has to wake to move timers down. The monitor is asleep,
 *         too: it might wake workers to help each other.
 */
static void advance_wakes_worker_only_when_its_timer_is_due(void)
{
    weft_time start = virtual_begin();
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.on_unpark = count_unpark;
    weft_runtime *rt = test_start_with(&config);
    struct nap naps[2] = { { .deadline = start + 20 * WEFT_MS },
                           { .deadline = start + 40 * WEFT_MS } };
    for (unsigned i = 0; i < 2; i++) {
        struct nap *nap = &naps[i];
        weft_spec spec = {
            .body = nap_body, .state = &nap, .state_size = sizeof nap, .pinned = WEFT_PINNED_TO(i)
        };
        CHECK_EQ(weft_runtime_spawn(rt, &nap->task, &spec), 0);
        nap->place = IN_BODY;
        nap_wait_asleep(nap, rt);
    }
    for (unsigned i = 0; i < 2; i++) {
        virtual_settle_all(rt);
        uint64_t before[2] = { atomic_load(&unparks[0]), atomic_load(&unparks[1]) };
        weft_clock_advance(19 * WEFT_MS);
        CHECK_EQ(atomic_load(&unparks[0]), before[0]);
        CHECK_EQ(atomic_load(&unparks[1]), before[1]);
        weft_clock_advance(WEFT_MS);
        nap_join(&naps[i]);
        CHECK_EQ(naps[i].woke, naps[i].deadline);
        CHECK_LT(before[i], atomic_load(&unparks[i]));
    }
    weft_runtime_destroy(rt);
    virtual_end();
}

/* --- Misuse. Each case runs in its own child process. --------------------------------------- */

static int sleep_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return weft_sleep(1);
}

static void sleep_in_stackless_task(void)
{
    (void)test_join(test_spawn(test_start(1), sleep_task, NULL));
}

static void sleep_callback(void *arg)
{
    (void)arg;
    (void)weft_sleep_until(0);
}

static int start_sleeping_timer(void *arg)
{
    weft_timer timer = { { 0 } };
    (void)arg;
    weft_timer_start(&timer, 0, 0, sleep_callback, NULL);
    return weft_sleep(WEFT_S);
}

static void sleep_in_timer_callback(void)
{
    CHECK_EQ(weft_run(NULL, start_sleeping_timer, NULL), 0);
}

static int sleep_poll(weft_future *future)
{
    (void)future;
    return weft_sleep(1);
}

static int await_sleeping_poll(void *arg)
{
    (void)arg;
    weft_future future = { &(const weft_future_ops){ .poll = sleep_poll } };
    return weft_await(&future, WEFT_NEVER);
}

static void sleep_in_poll(void)
{
    CHECK_EQ(weft_run(NULL, await_sleeping_poll, NULL), 0);
}

static void sleep_in_poll_on_thread(void)
{
    (void)await_sleeping_poll(NULL);
}

static void await_sleep_without_runtime(void)
{
    weft_sleep_future sleep;
    weft_sleep_init(&sleep, weft_after(WEFT_S), 0);
    CHECK_EQ(weft_await(&sleep.future, WEFT_NEVER), 0);
}

static void sleep_in_wrong_context_aborts_with_advice(void)
{
    CHECK_ABORTS(sleep_in_stackless_task, "weft_sleep: called on a worker");
    CHECK_ABORTS(sleep_in_stackless_task, "await a weft_sleep_future in a body");
    CHECK_ABORTS(sleep_in_timer_callback, "weft_sleep_until: called on a worker");
    CHECK_ABORTS(sleep_in_poll, "called from the poll of a future");
    CHECK_ABORTS(sleep_in_poll_on_thread, "called from the poll of a future");
    CHECK_ABORTS(await_sleep_without_runtime, "weft_sleep_init: this thread belongs to no");
}

/* --- Timeouts ---------------------------------------------------------------------- */

static unsigned starts;

static int count_start(weft_future *future)
{
    (void)future;
    starts++;
    return 0;
}

static bool never_canceled(weft_future *future)
{
    (void)future;
    return true;
}

static int await_with_timeout(void *arg)
{
    (void)arg;
    static const weft_future_ops ops = { .poll = count_start,
                                         .cancel = never_canceled,
                                         .flags = WEFT_FUTURE_ALWAYS_STARTS };
    weft_future inner = { .ops = &ops };
    weft_timeout_future timeout;
    CHECK_EQ(weft_sleep(VIRTUAL_HOUR), WEFT_ECANCELED);
    weft_timeout_init(&timeout, &inner, weft_after(VIRTUAL_HOUR));
    CHECK_EQ(weft_await(&timeout.future, WEFT_NEVER), 0);
    return 0;
}

/* Such as the end of a scope: it must also happen in a canceled task. */
static void timeout_starts_future_that_always_starts(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task = test_go(rt, await_with_timeout, NULL);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 0);
    CHECK_EQ(starts, 1);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(sleep_in_wrong_context_aborts_with_advice),
    TEST(sleep_ends_at_deadline_and_not_before),
    TEST(sleep_until_past_time_returns_immediately),
    TEST(sleep_of_zero_or_less_returns_immediately),
    TEST(sleep_of_one_nanosecond_sleeps),
    TEST(sleep_of_weeks_ends_at_deadline),
    TEST(sleep_on_real_clock_is_never_early),
    TEST(sleep_future_can_be_awaited_on_fiber_and_blocking_job),
    TEST(zero_length_sleeps_let_others_run),
    TEST(spurious_wake_does_not_end_sleep),
    TEST(advance_wakes_worker_only_when_its_timer_is_due),
    TEST(timeout_starts_future_that_always_starts),
})
