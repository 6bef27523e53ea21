/* SPDX-License-Identifier: MIT */
/*
 * calls_chan.c - awaiting calls of channels: weft/channel.h, oneshot.h, watch.h, broadcast.h.
 */
#include "calls.h"
#include "test.h"

enum {
    WANTED = 42,
    OTHER = 7,
};

/* --- weft/channel.h ----------------------------------------------------------------------- */

struct channel_state {
    weft_sender *sender;
    weft_receiver *receiver;
    weft_op op;
    int sent;
    int got[4];
};
CALL_STATE(struct channel_state);

static void channel_setup(void *state)
{
    struct channel_state *self = state;
    self->sent = WANTED;
    CHECK_EQ(weft_channel_make(&self->sender, &self->receiver, sizeof(int), 1), 0);
}

static void full_setup(void *state)
{
    struct channel_state *self = state;
    int other = OTHER;
    channel_setup(state);
    CHECK_EQ(weft_try_send(self->sender, &other), 0);
}

/* The channel is full: receives this message. */
static void take_one(struct channel_state *self, int wanted)
{
    int got = 0;
    CHECK_EQ(weft_try_recv(self->receiver, &got), 0);
    CHECK_EQ(got, wanted);
}

static void send_ready(void *state)
{
    take_one(state, OTHER);
}

static int64_t send_call(void *state, weft_time deadline)
{
    struct channel_state *self = state;
    return weft_send(self->sender, &self->sent, deadline);
}

static weft_future *send_prep(void *state)
{
    struct channel_state *self = state;
    weft_send_init(&self->op, self->sender, &self->sent);
    return &self->op.future;
}

static void send_undo(void *state)
{
    struct channel_state *self = state;
    int other = OTHER;
    take_one(self, WANTED);
    CHECK_EQ(weft_try_send(self->sender, &other), 0);
}

static int64_t reserve_call(void *state, weft_time deadline)
{
    return weft_reserve(((struct channel_state *)state)->sender, deadline);
}

static weft_future *reserve_prep(void *state)
{
    struct channel_state *self = state;
    weft_reserve_init(&self->op, self->sender);
    return &self->op.future;
}

static void reserve_undo(void *state)
{
    struct channel_state *self = state;
    int other = OTHER;
    weft_send_reserved(self->sender, &other);
}

static void recv_ready(void *state)
{
    struct channel_state *self = state;
    CHECK_EQ(weft_try_send(self->sender, &self->sent), 0);
}

static int64_t recv_call(void *state, weft_time deadline)
{
    struct channel_state *self = state;
    return weft_recv(self->receiver, self->got, deadline);
}

static int64_t recv_many_call(void *state, weft_time deadline)
{
    struct channel_state *self = state;
    return weft_recv_many(self->receiver, self->got, 4, deadline);
}

static weft_future *recv_prep(void *state)
{
    struct channel_state *self = state;
    weft_recv_init(&self->op, self->receiver, self->got);
    return &self->op.future;
}

static void recv_undo(void *state)
{
    struct channel_state *self = state;
    CHECK_EQ(self->got[0], WANTED);
    self->got[0] = 0;
}

static void channel_close(void *state)
{
    weft_receiver_close(((struct channel_state *)state)->receiver);
}

static void channel_teardown(void *state)
{
    struct channel_state *self = state;
    weft_sender_drop(self->sender);
    weft_receiver_drop(self->receiver);
}

/* --- weft/oneshot.h ----------------------------------------------------------------------- */

struct oneshot_state {
    weft_oneshot oneshot;
    weft_op op;
    int slot;
    int got;
};
CALL_STATE(struct oneshot_state);

static void oneshot_ready(void *state)
{
    struct oneshot_state *self = state;
    int value = WANTED;
    CHECK_EQ(weft_oneshot_send(&self->oneshot, &self->slot, &value, sizeof value), 0);
}

static int64_t oneshot_call(void *state, weft_time deadline)
{
    struct oneshot_state *self = state;
    return weft_oneshot_recv(&self->oneshot, &self->slot, &self->got, sizeof self->got, deadline);
}

static weft_future *oneshot_prep(void *state)
{
    struct oneshot_state *self = state;
    weft_oneshot_recv_init(&self->op, &self->oneshot, &self->slot, &self->got, sizeof self->got);
    return &self->op.future;
}

static void oneshot_undo(void *state)
{
    struct oneshot_state *self = state;
    CHECK_EQ(self->got, WANTED);
    self->oneshot = (weft_oneshot){ { 0 } };
    self->slot = 0;
    self->got = 0;
}

static void oneshot_close(void *state)
{
    weft_oneshot_close(&((struct oneshot_state *)state)->oneshot);
}

/* --- weft/watch.h ------------------------------------------------------------------------- */

struct watch_state {
    weft_watch_sender *sender;
    weft_watch_receiver *receiver;
    weft_op op;
    int got;
};
CALL_STATE(struct watch_state);

static void watch_setup(void *state)
{
    struct watch_state *self = state;
    int first = OTHER;
    CHECK_EQ(weft_watch_make(&self->sender, &self->receiver, sizeof first, &first), 0);
    weft_watch_get(self->receiver, &first);
}

static void watch_ready(void *state)
{
    struct watch_state *self = state;
    int value = WANTED;
    CHECK_EQ(weft_watch_send(self->sender, &value), 0);
}

static int64_t watch_recv(void *state, weft_time deadline)
{
    struct watch_state *self = state;
    return weft_watch_recv(self->receiver, &self->got, deadline);
}

static weft_future *watch_recv_prep(void *state)
{
    struct watch_state *self = state;
    weft_watch_recv_init(&self->op, self->receiver, &self->got);
    return &self->op.future;
}

