/* SPDX-License-Identifier: MIT */
/*
 * deadline_test.c - fibers that wait with a deadline, in weft_await() and weft_join().
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

static int wait_for_gate(void *arg)
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
    waiter->task = virtual_go(rt, wait_for_gate, waiter);
}

static int waiter_join(struct waiter *waiter)
{
    CHECK_EQ(test_join(waiter->task), 3);
    CHECK_EQ(atomic_load(&waiter->ended), 1);
    gate_fini(&waiter->gate);
    return waiter->result;
}

/* --- Awaits ------------------------------------------------------------------------- */

static void await_ends_at_deadline_and_not_before(void)
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

static void result_before_deadline_wins(void)
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

static int await_with_past_deadline(void *arg)
{
    const weft_time deadlines[] = { 0, -1, INT64_MIN, weft_now() - 1, weft_now() };
    (void)arg;
    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        struct gate gate = gate_make(CANCEL_AT_ONCE);
        CHECK_EQ(weft_await(&gate.future, deadlines[i]), WEFT_ETIMEDOUT);
        CHECK_EQ(gate.polls, 2); /* One poll, and one for the result of the cancel. */
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

static void await_with_past_deadline_polls_once(void)
{
    (void)virtual_begin();
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_join(virtual_go(rt, await_with_past_deadline, NULL)), 0);
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
 * Goal:   the deadline of a finished wait does not affect the next one.
 * Method: an extra poll of the second gate would reveal a wake.
 */
static void deadline_does_not_affect_next_await(void)
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

static void await_waits_for_end_of_cancel(void)
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
        weft_waker_fire(atomic_exchange(&waiter.gate.waker, NULL)); /* spurious */
        virtual_settle(rt);
        CHECK_EQ(waiter.gate.cancels, 2);
        CHECK(!weft_task_is_done(waiter.task));
        gate_open(&waiter.gate, wins ? 77 : WEFT_ECANCELED);
        CHECK_EQ(waiter_join(&waiter), wins ? 77 : WEFT_ETIMEDOUT);
        CHECK_EQ(waiter.gate.polls, 2); /* Not polled while the cancel was pending. */
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

/* The deadline passes while an earlier cancellation is still in progress. */
static void cancellation_is_not_reported_as_timeout(void)
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

static int await_under_shield(void *arg)
{
    struct gate *gates = arg;
    weft_shield_enter();
    weft_cancel(weft_task_current());
    CHECK_EQ(weft_await(&gates[0].future, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(weft_await(&gates[1].future, weft_after(WEFT_MS)), 6);
    weft_shield_leave();
    CHECK_EQ(weft_await(&gates[2].future, weft_after(WEFT_MS)), WEFT_ECANCELED);
    CHECK_EQ(gates[2].polls, 0); /* Never polled. */
    return 0;
}

static void deadline_holds_under_shield(void)
{
    weft_time start = virtual_begin();
    weft_runtime *rt = test_start(2);
    struct gate gates[3] = { gate_make(CANCEL_AT_ONCE), gate_make(CANCEL_AT_ONCE),
                             gate_make(CANCEL_AT_ONCE) };
    weft_task *task = virtual_go(rt, await_under_shield, gates);
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

static void fiber_awaiting_ready_futures_yields_on_budget(void)
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
    /* The child ends after 10 ms, before this deadline. */
    CHECK_EQ(weft_join(child->task, &result, weft_after(VIRTUAL_HOUR)), 0);
    CHECK_EQ(result, 3);
    CHECK_EQ(weft_now(), child->deadline);
    return 0;
}

static void timed_out_join_leaves_handle_valid(void)
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

static int join_finished_task(void *arg)
{
    int result = -99;
    CHECK_EQ(weft_join(arg, &result, 0), 0);
    return result;
}

static void finished_task_is_joined_despite_past_deadline(void)
{
    (void)virtual_begin();
    weft_runtime *rt = test_start(1);
    weft_task *child = test_spawn(rt, test_return_7, NULL);
    virtual_settle(rt);
    CHECK(weft_task_is_done(child));
    CHECK_EQ(test_join(virtual_go(rt, join_finished_task, child)), 7);
    weft_runtime_destroy(rt);
    virtual_end();
}

/* --- Many --------------------------------------------------------------------------- */

enum {
    MANY = 200,
    MANY_MS = 60, /* all deadlines are within this time */
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
        /* Odd gates are opened, at least 1 ms before the deadline. */
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
 * Goal:   of many concurrent waits each ends once, with its own result, at its own time.
 * Method: random deadlines, half of the gates opened at a random earlier time. The clock
 *         advances by one millisecond at a time, and all workers become idle in between.
 */
static void many_awaits_end_each_at_its_own_time(void)
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
 * Goal:   same as many_awaits_end_each_at_its_own_time, with results and deadlines arriving at
 *         the same time. Each wait ends once, and a timeout is reported only after the
 *         deadline.
 * Method: nothing is synchronized. The cancel of a gate lasts until the gate is opened. Half of
 *         the gates are opened with a result, which the wait always returns. The others end by
 *         the cancel, which is a timeout if the deadline caused it.
 */
static void await_racing_result_with_deadline_ends_once(void)
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
    TEST(await_ends_at_deadline_and_not_before),
    TEST(result_before_deadline_wins),
    TEST(await_with_past_deadline_polls_once),
    TEST(deadline_does_not_affect_next_await),
    TEST(await_waits_for_end_of_cancel),
    TEST(cancellation_is_not_reported_as_timeout),
    TEST(deadline_holds_under_shield),
    TEST(fiber_awaiting_ready_futures_yields_on_budget),
    TEST(timed_out_join_leaves_handle_valid),
    TEST(finished_task_is_joined_despite_past_deadline),
    TEST(many_awaits_end_each_at_its_own_time),
    TEST(await_racing_result_with_deadline_ends_once),
})
