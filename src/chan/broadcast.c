/* SPDX-License-Identifier: MIT */
/*
 * broadcast.c - broadcast channel: every receiver gets every message.
 *
 * The latch in the word guards everything: a ring of the latest messages, and the total number
 * of messages sent. A receiver keeps the number of the message that it wants next. If that
 * message has been overwritten, the receiver continues with the oldest one in the ring and
 * counts those that it has missed. The sender gives a message to all receivers that wait for it
 * in the same critical section: these have received all messages before it.
 *
 * Edges: latch.h's [E1]: the receiver of a message sees what was done before it was sent.
 *
 * Checked by tests/model/broadcast_model.c.
 */
#include <weft/broadcast.h>

#include "base/assert.h"
#include "base/callout.h"
#include "chan/feed.h"
#include "chan/message.h"

struct wf_broadcast {
    struct wf_feed feed;                /* the last message has the number sent - 1 */
    size_t capacity;                    /* constant, like the fields below */
    size_t slots_mask;                  /* at least capacity - 1, all ones */
    size_t size;                        /* of a message */
    _Alignas(max_align_t) char slots[]; /* message i is in slot i & slots_mask */
};

struct weft_broadcast_receiver {
    struct wf_feed_receiver base; /* of a wf_broadcast; seen: the message that it wants next */
};

/* A receive operation; data: where the message goes. */
struct receiving {
    struct wf_op op;
    weft_broadcast_receiver *receiver;
    uint64_t *missed;
};

_Static_assert(sizeof(struct receiving) <= sizeof(weft_op), "weft_op is too small");

static struct wf_broadcast *of_sender(const weft_broadcast_sender *sender)
{
    return (struct wf_broadcast *)sender;
}

static struct wf_broadcast *of_receiver(const weft_broadcast_receiver *receiver)
{
    return (struct wf_broadcast *)receiver->base.feed;
}

/* --- Messages -------------------------------------------------------------------------------- */

static char *slot(struct wf_broadcast *broadcast, uint64_t number)
{
    return broadcast->slots + (number & broadcast->slots_mask) * broadcast->size;
}

/* Copies the next message for this receiver. Adds the number of messages that it has missed to
 * *missed. Returns false if it has received all messages. */
static bool take(weft_broadcast_receiver *receiver, void *message, uint64_t *missed)
{
    struct wf_broadcast *broadcast = of_receiver(receiver);
    if (receiver->base.seen == broadcast->feed.sent) {
        return false;
    }
    uint64_t behind = broadcast->feed.sent - receiver->base.seen;
    if (behind > broadcast->capacity) {
        *missed += behind - broadcast->capacity;
        receiver->base.seen += behind - broadcast->capacity;
    }
    wf_feed_give(&broadcast->feed, message, slot(broadcast, receiver->base.seen), broadcast->size);
    receiver->base.seen++;
    return true;
}

/* Gives the last message to the waiters, which have received all messages before it. If several
 * wait with the same receiver, one of them gets it. */
static void give_to_waiters(struct wf_broadcast *broadcast, struct wf_turn *turn)
{
    struct wf_op *next = wf_op_first(&broadcast->feed.waiters);
    while (next != NULL) {
        struct wf_op *op = next;
        weft_broadcast_receiver *receiver = ((struct receiving *)op)->receiver;
        next = wf_op_after(&broadcast->feed.waiters, op);
        if (receiver->base.seen != broadcast->feed.sent && wf_turn_claim_this(turn, op)) {
            uint64_t missed = 0;
            (void)take(receiver, op->data, &missed);
        }
    }
}

int weft_broadcast_send(weft_broadcast_sender *sender, const void *message)
{
    struct wf_broadcast *broadcast = of_sender(sender);
    struct wf_feed_spare spare;
    struct wf_turn turn;
    int result = WEFT_ECLOSED;
    if (wf_feed_spare_init(&spare, &broadcast->feed, broadcast->size) != 0) {
        return -ENOMEM;
    }
    wf_turn_begin(&turn, broadcast);
    if (!broadcast->feed.is_closed) {
        if (broadcast->feed.sent > broadcast->slots_mask) { /* All slots are in use. */
            wf_feed_spare_put(&spare, slot(broadcast, broadcast->feed.sent), broadcast->size);
        }
        wf_message_copy(slot(broadcast, broadcast->feed.sent), message, broadcast->size);
        broadcast->feed.sent++;
        give_to_waiters(broadcast, &turn);
        result = 0;
    }
    wf_turn_end(&turn);
    wf_feed_spare_end(&spare, &broadcast->feed, broadcast->size);
    return result;
}

