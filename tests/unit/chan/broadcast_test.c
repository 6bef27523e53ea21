/* SPDX-License-Identifier: MIT */
#include <weft/broadcast.h>

#include <stdatomic.h>
#include <string.h>

#include "crowd.h"
#include "rt.h"
#include "test.h"

struct message {
    uint32_t sender;
    uint32_t number;
    uint64_t check;
};

WEFT_BROADCAST(messages, struct message)
WEFT_BROADCAST(numbers, int)

/* --- Concurrent senders and receivers -------------------------------------------------------- */

enum {
    MEMBERS = 10,
    SENDERS = 3,
};

static messages_sender *to;
static messages_receiver *from[MEMBERS];
static size_t capacity;

static struct box {
    struct message message;
    uint64_t missed;
    uint64_t missed_all;
    uint32_t next[SENDERS];
} boxes[MEMBERS];

static void reset(void)
{
    memset(boxes, 0, sizeof boxes);
    CHECK_EQ(messages_make(&to, &from[0], capacity), 0);
    for (unsigned i = 1; i < MEMBERS; i++) {
        CHECK_EQ(messages_subscribe(to, &from[i]), 0);
    }
    for (unsigned i = 1; i < SENDERS; i++) {
        CHECK(messages_sender_clone(to) == to);
    }
}

static void check_message(struct crowd_member *self, struct box *box)
{
    const struct message *message = &box->message;
    CHECK_LE(message->sender, SENDERS - 1);
    CHECK_EQ(message->check, message->sender * 1000003ull + message->number);
    CHECK_GE(message->number, box->next[message->sender]);
    box->next[message->sender] = message->number + 1;
    box->missed_all += box->missed;
    self->sum++;
}

/* Each receiver gets every message, or the number of messages that it missed. */
static int send_or_receive(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    struct box *box = &boxes[self->index];
    WEFT_BEGIN(co);
    if (self->index < SENDERS) {
        for (; self->round < crowd_rounds(); self->round++) {
            box->message = (struct message){ self->index, (uint32_t)self->round,
                                             self->index * 1000003ull + self->round };
            CHECK_EQ(messages_send(to, box->message), 0);
            if (self->round % 8 == 0) {
                WEFT_YIELD(co, self->err);
            }
        }
        messages_sender_drop(to);
        return 0;
    }
    for (;;) {
        messages_recv_init(&self->ops[0], from[self->index], &box->message, &box->missed);
        WEFT_AWAIT(co, self->err, &self->ops[0].future);
        if (self->err != 0) {
            break;
        }
        check_message(self, box);
    }
    CHECK_EQ(self->err, WEFT_ECLOSED);
    CHECK_EQ(self->sum + box->missed_all, SENDERS * crowd_rounds());
    WEFT_END(co, 0);
}

static void check_sum(uint64_t sum)
{
    if (capacity >= SENDERS * crowd_rounds()) {
        CHECK_EQ(sum, (MEMBERS - SENDERS) * SENDERS * crowd_rounds());
    }
    for (unsigned i = 0; i < MEMBERS; i++) {
        messages_receiver_drop(from[i]);
    }
}

static void each_receiver_gets_all_messages_or_count_of_missed(void)
{
    static const size_t capacities[] = { 1, 16, 100000 };
    for (unsigned i = 0; i < 3; i++) {
        capacity = capacities[i];
        crowd_run_all(MEMBERS, send_or_receive, NULL, reset, check_sum);
    }
}

/* --- One thread ------------------------------------------------------------------------------ */

