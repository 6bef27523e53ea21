/* SPDX-License-Identifier: MIT */
/*
 * channel.c - bounded and unbounded channels with many senders and many receivers.
 *
 * The latch in the word guards everything: a ring of messages and two wait queues, one of
 * senders and one of receivers. No task waits without need:
 *
 *   - a receiver waits: the ring is empty, and no sender waits to send a message
 *   - a sender waits: the ring, with what is reserved, is full
 *
 *   Send                                   Receive
 *   S1  a receiver waits: copy the         R1  there is a message: take it, and let
 *       message to its destination             the first waiting sender append its
 *   S2  there is space: into the ring          own
 *   S3  else wait                          R2  none, but a sender waits, since there
 *                                              is no ring or all of it is reserved:
 *                                              take the message from the sender
 *                                          R3  else wait
 *
 * So a message is copied once or twice, and never by two threads at the same time: a thread
 * that copies from or to the memory of a waiter has claimed its wait. A canceled wait has sent
 * or received nothing, unless it was claimed before.
 *
 * Reserved space counts as used. In an unbounded channel the ring grows when space is reserved,
 * so that sending into it cannot fail.
 *
 * The ring of an unbounded channel doubles when it is full, and is halved when less than an
 * eighth of it is used. So it takes at most eight times the memory of its messages, RING_KEPT
 * bytes or SLOTS_FIRST slots. A queue whose length varies by up to a factor of 4 does not
 * allocate.
 *
 * When the last receiver is dropped, the ring with the unread messages is removed from the
 * channel under the latch: nothing is pushed any more. The messages are passed to the drop
 * function without the latch.
 *
 * A handle is a record that names the channel and counts the space that its owner has reserved:
 * dropping a sender gives up its space, and ends its pending reservations. The first sender and
 * the first receiver are part of the channel. The record of a clone is allocated, and is kept
 * for the next clone when it is dropped, until the channel is freed. So a call with a dropped
 * handle is detected as long as the channel exists and the record was not reused.
 *
 * A channel is closed by an explicit close, when the last sender is dropped, and when the last
 * receiver is. Then waiting senders get WEFT_ECLOSED; so do waiting receivers, unless messages
 * can still arrive through reserved space. The thread that drops the last handle frees the
 * channel.
 *
 * Edges: latch.h's [E1]: the receiver of a message sees what was done before it was sent.
 *
 * Checked by tests/model/channel_model.c.
 */
#include <weft/channel.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/callout.h"
#include "chan/message.h"
#include "sched/op.h"

enum {
    SLOTS_FIRST = 16, /* initial number of slots of an unbounded ring */
    RING_KEPT = 4096, /* bytes: an unbounded ring is not shrunk at or below this size */
    SPARSE = 8,       /* a ring is halved when less than 1/SPARSE of its slots is used */
};

/* The record that a weft_sender or a weft_receiver points to. */
struct handle {
    struct wf_channel *channel; /* constant while in use; NULL: it was dropped */
    size_t reserved;            /* under the latch: space that this sender has reserved */
    struct handle *next_free;   /* under the latch */
};

struct weft_sender {
    struct handle handle;
};

struct weft_receiver {
    struct handle handle;
};

/* A ring of messages, possibly without slots. */
struct ring {
    char *slots;
    size_t slots_count;
    size_t head; /* slot of the oldest message */
    size_t length;
};

struct wf_channel {
    _Atomic(uint32_t) word; /* the latch alone; it guards the fields below */
    bool is_closed;
    size_t senders;
    size_t receivers;
    struct wf_waitq to_send; /* data: the message; with flag: the handle that reserves */
    struct wf_waitq to_recv; /* data: where the message goes */
    struct ring ring;
    size_t sparse; /* the ring is shrunk below this number of used slots; 0: never */
    size_t reserved;
    size_t size;     /* constant: of a message; 0: an event, whose pointers may be NULL */
    size_t capacity; /* constant */
    void (*drop_message)(void *message, void *arg); /* constant, like drop_arg; may be NULL */
    void *drop_arg;
    struct handle *free_handles;
    /* Each call reads its handle before it takes the latch, so these are on a line that is
     * rarely written. */
    _Alignas(64) struct weft_sender first_sender;
    struct weft_receiver first_receiver;
};

