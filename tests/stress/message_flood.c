/* SPDX-License-Identifier: MIT */
/*
 * message_flood.c - stress test of every kind of channel, from one or four senders to one or
 * four receivers.
 *
 * No message is lost or duplicated, and the messages of one sender arrive in order.
 *
 * Messages per kind and shape: 40 000, times WEFT_TEST_SCALE. The soak test sends 100 million.
 */
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

enum {
    SIDE_MAX = 4,
};

/* Encodes the sender and its message number. */
static uint64_t message_of(unsigned sender, uint64_t number)
{
    return number * SIDE_MAX + sender;
}

/* What one receiver got from one sender: increasing numbers, their count and their sum. */
struct got {
    uint64_t next; /* minimum of the next number */
    uint64_t count;
    uint64_t sum;
};

struct side {
    unsigned index;
    uint64_t count; /* number of messages to send */
    uint64_t missed;
    struct got got[SIDE_MAX];
};

static struct shape {
    unsigned senders;
    unsigned receivers;
} shapes[] = { { 1, 1 }, { 4, 1 }, { 1, 4 }, { 4, 4 } };

static struct side senders[SIDE_MAX];
static struct side receivers[SIDE_MAX];

static void record_message(struct side *self, uint64_t message)
{
    struct got *got = &self->got[message % SIDE_MAX];
    uint64_t number = message / SIDE_MAX;
    CHECK_GE(number, got->next);
    got->next = number + 1;
    got->count++;
    got->sum += number;
}