static void slow_receiver_gets_count_of_missed_messages(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    numbers_receiver *copy;
    uint64_t missed = 99;
    int number = -1;
    CHECK_EQ(numbers_make(&sender, &receiver, 3), 0);
    CHECK_EQ(numbers_try_recv(receiver, &number, &missed), -EAGAIN);
    CHECK_EQ(numbers_recv(receiver, &number, &missed, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(numbers_send(sender, i), 0);
    }
    CHECK_EQ(weft_broadcast_receiver_info(numbers_from(receiver)).length, 3);
    CHECK_EQ(numbers_recv(receiver, &number, &missed, WEFT_NEVER), 0);
    CHECK_EQ(number, 0);
    CHECK_EQ(missed, 0);
    CHECK_EQ(numbers_receiver_clone(receiver, &copy), 0);
    for (int i = 3; i < 10; i++) {
        CHECK_EQ(numbers_send(sender, i), 0);
    }
    CHECK_EQ(weft_broadcast_receiver_info(numbers_from(receiver)).length, 3);
    CHECK_EQ(numbers_recv(receiver, &number, &missed, WEFT_NEVER), 0);
    CHECK_EQ(number, 7);
    CHECK_EQ(missed, 6);
    int many[9];
    CHECK_EQ(weft_broadcast_recv_many(numbers_from(receiver), many, 9, &missed, WEFT_NEVER), 2);
    CHECK_EQ(many[0], 8);
    CHECK_EQ(many[1], 9);
    CHECK_EQ(missed, 0);
    CHECK_EQ(weft_broadcast_recv_many(numbers_from(copy), many, 2, &missed, WEFT_NEVER), 2);
    CHECK_EQ(many[0], 7);
    CHECK_EQ(missed, 6);
    CHECK_EQ(weft_broadcast_recv_many(numbers_from(copy), many, 0, &missed, WEFT_NEVER), -EINVAL);
    CHECK_EQ(weft_broadcast_recv_many(numbers_from(copy), many, 2, NULL, WEFT_NEVER), 1);
    CHECK_EQ(weft_broadcast_recv_many(numbers_from(copy), many, 2, NULL, weft_after(WEFT_MS)),
             WEFT_ETIMEDOUT);

    weft_op op;
    CHECK_EQ(numbers_send(sender, 10), 0);
    numbers_recv_init(&op, copy, &number, NULL);
    CHECK_EQ(weft_await(&op.future, WEFT_NEVER), 0);
    CHECK_EQ(number, 10);
    weft_broadcast_close(numbers_to(sender));
    CHECK_EQ(numbers_send(sender, 11), WEFT_ECLOSED);
    CHECK_EQ(numbers_recv(receiver, &number, NULL, WEFT_NEVER), 0);
    CHECK_EQ(number, 10);
    CHECK_EQ(numbers_recv(receiver, &number, NULL, WEFT_NEVER), WEFT_ECLOSED);
    CHECK_EQ(numbers_try_recv(receiver, &number, NULL), WEFT_ECLOSED);
    numbers_sender_drop(sender);
    CHECK_EQ(numbers_recv(copy, &number, NULL, WEFT_NEVER), WEFT_ECLOSED);
    numbers_receiver_drop(copy);
    numbers_receiver_drop(receiver);
}

static void message_of_size_0_is_counted(void)
{
    weft_broadcast_sender *sender;
    weft_broadcast_receiver *receiver;
    uint64_t missed = 0;
    CHECK_EQ(weft_broadcast_make(&sender, &receiver, 0, 2), 0);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(weft_broadcast_send(sender, ""), 0);
    }
    CHECK_EQ(weft_broadcast_try_recv(receiver, &missed, &missed), 0);
    CHECK_EQ(missed, 1);
    CHECK_EQ(weft_broadcast_try_recv(receiver, &missed, NULL), 0);
    CHECK_EQ(weft_broadcast_try_recv(receiver, &missed, NULL), -EAGAIN);
    weft_broadcast_sender_drop(sender);
    weft_broadcast_receiver_drop(receiver);
}

static void handles_may_be_dropped_in_any_order(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    int number = 0;
    CHECK_EQ(numbers_make(&sender, &receiver, 0), -EINVAL);
    weft_broadcast_sender *to_none = NULL;
    weft_broadcast_receiver *from_none = NULL;
    CHECK_EQ(weft_broadcast_make(&to_none, &from_none, SIZE_MAX / 2, 3), -EINVAL);
    CHECK_EQ(numbers_make(&sender, &receiver, 2), 0);
    numbers_receiver_drop(receiver);
    CHECK_EQ(numbers_send(sender, 1), 0);
    CHECK_EQ(numbers_subscribe(sender, &receiver), 0);
    CHECK_EQ(numbers_try_recv(receiver, &number, NULL), -EAGAIN);
    CHECK(numbers_sender_clone(sender) == sender);
    numbers_sender_drop(sender);
    CHECK_EQ(numbers_send(sender, 2), 0);
    numbers_receiver *other;
    CHECK_EQ(numbers_subscribe(sender, &other), 0);
    weft_broadcast_info info = weft_broadcast_sender_info(numbers_to(sender));
    CHECK_EQ(info.senders, 1);
    CHECK_EQ(info.receivers, 2);
    CHECK_EQ(info.capacity, 2);
    CHECK_EQ(info.sent, 2);
    CHECK(!info.is_closed);
    numbers_receiver_drop(other);
    CHECK(numbers_sender_clone(sender) == sender);
    info = weft_broadcast_receiver_info(numbers_from(receiver));
    CHECK_EQ(info.senders, 2);
    CHECK_EQ(info.receivers, 1);
    numbers_sender_drop(sender);
    numbers_sender_drop(sender);
    CHECK(weft_broadcast_receiver_info(numbers_from(receiver)).is_closed);
    CHECK_EQ(numbers_try_recv(receiver, &number, NULL), 0);
    CHECK_EQ(number, 2);
    numbers_receiver_drop(receiver);
    weft_broadcast_sender_drop(NULL);
    weft_broadcast_receiver_drop(NULL);
}

/* --- Waiting --------------------------------------------------------------------------------- */

static int receive(void *arg)
{
    int number = 0;
    uint64_t missed = 99;
    int err = numbers_recv(arg, &number, &missed, WEFT_NEVER);
    CHECK(err != 0 || missed == 0);
    return err == 0 ? number : err;
}

