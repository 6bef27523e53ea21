/* SPDX-License-Identifier: MIT */
/*
 * op.h - operation on an object that may have to wait (weft/op.h).
 *
 * This is the common part of all operations: a wait with one node, and a future that polls and
 * cancels them. An object begins with its latch (base/latch.h) and has queues of waiters. The
 * holder of the latch is in the object's critical section, called a turn, and releases the
 * latch with new bits for the object. A kind of operation defines what it does with the latch
 * held:
 *
 *   take     takes what is wanted, if it is available
 *   enlist   it is not: enqueues the operation as a waiter
 *   leave    the operation was in the queue and gives up
 *   end      later, without the latch: a grant was received. It may find that another
 *            caller was faster; then the operation begins again
 *
 * So operations on several objects may share one wait (select.c), which holds the latches of
 * all of them at the same time.
 *
 * An operation that is canceled first leaves the queue and then gives up its wait. So an
 * operation in a queue is waiting, or is a branch of a decided select that is about to leave. A
 * poll then returns WEFT_ECANCELED, or ends the operation if the grant was faster. It must not
 * wait again. All of that happens under the latch, so claiming an operation that waits for a
 * single object is a plain store.
 *
 * A granter claims operations and fills them with the latch held (waitq.h, G1 and G2). It ends
 * their waits (G3) after it has released the latch, and then wakes them (G4), because a waiter
 * that is released may free the object.
 */
#ifndef WF_SCHED_OP_H
#define WF_SCHED_OP_H

#include <weft/op.h>

#include "base/latch.h"
#include "sched/await.h"
#include "sched/waitq.h"

/* A critical section at an object: its latch is held. */
struct wf_turn {
    _Atomic(uint32_t) *word;
    uint32_t bits;          /* the object's; new ones are stored at the end */
    struct wf_list granted; /* nodes of the claimed operations */
};

struct wf_op {
    weft_future future; /* its ops are part of a struct wf_op_ops */
    struct wf_wait own;
    struct wf_wait_node node;
    void *object;
    int result;     /* set by the granter */
    bool cancelled; /* must not wait again */
    bool is_back;   /* begins again because another caller was faster */
    bool flag;      /* the rest belongs to the kind of operation */
    uint32_t count;
    int64_t time;
    void *data;
};

struct wf_op_ops {
    weft_future_ops future; /* WF_OP_FUTURE */
    bool is_alone;          /* cannot be a branch of a select */
    /* Returns a result, or WEFT_PENDING if what is wanted is not available. */
    int (*take)(struct wf_op *op, struct wf_turn *turn);
    /* Afterwards, in the same critical section: offset in the object of the queue at whose end
     * the operation waits. */
    size_t queue;
    /* Replaces the above; see wf_op_enlist(). NULL: the default. */
    void (*enlist)(struct wf_op *op, struct wf_turn *turn);
    /* Called after the operation was removed from the queue. NULL: nothing more to do. */
    void (*leave)(struct wf_op *op, struct wf_turn *turn);
    /* After a grant: returns a result, or WEFT_PENDING to begin again. NULL: the granter's
     * result. */
    int (*end)(struct wf_op *op);
};

int wf_op_poll(weft_future *future);
bool wf_op_cancel(weft_future *future);

#define WF_OP_FUTURE                                                                               \
    {                                                                                              \
        .poll = wf_op_poll, .cancel = wf_op_cancel                                                 \
    }

/* Prepares an operation. The members of the kind are zeroed. */
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

/* Returns this future as an operation; NULL if it is another kind of future. */
static inline struct wf_op *wf_op_of(weft_future *future)
{
    return future->ops->poll == wf_op_poll ? (struct wf_op *)future : NULL;
}

/* After a grant: returns the result, or WEFT_PENDING. */
int wf_op_end(struct wf_op *op);

/* In enlist: puts the operation at the end of this queue, or at its front. */
static inline void wf_op_enlist(struct wf_op *op, struct wf_waitq *queue)
{
    wf_waitq_add(queue, &op->node);
}

static inline void wf_op_enlist_first(struct wf_op *op, struct wf_waitq *queue)
{
    wf_waitq_add_first(queue, &op->node);
}

/* With the latch held: makes the operation wait, because what it wants is not available. */
void wf_op_wait(struct wf_op *op, struct wf_turn *turn);

/* With the latch held: removes the operation from its queue, if it is in one. No granter may
 * have claimed it. */
void wf_op_leave(struct wf_op *op, struct wf_turn *turn);

static inline struct wf_op *wf_op_of_link(struct wf_list *link)
{
    return wf_container_of(wf_container_of(link, struct wf_wait_node, link), struct wf_op, node);
}

