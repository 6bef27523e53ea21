/* SPDX-License-Identifier: MIT */
/*
 * op.c - operation on an object that may have to wait.
 */
#include "sched/op.h"

#include "sched/await.h"
#include "sched/thread.h"

_Static_assert(sizeof(struct wf_op) <= sizeof(weft_op), "weft_op is too small");
_Static_assert(_Alignof(struct wf_op) <= _Alignof(weft_op), "weft_op is not aligned");

void wf_op_wait(struct wf_op *op, struct wf_turn *turn)
{
    const struct wf_op_ops *ops = wf_op_ops_of(op);
    if (ops->enlist != NULL) {
        ops->enlist(op, turn);
    } else {
        wf_op_enlist(op, (struct wf_waitq *)(void *)((char *)op->object + ops->queue));
    }
}

/* With the latch held: makes this task wait for the operation. */
static void wait_in_turn(struct wf_op *op, struct wf_task *waiter, struct wf_turn *turn)
{
    wf_wait_node_init(&op->node, &op->own, 0); /* It may have been a select's before. */
    wf_wait_start(&op->own, waiter);
    wf_op_wait(op, turn);
}

/* Returns the calling task. Aborts if another task has started to wait on this operation at the
 * same time. */
static struct wf_task *sole_waiter(const struct wf_op *op)
{
    if (wf_unlikely(wf_wait_is_waiting(&op->own))) {
        wf_thread_must_await(op->own.task);
    }
    return wf_thread_waiter();
}

static int begin(struct wf_op *op)
{
    struct wf_turn turn;
    wf_turn_begin(&turn, op->object);
    int result = wf_op_ops_of(op)->take(op, &turn);
    if (result == WEFT_PENDING) {
        wait_in_turn(op, sole_waiter(op), &turn);
    }
    wf_turn_end(&turn);
    return result;
}

int wf_op_end(struct wf_op *op)
{
    const struct wf_op_ops *ops = wf_op_ops_of(op);
    int result = ops->end != NULL ? ops->end(op) : op->result;
    op->is_back = result == WEFT_PENDING;
    return result;
}

/* Resets an operation that has its result, so that it can be awaited again. */
static void renew(struct wf_op *op)
{
    op->result = 0;
    op->cancelled = false;
    op->is_back = false;
}

int wf_op_poll(weft_future *future)
{
    struct wf_op *op = (struct wf_op *)future;
    if (!wf_wait_is_started(&op->own)) {
        return begin(op);
    }
    int result = wf_wait_poll(&op->own);
    if (result == WEFT_PENDING) {
        wf_thread_must_await(op->own.task);
        return WEFT_PENDING;
    }
    if (result == 0) {
        result = wf_op_end(op);
    }
    wf_wait_init(&op->own);
    if (result == WEFT_PENDING) {
        if (!op->cancelled) {
            return begin(op);
        }
        result = WEFT_ECANCELED;
    }
    renew(op);
    return result;
}

int wf_op_await_slowly(weft_op *op, weft_time deadline)
{
    struct wf_op *self = (struct wf_op *)op;
    if (wf_worker_current() == NULL && wf_thread_self() == NULL) {
        return -ENOMEM;
    }
    return wf_op_await_entered(self, wf_op_ops_of(self), deadline);
}

int wf_op_await(weft_op *op, weft_time deadline, const char *call)
{
    int err = wf_op_enter(&deadline, call);
    return err == 0 ? wf_op_await_slowly(op, deadline) : err;
}

int wf_op_suspend(struct wf_op *op, struct wf_turn *turn, weft_time deadline)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker != NULL) {
        wait_in_turn(op, worker->current, turn);
        wf_turn_end(turn);
        return wf_await_pending(wf_fiber_of(worker->current), &op->future, deadline);
    }
    struct wf_thread *thread = wf_thread_known();
    if (thread == NULL) {
        /* The first wait of this thread allocates memory, which is not done with the latch held. */
        wf_turn_end(turn);
        return wf_thread_await(&op->future, deadline);
    }
    wait_in_turn(op, thread->waiter, turn);
    wf_turn_end(turn);
    return wf_thread_await_pending(thread, &op->future, deadline);
}

void wf_op_leave(struct wf_op *op, struct wf_turn *turn)
{
    const struct wf_op_ops *ops = wf_op_ops_of(op);
    if (wf_waitq_remove(&op->node) && ops->leave != NULL) {
        ops->leave(op, turn);
    }
}

/* A granter claims with the latch held, and may use the node after it has released the latch.
 * So only an operation that still waits leaves the queue. */
bool wf_op_cancel(weft_future *future)
{
    struct wf_op *op = (struct wf_op *)future;
    struct wf_turn turn;
    op->cancelled = true;
    wf_turn_begin(&turn, op->object);
    if (wf_wait_is_waiting(&op->own)) {
        wf_op_leave(op, &turn);
    }
    wf_turn_end(&turn);
    return wf_wait_abandon(&op->own, WF_WAIT_CANCELLED);
}

/* The node of a claimed operation belongs to the granter until the wait has ended. */
bool wf_turn_claim_this(struct wf_turn *turn, struct wf_op *op)
{
    (void)wf_waitq_remove(&op->node);
    if (wf_likely(op->node.wait == &op->own)) {
        wf_wait_claim_sole(&op->own);
    } else if (!wf_wait_claim(&op->node)) {
        return false;
    }
    wf_list_push_back(&turn->granted, &op->node.link);
    return true;
}

void wf_turn_claim_all(struct wf_turn *turn, struct wf_waitq *queue, int result)
{
    struct wf_op *op;
    while ((op = wf_turn_claim(turn, queue)) != NULL) {
        op->result = result;
    }
}

void wf_turn_fire(struct wf_turn *turn)
{
    struct wf_list *link;
    while ((link = wf_list_pop_front(&turn->granted)) != NULL) {
        struct wf_wait_node *node = wf_container_of(link, struct wf_wait_node, link);
        wf_wait_grant(node->wait);
    }
}
