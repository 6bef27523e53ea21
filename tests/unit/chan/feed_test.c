/* SPDX-License-Identifier: MIT */
#include "chan/feed.h"

#include <errno.h>

#include <weft/broadcast.h>
#include <weft/watch.h>

#include "memory.h"
#include "test.h"

static char arg_of_all;

enum {
    BYTES = sizeof(struct wf_feed) + 40,
};

static void feed_lives_until_last_handle_is_dropped(void)
{
    struct wf_feed *feed;
    struct wf_feed_receiver *first;
    CHECK_EQ(wf_feed_make(&feed, &first, BYTES), 0);
    CHECK(first->feed == feed);
    CHECK_EQ(feed->senders, 1);
    CHECK_EQ(feed->receivers, 1);
    wf_feed_add_sender(feed);
    CHECK_EQ(feed->senders, 2);
    wf_feed_drop_sender(feed, "test");
    CHECK(!feed->is_closed);
    wf_feed_drop_sender(feed, "test");
    CHECK(feed->is_closed);
    CHECK_EQ(feed->senders, 0);
    wf_feed_drop_receiver(first, "test"); /* Sanitizers check that it is freed once. */

    CHECK_EQ(wf_feed_make(&feed, &first, BYTES), 0);
    wf_feed_drop_receiver(first, "test");
    CHECK(!feed->is_closed);
    CHECK_EQ(feed->receivers, 0);
    wf_feed_drop_sender(feed, "test");
    wf_feed_drop_sender(NULL, "test");
    wf_feed_drop_receiver(NULL, "test");
}

static void memory_behind_feed_is_zeroed(void)
{
    struct wf_feed *feed;
    struct wf_feed_receiver *receiver;
    CHECK_EQ(wf_feed_make(&feed, &receiver, BYTES), 0);
    const char *rest = (const char *)(feed + 1);
    for (unsigned i = 0; i < BYTES - sizeof *feed; i++) {
        CHECK_EQ(rest[i], 0);
    }
    wf_feed_drop_sender(feed, "test");
    wf_feed_drop_receiver(receiver, "test");
}

static void cloned_receiver_starts_at_position_of_original(void)
{
    struct wf_feed *feed;
    struct wf_feed_receiver *first;
    CHECK_EQ(wf_feed_make(&feed, &first, BYTES), 0);
    feed->sent = 5;
    first->seen = 3;
    struct wf_feed_receiver *copy = wf_feed_add_receiver(feed, first);
    struct wf_feed_receiver *late = wf_feed_add_receiver(feed, NULL);
    CHECK(copy != NULL && late != NULL);
    CHECK_EQ(copy->seen, 3);
    CHECK_EQ(late->seen, 5);
    CHECK_EQ(feed->receivers, 3);
    wf_feed_close(feed);
    CHECK(feed->is_closed);
    wf_feed_drop_receiver(copy, "test");
    wf_feed_drop_receiver(late, "test");
    wf_feed_drop_receiver(first, "test");
    wf_feed_drop_sender(feed, "test");
}

static void make_feed_with_two_receivers(void *arg)
{
    struct wf_feed *feed = NULL;
    struct wf_feed_receiver *first = NULL;
    unsigned *made = arg;
    int err = wf_feed_make(&feed, &first, BYTES);
    if (err != 0) {
        CHECK_EQ(err, -ENOMEM);
        CHECK(feed == NULL && first == NULL);
        return;
    }
    struct wf_feed_receiver *second = wf_feed_add_receiver(feed, first);
    CHECK_EQ(feed->receivers, second == NULL ? 1 : 2);
    *made += second != NULL;
    wf_feed_drop_receiver(second, "test");
    wf_feed_drop_receiver(first, "test");
    wf_feed_drop_sender(feed, "test");
}

static void make_without_memory_returns_enomem(void)
{
    unsigned made = 0;
    CHECK_EQ(memory_sweep(make_feed_with_two_receivers, &made), 3);
    CHECK_EQ(made, 1);
}

/* --- Reference-counted messages --------------------------------------------------------------- */

/* An object that a message points to. The message itself may be large. */
struct object {
    int references;
    int dropped; /* by the multicast channel */
};

struct large {
    struct object *object;
    char rest[WF_FEED_SPARE_BYTES];
};

static void retain(void *message, void *arg)
{
    CHECK(arg == &arg_of_all);
    (*(struct object **)message)->references++;
}

static void drop(void *message, void *arg)
{
    CHECK(arg == &arg_of_all);
    struct object *object = *(struct object **)message;
    object->references--;
    object->dropped++;
}

static void check_object(const struct object *object, int references, int dropped)
{
    CHECK_EQ(object->references, references);
    CHECK_EQ(object->dropped, dropped);
}