/* With the latch held: returns the first operation in a queue, which may be decided; NULL if
 * there is none. */
static inline struct wf_op *wf_op_first(const struct wf_waitq *queue)
{
    return wf_waitq_is_empty(queue) ? NULL : wf_op_of_link(queue->nodes.next);
}

/* With the latch held: returns the operation behind this one, or NULL. */
static inline struct wf_op *wf_op_after(const struct wf_waitq *queue, const struct wf_op *op)
{
    struct wf_list *next = op->node.link.next;
    return next == &queue->nodes ? NULL : wf_op_of_link(next);
}

/* Begins a critical section at an object, whose first member is its latch. */
static inline void wf_turn_begin(struct wf_turn *turn, void *object)
{
    turn->word = object;
    wf_list_init(&turn->granted);
    turn->bits = wf_latch_lock(turn->word);
}

/* Same as wf_turn_begin(), for a caller that holds the latch already, and got these bits. */
static inline void wf_turn_continue(struct wf_turn *turn, void *object, uint32_t bits)
{
    turn->word = object;
    wf_list_init(&turn->granted);
    turn->bits = bits;
}

/* Ends the waits of the claimed operations and wakes their tasks. */
void wf_turn_fire(struct wf_turn *turn);

/* Ends the critical section: releases the latch, then wakes the claimed operations. */
static inline void wf_turn_end(struct wf_turn *turn)
{
    wf_latch_unlock(turn->word, turn->bits);
    if (!wf_list_is_empty(&turn->granted)) {
        wf_turn_fire(turn);
    }
}

/* Removes this operation from its queue and claims it. Returns false if it is already decided. */
bool wf_turn_claim_this(struct wf_turn *turn, struct wf_op *op);

/* Claims the first operation in the queue that still waits, for the granter to fill. Returns
 * NULL if there is none; the queue is then empty. */
static inline struct wf_op *wf_turn_claim(struct wf_turn *turn, struct wf_waitq *queue)
{
    struct wf_op *op;
    while ((op = wf_op_first(queue)) != NULL && !wf_turn_claim_this(turn, op)) {
    }
    return op;
}

/* Claims all operations in a queue, with this result. */
void wf_turn_claim_all(struct wf_turn *turn, struct wf_waitq *queue, int result);

/* Returns whether this fiber or thread may take a ready result without further checks, and
 * counts it. It may not if it is canceled or has used up its budget in this poll. */
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

/* Same as wf_await_enter(), for a call whose prepared form is a weft_op. */
static inline int wf_op_enter_slowly(const char *call)
{
    return wf_await_enter_slowly(call, "in a body, prepare a weft_op and await it");
}
static inline int wf_op_enter(weft_time *deadline, const char *call)
{
    return wf_likely(wf_await_enter_quickly(deadline)) ? 0 : wf_op_enter_slowly(call);
}

/* Slow part of wf_op_await(): with the latch held, waits for what is not available. */
int wf_op_suspend(struct wf_op *op, struct wf_turn *turn, weft_time deadline);

/* Second part of wf_op_await_entered(), with the latch held. */
static inline __attribute__((always_inline)) int wf_op_await_latched(struct wf_op *op,
                                                                     const struct wf_op_ops *ops,
                                                                     struct wf_turn *turn,
                                                                     weft_time deadline)
{
    int result = ops->take(op, turn);
    if (result == WEFT_PENDING) {
        return wf_op_suspend(op, turn, deadline);
    }
    wf_turn_end(turn);
    return result;
}

/*
 * Completes the operation, or waits for it, on a fiber or a plain thread that has passed
 * wf_op_enter(). Inlined with the ops of the operation, so that take() is inlined, too.
 */
static inline __attribute__((always_inline)) int
wf_op_await_entered(struct wf_op *op, const struct wf_op_ops *ops, weft_time deadline)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, op->object);
    return wf_op_await_latched(op, ops, &turn, deadline);
}

/* Same as wf_op_await_entered(), not inlined, for a caller that has found the object busy. */
int wf_op_await_slowly(weft_op *op, weft_time deadline);

/* Does both steps, for the named call. Aborts if there is no stack to suspend, and says what to
 * use instead. */
static inline __attribute__((always_inline)) int wf_op_await_inline(struct wf_op *op,
                                                                    const struct wf_op_ops *ops,
                                                                    weft_time deadline,
                                                                    const char *call)
{
    int err = wf_op_enter(&deadline, call);
    return wf_likely(err == 0) ? wf_op_await_entered(op, ops, deadline) : err;
}

/* Same as wf_op_await_inline(), not inlined. */
int wf_op_await(weft_op *op, weft_time deadline, const char *call);

#endif
