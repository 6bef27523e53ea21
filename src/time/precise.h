/* SPDX-License-Identifier: MIT */
/*
 * precise.h - the few timers that ask for less than a millisecond: a heap.
 *
 * A plain data structure, as wheel.h: no clock, no lock. Deadlines are any
 * monotonic nanoseconds; an entry is due when now has reached its deadline.
 * Entries of one deadline come out in any order.
 *
 *   insert, next   O(1)
 *   remove, pop    O(log n) on average over all calls. A single one can take
 *                  O(n): the first pop after n inserts in ascending order.
 */
#ifndef WF_TIME_PRECISE_H
#define WF_TIME_PRECISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/* Lives in its owner, who sets the deadline before insert and leaves it alone
 * until the entry is out again. */
struct wf_precise_entry {
    struct wf_precise_entry *child; /* the first of its children */
    struct wf_precise_entry *next;  /* the next child of its parent; of the root, unused */
    struct wf_precise_entry *prev;  /* the child before it; of the first, the parent;
                                     * of the root, NULL; in no heap, itself */
    int64_t deadline;
};

struct wf_precise {
    struct wf_precise_entry *root; /* the earliest; NULL if there is none */
};

static inline void wf_precise_init(struct wf_precise *heap)
{
    heap->root = NULL;
}

/* Any deadline. The entry must not be in a heap. */
void wf_precise_insert(struct wf_precise *heap, struct wf_precise_entry *entry);

/* The entry must be in this heap, due or not. */
void wf_precise_remove(struct wf_precise *heap, struct wf_precise_entry *entry);

/* Takes out the earliest entry if it is due at now; else returns NULL. */
struct wf_precise_entry *wf_precise_pop(struct wf_precise *heap, int64_t now);

/* When wf_precise_pop() will have something; WF_NEVER if the heap is empty. */
static inline int64_t wf_precise_next(const struct wf_precise *heap)
{
    return heap->root != NULL ? heap->root->deadline : WF_NEVER;
}

static inline bool wf_precise_is_empty(const struct wf_precise *heap)
{
    return heap->root == NULL;
}

/* For an entry that may be asked wf_precise_is_linked() before it is inserted;
 * no other needs it. */
static inline void wf_precise_entry_init(struct wf_precise_entry *entry)
{
    entry->prev = entry;
}

/* True from insert to remove or pop. */
static inline bool wf_precise_is_linked(const struct wf_precise_entry *entry)
{
    return entry->prev != entry;
}

#endif
