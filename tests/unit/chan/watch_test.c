/* SPDX-License-Identifier: MIT */
#include <weft/watch.h>

#include <string.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"

struct state {
    uint64_t number;
    uint64_t check;
};

WEFT_WATCH(states, struct state)
WEFT_WATCH(numbers, int)

/* --- Concurrent senders and receivers -------------------------------------------------------- */

enum {
    MEMBERS = 10,
    SENDERS = 2,
};

static states_sender *to;
static states_receiver *from[MEMBERS];
static struct state seen[MEMBERS];
static uint64_t last[MEMBERS];
static bool saw_end[MEMBERS];

static struct state state_of(uint64_t number)
{
    return (struct state){ number, number * 1000003 };
}

static void reset(void)
{
    CHECK_EQ(states_make(&to, &from[0], state_of(0)), 0);
    CHECK(states_sender_clone(to) == to);
    for (unsigned i = 1; i < MEMBERS; i++) {
        CHECK_EQ(states_subscribe(to, &from[i]), 0);
    }
    memset(last, 0, sizeof last);
    memset(saw_end, 0, sizeof saw_end);
}

static bool add_one(void *value, void *arg)
{
    (void)arg;
    struct state *state = value;
    *state = state_of(state->number + 1);
    return true;
}

/* Senders increment. Receivers see increasing numbers, never torn, and the last one. */
static int count_or_watch(weft_co *co, void *arg)
{
    struct crowd_member *self = arg;
    unsigned me = self->index;
    WEFT_BEGIN(co);
    if (me < SENDERS) {
        for (; self->round < crowd_rounds(); self->round++) {
            CHECK_EQ(weft_watch_change(states_to(to), add_one, NULL), 1);
            WEFT_YIELD(co, self->err);
        }
        states_sender_drop(to);
        return 0;
    }
    for (;;) {
        states_recv_init(&self->ops[0], from[me], &seen[me]);
        WEFT_AWAIT(co, self->err, &self->ops[0].future);
        if (self->err != 0) {
            break;
        }
        CHECK_EQ(seen[me].check, seen[me].number * 1000003);
        CHECK(seen[me].number > last[me]);
        last[me] = seen[me].number;
    }
    CHECK_EQ(self->err, WEFT_ECLOSED);
    CHECK_EQ(last[me], SENDERS * crowd_rounds());
    self->sum = 1;
    WEFT_END(co, 0);
}

static void check_sum(uint64_t sum)
{
    CHECK_EQ(sum, MEMBERS - SENDERS);
    for (unsigned i = 0; i < MEMBERS; i++) {
        states_receiver_drop(from[i]);
    }
}

static void every_receiver_sees_last_value(void)
{
    crowd_run_all(MEMBERS, count_or_watch, NULL, reset, check_sum);
}

/* --- One thread ------------------------------------------------------------------------------ */

