/* SPDX-License-Identifier: MIT */
#include <weft/channel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "crowd.h"
#include "rt.h"
#include "test.h"
#include "timing.h"

struct message {
    uint32_t sender;
    uint32_t number;
    uint64_t check;
};

WEFT_CHANNEL(messages, struct message)
WEFT_CHANNEL(numbers, int)

/* --- Many to many --------------------------------------------------------------------------- */

enum {
    MEMBERS = 12,
    SENDERS = 4, /* the others receive */
};

static messages_sender *to[MEMBERS];
static messages_receiver *from;
static size_t capacity;
static size_t sending;                                  /* number of members that send */
static _Atomic(uint32_t) next_number[MEMBERS][MEMBERS]; /* minimum next number */
static struct message boxes[MEMBERS];

static void reset(void)
{
    memset((void *)next_number, 0, sizeof next_number);
    CHECK_EQ(messages_make(&to[0], &from, capacity), 0);
    for (size_t i = 1; i < sending; i++) {
        to[i] = messages_sender_clone(to[0]);
        CHECK(to[i] != NULL);
    }
}

/* Each receiver gets the messages of one sender in order. */
static void check_message(struct crowd_member *self)
{
    const struct message *message = &boxes[self->index];
    CHECK_LE(message->sender, sending - 1);
    CHECK_EQ(message->check, message->sender * 1000003ull + message->number);
    CHECK_GE(message->number, atomic_load(&next_number[self->index][message->sender]));
    atomic_store(&next_number[self->index][message->sender], message->number + 1);
    self->sum++;
}

static int send_or_receive(weft_co *co, void *state)
{
    struct crowd_member *self = state;
    struct message *box = &boxes[self->index];
    WEFT_BEGIN(co);
    if (self->index < sending) {
        for (; self->round < crowd_rounds(); self->round++) {
            *box = (struct message){ self->index, (uint32_t)self->round,
                                     self->index * 1000003ull + self->round };
            messages_send_init(&self->ops[0], to[self->index], box);
            WEFT_AWAIT(co, self->err, &self->ops[0].future);
            CHECK_EQ(self->err, 0);
        }
        messages_sender_drop(to[self->index]);
    } else {
        for (;;) {
            messages_recv_init(&self->ops[0], from, box);
            WEFT_AWAIT(co, self->err, &self->ops[0].future);
            if (self->err != 0) {
                break;
            }
            check_message(self);
        }
        CHECK_EQ(self->err, WEFT_ECLOSED);
    }
    WEFT_END(co, 0);
}

static void check_sum(uint64_t sum)
{
    CHECK_EQ(sum, sending * crowd_rounds());
    weft_channel_info info = weft_receiver_info(messages_from(from));
    CHECK_EQ(info.length, 0);
    CHECK_EQ(info.senders, 0);
    CHECK(info.is_closed);
    messages_receiver_drop(from);
}

static void no_message_is_lost_or_duplicated(void)
{
    static const size_t capacities[] = { 0, 1, 7, 100, WEFT_UNBOUNDED };
    static const size_t senders[] = { 1, SENDERS, MEMBERS - 1 };
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        capacity = capacities[i];
        sending = senders[i % 3];
        crowd_run_all(MEMBERS, send_or_receive, NULL, reset, check_sum);
    }
}

/* --- One thread ----------------------------------------------------------------------------- */

static void messages_arrive_in_send_order(void)
{
    static const size_t capacities[] = { 1, 3, 1000, WEFT_UNBOUNDED };
    for (size_t k = 0; k < 4; k++) {
        numbers_sender *sender;
        numbers_receiver *receiver;
        CHECK_EQ(numbers_make(&sender, &receiver, capacities[k]), 0);
        int sent = 0;
        int received = 0;
        int number = -1;
        CHECK_EQ(numbers_try_recv(receiver, &number), -EAGAIN);
        for (int round = 0; round < 50; round++) {
            while (sent - received < 400 && numbers_try_send(sender, sent) == 0) {
                sent++;
            }
            CHECK_EQ(weft_sender_info(numbers_to(sender)).length, (size_t)(sent - received));
            for (int i = 0; i <= round && received < sent; i++) {
                CHECK_EQ(numbers_recv(receiver, &number, WEFT_NEVER), 0);
                CHECK_EQ(number, received);
                received++;
            }
        }
        numbers_sender_drop(sender);
        while (received < sent) {
            CHECK_EQ(numbers_recv(receiver, &number, WEFT_NEVER), 0);
            CHECK_EQ(number, received);
            received++;
        }
        CHECK_EQ(numbers_recv(receiver, &number, WEFT_NEVER), WEFT_ECLOSED);
        CHECK_EQ(numbers_try_recv(receiver, &number), WEFT_ECLOSED);
        numbers_receiver_drop(receiver);
    }
}

