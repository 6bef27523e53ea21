/* SPDX-License-Identifier: MIT */
#include <weft/semaphore.h>

#include <stdatomic.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

enum {
    PERMITS = 5,
    MOST = 3, /* maximum that one member acquires */
};

static weft_semaphore semaphore;
static _Atomic(uint32_t) acquired;

static void reset(void)
{
    weft_semaphore_init(&semaphore, PERMITS);
    atomic_store(&acquired, 0);
}

static int acquire_and_release(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    for (; self->round < crowd_rounds(); self->round++) {
        weft_semaphore_acquire_init(&self->ops[0], &semaphore, 1 + self->index % MOST);
        WEFT_AWAIT(co, self->err, &self->ops[0].future);
        CHECK_EQ(self->err, 0);
        CHECK_LE(atomic_fetch_add(&acquired, 1 + self->index % MOST), PERMITS - 1);
        CHECK_LE(atomic_load(&acquired), PERMITS);
        if (self->round % 10 == self->index % 10) {
            WEFT_YIELD(co, self->err);
        }
        atomic_fetch_sub(&acquired, 1 + self->index % MOST);
        weft_semaphore_release(&semaphore, 1 + self->index % MOST);
    }
    WEFT_END(co, 0);
}

static void check_permits(uint64_t sum)
{
    (void)sum;
    CHECK_EQ(weft_semaphore_available(&semaphore), PERMITS);
    CHECK_EQ(atomic_load(&acquired), 0);
}

static void acquired_permits_never_exceed_total(void)
{
    crowd_run_all(12, acquire_and_release, NULL, reset, check_permits);
}

static void try_acquire_takes_available_permits(void)
{
    weft_semaphore four = WEFT_SEMAPHORE_INIT(4);
    CHECK_EQ(weft_semaphore_available(&four), 4);
    CHECK_EQ(weft_semaphore_try_acquire(&four, 3), 0);
    CHECK_EQ(weft_semaphore_try_acquire(&four, 2), -EAGAIN);
    CHECK_EQ(weft_semaphore_try_acquire(&four, 1), 0);
    CHECK_EQ(weft_semaphore_try_acquire(&four, 0), 0);
    CHECK_EQ(weft_semaphore_try_acquire(&four, 1), -EAGAIN);
    weft_semaphore_release(&four, 4);
    CHECK_EQ(weft_semaphore_available(&four), 4);
    CHECK_EQ(weft_semaphore_try_acquire(&four, WEFT_SEMAPHORE_MAX + 1), -EINVAL);
    CHECK_EQ(weft_semaphore_acquire(&four, UINT32_MAX, WEFT_NEVER), -EINVAL);
    weft_semaphore zeros = { 0 };
    CHECK_EQ(weft_semaphore_try_acquire(&zeros, 1), -EAGAIN);
    CHECK_EQ(weft_semaphore_try_acquire(&zeros, WEFT_SEMAPHORE_MAX), -EAGAIN);
}

static void release_adds_and_forget_removes_permits(void)
{
    weft_semaphore some = WEFT_SEMAPHORE_INIT(2);
    weft_semaphore_release(&some, 3);
    CHECK_EQ(weft_semaphore_available(&some), 5);
    CHECK_EQ(weft_semaphore_forget(&some, 2), 2);
    CHECK_EQ(weft_semaphore_forget(&some, 9), 3);
    CHECK_EQ(weft_semaphore_available(&some), 0);
    weft_semaphore_release(&some, WEFT_SEMAPHORE_MAX);
    CHECK_EQ(weft_semaphore_available(&some), WEFT_SEMAPHORE_MAX);
    CHECK_EQ(weft_semaphore_try_acquire(&some, WEFT_SEMAPHORE_MAX), 0);
}

/* --- Order ---------------------------------------------------------------------------------- */

struct want {
    uint32_t permits;
    weft_time deadline;
    unsigned *served; /* number of waiters served before this one */
    unsigned place;
};

static int acquire(void *arg)
{
    struct want *want = arg;
    int err = weft_semaphore_acquire(&semaphore, want->permits, want->deadline);
    if (err == 0) {
        want->place = (*want->served)++;
    }
    return err;
}

/* Starts a waiter. There is one worker, so the waiters queue in this order. */
static weft_task *start_waiter(weft_runtime *rt, struct want *want)
{
    return test_go_first(rt, acquire, want);
}

