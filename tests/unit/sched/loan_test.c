/* SPDX-License-Identifier: MIT */
#include "sched/loan.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <weft.h>

#include "gate.h"
#include "mess.h"
#include "rt.h"
#include "sched/heap.h"
#include "sched/join.h"
#include "scheduler.h"
#include "test.h"

enum {
    ROUNDS = 300,
    STACKS_MAX = 64, /* number that a worker caches */
};

/* Returns whether the joiner has handed its worker to this fiber. */
static bool is_handed_off(void)
{
    return atomic_load(&wf_fiber_current()->lender) != NULL;
}

static int count_handoffs(void *arg)
{
    uint64_t *lent = arg;
    if (is_handed_off()) {
        *lent += 1;
        CHECK(!test_has_joiner(weft_task_current()));
    }
    return 7;
}

static int hand_off_often(void *arg)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        weft_task *task;
        int result = 0;
        CHECK_EQ(weft_go(&task, count_handoffs, arg), 0);
        test_postpone_clock();
        CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
        CHECK_EQ(result, 7);
    }
    return 0;
}

/* Each fiber's stack is reused by the next one. */
static void join_of_next_fiber_hands_worker_over(void)
{
    weft_runtime *rt = test_start(1);
    uint64_t lent = 0;
    CHECK_EQ(test_run(rt, hand_off_often, &lent), 0);
    CHECK_GE(lent, ROUNDS / 2);
    weft_stats stats;
    weft_runtime_stats(rt, &stats);
    CHECK_LE(stats.fiber_stacks, STACKS_MAX);
    weft_runtime_destroy(rt);
}

static int yield_after_handoff(void *arg)
{
    uint64_t *lent = arg;
    if (!is_handed_off()) {
        return 3;
    }
    *lent += 1;
    CHECK_EQ(weft_yield(), 0);
    CHECK(!is_handed_off());
    CHECK(test_has_joiner(weft_task_current()));
    return 3;
}

static int hand_off_to_yielding_fiber(void *arg)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        weft_task *task;
        int result = 0;
        CHECK_EQ(weft_go(&task, yield_after_handoff, arg), 0);
        test_postpone_clock();
        CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
        CHECK_EQ(result, 3);
    }
    return 0;
}

static void fiber_that_suspends_after_handoff_has_joiner(void)
{
    for (unsigned workers = 1; workers <= 4; workers += 3) {
        weft_runtime *rt = test_start(workers);
        uint64_t lent = 0;
        CHECK_EQ(test_run(rt, hand_off_to_yielding_fiber, &lent), 0);
        CHECK_GE(lent, 1);
        weft_runtime_destroy(rt);
    }
}

/* --- Cancellation --- */

static _Atomic(uint64_t) lent_now;
static _Atomic(uint64_t) given_up;

static int compute_until_given_up(void *arg)
{
    (void)arg;
    if (is_handed_off()) {
        atomic_fetch_add(&lent_now, 1);
        while (atomic_load(&given_up) == 0) {
        }
    }
    return 0;
}

static int hand_off_until_canceled(void *arg)
{
    (void)arg;
    int err = 0;
    while (err == 0) {
        weft_task *task;
        CHECK_EQ(weft_go(&task, compute_until_given_up, NULL), 0);
        test_postpone_clock();
        err = weft_join(task, NULL, WEFT_NEVER);
        if (err != 0) {
            weft_detach(task);
        }
    }
    atomic_store(&given_up, 1);
    return err;
}

/*
 * Goal:   a canceled joiner continues immediately, on another worker.
 * Method: the fiber that got its worker computes until the joiner has given up.
 */
static void canceled_joiner_does_not_wait_for_its_worker(void)
{
    for (unsigned i = 0; i < 20; i++) {
        weft_runtime *rt = test_start(2);
        atomic_store(&lent_now, 0);
        atomic_store(&given_up, 0);
        weft_task *lender = test_go(rt, hand_off_until_canceled, NULL);
        test_wait_for(&lent_now, 1);
        weft_cancel(lender);
        CHECK_EQ(test_join_soon(lender), WEFT_ECANCELED);
        weft_runtime_destroy(rt);
    }
}

