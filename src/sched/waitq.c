/* SPDX-License-Identifier: MIT */
/*
 * waitq.c - the one way to wait. The protocol and its edges [W1] and [W2] are
 * in waitq.h.
 */
#include "sched/waitq.h"

#include "base/assert.h"
#include "sched/task.h"

#define BRANCH_SHIFT 8

static enum wf_wait_state state_of(uint32_t word)
{
    return (enum wf_wait_state)(word & 0xff);
}

void wf_wait_start(struct wf_wait *wait, struct wf_task *task)
{
    wf_task_retain(task);
    wait->task = task;
    /* release [W2]: a granter that claims it sees the task. */
    wf_store_release(&wait->word, (uint32_t)WF_WAIT_WAITING);
}

enum wf_wait_state wf_wait_look(struct wf_wait *wait, uint32_t *branch)
{
    /* acquire [W1]: if it is DONE, what was granted is seen. */
    uint32_t word = wf_load_acquire(&wait->word);
    if (state_of(word) == WF_WAIT_DONE) {
        *branch = word >> BRANCH_SHIFT;
    }
    return state_of(word);
}

bool wf_wait_abandon(struct wf_wait *wait, enum wf_wait_state verdict)
{
    uint32_t word = WF_WAIT_WAITING;
    /* acquire [W1]: if it is DONE instead, what was granted is seen. */
    if (wf_cas_acquire(&wait->word, &word, (uint32_t)verdict)) {
        wf_task_release(wait->task);
        return true;
    }
    return state_of(word) != WF_WAIT_CLAIMED;
}

void wf_wait_retract(struct wf_wait *wait)
{
    /* relaxed: nobody else has seen the wait. */
    wf_store_relaxed(&wait->word, (uint32_t)WF_WAIT_UNUSED);
    wf_task_release(wait->task);
}

void wf_wait_node_init(struct wf_wait_node *node, struct wf_wait *wait, uint32_t branch)
{
    wf_list_init(&node->link);
    node->wait = wait;
    node->branch = branch;
}

bool wf_wait_claim(struct wf_wait_node *node)
{
    uint32_t word = WF_WAIT_WAITING;
    uint32_t claimed = WF_WAIT_CLAIMED | node->branch << BRANCH_SHIFT;
    /* acquire [W2]: see the task to wake. */
    return wf_cas_acquire(&node->wait->word, &word, claimed);
}

struct wf_task *wf_wait_finish(struct wf_wait *wait)
{
    struct wf_task *task = wait->task;
    /* relaxed: CLAIMED by this thread; nobody else writes it now. */
    uint32_t word = wf_load_relaxed(&wait->word);
    WF_ASSERT(state_of(word) == WF_WAIT_CLAIMED);
    /* release [W1]: the grant is whole; wait and node are the waiter's again. */
    wf_store_release(&wait->word, (word & ~0xffu) | WF_WAIT_DONE);
    return task;
}

void wf_waitq_init(struct wf_waitq *queue)
{
    wf_list_init(&queue->nodes);
}

void wf_waitq_add(struct wf_waitq *queue, struct wf_wait_node *node)
{
    wf_list_push_back(&queue->nodes, &node->link);
}

void wf_waitq_remove(struct wf_wait_node *node)
{
    wf_list_remove(&node->link);
}

bool wf_waitq_is_empty(const struct wf_waitq *queue)
{
    return wf_list_is_empty(&queue->nodes);
}

struct wf_wait_node *wf_waitq_claim_first(struct wf_waitq *queue)
{
    struct wf_list *link;
    while ((link = wf_list_pop_front(&queue->nodes)) != NULL) {
        struct wf_wait_node *node = wf_container_of(link, struct wf_wait_node, link);
        if (wf_wait_claim(node)) {
            return node;
        }
    }
    return NULL;
}
