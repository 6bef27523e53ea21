/* SPDX-License-Identifier: MIT */
/*
 * precise.h - pairing heap of timers with sub-millisecond precision.
 *
 * A plain data structure, like wheel.h: no clock, no lock. Deadlines are any monotonic
 * nanoseconds; an entry is due when now has reached its deadline. Entries with equal deadlines
 * come out in any order.
 *
 *   insert, next   O(1)
 *   remove, pop    O(log n) amortized. A single call can take O(n): the first pop
 *                  after n inserts in ascending order.
 */
#ifndef WF_TIME_PRECISE_H
#define WF_TIME_PRECISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/* Embedded in its owner, which sets the deadline before insert and must not change it while the
 * entry is in a heap. */
struct wf_precise_entry {
    struct wf_precise_entry *child; /* its first child */
    struct wf_precise_entry *next;  /* its next sibling; unused in the root */
    struct wf_precise_entry *prev;  /* its previous sibling; in a first child, the parent;
                                     * in the root, NULL; in no heap, the entry itself */
    int64_t deadline;
};

struct wf_precise {
    struct wf_precise_entry *root; /* the earliest entry, or NULL */
};

static inline void wf_precise_init(struct wf_precise *heap)
{
    heap->root = NULL;
}

/* Inserts an entry with any deadline. It must not be in a heap. */
void wf_precise_insert(struct wf_precise *heap, struct wf_precise_entry *entry);

/* Removes an entry, due or not. It must be in this heap. */
void wf_precise_remove(struct wf_precise *heap, struct wf_precise_entry *entry);

/* Removes and returns the earliest entry if it is due at now; otherwise returns NULL. */
struct wf_precise_entry *wf_precise_pop(struct wf_precise *heap, int64_t now);

/* Returns when wf_precise_pop() will return an entry; WF_NEVER if the heap is empty. */
static inline int64_t wf_precise_next(const struct wf_precise *heap)
{
    return heap->root != NULL ? heap->root->deadline : WF_NEVER;
}

static inline bool wf_precise_is_empty(const struct wf_precise *heap)
{
    return heap->root == NULL;
}

/* Needed only for an entry that may be passed to wf_precise_is_linked() before it is inserted. */
static inline void wf_precise_entry_init(struct wf_precise_entry *entry)
{
    entry->prev = entry;
}

/* Returns whether the entry is in a heap: true from insert to remove or pop. */
static inline bool wf_precise_is_linked(const struct wf_precise_entry *entry)
{
    return entry->prev != entry;
}

#endif
