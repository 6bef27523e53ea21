/* SPDX-License-Identifier: MIT */
/*
 * deque.h - a deque of pointers that grows: its owner works at the bottom, thieves
 * take from the top. The protocol is in deque.c.
 *
 *   index   top                              bottom
 *            v                                 v
 *        ... [ oldest |                | newest ] ...
 *      thieves take here       the owner pushes and pops here
 *
 *                  owner   others
 *   push, pop        x               one at a time
 *   steal                    x       any number of them, at any time
 *   init, fini       alone
 *
 * The owner is one thread at a time, and may be another one later on, if what the first
 * has done happens before what the next one does.
 */
#ifndef WF_QUEUE_DEQUE_H
#define WF_QUEUE_DEQUE_H

#include <stdbool.h>
#include <stdint.h>

#include <weft/base.h>

#include "base/atomic.h"
#include "queue/steal.h"

/* Slots at the beginning, a power of two. The model has 2, so that it wraps and grows
 * all the time. */
#ifndef WF_DEQUE_SLOTS
#define WF_DEQUE_SLOTS 64
#endif

_Static_assert(WF_DEQUE_SLOTS >= 2 && (WF_DEQUE_SLOTS & (WF_DEQUE_SLOTS - 1)) == 0,
               "WF_DEQUE_SLOTS must be a power of two");

struct wf_deque_buffer;

struct wf_deque {
    /* Takers CAS, all read. It only ever goes up. */
    _Alignas(WF_CACHE_LINE) _Atomic(int64_t) top;
    /* Owner writes, all read. */
    _Alignas(WF_CACHE_LINE) _Atomic(int64_t) bottom;
    _Atomic(struct wf_deque_buffer *) buffer;
    const weft_allocator *allocator; /* owner */
};

/* An empty deque. The allocator must outlive it. Returns 0 or -ENOMEM. */
WEFT_NODISCARD int wf_deque_init(struct wf_deque *deque, const weft_allocator *allocator);

/* Gives its memory back; what is still in it is the caller's. No thief may be at it. A
 * zeroed deque is fine. */
void wf_deque_fini(struct wf_deque *deque);

/* Owner only. item is not NULL. Returns 0, or -ENOMEM: the deque is as before. */
WEFT_NODISCARD int wf_deque_push(struct wf_deque *deque, void *item);

/* Owner only. Returns the newest item, or NULL. */
void *wf_deque_pop(struct wf_deque *deque);

/* Owner only. Where the next item goes; what is pushed from now on is at or above it. */
static inline int64_t wf_deque_mark(const struct wf_deque *deque)
{
    /* relaxed: the owner is the only writer of bottom. */
    return wf_load_relaxed(&deque->bottom);
}

/* Any thread; a snapshot. A zeroed deque looks empty. */
static inline bool wf_deque_looks_empty(const struct wf_deque *deque)
{
    /* relaxed: a look; who takes does so by CAS. */
    return wf_load_relaxed(&deque->bottom) <= wf_load_relaxed(&deque->top);
}

/* Any thread. Takes the oldest item; *out is set on success only. EMPTY holds for a
 * moment of the call, not for its end. */
enum wf_steal wf_deque_steal(struct wf_deque *deque, void **out);

#endif
