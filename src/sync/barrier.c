/* SPDX-License-Identifier: MIT */
/*
 * barrier.c - barrier at which a fixed number of parties wait for each other.
 *
 * The parties that have arrived wait in the queue, which is guarded by the latch in the word,
 * and are counted beside it. The last party to arrive does not wait: it claims all others,
 * wakes them, and the count starts again from 0. A party that gives up has not arrived.
 *
 * Edges: latch.h's [E1]: all parties see what each of them did before it arrived.
 *
 * Checked by tests/model/barrier_model.c.
 */
#include <weft/barrier.h>

#include "sched/op.h"

struct wf_barrier {
    _Atomic(uint32_t) word; /* the latch alone */
    uint32_t parties;
    struct wf_waitq waiters; /* under the latch */
    uint32_t come;           /* number of parties in the queue */
};

_Static_assert(sizeof(struct wf_barrier) <= sizeof(weft_barrier), "weft_barrier is too small");

/* The last party to arrive wakes the others. */
static int wait_take(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_barrier *barrier = op->object;
    if (barrier->come + 1 < barrier->parties) {
        return WEFT_PENDING;
    }
    wf_turn_claim_all(turn, &barrier->waiters, 0);
    barrier->come = 0;
    return 1;
}

static void wait_enlist(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    struct wf_barrier *barrier = op->object;
    barrier->come++;
    wf_op_enlist(op, &barrier->waiters);
}

static void wait_leave(struct wf_op *op, struct wf_turn *turn)
{
    (void)turn;
    struct wf_barrier *barrier = op->object;
    barrier->come--;
}

/* Alone: a party that has arrived relies on all other parties that have, so it cannot be in a
 * select. */
static const struct wf_op_ops wait_ops = { .future = WF_OP_FUTURE,
                                           .is_alone = true,
                                           .take = wait_take,
                                           .enlist = wait_enlist,
                                           .leave = wait_leave };

void weft_barrier_init(weft_barrier *barrier, uint32_t parties)
{
    *barrier = (weft_barrier)WEFT_BARRIER_INIT(parties);
}

void weft_barrier_wait_init(weft_op *op, weft_barrier *barrier)
{
    (void)wf_op_init(op, &wait_ops, barrier);
}

int weft_barrier_wait(weft_barrier *barrier, weft_time deadline)
{
    weft_op op;
    weft_barrier_wait_init(&op, barrier);
    return wf_op_await(&op, deadline, "weft_barrier_wait");
}