static void waiter_for_many_is_not_overtaken(void)
{
    weft_semaphore_init(&semaphore, 1);
    weft_runtime *rt = test_start(1);
    unsigned served = 0;
    struct want many = { 3, WEFT_NEVER, &served, 9 };
    struct want one = { 1, WEFT_NEVER, &served, 9 };
    weft_task *first = start_waiter(rt, &many);
    weft_task *second = start_waiter(rt, &one);
    CHECK_EQ(weft_semaphore_try_acquire(&semaphore, 1), -EAGAIN);
    weft_semaphore_release(&semaphore, 1);
    test_settle(rt);
    CHECK_EQ(served, 0);
    CHECK_EQ(weft_semaphore_available(&semaphore), 2);
    weft_semaphore_release(&semaphore, 2);
    CHECK_EQ(test_join_soon(first), 0);
    CHECK_EQ(test_join_soon(second), 0);
    CHECK_EQ(many.place, 0);
    CHECK_EQ(one.place, 1);
    CHECK_EQ(weft_semaphore_available(&semaphore), 0);
    weft_runtime_destroy(rt);
}

static void waiter_that_gives_up_unblocks_those_behind(void)
{
    for (int way = 0; way < 2; way++) {
        weft_semaphore_init(&semaphore, 2);
        weft_runtime *rt = test_start(1);
        unsigned served = 0;
        bool by_deadline = way == 0;
        struct want many = { 3, by_deadline ? weft_after(20 * WEFT_MS) : WEFT_NEVER, &served, 9 };
        struct want one = { 1, WEFT_NEVER, &served, 9 };
        weft_task *first = start_waiter(rt, &many);
        weft_task *second = start_waiter(rt, &one);
        weft_task *third = start_waiter(rt, &one);
        if (!by_deadline) {
            weft_cancel(first);
        }
        CHECK_EQ(test_join_soon(first), by_deadline ? WEFT_ETIMEDOUT : WEFT_ECANCELED);
        CHECK_EQ(test_join_soon(second), 0);
        CHECK_EQ(test_join_soon(third), 0);
        CHECK_EQ(served, 2);
        CHECK_EQ(weft_semaphore_available(&semaphore), 0);
        weft_runtime_destroy(rt);
    }
}

static void release_wakes_many_waiters(void)
{
    weft_semaphore_init(&semaphore, 0);
    weft_runtime *rt = test_start(1);
    unsigned served = 0;
    struct want one = { 1, WEFT_NEVER, &served, 9 };
    weft_task *tasks[40];
    for (unsigned i = 0; i < 40; i++) {
        tasks[i] = start_waiter(rt, &one);
    }
    weft_semaphore_release(&semaphore, 39);
    for (unsigned i = 0; i < 39; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    CHECK_EQ(weft_try_join(tasks[39], NULL), -EAGAIN);
    weft_semaphore_release(&semaphore, 2);
    CHECK_EQ(test_join_soon(tasks[39]), 0);
    CHECK_EQ(weft_semaphore_available(&semaphore), 1);
    weft_runtime_destroy(rt);
}

/* --- Close ---------------------------------------------------------------------------------- */

static void close_wakes_waiters_with_eclosed(void)
{
    weft_semaphore_init(&semaphore, 1);
    weft_runtime *rt = test_start(1);
    unsigned served = 0;
    struct want two = { 2, WEFT_NEVER, &served, 9 };
    weft_task *first = start_waiter(rt, &two);
    weft_task *second = start_waiter(rt, &two);
    weft_semaphore_close(&semaphore);
    CHECK_EQ(test_join_soon(first), WEFT_ECLOSED);
    CHECK_EQ(test_join_soon(second), WEFT_ECLOSED);
    CHECK_EQ(weft_semaphore_try_acquire(&semaphore, 1), WEFT_ECLOSED);
    CHECK_EQ(weft_semaphore_acquire(&semaphore, 1, WEFT_NEVER), WEFT_ECLOSED);
    weft_semaphore_release(&semaphore, 1);
    CHECK_EQ(weft_semaphore_available(&semaphore), 2);
    weft_semaphore_close(&semaphore);
    weft_runtime_destroy(rt);
}

static void release_too_many(void)
{
    weft_semaphore full = WEFT_SEMAPHORE_INIT(WEFT_SEMAPHORE_MAX);
    weft_semaphore_release(&full, 1);
}

static void init_with_too_many(void)
{
    weft_semaphore_init(&semaphore, WEFT_SEMAPHORE_MAX + 1);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(release_too_many, "weft_semaphore_release: more than WEFT_SEMAPHORE_MAX");
    CHECK_ABORTS(init_with_too_many, "weft_semaphore_init: 268435456 permits");
}

TEST_MAIN({
    TEST(acquired_permits_never_exceed_total),
    TEST(try_acquire_takes_available_permits),
    TEST(release_adds_and_forget_removes_permits),
    TEST(waiter_for_many_is_not_overtaken),
    TEST(waiter_that_gives_up_unblocks_those_behind),
    TEST(release_wakes_many_waiters),
    TEST(close_wakes_waiters_with_eclosed),
    TEST(misuse_aborts_with_message),
})
