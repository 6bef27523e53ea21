/* SPDX-License-Identifier: MIT */
/*
 * Waits of fibers with a deadline: weft_await() and weft_join().
 */
#include <errno.h>
#include <stdatomic.h>

#include <weft.h>

#include "base/rng.h"
#include "gate.h"
#include "rt.h"
#include "test.h"
#include "virtual.h"

/* A fiber that waits for a gate. */
struct waiter {
    struct gate gate;
    weft_time deadline;
    weft_task *task;
    int result;
    weft_time woke;
    _Atomic(uint64_t) ended;
};

static int wait_function(void *arg)
{
    struct waiter *waiter = arg;
    waiter->result = weft_await(&waiter->gate.future, waiter->deadline);
    waiter->woke = weft_now();
    (void)atomic_fetch_add(&waiter->ended, 1);
    return 3;
}

static void waiter_start(struct waiter *waiter, weft_runtime *rt)
{
    waiter->result = 1234;
    waiter->task = virtual_go(rt, wait_function, waiter);
}

static int waiter_join(struct waiter *waiter)
{
    CHECK_EQ(test_join(waiter->task), 3);
    CHECK_EQ(atomic_load(&waiter->ended), 1);
    gate_fini(&waiter->gate);
    return waiter->result;
}

/* --- Awaits ------------------------------------------------------------------------- */

static void a_wait_ends_at_its_deadline_and_not_before(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    struct waiter waiter = { .gate = gate_make(CANCEL_AT_ONCE), .deadline = start + 5 * WEFT_MS };
    waiter_start(&waiter, rt);
    virtual_go_to(rt, waiter.deadline - 1);
    CHECK_EQ(waiter.gate.polls, 1);
    CHECK_EQ(waiter.gate.cancels, 0);
    weft_clock_advance(1);
    CHECK_EQ(waiter_join(&waiter), WEFT_ETIMEDOUT);
    CHECK_EQ(waiter.woke, waiter.deadline);
    CHECK_EQ(waiter.gate.polls, 2);
    CHECK_EQ(waiter.gate.cancels, 1);
    weft_runtime_destroy(rt);
    virtual_end();
}

static void a_result_before_the_deadline_wins(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    struct waiter waiter = { .gate = gate_make(CANCEL_AT_ONCE), .deadline = start + 5 * WEFT_MS };
    waiter_start(&waiter, rt);
    virtual_go_to(rt, waiter.deadline - 1);
    gate_open(&waiter.gate, 42);
    CHECK_EQ(waiter_join(&waiter), 42);
    CHECK_EQ(waiter.woke, waiter.deadline - 1);
    CHECK_EQ(waiter.gate.cancels, 0);
    weft_runtime_destroy(rt);
    virtual_end();
}

static int wait_in_the_past(void *arg)
{
    const weft_time deadlines[] = { 0, -1, INT64_MIN, weft_now() - 1, weft_now() };
    (void)arg;
    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        struct gate gate = gate_make(CANCEL_AT_ONCE);
        CHECK_EQ(weft_await(&gate.future, deadlines[i]), WEFT_ETIMEDOUT);
        CHECK_EQ(gate.polls, 2); /* One, and one for the result of the cancel. */
        CHECK_EQ(gate.cancels, 1);
        gate_fini(&gate);
        gate = gate_make(CANCEL_AT_ONCE);
        gate_open(&gate, 9);
        CHECK_EQ(weft_await(&gate.future, deadlines[i]), 9);
        CHECK_EQ(gate.polls, 1);
        CHECK_EQ(gate.cancels, 0);
    }
    return 0;
}

static void a_deadline_that_is_over_leaves_one_poll(void)
{
    (void)virtual_begin();
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_join(virtual_go(rt, wait_in_the_past, NULL)), 0);
    weft_runtime_destroy(rt);
    virtual_end();
}

struct two_waits {
    struct gate first;
    struct gate second;
};

