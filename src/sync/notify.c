/* SPDX-License-Identifier: MIT */
/*
 * notify.c - a notification, for one who waits or the next one who does.
 *
 * The word says whether a notification is STORED; the latch in the word guards the queue.
 * One is stored only while nobody waits. A waiter that is cancelled when it has been notified
 * has been notified: so none is lost.
 *
 * Edges: latch.h's [E1]: who notifies releases the word, who finds it STORED acquires it.
 *
 * Checked by tests/model/event_model.c.
 */
#include <weft/event.h>

#include "base/latch.h"
#include "sched/op.h"

enum {
    STORED = 1 << WF_LATCH_SHIFT,
};

struct wf_notify {
    _Atomic(uint32_t) word;
    struct wf_waitq waiters; /* under the latch */
};

_Static_assert(sizeof(struct wf_notify) <= sizeof(weft_notify), "weft_notify is too small");

void weft_notify_one(weft_notify *notify)
{
    struct wf_notify *self = (struct wf_notify *)notify;
    struct wf_grants grants;
    wf_grants_init(&grants);
    uint32_t bits = wf_latch_lock(&self->word);
    if (wf_grants_claim(&grants, &self->waiters) == NULL) {
        bits = STORED;
    }
    wf_latch_unlock(&self->word, bits);
    wf_grants_fire(&grants);
}

void weft_notify_all(weft_notify *notify)
{
    struct wf_notify *self = (struct wf_notify *)notify;
    struct wf_grants grants;
    wf_grants_init(&grants);
    uint32_t bits = wf_latch_lock(&self->word);
    wf_grants_claim_all(&grants, &self->waiters, 0);
    wf_latch_unlock(&self->word, bits);
    wf_grants_fire(&grants);
}

static int wait_begin(struct wf_op *op)
{
    struct wf_notify *notify = op->object;
    uint32_t bits = wf_latch_lock(&notify->word);
    int result = bits == STORED ? 0 : wf_op_enlist(op, &notify->waiters);
    wf_latch_unlock(&notify->word, 0);
    return result;
}

static void wait_leave(struct wf_op *op)
{
    struct wf_notify *notify = op->object;
    uint32_t bits = wf_latch_lock(&notify->word);
    (void)wf_op_delist(op);
    wf_latch_unlock(&notify->word, bits);
}

static const struct wf_op_ops wait_ops = { .future = WF_OP_FUTURE,
                                           .begin = wait_begin,
                                           .leave = wait_leave };

void weft_notify_wait_init(weft_op *op, weft_notify *notify)
{
    (void)wf_op_init(op, &wait_ops, notify);
}

int weft_notify_wait(weft_notify *notify, weft_time deadline)
{
    weft_op op;
    weft_notify_wait_init(&op, notify);
    return wf_op_await(&op, deadline, "weft_notify_wait");
}