/* Returns the channel of a handle. Aborts, naming call, if the handle was dropped. */
static inline struct wf_channel *channel_of(const struct handle *handle, const char *call)
{
    if (wf_unlikely(handle->channel == NULL)) {
        wf_fatal("%s: this sender or receiver was dropped before; each clone is dropped once, and "
                 "not used afterwards",
                 call);
    }
    return handle->channel;
}

/* --- The ring ------------------------------------------------------------------------------- */

static void copy(const struct wf_channel *channel, void *to, const void *from)
{
    wf_message_copy(to, from, channel->size);
}

static char *slot(const struct ring *ring, size_t index, size_t size)
{
    size_t at = ring->head + index;
    at -= at >= ring->slots_count ? ring->slots_count : 0;
    return ring->slots + at * size;
}

static size_t used(const struct wf_channel *channel)
{
    return channel->ring.length + channel->reserved;
}

static bool has_room(const struct wf_channel *channel)
{
    return channel->capacity - channel->ring.length > channel->reserved;
}

/* Returns the size of a ring in bytes; at least 1, since a message may have size 0. */
static size_t ring_bytes(size_t count, size_t size)
{
    return size > 0 ? count * size : 1;
}

/* Allocates an empty ring. Returns 0, -ENOMEM, or -EINVAL if it is larger than memory can be. */
static int make_ring(struct ring *ring, size_t count, size_t size)
{
    if (count > PTRDIFF_MAX / (size > 0 ? size : 1)) {
        return -EINVAL;
    }
    *ring = (struct ring){ .slots_count = count };
    ring->slots = wf_alloc(&wf_alloc_default, ring_bytes(count, size), _Alignof(max_align_t));
    return ring->slots != NULL ? 0 : -ENOMEM;
}

static void free_ring(const struct ring *ring, size_t size)
{
    wf_free(&wf_alloc_default, ring->slots, ring_bytes(ring->slots_count, size),
            _Alignof(max_align_t));
}

/* Moves the messages to a ring with this number of slots. Returns false when out of memory. */
static bool resize(struct wf_channel *channel, size_t count)
{
    const struct ring *old = &channel->ring;
    size_t size = channel->size;
    struct ring ring;
    if (make_ring(&ring, count, size) != 0) {
        return false;
    }
    size_t to_end = old->slots_count - old->head;
    size_t first = old->length < to_end ? old->length : to_end;
    wf_message_copy(ring.slots, old->slots + old->head * size, first * size);
    wf_message_copy(ring.slots + first * size, old->slots, (old->length - first) * size);
    ring.length = old->length;
    free_ring(old, size);
    channel->ring = ring;
    bool may_shrink = count > SLOTS_FIRST && ring_bytes(count, size) > RING_KEPT;
    channel->sparse = may_shrink ? count / SPARSE : 0;
    return true;
}

/* Grows the ring. Returns false when out of memory. */
static bool grow(struct wf_channel *channel)
{
    size_t count = channel->ring.slots_count;
    return resize(channel, count != 0 ? 2 * count : SLOTS_FIRST);
}

/* Shrinks the ring if few of its slots are used. Leaves it unchanged when out of memory. */
static inline void shrink(struct wf_channel *channel)
{
    while (wf_unlikely(used(channel) < channel->sparse) &&
           resize(channel, channel->ring.slots_count / 2)) {
    }
}

/* Provides a slot for one more message; the capacity has been checked. Returns false when out
 * of memory. */
static bool has_slot(struct wf_channel *channel)
{
    return used(channel) < channel->ring.slots_count || grow(channel);
}

static void push(struct wf_channel *channel, const void *message)
{
    copy(channel, slot(&channel->ring, channel->ring.length, channel->size), message);
    channel->ring.length++;
}

static void pop_first(struct ring *ring)
{
    ring->head = ring->head + 1 == ring->slots_count ? 0 : ring->head + 1;
    ring->length--;
}

static void pop(struct wf_channel *channel, void *message)
{
    copy(channel, message, slot(&channel->ring, 0, channel->size));
    pop_first(&channel->ring);
    shrink(channel);
}

/* --- Waiters -------------------------------------------------------------------------------- */

/* Gives a message to the first waiting receiver. Returns false if there is none. */
static bool hand_over(struct wf_channel *channel, const void *message, struct wf_turn *turn)
{
    struct wf_op *receiver = wf_turn_claim(turn, &channel->to_recv);
    if (receiver == NULL) {
        return false;
    }
    copy(channel, receiver->data, message);
    return true;
}

