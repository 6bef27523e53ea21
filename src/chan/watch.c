/* SPDX-License-Identifier: MIT */
/*
 * watch.c - one value that changes.
 *
 * All of it is under the latch in the word: the value, and how many were sent before it. A
 * receiver keeps the number of the value that it has seen; what has another number is new to
 * it. Who sends gives the value to all who wait for it in the same turn, so nobody who waits
 * is passed over, even if the next value comes before it runs.
 *
 * Edges: latch.h's [E1]: what was done before a value was sent is seen by who receives it.
 *
 * Checked by tests/model/broadcast_model.c.
 */
#include <weft/watch.h>

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "sched/op.h"

struct wf_watch {
    _Atomic(uint32_t) word; /* the latch alone; what follows is under it */
    bool is_closed;
    size_t senders;
    size_t receivers;
    struct wf_waitq waiters;
    uint64_t number; /* of the value: so many were sent */
    size_t size;     /* constant */
    _Alignas(max_align_t) char value[];
};

struct weft_watch_receiver {
    struct wf_watch *watch;
    uint64_t seen; /* under the latch */
};

/* The operation of one who receives, or waits for a certain value; data: where it goes. */
struct watching {
    struct wf_op op;
    weft_watch_receiver *receiver;
    weft_watch_wanted_fn is_wanted; /* NULL: what is new */
    void *arg;
};

_Static_assert(sizeof(struct watching) <= sizeof(weft_op), "weft_op is too small");

static struct wf_watch *of_sender(const weft_watch_sender *sender)
{
    return (struct wf_watch *)sender;
}

/* --- Values ---------------------------------------------------------------------------------- */

static bool wants_it(const struct wf_watch *watch, const struct watching *self)
{
    if (self->is_wanted != NULL) {
        return self->is_wanted(watch->value, self->arg);
    }
    return self->receiver->seen != watch->number;
}

static void see(const struct wf_watch *watch, weft_watch_receiver *receiver, void *value)
{
    receiver->seen = watch->number;
    if (value != NULL) {
        memcpy(value, watch->value, watch->size);
    }
}

/* There is a new value: to those who wait for it. */
static void announce(struct wf_watch *watch, struct wf_turn *turn)
{
    watch->number++;
    struct wf_op *next = wf_op_first(&watch->waiters);
    while (next != NULL) {
        struct wf_op *op = next;
        const struct watching *waiter = (const struct watching *)op;
        next = wf_op_after(&watch->waiters, op);
        if (wants_it(watch, waiter) && wf_turn_claim_this(turn, op)) {
            see(watch, waiter->receiver, op->data);
        }
    }
}

int weft_watch_send(weft_watch_sender *sender, const void *value)
{
    struct wf_watch *watch = of_sender(sender);
    struct wf_turn turn;
    wf_turn_begin(&turn, watch);
    int result = watch->is_closed ? WEFT_ECLOSED : 0;
    if (result == 0) {
        memcpy(watch->value, value, watch->size);
        announce(watch, &turn);
    }
    wf_turn_end(&turn);
    return result;
}

int weft_watch_change(weft_watch_sender *sender, weft_watch_change_fn change, void *arg)
{
    struct wf_watch *watch = of_sender(sender);
    struct wf_turn turn;
    wf_turn_begin(&turn, watch);
    int result = WEFT_ECLOSED;
    if (!watch->is_closed) {
        result = change(watch->value, arg) ? 1 : 0;
        if (result == 1) {
            announce(watch, &turn);
        }
    }
    wf_turn_end(&turn);
    return result;
}

void weft_watch_get(weft_watch_receiver *receiver, void *value)
{
    struct wf_watch *watch = receiver->watch;
    (void)wf_latch_lock(&watch->word);
    see(watch, receiver, value);
    wf_latch_unlock(&watch->word, 0);
}

bool weft_watch_has_changed(const weft_watch_receiver *receiver)
{
    struct wf_watch *watch = receiver->watch;
    (void)wf_latch_lock(&watch->word);
    bool has_changed = receiver->seen != watch->number;
    wf_latch_unlock(&watch->word, 0);
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
    return watch->is_closed ? WEFT_ECLOSED : WEFT_PENDING;
}

static const struct wf_op_ops recv_ops = { .future = WF_OP_FUTURE,
                                           .take = recv_take,
                                           .queue = offsetof(struct wf_watch, waiters) };

