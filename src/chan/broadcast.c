/* SPDX-License-Identifier: MIT */
/*
 * broadcast.c - messages from many senders, each to every receiver.
 *
 * All of it is under the latch in the word: a ring of the latest messages, and how many were
 * sent in all. A receiver keeps the number of the message that it wants next. If that one has
 * been overwritten, it goes on with the oldest that is there, and counts what it has missed.
 * Who sends gives the message to all who wait for it in the same turn: those have received
 * all before it.
 *
 * Edges: latch.h's [E1]: what was done before a message was sent is seen by who receives it.
 *
 * Checked by tests/model/broadcast_model.c.
 */
#include <weft/broadcast.h>

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "sched/op.h"

struct wf_broadcast {
    _Atomic(uint32_t) word; /* the latch alone; what follows is under it */
    bool is_closed;
    size_t senders;
    size_t receivers;
    struct wf_waitq waiters;
    uint64_t sent;   /* messages; the last one has the number sent - 1 */
    size_t capacity; /* constant, as the size of a message */
    size_t size;
    _Alignas(max_align_t) char slots[]; /* message i in i % capacity */
};

struct weft_broadcast_receiver {
    struct wf_broadcast *broadcast;
    uint64_t next; /* under the latch: the number of the message that it wants */
};

/* The operation of one who receives; data: where the message goes. */
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

/* --- Messages -------------------------------------------------------------------------------- */

static char *slot(struct wf_broadcast *broadcast, uint64_t number)
{
    return broadcast->slots + number % broadcast->capacity * broadcast->size;
}

/* Copies the next message for this receiver, and adds to *missed what it cannot have any more.
 * False: it has received all. */
static bool take(weft_broadcast_receiver *receiver, void *message, uint64_t *missed)
{
    struct wf_broadcast *broadcast = receiver->broadcast;
    if (receiver->next == broadcast->sent) {
        return false;
    }
    uint64_t behind = broadcast->sent - receiver->next;
    if (behind > broadcast->capacity) {
        *missed += behind - broadcast->capacity;
        receiver->next += behind - broadcast->capacity;
    }
    memcpy(message, slot(broadcast, receiver->next), broadcast->size);
    receiver->next++;
    return true;
}

int weft_broadcast_send(weft_broadcast_sender *sender, const void *message)
{
    struct wf_broadcast *broadcast = of_sender(sender);
    struct wf_turn turn;
    int result = WEFT_ECLOSED;
    wf_turn_begin(&turn, broadcast);
    if (!broadcast->is_closed) {
        memcpy(slot(broadcast, broadcast->sent), message, broadcast->size);
        broadcast->sent++;
        struct wf_op *op;
        while ((op = wf_turn_claim(&turn, &broadcast->waiters)) != NULL) {
            uint64_t missed = 0; /* Who waits has received all before. */
            (void)take(((struct receiving *)op)->receiver, op->data, &missed);
        }
        result = 0;
    }
    wf_turn_end(&turn);
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
    return broadcast->is_closed ? WEFT_ECLOSED : WEFT_PENDING;
}

static void recv_enlist(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    struct wf_broadcast *broadcast = op->object;
    const struct receiving *self = (const struct receiving *)op;
    if (self->missed != NULL) {
        *self->missed = 0;
    }
    wf_op_enlist(op, &broadcast->waiters);
}

static const struct wf_op_ops recv_ops = { .future = WF_OP_FUTURE,
                                           .take = recv_take,
                                           .enlist = recv_enlist };

void weft_broadcast_recv_init(weft_op *op, weft_broadcast_receiver *receiver, void *message,
                              uint64_t *missed)
{
    struct receiving *self = (struct receiving *)wf_op_init(op, &recv_ops, receiver->broadcast);
    self->op.data = message;
    self->receiver = receiver;
    self->missed = missed;
}

int weft_broadcast_try_recv(weft_broadcast_receiver *receiver, void *message, uint64_t *missed)
{
    int64_t count = weft_broadcast_try_recv_many(receiver, message, 1, missed);
    return count < 0 ? (int)count : 0;
}

int64_t weft_broadcast_try_recv_many(weft_broadcast_receiver *receiver, void *messages, size_t most,
                                     uint64_t *missed)
{
    struct wf_broadcast *broadcast = receiver->broadcast;
    size_t count = 0;
    uint64_t lost = 0;
    if (most == 0) {
        return -EINVAL;
    }
    (void)wf_latch_lock(&broadcast->word);
    while (count < most && take(receiver, (char *)messages + count * broadcast->size, &lost)) {
        count++;
    }
    bool is_closed = broadcast->is_closed;
    wf_latch_unlock(&broadcast->word, 0);
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
    int result = wf_op_may_take() ? weft_broadcast_try_recv(receiver, message, missed) : -EAGAIN;
    if (result != -EAGAIN) {
        return result;
    }
    weft_op op;
    weft_broadcast_recv_init(&op, receiver, message, missed);
    return wf_op_await(&op, deadline, "weft_broadcast_recv");
}

int64_t weft_broadcast_recv_many(weft_broadcast_receiver *receiver, void *messages, size_t most,
                                 uint64_t *missed, weft_time deadline)
{
    bool may_take = most == 0 || wf_op_may_take();
    int64_t count =
        may_take ? weft_broadcast_try_recv_many(receiver, messages, most, missed) : -EAGAIN;
    if (count != -EAGAIN) {
        return count;
    }
    int result = weft_broadcast_recv(receiver, messages, missed, deadline);
    return result == 0 ? 1 : result;
}