static void watch_drops_replaced_values(size_t size)
{
    struct object objects[3] = { { 1, 0 }, { 1, 0 }, { 1, 0 } };
    struct large value = { .object = &objects[0] };
    struct large got = { 0 };
    weft_watch_options options = {
        .size = size, .first = &value, .retain = retain, .drop = drop, .arg = &arg_of_all
    };
    weft_watch_sender *sender;
    weft_watch_receiver *receiver;
    CHECK_EQ(weft_watch_create(&sender, &receiver, &options), 0);
    weft_watch_get(receiver, &got);
    CHECK(got.object == &objects[0]);
    check_object(&objects[0], 2, 0);
    value.object = &objects[1];
    CHECK_EQ(weft_watch_send(sender, &value), 0);
    check_object(&objects[0], 1, 1); /* The receiver's reference is left. */
    CHECK_EQ(weft_watch_recv(receiver, &got, WEFT_NEVER), 0);
    CHECK(got.object == &objects[1]);
    check_object(&objects[1], 2, 0);
    weft_watch_close(sender);
    value.object = &objects[2];
    CHECK_EQ(weft_watch_send(sender, &value), WEFT_ECLOSED);
    check_object(&objects[2], 1, 0);
    weft_watch_sender_drop(sender);
    CHECK_EQ(weft_watch_recv(receiver, NULL, WEFT_NEVER), WEFT_ECLOSED);
    check_object(&objects[1], 2, 0);
    weft_watch_receiver_drop(receiver);
    check_object(&objects[1], 1, 1);
}

static void broadcast_drops_replaced_messages(size_t size)
{
    enum {
        SLOTS = 4, /* as many slots for a capacity of 3 */
        COUNT = 7,
    };
    struct object objects[COUNT];
    struct large message = { 0 };
    struct large got = { 0 };
    uint64_t missed = 0;
    weft_broadcast_options options = {
        .size = size, .capacity = 3, .retain = retain, .drop = drop, .arg = &arg_of_all
    };
    weft_broadcast_sender *sender;
    weft_broadcast_receiver *receiver;
    CHECK_EQ(weft_broadcast_create(&sender, &receiver, &options), 0);
    for (int i = 0; i < COUNT; i++) {
        objects[i] = (struct object){ 1, 0 };
        message.object = &objects[i];
        CHECK_EQ(weft_broadcast_send(sender, &message), 0);
        if (i >= SLOTS) {
            check_object(&objects[i - SLOTS], 0, 1);
        }
    }
    CHECK_EQ(weft_broadcast_recv(receiver, &got, &missed, WEFT_NEVER), 0);
    CHECK(got.object == &objects[COUNT - 3]);
    check_object(got.object, 2, 0);
    weft_broadcast_receiver_drop(receiver);
    check_object(&objects[COUNT - 1], 1, 0);
    weft_broadcast_sender_drop(sender);
    for (int i = 0; i < COUNT; i++) {
        check_object(&objects[i], got.object == &objects[i] ? 1 : 0, 1);
    }
}

/* The multicast channel drops each message once. A receiver's own reference remains. */
static void feed_drops_each_message_once(void)
{
    static const size_t sizes[] = { sizeof(struct object *), sizeof(struct large) };
    for (size_t i = 0; i < 2; i++) {
        watch_drops_replaced_values(sizes[i]);
        broadcast_drops_replaced_messages(sizes[i]);
    }
}

/* Only sending a large message with a drop function needs memory. */
static void send_without_memory_sends_nothing(void)
{
    struct object object = { 1, 0 };
    struct large message = { .object = &object };
    weft_broadcast_options options = {
        .size = sizeof message, .capacity = 1, .drop = drop, .arg = &arg_of_all
    };
    weft_broadcast_sender *sender;
    weft_broadcast_receiver *receiver;
    CHECK_EQ(weft_broadcast_create(&sender, &receiver, &options), 0);
    memory_ends_after(0);
    CHECK_EQ(weft_broadcast_send(sender, &message), -ENOMEM);
    CHECK_EQ(memory_mend(), 1);
    CHECK_EQ(weft_broadcast_sender_info(sender).sent, 0);
    weft_broadcast_sender_drop(sender);
    weft_broadcast_receiver_drop(receiver);
    check_object(&object, 1, 0);
}

TEST_MAIN({
    TEST(feed_lives_until_last_handle_is_dropped),
    TEST(memory_behind_feed_is_zeroed),
    TEST(cloned_receiver_starts_at_position_of_original),
    TEST_DEBUG(make_without_memory_returns_enomem),
    TEST(feed_drops_each_message_once),
    TEST_DEBUG(send_without_memory_sends_nothing),
})
