/* SPDX-License-Identifier: MIT */
#include <weft/barrier.h>

#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "latched.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    MEMBERS = 12,
    WAITERS = 3, /* the others work */
};

static weft_wait_group group;
static uint64_t done[CROWD_MAX]; /* plain; weft_wait_group_done() publishes it */

static void reset(void)
{
    memset(&group, 0, sizeof group);
    memset(done, 0, sizeof done);
    weft_wait_group_add(&group, MEMBERS - WAITERS);
}

static int work_or_wait(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    if (self->index >= WAITERS) {
        for (; self->round < self->index; self->round++) {
            WEFT_YIELD(co, self->err);
        }
        done[self->index] = 1;
        weft_wait_group_done(&group);
    } else {
        weft_wait_group_wait_init(&self->ops[0], &group);
        WEFT_AWAIT(co, self->err, &self->ops[0].future);
        CHECK_EQ(self->err, 0);
        for (unsigned i = WAITERS; i < MEMBERS; i++) {
            self->sum += done[i];
        }
    }
    WEFT_END(co, 0);
}

static void check_done(uint64_t sum)
{
    CHECK_EQ(sum, WAITERS * (MEMBERS - WAITERS));
    CHECK_EQ(group.opaque[0], 0);
}

static void waiter_sees_writes_of_all_members(void)
{
    for (uint64_t i = 0; i < crowd_rounds() / 20; i++) {
        crowd_run_all(MEMBERS, work_or_wait, NULL, reset, check_done);
    }
}

static int wait_for_all(void *arg)
{
    (void)arg;
    return weft_wait_group_wait(&group, WEFT_NEVER);
}

static void waiter_that_gives_up_leaves_others_waiting(void)
{
    memset(&group, 0, sizeof group);
    CHECK_EQ(weft_wait_group_wait(&group, WEFT_NEVER), 0);
    weft_wait_group_add(&group, 2);
    CHECK_EQ(weft_wait_group_wait(&group, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    weft_runtime *rt = test_start(1);
    weft_task *first = test_go_first(rt, wait_for_all, NULL);
    weft_task *second = test_go_first(rt, wait_for_all, NULL);
    test_settle(rt);
    weft_cancel(first);
    CHECK_EQ(test_join_soon(first), WEFT_ECANCELED);
    weft_wait_group_done(&group);
    weft_wait_group_add(&group, 1);
    weft_wait_group_done(&group);
    test_settle(rt);
    CHECK_EQ(weft_try_join(second, NULL), -EAGAIN);
    weft_wait_group_done(&group);
    CHECK_EQ(test_join_soon(second), 0);
    weft_runtime_destroy(rt);
}

static void finish_one(void)
{
    weft_wait_group_done(&group);
}

static void done_with_latch_contended_counts_once(void)
{
    memset(&group, 0, sizeof group);
    weft_wait_group_add(&group, 2);
    test_call_latched(&group, finish_one);
    CHECK_EQ(weft_wait_group_wait(&group, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    test_call_latched(&group, finish_one);
    CHECK_EQ(weft_wait_group_wait(&group, WEFT_NEVER), 0);
    CHECK_EQ(group.opaque[0], 0);
}

static int mark_done(void *arg)
{
    weft_wait_group_done(arg);
    return 0;
}

/* The last caller of weft_wait_group_done() may still be in its call. */
static void waiter_may_free_wait_group(void)
{
    weft_runtime *rt = test_start(2);
    for (uint64_t i = 0; i < crowd_rounds(); i++) {
        weft_wait_group *some = calloc(1, sizeof *some);
        CHECK(some != NULL);
        weft_wait_group_add(some, 2);
        weft_task *first = test_go(rt, mark_done, some);
        weft_task *second = test_go(rt, mark_done, some);
        CHECK_EQ(weft_wait_group_wait(some, WEFT_NEVER), 0);
        memset(some, 0xff, sizeof *some);
        free(some);
        CHECK_EQ(test_join_soon(first), 0);
        CHECK_EQ(test_join_soon(second), 0);
    }
    weft_runtime_destroy(rt);
}

static void done_without_add(void)
{
    memset(&group, 0, sizeof group);
    weft_wait_group_done(&group);
}

static void add_too_many(void)
{
    memset(&group, 0, sizeof group);
    weft_wait_group_add(&group, UINT32_MAX);
}

static void add_one_too_many(void)
{
    memset(&group, 0, sizeof group);
    weft_wait_group_add(&group, UINT32_MAX >> 3);
    weft_wait_group_add(&group, 1);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(done_without_add, "weft_wait_group_done: none is under way");
    CHECK_ABORTS(add_one_too_many, "weft_wait_group_add: too many are under way");
    CHECK_ABORTS(add_too_many, "weft_wait_group_add: too many are under way");
}

TEST_MAIN({
    TEST(waiter_sees_writes_of_all_members),
    TEST(waiter_that_gives_up_leaves_others_waiting),
    TEST(done_with_latch_contended_counts_once),
    TEST(waiter_may_free_wait_group),
    TEST(misuse_aborts_with_message),
})