/* --- Handles --------------------------------------------------------------------------------- */

static size_t bytes_of(size_t size, size_t capacity)
{
    return sizeof(struct wf_broadcast) + size * capacity;
}

static weft_broadcast_receiver *new_receiver(void)
{
    return wf_alloc_zeroed(&wf_alloc_default, sizeof(weft_broadcast_receiver),
                           _Alignof(weft_broadcast_receiver));
}

static void free_receiver(weft_broadcast_receiver *receiver)
{
    wf_free(&wf_alloc_default, receiver, sizeof *receiver, _Alignof(weft_broadcast_receiver));
}

int weft_broadcast_make(weft_broadcast_sender **sender, weft_broadcast_receiver **receiver,
                        size_t size, size_t capacity)
{
    if (capacity == 0 || (size > 0 && capacity > PTRDIFF_MAX / 2 / size)) {
        return -EINVAL;
    }
    size_t bytes = bytes_of(size, capacity);
    struct wf_broadcast *broadcast =
        wf_alloc_zeroed(&wf_alloc_default, bytes, _Alignof(struct wf_broadcast));
    weft_broadcast_receiver *from = new_receiver();
    if (broadcast == NULL || from == NULL) {
        wf_free(&wf_alloc_default, broadcast, bytes, _Alignof(struct wf_broadcast));
        free_receiver(from);
        return -ENOMEM;
    }
    broadcast->senders = 1;
    broadcast->receivers = 1;
    broadcast->size = size;
    broadcast->capacity = capacity;
    from->broadcast = broadcast;
    *sender = (weft_broadcast_sender *)broadcast;
    *receiver = from;
    return 0;
}

weft_broadcast_sender *weft_broadcast_sender_clone(weft_broadcast_sender *sender)
{
    struct wf_broadcast *broadcast = of_sender(sender);
    (void)wf_latch_lock(&broadcast->word);
    broadcast->senders++;
    wf_latch_unlock(&broadcast->word, 0);
    return sender;
}

/* Wants what the other one wants next; or, without one, what comes from now on. */
static int add_receiver(struct wf_broadcast *broadcast, const weft_broadcast_receiver *other,
                        weft_broadcast_receiver **receiver)
{
    weft_broadcast_receiver *from = new_receiver();
    if (from == NULL) {
        return -ENOMEM;
    }
    (void)wf_latch_lock(&broadcast->word);
    broadcast->receivers++;
    *from = (weft_broadcast_receiver){ broadcast, other != NULL ? other->next : broadcast->sent };
    wf_latch_unlock(&broadcast->word, 0);
    *receiver = from;
    return 0;
}

int weft_broadcast_subscribe(weft_broadcast_sender *sender, weft_broadcast_receiver **receiver)
{
    return add_receiver(of_sender(sender), NULL, receiver);
}

int weft_broadcast_receiver_clone(const weft_broadcast_receiver *receiver,
                                  weft_broadcast_receiver **copy)
{
    return add_receiver(receiver->broadcast, receiver, copy);
}

static void close_it(struct wf_broadcast *broadcast, struct wf_turn *turn)
{
    broadcast->is_closed = true;
    wf_turn_claim_all(turn, &broadcast->waiters, WEFT_ECLOSED);
}

static void drop(struct wf_broadcast *broadcast, size_t *count)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, broadcast);
    (*count)--;
    if (broadcast->senders == 0) {
        close_it(broadcast, &turn);
    }
    bool is_last = broadcast->senders + broadcast->receivers == 0;
    wf_turn_end(&turn);
    if (is_last) {
        wf_free(&wf_alloc_default, broadcast, bytes_of(broadcast->size, broadcast->capacity),
                _Alignof(struct wf_broadcast));
    }
}

void weft_broadcast_sender_drop(weft_broadcast_sender *sender)
{
    if (sender != NULL) {
        drop(of_sender(sender), &of_sender(sender)->senders);
    }
}

void weft_broadcast_receiver_drop(weft_broadcast_receiver *receiver)
{
    if (receiver != NULL) {
        drop(receiver->broadcast, &receiver->broadcast->receivers);
        free_receiver(receiver);
    }
}

void weft_broadcast_close(weft_broadcast_sender *sender)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, sender);
    close_it(of_sender(sender), &turn);
    wf_turn_end(&turn);
}

static weft_broadcast_info info_of(struct wf_broadcast *broadcast)
{
    (void)wf_latch_lock(&broadcast->word);
    weft_broadcast_info info = { .senders = broadcast->senders,
                                 .receivers = broadcast->receivers,
                                 .capacity = broadcast->capacity,
                                 .sent = broadcast->sent,
                                 .is_closed = broadcast->is_closed };
    wf_latch_unlock(&broadcast->word, 0);
    return info;
}

weft_broadcast_info weft_broadcast_sender_info(const weft_broadcast_sender *sender)
{
    return info_of(of_sender(sender));
}

weft_broadcast_info weft_broadcast_receiver_info(const weft_broadcast_receiver *receiver)
{
    weft_broadcast_info info = info_of(receiver->broadcast);
    uint64_t behind = info.sent - receiver->next;
    info.length = behind < info.capacity ? (size_t)behind : info.capacity;
    return info;
}
