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
 * Half of the members produce items and notify. The others take items, and wait if there are
 * none. A notified member notifies the next one if items are left, because at most one
 * notification is stored.
 */
static int produce_or_consume(weft_co *co, void *state)
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

static void no_notification_is_lost(void)
{
    crowd_run_all(MEMBERS, produce_or_consume, NULL, reset, check_taken);
}

static void at_most_one_notification_is_stored(void)
{
    reset();
    weft_notify_one(&notify);
    weft_notify_one(&notify);
    CHECK_EQ(weft_notify_wait(&notify, weft_after(WEFT_S)), 0);
    CHECK_EQ(weft_notify_wait(&notify, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    weft_notify_all(&notify);
    CHECK_EQ(weft_notify_wait(&notify, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    weft_notify_one(&notify);
    weft_notify_all(&notify); /* Finds no waiter, and leaves the stored notification. */
    CHECK_EQ(weft_notify_wait(&notify, test_deadline()), 0);
    CHECK_EQ(notify.opaque[0], 0);
}

static int wait_for_notification(void *arg)
{
    (void)arg;
    return weft_notify_wait(&notify, WEFT_NEVER);
}

static void notify_one_wakes_longest_waiter(void)
{
    reset();
    weft_runtime *rt = test_start(1);
    weft_task *tasks[4];
    for (unsigned i = 0; i < 4; i++) {
        tasks[i] = test_go_first(rt, wait_for_notification, NULL);
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
    TEST(no_notification_is_lost),
    TEST(at_most_one_notification_is_stored),
    TEST(notify_one_wakes_longest_waiter),
})
