/* SPDX-License-Identifier: MIT */
/*
 * list.h - intrusive doubly linked list.
 *
 * The nodes are embedded in their owners. The head is a node of its own, so there are no
 * special cases. A node that was removed by wf_list_remove() points to itself.
 */
#ifndef WF_BASE_LIST_H
#define WF_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct wf_list {
    struct wf_list *next;
    struct wf_list *prev;
};

#define wf_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void wf_list_init(struct wf_list *node)
{
    node->next = node;
    node->prev = node;
}

static inline bool wf_list_is_empty(const struct wf_list *node)
{
    return node->next == node;
}

static inline void wf_list_push_back(struct wf_list *list, struct wf_list *node)
{
    node->prev = list->prev;
    node->next = list;
    list->prev->next = node;
    list->prev = node;
}

static inline void wf_list_push_front(struct wf_list *list, struct wf_list *node)
{
    wf_list_push_back(list->next, node);
}

/* Removes a node. Does nothing if the node was initialized and is in no list. */
static inline void wf_list_remove(struct wf_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    wf_list_init(node);
}

/* Returns NULL when the list is empty. */
static inline struct wf_list *wf_list_pop_front(struct wf_list *list)
{
    struct wf_list *node = list->next;
    if (node == list) {
        return NULL;
    }
    wf_list_remove(node);
    return node;
}

/* Moves every node of from to the end of list. */
static inline void wf_list_splice_back(struct wf_list *list, struct wf_list *from)
{
    if (wf_list_is_empty(from)) {
        return;
    }
    from->next->prev = list->prev;
    from->prev->next = list;
    list->prev->next = from->next;
    list->prev = from->prev;
    wf_list_init(from);
}

#endif
