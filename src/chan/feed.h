/* SPDX-License-Identifier: MIT */
/*
 * feed.h - what a watch and a broadcast are both: something that many send to, and that every
 * receiver follows by itself.
 *
 * A feed is one piece of memory, with what the kind of feed adds behind it. It counts its
 * handles: without a sender it is closed, without any handle it is freed. A sender's handle is
 * the feed itself, a receiver's knows how far it has come.
 */
#ifndef WF_CHAN_FEED_H
#define WF_CHAN_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/op.h"

struct wf_feed {
    /* The latch alone; what follows is under it. Aligned as what may follow the feed. */
    _Alignas(max_align_t) _Atomic(uint32_t) word;
    bool is_closed;
    size_t senders;
    size_t receivers;
    struct wf_waitq waiters; /* receivers that have seen all */
    uint64_t sent;
    size_t bytes; /* of the whole piece; constant */
};

struct wf_feed_receiver {
    struct wf_feed *feed;
    uint64_t seen; /* under the feed's latch: what was sent before this number */
};

/* Makes a feed of so many bytes, zero behind the feed, and its first two handles. 0 or -ENOMEM. */
int wf_feed_make(struct wf_feed **feed, struct wf_feed_receiver **receiver, size_t bytes);

/* One more sender; it has the same handle. */
void wf_feed_add_sender(struct wf_feed *feed);

/* One more receiver, which has seen as much as the other one, or, if that is NULL, all that was
 * sent. NULL: there is no memory. */
struct wf_feed_receiver *wf_feed_add_receiver(struct wf_feed *feed,
                                              const struct wf_feed_receiver *other);

/* A handle is no longer used. NULL is none. */
void wf_feed_drop_sender(struct wf_feed *feed);
void wf_feed_drop_receiver(struct wf_feed_receiver *receiver);

/* Nothing more is sent; those who wait have WEFT_ECLOSED. */
void wf_feed_close(struct wf_feed *feed);

#endif
