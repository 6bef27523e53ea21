/* SPDX-License-Identifier: MIT */
/*
 * feed.h - what a watch and a broadcast are both: something that many send to, and that every
 * receiver follows by itself.
 *
 * A feed is one piece of memory, with what the kind of feed adds behind it. It counts its
 * handles: without a sender it is closed, without any handle it is freed. A sender's handle is
 * the feed itself, a receiver's knows how far it has come.
 *
 * A feed may have functions that count references to what its messages point to. The feed has one
 * reference to each message that it keeps. A receiver gets its own with its copy (retain, under
 * the latch, before another sender can replace the message). The feed gives its reference up (drop,
 * without the latch) when the message is replaced, and when the feed is freed.
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
    WF_FEED_SPARE_BYTES = 128, /* a larger message that is replaced is copied to the heap */
};

struct wf_feed {
    /* The latch alone; what follows is under it. Aligned as what may follow the feed. */
    _Alignas(max_align_t) _Atomic(uint32_t) word;
    bool is_closed;
    size_t senders;
    size_t receivers;
    struct wf_waitq waiters;                 /* receivers that have seen all */
    struct wf_feed_receiver *free_receivers; /* dropped; kept, so that a second drop is detected */
    uint64_t sent;
    size_t bytes;                             /* of the whole piece; constant, as what follows */
    void (*drop)(void *message, void *arg);   /* ends the feed's copy of a message; may be NULL */
    void (*retain)(void *message, void *arg); /* a receiver has a copy, under the latch; or NULL */
    void *arg;                                /* of both */
    void (*clear)(struct wf_feed *feed);      /* the kind's: drops the messages that are left */
};

struct wf_feed_receiver {
    struct wf_feed *feed; /* NULL: it was dropped */
    uint64_t seen;        /* under the feed's latch: what was sent before this number */
    struct wf_feed_receiver *next_free; /* under the latch */
};

/* A message that was replaced, until the latch is given up and it can be dropped. */
struct wf_feed_spare {
    void *message; /* NULL: the feed has no drop function */
    bool is_used;
    _Alignas(max_align_t) char here[WF_FEED_SPARE_BYTES];
};

/* Prepares for a message of this size: 0, or -ENOMEM. */
int wf_feed_spare_init(struct wf_feed_spare *spare, const struct wf_feed *feed, size_t size);

/* Without the latch: drops the message, if there is one. */
void wf_feed_spare_end(struct wf_feed_spare *spare, const struct wf_feed *feed, size_t size);

/* Under the latch: a message is replaced. */
static inline void wf_feed_spare_put(struct wf_feed_spare *spare, const void *message, size_t size)
{
    if (spare->message != NULL) {
        wf_message_copy(spare->message, message, size);
        spare->is_used = true;
    }
}

/* Under the latch: copies a message for a receiver. */
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

/* Makes a feed of so many bytes, zero behind the feed, and its first two handles. 0 or -ENOMEM. */
int wf_feed_make(struct wf_feed **feed, struct wf_feed_receiver **receiver, size_t bytes);

/* One more sender; it has the same handle. */
void wf_feed_add_sender(struct wf_feed *feed);

/* One more receiver, which has seen as much as the other one, or, if that is NULL, all that was
 * sent. NULL: there is no memory. */
struct wf_feed_receiver *wf_feed_add_receiver(struct wf_feed *feed,
                                              const struct wf_feed_receiver *other);

/* A handle is no longer used. NULL is none. Aborts, for the call of that name, if it was dropped
 * before and the feed exists; senders have one handle in common, so for them after the last. */
void wf_feed_drop_sender(struct wf_feed *feed, const char *call);
void wf_feed_drop_receiver(struct wf_feed_receiver *receiver, const char *call);

/* Nothing more is sent; those who wait have WEFT_ECLOSED. */
void wf_feed_close(struct wf_feed *feed);

#endif
