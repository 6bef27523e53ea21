/* SPDX-License-Identifier: MIT */
/*
 * channel.c - messages from many senders to many receivers.
 *
 * All of it is under the latch in the word: a ring of messages, and two queues, of those who
 * wait to send and of those who wait to receive. Nobody waits without need:
 *
 *   - somebody waits to receive: the ring is empty, and nobody waits to send a message
 *   - somebody waits to send: the ring, with what is reserved, is full
 *
 *   Send                                   Receive
 *   S1  somebody waits to receive:         R1  there is a message: take it, and let
 *       copy the message to its place          the first who waits to send put its
 *   S2  there is room: into the ring           own behind the others
 *   S3  else wait                          R2  none, but somebody waits to send, since
 *                                              there is no ring or all of it is
 *                                              reserved: take it from there
 *                                          R3  else wait
 *
 * So a message is copied once or twice, and never by two at once: who copies from or to the
 * place of one that waits has claimed its wait. A wait that is cancelled has sent nothing, or
 * received nothing; if it was claimed before, it has.
 *
 * Room that is reserved counts as taken. Where there is no limit, the ring grows when it is
 * reserved, so that sending into it cannot fail.
 *
 * A channel is closed when it was told to, when the last sender is gone, and when the last
 * receiver is. Then who waits to send is told; who waits to receive, too, unless messages
 * can still come into room that is reserved. Who drops the last handle of all frees it.
 *
 * Edges: latch.h's [E1]: what was done before a message was sent is seen by who receives it.
 *
 * Checked by tests/model/channel_model.c.
 */
#include <weft/channel.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "chan/message.h"
#include "sched/op.h"

enum {
    SLOTS_FIRST = 16, /* of a ring that grows */
};

struct wf_channel {
    _Atomic(uint32_t) word; /* the latch alone; what follows is under it */
    bool is_closed;
    size_t senders;
    size_t receivers;
    struct wf_waitq to_send; /* data: the message; flag: wants room, and sends later */
    struct wf_waitq to_recv; /* data: where the message goes */
    char *slots;             /* the ring */
    size_t slots_count;
    size_t head; /* of the oldest message */
    size_t length;
    size_t reserved;
    size_t size;     /* constant: of a message */
    size_t capacity; /* constant */
};

static struct wf_channel *of_sender(const weft_sender *sender)
{
    return (struct wf_channel *)sender;
}

static struct wf_channel *of_receiver(const weft_receiver *receiver)
{
    return (struct wf_channel *)receiver;
}

/* --- The ring ------------------------------------------------------------------------------- */

static void copy(const struct wf_channel *channel, void *to, const void *from)
{
    wf_message_copy(to, from, channel->size);
}

static char *slot(const struct wf_channel *channel, size_t index)
{
    size_t at = channel->head + index;
    at -= at >= channel->slots_count ? channel->slots_count : 0;
    return channel->slots + at * channel->size;
}

static bool has_room(const struct wf_channel *channel)
{
    return channel->capacity - channel->length > channel->reserved;
}

/* Makes the ring larger. False: there is no memory. */
static bool grow(struct wf_channel *channel)
{
    size_t count = channel->slots_count != 0 ? 2 * channel->slots_count : SLOTS_FIRST;
    if (count > PTRDIFF_MAX / channel->size) {
        return false;
    }
    char *slots = wf_alloc(&wf_alloc_default, count * channel->size, _Alignof(max_align_t));
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < channel->length; i++) {
        copy(channel, slots + i * channel->size, slot(channel, i));
    }
    wf_free(&wf_alloc_default, channel->slots, channel->slots_count * channel->size,
            _Alignof(max_align_t));
    channel->slots = slots;
    channel->slots_count = count;
    channel->head = 0;
    return true;
}

/* A slot for one more; there is room. False: no memory for it. */
static bool has_slot(struct wf_channel *channel)
{
    return channel->length + channel->reserved < channel->slots_count || grow(channel);
}

static void push(struct wf_channel *channel, const void *message)
{
    copy(channel, slot(channel, channel->length), message);
    channel->length++;
}