static void send_wakes_all_waiters_with_next_message(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receivers[3];
    weft_task *tasks[3];
    CHECK_EQ(numbers_make(&sender, &receivers[0], 1), 0);
    CHECK_EQ(numbers_subscribe(sender, &receivers[1]), 0);
    CHECK_EQ(numbers_subscribe(sender, &receivers[2]), 0);
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = test_go_first(rt, receive, receivers[i]);
    }
    test_settle(rt);
    weft_cancel(tasks[1]);
    CHECK_EQ(test_join_soon(tasks[1]), WEFT_ECANCELED);
    CHECK_EQ(numbers_send(sender, 4), 0);
    CHECK_EQ(numbers_send(sender, 5), 0); /* Before the waiters have run again. */
    CHECK_EQ(test_join_soon(tasks[0]), 4);
    CHECK_EQ(test_join_soon(tasks[2]), 4);

    int number = 0;
    uint64_t missed = 0;
    CHECK_EQ(numbers_try_recv(receivers[1], &number, &missed), 0);
    CHECK_EQ(number, 5);
    CHECK_EQ(missed, 1);
    tasks[1] = test_go_first(rt, receive, receivers[1]);
    test_settle(rt);
    numbers_sender_drop(sender);
    CHECK_EQ(test_join_soon(tasks[1]), WEFT_ECLOSED);
    for (unsigned i = 0; i < 3; i++) {
        numbers_receiver_drop(receivers[i]);
    }
    weft_runtime_destroy(rt);
}

static int receive_many(void *arg)
{
    int numbers[4] = { 0 };
    uint64_t missed = 99;
    int64_t count = weft_broadcast_recv_many(arg, numbers, 4, &missed, WEFT_NEVER);
    CHECK(count < 0 || missed == 0);
    return count == 1 ? numbers[0] : (int)count;
}

static int receive_number(void *arg)
{
    int number = -1;
    int err = weft_broadcast_recv(arg, &number, NULL, WEFT_NEVER);
    return err == 0 ? number : err;
}

static void two_waiters_on_one_receiver_get_one_message_each(void)
{
    weft_runtime *rt = test_start(1);
    weft_broadcast_sender *sender;
    weft_broadcast_receiver *receiver;
    CHECK_EQ(weft_broadcast_make(&sender, &receiver, sizeof(int), 4), 0);
    weft_task *one = test_go_first(rt, receive_number, receiver);
    weft_task *two = test_go_first(rt, receive_number, receiver);
    test_settle(rt);
    for (int number = 5; number <= 6; number++) {
        CHECK_EQ(weft_broadcast_send(sender, &number), 0);
    }
    CHECK_EQ(test_join_soon(one), 5);
    CHECK_EQ(test_join_soon(two), 6);
    weft_broadcast_sender_drop(sender);
    weft_broadcast_receiver_drop(receiver);
    weft_runtime_destroy(rt);
}

static void recv_many_waiter_gets_next_message(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 4), 0);
    weft_task *task = test_go_first(rt, receive_many, receiver);
    CHECK_EQ(numbers_send(sender, 6), 0);
    CHECK_EQ(numbers_send(sender, 7), 0);
    CHECK_EQ(test_join_soon(task), 6);
    CHECK_EQ(test_run(rt, receive, receiver), 7);
    weft_task *tasks[2];
    tasks[0] = test_go_first(rt, receive_many, receiver);
    tasks[1] = test_go_first(rt, receive, receiver);
    weft_broadcast_close(numbers_to(sender));
    CHECK_EQ(test_join_soon(tasks[0]), WEFT_ECLOSED);
    CHECK_EQ(test_join_soon(tasks[1]), WEFT_ECLOSED);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
    weft_runtime_destroy(rt);
}

/* A receive from a closed channel does not suspend. It must let other tasks run all the same. */
static _Atomic(bool) other_ran;

static int record_that_other_ran(void *arg)
{
    (void)arg;
    atomic_store(&other_ran, true);
    return 0;
}

static int receive_closed(void *arg)
{
    while (!atomic_load(&other_ran)) {
        CHECK_EQ(receive(arg), WEFT_ECLOSED);
    }
    return 0;
}

static int receive_many_closed(void *arg)
{
    while (!atomic_load(&other_ran)) {
        CHECK_EQ(receive_many(arg), WEFT_ECLOSED);
    }
    return 0;
}

static void receive_from_closed_channel_lets_others_run(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    numbers_sender_drop(sender);
    for (int way = 0; way < 2; way++) {
        atomic_store(&other_ran, false);
        weft_task *busy = test_go(rt, way == 0 ? receive_closed : receive_many_closed, receiver);
        CHECK_EQ(test_run(rt, record_that_other_ran, NULL), 0);
        CHECK_EQ(test_join_soon(busy), 0);
    }
    numbers_receiver_drop(receiver);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(each_receiver_gets_all_messages_or_count_of_missed),
    TEST(slow_receiver_gets_count_of_missed_messages),
    TEST(message_of_size_0_is_counted),
    TEST(handles_may_be_dropped_in_any_order),
    TEST(send_wakes_all_waiters_with_next_message),
    TEST(two_waiters_on_one_receiver_get_one_message_each),
    TEST(recv_many_waiter_gets_next_message),
    TEST(receive_from_closed_channel_lets_others_run),
})
