/* SPDX-License-Identifier: MIT */
/*
 * precise.c - pairing heap of timers with sub-millisecond precision.
 *
 * A pairing heap is a tree in which no entry is earlier than its parent, so the root is the
 * earliest. All operations are built from one step, link: of two trees, the one with the later
 * root becomes the first child of the other.
 *
 *   insert   links the entry with the root
 *   remove   cuts out the entry with its subtree, links the entry's children
 *            into one tree, and links that with the root
 *   pop      removes the root
 *
 * The children of a removed entry are linked in two passes: first in neighboring pairs, from
 * first to last, then the pairs into one tree, from last to first. The pairs make it cheap: a
 * single pass would leave nearly all of the children under one entry again, and each pop would
 * cost O(n).
 *
 * A tree can be as deep as it has entries (after inserts in descending order), so nothing here
 * recurses. The first pass keeps its pairs in a list through next, newest first, which is the
 * order that the second pass needs.
 *
 * Rejected. A binary heap in an array: insert would allocate, and could fail. A balanced tree:
 * each insert costs O(log n), and most entries are removed long before they are due.
 */
#include "time/precise.h"

#include "base/assert.h"

/* Links two trees into one. Does not touch next and prev of the root that it returns. */
static struct wf_precise_entry *link_trees(struct wf_precise_entry *a, struct wf_precise_entry *b)
{
    struct wf_precise_entry *parent = b->deadline < a->deadline ? b : a;
    struct wf_precise_entry *child = parent == a ? b : a;
    child->prev = parent;
    child->next = parent->child;
    if (child->next != NULL) {
        child->next->prev = child;
    }
    parent->child = child;
    return parent;
}

/* Links siblings into one tree; first may be NULL. */
static struct wf_precise_entry *link_siblings(struct wf_precise_entry *first)
{
    struct wf_precise_entry *pairs = NULL;
    while (first != NULL) {
        struct wf_precise_entry *pair = first;
        struct wf_precise_entry *second = first->next;
        first = NULL;
        if (second != NULL) {
            first = second->next;
            pair = link_trees(pair, second);
        }
        pair->next = pairs;
        pairs = pair;
    }
    if (pairs == NULL) {
        return NULL;
    }

    struct wf_precise_entry *root = pairs;
    pairs = pairs->next;
    while (pairs != NULL) {
        struct wf_precise_entry *pair = pairs;
        pairs = pair->next;
        root = link_trees(root, pair);
    }
    root->prev = NULL;
    return root;
}

void wf_precise_insert(struct wf_precise *heap, struct wf_precise_entry *entry)
{
    entry->child = NULL;
    entry->prev = NULL;
    heap->root = heap->root != NULL ? link_trees(heap->root, entry) : entry;
}

/* Cuts an entry that is not the root, with its subtree, out of the tree. */
static void cut(struct wf_precise_entry *entry)
{
    if (entry->prev->child == entry) {
        entry->prev->child = entry->next;
    } else {
        entry->prev->next = entry->next;
    }
    if (entry->next != NULL) {
        entry->next->prev = entry->prev;
    }
}

void wf_precise_remove(struct wf_precise *heap, struct wf_precise_entry *entry)
{
    WF_DEBUG_ASSERT(wf_precise_is_linked(entry));
    WF_DEBUG_ASSERT((entry->prev == NULL) == (entry == heap->root));

    struct wf_precise_entry *rest = link_siblings(entry->child);
    if (entry->prev == NULL) {
        heap->root = rest;
    } else {
        cut(entry);
        if (rest != NULL) {
            heap->root = link_trees(heap->root, rest);
        }
    }
    wf_precise_entry_init(entry);
}

struct wf_precise_entry *wf_precise_pop(struct wf_precise *heap, int64_t now)
{
    struct wf_precise_entry *entry = heap->root;
    if (entry == NULL || entry->deadline > now) {
        return NULL;
    }
    wf_precise_remove(heap, entry);
    return entry;
}