static void pop(struct wf_channel *channel, void *message)
{
    copy(channel, message, slot(channel, 0));
    channel->head = channel->head + 1 == channel->slots_count ? 0 : channel->head + 1;
    channel->length--;
}

/* --- Those who wait ------------------------------------------------------------------------- */

/* Gives a message to one who waits to receive, if there is one. */
static bool hand_over(struct wf_channel *channel, const void *message, struct wf_turn *turn)
{
    struct wf_op *receiver = wf_turn_claim(turn, &channel->to_recv);
    if (receiver == NULL) {
        return false;
    }
    copy(channel, receiver->data, message);
    return true;
}

/* Takes a message from the hands of one who waits to send it; not from one who waits for room,
 * and has none yet. */
static bool take_from_hands(struct wf_channel *channel, void *message, struct wf_turn *turn)
{
    struct wf_op *next = wf_op_first(&channel->to_send);
    while (next != NULL) {
        struct wf_op *sender = next;
        next = wf_op_after(&channel->to_send, sender);
        if (!sender->flag && wf_turn_claim_this(turn, sender)) {
            copy(channel, message, sender->data);
            return true;
        }
    }
    return false;
}

/* Lets those in who wait to send, as far as there is room. A ring with a limit has all of its
 * slots. */
static void admit(struct wf_channel *channel, struct wf_turn *turn)
{
    struct wf_op *sender;
    while (has_room(channel) && (sender = wf_turn_claim(turn, &channel->to_send)) != NULL) {
        if (sender->flag) {
            channel->reserved++;
        } else {
            push(channel, sender->data);
        }
    }
}

/* Tells those who wait that nothing will come of it. */
static void tell_closed(struct wf_channel *channel, struct wf_turn *turn)
{
    if (channel->is_closed) {
        wf_turn_claim_all(turn, &channel->to_send, WEFT_ECLOSED);
        if (channel->length + channel->reserved == 0) {
            wf_turn_claim_all(turn, &channel->to_recv, WEFT_ECLOSED);
        }
    }
}

/* S1 to S3: WEFT_PENDING if it has to wait. */
static int put(struct wf_channel *channel, const void *message, struct wf_turn *turn)
{
    if (channel->is_closed) {
        return WEFT_ECLOSED;
    }
    if (hand_over(channel, message, turn)) {
        return 0;
    }
    if (!has_room(channel)) {
        return WEFT_PENDING;
    }
    if (!has_slot(channel)) {
        return -ENOMEM;
    }
    push(channel, message);
    return 0;
}

/* The same for room that is reserved. */
static int reserve(struct wf_channel *channel)
{
    if (channel->capacity == 0) {
        return -EINVAL;
    }
    if (channel->is_closed) {
        return WEFT_ECLOSED;
    }
    if (!has_room(channel)) {
        return WEFT_PENDING;
    }
    if (!has_slot(channel)) {
        return -ENOMEM;
    }
    channel->reserved++;
    return 0;
}

/* R1 to R3: WEFT_PENDING if it has to wait. */
static int take(struct wf_channel *channel, void *message, struct wf_turn *turn)
{
    if (channel->length > 0) {
        pop(channel, message);
        admit(channel, turn);
        return 0;
    }
    if (take_from_hands(channel, message, turn)) {
        return 0;
    }
    return channel->is_closed && channel->reserved == 0 ? WEFT_ECLOSED : WEFT_PENDING;
}

/* --- Operations ----------------------------------------------------------------------------- */

static int send_take(struct wf_op *op, struct wf_turn *turn)
{
    return put(op->object, op->data, turn);
}

static int reserve_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    return reserve(op->object);
}

static int recv_take(struct wf_op *op, struct wf_turn *turn)
{
    return take(op->object, op->data, turn);
}

static const struct wf_op_ops send_ops = { .future = WF_OP_FUTURE,
                                           .take = send_take,
                                           .queue = offsetof(struct wf_channel, to_send) };
static const struct wf_op_ops reserve_ops = { .future = WF_OP_FUTURE,
                                              .take = reserve_take,
                                              .queue = offsetof(struct wf_channel, to_send) };
