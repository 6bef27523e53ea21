/* SPDX-License-Identifier: MIT */
/*
 * op.h - an operation on an object that may have to wait (weft/op.h).
 *
 * What all of them have in common is here: a wait and one node of it, a future that polls
 * and cancels them. An object begins with its latch (base/latch.h), and has queues of those
 * who wait for something. Whoever holds the latch has its turn at the object, and gives it
 * up with new bits for the object. A kind of operation says what it does in its turn:
 *
 *   take     has what is wanted, if it can be had
 *   enlist   it cannot: the operation waits, in a queue
 *   leave    the operation was in the queue, and gives up
 *   end      later, without the latch: a grant was received. It may find that another was
 *            faster: then it begins again
 *
 * So one wait may be shared by operations on several objects (select.c): it has its turn at
 * all of them at once.
 *
 * An operation that is cancelled leaves first, and gives up its wait then: so who is in a
 * queue waits, or is a branch of a select that was decided and will leave. A poll gives
 * WEFT_ECANCELED then, or ends the operation if the grant was faster; it must not wait again.
 * All of that is under the latch, so the claim of one that waits at a single object is a store.
 *
 * A granter claims operations and fills them in its turn (waitq.h, G1 and G2). It ends their
 * waits (G3) when it has given up the latch, and wakes them then (G4): for who is let go may
 * free the object.
 */
#ifndef WF_SCHED_OP_H
#define WF_SCHED_OP_H

#include <weft/op.h>

#include "base/latch.h"
#include "sched/await.h"
#include "sched/waitq.h"

/* One's turn at an object: its latch is held. */
struct wf_turn {
    _Atomic(uint32_t) *word;
    uint32_t bits;          /* the object's, new ones at the end */
    struct wf_list granted; /* nodes of those that were claimed */
};

struct wf_op {
    weft_future future; /* its ops are those of a struct wf_op_ops */
    struct wf_wait own;
    struct wf_wait_node node;
    void *object;
    int result;     /* the granter's answer */
    bool cancelled; /* must not wait again */
    bool is_back;   /* begins again, after another was faster */
    bool flag;      /* these are the kind's */
    uint32_t count;
    int64_t time;
    void *data;
};

struct wf_op_ops {
    weft_future_ops future; /* WF_OP_FUTURE */
    bool is_alone;          /* cannot be a branch of a select */
    /* A result, or WEFT_PENDING: it cannot be had now. */
    int (*take)(struct wf_op *op, struct wf_turn *turn);
    /* After that, in the same turn: where in the object the queue is at whose end it waits. */
    size_t queue;
    /* Or what it does instead; see wf_op_enlist(). NULL: nothing else. */
    void (*enlist)(struct wf_op *op, struct wf_turn *turn);
    /* It was taken out of the queue. NULL: there is nothing more to do. */
    void (*leave)(struct wf_op *op, struct wf_turn *turn);
    /* After a grant: a result, or WEFT_PENDING: begins again. NULL: the granter's. */
    int (*end)(struct wf_op *op);
};

int wf_op_poll(weft_future *future);
bool wf_op_cancel(weft_future *future);

#define WF_OP_FUTURE                                                                               \
    {                                                                                              \
        .poll = wf_op_poll, .cancel = wf_op_cancel                                                 \
    }

/* Prepares an operation; the kind's members are zero. */
static inline struct wf_op *wf_op_init(weft_op *op, const struct wf_op_ops *ops, void *object)
{
    struct wf_op *self = (struct wf_op *)op;
    self->future.ops = &ops->future;
    wf_wait_init(&self->own);
    self->object = object;
    self->result = 0;
    self->cancelled = false;
    self->is_back = false;
    self->flag = false;
    self->count = 0;
    self->time = 0;
    self->data = NULL;
    return self;
}

static inline const struct wf_op_ops *wf_op_ops_of(const struct wf_op *op)
{
    return wf_container_of(op->future.ops, struct wf_op_ops, future);
}

/* This future as an operation; NULL if it is another kind of future. */
static inline struct wf_op *wf_op_of(weft_future *future)
{
    return future->ops->poll == wf_op_poll ? (struct wf_op *)future : NULL;
}

/* After a grant: the result, or WEFT_PENDING. */
int wf_op_end(struct wf_op *op);

/* In enlist: puts the operation at the end of this queue, or makes it the first. */
static inline void wf_op_enlist(struct wf_op *op, struct wf_waitq *queue)
{
    wf_waitq_add(queue, &op->node);
}

static inline void wf_op_enlist_first(struct wf_op *op, struct wf_waitq *queue)
{
    wf_waitq_add_first(queue, &op->node);
}