static void recv_many_returns_up_to_count(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    int got[8];
    CHECK_EQ(numbers_make(&sender, &receiver, 10), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(numbers_send(sender, i, WEFT_NEVER), 0);
    }
    CHECK_EQ(numbers_try_send(sender, 10), -EAGAIN);
    CHECK_EQ(numbers_send(sender, 10, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    CHECK_EQ(numbers_recv_many(receiver, got, 0, WEFT_NEVER), -EINVAL);
    CHECK_EQ(numbers_recv_many(receiver, got, 8, WEFT_NEVER), 8);
    CHECK_EQ(got[0], 0);
    CHECK_EQ(got[7], 7);
    CHECK_EQ(numbers_recv_many(receiver, got, 8, WEFT_NEVER), 2);
    CHECK_EQ(got[1], 9);
    CHECK_EQ(numbers_recv_many(receiver, got, 8, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    numbers_sender_drop(sender);
    CHECK_EQ(numbers_recv_many(receiver, got, 8, WEFT_NEVER), WEFT_ECLOSED);
    numbers_receiver_drop(receiver);
}

static int send_one(void *arg)
{
    return numbers_send(arg, 1, WEFT_NEVER);
}

/* The receive frees slots, and the waiting senders' messages move up into them. */
static void recv_many_includes_messages_of_waiting_senders(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receiver;
    weft_task *tasks[2];
    int got[8] = { 0 };
    CHECK_EQ(numbers_make(&sender, &receiver, 2), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(numbers_try_send(sender, 7), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        tasks[i] = test_go_first(rt, send_one, sender);
    }
    CHECK_EQ(numbers_recv_many(receiver, got, 8, WEFT_NEVER), 4);
    CHECK_EQ(got[1], 7);
    CHECK_EQ(got[3], 1);
    CHECK_EQ(test_join_soon(tasks[0]), 0);
    CHECK_EQ(test_join_soon(tasks[1]), 0);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
    weft_runtime_destroy(rt);
}

static void check_info(weft_channel_info info, const weft_channel_info *wanted)
{
    CHECK_EQ(info.length, wanted->length);
    CHECK_EQ(info.capacity, wanted->capacity);
    CHECK_EQ(info.senders, wanted->senders);
    CHECK_EQ(info.receivers, wanted->receivers);
    CHECK_EQ(info.is_closed, wanted->is_closed);
}

static void info_reports_channel_state(void)
{
    weft_sender *sender;
    weft_receiver *receiver;
    weft_channel_info wanted = { .capacity = WEFT_UNBOUNDED, .senders = 1, .receivers = 1 };
    CHECK_EQ(weft_channel_make(&sender, &receiver, 1, WEFT_UNBOUNDED), 0);
    check_info(weft_sender_info(sender), &wanted);
    CHECK_EQ(weft_try_send(sender, "a"), 0);
    CHECK_EQ(weft_try_send(sender, "b"), 0);
    CHECK_EQ(weft_try_reserve(sender), 0);
    weft_sender *other_sender = weft_sender_clone(sender);
    weft_receiver *others[2] = { weft_receiver_clone(receiver), weft_receiver_clone(receiver) };
    CHECK(other_sender != NULL);
    CHECK(others[0] != NULL);
    CHECK(others[1] != NULL);
    wanted.length = 2;
    wanted.senders = 2;
    wanted.receivers = 3;
    check_info(weft_receiver_info(receiver), &wanted);
    weft_sender_close(sender);
    weft_receiver_drop(receiver);
    wanted.receivers = 2;
    wanted.is_closed = true;
    check_info(weft_receiver_info(others[0]), &wanted);

    /* No receiver is left for the remaining messages. */
    weft_receiver_drop(others[0]);
    weft_receiver_drop(others[1]);
    wanted.receivers = 0;
    wanted.length = 0;
    check_info(weft_sender_info(sender), &wanted);
    weft_sender_drop(sender);
    weft_sender_drop(other_sender);
}

static void message_may_have_any_size(void)
{
    static const size_t sizes[] = { 0, 1, 3, 4, 8, 17, 4096 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        weft_sender *sender;
        weft_receiver *receiver;
        char sent[4096];
        char received[4096];
        CHECK_EQ(weft_channel_make(&sender, &receiver, sizes[i], WEFT_UNBOUNDED), 0);
        for (int k = 0; k < 40; k++) {
            memset(sent, k, sizeof sent);
            CHECK_EQ(weft_send(sender, sent, WEFT_NEVER), 0);
        }
        for (int k = 0; k < 40; k++) {
            memset(sent, k, sizeof sent);
            memset(received, 0, sizeof received);
            CHECK_EQ(weft_recv(receiver, received, WEFT_NEVER), 0);
            CHECK_EQ(memcmp(sent, received, sizes[i]), 0);
        }
        weft_sender_drop(sender);
        weft_receiver_drop(receiver);
    }
    weft_sender_drop(NULL);
    weft_receiver_drop(NULL);
    weft_sender *sender;
    weft_receiver *receiver;
    CHECK_EQ(weft_channel_make(&sender, &receiver, 16, SIZE_MAX - 1), -EINVAL);
}

/* --- Reserved slots ------------------------------------------------------------------------- */

static int reserve(void *arg)
{
    return weft_reserve(arg, WEFT_NEVER);
}

static int receive_number(void *arg)
{
    int number = -1;
    int err = numbers_recv(arg, &number, WEFT_NEVER);
    return err != 0 ? err : number;
}

static void reserved_slot_is_kept_for_send_reserved(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 2), 0);
    weft_sender *core = numbers_to(sender);
    CHECK_EQ(weft_reserve(core, WEFT_NEVER), 0);
    CHECK_EQ(numbers_send(sender, 1, WEFT_NEVER), 0);
    CHECK_EQ(numbers_try_send(sender, 2), -EAGAIN);
    CHECK_EQ(weft_try_reserve(core), -EAGAIN);
    CHECK_EQ(weft_reserve(core, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
    weft_task *waiting = test_go_first(rt, reserve, core);
    CHECK_EQ(weft_try_join(waiting, NULL), -EAGAIN);
    int number = 0;
    CHECK_EQ(numbers_recv(receiver, &number, WEFT_NEVER), 0);
    CHECK_EQ(number, 1);
    CHECK_EQ(test_join_soon(waiting), 0);
    numbers_send_reserved(sender, 3);
    CHECK_EQ(numbers_recv(receiver, &number, WEFT_NEVER), 0);
    CHECK_EQ(number, 3);
    /* One slot is still reserved, so a message can arrive although the channel is closed. */
    weft_task *receiving = test_go_first(rt, receive_number, receiver);
    weft_receiver_close(numbers_from(receiver));
    CHECK_EQ(numbers_try_send(sender, 4), WEFT_ECLOSED);
    CHECK_EQ(weft_try_reserve(core), WEFT_ECLOSED);
    CHECK_EQ(numbers_try_recv(receiver, &number), -EAGAIN);
    test_settle(rt);
    CHECK_EQ(weft_try_join(receiving, NULL), -EAGAIN);
    weft_task *second = test_go_first(rt, receive_number, receiver);
    numbers_send_reserved(sender, 5);
    CHECK_EQ(test_join_soon(receiving), 5);
    CHECK_EQ(test_join_soon(second), WEFT_ECLOSED);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);

    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    core = numbers_to(sender);
    CHECK_EQ(weft_try_reserve(core), 0);
    waiting = test_go_first(rt, reserve, core);
    weft_unreserve(core);
    CHECK_EQ(test_join_soon(waiting), 0);
    /* All slots are reserved. A receiver takes the message directly from a sender. */
    receiving = test_go_first(rt, receive_number, receiver);
    CHECK_EQ(numbers_try_send(sender, 6), 0);
    CHECK_EQ(test_join_soon(receiving), 6);
    numbers_receiver_drop(receiver);
    numbers_send_reserved(sender, 7);
    CHECK_EQ(weft_sender_info(core).length, 0);
    numbers_sender_drop(sender);
    weft_runtime_destroy(rt);
}

static void reserve_works_unbounded_and_fails_unbuffered(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    int number = 0;
    CHECK_EQ(numbers_make(&sender, &receiver, 0), 0);
    CHECK_EQ(weft_try_reserve(numbers_to(sender)), -EINVAL);
    CHECK_EQ(weft_reserve(numbers_to(sender), WEFT_NEVER), -EINVAL);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);

    CHECK_EQ(numbers_make(&sender, &receiver, WEFT_UNBOUNDED), 0);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(weft_try_reserve(numbers_to(sender)), 0);
    }
    for (int i = 0; i < 100; i++) {
        numbers_send_reserved(sender, i);
    }
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(numbers_recv(receiver, &number, WEFT_NEVER), 0);
        CHECK_EQ(number, i);
    }
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
}

/* The last sender is gone, so its reservations keep no receiver waiting. */
static void drop_of_last_sender_releases_reserved_slots(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receiver;
    int number = 0;
    CHECK_EQ(numbers_make(&sender, &receiver, 2), 0);
    CHECK_EQ(weft_try_reserve(numbers_to(sender)), 0);
    weft_task *receiving = test_go_first(rt, receive_number, receiver);
    numbers_sender_drop(sender);
    CHECK_EQ(test_join_soon(receiving), WEFT_ECLOSED);
    CHECK_EQ(numbers_try_recv(receiver, &number), WEFT_ECLOSED);
    numbers_receiver_drop(receiver);
    weft_runtime_destroy(rt);
}

/* A slot belongs to the sender that has reserved it. Another sender cannot use it, and gets it
 * when the owner is dropped. Waiting senders are admitted, up to the number of slots. */
static void drop_of_sender_releases_its_reserved_slots(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receiver;
    int number = 0;
    CHECK_EQ(numbers_make(&sender, &receiver, 2), 0);
    numbers_sender *owner = numbers_sender_clone(sender);
    CHECK(owner != NULL);
    CHECK(owner != sender);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(weft_try_reserve(numbers_to(owner)), 0);
    }
    CHECK_EQ(numbers_try_send(sender, 1), -EAGAIN);
    weft_task *reserving = test_go_first(rt, reserve, sender);
    weft_task *sending_one = test_go_first(rt, send_one, sender);
    weft_task *late = test_go_first(rt, send_one, sender);
    numbers_sender_drop(owner);
    CHECK_EQ(test_join_soon(reserving), 0);
    CHECK_EQ(test_join_soon(sending_one), 0);
    CHECK_EQ(weft_try_join(late, NULL), -EAGAIN);
    numbers_send_reserved(sender, 2);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(numbers_recv(receiver, &number, WEFT_NEVER), 0);
    }
    CHECK_EQ(test_join_soon(late), 0);
    numbers_sender_drop(sender);
    CHECK_EQ(numbers_try_recv(receiver, &number), WEFT_ECLOSED);
    numbers_receiver_drop(receiver);
    weft_runtime_destroy(rt);
}

