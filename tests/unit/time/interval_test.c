/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include <weft.h>

#include "rt.h"
#include "test.h"
#include "virtual.h"

#define PERIOD (10 * WEFT_MS)

/* --- Counting, without waiting ------------------------------------------------------ */

static void interval_starts_at_first_tick(void)
{
    static const weft_interval_policy policies[] = { WEFT_INTERVAL_BURST, WEFT_INTERVAL_SKIP,
                                                     WEFT_INTERVAL_DELAY };
    for (int i = 0; i < 3; i++) {
        weft_interval interval;
        weft_interval_init(&interval, 1000, PERIOD, policies[i]);
        CHECK_EQ(interval.next, 1000);
        CHECK_EQ(interval.period, PERIOD);
        CHECK_EQ(interval.policy, policies[i]);
    }
}

static void period_below_one_nanosecond_becomes_one(void)
{
    const weft_time periods[] = { 0, -1, -PERIOD, INT64_MIN, 1 };
    weft_time start = virtual_begin();
    for (int i = 0; i < 5; i++) {
        weft_interval interval;
        weft_interval_init(&interval, start, periods[i], WEFT_INTERVAL_BURST);
        CHECK_EQ(interval.period, 1);
        CHECK_EQ(weft_interval_advance(&interval), 1);
        CHECK_EQ(interval.next, start + 1);
    }
    virtual_end();
}

/* A caller that is on time gets one tick per period under every policy. */
static void ticks_on_time_are_one_period_apart(void)
{
    for (int policy = WEFT_INTERVAL_BURST; policy <= WEFT_INTERVAL_DELAY; policy++) {
        weft_time start = virtual_begin();
        weft_interval interval;
        weft_interval_init(&interval, start, PERIOD, (weft_interval_policy)policy);
        for (int i = 1; i <= 100; i++) {
            CHECK_EQ(weft_interval_advance(&interval), 1);
            CHECK_EQ(interval.next, start + i * PERIOD);
            /* Less than one period late is on time: the schedule does not change. */
            weft_clock_advance(i % 3 == 0 ? PERIOD - 1 : i % 3 == 1 ? PERIOD : PERIOD + 1);
        }
        virtual_end();
    }
}

static void burst_delivers_missed_ticks(void)
{
    weft_time start = virtual_begin();
    weft_interval interval;
    weft_interval_init(&interval, start, PERIOD, WEFT_INTERVAL_BURST);
    CHECK_EQ(weft_interval_advance(&interval), 1);
    weft_clock_advance(5 * PERIOD + 3);
    for (int i = 2; i <= 7; i++) {
        CHECK_EQ(weft_interval_advance(&interval), 1);
        CHECK_EQ(interval.next, start + i * PERIOD);
    }
    CHECK_LT(weft_now(), interval.next);
    virtual_end();
}

