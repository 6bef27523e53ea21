/* SPDX-License-Identifier: MIT */
/*
 * feed.h - multicast channel: the common part of watch and broadcast channels.
 *
 * Many senders send to a multicast channel, and each receiver follows it at its own pace. The
 * channel is one allocation; the data of the specific kind follows the common part. It counts
 * its handles: the channel is closed when the last sender is dropped, and freed when the last
 * handle is dropped. A sender's handle is the channel itself. A receiver's handle records how
 * far it has come.
 *
 * A channel may have functions that count references to what its messages point to. The channel
 * has one reference to each message that it keeps. A receiver gets its own with its copy
 * (retain, under the latch, before another sender can replace the message). The channel gives
 * up its reference (drop, without the latch) when the message is replaced, and when the channel
 * is freed.
 */
#ifndef WF_CHAN_FEED_H
#define WF_CHAN_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/callout.h"
#include "chan/message.h"
#include "sched/op.h"

enum {
    WF_FEED_SPARE_BYTES = 128, /* a larger replaced message is copied to the heap */
};

struct wf_feed {
    /* The latch alone; it guards the fields below. Aligned for the data that may follow. */
    _Alignas(max_align_t) _Atomic(uint32_t) word;
    bool is_closed;
    size_t senders;
    size_t receivers;
    struct wf_waitq waiters;                 /* receivers that have seen all messages */
    struct wf_feed_receiver *free_receivers; /* dropped; kept to detect a second drop */
    uint64_t sent;
    size_t bytes;                             /* of the allocation; constant, like those below */
    void (*drop)(void *message, void *arg);   /* drops the channel's copy of a message; or NULL */
    void (*retain)(void *message, void *arg); /* for a receiver's copy, under the latch; or NULL */
    void *arg;                                /* for both functions */
    void (*clear)(struct wf_feed *feed);      /* drops the remaining messages; set by the kind */
};

struct wf_feed_receiver {
    struct wf_feed *feed; /* NULL: the receiver was dropped */
    uint64_t seen;        /* under the latch: messages before this number have been seen */
    struct wf_feed_receiver *next_free; /* under the latch */
};

/* A replaced message, kept until the latch is released and it can be dropped. */
struct wf_feed_spare {
    void *message; /* NULL: the channel has no drop function */
    bool is_used;
    _Alignas(max_align_t) char here[WF_FEED_SPARE_BYTES];
};

/* Prepares storage for a message of this size. Returns 0 or -ENOMEM. */
int wf_feed_spare_init(struct wf_feed_spare *spare, const struct wf_feed *feed, size_t size);

/* Without the latch. Drops the replaced message, if any, and frees the storage. */
void wf_feed_spare_end(struct wf_feed_spare *spare, const struct wf_feed *feed, size_t size);

/* Under the latch. Saves a message that is about to be replaced. */
static inline void wf_feed_spare_put(struct wf_feed_spare *spare, const void *message, size_t size)
{
    if (spare->message != NULL) {
        wf_message_copy(spare->message, message, size);
        spare->is_used = true;
    }
}

/* Under the latch. Copies a message for a receiver. */
static inline void wf_feed_give(const struct wf_feed *feed, void *to, const void *message,
                                size_t size)
{
    wf_message_copy(to, message, size);
    if (wf_unlikely(feed->retain != NULL)) {
        WF_CALLOUT_BEGIN();
        feed->retain(to, feed->arg);
        WF_CALLOUT_END();
    }
}

/* Creates a channel of the given size, zeroed after the common part, with its first two
 * handles. Returns 0 or -ENOMEM. */
int wf_feed_make(struct wf_feed **feed, struct wf_feed_receiver **receiver, size_t bytes);

/* Adds a sender, which has the same handle. */
void wf_feed_add_sender(struct wf_feed *feed);

/* Adds a receiver that has seen as much as other or, if other is NULL, everything sent so far.
 * Returns NULL when out of memory. */
struct wf_feed_receiver *wf_feed_add_receiver(struct wf_feed *feed,
                                              const struct wf_feed_receiver *other);

/* Drops a handle, which may be NULL. Aborts, naming call, if the handle was dropped before and
 * the channel still exists. Senders share one handle, so a second drop is detected only after
 * the last sender was dropped. */
void wf_feed_drop_sender(struct wf_feed *feed, const char *call);
void wf_feed_drop_receiver(struct wf_feed_receiver *receiver, const char *call);

/* Closes the channel: nothing more can be sent. Waiters get WEFT_ECLOSED. */
void wf_feed_close(struct wf_feed *feed);

#endif
