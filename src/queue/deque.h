/* SPDX-License-Identifier: MIT */
/*
 * deque.h - growable work-stealing deque of pointers. The owner works at the bottom, thieves
 * steal from the top. The protocol is in deque.c.
 *
 *   index   top                              bottom
 *            v                                 v
 *        ... [ oldest |                | newest ] ...
 *      thieves steal here      the owner pushes and pops here
 *
 *                  owner   others
 *   push, pop        x               one at a time
 *   steal                    x       any number at any time
 *   init, fini       alone
 *
 * The owner is one thread at a time. Ownership may move to another thread if the operations of
 * the old owner happen before those of the new one.
 */
#ifndef WF_QUEUE_DEQUE_H
#define WF_QUEUE_DEQUE_H

#include <stdbool.h>
#include <stdint.h>

#include <weft/base.h>

#include "base/atomic.h"
#include "queue/steal.h"

/* Initial number of slots, a power of two. The model uses 2, so that the deque wraps and grows
 * all the time. */
#ifndef WF_DEQUE_SLOTS
#define WF_DEQUE_SLOTS 64
#endif

_Static_assert(WF_DEQUE_SLOTS >= 2 && (WF_DEQUE_SLOTS & (WF_DEQUE_SLOTS - 1)) == 0,
               "WF_DEQUE_SLOTS must be a power of two");

struct wf_deque_buffer;

struct wf_deque {
    /* Changed by CAS by the owner and thieves, read by any thread. Never decreases. */
    _Alignas(WF_CACHE_LINE) _Atomic(int64_t) top;
    /* Owner writes, any thread reads. */
    _Alignas(WF_CACHE_LINE) _Atomic(int64_t) bottom;
    _Atomic(struct wf_deque_buffer *) buffer;
    const weft_allocator *allocator; /* owner */
};

/* Initializes an empty deque. The allocator must outlive it. Returns 0 or -ENOMEM. */
WEFT_NODISCARD int wf_deque_init(struct wf_deque *deque, const weft_allocator *allocator);

/* Frees the deque's memory; the caller owns the items that are still in it. No thief may use
 * the deque any more. A zeroed deque is fine. */
void wf_deque_fini(struct wf_deque *deque);

/* Owner only. Pushes item, which is not NULL. Returns 0, or -ENOMEM with the deque unchanged. */
WEFT_NODISCARD int wf_deque_push(struct wf_deque *deque, void *item);

/* Owner only. Pops the newest item; returns NULL if there is none. */
void *wf_deque_pop(struct wf_deque *deque);

/* Owner only. Returns the position of the next push. Items pushed from now on are at or above
 * it. */
static inline int64_t wf_deque_mark(const struct wf_deque *deque)
{
    /* relaxed: the owner is the only writer of bottom. */
    return wf_load_relaxed(&deque->bottom);
}

/* Any thread. Returns whether the deque looks empty: a snapshot. A zeroed deque looks empty. */
static inline bool wf_deque_looks_empty(const struct wf_deque *deque)
{
    /* relaxed: a snapshot; thieves take items by CAS. */
    return wf_load_relaxed(&deque->bottom) <= wf_load_relaxed(&deque->top);
}

/* Any thread. Steals the oldest item; *out is set on success only. EMPTY was true at some
 * moment of the call, not necessarily at its end. */
enum wf_steal wf_deque_steal(struct wf_deque *deque, void **out);

#endif
