/* SPDX-License-Identifier: MIT */
#include <weft/barrier.h>

#include <stdatomic.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    MEMBERS = 12,
};

static weft_barrier barrier;
static _Atomic(uint64_t) arrived;

static void reset(void)
{
    weft_barrier_init(&barrier, MEMBERS);
    atomic_store(&arrived, 0);
}

/* No member continues before all have arrived, and none is a round ahead. */
static int wait_each_round(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    for (; self->round < crowd_rounds() / 4; self->round++) {
        atomic_fetch_add(&arrived, 1);
        weft_barrier_wait_init(&self->ops[0], &barrier);
        WEFT_AWAIT(co, self->err, &self->ops[0].future);
        CHECK(self->err == 0 || self->err == 1);
        CHECK_GE(atomic_load(&arrived), (self->round + 1) * MEMBERS);
        CHECK_LE(atomic_load(&arrived), (self->round + 2) * MEMBERS - 1);
        self->sum += (uint64_t)self->err;
    }
    WEFT_END(co, 0);
}

static void check_leaders(uint64_t sum)
{
    CHECK_EQ(sum, crowd_rounds() / 4);
}

static void barrier_releases_all_together_with_one_leader(void)
{
    crowd_run_all(MEMBERS, wait_each_round, NULL, reset, check_leaders);
}

static int wait_at_barrier(void *arg)
{
    weft_time *deadline = arg;
    return weft_barrier_wait(&barrier, deadline != NULL ? *deadline : WEFT_NEVER);
}

static void canceled_or_timed_out_waiter_does_not_count(void)
{
    weft_barrier_init(&barrier, 3);
    weft_runtime *rt = test_start(1);
    weft_task *first = test_go_first(rt, wait_at_barrier, NULL);
    weft_task *second = test_go_first(rt, wait_at_barrier, NULL);
    test_settle(rt);
    weft_cancel(first);
    CHECK_EQ(test_join_soon(first), WEFT_ECANCELED);
    weft_time soon = weft_after(2 * WEFT_MS);
    CHECK_EQ(test_run(rt, wait_at_barrier, &soon), WEFT_ETIMEDOUT);
    weft_task *third = test_go_first(rt, wait_at_barrier, NULL);
    test_settle(rt);
    CHECK_EQ(weft_try_join(second, NULL), -EAGAIN);
    CHECK_EQ(weft_try_join(third, NULL), -EAGAIN);
    CHECK_EQ(weft_barrier_wait(&barrier, WEFT_NEVER), 1);
    CHECK_EQ(test_join_soon(second), 0);
    CHECK_EQ(test_join_soon(third), 0);
    weft_runtime_destroy(rt);
}

static void barrier_for_one_or_zero_does_not_wait(void)
{
    weft_barrier zeros = { 0 };
    weft_barrier one = WEFT_BARRIER_INIT(1);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(weft_barrier_wait(&zeros, WEFT_NEVER), 1);
        CHECK_EQ(weft_barrier_wait(&one, WEFT_NEVER), 1);
    }
}

TEST_MAIN({
    TEST(barrier_releases_all_together_with_one_leader),
    TEST(canceled_or_timed_out_waiter_does_not_count),
    TEST(barrier_for_one_or_zero_does_not_wait),
})