static void value_is_new_until_seen(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    int value = 0;
    CHECK_EQ(numbers_make(&sender, &receiver, 5), 0);
    CHECK(!weft_watch_has_changed(numbers_from(receiver)));
    CHECK_EQ(numbers_get(receiver), 5);
    CHECK_EQ(numbers_recv(receiver, &value, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(numbers_send(sender, 6), 0);
    CHECK_EQ(numbers_send(sender, 7), 0);
    CHECK(weft_watch_has_changed(numbers_from(receiver)));

    numbers_receiver *copy;
    numbers_receiver *late;
    CHECK_EQ(numbers_receiver_clone(receiver, &copy), 0);
    CHECK_EQ(numbers_subscribe(sender, &late), 0);
    CHECK_EQ(numbers_recv(receiver, &value, WEFT_NEVER), 0);
    CHECK_EQ(value, 7);
    CHECK(!weft_watch_has_changed(numbers_from(receiver)));
    CHECK(weft_watch_has_changed(numbers_from(copy)));
    CHECK(!weft_watch_has_changed(numbers_from(late)));
    CHECK_EQ(weft_watch_recv(numbers_from(copy), NULL, WEFT_NEVER), 0);
    CHECK(!weft_watch_has_changed(numbers_from(copy)));

    weft_watch_info info = weft_watch_sender_info(numbers_to(sender));
    CHECK_EQ(info.senders, 1);
    CHECK_EQ(info.receivers, 3);
    CHECK_EQ(weft_watch_receiver_info(numbers_from(late)).receivers, 3);
    CHECK_EQ(info.sent, 2);
    CHECK(!info.is_closed);
    numbers_receiver_drop(copy);
    numbers_receiver_drop(late);
    numbers_sender_drop(sender);
    CHECK(weft_watch_receiver_info(numbers_from(receiver)).is_closed);
    CHECK_EQ(numbers_recv(receiver, &value, WEFT_NEVER), WEFT_ECLOSED);
    CHECK_EQ(numbers_get(receiver), 7);
    numbers_receiver_drop(receiver);
}

static bool change_to(void *value, void *arg)
{
    int wanted = *(int *)arg;
    bool changes = *(int *)value != wanted;
    *(int *)value = wanted;
    return changes;
}

static void change_modifies_value_in_place(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    int wanted = 5;
    CHECK_EQ(numbers_make(&sender, &receiver, 5), 0);
    CHECK_EQ(weft_watch_change(numbers_to(sender), change_to, &wanted), 0);
    CHECK(!weft_watch_has_changed(numbers_from(receiver)));
    wanted = 6;
    CHECK_EQ(weft_watch_change(numbers_to(sender), change_to, &wanted), 1);
    CHECK_EQ(numbers_get(receiver), 6);
    weft_watch_close(numbers_to(sender));
    CHECK_EQ(weft_watch_change(numbers_to(sender), change_to, &wanted), WEFT_ECLOSED);
    CHECK_EQ(numbers_send(sender, 9), WEFT_ECLOSED);
    CHECK_EQ(numbers_get(receiver), 6);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
}

/* --- Waiting --------------------------------------------------------------------------------- */

static numbers_receiver *waited;

static int receive_value(void *arg)
{
    (void)arg;
    int value = 0;
    int err = numbers_recv(waited, &value, WEFT_NEVER);
    return err == 0 ? value : err;
}

static bool is_at_least(const void *value, void *arg)
{
    return *(const int *)value >= *(const int *)arg;
}

static int wait_for_10(void *arg)
{
    (void)arg;
    int least = 10;
    int value = 0;
    int err = weft_watch_wait_for(numbers_from(waited), is_at_least, &least, &value, WEFT_NEVER);
    return err == 0 ? value : err;
}

static void waiter_gets_value_that_matches(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    CHECK_EQ(numbers_make(&sender, &waited, 1), 0);
    weft_task *next = test_go_first(rt, receive_value, NULL);
    weft_task *large = test_go_first(rt, wait_for_10, NULL);
    test_settle(rt);
    CHECK_EQ(numbers_send(sender, 2), 0);
    CHECK_EQ(test_join_soon(next), 2);
    CHECK_EQ(weft_try_join(large, NULL), -EAGAIN);
    CHECK_EQ(numbers_send(sender, 12), 0);
    CHECK_EQ(numbers_send(sender, 3), 0); /* Before the waiter has run again. */
    CHECK_EQ(test_join_soon(large), 12);

    /* A value that was already seen still satisfies a wait. */
    CHECK_EQ(numbers_send(sender, 20), 0);
    CHECK_EQ(numbers_get(waited), 20);
    CHECK_EQ(test_run(rt, wait_for_10, NULL), 20);

    CHECK_EQ(numbers_send(sender, 1), 0);
    CHECK_EQ(numbers_get(waited), 1);
    next = test_go_first(rt, receive_value, NULL);
    large = test_go_first(rt, wait_for_10, NULL);
    weft_task *third = test_go_first(rt, receive_value, NULL);
    test_settle(rt);
    weft_cancel(third);
    CHECK_EQ(test_join_soon(third), WEFT_ECANCELED);
    numbers_sender_drop(sender);
    CHECK_EQ(test_join_soon(next), WEFT_ECLOSED);
    CHECK_EQ(test_join_soon(large), WEFT_ECLOSED);
    numbers_receiver_drop(waited);
    weft_runtime_destroy(rt);
}

/* The first waiter keeps waiting. */
static void send_wakes_waiters_behind_unsatisfied_one(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    CHECK_EQ(numbers_make(&sender, &waited, 1), 0);
    weft_task *large = test_go_first(rt, wait_for_10, NULL);
    weft_task *next = test_go_first(rt, receive_value, NULL);
    CHECK_EQ(numbers_send(sender, 2), 0);
    CHECK_EQ(test_join_soon(next), 2);
    CHECK_EQ(weft_try_join(large, NULL), -EAGAIN);
    CHECK_EQ(numbers_send(sender, 10), 0);
    CHECK_EQ(test_join_soon(large), 10);
    CHECK(!weft_watch_has_changed(numbers_from(waited)));
    CHECK_EQ(numbers_send(sender, 11), 0);
    CHECK(weft_watch_has_changed(numbers_from(waited)));
    CHECK_EQ(test_run(rt, wait_for_10, NULL), 11);
    CHECK(!weft_watch_has_changed(numbers_from(waited)));
    numbers_sender_drop(sender);
    numbers_receiver_drop(waited);
    weft_runtime_destroy(rt);
}

static void wait_ends_with_timeout_or_eclosed(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    int least = 10;
    int value = 5;
    CHECK_EQ(numbers_make(&sender, &waited, 1), 0);
    CHECK_EQ(
        weft_watch_wait_for(numbers_from(waited), is_at_least, &least, &value, weft_after(WEFT_MS)),
        WEFT_ETIMEDOUT);
    CHECK_EQ(value, 5);
    weft_task *next = test_go_first(rt, receive_value, NULL);
    weft_task *large = test_go_first(rt, wait_for_10, NULL);
    weft_watch_close(numbers_to(sender));
    CHECK_EQ(test_join_soon(next), WEFT_ECLOSED);
    CHECK_EQ(test_join_soon(large), WEFT_ECLOSED);
    numbers_sender_drop(sender);
    numbers_receiver_drop(waited);
    weft_runtime_destroy(rt);
}

static void handles_may_be_dropped_in_any_order(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    numbers_receiver_drop(receiver);
    CHECK_EQ(numbers_send(sender, 2), 0);
    CHECK_EQ(numbers_subscribe(sender, &receiver), 0);
    CHECK_EQ(numbers_get(receiver), 2);
    CHECK(numbers_sender_clone(sender) == sender);
    numbers_sender_drop(sender);
    CHECK_EQ(numbers_send(sender, 3), 0);
    numbers_sender_drop(sender);
    CHECK_EQ(numbers_get(receiver), 3);
    numbers_receiver_drop(receiver);
    weft_watch_sender_drop(NULL);
    weft_watch_receiver_drop(NULL);
    weft_watch_sender *to_none = NULL;
    weft_watch_receiver *from_none = NULL;
    CHECK_EQ(weft_watch_make(&to_none, &from_none, SIZE_MAX, ""), -EINVAL);
    CHECK(to_none == NULL && from_none == NULL);
}

TEST_MAIN({
    TEST(every_receiver_sees_last_value),
    TEST(value_is_new_until_seen),
    TEST(change_modifies_value_in_place),
    TEST(waiter_gets_value_that_matches),
    TEST(send_wakes_waiters_behind_unsatisfied_one),
    TEST(wait_ends_with_timeout_or_eclosed),
    TEST(handles_may_be_dropped_in_any_order),
})
