/* SPDX-License-Identifier: MIT */
#include <weft/event.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

static weft_event events[CROWD_MAX];
static uint64_t written[CROWD_MAX]; /* plain; set publishes it */

static void reset(void)
{
    memset(events, 0, sizeof events);
    memset(written, 0, sizeof written);
}

enum {
    MEMBERS = 12,
};

/* A ring: each member waits for the event of the previous one, resets it, and sets its own. */
static int wait_reset_and_set_next(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    unsigned before = (self->index + MEMBERS - 1) % MEMBERS;
    WEFT_BEGIN(co);
    for (; self->round < crowd_rounds() / 5; self->round++) {
        if (self->round > 0 || self->index > 0) {
            weft_event_wait_init(&self->ops[0], &events[before]);
            WEFT_AWAIT(co, self->err, &self->ops[0].future);
            CHECK_EQ(self->err, 0);
            weft_event_reset(&events[before]);
            CHECK_EQ(written[before], self->round + (self->index > 0));
        }
        written[self->index]++;
        self->sum++;
        weft_event_set(&events[self->index]);
    }
    WEFT_END(co, 0);
}

static void check_written(uint64_t sum)
{
    CHECK_EQ(sum, MEMBERS * (crowd_rounds() / 5));
    CHECK(weft_event_is_set(&events[MEMBERS - 1]));
}

static void waiter_sees_writes_before_set(void)
{
    crowd_run_all(MEMBERS, wait_reset_and_set_next, NULL, reset, check_written);
}

static int wait_for_event(void *arg)
{
    return weft_event_wait(arg, WEFT_NEVER);
}

static void set_wakes_all_waiters_and_later_waits_return(void)
{
    weft_runtime *rt = test_start(2);
    weft_event event = { { 0 } };
    weft_task *tasks[40];
    for (unsigned i = 0; i < 40; i++) {
        tasks[i] = test_go(rt, wait_for_event, &event);
    }
    test_wait_ns(WEFT_MS);
    CHECK(!weft_event_is_set(&event));
    weft_event_set(&event);
    for (unsigned i = 0; i < 40; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    CHECK(weft_event_is_set(&event));
    CHECK_EQ(weft_event_wait(&event, 0), 0);
    weft_op op;
    weft_event_wait_init(&op, &event);
    CHECK_EQ(weft_await(&op.future, WEFT_NEVER), 0);
    CHECK(weft_event_is_set(&event));
    weft_event_set(&event);
    weft_event_reset(&event);
    CHECK(!weft_event_is_set(&event));
    CHECK_EQ(weft_event_wait(&event, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(event.opaque[0], 0);
    weft_runtime_destroy(rt);
}

static void canceled_waiter_leaves_others_waiting(void)
{
    weft_runtime *rt = test_start(1);
    weft_event event = { { 0 } };
    weft_task *tasks[3];
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = test_go(rt, wait_for_event, &event);
    }
    test_settle(rt);
    weft_cancel(tasks[1]);
    CHECK_EQ(test_join_soon(tasks[1]), WEFT_ECANCELED);
    weft_event_set(&event);
    CHECK_EQ(test_join_soon(tasks[0]), 0);
    CHECK_EQ(test_join_soon(tasks[2]), 0);
    weft_runtime_destroy(rt);
}

/* The waiter frees the event while the setter may still be in its call. */
static int set_event(void *arg)
{
    weft_event_set(arg);
    return 0;
}

static int wait_and_free(void *arg)
{
    weft_runtime *rt = arg;
    for (uint64_t i = 0; i < crowd_rounds(); i++) {
        weft_event *event = calloc(1, sizeof *event);
        CHECK(event != NULL);
        weft_task *setter = test_go(rt, set_event, event);
        CHECK_EQ(weft_event_wait(event, WEFT_NEVER), 0);
        memset(event, 0xff, sizeof *event);
        free(event);
        CHECK_EQ(test_join_soon(setter), 0);
    }
    return 0;
}

static void waiter_may_free_event(void)
{
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        CHECK_EQ(test_run(rt, wait_and_free, rt), 0);
        CHECK_EQ(wait_and_free(rt), 0);
        weft_runtime_destroy(rt);
    }
}

TEST_MAIN({
    TEST(waiter_sees_writes_before_set),
    TEST(set_wakes_all_waiters_and_later_waits_return),
    TEST(canceled_waiter_leaves_others_waiting),
    TEST(waiter_may_free_event),
})