/* In a turn: the operation cannot have what it wants, and waits. */
void wf_op_wait(struct wf_op *op, struct wf_turn *turn);

/* In a turn: takes the operation, which may be in a queue, out of it. It must not be with a
 * granter. */
void wf_op_leave(struct wf_op *op, struct wf_turn *turn);

static inline struct wf_op *wf_op_of_link(struct wf_list *link)
{
    return wf_container_of(wf_container_of(link, struct wf_wait_node, link), struct wf_op, node);
}

/* In a turn: the first operation in a queue, which may be decided; or NULL. */
static inline struct wf_op *wf_op_first(const struct wf_waitq *queue)
{
    return wf_waitq_is_empty(queue) ? NULL : wf_op_of_link(queue->nodes.next);
}

/* In a turn: the one behind this one, or NULL. */
static inline struct wf_op *wf_op_after(const struct wf_waitq *queue, const struct wf_op *op)
{
    struct wf_list *next = op->node.link.next;
    return next == &queue->nodes ? NULL : wf_op_of_link(next);
}

/* Begins a turn at an object, which begins with its word. */
static inline void wf_turn_begin(struct wf_turn *turn, void *object)
{
    turn->word = object;
    wf_list_init(&turn->granted);
    turn->bits = wf_latch_lock(turn->word);
}

/* Lets those go who were claimed. */
void wf_turn_fire(struct wf_turn *turn);

/* Ends it: gives up the latch, and lets those go who were claimed. */
static inline void wf_turn_end(struct wf_turn *turn)
{
    wf_latch_unlock(turn->word, turn->bits);
    if (!wf_list_is_empty(&turn->granted)) {
        wf_turn_fire(turn);
    }
}

/* Takes this operation, which is in a queue, out of it, and claims it. False: it is decided. */
bool wf_turn_claim_this(struct wf_turn *turn, struct wf_op *op);

/* Claims the first operation of the queue that still waits, for the granter to fill. NULL:
 * there is none, and the queue is empty. */
static inline struct wf_op *wf_turn_claim(struct wf_turn *turn, struct wf_waitq *queue)
{
    struct wf_op *op;
    while ((op = wf_op_first(queue)) != NULL && !wf_turn_claim_this(turn, op)) {
    }
    return op;
}

/* Claims all of a queue, which get this answer. */
void wf_turn_claim_all(struct wf_turn *turn, struct wf_waitq *queue, int result);

/* May this fiber or thread have what is ready at once? Not if it is cancelled, or has had too
 * much in this poll. Counts it. */
static inline bool wf_op_may_take(void)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker == NULL) {
        const struct wf_thread *thread = wf_thread_known();
        return thread != NULL && wf_thread_may_take(thread);
    }
    const struct wf_fiber *self = wf_fiber_of(worker->current);
    if (wf_unlikely(self == NULL || !wf_await_may_take(self, worker))) {
        return false;
    }
    worker->budget--;
    return true;
}

/* wf_await_enter() for a call whose prepared form is a weft_op. */
static inline int wf_op_enter(weft_time *deadline, const char *call)
{
    return wf_await_enter(deadline, call, "in a body, prepare a weft_op and await it");
}

/* The rest of wf_op_await(): in a turn, waits for what cannot be had now. */
int wf_op_suspend(struct wf_op *op, struct wf_turn *turn, weft_time deadline);

/*
 * Completes the operation, or waits for it, on a fiber or a plain thread that has passed
 * wf_op_enter(). Inlined, with the ops of the operation, so that take() is, too.
 */
static inline __attribute__((always_inline)) int
wf_op_await_entered(struct wf_op *op, const struct wf_op_ops *ops, weft_time deadline)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, op->object);
    int result = ops->take(op, &turn);
    if (result == WEFT_PENDING) {
        return wf_op_suspend(op, &turn, deadline);
    }
    wf_turn_end(&turn);
    return result;
}

/* The same, not inlined, for a caller that has found the object busy. */
int wf_op_await_slowly(weft_op *op, weft_time deadline);

/* Both steps, in the call of that name. Aborts where there is no stack to suspend, and says what
 * to use instead. */
static inline __attribute__((always_inline)) int wf_op_await_inline(struct wf_op *op,
                                                                    const struct wf_op_ops *ops,
                                                                    weft_time deadline,
                                                                    const char *call)
{
    int err = wf_op_enter(&deadline, call);
    return wf_likely(err == 0) ? wf_op_await_entered(op, ops, deadline) : err;
}

/* The same, not inlined. */
int wf_op_await(weft_op *op, weft_time deadline, const char *call);

#endif
