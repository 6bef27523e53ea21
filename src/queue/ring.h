/* SPDX-License-Identifier: MIT */
/*
 * ring.h - a worker's run queue: bounded, one producer, steal of half.
 *
 * Which operations may run together:
 *
 *            push  pop  overflow  steal-from  len
 *   owner     one at a time          no       yes
 *   others        no                yes       yes
 */
#ifndef WF_QUEUE_RING_H
#define WF_QUEUE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "queue/node.h"

/* A power of two. Test builds use 4, so that it wraps and fills all the time. */
#ifndef WF_RING_SLOTS
#define WF_RING_SLOTS 256
#endif

#define WF_RING_MASK (WF_RING_SLOTS - 1)

_Static_assert(WF_RING_SLOTS >= 2 && (WF_RING_SLOTS & WF_RING_MASK) == 0,
               "WF_RING_SLOTS must be a power of two");

struct wf_ring {
    /* Takers CAS, all read:  63 .. steal .. 32 | 31 .. real .. 0 */
    _Alignas(WF_CACHE_LINE) _Atomic(uint64_t) head;
    /* Owner writes, all read. */
    _Alignas(WF_CACHE_LINE) _Atomic(uint32_t) tail;
    /* Owner writes, takers read. */
    _Alignas(WF_CACHE_LINE) _Atomic(struct wf_qnode *) slots[WF_RING_SLOTS];
};

void wf_ring_init(struct wf_ring *ring);

/* Owner only. Returns false when the ring is full; the node is still yours. */
bool wf_ring_push(struct wf_ring *ring, struct wf_qnode *node);

/* Owner only. Pushes all of list, which must not be longer than
 * wf_ring_room(); takers see them all at once. */
void wf_ring_push_list(struct wf_ring *ring, struct wf_qlist *list);

/* Owner only. How many pushes are sure to succeed. */
uint32_t wf_ring_room(const struct wf_ring *ring);

/* Owner only. Returns the oldest node, or NULL. */
struct wf_qnode *wf_ring_pop(struct wf_ring *ring);

/*
 * Owner only, when a push has failed. Appends the newer half of the ring and
 * then node to out. While a thief is copying, the ring is left alone and out
 * gets node only.
 */
void wf_ring_overflow(struct wf_ring *ring, struct wf_qnode *node, struct wf_qlist *out);

/*
 * Any thread but the owner of from. Takes the older half of from, rounded up:
 * returns the oldest node and puts the others into into, which the caller owns.
 * *taken is their number in all. Returns NULL if there was nothing to take, or
 * if another thief was busy there.
 */
struct wf_qnode *wf_ring_steal(struct wf_ring *from, struct wf_ring *into, uint32_t *taken);

/* Any thread. A snapshot: it may be old when you read it. */
uint32_t wf_ring_len(const struct wf_ring *ring);

#endif
