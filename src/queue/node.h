/* SPDX-License-Identifier: MIT */
/*
 * node.h - intrusive link for queue nodes, and a singly linked list of them.
 *
 * A node is in at most one queue at a time, so one link serves all queues. The queues only move
 * nodes; they do not know what the nodes are part of.
 */
#ifndef WF_QUEUE_NODE_H
#define WF_QUEUE_NODE_H

#include <stddef.h>
#include <stdint.h>

struct wf_qnode {
    struct wf_qnode *next; /* written by the current owner of the node */
};

/* First in, first out; for one thread, or under a lock. A zeroed list is empty. */
struct wf_qlist {
    struct wf_qnode *first;
    struct wf_qnode *last;
    size_t count;
};

static inline void wf_qlist_push(struct wf_qlist *list, struct wf_qnode *node)
{
    node->next = NULL;
    if (list->first == NULL) {
        list->first = node;
    } else {
        list->last->next = node;
    }
    list->last = node;
    list->count++;
}

/* Returns NULL when the list is empty. */
static inline struct wf_qnode *wf_qlist_pop(struct wf_qlist *list)
{
    struct wf_qnode *node = list->first;
    if (node != NULL) {
        list->first = node->next;
        list->count--;
    }
    return node;
}

/* Moves all nodes of from to the end of list; from is empty afterwards. */
static inline void wf_qlist_append(struct wf_qlist *list, struct wf_qlist *from)
{
    if (from->first == NULL) {
        return;
    }
    if (list->first == NULL) {
        list->first = from->first;
    } else {
        list->last->next = from->first;
    }
    list->last = from->last;
    list->count += from->count;
    *from = (struct wf_qlist){ 0 };
}

#endif