static int pause_often(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 3; i++) {
        (void)weft_yield();
    }
    return 5;
}

static int hand_off_or_give_up(void *arg)
{
    (void)arg;
    for (;;) {
        weft_task *task;
        int result = 0;
        int err = weft_go(&task, pause_often, NULL);
        if (err != 0) {
            return err;
        }
        test_postpone_clock();
        err = weft_join(task, &result, WEFT_NEVER);
        if (err != 0) {
            weft_detach(task);
            return err;
        }
        CHECK_EQ(result, 5);
    }
}

static void cancel_races_with_join_handoff(void)
{
    weft_runtime *rt = test_start(test_workers(4));
    for (uint64_t i = 0; i < test_scale(1000); i++) {
        weft_task *lenders[4];
        for (unsigned at = 0; at < 4; at++) {
            lenders[at] = test_go(rt, hand_off_or_give_up, NULL);
        }
        for (unsigned at = 0; at < 4; at++) {
            weft_cancel(lenders[at]);
            CHECK_EQ(test_join_soon(lenders[at]), WEFT_ECANCELED);
        }
    }
    weft_runtime_destroy(rt);
}

/* --- Several handoffs --- */

struct level {
    int depth;
    bool yields; /* the deepest one */
};

static int descend(void *arg)
{
    struct level level = *(struct level *)arg;
    if (level.depth == 0) {
        return level.yields ? weft_yield() : 0;
    }
    level.depth--;
    weft_task *task;
    int result = 0;
    CHECK_EQ(weft_go(&task, descend, &level), 0);
    CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
    return result + 1;
}

/* Goal: a fiber that suspends releases all joiners below it, however many. */
static void join_handoffs_nest(void)
{
    for (unsigned i = 0; i < 4; i++) {
        weft_runtime *rt = test_start(i / 2 + 1);
        int depth = (int)test_scale(2000);
        struct level level = { .depth = depth, .yields = i % 2 == 1 };
        CHECK_EQ(test_run(rt, descend, &level), depth);
        weft_runtime_destroy(rt);
    }
}

static _Atomic(weft_task *) shared;
static _Atomic(uint64_t) joined;
static _Atomic(uint64_t) refused;

static void count_answer(int err)
{
    CHECK(err == 0 || err == WEFT_EJOINED);
    atomic_fetch_add(err == 0 ? &joined : &refused, 1);
}

static void *second_joiner(void *arg)
{
    weft_task *task;
    while ((task = atomic_load(&shared)) == NULL) {
        (void)sched_yield();
    }
    int err = weft_join(task, NULL, WEFT_NEVER);
    count_answer(err);
    (void)arg;
    return NULL;
}

/* Waits for the second joiner. */
static int wait_for_joiner(void *arg)
{
    (void)arg;
    while (!test_has_joiner(weft_task_current())) {
    }
    return 0;
}

static int hand_off_to_shared_task(void *arg)
{
    (void)arg;
    weft_task *task;
    CHECK_EQ(weft_go(&task, wait_for_joiner, NULL), 0);
    wf_task_retain((struct wf_task *)task); /* a handle for each of the two */
    atomic_store(&shared, task);
    test_postpone_clock();
    int err = weft_join(task, NULL, WEFT_NEVER);
    count_answer(err);
    return 0;
}