static const struct wf_op_ops recv_ops = { .future = WF_OP_FUTURE,
                                           .take = recv_take,
                                           .queue = offsetof(struct wf_channel, to_recv) };

static inline struct wf_op *prepare_send(weft_op *op, weft_sender *sender, const void *message)
{
    struct wf_op *self = wf_op_init(op, &send_ops, sender);
    self->data = (void *)message;
    return self;
}

void weft_send_init(weft_op *op, weft_sender *sender, const void *message)
{
    (void)prepare_send(op, sender, message);
}

void weft_reserve_init(weft_op *op, weft_sender *sender)
{
    struct wf_op *self = wf_op_init(op, &reserve_ops, sender);
    self->flag = true;
}

static inline struct wf_op *prepare_recv(weft_op *op, weft_receiver *receiver, void *message)
{
    struct wf_op *self = wf_op_init(op, &recv_ops, receiver);
    self->data = message;
    return self;
}

void weft_recv_init(weft_op *op, weft_receiver *receiver, void *message)
{
    (void)prepare_recv(op, receiver, message);
}

/* Without a wait. */
static int or_again(int result)
{
    return result == WEFT_PENDING ? -EAGAIN : result;
}

int weft_try_send(weft_sender *sender, const void *message)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, sender);
    int result = put(of_sender(sender), message, &turn);
    wf_turn_end(&turn);
    return or_again(result);
}

int weft_try_reserve(weft_sender *sender)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, sender);
    int result = reserve(of_sender(sender));
    wf_turn_end(&turn);
    return or_again(result);
}

int weft_try_recv(weft_receiver *receiver, void *message)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, receiver);
    int result = take(of_receiver(receiver), message, &turn);
    wf_turn_end(&turn);
    return or_again(result);
}

int weft_send(weft_sender *sender, const void *message, weft_time deadline)
{
    weft_op op;
    struct wf_op *self = prepare_send(&op, sender, message);
    return wf_op_await_inline(self, &send_ops, deadline, "weft_send");
}

int weft_reserve(weft_sender *sender, weft_time deadline)
{
    weft_op op;
    weft_reserve_init(&op, sender);
    return wf_op_await(&op, deadline, "weft_reserve");
}

int weft_recv(weft_receiver *receiver, void *message, weft_time deadline)
{
    weft_op op;
    struct wf_op *self = prepare_recv(&op, receiver, message);
    return wf_op_await_inline(self, &recv_ops, deadline, "weft_recv");
}

int64_t weft_recv_many(weft_receiver *receiver, void *messages, size_t most, weft_time deadline)
{
    if (most == 0) {
        return -EINVAL;
    }
    int result = weft_recv(receiver, messages, deadline);
    if (result != 0) {
        return result;
    }
    struct wf_channel *channel = of_receiver(receiver);
    struct wf_turn turn;
    size_t count = 1;
    wf_turn_begin(&turn, channel);
    while (count < most && take(channel, (char *)messages + count * channel->size, &turn) == 0) {
        count++;
    }
    wf_turn_end(&turn);
    return (int64_t)count;
}

/* Room that was reserved, with a message or without. */
static void use_room(struct wf_channel *channel, const void *message, const char *call)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, channel);
    if (wf_unlikely(channel->reserved == 0)) {
        wf_fatal("%s: no room is reserved; call weft_reserve() before", call);
    }
    channel->reserved--;
    bool is_wanted = message != NULL && channel->receivers > 0;
    if (is_wanted && !hand_over(channel, message, &turn)) {
        push(channel, message);
    }
    admit(channel, &turn);
    tell_closed(channel, &turn);
    wf_turn_end(&turn);
}

void weft_send_reserved(weft_sender *sender, const void *message)
{
    use_room(of_sender(sender), message, "weft_send_reserved");
}

void weft_unreserve(weft_sender *sender)
{
    use_room(of_sender(sender), NULL, "weft_unreserve");
}

/* --- Handles -------------------------------------------------------------------------------- */

