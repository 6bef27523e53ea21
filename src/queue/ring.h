/* SPDX-License-Identifier: MIT */
/*
 * ring.h - a worker's run queue: bounded ring, one producer, thieves steal half.
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

/* A power of two. Test builds use 4, so that the ring wraps and fills all the time. */
#ifndef WF_RING_SLOTS
#define WF_RING_SLOTS 256
#endif

#define WF_RING_MASK (WF_RING_SLOTS - 1)

_Static_assert(WF_RING_SLOTS >= 2 && (WF_RING_SLOTS & WF_RING_MASK) == 0,
               "WF_RING_SLOTS must be a power of two");

struct wf_ring {
    /* Owner and thieves CAS, all read:  63 .. steal .. 32 | 31 .. real .. 0 */
    _Alignas(WF_CACHE_LINE) _Atomic(uint64_t) head;
    /* Owner writes, any thread reads. */
    _Alignas(WF_CACHE_LINE) _Atomic(uint32_t) tail;
    /* Owner writes, owner and thieves read. */
    _Alignas(WF_CACHE_LINE) _Atomic(struct wf_qnode *) slots[WF_RING_SLOTS];
};

void wf_ring_init(struct wf_ring *ring);

/* Owner only. Pushes all nodes of list, which must not be longer than wf_ring_room(). Thieves
 * see all of them at the same time. */
void wf_ring_push_list(struct wf_ring *ring, struct wf_qlist *list);

/*
 * Owner only, after a push has failed. Appends the newer half of the ring and then node to out.
 * If a thief is copying, or has freed slots meanwhile, leaves the ring alone and appends only
 * node.
 */
void wf_ring_overflow(struct wf_ring *ring, struct wf_qnode *node, struct wf_qlist *out);

/*
 * Any thread except the owner of from. Steals the older half of from, rounded up: returns the
 * oldest node and pushes the others to into, which the caller owns. *taken is the total number.
 * Returns NULL if from is empty or another thief is copying from it.
 */
struct wf_qnode *wf_ring_steal(struct wf_ring *from, struct wf_ring *into, uint32_t *taken);

/* The operations of each poll are here, to be inlined. The protocol and its edges are in ring.c. */

static inline uint64_t wf_ring_pack(uint32_t steal, uint32_t real)
{
    return (uint64_t)steal << 32 | real;
}

static inline uint32_t wf_ring_steal_of(uint64_t head)
{
    return (uint32_t)(head >> 32);
}

static inline uint32_t wf_ring_real_of(uint64_t head)
{
    return (uint32_t)head;
}

/* Owner only. Returns the number of pushes that are certain to succeed. */
static inline uint32_t wf_ring_room(const struct wf_ring *ring)
{
    /* relaxed: the owner is the only writer of tail. */
    uint32_t tail = wf_load_relaxed(&ring->tail);

    /* acquire [R2]: a slot seen as free has been read by its thief. */
    uint32_t oldest = wf_ring_steal_of(wf_load_acquire(&ring->head));

    return WF_RING_SLOTS - (tail - oldest);
}

/* Owner only. Returns a mark behind the last node that was pushed. */
static inline uint32_t wf_ring_mark(const struct wf_ring *ring)
{
    /* relaxed: the owner is the only writer of tail. */
    return wf_load_relaxed(&ring->tail);
}

/* Owner only. Returns whether all nodes before the mark have left the ring. The mark must be at
 * most 2^31 pushes old. */
static inline bool wf_ring_has_passed(const struct wf_ring *ring, uint32_t mark)
{
    /* relaxed: a snapshot; it may miss a thief that has just taken nodes. */
    return (int32_t)(wf_ring_real_of(wf_load_relaxed(&ring->head)) - mark) >= 0;
}

/* Owner only. Pushes node. Returns false if the ring is full; the caller then keeps the node. */
static inline bool wf_ring_push(struct wf_ring *ring, struct wf_qnode *node)
{
    if (wf_ring_room(ring) == 0) {
        return false;
    }

    /* relaxed: the owner is the only writer of tail. */
    uint32_t tail = wf_load_relaxed(&ring->tail);

    /* relaxed: the slot is published by [R1] below. */
    wf_store_relaxed(&ring->slots[tail & WF_RING_MASK], node);

    /* release [R1]: the slot is filled before the new tail is seen. */
    wf_store_release(&ring->tail, tail + 1);
    return true;
}

/* Owner only. Pops the oldest node if only is NULL or is that node; otherwise returns NULL. */
static inline struct wf_qnode *wf_ring_pop_only(struct wf_ring *ring, const struct wf_qnode *only)
{
    /* relaxed: the owner is the only writer of tail. */
    uint32_t tail = wf_load_relaxed(&ring->tail);

    /* relaxed: the owner filled the slots itself; the CAS verifies the value. */
    uint64_t head = wf_load_relaxed(&ring->head);

    for (;;) {
        uint32_t real = wf_ring_real_of(head);
        if (real == tail) {
            return NULL;
        }

        /* relaxed: written by this thread. */
        struct wf_qnode *node = wf_load_relaxed(&ring->slots[real & WF_RING_MASK]);
        if (only != NULL && node != only) {
            return NULL;
        }

        /* While a thief is copying, its claim stays in place. */
        uint32_t steal = wf_ring_steal_of(head) == real ? real + 1 : wf_ring_steal_of(head);

        /* release [R3]: a thief that sees this head sees this tail or a later one. */
        if (wf_cas_release(&ring->head, &head, wf_ring_pack(steal, real + 1))) {
            return node;
        }
    }
}

/* Owner only. Pops the oldest node; returns NULL if the ring is empty. */
static inline struct wf_qnode *wf_ring_pop(struct wf_ring *ring)
{
    return wf_ring_pop_only(ring, NULL);
}

/* Any thread. Returns the number of nodes: a snapshot that may be stale. */
static inline uint32_t wf_ring_len(const struct wf_ring *ring)
{
    /* acquire [R3]: the tail read next is not older than this head. */
    uint64_t head = wf_load_acquire(&ring->head);

    /* relaxed: a snapshot; a thread that acts on it takes nodes by CAS. */
    uint32_t len = wf_load_relaxed(&ring->tail) - wf_ring_real_of(head);

    /* The tail can be newer than the head by any number of rounds. */
    return len > WF_RING_SLOTS ? WF_RING_SLOTS : len;
}

#endif
