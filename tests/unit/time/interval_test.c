/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include <weft.h>

#include "rt.h"
#include "test.h"
#include "virtual.h"

#define PERIOD (10 * WEFT_MS)

/* --- Counting, without a wait ------------------------------------------------------- */

static void an_interval_begins_with_its_first_tick(void)
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

static void a_period_below_a_nanosecond_is_one(void)
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

/* Who is in time gets tick after tick, whatever the policy. */
static void ticks_in_time_are_a_period_apart(void)
{
    for (int policy = WEFT_INTERVAL_BURST; policy <= WEFT_INTERVAL_DELAY; policy++) {
        weft_time start = virtual_begin();
        weft_interval interval;
        weft_interval_init(&interval, start, PERIOD, (weft_interval_policy)policy);
        for (int i = 1; i <= 100; i++) {
            CHECK_EQ(weft_interval_advance(&interval), 1);
            CHECK_EQ(interval.next, start + i * PERIOD);
            /* Late by less than a period is in time: the plan stands. */
            weft_clock_advance(i % 3 == 0 ? PERIOD - 1 : i % 3 == 1 ? PERIOD : PERIOD + 1);
        }
        virtual_end();
    }
}

static void burst_makes_up_for_what_was_missed(void)
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

static void skip_goes_on_with_the_next_tick_as_planned(void)
{
    static const struct {
        weft_time late; /* after the tick that is taken */
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

static void skip_counts_no_further_than_an_int(void)
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
    /* Since the beginning of time. */
    weft_interval interval;
    weft_interval_init(&interval, 0, 1, WEFT_INTERVAL_SKIP);
    CHECK_EQ(weft_interval_advance(&interval), INT_MAX);
    CHECK_EQ(interval.next, weft_now() + 1);
    CHECK_LT(start, weft_now());
    virtual_end();
}

static void delay_waits_a_whole_period_after_a_tick_was_missed(void)
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

static void an_interval_ends_at_never(void)
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

static void an_interval_may_begin_before_all_times(void)
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

/* Takes ticks and notes when they came; one of them it comes late for. */
struct taker {
    weft_interval interval;
    int counts[TICKS];
    weft_time at[TICKS];
    _Atomic(uint64_t) taken;
    _Atomic(uint64_t) may_take; /* no further than this one */
    weft_sleep_future sleep;
    int left; /* when it was cancelled */
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

static void *take_ticks_on_a_thread(void *arg)
{
    (void)take_ticks(arg);
    return NULL;
}

/* The same in a body, which advances the interval itself. */
static int take_ticks_body(weft_co *co, void *state)
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

/* When a tick is due, if the taker comes late for number 10: 5 periods and a bit.
 * */
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
 * Goal:   ticks come when they are due, and after a delay as the policy has it,
 *         on a fiber, on a thread and in a body.
 * Method: the clock goes on from tick to tick, but once beyond some of them.
 */
static void ticks_are_waited_for(void)
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
            task = test_spawn(rt, take_ticks_body, &taker);
        } else {
            CHECK_EQ(pthread_create(&thread, NULL, take_ticks_on_a_thread, &taker), 0);
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

static void a_cancelled_wait_leaves_the_tick_to_come(void)
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
        /* It comes to the next one who waits. */
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
    TEST(an_interval_begins_with_its_first_tick),
    TEST(a_period_below_a_nanosecond_is_one),
    TEST(ticks_in_time_are_a_period_apart),
    TEST(burst_makes_up_for_what_was_missed),
    TEST(skip_goes_on_with_the_next_tick_as_planned),
    TEST(skip_counts_no_further_than_an_int),
    TEST(delay_waits_a_whole_period_after_a_tick_was_missed),
    TEST(an_interval_ends_at_never),
    TEST(an_interval_may_begin_before_all_times),
    TEST(ticks_are_waited_for),
    TEST(a_cancelled_wait_leaves_the_tick_to_come),
})