/* A ring with a limit has all of its slots from the beginning. */
static int make_ring(struct wf_channel *channel)
{
    if (channel->capacity == WEFT_UNBOUNDED || channel->capacity == 0) {
        return 0;
    }
    if (channel->capacity > PTRDIFF_MAX / channel->size) {
        return -EINVAL;
    }
    channel->slots =
        wf_alloc(&wf_alloc_default, channel->capacity * channel->size, _Alignof(max_align_t));
    channel->slots_count = channel->capacity;
    return channel->slots != NULL ? 0 : -ENOMEM;
}

int weft_channel_make(weft_sender **sender, weft_receiver **receiver, size_t size, size_t capacity)
{
    struct wf_channel *channel =
        wf_alloc_zeroed(&wf_alloc_default, sizeof *channel, _Alignof(struct wf_channel));
    if (channel == NULL) {
        return -ENOMEM;
    }
    channel->senders = 1;
    channel->receivers = 1;
    channel->size = size > 0 ? size : 1; /* A message may be nothing but an event. */
    channel->capacity = capacity;
    int err = make_ring(channel);
    if (err != 0) {
        wf_free(&wf_alloc_default, channel, sizeof *channel, _Alignof(struct wf_channel));
        return err;
    }
    *sender = (weft_sender *)channel;
    *receiver = (weft_receiver *)channel;
    return 0;
}

weft_sender *weft_sender_clone(weft_sender *sender)
{
    struct wf_channel *channel = of_sender(sender);
    (void)wf_latch_lock(&channel->word);
    channel->senders++;
    wf_latch_unlock(&channel->word, 0);
    return sender;
}

weft_receiver *weft_receiver_clone(weft_receiver *receiver)
{
    struct wf_channel *channel = of_receiver(receiver);
    (void)wf_latch_lock(&channel->word);
    channel->receivers++;
    wf_latch_unlock(&channel->word, 0);
    return receiver;
}

/* Takes one off a count, which is the channel's. */
static void drop(struct wf_channel *channel, size_t *count)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, channel);
    (*count)--;
    if (*count == 0) {
        channel->is_closed = true;
    }
    if (channel->receivers == 0) {
        channel->length = 0;
    }
    if (channel->senders == 0) {
        channel->reserved = 0; /* Nobody can use it any more. */
    }
    tell_closed(channel, &turn);
    bool is_last = channel->senders + channel->receivers == 0;
    wf_turn_end(&turn);
    if (is_last) {
        wf_free(&wf_alloc_default, channel->slots, channel->slots_count * channel->size,
                _Alignof(max_align_t));
        wf_free(&wf_alloc_default, channel, sizeof *channel, _Alignof(struct wf_channel));
    }
}

void weft_sender_drop(weft_sender *sender)
{
    if (sender != NULL) {
        drop(of_sender(sender), &of_sender(sender)->senders);
    }
}

void weft_receiver_drop(weft_receiver *receiver)
{
    if (receiver != NULL) {
        drop(of_receiver(receiver), &of_receiver(receiver)->receivers);
    }
}

static void close_it(struct wf_channel *channel)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, channel);
    channel->is_closed = true;
    tell_closed(channel, &turn);
    wf_turn_end(&turn);
}

void weft_sender_close(weft_sender *sender)
{
    close_it(of_sender(sender));
}

void weft_receiver_close(weft_receiver *receiver)
{
    close_it(of_receiver(receiver));
}

static weft_channel_info info_of(struct wf_channel *channel)
{
    (void)wf_latch_lock(&channel->word);
    weft_channel_info info = { .length = channel->length,
                               .capacity = channel->capacity,
                               .senders = channel->senders,
                               .receivers = channel->receivers,
                               .is_closed = channel->is_closed };
    wf_latch_unlock(&channel->word, 0);
    return info;
}

weft_channel_info weft_sender_info(const weft_sender *sender)
{
    return info_of(of_sender(sender));
}

weft_channel_info weft_receiver_info(const weft_receiver *receiver)
{
    return info_of(of_receiver(receiver));
}
