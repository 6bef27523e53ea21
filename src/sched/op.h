/* SPDX-License-Identifier: MIT */
/*
 * op.h - an operation on an object that may have to wait (weft/op.h).
 *
 * What all of them have in common is here: a wait and one node of it, a future that polls
 * and cancels them. A kind of operation says how it begins, ends and leaves. The object has a
 * lock, and queues of those who wait for something.
 *
 *   begin   takes what is wanted; or, under the object's lock, enlists the operation
 *   end     after the grant: the result. It may find that another was faster, and enlist
 *           the operation again
 *   leave   takes the operation out of its queue, under the object's lock
 *
 * An operation that is cancelled leaves first, and gives up its wait then: so whoever is in a
 * queue, as seen under the lock, is waiting. A poll gives WEFT_ECANCELED then, or ends the
 * operation if the grant was faster; it must not wait again.
 *
 * A granter claims operations and fills them under the object's lock (waitq.h, G1 and G2). It
 * ends their waits (G3) when it has unlocked it, and wakes them then (G4): for who is let go
 * may free the object.
 */
#ifndef WF_SCHED_OP_H
#define WF_SCHED_OP_H

#include <weft/op.h>

#include "sched/waitq.h"

struct wf_op {
    weft_future future; /* its ops are those of a struct wf_op_ops */
    struct wf_wait own;
    struct wf_wait_node node;
    void *object;
    int result;     /* the granter's answer */
    bool cancelled; /* must not wait again */
    bool flag;      /* these are the kind's */
    uint32_t count;
    int64_t time;
    void *data;
};

struct wf_op_ops {
    weft_future_ops future; /* WF_OP_FUTURE */
    /* A result, or WEFT_PENDING: enlisted. */
    int (*begin)(struct wf_op *op);
    /* After a grant: a result, or WEFT_PENDING: enlisted again. NULL: the granter's. */
    int (*end)(struct wf_op *op);
    /* The node may be in a queue, or with a granter. */
    void (*leave)(struct wf_op *op);
};

int wf_op_poll(weft_future *future);
bool wf_op_cancel(weft_future *future);

#define WF_OP_FUTURE                                                                               \
    {                                                                                              \
        .poll = wf_op_poll, .cancel = wf_op_cancel                                                 \
    }

/* Prepares an operation; the kind's members are zero. */
struct wf_op *wf_op_init(weft_op *op, const struct wf_op_ops *ops, void *object);

/* Waits for it, in the call of that name, on a fiber or a plain thread; aborts elsewhere, and
 * says what to use in a body. */
int wf_op_await(weft_op *op, weft_time deadline, const char *call);

/* May this fiber or thread have, without a wf_op_await(), what is ready? Not if it is
 * cancelled, or has had too much in this poll. Counts it. */
bool wf_op_may_take(void);

/* In begin and end, under the object's lock: the operation waits from now on, at the end of this
 * queue or as its first. WEFT_PENDING. */
int wf_op_enlist(struct wf_op *op, struct wf_waitq *queue);
int wf_op_enlist_first(struct wf_op *op, struct wf_waitq *queue);

/* In leave, under the object's lock: takes the operation out of the queue. False: it is in
 * none, a granter has it. */
bool wf_op_delist(struct wf_op *op);

/* The first operation in a queue, which may be decided; or NULL. */
struct wf_op *wf_op_first(const struct wf_waitq *queue);

/* The one behind this one, or NULL. */
struct wf_op *wf_op_after(const struct wf_waitq *queue, const struct wf_op *op);

/* Calls that a granter has claimed. */
struct wf_grants {
    struct wf_list nodes;
};

static inline void wf_grants_init(struct wf_grants *grants)
{
    wf_list_init(&grants->nodes);
}

/* Under the object's lock: claims the first operation of the queue that still waits, for the
 * granter to fill. NULL: there is none, and the queue is empty. */
struct wf_op *wf_grants_claim(struct wf_grants *grants, struct wf_waitq *queue);

/* Under the object's lock: takes this operation, which is in a queue, out of it, and claims it.
 * False: it is decided. */
bool wf_grants_claim_this(struct wf_grants *grants, struct wf_op *op);

/* Claims all of a queue, which get this answer. */
void wf_grants_claim_all(struct wf_grants *grants, struct wf_waitq *queue, int result);

/* Under no lock: lets them go. */
void wf_grants_fire(struct wf_grants *grants);

#endif
