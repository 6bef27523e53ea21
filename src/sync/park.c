/* SPDX-License-Identifier: MIT */
/*
 * park.c - parking lot: waiting on an address.
 *
 * Addresses are hashed into a table of buckets, each with a queue and a latch. Addresses that
 * share a bucket share its queue, and each finds its own waiters there. A task that parks asks
 * under the latch whether it must wait, and is enqueued before the latch is released. A task
 * that unparks others has changed the answer before it takes the latch. So one of them sees the
 * other.
 *
 * Edges: latch.h's [E1], as above.
 *
 * Checked by tests/model/parking_model.c.
 */
#include <weft/park.h>

#include <stdalign.h>

#include "base/callout.h"
#include "sched/op.h"

enum {
#ifdef WF_MODEL
    PLACES = 1,
#else
    PLACES = 256,
#endif
};

struct place {
    alignas(64) _Atomic(uint32_t) word; /* the latch alone */
    struct wf_waitq waiters;            /* under the latch */
};

static struct place places[PLACES];

static struct place *place_of(const void *address)
{
    /* Fibonacci hashing: the upper bits of the product are well mixed. */
    uint64_t mixed = (uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15);
    return &places[(mixed >> 32) % PLACES];
}

struct question {
    weft_park_fn must_wait;
    void *arg;
};

/* A park operation: its object is the bucket; with its address and the question to ask. */
struct parked {
    struct wf_op op;
    const void *address;
    struct question question;
};

_Static_assert(sizeof(struct parked) <= sizeof(weft_op), "weft_op is too small");

static int park_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    const struct question *question = &((struct parked *)op)->question;
    if (question->must_wait == NULL) {
        return WEFT_PENDING;
    }
    WF_CALLOUT_BEGIN();
    bool waits = question->must_wait(question->arg);
    WF_CALLOUT_END();
    return waits ? WEFT_PENDING : -EAGAIN;
}

static const struct wf_op_ops park_ops = { .future = WF_OP_FUTURE,
                                           .take = park_take,
                                           .queue = offsetof(struct place, waiters) };

void weft_park_init(weft_op *op, const void *address, weft_park_fn must_wait, void *arg)
{
    (void)wf_op_init(op, &park_ops, place_of(address));
    struct parked *parked = (struct parked *)op;
    parked->address = address;
    parked->question = (struct question){ must_wait, arg };
}

int weft_park(const void *address, weft_park_fn must_wait, void *arg, weft_time deadline)
{
    weft_op op;
    weft_park_init(&op, address, must_wait, arg);
    return wf_op_await(&op, deadline, "weft_park");
}

size_t weft_unpark(const void *address, size_t most)
{
    struct place *place = place_of(address);
    struct wf_turn turn;
    size_t count = 0;
    wf_turn_begin(&turn, place);
    struct wf_op *next = wf_op_first(&place->waiters);
    while (next != NULL && count < most) {
        struct wf_op *op = next;
        next = wf_op_after(&place->waiters, op);
        if (((struct parked *)op)->address == address && wf_turn_claim_this(&turn, op)) {
            count++;
        }
    }
    wf_turn_end(&turn);
    return count;
}
