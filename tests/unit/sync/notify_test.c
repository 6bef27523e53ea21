/* SPDX-License-Identifier: MIT */
#include <weft/event.h>

#include <stdatomic.h>
#include <string.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

static weft_notify notify;
static _Atomic(uint64_t) items;
static _Atomic(uint64_t) taken;

static void reset(void)
{
    memset(&notify, 0, sizeof notify);
    atomic_store(&items, 0);
    atomic_store(&taken, 0);
}

enum {
    MEMBERS = 12,
};

static bool take_item(void)
{
    uint64_t there = atomic_load(&items);
    while (there > 0) {
        if (atomic_compare_exchange_weak(&items, &there, there - 1)) {
            atomic_fetch_add(&taken, 1);
            return true;
        }
    }
    return false;
}

/*
 * Half of them make items, and notify; the others take what is there, and wait. Who is
 * notified notifies the next one if there is more: one notification is remembered, not many.
 */
static int make_and_take(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    WEFT_BEGIN(co);
    for (; self->round < crowd_rounds(); self->round++) {
        if (self->index % 2 == 0) {
            atomic_fetch_add(&items, 1);
            weft_notify_one(&notify);
            continue;
        }
        while (!take_item()) {
            weft_notify_wait_init(&self->ops[0], &notify);
            WEFT_AWAIT(co, self->err, &self->ops[0].future);
            CHECK_EQ(self->err, 0);
        }
        if (atomic_load(&items) > 0) {
            weft_notify_one(&notify);
        }
    }
    WEFT_END(co, 0);
}

static void check_taken(uint64_t sum)
{
    (void)sum;
    CHECK_EQ(atomic_load(&items), 0);
    CHECK_EQ(atomic_load(&taken), MEMBERS / 2 * crowd_rounds());
}

static void none_is_lost(void)
{
    crowd_run_all(MEMBERS, make_and_take, NULL, reset, check_taken);
}

static void one_is_remembered_and_no_more(void)
{
    reset();
    weft_notify_one(&notify);
    weft_notify_one(&notify);
    CHECK_EQ(weft_notify_wait(&notify, weft_after(WEFT_S)), 0);
    CHECK_EQ(weft_notify_wait(&notify, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    weft_notify_all(&notify);
    CHECK_EQ(weft_notify_wait(&notify, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    weft_notify_one(&notify);
    weft_notify_all(&notify); /* Which is for nobody, and leaves the other one. */
    CHECK_EQ(weft_notify_wait(&notify, weft_after(60 * WEFT_S)), 0);
    CHECK_EQ(notify.opaque[0], 0);
}

static int wait_for_it(void *arg)
{
    (void)arg;
    return weft_notify_wait(&notify, WEFT_NEVER);
}

static void the_one_that_waits_for_the_longest_time_is_first(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    weft_task *tasks[4];
    for (unsigned i = 0; i < 4; i++) {
        tasks[i] = test_go_first(rt, wait_for_it, NULL);
    }
    test_settle(rt);
    weft_cancel(tasks[0]);
    CHECK_EQ(test_join_soon(tasks[0]), WEFT_ECANCELED);
    weft_notify_one(&notify);
    CHECK_EQ(test_join_soon(tasks[1]), 0);
    CHECK_EQ(weft_try_join(tasks[2], NULL), -EAGAIN);
    weft_notify_all(&notify);
    CHECK_EQ(test_join_soon(tasks[2]), 0);
    CHECK_EQ(test_join_soon(tasks[3]), 0);
    CHECK_EQ(notify.opaque[0], 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(none_is_lost),
    TEST(one_is_remembered_and_no_more),
    TEST(the_one_that_waits_for_the_longest_time_is_first),
})