/* Takes a message directly from a waiting sender. Skips senders that wait to reserve space,
 * which have no message yet. */
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

static void add_room(struct wf_channel *channel, struct handle *sender)
{
    channel->reserved++;
    sender->reserved++;
}

/* Admits waiting senders while there is space. A bounded ring has all of its slots. */
static void admit(struct wf_channel *channel, struct wf_turn *turn)
{
    struct wf_op *sender;
    while (has_room(channel) && (sender = wf_turn_claim(turn, &channel->to_send)) != NULL) {
        if (sender->flag) {
            add_room(channel, sender->data);
        } else {
            push(channel, sender->data);
        }
    }
}

/* If the channel is closed: ends the waits that can no longer succeed with WEFT_ECLOSED. */
static void tell_closed(struct wf_channel *channel, struct wf_turn *turn)
{
    if (channel->is_closed) {
        wf_turn_claim_all(turn, &channel->to_send, WEFT_ECLOSED);
        if (used(channel) == 0) {
            wf_turn_claim_all(turn, &channel->to_recv, WEFT_ECLOSED);
        }
    }
}

/* S1 to S3. Returns WEFT_PENDING if the sender has to wait. */
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

/* Reserves space. Returns WEFT_PENDING if the sender has to wait. */
static int reserve(struct wf_channel *channel, struct handle *sender)
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
    add_room(channel, sender);
    return 0;
}