/* Goal: of two concurrent joiners of one task, one is refused and keeps its handle. */
static void concurrent_joins_of_one_task_refuse_one(void)
{
    uint64_t all_refused = 0;
    for (unsigned i = 0; i < 50; i++) {
        weft_runtime *rt = test_start(1);
        atomic_store(&shared, NULL);
        atomic_store(&joined, 0);
        atomic_store(&refused, 0);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, second_joiner, NULL), 0);
        CHECK_EQ(test_run(rt, hand_off_to_shared_task, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        uint64_t others = atomic_load(&refused);
        CHECK_LE(others, 1);
        CHECK_EQ(atomic_load(&joined) + others, 2);
        if (others == 1) {
            weft_detach(atomic_load(&shared));
        }
        all_refused += others;
        weft_runtime_destroy(rt);
    }
    CHECK_GE(all_refused, 1);
}

/* --- Effects on other tasks --- */

static _Atomic(uint64_t) stop;

static int hand_off_until_stopped(void *arg)
{
    (void)arg;
    uint64_t lent = 0;
    while (atomic_load(&stop) == 0) {
        weft_task *task;
        CHECK_EQ(weft_go(&task, count_handoffs, &lent), 0);
        CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    }
    return 0;
}

static int stop_soon(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_yield(), 0);
    CHECK_EQ(weft_sleep(WEFT_MS), 0);
    atomic_store(&stop, 1);
    return 0;
}

/* Goal: a fiber that hands its worker over all the time delays neither other tasks nor timers. */
static void join_handoffs_starve_no_task(void)
{
    weft_runtime *rt = test_start(1);
    atomic_store(&stop, 0);
    weft_task *lender = test_go(rt, hand_off_until_stopped, NULL);
    weft_task *other = test_go(rt, stop_soon, NULL);
    CHECK_EQ(test_join_soon(other), 0);
    CHECK_EQ(test_join_soon(lender), 0);
    weft_runtime_destroy(rt);
}

static int keep_everything(void *arg)
{
    (void)arg;
    const uint32_t own = wf_fp_control_read() ^ (TEST_ROUNDING & -TEST_ROUNDING);
    wf_fp_control_write(own);
    for (int i = 0; i < ROUNDS; i++) {
        weft_task *task;
        errno = i + 1;
        CHECK_EQ(weft_go(&task, test_leave_a_mess, NULL), 0);
        CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
        CHECK_EQ(errno, i + 1);
        CHECK_EQ(wf_fp_control_read(), own);
    }
    return 0;
}

static void join_handoff_preserves_errno_and_rounding_mode(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, keep_everything, NULL), 0);
    weft_runtime_destroy(rt);
}

static int wait_for_shutdown(void *arg)
{
    struct gate *gate = arg;
    return weft_await(&gate->future, WEFT_NEVER);
}

static int hand_off_forever(void *arg)
{
    weft_task *task;
    CHECK_EQ(weft_go(&task, wait_for_shutdown, arg), 0);
    atomic_fetch_add(&lent_now, 1);
    int err = weft_join(task, NULL, WEFT_NEVER);
    if (err != 0) {
        weft_detach(task);
    }
    return 0;
}

static void shutdown_ends_join_handoffs(void)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        weft_runtime *rt = test_start(workers);
        struct gate gates[8];
        atomic_store(&lent_now, 0);
        for (unsigned i = 0; i < 8; i++) {
            gates[i] = gate_make(CANCEL_AT_ONCE);
            weft_detach(test_go(rt, hand_off_forever, &gates[i]));
        }
        test_wait_for(&lent_now, 8);
        weft_runtime_destroy(rt);
        for (unsigned i = 0; i < 8; i++) {
            gate_fini(&gates[i]);
        }
    }
}

TEST_MAIN({
    TEST(join_of_next_fiber_hands_worker_over),
    TEST(fiber_that_suspends_after_handoff_has_joiner),
    TEST(canceled_joiner_does_not_wait_for_its_worker),
    TEST(cancel_races_with_join_handoff),
    TEST(join_handoffs_nest),
    TEST(concurrent_joins_of_one_task_refuse_one),
    TEST(join_handoffs_starve_no_task),
    TEST(join_handoff_preserves_errno_and_rounding_mode),
    TEST(shutdown_ends_join_handoffs),
})
