/* SPDX-License-Identifier: MIT */
/*
 * watch.c - watch channel: a single value whose changes receivers can wait for.
 *
 * The latch in the word guards everything: the value, and the number of values sent before it.
 * A receiver keeps the number of the value that it has seen; a value with another number is new
 * to it. The sender gives a value to all receivers that wait for it in the same critical
 * section, so no waiter is passed over, even if the next value is sent before it runs.
 *
 * Edges: latch.h's [E1]: the receiver of a value sees what was done before it was sent.
 *
 * Checked by tests/model/broadcast_model.c.
 */
#include <weft/watch.h>

#include "base/assert.h"
#include "base/callout.h"
#include "chan/feed.h"
#include "chan/message.h"

struct wf_watch {
    struct wf_feed feed; /* sent: the number of the current value */
    size_t size;         /* constant */
    _Alignas(max_align_t) char value[];
};

struct weft_watch_receiver {
    struct wf_feed_receiver base; /* of a wf_watch */
};

/* An operation that waits for a new value, or for a certain one; data: where it goes. */
struct watching {
    struct wf_op op;
    weft_watch_receiver *receiver;
    weft_watch_wanted_fn is_wanted; /* NULL: any new value */
    void *arg;
};

_Static_assert(sizeof(struct watching) <= sizeof(weft_op), "weft_op is too small");

static struct wf_watch *of_sender(const weft_watch_sender *sender)
{
    return (struct wf_watch *)sender;
}

static struct wf_watch *of_receiver(const weft_watch_receiver *receiver)
{
    return (struct wf_watch *)receiver->base.feed;
}

/* --- Values ---------------------------------------------------------------------------------- */

static bool wants_it(const struct wf_watch *watch, const struct watching *self)
{
    if (self->is_wanted != NULL) {
        WF_CALLOUT_BEGIN();
        bool is_wanted = self->is_wanted(watch->value, self->arg);
        WF_CALLOUT_END();
        return is_wanted;
    }
    return self->receiver->base.seen != watch->feed.sent;
}

static void see(const struct wf_watch *watch, weft_watch_receiver *receiver, void *value)
{
    receiver->base.seen = watch->feed.sent;
    if (value != NULL) {
        wf_feed_give(&watch->feed, value, watch->value, watch->size);
    }
}

/* Numbers a new value, and gives it to the waiters that want it. */
static void announce(struct wf_watch *watch, struct wf_turn *turn)
{
    watch->feed.sent++;
    struct wf_op *next = wf_op_first(&watch->feed.waiters);
    while (next != NULL) {
        struct wf_op *op = next;
        const struct watching *waiter = (const struct watching *)op;
        next = wf_op_after(&watch->feed.waiters, op);
        if (wants_it(watch, waiter) && wf_turn_claim_this(turn, op)) {
            see(watch, waiter->receiver, op->data);
        }
    }
}

int weft_watch_send(weft_watch_sender *sender, const void *value)
{
    struct wf_watch *watch = of_sender(sender);
    struct wf_feed_spare spare;
    struct wf_turn turn;
    if (wf_feed_spare_init(&spare, &watch->feed, watch->size) != 0) {
        return -ENOMEM;
    }
    wf_turn_begin(&turn, watch);
    int result = watch->feed.is_closed ? WEFT_ECLOSED : 0;
    if (result == 0) {
        wf_feed_spare_put(&spare, watch->value, watch->size);
        wf_message_copy(watch->value, value, watch->size);
        announce(watch, &turn);
    }
    wf_turn_end(&turn);
    wf_feed_spare_end(&spare, &watch->feed, watch->size);
    return result;
}

int weft_watch_change(weft_watch_sender *sender, weft_watch_change_fn change, void *arg)
{
    struct wf_watch *watch = of_sender(sender);
    struct wf_turn turn;
    wf_turn_begin(&turn, watch);
    int result = WEFT_ECLOSED;
    if (!watch->feed.is_closed) {
        WF_CALLOUT_BEGIN();
        result = change(watch->value, arg) ? 1 : 0;
        WF_CALLOUT_END();
        if (result == 1) {
            announce(watch, &turn);
        }
    }
    wf_turn_end(&turn);
    return result;
}

void weft_watch_get(weft_watch_receiver *receiver, void *value)
{
    struct wf_watch *watch = of_receiver(receiver);
    (void)wf_latch_lock(&watch->feed.word);
    see(watch, receiver, value);
    wf_latch_unlock(&watch->feed.word, 0);
}

bool weft_watch_has_changed(const weft_watch_receiver *receiver)
{
    struct wf_watch *watch = of_receiver(receiver);
    (void)wf_latch_lock(&watch->feed.word);
    bool has_changed = receiver->base.seen != watch->feed.sent;
    wf_latch_unlock(&watch->feed.word, 0);
    return has_changed;
}

/* --- Waiting --------------------------------------------------------------------------------- */

