/* SPDX-License-Identifier: MIT */
/*
 * notify.c - notification of one waiter, or of the next task that waits.
 *
 * The word says whether a notification is STORED, and whether a task is WAITING in the queue,
 * which is guarded by the latch in the same word. A notification is stored only while no task
 * waits: then one CAS stores it, and another takes it. A waiter that is canceled after it was
 * notified has been notified, so no notification is lost.
 *
 * Notifying is always a read-modify-write, even if a notification is STORED already, or if
 * weft_notify_all() finds no waiter: the next waiter sees what the notifier did before.
 *
 * Edges.
 * [NO1] the notifier releases the word, the task that takes the notification acquires it. A
 *       waiter sees it through the latch and the end of its wait.
 *
 * Checked by tests/model/event_model.c.
 */
#include <weft/event.h>

#include "sched/op.h"

enum {
    STORED = 1 << WF_LATCH_SHIFT,
    WAITING = 2 << WF_LATCH_SHIFT,
};

struct wf_notify {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch */
};

_Static_assert(sizeof(struct wf_notify) <= sizeof(weft_notify), "weft_notify is too small");

/* Stores a notification if no task waits. Returns whether it did. */
static bool store(struct wf_notify *notify)
{
    /* relaxed: a guess that the CAS verifies. */
    uint32_t word = wf_load_relaxed(&notify->word);
    while (wf_latch_is_open(word) && (word & WAITING) == 0) {
        /* release [NO1]: the task that takes it sees what was done before. */
        if (wf_cas_weak_release(&notify->word, &word, (uint32_t)STORED)) {
            return true;
        }
    }
    return false;
}

static void look_for_waiters(struct wf_notify *notify, struct wf_turn *turn)
{
    if (wf_waitq_is_empty(&notify->waiters)) {
        turn->bits &= ~(uint32_t)WAITING;
    }
}

static void notify_slowly(struct wf_notify *notify)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, notify);
    bool is_stored = wf_turn_claim(&turn, &notify->waiters) == NULL;
    look_for_waiters(notify, &turn);
    turn.bits |= is_stored ? STORED : 0;
    wf_turn_end(&turn);
}

void weft_notify_one(weft_notify *notify)
{
    struct wf_notify *self = (struct wf_notify *)notify;
    if (!store(self)) {
        notify_slowly(self);
    }
}

void weft_notify_all(weft_notify *notify)
{
    struct wf_notify *self = (struct wf_notify *)notify;
    struct wf_turn turn;
    wf_turn_begin(&turn, self);
    wf_turn_claim_all(&turn, &self->waiters, 0);
    look_for_waiters(self, &turn);
    wf_turn_end(&turn);
}

static int wait_take(struct wf_op *op, struct wf_turn *turn)
{
    (void)op;
    if ((turn->bits & STORED) == 0) {
        return WEFT_PENDING;
    }
    turn->bits &= ~(uint32_t)STORED;
    return 0;
}

static void wait_enlist(struct wf_op *op, struct wf_turn *turn)
{
    struct wf_notify *notify = op->object;
    turn->bits |= WAITING;
    wf_op_enlist(op, &notify->waiters);
}

static void wait_leave(struct wf_op *op, struct wf_turn *turn)
{
    look_for_waiters(op->object, turn);
}

static const struct wf_op_ops wait_ops = {
    .future = WF_OP_FUTURE, .take = wait_take, .enlist = wait_enlist, .leave = wait_leave
};

void weft_notify_wait_init(weft_op *op, weft_notify *notify)
{
    (void)wf_op_init(op, &wait_ops, notify);
}

/* Takes the stored notification, if any. */
static bool take(struct wf_notify *notify)
{
    /* relaxed: a guess that the CAS verifies. */
    uint32_t word = wf_load_relaxed(&notify->word);
    /* acquire [NO1]: sees what was done before the notification. */
    return word == STORED && wf_cas_acquire(&notify->word, &word, 0u);
}

int weft_notify_wait(weft_notify *notify, weft_time deadline)
{
    int err = wf_op_enter(&deadline, "weft_notify_wait");
    if (wf_unlikely(err != 0)) {
        return err;
    }
    if (take((struct wf_notify *)notify)) {
        return 0;
    }
    weft_op op;
    weft_notify_wait_init(&op, notify);
    return wf_op_await_slowly(&op, deadline);
}
