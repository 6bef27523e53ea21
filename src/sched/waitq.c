/* SPDX-License-Identifier: MIT */
/*
 * waitq.c - wait queues: the protocol by which every task waits and is woken. The protocol and
 * its edges [W1] and [W2] are in waitq.h.
 */
#include "sched/waitq.h"

#include <weft/base.h>

#include "base/assert.h"
#include "sched/task.h"
#include "sched/worker.h"

int wf_wait_poll(struct wf_wait *wait)
{
    uint32_t branch = 0;
    switch (wf_wait_look(wait, &branch)) {
    case WF_WAIT_DONE:
        return 0;
    case WF_WAIT_CANCELLED:
    case WF_WAIT_TIMED_OUT:
        return WEFT_ECANCELED;
    case WF_WAIT_UNUSED:
    case WF_WAIT_WAITING:
    case WF_WAIT_CLAIMED:
        break;
    }
    return WEFT_PENDING;
}

bool wf_wait_abandon(struct wf_wait *wait, enum wf_wait_state verdict)
{
    uint32_t word = WF_WAIT_WAITING;
    /* acquire [W1]: if it is DONE instead, what was granted is visible. */
    if (wf_cas_acquire(&wait->word, &word, (uint32_t)verdict)) {
        return true;
    }
    return wf_wait_state_of(word) != WF_WAIT_CLAIMED;
}

void wf_wait_grant(struct wf_wait *wait)
{
    struct wf_task *task = wait->task;
    const struct wf_worker *worker = wf_worker_current();
    if (worker != NULL && worker->heap == task->heap && wf_state_rouse(&task->state)) {
        wf_wait_done(wait);
        wf_task_mark_queued(task);
        task->ops->schedule(task);
        return;
    }
    if (worker == NULL || worker->heap != task->heap) {
        wf_task_retain(task);
    }
    wf_wait_done(wait);
    wf_task_wake(task);
}

void wf_waitq_init(struct wf_waitq *queue)
{
    wf_list_init(&queue->nodes);
}

struct wf_wait_node *wf_waitq_first(const struct wf_waitq *queue)
{
    if (wf_waitq_is_empty(queue)) {
        return NULL;
    }
    return wf_container_of(queue->nodes.next, struct wf_wait_node, link);
}

struct wf_wait_node *wf_waitq_claim_first(struct wf_waitq *queue)
{
    struct wf_wait_node *node;
    while ((node = wf_waitq_first(queue)) != NULL) {
        wf_list_remove(&node->link);
        if (wf_wait_claim(node)) {
            return node;
        }
    }
    return NULL;
}
