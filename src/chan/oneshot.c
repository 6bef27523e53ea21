/* SPDX-License-Identifier: MIT */
/*
 * oneshot.c - oneshot channel: carries a single value.
 *
 * The word holds the state: zero; SENT, the value is in the slot; TAKEN, the value was
 * received, or was given directly to a waiter; CLOSED, before it was sent or after.
 *
 *   Send, with the latch                   Receive
 *   S1  SENT, TAKEN or CLOSED: refused     R1  SENT: TAKEN, by CAS; then copy
 *   S2  a receiver waits: copy the value   R2  else, with the latch: as R1, or
 *       to its destination; TAKEN              closed, or wait
 *   S3  else copy it to the slot; SENT
 *
 * The slot is written once, before SENT, and read once, by the receiver that has set TAKEN.
 *
 * Edges: latch.h's [E1]: the sender releases the latch with SENT, which releases the word. The
 * receiver that takes the value acquires the word, and sees what was done before the value was
 * sent.
 *
 * Checked by tests/model/oneshot_model.c.
 */
#include <weft/oneshot.h>

#include "base/assert.h"
#include "base/latch.h"
#include "chan/message.h"
#include "sched/op.h"

enum {
    SENT = 1 << WF_LATCH_SHIFT,
    TAKEN = 2 << WF_LATCH_SHIFT,
    CLOSED = 4 << WF_LATCH_SHIFT,
};

struct wf_oneshot {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch; data: where the value goes */
};

_Static_assert(sizeof(struct wf_oneshot) <= sizeof(weft_oneshot), "weft_oneshot is too small");

/* A receive operation. */
struct receiving {
    struct wf_op op;
    const void *slot;
    size_t size;
};

_Static_assert(sizeof(struct receiving) <= sizeof(weft_op), "weft_op is too small");

int weft_oneshot_send(weft_oneshot *oneshot, void *slot, const void *value, size_t size)
{
    struct wf_oneshot *self = (struct wf_oneshot *)oneshot;
    struct wf_turn turn;
    int result = 0;
    wf_turn_begin(&turn, self);
    if ((turn.bits & (SENT | TAKEN)) != 0) {
        result = -EEXIST;
    } else if ((turn.bits & CLOSED) != 0) {
        result = WEFT_ECLOSED;
    } else {
        struct wf_op *receiver = wf_turn_claim(&turn, &self->waiters);
        wf_message_copy(receiver != NULL ? receiver->data : slot, value, size);
        turn.bits = receiver != NULL ? TAKEN : SENT;
        wf_turn_claim_all(&turn, &self->waiters, WEFT_ECLOSED);
    }
    wf_turn_end(&turn);
    return result;
}

/* R2. Returns 0 if the receiver gets the value, otherwise WEFT_ECLOSED or WEFT_PENDING. */
static int take_bits(uint32_t *bits)
{
    if ((*bits & SENT) != 0) {
        *bits = (*bits & ~(uint32_t)SENT) | TAKEN;
        return 0;
    }
    return *bits != 0 ? WEFT_ECLOSED : WEFT_PENDING;
}

static int recv_take(struct wf_op *op, struct wf_turn *turn)
{
    const struct receiving *self = (const struct receiving *)op;
    int result = take_bits(&turn->bits);
    if (result == 0) {
        wf_message_copy(op->data, self->slot, self->size);
    }
    return result;
}

static const struct wf_op_ops recv_ops = { .future = WF_OP_FUTURE,
                                           .take = recv_take,
                                           .queue = offsetof(struct wf_oneshot, waiters) };

void weft_oneshot_recv_init(weft_op *op, weft_oneshot *oneshot, const void *slot, void *value,
                            size_t size)
{
    struct receiving *self = (struct receiving *)wf_op_init(op, &recv_ops, oneshot);
    self->op.data = value;
    self->slot = slot;
    self->size = size;
}

int weft_oneshot_try_recv(weft_oneshot *oneshot, const void *slot, void *value, size_t size)
{
    struct wf_oneshot *self = (struct wf_oneshot *)oneshot;
    uint32_t word = SENT;
    int result = 0;
    /* acquire latch.h's [E1]: sees the value. */
    if (wf_unlikely(!wf_cas_acquire(&self->word, &word, (uint32_t)TAKEN))) {
        uint32_t bits = wf_latch_lock(&self->word);
        result = take_bits(&bits);
        wf_latch_unlock(&self->word, bits);
    }
    if (result == 0) {
        wf_message_copy(value, slot, size);
    }
    return result == WEFT_PENDING ? -EAGAIN : result;
}

int weft_oneshot_recv(weft_oneshot *oneshot, const void *slot, void *value, size_t size,
                      weft_time deadline)
{
    int result = wf_op_enter(&deadline, "weft_oneshot_recv");
    if (wf_unlikely(result != 0)) {
        return result;
    }
    result = weft_oneshot_try_recv(oneshot, slot, value, size);
    if (result != -EAGAIN) {
        return result;
    }
    weft_op op;
    weft_oneshot_recv_init(&op, oneshot, slot, value, size);
    return wf_op_await_slowly(&op, deadline);
}

void weft_oneshot_close(weft_oneshot *oneshot)
{
    struct wf_oneshot *self = (struct wf_oneshot *)oneshot;
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    turn.bits |= CLOSED;
    wf_turn_claim_all(&turn, &self->waiters, WEFT_ECLOSED);
    wf_turn_end(&turn);
}

bool weft_oneshot_is_closed(const weft_oneshot *oneshot)
{
    const struct wf_oneshot *self = (const struct wf_oneshot *)oneshot;
    /* relaxed: a snapshot that may be stale on return. */
    return (wf_load_relaxed(&self->word) & (TAKEN | CLOSED)) != 0;
}