/* A reservation that is still pending when its sender is dropped gets no slot. */
static void drop_of_sender_ends_its_pending_reservations(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    numbers_sender *owner = numbers_sender_clone(sender);
    CHECK_EQ(numbers_try_send(sender, 1), 0);
    weft_task *pending = test_go_first(rt, reserve, owner);
    weft_task *other = test_go_first(rt, reserve, sender);
    numbers_sender_drop(owner);
    CHECK_EQ(test_join_soon(pending), WEFT_ECLOSED);
    CHECK_EQ(receive_number(receiver), 1);
    CHECK_EQ(test_join_soon(other), 0);
    numbers_send_reserved(sender, 2);
    CHECK_EQ(receive_number(receiver), 2);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
    weft_runtime_destroy(rt);
}

/* The record of a dropped clone is reused for the next one. */
static void clones_reuse_dropped_handles(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    numbers_sender *clone = numbers_sender_clone(sender);
    for (unsigned i = 0; i < 3; i++) {
        numbers_sender *last = clone;
        CHECK_EQ(weft_try_reserve(numbers_to(clone)), 0);
        numbers_sender_drop(clone);
        clone = numbers_sender_clone(sender);
        CHECK(clone == last);
    }
    numbers_sender_drop(clone);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
}

/* All slots are reserved. One sender waits for a slot, and behind it another one waits with a
 * message. */