static void skip_continues_with_next_scheduled_tick(void)
{
    static const struct {
        weft_time late; /* after the tick that is consumed */
        int ticks;
    } cases[] = {
        { 0, 1 },          { 1, 1 },
        { PERIOD - 1, 1 }, { PERIOD, 2 },
        { PERIOD + 1, 2 }, { 2 * PERIOD - 1, 2 },
        { 2 * PERIOD, 3 }, { 1000 * PERIOD + 7, 1001 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weft_time start = virtual_begin();
        weft_interval interval;
        weft_interval_init(&interval, start, PERIOD, WEFT_INTERVAL_SKIP);
        weft_clock_advance(cases[i].late);
        CHECK_EQ(weft_interval_advance(&interval), cases[i].ticks);
        CHECK_EQ(interval.next, start + cases[i].ticks * PERIOD);
        CHECK_LT(weft_now(), interval.next);
        virtual_end();
    }
}

static void skip_count_saturates_at_int_max(void)
{
    weft_time start = virtual_begin();
    const weft_time late[] = { INT_MAX - 2, INT_MAX - 1, INT_MAX, INT_MAX + WEFT_S };
    for (int i = 0; i < 4; i++) {
        weft_interval interval;
        weft_time before = weft_now();
        weft_interval_init(&interval, before, 1, WEFT_INTERVAL_SKIP);
        weft_clock_advance(late[i]);
        CHECK_EQ(weft_interval_advance(&interval), i == 0 ? INT_MAX - 1 : INT_MAX);
        CHECK_EQ(interval.next, before + late[i] + 1);
    }
    /* Late since time 0. */
    weft_interval interval;
    weft_interval_init(&interval, 0, 1, WEFT_INTERVAL_SKIP);
    CHECK_EQ(weft_interval_advance(&interval), INT_MAX);
    CHECK_EQ(interval.next, weft_now() + 1);
    CHECK_LT(start, weft_now());
    virtual_end();
}

static void delay_waits_full_period_after_missed_tick(void)
{
    weft_time start = virtual_begin();
    weft_interval interval;
    weft_interval_init(&interval, start, PERIOD, WEFT_INTERVAL_DELAY);
    CHECK_EQ(weft_interval_advance(&interval), 1);
    CHECK_EQ(interval.next, start + PERIOD);
    weft_clock_advance(5 * PERIOD + 3);
    CHECK_EQ(weft_interval_advance(&interval), 1);
    CHECK_EQ(interval.next, start + 6 * PERIOD + 3);
    weft_clock_advance(PERIOD);
    CHECK_EQ(weft_interval_advance(&interval), 1);
    CHECK_EQ(interval.next, start + 7 * PERIOD + 3);
    virtual_end();
}

static void interval_ends_at_never(void)
{
    for (int policy = WEFT_INTERVAL_BURST; policy <= WEFT_INTERVAL_DELAY; policy++) {
        const weft_time firsts[] = { WEFT_NEVER, WEFT_NEVER - 1, WEFT_NEVER - 5, 0 };
        for (int i = 0; i < 4; i++) {
            weft_interval interval;
            weft_time period = firsts[i] == 0 ? WEFT_NEVER : 5;
            weft_interval_init(&interval, firsts[i], period, (weft_interval_policy)policy);
            CHECK_EQ(weft_interval_advance(&interval), 1);
            CHECK_EQ(interval.next, WEFT_NEVER);
            CHECK_EQ(weft_interval_advance(&interval), 1);
            CHECK_EQ(interval.next, WEFT_NEVER);
        }
    }
}

static void interval_may_start_at_minimum_time(void)
{
    (void)virtual_begin();
    for (int policy = WEFT_INTERVAL_BURST; policy <= WEFT_INTERVAL_DELAY; policy++) {
        weft_interval interval;
        weft_interval_init(&interval, INT64_MIN, PERIOD, (weft_interval_policy)policy);
        int ticks = weft_interval_advance(&interval);
        CHECK_EQ(ticks, policy == WEFT_INTERVAL_SKIP ? INT_MAX : 1);
        if (policy == WEFT_INTERVAL_BURST) {
            CHECK_EQ(interval.next, INT64_MIN + PERIOD);
        } else {
            CHECK_LT(weft_now(), interval.next);
            CHECK_LE(interval.next, weft_now() + PERIOD);
        }
    }
    virtual_end();
}

/* --- Waiting for ticks -------------------------------------------------------------- */

enum {
    TICKS = 20
};

/* Waits for ticks and records when they came. It is late for one of them. */
struct taker {
    weft_interval interval;
    int counts[TICKS];
    weft_time at[TICKS];
    _Atomic(uint64_t) taken;
    _Atomic(uint64_t) may_take; /* number of ticks that it may wait for so far */
    weft_sleep_future sleep;
    int left; /* result of wait_for_tick() */
};

static int take_ticks(void *arg)
{
    struct taker *taker = arg;
    for (uint64_t i = 0; i < TICKS; i++) {
        test_wait_for(&taker->may_take, i + 1);
        taker->counts[i] = weft_interval_tick(&taker->interval);
        taker->at[i] = weft_now();
        (void)atomic_fetch_add(&taker->taken, 1);
    }
    return 0;
}

static void *take_ticks_on_thread(void *arg)
{
    (void)take_ticks(arg);
    return NULL;
}

/* Same as take_ticks(), in a stackless task, which advances the interval itself. */
static int take_ticks_in_stackless_task(weft_co *co, void *state)
{
    struct taker *taker = test_arg(state);
    uint64_t i = atomic_load(&taker->taken);
    int err = 0;
    WEFT_BEGIN(co);
    for (; i < TICKS; i++) {
        test_wait_for(&taker->may_take, i + 1);
        weft_sleep_init(&taker->sleep, taker->interval.next, 0);
        WEFT_AWAIT(co, err, &taker->sleep.future);
        CHECK_EQ(err, 0);
        taker->counts[i] = weft_interval_advance(&taker->interval);
        taker->at[i] = weft_now();
        (void)atomic_fetch_add(&taker->taken, 1);
    }
    WEFT_END(co, 0);
}

/* Returns when tick i is due if the taker is late for tick 10 by 5 periods and 1 ms. */
static weft_time tick_due(weft_time start, weft_interval_policy policy, int i)
{
    if (i < 10 || policy == WEFT_INTERVAL_BURST) {
        return start + i * PERIOD;
    }
    weft_time bit = policy == WEFT_INTERVAL_DELAY ? WEFT_MS : 0;
    return i == 10 ? start + 10 * PERIOD : start + (i + 5) * PERIOD + bit;
}

static void drive_taker(struct taker *taker, weft_time start, weft_interval_policy policy)
{
    for (int i = 0; i < TICKS; i++) {
        bool late = i == 10;
        weft_time due = late ? start + 15 * PERIOD + WEFT_MS : tick_due(start, policy, i);
        atomic_store(&taker->may_take, (uint64_t)(late ? i : i + 1));
        if (due > weft_now()) {
            CHECK_EQ(atomic_load(&taker->taken), i);
            weft_clock_advance(due - weft_now());
        }
        atomic_store(&taker->may_take, (uint64_t)i + 1);
        test_wait_for(&taker->taken, (uint64_t)i + 1);
    }
}

static void check_taker(const struct taker *taker, weft_time start)
{
    weft_interval_policy policy = taker->interval.policy;
    for (int i = 0; i < TICKS; i++) {
        weft_time due = tick_due(start, policy, i);
        weft_time late = i >= 10 ? start + 15 * PERIOD + WEFT_MS : 0;
        CHECK_EQ(taker->at[i], due > late ? due : late);
        CHECK_EQ(taker->counts[i], i == 10 && policy == WEFT_INTERVAL_SKIP ? 6 : 1);
    }
    CHECK_EQ(taker->interval.next, tick_due(start, policy, TICKS));
}

/*
 * Goal:   ticks come when they are due, and follow the policy after a delay, on a fiber, on a
 *         thread and in a stackless task.
 * Method: the clock advances from tick to tick, and once past several of them.
 */
static void ticks_arrive_when_due_under_each_policy(void)
{
    for (int i = 0; i < 9; i++) {
        weft_interval_policy policy = (weft_interval_policy)(i / 3);
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(2);
        struct taker taker = { .left = 0 };
        pthread_t thread;
        weft_task *task = NULL;
        weft_interval_init(&taker.interval, start, PERIOD, policy);
        if (i % 3 == 0) {
            task = virtual_go(rt, take_ticks, &taker);
        } else if (i % 3 == 1) {
            task = test_spawn(rt, take_ticks_in_stackless_task, &taker);
        } else {
            CHECK_EQ(pthread_create(&thread, NULL, take_ticks_on_thread, &taker), 0);
        }
        drive_taker(&taker, start, policy);
        CHECK_EQ(task != NULL ? test_join(task) : pthread_join(thread, NULL), 0);
        check_taker(&taker, start);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static int wait_for_tick(void *arg)
{
    struct taker *taker = arg;
    (void)atomic_fetch_add(&taker->taken, 1);
    taker->left = weft_interval_tick(&taker->interval);
    return 0;
}

static void canceled_wait_leaves_tick_pending(void)
{
    for (int policy = WEFT_INTERVAL_BURST; policy <= WEFT_INTERVAL_DELAY; policy++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        struct taker taker = { .left = 0 };
        weft_interval_init(&taker.interval, start + PERIOD, PERIOD, (weft_interval_policy)policy);
        weft_task *task = virtual_go(rt, wait_for_tick, &taker);
        virtual_settle(rt);
        CHECK_EQ(taker.taken, 1);
        weft_cancel(task);
        CHECK_EQ(test_join(task), 0);
        CHECK_EQ(taker.left, WEFT_ECANCELED);
        CHECK_EQ(taker.interval.next, start + PERIOD);
        /* The next waiter gets it. */
        task = virtual_go(rt, wait_for_tick, &taker);
        virtual_settle(rt);
        weft_clock_advance(PERIOD);
        CHECK_EQ(test_join(task), 0);
        CHECK_EQ(taker.left, 1);
        CHECK_EQ(taker.interval.next, start + 2 * PERIOD);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

TEST_MAIN({
    TEST(interval_starts_at_first_tick),
    TEST(period_below_one_nanosecond_becomes_one),
    TEST(ticks_on_time_are_one_period_apart),
    TEST(burst_delivers_missed_ticks),
    TEST(skip_continues_with_next_scheduled_tick),
    TEST(skip_count_saturates_at_int_max),
    TEST(delay_waits_full_period_after_missed_tick),
    TEST(interval_ends_at_never),
    TEST(interval_may_start_at_minimum_time),
    TEST(ticks_arrive_when_due_under_each_policy),
    TEST(canceled_wait_leaves_tick_pending),
})
