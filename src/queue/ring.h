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

/* Owner only. Pushes all of list, which must not be longer than
 * wf_ring_room(); takers see them all at once. */
void wf_ring_push_list(struct wf_ring *ring, struct wf_qlist *list);

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

/* What a worker does at each poll is here, to be inlined. The protocol and its
 * edges are in ring.c. */

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

/* Owner only. How many pushes are sure to succeed. */
static inline uint32_t wf_ring_room(const struct wf_ring *ring)
{
    /* relaxed: the owner is the only writer of tail. */
    uint32_t tail = wf_load_relaxed(&ring->tail);

    /* acquire [R2]: a slot seen as free has been read out by its thief. */
    uint32_t oldest = wf_ring_steal_of(wf_load_acquire(&ring->head));

    return WF_RING_SLOTS - (tail - oldest);
}

/* Owner only. A mark behind the node that was pushed last. */
static inline uint32_t wf_ring_mark(const struct wf_ring *ring)
{
    /* relaxed: the owner is the only writer of tail. */
    return wf_load_relaxed(&ring->tail);
}

/* Owner only. Have all nodes before the mark left the ring? For a mark of at most 2^31 pushes
 * ago. */
static inline bool wf_ring_has_passed(const struct wf_ring *ring, uint32_t mark)
{
    /* relaxed: a look; a thief that has just taken some may be missed. */
    return (int32_t)(wf_ring_real_of(wf_load_relaxed(&ring->head)) - mark) >= 0;
}

/* Owner only. Returns false when the ring is full; the node is still yours. */
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

/* Owner only. Returns the oldest node if it is this one, or NULL. */
static inline struct wf_qnode *wf_ring_pop_only(struct wf_ring *ring, const struct wf_qnode *only)
{
    /* relaxed: the owner is the only writer of tail. */
    uint32_t tail = wf_load_relaxed(&ring->tail);

    /* relaxed: the owner filled the slots itself; the CAS checks the value. */
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

        /* While a thief copies, its claim stays where it is. */
        uint32_t steal = wf_ring_steal_of(head) == real ? real + 1 : wf_ring_steal_of(head);

        /* release [R3]: with this head a thief sees this tail, or a later one. */
        if (wf_cas_release(&ring->head, &head, wf_ring_pack(steal, real + 1))) {
            return node;
        }
    }
}

/* Owner only. Returns the oldest node, or NULL. */
static inline struct wf_qnode *wf_ring_pop(struct wf_ring *ring)
{
    return wf_ring_pop_only(ring, NULL);
}

/* Any thread. A snapshot: it may be old when you read it. */
static inline uint32_t wf_ring_len(const struct wf_ring *ring)
{
    /* acquire [R3]: the tail read next is not older than this head. */
    uint64_t head = wf_load_acquire(&ring->head);

    /* relaxed: a snapshot; whoever acts on it takes by CAS. */
    uint32_t len = wf_load_relaxed(&ring->tail) - wf_ring_real_of(head);

    /* The tail can be newer than the head by any number of rounds. */
    return len > WF_RING_SLOTS ? WF_RING_SLOTS : len;
}

#endif