static void receive_takes_message_past_waiting_reservation(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receiver;
    int number = 0;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    CHECK_EQ(weft_try_reserve(numbers_to(sender)), 0);
    weft_task *reserving = test_go_first(rt, reserve, sender);
    weft_task *sending_one = test_go_first(rt, send_one, sender);
    CHECK_EQ(numbers_try_recv(receiver, &number), 0);
    CHECK_EQ(number, 1);
    CHECK_EQ(test_join_soon(sending_one), 0);
    CHECK_EQ(weft_try_join(reserving, NULL), -EAGAIN);
    weft_unreserve(numbers_to(sender));
    CHECK_EQ(test_join_soon(reserving), 0);
    numbers_send_reserved(sender, 2);
    CHECK_EQ(numbers_try_recv(receiver, &number), 0);
    CHECK_EQ(number, 2);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
    weft_runtime_destroy(rt);
}

/* --- Memory of an unbounded channel ---------------------------------------------------------- */

enum {
    QUEUE_LONG = 100000,
    QUEUE_KEPT = 4096, /* bytes that an empty channel may keep */
    SLACK = 8,         /* maximum ratio of its memory to that of its messages */
};

static void check_memory(numbers_receiver *receiver)
{
    weft_channel_info info = weft_receiver_info(numbers_from(receiver));
    CHECK_GE(info.bytes, info.length * sizeof(int));
    CHECK_LE(info.bytes, QUEUE_KEPT + SLACK * sizeof(int) * (info.length + 1));
}