/* --- Waiting --------------------------------------------------------------------------------- */

static int recv_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    const struct receiving *self = (const struct receiving *)op;
    const struct wf_broadcast *broadcast = op->object;
    uint64_t missed = 0;
    if (take(self->receiver, op->data, &missed)) {
        if (self->missed != NULL) {
            *self->missed = missed;
        }
        return 0;
    }
    return broadcast->feed.is_closed ? WEFT_ECLOSED : WEFT_PENDING;
}

static void recv_enlist(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    struct wf_broadcast *broadcast = op->object;
    const struct receiving *self = (const struct receiving *)op;
    if (self->missed != NULL) {
        *self->missed = 0;
    }
    wf_op_enlist(op, &broadcast->feed.waiters);
}

static const struct wf_op_ops recv_ops = { .future = WF_OP_FUTURE,
                                           .take = recv_take,
                                           .enlist = recv_enlist };

static inline struct wf_op *prepare_recv(weft_op *op, weft_broadcast_receiver *receiver,
                                         void *message, uint64_t *missed)
{
    struct receiving *self = (struct receiving *)wf_op_init(op, &recv_ops, receiver->base.feed);
    self->op.data = message;
    self->receiver = receiver;
    self->missed = missed;
    return &self->op;
}

void weft_broadcast_recv_init(weft_op *op, weft_broadcast_receiver *receiver, void *message,
                              uint64_t *missed)
{
    (void)prepare_recv(op, receiver, message, missed);
}

int weft_broadcast_try_recv(weft_broadcast_receiver *receiver, void *message, uint64_t *missed)
{
    int64_t count = weft_broadcast_try_recv_many(receiver, message, 1, missed);
    return count < 0 ? (int)count : 0;
}

int64_t weft_broadcast_try_recv_many(weft_broadcast_receiver *receiver, void *messages, size_t most,
                                     uint64_t *missed)
{
    struct wf_broadcast *broadcast = of_receiver(receiver);
    size_t count = 0;
    uint64_t lost = 0;
    if (most == 0) {
        return -EINVAL;
    }
    (void)wf_latch_lock(&broadcast->feed.word);
    while (count < most && take(receiver, (char *)messages + count * broadcast->size, &lost)) {
        count++;
    }
    bool is_closed = broadcast->feed.is_closed;
    wf_latch_unlock(&broadcast->feed.word, 0);
    if (count == 0) {
        return is_closed ? WEFT_ECLOSED : -EAGAIN;
    }
    if (missed != NULL) {
        *missed = lost;
    }
    return (int64_t)count;
}

int weft_broadcast_recv(weft_broadcast_receiver *receiver, void *message, uint64_t *missed,
                        weft_time deadline)
{
    weft_op op;
    struct wf_op *self = prepare_recv(&op, receiver, message, missed);
    return wf_op_await_inline(self, &recv_ops, deadline, "weft_broadcast_recv");
}

int64_t weft_broadcast_recv_many(weft_broadcast_receiver *receiver, void *messages, size_t most,
                                 uint64_t *missed, weft_time deadline)
{
    int result = wf_op_enter(&deadline, "weft_broadcast_recv_many");
    if (wf_unlikely(result != 0)) {
        return result;
    }
    int64_t count = weft_broadcast_try_recv_many(receiver, messages, most, missed);
    if (count != -EAGAIN) {
        return count;
    }
    weft_op op;
    result =
        wf_op_await_entered(prepare_recv(&op, receiver, messages, missed), &recv_ops, deadline);
    return result == 0 ? 1 : result;
}

/* --- Handles --------------------------------------------------------------------------------- */

#define CAPACITY_MAX ((size_t)PTRDIFF_MAX / 4)

/* A power of two, so that a mask finds the slot. */
static size_t slots_for(size_t capacity)
{
    size_t slots = 1;
    while (slots < capacity) {
        slots *= 2;
    }
    return slots;
}