static void run_shape(weft_runtime *rt, struct shape shape, int (*send)(void *arg),
                      int (*receive)(void *arg))
{
    weft_task *tasks[2 * SIDE_MAX];
    unsigned count = 0;
    memset(senders, 0, sizeof senders);
    memset(receivers, 0, sizeof receivers);
    for (unsigned i = 0; i < shape.receivers; i++) {
        receivers[i].index = i;
        tasks[count++] = test_go(rt, receive, &receivers[i]);
    }
    for (unsigned i = 0; i < shape.senders; i++) {
        senders[i].index = i;
        senders[i].count = test_scale(40000) / shape.senders + 1;
        tasks[count++] = test_go(rt, send, &senders[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        CHECK_EQ(test_join(tasks[i]), 0);
    }
}

/* --- Channels --------------------------------------------------------------------------------- */

static weft_sender *to[SIDE_MAX];
static weft_receiver *from[SIDE_MAX];

static int send_all(void *arg)
{
    struct side *self = arg;
    for (uint64_t i = 0; i < self->count; i++) {
        uint64_t message = message_of(self->index, i);
        CHECK_EQ(weft_send(to[self->index], &message, WEFT_NEVER), 0);
    }
    weft_sender_drop(to[self->index]);
    return 0;
}

static int receive_all(void *arg)
{
    struct side *self = arg;
    uint64_t message = 0;
    int err;
    while ((err = weft_recv(from[self->index], &message, WEFT_NEVER)) == 0) {
        record_message(self, message);
    }
    CHECK_EQ(err, WEFT_ECLOSED);
    weft_receiver_drop(from[self->index]);
    return 0;
}

/* Checks that all receivers together got each message once. */
static void check_shared(struct shape shape)
{
    for (unsigned s = 0; s < shape.senders; s++) {
        uint64_t count = 0;
        uint64_t sum = 0;
        for (unsigned r = 0; r < shape.receivers; r++) {
            count += receivers[r].got[s].count;
            sum += receivers[r].got[s].sum;
        }
        CHECK_EQ(count, senders[s].count);
        CHECK_EQ(sum, senders[s].count * (senders[s].count - 1) / 2);
    }
}

static void flood_channels(size_t capacity)
{
    weft_runtime *rt = test_start(test_workers(2));
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(weft_channel_make(&to[0], &from[0], sizeof(uint64_t), capacity), 0);
        for (unsigned k = 1; k < shapes[i].senders; k++) {
            to[k] = weft_sender_clone(to[0]);
            CHECK(to[k] != NULL);
        }
        for (unsigned k = 1; k < shapes[i].receivers; k++) {
            from[k] = weft_receiver_clone(from[0]);
            CHECK(from[k] != NULL);
        }
        run_shape(rt, shapes[i], send_all, receive_all);
        check_shared(shapes[i]);
    }
    weft_runtime_destroy(rt);
}

static void unbuffered_channel_delivers_each_message_once(void)
{
    flood_channels(0);
}

static void bounded_channel_delivers_each_message_once(void)
{
    flood_channels(64);
}

static void unbounded_channel_delivers_each_message_once(void)
{
    flood_channels(WEFT_UNBOUNDED);
}

/* --- Broadcast and watch ---------------------------------------------------------------------- */

static weft_broadcast_sender *news_to;
static weft_broadcast_receiver *news_from[SIDE_MAX];

static int broadcast_all(void *arg)
{
    struct side *self = arg;
    for (uint64_t i = 0; i < self->count; i++) {
        uint64_t message = message_of(self->index, i);
        CHECK_EQ(weft_broadcast_send(news_to, &message), 0);
        if (i % 256 == 0) {
            (void)weft_yield();
        }
    }
    weft_broadcast_sender_drop(news_to);
    return 0;
}

static int receive_broadcast(void *arg)
{
    struct side *self = arg;
    uint64_t message = 0;
    uint64_t missed = 0;
    int err;
    while ((err = weft_broadcast_recv(news_from[self->index], &message, &missed, WEFT_NEVER)) ==
           0) {
        self->missed += missed;
        record_message(self, message);
    }
    CHECK_EQ(err, WEFT_ECLOSED);
    weft_broadcast_receiver_drop(news_from[self->index]);
    return 0;
}

/* Each receiver gets each message, or a count of missed messages that includes it. */
static void broadcast_delivers_or_counts_as_missed_each_message(void)
{
    weft_runtime *rt = test_start(test_workers(2));
    for (unsigned i = 0; i < 4; i++) {
        struct shape shape = shapes[i];
        CHECK_EQ(weft_broadcast_make(&news_to, &news_from[0], sizeof(uint64_t), 512), 0);
        for (unsigned k = 1; k < shape.senders; k++) {
            CHECK(weft_broadcast_sender_clone(news_to) == news_to);
        }
        for (unsigned k = 1; k < shape.receivers; k++) {
            CHECK_EQ(weft_broadcast_subscribe(news_to, &news_from[k]), 0);
        }
        run_shape(rt, shape, broadcast_all, receive_broadcast);
        for (unsigned r = 0; r < shape.receivers; r++) {
            uint64_t count = receivers[r].missed;
            uint64_t sent = 0;
            for (unsigned s = 0; s < shape.senders; s++) {
                count += receivers[r].got[s].count;
                sent += senders[s].count;
            }
            CHECK_EQ(count, sent);
        }
    }
    weft_runtime_destroy(rt);
}

static weft_watch_sender *set;
static weft_watch_receiver *seen[SIDE_MAX];

static int set_all(void *arg)
{
    struct side *self = arg;
    for (uint64_t i = 0; i < self->count; i++) {
        uint64_t message = message_of(self->index, i);
        CHECK_EQ(weft_watch_send(set, &message), 0);
        if (i % 256 == 0) {
            (void)weft_yield();
        }
    }
    weft_watch_sender_drop(set);
    return 0;
}

static int watch_all(void *arg)
{
    struct side *self = arg;
    uint64_t message = 0;
    int err;
    while ((err = weft_watch_recv(seen[self->index], &message, WEFT_NEVER)) == 0) {
        record_message(self, message);
    }
    CHECK_EQ(err, WEFT_ECLOSED);
    uint64_t last = 0;
    weft_watch_get(seen[self->index], &last);
    CHECK_EQ(last, message);
    weft_watch_receiver_drop(seen[self->index]);
    return 0;
}

/* The values of one sender arrive in order, and every receiver gets the last value of all. */
static void watch_delivers_last_value_to_every_receiver(void)
{
    weft_runtime *rt = test_start(test_workers(2));
    for (unsigned i = 0; i < 4; i++) {
        uint64_t none = 0;
        CHECK_EQ(weft_watch_make(&set, &seen[0], sizeof none, &none), 0);
        for (unsigned k = 1; k < shapes[i].senders; k++) {
            CHECK(weft_watch_sender_clone(set) == set);
        }
        for (unsigned k = 1; k < shapes[i].receivers; k++) {
            CHECK_EQ(weft_watch_subscribe(set, &seen[k]), 0);
        }
        run_shape(rt, shapes[i], set_all, watch_all);
    }
    weft_runtime_destroy(rt);
}

/* --- Oneshots --------------------------------------------------------------------------------- */

WEFT_ONESHOT(place, uint64_t)

/* Each pair of sender and receiver uses two oneshots alternately. */
static place places[SIDE_MAX][2];
static weft_semaphore taken[SIDE_MAX];

static int send_each(void *arg)
{
    struct side *self = arg;
    for (uint64_t i = 0; i < self->count; i++) {
        CHECK_EQ(weft_semaphore_acquire(&taken[self->index], 1, WEFT_NEVER), 0);
        CHECK_EQ(place_send(&places[self->index][i % 2], message_of(self->index, i)), 0);
    }
    return 0;
}

static int receive_each(void *arg)
{
    struct side *self = arg;
    uint64_t count = test_scale(40000) / SIDE_MAX + 1;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t message = 0;
        CHECK_EQ(place_recv(&places[self->index][i % 2], &message, WEFT_NEVER), 0);
        CHECK_EQ(message, message_of(self->index, i));
        places[self->index][i % 2] = (place){ { { 0 } }, 0 };
        weft_semaphore_release(&taken[self->index], 1);
    }
    return 0;
}

static void oneshots_deliver_each_message_once(void)
{
    weft_runtime *rt = test_start(test_workers(2));
    memset(places, 0, sizeof places);
    for (unsigned i = 0; i < SIDE_MAX; i++) {
        weft_semaphore_init(&taken[i], 2);
    }
    run_shape(rt, shapes[3], send_each, receive_each);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(unbuffered_channel_delivers_each_message_once),
    TEST(bounded_channel_delivers_each_message_once),
    TEST(unbounded_channel_delivers_each_message_once),
    TEST(broadcast_delivers_or_counts_as_missed_each_message),
    TEST(watch_delivers_last_value_to_every_receiver),
    TEST(oneshots_deliver_each_message_once),
})