static int recv_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    const struct wf_watch *watch = op->object;
    const struct watching *self = (const struct watching *)op;
    if (wants_it(watch, self)) {
        see(watch, self->receiver, op->data);
        return 0;
    }
    return watch->feed.is_closed ? WEFT_ECLOSED : WEFT_PENDING;
}

static const struct wf_op_ops recv_ops = { .future = WF_OP_FUTURE,
                                           .take = recv_take,
                                           .queue = offsetof(struct wf_watch, feed.waiters) };

void weft_watch_wait_for_init(weft_op *op, weft_watch_receiver *receiver,
                              weft_watch_wanted_fn is_wanted, void *arg, void *value)
{
    struct watching *self = (struct watching *)wf_op_init(op, &recv_ops, receiver->base.feed);
    self->op.data = value;
    self->receiver = receiver;
    self->is_wanted = is_wanted;
    self->arg = arg;
}

void weft_watch_recv_init(weft_op *op, weft_watch_receiver *receiver, void *value)
{
    weft_watch_wait_for_init(op, receiver, NULL, NULL, value);
}

int weft_watch_recv(weft_watch_receiver *receiver, void *value, weft_time deadline)
{
    weft_op op;
    weft_watch_recv_init(&op, receiver, value);
    return wf_op_await(&op, deadline, "weft_watch_recv");
}

int weft_watch_wait_for(weft_watch_receiver *receiver, weft_watch_wanted_fn is_wanted, void *arg,
                        void *value, weft_time deadline)
{
    weft_op op;
    weft_watch_wait_for_init(&op, receiver, is_wanted, arg, value);
    return wf_op_await(&op, deadline, "weft_watch_wait_for");
}

/* --- Handles --------------------------------------------------------------------------------- */

static void clear(struct wf_feed *feed)
{
    WF_CALLOUT_BEGIN();
    feed->drop(((struct wf_watch *)feed)->value, feed->arg);
    WF_CALLOUT_END();
}

int weft_watch_make(weft_watch_sender **sender, weft_watch_receiver **receiver, size_t size,
                    const void *first)
{
    weft_watch_options options = { .size = size, .first = first };
    return weft_watch_create(sender, receiver, &options);
}

int weft_watch_create(weft_watch_sender **sender, weft_watch_receiver **receiver,
                      const weft_watch_options *options)
{
    size_t size = options->size;
    if (size > PTRDIFF_MAX / 2) {
        return -EINVAL;
    }
    struct wf_feed *feed;
    struct wf_feed_receiver *from;
    int result = wf_feed_make(&feed, &from, sizeof(struct wf_watch) + size);
    if (result == 0) {
        struct wf_watch *watch = (struct wf_watch *)feed;
        watch->size = size;
        wf_message_copy(watch->value, options->first, size);
        feed->drop = options->drop;
        feed->retain = options->retain;
        feed->arg = options->arg;
        feed->clear = clear;
        *sender = (weft_watch_sender *)feed;
        *receiver = (weft_watch_receiver *)from;
    }
    return result;
}

weft_watch_sender *weft_watch_sender_clone(weft_watch_sender *sender)
{
    wf_feed_add_sender((struct wf_feed *)sender);
    return sender;
}

static int give(weft_watch_receiver **receiver, struct wf_feed_receiver *from)
{
    if (from == NULL) {
        return -ENOMEM;
    }
    *receiver = (weft_watch_receiver *)from;
    return 0;
}

int weft_watch_subscribe(weft_watch_sender *sender, weft_watch_receiver **receiver)
{
    return give(receiver, wf_feed_add_receiver((struct wf_feed *)sender, NULL));
}

int weft_watch_receiver_clone(const weft_watch_receiver *receiver, weft_watch_receiver **copy)
{
    return give(copy, wf_feed_add_receiver(receiver->base.feed, &receiver->base));
}

void weft_watch_sender_drop(weft_watch_sender *sender)
{
    wf_feed_drop_sender((struct wf_feed *)sender, "weft_watch_sender_drop");
}

void weft_watch_receiver_drop(weft_watch_receiver *receiver)
{
    wf_feed_drop_receiver((struct wf_feed_receiver *)receiver, "weft_watch_receiver_drop");
}

void weft_watch_close(weft_watch_sender *sender)
{
    wf_feed_close((struct wf_feed *)sender);
}

static weft_watch_info info_of(struct wf_feed *feed)
{
    (void)wf_latch_lock(&feed->word);
    weft_watch_info info = { .senders = feed->senders,
                             .receivers = feed->receivers,
                             .sent = feed->sent,
                             .is_closed = feed->is_closed };
    wf_latch_unlock(&feed->word, 0);
    return info;
}

weft_watch_info weft_watch_sender_info(const weft_watch_sender *sender)
{
    return info_of((struct wf_feed *)sender);
}

weft_watch_info weft_watch_receiver_info(const weft_watch_receiver *receiver)
{
    return info_of(receiver->base.feed);
}