static void drained_channel_frees_memory_and_keeps_order(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    int number = 0;
    CHECK_EQ(numbers_make(&sender, &receiver, WEFT_UNBOUNDED), 0);
    int sent = 0;
    int received = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < QUEUE_LONG; i++) {
            CHECK_EQ(numbers_try_send(sender, sent++), 0);
        }
        CHECK_GE(weft_receiver_info(numbers_from(receiver)).bytes, QUEUE_LONG * sizeof(int));
        while (received < sent) {
            CHECK_EQ(numbers_try_recv(receiver, &number), 0);
            CHECK_EQ(number, received);
            received++;
            check_memory(receiver);
        }
    }
    /* Same for reservations that are given up, or whose sender is dropped. */
    numbers_sender *owner = numbers_sender_clone(sender);
    for (int i = 0; i < QUEUE_LONG; i++) {
        CHECK_EQ(weft_try_reserve(numbers_to(i % 2 == 0 ? sender : owner)), 0);
    }
    numbers_sender_drop(owner);
    for (int i = 0; i < QUEUE_LONG / 2; i++) {
        weft_unreserve(numbers_to(sender));
    }
    check_memory(receiver);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
}

static unsigned allocations;
static bool has_memory;

static bool count_allocation(void)
{
    allocations++;
    return has_memory;
}

/* Sets the allocation hook, or removes it if hook is NULL. Does nothing without debug checks,
 * since only debug builds have a hook. */
static void hook_allocations(bool (*hook)(void))
{
#ifdef WF_DEBUG
    wf_alloc_hook = hook;
#else
    (void)hook;
#endif
}

/* A queue whose length varies by a factor of 4 allocates at first, then never again. */
static void steady_queue_does_not_allocate(void)
{
    enum {
        LEAST = 2500,
        MOST = 4 * LEAST,
    };
    numbers_sender *sender;
    numbers_receiver *receiver;
    int number = 0;
    CHECK_EQ(numbers_make(&sender, &receiver, WEFT_UNBOUNDED), 0);
    has_memory = true;
    hook_allocations(count_allocation);
    for (int round = 0; round < 10; round++) {
        allocations = 0;
        for (size_t i = weft_receiver_info(numbers_from(receiver)).length; i < MOST; i++) {
            CHECK_EQ(numbers_try_send(sender, 1), 0);
        }
        for (int i = LEAST; i < MOST; i++) {
            CHECK_EQ(numbers_try_recv(receiver, &number), 0);
        }
        CHECK(round < 2 || allocations == 0);
    }
    hook_allocations(NULL);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
}

static void drain_without_memory_keeps_messages(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    int number = 0;
    CHECK_EQ(numbers_make(&sender, &receiver, WEFT_UNBOUNDED), 0);
    for (int i = 0; i < QUEUE_LONG; i++) {
        CHECK_EQ(numbers_try_send(sender, i), 0);
    }
    has_memory = false;
    hook_allocations(count_allocation);
    for (int i = 0; i < QUEUE_LONG; i++) {
        CHECK_EQ(numbers_try_recv(receiver, &number), 0);
        CHECK_EQ(number, i);
    }
    hook_allocations(NULL);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
}

/* --- Drop functions --------------------------------------------------------------------------- */

static int dropped[16];
static unsigned dropped_count;
static pthread_t dropping_thread;

static void record_dropped(void *message, void *arg)
{
    CHECK(arg == &dropped_count);
    dropped[dropped_count++] = *(int *)message;
    dropping_thread = pthread_self();
}

static void make_dropping(numbers_sender **sender, numbers_receiver **receiver, size_t room)
{
    weft_channel_options options = { .capacity = room,
                                     .drop = record_dropped,
                                     .arg = &dropped_count };
    CHECK_EQ(numbers_create(sender, receiver, &options), 0);
    dropped_count = 0;
}