static int wait_twice(void *arg)
{
    struct two_waits *two = arg;
    CHECK_EQ(weft_await(&two->first.future, weft_after(10 * WEFT_MS)), 1);
    return weft_await(&two->second.future, WEFT_NEVER);
}

/*
 * Goal:   the deadline of a wait that is over does not touch the next one.
 * Method: a poll of the second gate would tell of a wake.
 */
static void a_deadline_ends_with_its_wait(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    struct two_waits two = { gate_make(CANCEL_AT_ONCE), gate_make(CANCEL_AT_ONCE) };
    weft_task *task = virtual_go(rt, wait_twice, &two);
    virtual_settle(rt);
    gate_open(&two.first, 1);
    virtual_settle(rt);
    CHECK_EQ(two.second.polls, 1);
    virtual_go_to(rt, start + 20 * WEFT_MS);
    CHECK_EQ(two.second.polls, 1);
    gate_open(&two.second, 2);
    CHECK_EQ(test_join(task), 2);
    weft_runtime_destroy(rt);
    virtual_end();
}

static void the_end_of_the_cancel_is_awaited(void)
{
    for (int wins = 0; wins < 2; wins++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(2);
        struct waiter waiter = { .gate = gate_make(CANCEL_LATER), .deadline = start + WEFT_MS };
        waiter_start(&waiter, rt);
        virtual_go_to(rt, waiter.deadline);
        CHECK_EQ(waiter.gate.cancels, 1);
        virtual_go_to(rt, waiter.deadline + VIRTUAL_HOUR);
        CHECK_EQ(waiter.gate.cancels, 1);
        weft_waker_fire(atomic_exchange(&waiter.gate.waker, NULL)); /* For no reason. */
        virtual_settle(rt);
        CHECK_EQ(waiter.gate.cancels, 2);
        CHECK(!weft_task_is_done(waiter.task));
        gate_open(&waiter.gate, wins ? 77 : WEFT_ECANCELED);
        CHECK_EQ(waiter_join(&waiter), wins ? 77 : WEFT_ETIMEDOUT);
        CHECK_EQ(waiter.gate.polls, 2); /* Not polled while the cancel was under way. */
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

/* The deadline comes while the cancel that was asked for before needs its time.
 * */
static void a_cancellation_is_no_timeout(void)
{
    for (int mode = CANCEL_AT_ONCE; mode <= CANCEL_LATER; mode++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(2);
        struct waiter waiter = { .gate = gate_make((enum cancel_mode)mode),
                                 .deadline = start + WEFT_MS };
        waiter_start(&waiter, rt);
        virtual_settle(rt);
        weft_cancel(waiter.task);
        if (mode == CANCEL_LATER) {
            test_wait_for(&waiter.gate.cancels, 1);
            virtual_go_to(rt, start + VIRTUAL_HOUR);
            CHECK(!weft_task_is_done(waiter.task));
            gate_open(&waiter.gate, WEFT_ECANCELED);
        }
        CHECK_EQ(waiter_join(&waiter), WEFT_ECANCELED);
        CHECK_EQ(waiter.woke, mode == CANCEL_LATER ? start + VIRTUAL_HOUR : start);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

static int wait_under_a_shield(void *arg)
{
    struct gate *gates = arg;
    weft_shield_enter();
    weft_cancel(weft_task_current());
    CHECK_EQ(weft_await(&gates[0].future, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_await(&gates[1].future, weft_after(WEFT_MS)), 6);
    weft_shield_leave();
    CHECK_EQ(weft_await(&gates[2].future, weft_after(WEFT_MS)), WEFT_ECANCELED);
    CHECK_EQ(gates[2].polls, 0); /* Not started. */
    return 0;
}

static void a_deadline_holds_under_a_shield(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    struct gate gates[3] = { gate_make(CANCEL_AT_ONCE), gate_make(CANCEL_AT_ONCE),
                             gate_make(CANCEL_AT_ONCE) };
    weft_task *task = virtual_go(rt, wait_under_a_shield, gates);
    virtual_settle(rt);
    CHECK_EQ(gates[0].polls, 1);
    virtual_go_to(rt, start + WEFT_MS);
    CHECK_EQ(gates[1].polls, 1);
    gate_open(&gates[1], 6);
    CHECK_EQ(test_join(task), 0);
    gate_fini(&gates[0]);
    weft_runtime_destroy(rt);
    virtual_end();
}

static int await_ready_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1280; i++) {
        struct gate gate = gate_make(CANCEL_AT_ONCE);
        gate_open(&gate, 1);
        CHECK_EQ(weft_await(&gate.future, i % 2 == 0 ? 0 : weft_after(WEFT_S)), 1);
    }
    return 0;
}

static void a_fiber_whose_waits_are_always_over_yields(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_join(virtual_go(rt, await_ready_often, NULL)), 0);
    weft_worker_stats stats;
    CHECK_EQ(weft_worker_stats_read(rt, 0, &stats), 0);
    CHECK_GE(stats.budget_yields, 9);
    CHECK_LE(stats.budget_yields, 10);
    weft_runtime_destroy(rt);
}

/* --- Joins -------------------------------------------------------------------------- */

static int join_with_deadlines(void *arg)
{
    struct waiter *child = arg;
    int result = -99;
    CHECK_EQ(weft_join(child->task, &result, 0), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_join(child->task, &result, weft_now()), WEFT_ETIMEDOUT);
    weft_time deadline = weft_after(5 * WEFT_MS);
    CHECK_EQ(weft_join(child->task, &result, deadline), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_now(), deadline);
    CHECK_EQ(weft_try_join(child->task, &result), -EAGAIN);
    CHECK_EQ(result, -99);
    /* The child ends after 10 ms, and this time that is soon enough. */
    CHECK_EQ(weft_join(child->task, &result, weft_after(VIRTUAL_HOUR)), 0);
    CHECK_EQ(result, 3);
    CHECK_EQ(weft_now(), child->deadline);
    return 0;
}

static void a_join_that_is_over_leaves_the_handle(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    struct waiter child = { .gate = gate_make(CANCEL_AT_ONCE), .deadline = start + 10 * WEFT_MS };
    waiter_start(&child, rt);
    virtual_settle(rt);
    weft_task *task = virtual_go(rt, join_with_deadlines, &child);
    virtual_settle(rt);
    virtual_go_to(rt, start + 5 * WEFT_MS);
    virtual_go_to(rt, start + 10 * WEFT_MS);
    CHECK_EQ(test_join(task), 0);
    CHECK_EQ(child.result, WEFT_ETIMEDOUT);
    gate_fini(&child.gate);
    weft_runtime_destroy(rt);
    virtual_end();
}

static int join_the_done(void *arg)
{
    int result = -99;
    CHECK_EQ(weft_join(arg, &result, 0), 0);
    return result;
}

static void a_task_that_is_done_is_joined_whatever_the_deadline(void)
{
    (void)virtual_begin();
    weft_runtime *rt = test_start(1);
    weft_task *child = test_spawn(rt, test_return_7, NULL);
    virtual_settle(rt);
    CHECK(weft_task_is_done(child));
    CHECK_EQ(test_join(virtual_go(rt, join_the_done, child)), 7);
    weft_runtime_destroy(rt);
    virtual_end();
}

/* --- Many --------------------------------------------------------------------------- */

enum {
    MANY = 200,
    MANY_MS = 60, /* deadlines are within so many */
};

struct many {
    weft_runtime *rt;
    weft_time start;
    struct waiter waiters[MANY];
    weft_time open_at[MANY]; /* WEFT_NEVER: never */
};

static void many_begin(struct many *many, unsigned workers, enum cancel_mode mode,
                       struct wf_rng *rng)
{
    many->start = virtual_begin();
    many->rt = test_start(workers);
    for (int i = 0; i < MANY; i++) {
        /* Odd ones are opened, at least 1 ms before. */
        uint32_t ms = 2 + wf_rng_below(rng, MANY_MS - 1);
        uint32_t open_ms = 1 + wf_rng_below(rng, ms - 1);
        many->waiters[i] = (struct waiter){ .gate = gate_make(mode) };
        many->waiters[i].deadline = many->start + ms * WEFT_MS;
        many->open_at[i] = i % 2 == 0 ? WEFT_NEVER : many->start + open_ms * WEFT_MS;
        waiter_start(&many->waiters[i], many->rt);
    }
    virtual_settle(many->rt);
}

static void many_check(struct many *many, int i)
{
    struct waiter *waiter = &many->waiters[i];
    bool opened = many->open_at[i] != WEFT_NEVER;
    CHECK_EQ(waiter_join(waiter), opened ? i : WEFT_ETIMEDOUT);
    CHECK_EQ(waiter->woke, opened ? many->open_at[i] : waiter->deadline);
    CHECK_EQ(waiter->gate.cancels, opened ? 0 : 1);
}

/*
 * Goal:   of many that wait at once, each ends once, with its own result, at its
 *         own time.
 * Method: deadlines at random, half of the gates opened at random before. The
 *         clock goes on by the millisecond, and all come to rest in between.
 */
static void many_waits_end_each_at_its_time(void)
{
    static struct many many;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    for (unsigned workers = 2; workers <= 8; workers += 6) {
        many_begin(&many, workers, CANCEL_AT_ONCE, &rng);
        for (int ms = 1; ms <= MANY_MS; ms++) {
            weft_clock_advance(WEFT_MS);
            for (int i = 0; i < MANY; i++) {
                if (many.open_at[i] == weft_now()) {
                    gate_open(&many.waiters[i].gate, i);
                }
            }
            virtual_settle(many.rt);
        }
        for (int i = 0; i < MANY; i++) {
            many_check(&many, i);
        }
        weft_runtime_destroy(many.rt);
        virtual_end();
    }
}

/*
 * Goal:   the same when results and deadlines come all at once: each wait ends
 *         once, and with a timeout only after its deadline.
 * Method: nobody waits for anybody. The cancel of a gate lasts until it is
 *         opened. Half are opened with a result, which is always given; the
 *         others end by the cancel, and that is a timeout if the deadline was the
 *         reason.
 */
static void waits_whose_results_race_with_their_deadlines_end_once(void)
{
    static struct many many;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 1);
    for (uint64_t round = 0; round < test_scale(40); round++) {
        many_begin(&many, round % 2 == 0 ? 2 : 8, CANCEL_LATER, &rng);
        for (int at = 0; at < MANY; at++) {
            if (wf_rng_below(&rng, 3) == 0) {
                weft_clock_advance(wf_rng_below(&rng, 2 * (uint32_t)WEFT_MS));
            }
            gate_open(&many.waiters[at].gate, at % 2 == 0 ? WEFT_ECANCELED : at);
        }
        for (int i = 0; i < MANY; i++) {
            struct waiter *waiter = &many.waiters[i];
            int result = waiter_join(waiter);
            bool timed_out = i % 2 == 0 && result == WEFT_ETIMEDOUT;
            CHECK(timed_out || result == (i % 2 == 0 ? WEFT_ECANCELED : i));
            CHECK(!timed_out || waiter->woke >= waiter->deadline);
        }
        weft_runtime_destroy(many.rt);
        virtual_end();
    }
}

TEST_MAIN({
    TEST(a_wait_ends_at_its_deadline_and_not_before),
    TEST(a_result_before_the_deadline_wins),
    TEST(a_deadline_that_is_over_leaves_one_poll),
    TEST(a_deadline_ends_with_its_wait),
    TEST(the_end_of_the_cancel_is_awaited),
    TEST(a_cancellation_is_no_timeout),
    TEST(a_deadline_holds_under_a_shield),
    TEST(a_fiber_whose_waits_are_always_over_yields),
    TEST(a_join_that_is_over_leaves_the_handle),
    TEST(a_task_that_is_done_is_joined_whatever_the_deadline),
    TEST(many_waits_end_each_at_its_time),
    TEST(waits_whose_results_race_with_their_deadlines_end_once),
})
