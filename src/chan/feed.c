/* SPDX-License-Identifier: MIT */
/*
 * feed.c - multicast channel: handles and lifetime.
 *
 * The latch guards the counts. A thread that drops a handle releases the latch before the
 * channel is freed, and only the thread that found no other handle frees it: no other thread
 * can arrive.
 *
 * Checked by tests/model/broadcast_model.c.
 */
#include "base/callout.h"
#include "chan/feed.h"

#include <errno.h>

#include "base/alloc.h"

static struct wf_feed_receiver *new_receiver(void)
{
    return wf_alloc_zeroed(&wf_alloc_default, sizeof(struct wf_feed_receiver),
                           _Alignof(struct wf_feed_receiver));
}

static void free_receiver(struct wf_feed_receiver *receiver)
{
    wf_free(&wf_alloc_default, receiver, sizeof *receiver, _Alignof(struct wf_feed_receiver));
}

int wf_feed_make(struct wf_feed **feed, struct wf_feed_receiver **receiver, size_t bytes)
{
    struct wf_feed *made = wf_alloc_zeroed(&wf_alloc_default, bytes, _Alignof(max_align_t));
    struct wf_feed_receiver *from = new_receiver();
    if (made == NULL || from == NULL) {
        wf_free(&wf_alloc_default, made, bytes, _Alignof(max_align_t));
        free_receiver(from);
        return -ENOMEM;
    }
    made->senders = 1;
    made->receivers = 1;
    made->bytes = bytes;
    from->feed = made;
    *feed = made;
    *receiver = from;
    return 0;
}

int wf_feed_spare_init(struct wf_feed_spare *spare, const struct wf_feed *feed, size_t size)
{
    spare->message = NULL;
    spare->is_used = false;
    if (wf_likely(feed->drop == NULL)) {
        return 0;
    }
    spare->message = size <= sizeof spare->here
                         ? spare->here
                         : wf_alloc(&wf_alloc_default, size, _Alignof(max_align_t));
    return spare->message != NULL ? 0 : -ENOMEM;
}

void wf_feed_spare_end(struct wf_feed_spare *spare, const struct wf_feed *feed, size_t size)
{
    if (spare->is_used) {
        WF_CALLOUT_BEGIN();
        feed->drop(spare->message, feed->arg);
        WF_CALLOUT_END();
    }
    if (spare->message != spare->here) {
        wf_free(&wf_alloc_default, spare->message, size, _Alignof(max_align_t));
    }
}

void wf_feed_add_sender(struct wf_feed *feed)
{
    (void)wf_latch_lock(&feed->word);
    feed->senders++;
    wf_latch_unlock(&feed->word, 0);
}

struct wf_feed_receiver *wf_feed_add_receiver(struct wf_feed *feed,
                                              const struct wf_feed_receiver *other)
{
    (void)wf_latch_lock(&feed->word);
    struct wf_feed_receiver *receiver = feed->free_receivers;
    if (receiver != NULL) {
        feed->free_receivers = receiver->next_free;
    } else {
        wf_latch_unlock(&feed->word, 0); /* The caller's handle keeps the channel alive. */
        receiver = new_receiver();
        if (receiver == NULL) {
            return NULL;
        }
        (void)wf_latch_lock(&feed->word);
    }
    feed->receivers++;
    receiver->feed = feed;
    receiver->seen = other != NULL ? other->seen : feed->sent;
    wf_latch_unlock(&feed->word, 0);
    return receiver;
}

/* With the latch held. */
static void close_it(struct wf_feed *feed, struct wf_turn *turn)
{
    feed->is_closed = true;
    wf_turn_claim_all(turn, &feed->waiters, WEFT_ECLOSED);
}

void wf_feed_close(struct wf_feed *feed)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, feed);
    close_it(feed, &turn);
    wf_turn_end(&turn);
}

static void free_feed(struct wf_feed *feed)
{
    if (feed->drop != NULL) {
        feed->clear(feed);
    }
    struct wf_feed_receiver *next = feed->free_receivers; /* all receivers */
    while (next != NULL) {
        struct wf_feed_receiver *receiver = next;
        next = receiver->next_free;
        free_receiver(receiver);
    }
    wf_free(&wf_alloc_default, feed, feed->bytes, _Alignof(max_align_t));
}

/* Drops a receiver or, if receiver is NULL, a sender. */
static void drop(struct wf_feed *feed, struct wf_feed_receiver *receiver, const char *call)
{
    size_t *count = receiver != NULL ? &feed->receivers : &feed->senders;
    struct wf_turn turn;
    wf_turn_begin(&turn, feed);
    if (wf_unlikely(*count == 0)) {
        wf_fatal("%s: all senders were dropped before; each one is dropped once", call);
    }
    (*count)--;
    if (receiver != NULL) {
        receiver->feed = NULL;
        receiver->next_free = feed->free_receivers;
        feed->free_receivers = receiver;
    }
    if (feed->senders == 0) {
        close_it(feed, &turn);
    }
    bool is_last = feed->senders + feed->receivers == 0;
    wf_turn_end(&turn);
    if (is_last) {
        free_feed(feed);
    }
}

void wf_feed_drop_sender(struct wf_feed *feed, const char *call)
{
    if (feed != NULL) {
        drop(feed, NULL, call);
    }
}

void wf_feed_drop_receiver(struct wf_feed_receiver *receiver, const char *call)
{
    if (receiver == NULL) {
        return;
    }
    if (wf_unlikely(receiver->feed == NULL)) {
        wf_fatal("%s: this receiver was dropped before", call);
    }
    drop(receiver->feed, receiver, call);
}