static bool is_wanted(const void *value, void *arg)
{
    (void)arg;
    return *(const int *)value == WANTED;
}

static int64_t watch_wait_for(void *state, weft_time deadline)
{
    struct watch_state *self = state;
    return weft_watch_wait_for(self->receiver, is_wanted, NULL, &self->got, deadline);
}

static weft_future *watch_wait_for_prep(void *state)
{
    struct watch_state *self = state;
    weft_watch_wait_for_init(&self->op, self->receiver, is_wanted, NULL, &self->got);
    return &self->op.future;
}

static void watch_undo(void *state)
{
    struct watch_state *self = state;
    int other = OTHER;
    CHECK_EQ(self->got, WANTED);
    CHECK_EQ(weft_watch_send(self->sender, &other), 0);
    weft_watch_get(self->receiver, &other);
}

static void watch_close(void *state)
{
    weft_watch_close(((struct watch_state *)state)->sender);
}

static void watch_teardown(void *state)
{
    struct watch_state *self = state;
    weft_watch_sender_drop(self->sender);
    weft_watch_receiver_drop(self->receiver);
}

/* --- weft/broadcast.h --------------------------------------------------------------------- */

struct broadcast_state {
    weft_broadcast_sender *sender;
    weft_broadcast_receiver *receiver;
    weft_op op;
    uint64_t missed;
    int got[4];
};
CALL_STATE(struct broadcast_state);

static void broadcast_setup(void *state)
{
    struct broadcast_state *self = state;
    CHECK_EQ(weft_broadcast_make(&self->sender, &self->receiver, sizeof(int), 4), 0);
}

static void broadcast_ready(void *state)
{
    struct broadcast_state *self = state;
    int value = WANTED;
    CHECK_GE(weft_broadcast_send(self->sender, &value), 0);
}

static int64_t broadcast_recv(void *state, weft_time deadline)
{
    struct broadcast_state *self = state;
    return weft_broadcast_recv(self->receiver, self->got, &self->missed, deadline);
}

static int64_t broadcast_recv_many(void *state, weft_time deadline)
{
    struct broadcast_state *self = state;
    return weft_broadcast_recv_many(self->receiver, self->got, 4, &self->missed, deadline);
}

static weft_future *broadcast_prep(void *state)
{
    struct broadcast_state *self = state;
    weft_broadcast_recv_init(&self->op, self->receiver, self->got, &self->missed);
    return &self->op.future;
}

static void broadcast_undo(void *state)
{
    struct broadcast_state *self = state;
    CHECK_EQ(self->got[0], WANTED);
    CHECK_EQ(self->missed, 0);
    self->got[0] = 0;
}

static void broadcast_close(void *state)
{
    weft_broadcast_close(((struct broadcast_state *)state)->sender);
}

static void broadcast_teardown(void *state)
{
    struct broadcast_state *self = state;
    weft_broadcast_sender_drop(self->sender);
    weft_broadcast_receiver_drop(self->receiver);
}

static const struct call table[] = {
    { .name = "weft_send",
      .setup = full_setup,
      .make_ready = send_ready,
      .call = send_call,
      .prep = send_prep,
      .undo = send_undo,
      .close = channel_close,
      .closed = WEFT_ECLOSED,
      .teardown = channel_teardown },
    { .name = "weft_reserve",
      .setup = full_setup,
      .make_ready = send_ready,
      .call = reserve_call,
      .prep = reserve_prep,
      .undo = reserve_undo,
      .close = channel_close,
      .closed = WEFT_ECLOSED,
      .teardown = channel_teardown },
    { .name = "weft_recv",
      .setup = channel_setup,
      .make_ready = recv_ready,
      .call = recv_call,
      .prep = recv_prep,
      .undo = recv_undo,
      .close = channel_close,
      .closed = WEFT_ECLOSED,
      .teardown = channel_teardown },
    { .name = "weft_recv_many",
      .ready = 1,
      .setup = channel_setup,
      .make_ready = recv_ready,
      .call = recv_many_call,
      .undo = recv_undo,
      .close = channel_close,
      .closed = WEFT_ECLOSED,
      .teardown = channel_teardown },
    { .name = "weft_oneshot_recv",
      .make_ready = oneshot_ready,
      .call = oneshot_call,
      .prep = oneshot_prep,
      .undo = oneshot_undo,
      .close = oneshot_close,
      .closed = WEFT_ECLOSED },
    { .name = "weft_watch_recv",
      .setup = watch_setup,
      .make_ready = watch_ready,
      .call = watch_recv,
      .prep = watch_recv_prep,
      .undo = watch_undo,
      .close = watch_close,
      .closed = WEFT_ECLOSED,
      .teardown = watch_teardown },
    { .name = "weft_watch_wait_for",
      .setup = watch_setup,
      .make_ready = watch_ready,
      .call = watch_wait_for,
      .prep = watch_wait_for_prep,
      .undo = watch_undo,
      .close = watch_close,
      .closed = WEFT_ECLOSED,
      .teardown = watch_teardown },
    { .name = "weft_broadcast_recv",
      .setup = broadcast_setup,
      .make_ready = broadcast_ready,
      .call = broadcast_recv,
      .prep = broadcast_prep,
      .undo = broadcast_undo,
      .close = broadcast_close,
      .closed = WEFT_ECLOSED,
      .teardown = broadcast_teardown },
    { .name = "weft_broadcast_recv_many",
      .ready = 1,
      .setup = broadcast_setup,
      .make_ready = broadcast_ready,
      .call = broadcast_recv_many,
      .undo = broadcast_undo,
      .close = broadcast_close,
      .closed = WEFT_ECLOSED,
      .teardown = broadcast_teardown },
};

CALL_GROUP(calls_chan, table);
