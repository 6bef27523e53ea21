/* SPDX-License-Identifier: MIT */
/*
 * mpsc.h - many threads push, one takes everything.
 *
 * A stack that is only ever emptied whole, so there is no ABA and no node is
 * read after it was taken by somebody else. The taker reverses what it got:
 * first in, first out.
 *
 * Edge [M1]: push releases head, take acquires it: nodes and what the pushers
 * wrote into their owners are seen.
 */
#ifndef WF_QUEUE_MPSC_H
#define WF_QUEUE_MPSC_H

#include <stdbool.h>

#include "base/atomic.h"
#include "queue/node.h"

/* Zero is empty. */
struct wf_mpsc {
    _Atomic(struct wf_qnode *) head; /* any thread pushes, the owner takes */
};

/* Any thread. Returns true if it was empty before. */
static inline bool wf_mpsc_push(struct wf_mpsc *queue, struct wf_qnode *node)
{
    /* relaxed: the CAS checks the value; the node behind it is not read. */
    struct wf_qnode *head = wf_load_relaxed(&queue->head);
    do {
        node->next = head;
        /* release [M1]: the node is whole before it is seen. */
    } while (!wf_cas_weak_release(&queue->head, &head, node));
    return head == NULL;
}

/* Any thread. */
static inline bool wf_mpsc_is_empty(const struct wf_mpsc *queue)
{
    /* relaxed: a hint; whoever needs certainty stands behind a fence. */
    return wf_load_relaxed(&queue->head) == NULL;
}

/* Owner only. Appends everything to list, oldest first. */
static inline void wf_mpsc_take_all(struct wf_mpsc *queue, struct wf_qlist *list)
{
    if (wf_mpsc_is_empty(queue)) {
        return;
    }

    /* acquire [M1]: the nodes and their owners are seen whole. */
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
