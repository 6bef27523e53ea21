/* SPDX-License-Identifier: MIT */
/*
 * mpsc.h - lock-free queue with many producers and one consumer, which takes all nodes
 * together.
 *
 * A stack that is only ever emptied as a whole, so there is no ABA, and no node is read after
 * another thread has taken it. The consumer reverses the nodes, so the order is first in, first
 * out.
 *
 * Edge [M1]: push releases head, take acquires it: the consumer sees the nodes, and what the
 * producers wrote to the objects that contain them.
 */
#ifndef WF_QUEUE_MPSC_H
#define WF_QUEUE_MPSC_H

#include <stdbool.h>

#include "base/atomic.h"
#include "queue/node.h"

/* A zeroed queue is empty. */
struct wf_mpsc {
    _Atomic(struct wf_qnode *) head; /* any thread pushes, the owner takes */
};

/* Any thread. Pushes a node. Returns true if the queue was empty before. */
static inline bool wf_mpsc_push(struct wf_mpsc *queue, struct wf_qnode *node)
{
    /* relaxed: the CAS verifies the value; the node it points to is not read. */
    struct wf_qnode *head = wf_load_relaxed(&queue->head);
    do {
        node->next = head;
        /* release [M1]: the node is complete before it is visible. */
    } while (!wf_cas_weak_release(&queue->head, &head, node));
    return head == NULL;
}

/* Any thread. Returns whether the queue is empty: a snapshot. */
static inline bool wf_mpsc_is_empty(const struct wf_mpsc *queue)
{
    /* relaxed: a hint; a caller that needs certainty issues a full fence before. */
    return wf_load_relaxed(&queue->head) == NULL;
}

/* Owner only. Appends all nodes to list, oldest first. */
static inline void wf_mpsc_take_all(struct wf_mpsc *queue, struct wf_qlist *list)
{
    if (wf_mpsc_is_empty(queue)) {
        return;
    }

    /* acquire [M1]: sees the nodes, and the objects that contain them, complete. */
    struct wf_qnode *newest = wf_xchg_acquire(&queue->head, (struct wf_qnode *)NULL);

    struct wf_qnode *oldest = NULL;
    while (newest != NULL) {
        struct wf_qnode *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct wf_qnode *next = oldest->next;
        wf_qlist_push(list, oldest);
        oldest = next;
    }
}

#endif