/* Also if the ring has wrapped around, and if another receiver is dropped first. */
static void last_receiver_drops_unread_messages_in_order(void)
{
    static const size_t capacities[] = { 4, WEFT_UNBOUNDED };
    for (size_t k = 0; k < 2; k++) {
        numbers_sender *sender;
        numbers_receiver *receiver;
        make_dropping(&sender, &receiver, capacities[k]);
        numbers_receiver *other = numbers_receiver_clone(receiver);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(numbers_send(sender, -1, WEFT_NEVER), 0);
            CHECK_EQ(receive_number(receiver), -1);
        }
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(numbers_send(sender, i, WEFT_NEVER), 0);
        }
        CHECK_EQ(receive_number(receiver), 0);
        numbers_receiver_drop(other);
        CHECK_EQ(dropped_count, 0);
        numbers_receiver_drop(receiver);
        CHECK_EQ(dropped_count, 3);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(dropped[i], i + 1);
        }
        CHECK(pthread_equal(dropping_thread, pthread_self()));
        CHECK_EQ(weft_sender_info(numbers_to(sender)).bytes, 0);
        numbers_sender_drop(sender);
        CHECK_EQ(dropped_count, 3);
    }
}

/* The senders are dropped first, or the channel is closed. The messages are unread all the
 * same. */
static void closed_channel_drops_unread_messages(void)
{
    for (int way = 0; way < 2; way++) {
        numbers_sender *sender;
        numbers_receiver *receiver;
        make_dropping(&sender, &receiver, 4);
        CHECK_EQ(numbers_send(sender, 5, WEFT_NEVER), 0);
        if (way == 0) {
            numbers_sender_drop(sender);
        } else {
            weft_sender_close(numbers_to(sender));
        }
        CHECK_EQ(dropped_count, 0);
        numbers_receiver_drop(receiver);
        CHECK_EQ(dropped_count, 1);
        CHECK_EQ(dropped[0], 5);
        if (way == 1) {
            numbers_sender_drop(sender);
        }
        CHECK_EQ(dropped_count, 1);
    }
}

/* A refused message stays with its sender. One with a reserved slot is sent. */
static void refused_messages_are_not_dropped(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    make_dropping(&sender, &receiver, 1);
    CHECK_EQ(weft_try_reserve(numbers_to(sender)), 0);
    CHECK_EQ(numbers_try_send(sender, 1), -EAGAIN);
    CHECK_EQ(numbers_send(sender, 2, weft_after(0)), WEFT_ETIMEDOUT);
    numbers_receiver_drop(receiver);
    CHECK_EQ(numbers_send(sender, 3, WEFT_NEVER), WEFT_ECLOSED);
    CHECK_EQ(dropped_count, 0);
    numbers_send_reserved(sender, 4);
    CHECK_EQ(dropped_count, 1);
    CHECK_EQ(dropped[0], 4);
    numbers_sender_drop(sender);
}

static void drop_sender_in_message(void *message, void *arg)
{
    weft_sender_drop(*(weft_sender **)message);
    (*(unsigned *)arg)++;
}

/* Channels sent through a channel: a drop function may drop handles, even of the same channel. */
static void drop_function_may_use_channels(void)
{
    weft_channel_options options = { .size = sizeof(weft_sender *),
                                     .capacity = WEFT_UNBOUNDED,
                                     .drop = drop_sender_in_message,
                                     .arg = &dropped_count };
    weft_sender *sender;
    weft_receiver *receiver;
    weft_sender *replies;
    weft_receiver *reply;
    dropped_count = 0;
    CHECK_EQ(weft_channel_create(&sender, &receiver, &options), 0);
    CHECK_EQ(weft_channel_make(&replies, &reply, 1, 1), 0);
    CHECK_EQ(weft_try_send(sender, &replies), 0);
    CHECK_EQ(weft_try_send(sender, &sender), 0);
    weft_receiver_drop(receiver);
    CHECK_EQ(dropped_count, 2);
    CHECK_EQ(weft_try_recv(reply, &receiver), WEFT_ECLOSED);
    weft_receiver_drop(reply);
}

/* --- Close and cancel ----------------------------------------------------------------------- */