/* R1 to R3. Returns WEFT_PENDING if the receiver has to wait. */
static int take(struct wf_channel *channel, void *message, struct wf_turn *turn)
{
    if (channel->ring.length > 0) {
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
    return reserve(op->object, op->data);
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

static inline struct wf_op *prepare_send(weft_op *op, weft_sender *sender, const void *message,
                                         const char *call)
{
    struct wf_op *self = wf_op_init(op, &send_ops, channel_of(&sender->handle, call));
    self->data = (void *)message;
    return self;
}

void weft_send_init(weft_op *op, weft_sender *sender, const void *message)
{
    (void)prepare_send(op, sender, message, "weft_send_init");
}

static void prepare_reserve(weft_op *op, weft_sender *sender, const char *call)
{
    struct wf_op *self = wf_op_init(op, &reserve_ops, channel_of(&sender->handle, call));
    self->flag = true;
    self->data = &sender->handle;
}

void weft_reserve_init(weft_op *op, weft_sender *sender)
{
    prepare_reserve(op, sender, "weft_reserve_init");
}

static inline struct wf_op *prepare_recv(weft_op *op, weft_receiver *receiver, void *message,
                                         const char *call)
{
    struct wf_op *self = wf_op_init(op, &recv_ops, channel_of(&receiver->handle, call));
    self->data = message;
    return self;
}

void weft_recv_init(weft_op *op, weft_receiver *receiver, void *message)
{
    (void)prepare_recv(op, receiver, message, "weft_recv_init");
}

/* Converts the result for a call that does not wait. */
static int or_again(int result)
{
    return result == WEFT_PENDING ? -EAGAIN : result;
}

int weft_try_send(weft_sender *sender, const void *message)
{
    struct wf_channel *channel = channel_of(&sender->handle, "weft_try_send");
    struct wf_turn turn;
    wf_turn_begin(&turn, channel);
    int result = put(channel, message, &turn);
    wf_turn_end(&turn);
    return or_again(result);
}

int weft_try_reserve(weft_sender *sender)
{
    struct wf_channel *channel = channel_of(&sender->handle, "weft_try_reserve");
    struct wf_turn turn;
    wf_turn_begin(&turn, channel);
    int result = reserve(channel, &sender->handle);
    wf_turn_end(&turn);
    return or_again(result);
}

int weft_try_recv(weft_receiver *receiver, void *message)
{
    struct wf_channel *channel = channel_of(&receiver->handle, "weft_try_recv");
    struct wf_turn turn;
    wf_turn_begin(&turn, channel);
    int result = take(channel, message, &turn);
    wf_turn_end(&turn);
    return or_again(result);
}

/*
 * Fast paths of weft_send() and weft_recv(): one word, into or out of the ring, while no task
 * waits. They save no registers, so everything else is in functions that are not inlined.
 */

static __attribute__((noinline)) int send_latched(weft_sender *sender, const void *message,
                                                  weft_time deadline, uint32_t bits)
{
    weft_op op;
    struct wf_op *self = prepare_send(&op, sender, message, "weft_send");
    struct wf_turn turn;
    wf_turn_continue(&turn, self->object, bits);
    return wf_op_await_latched(self, &send_ops, &turn, deadline);
}

static inline __attribute__((always_inline)) int
send_entered(weft_sender *sender, const void *message, weft_time deadline)
{
    struct wf_channel *channel = sender->handle.channel;
    uint32_t bits = wf_latch_lock(&channel->word);
    if (wf_unlikely(channel->size != sizeof(uint64_t) || channel->is_closed ||
                    !wf_waitq_is_empty(&channel->to_recv) || !has_room(channel) ||
                    used(channel) >= channel->ring.slots_count)) {
        return send_latched(sender, message, deadline, bits);
    }
    memcpy(slot(&channel->ring, channel->ring.length, sizeof(uint64_t)), message, sizeof(uint64_t));
    channel->ring.length++;
    wf_latch_unlock(&channel->word, bits);
    return 0;
}

static __attribute__((noinline)) int send_slowly(weft_sender *sender, const void *message,
                                                 weft_time deadline)
{
    (void)channel_of(&sender->handle, "weft_send");
    int err = wf_op_enter_slowly("weft_send");
    return err == 0 ? send_entered(sender, message, deadline) : err;
}

int weft_send(weft_sender *sender, const void *message, weft_time deadline)
{
    bool is_quick = sender->handle.channel != NULL && wf_await_enter_quickly(&deadline);
    return wf_likely(is_quick) ? send_entered(sender, message, deadline)
                               : send_slowly(sender, message, deadline);
}

int weft_reserve(weft_sender *sender, weft_time deadline)
{
    weft_op op;
    prepare_reserve(&op, sender, "weft_reserve");
    return wf_op_await(&op, deadline, "weft_reserve");
}

static __attribute__((noinline)) int recv_latched(weft_receiver *receiver, void *message,
                                                  weft_time deadline, uint32_t bits)
{
    weft_op op;
    struct wf_op *self = prepare_recv(&op, receiver, message, "weft_recv");
    struct wf_turn turn;
    wf_turn_continue(&turn, self->object, bits);
    return wf_op_await_latched(self, &recv_ops, &turn, deadline);
}

static inline __attribute__((always_inline)) int recv_entered(weft_receiver *receiver,
                                                              void *message, weft_time deadline)
{
    struct wf_channel *channel = receiver->handle.channel;
    uint32_t bits = wf_latch_lock(&channel->word);
    if (wf_unlikely(channel->size != sizeof(uint64_t) || channel->ring.length == 0 ||
                    !wf_waitq_is_empty(&channel->to_send) || used(channel) <= channel->sparse)) {
        return recv_latched(receiver, message, deadline, bits);
    }
    memcpy(message, slot(&channel->ring, 0, sizeof(uint64_t)), sizeof(uint64_t));
    pop_first(&channel->ring);
    wf_latch_unlock(&channel->word, bits);
    return 0;
}

static __attribute__((noinline)) int recv_slowly(weft_receiver *receiver, void *message,
                                                 weft_time deadline)
{
    (void)channel_of(&receiver->handle, "weft_recv");
    int err = wf_op_enter_slowly("weft_recv");
    return err == 0 ? recv_entered(receiver, message, deadline) : err;
}

int weft_recv(weft_receiver *receiver, void *message, weft_time deadline)
{
    bool is_quick = receiver->handle.channel != NULL && wf_await_enter_quickly(&deadline);
    return wf_likely(is_quick) ? recv_entered(receiver, message, deadline)
                               : recv_slowly(receiver, message, deadline);
}

int64_t weft_recv_many(weft_receiver *receiver, void *messages, size_t most, weft_time deadline)
{
    weft_op op;
    struct wf_op *self = prepare_recv(&op, receiver, messages, "weft_recv_many");
    struct wf_channel *channel = self->object;
    int result = wf_op_enter(&deadline, "weft_recv_many");
    if (result == 0) {
        result = most == 0 ? -EINVAL : wf_op_await_entered(self, &recv_ops, deadline);
    }
    if (result != 0) {
        return result;
    }
    struct wf_turn turn;
    size_t count = 1;
    wf_turn_begin(&turn, channel);
    while (count < most && take(channel, (char *)messages + count * channel->size, &turn) == 0) {
        count++;
    }
    wf_turn_end(&turn);
    return (int64_t)count;
}

/* Uses reserved space: sends a message into it, or gives it up. */
static void use_room(struct handle *sender, bool sends, const void *message, const char *call)
{
    struct wf_channel *channel = channel_of(sender, call);
    struct wf_turn turn;
    wf_turn_begin(&turn, channel);
    if (wf_unlikely(sender->reserved == 0)) {
        wf_fatal("%s: this sender has reserved no room; call weft_reserve() with it before", call);
    }
    sender->reserved--;
    channel->reserved--;
    bool is_wanted = sends && channel->receivers > 0;
    if (is_wanted && !hand_over(channel, message, &turn)) {
        push(channel, message);
    }
    admit(channel, &turn);
    tell_closed(channel, &turn);
    shrink(channel);
    wf_turn_end(&turn);
    if (sends && !is_wanted && channel->drop_message != NULL) {
        WF_CALLOUT_BEGIN();
        channel->drop_message((void *)message, channel->drop_arg);
        WF_CALLOUT_END();
    }
}

void weft_send_reserved(weft_sender *sender, const void *message)
{
    use_room(&sender->handle, true, message, "weft_send_reserved");
}

void weft_unreserve(weft_sender *sender)
{
    use_room(&sender->handle, false, NULL, "weft_unreserve");
}

/* --- Handles -------------------------------------------------------------------------------- */

/* A bounded ring has all of its slots from the beginning. */
static int make_first_ring(struct wf_channel *channel)
{
    if (channel->capacity == WEFT_UNBOUNDED || channel->capacity == 0) {
        return 0;
    }
    return make_ring(&channel->ring, channel->capacity, channel->size);
}

int weft_channel_make(weft_sender **sender, weft_receiver **receiver, size_t size, size_t capacity)
{
    weft_channel_options options = { .size = size, .capacity = capacity };
    return weft_channel_create(sender, receiver, &options);
}

int weft_channel_create(weft_sender **sender, weft_receiver **receiver,
                        const weft_channel_options *options)
{
    struct wf_channel *channel =
        wf_alloc_zeroed(&wf_alloc_default, sizeof *channel, _Alignof(struct wf_channel));
    if (channel == NULL) {
        return -ENOMEM;
    }
    channel->senders = 1;
    channel->receivers = 1;
    channel->size = options->size;
    channel->capacity = options->capacity;
    channel->drop_message = options->drop;
    channel->drop_arg = options->arg;
    channel->first_sender.handle.channel = channel;
    channel->first_receiver.handle.channel = channel;
    int err = make_first_ring(channel);
    if (err != 0) {
        wf_free(&wf_alloc_default, channel, sizeof *channel, _Alignof(struct wf_channel));
        return err;
    }
    *sender = &channel->first_sender;
    *receiver = &channel->first_receiver;
    return 0;
}

static bool is_embedded(const struct wf_channel *channel, const struct handle *handle)
{
    return handle == &channel->first_sender.handle || handle == &channel->first_receiver.handle;
}

/* Reuses a dropped record, or allocates one, and counts it. Returns NULL when out of memory. */
static struct handle *add_handle(struct wf_channel *channel, size_t *count)
{
    struct handle *made = NULL;
    (void)wf_latch_lock(&channel->word);
    if (channel->free_handles == NULL) {
        wf_latch_unlock(&channel->word, 0); /* The caller's handle keeps the channel alive. */
        made = wf_alloc_zeroed(&wf_alloc_default, sizeof *made, _Alignof(struct handle));
        if (made == NULL) {
            return NULL;
        }
        (void)wf_latch_lock(&channel->word);
    } else {
        made = channel->free_handles;
        channel->free_handles = made->next_free;
    }
    made->channel = channel;
    (*count)++;
    wf_latch_unlock(&channel->word, 0);
    return made;
}

weft_sender *weft_sender_clone(weft_sender *sender)
{
    struct wf_channel *channel = channel_of(&sender->handle, "weft_sender_clone");
    return (weft_sender *)add_handle(channel, &channel->senders);
}

weft_receiver *weft_receiver_clone(weft_receiver *receiver)
{
    struct wf_channel *channel = channel_of(&receiver->handle, "weft_receiver_clone");
    return (weft_receiver *)add_handle(channel, &channel->receivers);
}

static void free_channel(struct wf_channel *channel)
{
    struct handle *next = channel->free_handles; /* all handles */
    while (next != NULL) {
        struct handle *handle = next;
        next = handle->next_free;
        if (!is_embedded(channel, handle)) {
            wf_free(&wf_alloc_default, handle, sizeof *handle, _Alignof(struct handle));
        }
    }
    wf_free(&wf_alloc_default, channel, sizeof *channel, _Alignof(struct wf_channel));
}

/* Gives up the space of a sender that is dropped, and ends its pending reservations. */
static void give_up_room(struct wf_channel *channel, struct handle *sender, struct wf_turn *turn)
{
    struct wf_op *next = wf_op_first(&channel->to_send);
    while (next != NULL) {
        struct wf_op *op = next;
        next = wf_op_after(&channel->to_send, op);
        if (op->flag && op->data == sender && wf_turn_claim_this(turn, op)) {
            op->result = WEFT_ECLOSED;
        }
    }
    channel->reserved -= sender->reserved;
    sender->reserved = 0;
}

/* The messages that the last receiver leaves unread. */
struct leftover {
    struct ring ring;
    size_t size;
    void (*drop_message)(void *message, void *arg);
    void *drop_arg;
};

static void drop_messages(struct leftover *unread)
{
    while (unread->drop_message != NULL && unread->ring.length > 0) {
        WF_CALLOUT_BEGIN();
        unread->drop_message(slot(&unread->ring, 0, unread->size), unread->drop_arg);
        WF_CALLOUT_END();
        pop_first(&unread->ring);
    }
    free_ring(&unread->ring, unread->size);
}

/* Drops a handle. count is the channel's count of such handles. */
static void drop(struct wf_channel *channel, struct handle *handle, size_t *count)
{
    struct leftover unread = { 0 };
    struct wf_turn turn;
    wf_turn_begin(&turn, channel);
    (*count)--;
    if (*count == 0) {
        channel->is_closed = true;
    }
    if (channel->receivers == 0) { /* Nothing can be received or sent any more. */
        unread = (struct leftover){ channel->ring, channel->size, channel->drop_message,
                                    channel->drop_arg };
        channel->ring = (struct ring){ 0 };
        channel->sparse = 0;
    }
    if (count == &channel->senders) {
        give_up_room(channel, handle, &turn);
    }
    tell_closed(channel, &turn); /* After this no sender waits for a closed channel. */
    admit(channel, &turn);
    shrink(channel);
    handle->channel = NULL;
    handle->next_free = channel->free_handles;
    channel->free_handles = handle;
    bool is_last = channel->senders + channel->receivers == 0;
    wf_turn_end(&turn);
    if (is_last) {
        free_channel(channel);
    }
    drop_messages(&unread); /* The channel may be freed by now. */
}

void weft_sender_drop(weft_sender *sender)
{
    if (sender != NULL) {
        struct wf_channel *channel = channel_of(&sender->handle, "weft_sender_drop");
        drop(channel, &sender->handle, &channel->senders);
    }
}

void weft_receiver_drop(weft_receiver *receiver)
{
    if (receiver != NULL) {
        struct wf_channel *channel = channel_of(&receiver->handle, "weft_receiver_drop");
        drop(channel, &receiver->handle, &channel->receivers);
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
    close_it(channel_of(&sender->handle, "weft_sender_close"));
}

void weft_receiver_close(weft_receiver *receiver)
{
    close_it(channel_of(&receiver->handle, "weft_receiver_close"));
}

static weft_channel_info info_of(struct wf_channel *channel)
{
    (void)wf_latch_lock(&channel->word);
    const struct ring *ring = &channel->ring;
    weft_channel_info info = { .length = ring->length,
                               .capacity = channel->capacity,
                               .bytes = ring->slots_count * channel->size,
                               .senders = channel->senders,
                               .receivers = channel->receivers,
                               .is_closed = channel->is_closed };
    wf_latch_unlock(&channel->word, 0);
    return info;
}

weft_channel_info weft_sender_info(const weft_sender *sender)
{
    return info_of(channel_of(&sender->handle, "weft_sender_info"));
}

weft_channel_info weft_receiver_info(const weft_receiver *receiver)
{
    return info_of(channel_of(&receiver->handle, "weft_receiver_info"));
}
