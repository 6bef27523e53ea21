/* SPDX-License-Identifier: MIT */
/*
 * op.c - an operation on an object that may have to wait.
 */
#include "sched/op.h"

#include "sched/await.h"
#include "sched/thread.h"

_Static_assert(sizeof(struct wf_op) <= sizeof(weft_op), "weft_op is too small");
_Static_assert(_Alignof(struct wf_op) <= _Alignof(weft_op), "weft_op is not aligned");

static const struct wf_op_ops *ops_of(const struct wf_op *op)
{
    return wf_container_of(op->future.ops, struct wf_op_ops, future);
}

struct wf_op *wf_op_init(weft_op *op, const struct wf_op_ops *ops, void *object)
{
    struct wf_op *self = (struct wf_op *)op;
    *self = (struct wf_op){ .future.ops = &ops->future, .object = object };
    wf_wait_init(&self->own);
    wf_wait_node_init(&self->node, &self->own, 0);
    return self;
}

int wf_op_poll(weft_future *future)
{
    struct wf_op *op = (struct wf_op *)future;
    const struct wf_op_ops *ops = ops_of(op);
    if (!wf_wait_is_started(&op->own)) {
        return ops->begin(op);
    }
    int result = wf_wait_poll(&op->own);
    if (result != 0) {
        return result;
    }
    return ops->end != NULL ? ops->end(op) : op->result;
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

bool wf_op_cancel(weft_future *future)
{
    struct wf_op *op = (struct wf_op *)future;
    op->cancelled = true;
    ops_of(op)->leave(op);
    return wf_wait_abandon(&op->own, WF_WAIT_CANCELLED);
}

int wf_op_enlist(struct wf_op *op, struct wf_waitq *queue)
{
    wf_wait_start(&op->own, wf_thread_waiter());
    wf_waitq_add(queue, &op->node);
    return WEFT_PENDING;
}

int wf_op_enlist_first(struct wf_op *op, struct wf_waitq *queue)
{
    wf_wait_start(&op->own, wf_thread_waiter());
    wf_waitq_add_first(queue, &op->node);
    return WEFT_PENDING;
}

/* Who claims it does so under the object's lock, and may be at the node without it then. */
bool wf_op_delist(struct wf_op *op)
{
    bool is_enlisted = wf_wait_is_waiting(&op->own);
    if (is_enlisted) {
        (void)wf_waitq_remove(&op->node);
    }
    return is_enlisted;
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

/* The node of a operation that was claimed is the granter's until the wait has ended. */
bool wf_grants_claim_this(struct wf_grants *grants, struct wf_op *op)
{
    (void)wf_waitq_remove(&op->node);
    if (!wf_wait_claim(&op->node)) {
        return false;
    }
    wf_list_push_back(&grants->nodes, &op->node.link);
    return true;
}

struct wf_op *wf_grants_claim(struct wf_grants *grants, struct wf_waitq *queue)
{
    struct wf_op *op;
    while ((op = wf_op_first(queue)) != NULL && !wf_grants_claim_this(grants, op)) {
    }
    return op;
}

void wf_grants_claim_all(struct wf_grants *grants, struct wf_waitq *queue, int result)
{
    struct wf_op *op;
    while ((op = wf_grants_claim(grants, queue)) != NULL) {
        op->result = result;
    }
}

void wf_grants_fire(struct wf_grants *grants)
{
    struct wf_list *link;
    while ((link = wf_list_pop_front(&grants->nodes)) != NULL) {
        struct wf_wait_node *node = wf_container_of(link, struct wf_wait_node, link);
        wf_task_wake(wf_wait_finish(node->wait));
    }
}