static void close_wakes_waiters_with_eclosed(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 0), 0);
    weft_task *sending_one = test_go_first(rt, send_one, sender);
    numbers_receiver_drop(receiver);
    CHECK_EQ(test_join_soon(sending_one), WEFT_ECLOSED);
    CHECK_EQ(numbers_send(sender, 1, WEFT_NEVER), WEFT_ECLOSED);
    numbers_sender_drop(sender);

    CHECK_EQ(numbers_make(&sender, &receiver, 0), 0);
    weft_task *receiving = test_go_first(rt, receive_number, receiver);
    numbers_sender *other = numbers_sender_clone(sender);
    numbers_sender_drop(sender);
    test_settle(rt);
    CHECK_EQ(weft_try_join(receiving, NULL), -EAGAIN);
    numbers_sender_drop(other);
    CHECK_EQ(test_join_soon(receiving), WEFT_ECLOSED);
    numbers_receiver_drop(numbers_receiver_clone(receiver));
    numbers_receiver_drop(receiver);

    for (int way = 0; way < 2; way++) {
        CHECK_EQ(numbers_make(&sender, &receiver, 0), 0);
        weft_task *waiting = way == 0 ? test_go_first(rt, send_one, sender)
                                      : test_go_first(rt, receive_number, receiver);
        if (way == 0) {
            weft_receiver_close(numbers_from(receiver));
        } else {
            weft_sender_close(numbers_to(sender));
        }
        CHECK_EQ(test_join_soon(waiting), WEFT_ECLOSED);
        numbers_sender_drop(sender);
        numbers_receiver_drop(receiver);
    }

    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    CHECK_EQ(numbers_send(sender, 9, WEFT_NEVER), 0);
    weft_receiver_close(numbers_from(receiver));
    CHECK_EQ(numbers_send(sender, 1, WEFT_NEVER), WEFT_ECLOSED); /* Although it is full. */
    CHECK_EQ(weft_reserve(numbers_to(sender), WEFT_NEVER), WEFT_ECLOSED);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);

    CHECK_EQ(numbers_make(&sender, &receiver, 3), 0);
    CHECK_EQ(numbers_send(sender, 9, WEFT_NEVER), 0);
    weft_sender_close(numbers_to(sender));
    CHECK_EQ(numbers_send(sender, 1, WEFT_NEVER), WEFT_ECLOSED);
    CHECK_EQ(receive_number(receiver), 9);
    CHECK_EQ(receive_number(receiver), WEFT_ECLOSED);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
    weft_runtime_destroy(rt);
}

static void canceled_call_sends_and_receives_nothing(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 0), 0);
    weft_task *tasks[3];
    for (unsigned i = 0; i < 3; i++) {
        tasks[i] = test_go_first(rt, send_one, sender);
    }
    weft_cancel(tasks[0]);
    CHECK_EQ(test_join_soon(tasks[0]), WEFT_ECANCELED);
    CHECK_EQ(receive_number(receiver), 1);
    CHECK_EQ(test_join_soon(tasks[1]), 0);
    CHECK_EQ(receive_number(receiver), 1);
    CHECK_EQ(test_join_soon(tasks[2]), 0);
    int number;
    CHECK_EQ(numbers_try_recv(receiver, &number), -EAGAIN);
    for (unsigned i = 0; i < 2; i++) {
        tasks[i] = test_go_first(rt, receive_number, receiver);
    }
    weft_cancel(tasks[0]);
    CHECK_EQ(test_join_soon(tasks[0]), WEFT_ECANCELED);
    CHECK_EQ(numbers_try_send(sender, 4), 0);
    CHECK_EQ(test_join_soon(tasks[1]), 4);
    CHECK_EQ(numbers_try_send(sender, 5), -EAGAIN);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
    weft_runtime_destroy(rt);
}

/* A fiber that always finds a message lets others run. */
static _Atomic(bool) other_ran;

static int record_that_other_ran(void *arg)
{
    (void)arg;
    atomic_store(&other_ran, true);
    return 0;
}

static int receive_until_other_ran(void *arg)
{
    numbers_sender *sender = arg;
    numbers_receiver *receiver = (numbers_receiver *)arg;
    int number;
    while (!atomic_load(&other_ran)) {
        CHECK_EQ(numbers_send(sender, 1, WEFT_NEVER), 0);
        CHECK_EQ(numbers_recv(receiver, &number, WEFT_NEVER), 0);
    }
    return 0;
}

/* A call on a closed channel does not suspend either. */
static int send_closed(void *arg)
{
    while (!atomic_load(&other_ran)) {
        CHECK_EQ(numbers_send(arg, 1, WEFT_NEVER), WEFT_ECLOSED);
    }
    return 0;
}

static int receive_closed(void *arg)
{
    int number;
    while (!atomic_load(&other_ran)) {
        CHECK_EQ(numbers_recv(arg, &number, WEFT_NEVER), WEFT_ECLOSED);
    }
    return 0;
}