/* Drops the messages in the ring, oldest first. */
static void clear(struct wf_feed *feed)
{
    struct wf_broadcast *broadcast = (struct wf_broadcast *)feed;
    size_t slots = broadcast->slots_mask + 1;
    for (uint64_t i = feed->sent > slots ? feed->sent - slots : 0; i < feed->sent; i++) {
        WF_CALLOUT_BEGIN();
        feed->drop(slot(broadcast, i), feed->arg);
        WF_CALLOUT_END();
    }
}

int weft_broadcast_make(weft_broadcast_sender **sender, weft_broadcast_receiver **receiver,
                        size_t size, size_t capacity)
{
    weft_broadcast_options options = { .size = size, .capacity = capacity };
    return weft_broadcast_create(sender, receiver, &options);
}

int weft_broadcast_create(weft_broadcast_sender **sender, weft_broadcast_receiver **receiver,
                          const weft_broadcast_options *options)
{
    size_t size = options->size;
    size_t capacity = options->capacity;
    if (capacity == 0 || capacity > CAPACITY_MAX || (size > 0 && capacity > CAPACITY_MAX / size)) {
        return -EINVAL;
    }
    size_t slots = slots_for(capacity);
    struct wf_feed *feed;
    struct wf_feed_receiver *from;
    int result = wf_feed_make(&feed, &from, sizeof(struct wf_broadcast) + size * slots);
    if (result == 0) {
        struct wf_broadcast *broadcast = (struct wf_broadcast *)feed;
        broadcast->size = size;
        broadcast->capacity = capacity;
        broadcast->slots_mask = slots - 1;
        feed->drop = options->drop;
        feed->retain = options->retain;
        feed->arg = options->arg;
        feed->clear = clear;
        *sender = (weft_broadcast_sender *)feed;
        *receiver = (weft_broadcast_receiver *)from;
    }
    return result;
}

weft_broadcast_sender *weft_broadcast_sender_clone(weft_broadcast_sender *sender)
{
    wf_feed_add_sender((struct wf_feed *)sender);
    return sender;
}

static int give(weft_broadcast_receiver **receiver, struct wf_feed_receiver *from)
{
    if (from == NULL) {
        return -ENOMEM;
    }
    *receiver = (weft_broadcast_receiver *)from;
    return 0;
}

int weft_broadcast_subscribe(weft_broadcast_sender *sender, weft_broadcast_receiver **receiver)
{
    return give(receiver, wf_feed_add_receiver((struct wf_feed *)sender, NULL));
}

int weft_broadcast_receiver_clone(const weft_broadcast_receiver *receiver,
                                  weft_broadcast_receiver **copy)
{
    return give(copy, wf_feed_add_receiver(receiver->base.feed, &receiver->base));
}

void weft_broadcast_sender_drop(weft_broadcast_sender *sender)
{
    wf_feed_drop_sender((struct wf_feed *)sender, "weft_broadcast_sender_drop");
}

void weft_broadcast_receiver_drop(weft_broadcast_receiver *receiver)
{
    wf_feed_drop_receiver((struct wf_feed_receiver *)receiver, "weft_broadcast_receiver_drop");
}

void weft_broadcast_close(weft_broadcast_sender *sender)
{
    wf_feed_close((struct wf_feed *)sender);
}

/* Returns the state of the channel and, with a receiver, the number of messages that it can
 * receive. */
static weft_broadcast_info info_of(struct wf_broadcast *broadcast,
                                   const weft_broadcast_receiver *receiver)
{
    struct wf_feed *feed = &broadcast->feed;
    (void)wf_latch_lock(&feed->word);
    weft_broadcast_info info = { .senders = feed->senders,
                                 .receivers = feed->receivers,
                                 .capacity = broadcast->capacity,
                                 .sent = feed->sent,
                                 .is_closed = feed->is_closed };
    if (receiver != NULL) {
        uint64_t behind = feed->sent - receiver->base.seen;
        info.length = behind < info.capacity ? (size_t)behind : info.capacity;
    }
    wf_latch_unlock(&feed->word, 0);
    return info;
}

weft_broadcast_info weft_broadcast_sender_info(const weft_broadcast_sender *sender)
{
    return info_of(of_sender(sender), NULL);
}

weft_broadcast_info weft_broadcast_receiver_info(const weft_broadcast_receiver *receiver)
{
    return info_of(of_receiver(receiver), receiver);
}
