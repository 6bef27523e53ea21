/* SPDX-License-Identifier: MIT */
/*
 * wait_group.c - wait group: a count of pending work, and waiting until it is zero.
 *
 * The word holds the count, and says whether a task is WAITING in the queue, which is guarded
 * by the latch in the same word. If tasks wait, the call that ends the last pending work claims
 * all of them, releases the latch, which is its last access to the group, and wakes them.
 *
 * Edges.
 * [O2] done releases the word, a caller that finds no pending work acquires it: it sees what
 *      was done. A waiter sees it through the latch and the end of its wait.
 *
 * Checked by tests/model/barrier_model.c.
 */
#include <weft/barrier.h>

#include "base/assert.h"
#include "sched/op.h"

enum {
    WAITING = 1 << WF_LATCH_SHIFT,
    ONE = 2 << WF_LATCH_SHIFT,
};

struct wf_wait_group {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch */
};

_Static_assert(sizeof(struct wf_wait_group) <= sizeof(weft_wait_group), "weft_wait_group is small");

void weft_wait_group_add(weft_wait_group *group, uint32_t count)
{
    struct wf_wait_group *self = (struct wf_wait_group *)group;
    uint32_t bits = wf_latch_lock(&self->word);
    if (wf_unlikely(count > UINT32_MAX / ONE - bits / ONE)) {
        wf_fatal("weft_wait_group_add: too many are under way; call weft_wait_group_done()");
    }
    wf_latch_unlock(&self->word, bits + count * ONE);
}

/* Ends the last pending work, or work whose end finds the latch held. */
static void end_slowly(struct wf_wait_group *group)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, group);
    turn.bits -= ONE;
    if (turn.bits / ONE == 0) {
        wf_turn_claim_all(&turn, &group->waiters, 0);
        turn.bits = 0;
    }
    wf_turn_end(&turn);
}

void weft_wait_group_done(weft_wait_group *group)
{
    struct wf_wait_group *self = (struct wf_wait_group *)group;
    /* relaxed: a guess that the CAS verifies. */
    uint32_t word = wf_load_relaxed(&self->word);
    for (;;) {
        if (wf_unlikely(word / ONE == 0)) {
            wf_fatal("weft_wait_group_done: none is under way; call weft_wait_group_add() before");
        }
        bool is_last = word / ONE == 1;
        if (!wf_latch_is_open(word) || (is_last && (word & WAITING) != 0)) {
            break;
        }
        /* release [O2]: waiters see what was done. */
        if (wf_cas_weak_release(&self->word, &word, word - ONE)) {
            return;
        }
    }
    end_slowly(self);
}

static int wait_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)op;
    return turn->bits / ONE == 0 ? 0 : WEFT_PENDING;
}

static void wait_enlist(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_wait_group *group = op->object;
    turn->bits |= WAITING;
    wf_op_enlist(op, &group->waiters);
}

static const struct wf_op_ops wait_ops = { .future = WF_OP_FUTURE,
                                           .take = wait_take,
                                           .enlist = wait_enlist };

void weft_wait_group_wait_init(weft_op *op, weft_wait_group *group)
{
    (void)wf_op_init(op, &wait_ops, group);
}

int weft_wait_group_wait(weft_wait_group *group, weft_time deadline)
{
    struct wf_wait_group *self = (struct wf_wait_group *)group;
    int err = wf_op_enter(&deadline, "weft_wait_group_wait");
    if (wf_unlikely(err != 0)) {
        return err;
    }
    /* acquire [O2]: sees what was done by the work that has ended. */
    uint32_t word = wf_load_acquire(&self->word);
    if (wf_latch_is_open(word) && word / ONE == 0) {
        return 0;
    }
    weft_op op;
    weft_wait_group_wait_init(&op, group);
    return wf_op_await_slowly(&op, deadline);
}
