/* SPDX-License-Identifier: MIT */
/*
 * op.c - an operation on an object that may have to wait.
 */
#include "sched/op.h"

#include "sched/await.h"
#include "sched/thread.h"

_Static_assert(sizeof(struct wf_op) <= sizeof(weft_op), "weft_op is too small");
_Static_assert(_Alignof(struct wf_op) <= _Alignof(weft_op), "weft_op is not aligned");

struct wf_op *wf_op_init(weft_op *op, const struct wf_op_ops *ops, void *object)
{
    struct wf_op *self = (struct wf_op *)op;
    *self = (struct wf_op){ .future.ops = &ops->future, .object = object };
    wf_wait_init(&self->own);
    return self;
}

void wf_op_wait(struct wf_op *op, struct wf_turn *turn)
{
    const struct wf_op_ops *ops = wf_op_ops_of(op);
    if (ops->enlist != NULL) {
        ops->enlist(op, turn);
    } else {
        wf_op_enlist(op, (struct wf_waitq *)(void *)((char *)op->object + ops->queue));
    }
}

static int begin(struct wf_op *op)
{
    const struct wf_op_ops *ops = wf_op_ops_of(op);
    struct wf_turn turn;
    wf_turn_begin(&turn, op->object);
    int result = ops->take(op, &turn);
    if (result == WEFT_PENDING) {
        wf_wait_node_init(&op->node, &op->own, 0); /* It may have been a select's before. */
        wf_wait_start(&op->own, wf_thread_waiter());
        wf_op_wait(op, &turn);
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

int wf_op_poll(weft_future *future)
{
    struct wf_op *op = (struct wf_op *)future;
    if (!wf_wait_is_started(&op->own)) {
        return begin(op);
    }
    int result = wf_wait_poll(&op->own);
    if (result != 0) {
        return result;
    }
    result = wf_op_end(op);
    if (result != WEFT_PENDING) {
        return result;
    }
    return op->cancelled ? WEFT_ECANCELED : begin(op);
}

int wf_op_await(weft_op *op, weft_time deadline, const char *call)
{
    wf_await_must_suspend(call, "in a body, prepare a weft_op and await it");
    return weft_await(&op->future, deadline);
}

bool wf_op_may_take(void)
{
    struct wf_worker *worker = wf_worker_current();
    if (worker == NULL) {
        return true;
    }
    const struct wf_fiber *self = wf_fiber_of(worker->current);
    if (self == NULL || !wf_await_may_take(self, worker)) {
        return false;
    }
    worker->budget--;
    return true;
}

void wf_op_leave(struct wf_op *op, struct wf_turn *turn)
{
    const struct wf_op_ops *ops = wf_op_ops_of(op);
    if (wf_waitq_remove(&op->node) && ops->leave != NULL) {
        ops->leave(op, turn);
    }
}

/* Who claims it does so in its turn, and may be at the node without the latch then. */
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

static struct wf_op *op_of(struct wf_wait_node *node)
{
    return wf_container_of(node, struct wf_op, node);
}

struct wf_op *wf_op_first(const struct wf_waitq *queue)
{
    struct wf_wait_node *node = wf_waitq_first(queue);
    return node != NULL ? op_of(node) : NULL;
}

struct wf_op *wf_op_after(const struct wf_waitq *queue, const struct wf_op *op)
{
    struct wf_list *next = op->node.link.next;
    if (next == &queue->nodes) {
        return NULL;
    }
    return op_of(wf_container_of(next, struct wf_wait_node, link));
}

/* The node of an operation that was claimed is the granter's until the wait has ended. */
bool wf_turn_claim_this(struct wf_turn *turn, struct wf_op *op)
{
    (void)wf_waitq_remove(&op->node);
    if (!wf_wait_claim(&op->node)) {
        return false;
    }
    wf_list_push_back(&turn->granted, &op->node.link);
    return true;
}

struct wf_op *wf_turn_claim(struct wf_turn *turn, struct wf_waitq *queue)
{
    struct wf_op *op;
    while ((op = wf_op_first(queue)) != NULL && !wf_turn_claim_this(turn, op)) {
    }
    return op;
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
        wf_task_wake(wf_wait_finish(node->wait));
    }
}
