/* SPDX-License-Identifier: MIT */
/*
 * barrier.c - a place where so many wait for each other.
 *
 * Those who have come wait in the queue, which is guarded by the latch in the word; they are
 * counted beside it. The last one to come does not wait: it claims all others, lets them go,
 * and the count begins anew. One who gives up has not come.
 *
 * Edges: latch.h's [E1]: what was done before coming is seen by all who go.
 *
 * Checked by tests/model/barrier_model.c.
 */
#include <weft/barrier.h>

#include "sched/op.h"

struct wf_barrier {
    _Atomic(uint32_t) word; /* the latch alone */
    uint32_t parties;
    struct wf_waitq waiters; /* under the latch */
    uint32_t come;           /* in the queue */
};

_Static_assert(sizeof(struct wf_barrier) <= sizeof(weft_barrier), "weft_barrier is too small");

/* The last one lets the others go. */
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

/* Alone: who has come to a barrier counts on all the others who have. */
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