void weft_watch_wait_for_init(weft_op *op, weft_watch_receiver *receiver,
                              weft_watch_wanted_fn is_wanted, void *arg, void *value)
{
    struct watching *self = (struct watching *)wf_op_init(op, &recv_ops, receiver->watch);
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

static size_t bytes_of(size_t size)
{
    return sizeof(struct wf_watch) + size;
}

static weft_watch_receiver *new_receiver(void)
{
    return wf_alloc_zeroed(&wf_alloc_default, sizeof(weft_watch_receiver),
                           _Alignof(weft_watch_receiver));
}

static void free_receiver(weft_watch_receiver *receiver)
{
    wf_free(&wf_alloc_default, receiver, sizeof *receiver, _Alignof(weft_watch_receiver));
}

int weft_watch_make(weft_watch_sender **sender, weft_watch_receiver **receiver, size_t size,
                    const void *first)
{
    if (size > PTRDIFF_MAX / 2) {
        return -EINVAL;
    }
    struct wf_watch *watch =
        wf_alloc_zeroed(&wf_alloc_default, bytes_of(size), _Alignof(struct wf_watch));
    weft_watch_receiver *from = new_receiver();
    if (watch == NULL || from == NULL) {
        wf_free(&wf_alloc_default, watch, bytes_of(size), _Alignof(struct wf_watch));
        free_receiver(from);
        return -ENOMEM;
    }
    watch->senders = 1;
    watch->receivers = 1;
    watch->size = size;
    memcpy(watch->value, first, size);
    from->watch = watch;
    *sender = (weft_watch_sender *)watch;
    *receiver = from;
    return 0;
}

weft_watch_sender *weft_watch_sender_clone(weft_watch_sender *sender)
{
    struct wf_watch *watch = of_sender(sender);
    (void)wf_latch_lock(&watch->word);
    watch->senders++;
    wf_latch_unlock(&watch->word, 0);
    return sender;
}

/* Has seen what the other one has; or, without one, the latest value. */
static int add_receiver(struct wf_watch *watch, const weft_watch_receiver *other,
                        weft_watch_receiver **receiver)
{
    weft_watch_receiver *from = new_receiver();
    if (from == NULL) {
        return -ENOMEM;
    }
    (void)wf_latch_lock(&watch->word);
    watch->receivers++;
    *from = (weft_watch_receiver){ watch, other != NULL ? other->seen : watch->number };
    wf_latch_unlock(&watch->word, 0);
    *receiver = from;
    return 0;
}

int weft_watch_subscribe(weft_watch_sender *sender, weft_watch_receiver **receiver)
{
    return add_receiver(of_sender(sender), NULL, receiver);
}

int weft_watch_receiver_clone(const weft_watch_receiver *receiver, weft_watch_receiver **copy)
{
    return add_receiver(receiver->watch, receiver, copy);
}

static void close_it(struct wf_watch *watch, struct wf_turn *turn)
{
    watch->is_closed = true;
    wf_turn_claim_all(turn, &watch->waiters, WEFT_ECLOSED);
}

static void drop(struct wf_watch *watch, size_t *count)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, watch);
    (*count)--;
    if (watch->senders == 0) {
        close_it(watch, &turn);
    }
    bool is_last = watch->senders + watch->receivers == 0;
    wf_turn_end(&turn);
    if (is_last) {
        wf_free(&wf_alloc_default, watch, bytes_of(watch->size), _Alignof(struct wf_watch));
    }
}

void weft_watch_sender_drop(weft_watch_sender *sender)
{
    if (sender != NULL) {
        drop(of_sender(sender), &of_sender(sender)->senders);
    }
}

void weft_watch_receiver_drop(weft_watch_receiver *receiver)
{
    if (receiver != NULL) {
        drop(receiver->watch, &receiver->watch->receivers);
        free_receiver(receiver);
    }
}

void weft_watch_close(weft_watch_sender *sender)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, sender);
    close_it(of_sender(sender), &turn);
    wf_turn_end(&turn);
}

static weft_watch_info info_of(struct wf_watch *watch)
{
    (void)wf_latch_lock(&watch->word);
    weft_watch_info info = { .senders = watch->senders,
                             .receivers = watch->receivers,
                             .sent = watch->number,
                             .is_closed = watch->is_closed };
    wf_latch_unlock(&watch->word, 0);
    return info;
}

weft_watch_info weft_watch_sender_info(const weft_watch_sender *sender)
{
    return info_of(of_sender(sender));
}

weft_watch_info weft_watch_receiver_info(const weft_watch_receiver *receiver)
{
    return info_of(receiver->watch);
}