static void check_lets_others_run(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    atomic_store(&other_ran, false);
    weft_task *busy = test_go(rt, function, arg);
    CHECK_EQ(test_run(rt, record_that_other_ran, NULL), 0);
    CHECK_EQ(test_join_soon(busy), 0);
}

static void calls_that_never_suspend_let_others_run(void)
{
    weft_runtime *rt = test_start(1);
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    check_lets_others_run(rt, receive_until_other_ran, sender);
    weft_sender_close(numbers_to(sender));
    check_lets_others_run(rt, send_closed, sender);
    check_lets_others_run(rt, receive_closed, receiver);
    numbers_sender_drop(sender);
    numbers_receiver_drop(receiver);
    weft_runtime_destroy(rt);
}

static void send_unreserved(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    numbers_send_reserved(sender, 1);
}

static void unreserve_nothing(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    weft_unreserve(numbers_to(sender));
}

static int receive_task(weft_co *co, void *state)
{
    int number;
    (void)co;
    return numbers_recv(test_arg(state), &number, WEFT_NEVER);
}

/* Aborts even if a message is available. */
static void receive_in_stackless_task(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    CHECK_EQ(numbers_try_send(sender, 1), 0);
    (void)test_join(test_spawn(test_start(1), receive_task, receiver));
}

static void send_into_others_slot(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    numbers_sender *other = numbers_sender_clone(sender);
    CHECK_EQ(weft_try_reserve(numbers_to(sender)), 0);
    numbers_send_reserved(other, 1);
}

static void drop_sender_twice(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    numbers_sender_drop(sender);
    numbers_sender_drop(sender);
}

static void drop_receiver_twice(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    numbers_receiver *clone = numbers_receiver_clone(receiver);
    numbers_receiver_drop(clone);
    numbers_receiver_drop(clone);
}

static void send_after_drop(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    numbers_sender_drop(sender);
    CHECK_EQ(numbers_send(sender, 1, WEFT_NEVER), 0);
}

static void receive_after_drop(void)
{
    numbers_sender *sender;
    numbers_receiver *receiver;
    CHECK_EQ(numbers_make(&sender, &receiver, 1), 0);
    numbers_receiver_drop(receiver);
    (void)receive_number(receiver);
}

static void misuse_aborts_with_message(void)
{
    CHECK_ABORTS(send_into_others_slot, "weft_send_reserved: this sender has reserved no room");
    CHECK_ABORTS(drop_sender_twice, "weft_sender_drop: this sender or receiver was dropped before");
    CHECK_ABORTS(drop_receiver_twice, "weft_receiver_drop: this sender or receiver was dropped");
    CHECK_ABORTS(send_after_drop, "weft_send: this sender or receiver was dropped before");
    CHECK_ABORTS(receive_after_drop, "weft_recv: this sender or receiver was dropped before");
    CHECK_ABORTS(receive_in_stackless_task, "weft_recv: called on a worker outside of a fiber");
    CHECK_ABORTS(unreserve_nothing, "weft_unreserve: this sender has reserved no room");
    CHECK_ABORTS(send_unreserved, "weft_send_reserved: this sender has reserved no room");
}

TEST_MAIN({
    TEST(no_message_is_lost_or_duplicated),
    TEST(messages_arrive_in_send_order),
    TEST(recv_many_returns_up_to_count),
    TEST(recv_many_includes_messages_of_waiting_senders),
    TEST(info_reports_channel_state),
    TEST(message_may_have_any_size),
    TEST(reserved_slot_is_kept_for_send_reserved),
    TEST(reserve_works_unbounded_and_fails_unbuffered),
    TEST(drop_of_last_sender_releases_reserved_slots),
    TEST(drop_of_sender_releases_its_reserved_slots),
    TEST(drop_of_sender_ends_its_pending_reservations),
    TEST(clones_reuse_dropped_handles),
    TEST(receive_takes_message_past_waiting_reservation),
    TEST(drained_channel_frees_memory_and_keeps_order),
    TEST_DEBUG(steady_queue_does_not_allocate),
    TEST_DEBUG(drain_without_memory_keeps_messages),
    TEST(last_receiver_drops_unread_messages_in_order),
    TEST(closed_channel_drops_unread_messages),
    TEST(refused_messages_are_not_dropped),
    TEST(drop_function_may_use_channels),
    TEST(close_wakes_waiters_with_eclosed),
    TEST(canceled_call_sends_and_receives_nothing),
    TEST(calls_that_never_suspend_let_others_run),
    TEST(misuse_aborts_with_message),
})
