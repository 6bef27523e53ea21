/* SPDX-License-Identifier: MIT */
#include "chan/feed.h"

#include <errno.h>

#include "memory.h"
#include "test.h"

enum {
    BYTES = sizeof(struct wf_feed) + 40,
};

static void it_lives_as_long_as_a_handle(void)
{
    struct wf_feed *feed;
    struct wf_feed_receiver *first;
    CHECK_EQ(wf_feed_make(&feed, &first, BYTES), 0);
    CHECK(first->feed == feed);
    CHECK_EQ(feed->senders, 1);
    CHECK_EQ(feed->receivers, 1);
    wf_feed_add_sender(feed);
    CHECK_EQ(feed->senders, 2);
    wf_feed_drop_sender(feed);
    CHECK(!feed->is_closed);
    wf_feed_drop_sender(feed);
    CHECK(feed->is_closed);
    CHECK_EQ(feed->senders, 0);
    wf_feed_drop_receiver(first); /* A sanitizer would tell that it was freed, and once. */

    CHECK_EQ(wf_feed_make(&feed, &first, BYTES), 0);
    wf_feed_drop_receiver(first);
    CHECK(!feed->is_closed);
    CHECK_EQ(feed->receivers, 0);
    wf_feed_drop_sender(feed);
    wf_feed_drop_sender(NULL);
    wf_feed_drop_receiver(NULL);
}

static void what_is_behind_it_is_zero(void)
{
    struct wf_feed *feed;
    struct wf_feed_receiver *receiver;
    CHECK_EQ(wf_feed_make(&feed, &receiver, BYTES), 0);
    const char *rest = (const char *)(feed + 1);
    for (unsigned i = 0; i < BYTES - sizeof *feed; i++) {
        CHECK_EQ(rest[i], 0);
    }
    wf_feed_drop_sender(feed);
    wf_feed_drop_receiver(receiver);
}

static void a_receiver_begins_where_the_other_one_is(void)
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
    wf_feed_drop_receiver(copy);
    wf_feed_drop_receiver(late);
    wf_feed_drop_receiver(first);
    wf_feed_drop_sender(feed);
}

static void make_one(void *arg)
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
    wf_feed_drop_receiver(second);
    wf_feed_drop_receiver(first);
    wf_feed_drop_sender(feed);
}

static void without_memory_there_is_no_handle(void)
{
    unsigned made = 0;
    CHECK_EQ(memory_sweep(make_one, &made), 3);
    CHECK_EQ(made, 1);
}

TEST_MAIN({
    TEST(it_lives_as_long_as_a_handle),
    TEST(what_is_behind_it_is_zero),
    TEST(a_receiver_begins_where_the_other_one_is),
    TEST(without_memory_there_is_no_handle),
})
