/* SPDX-License-Identifier: MIT */
/*
 * ring.c - a worker's run queue: bounded, one producer, steal of half.
 *
 * Positions count up for ever and are masked when used. The tail is the
 * owner's. The head holds two positions in one word, so that one CAS moves
 * both: [real, tail) is what can be taken, [steal, real) is what one thief has
 * claimed and is still copying. They are equal when nobody steals.
 *
 *   claim     thief: CAS (s, s) to (s, s + n)         n tasks are the thief's
 *   copy      thief: read slots s .. s + n
 *   release   thief: CAS (s, real) to (real, real)    the slots are free
 *
 * The owner may pop between claim and release, so the release takes real as it
 * finds it and tries until it succeeds: what was claimed is out, giving up would
 * lose it and close the ring to thieves for ever. Two thieves cannot claim at
 * once, since the second finds steal != real and goes elsewhere.
 *
 * Overflow takes the newer half by moving the tail back. A thief that read the
 * old tail claims at most the older half, counted from the same head, or its
 * CAS fails; the halves do not meet. The newer half, because tasks that were
 * just fetched from the inject queue sit in the older one and would go round in
 * circles.
 *
 * Edges.
 * [R1] push releases tail, steal acquires it: the slots are filled.
 * [R2] release of a steal releases head, push acquires it: the slots are free.
 * [R3] pop and the thief's release release head, steal acquires it: with a head
 *      comes at least the tail it was moved under. Otherwise tail - head could
 *      be negative, and a thief would take what is not there.
 *
 * 32-bit positions: with 16 bits a thief could sleep through one round of the
 * ring and win its CAS with a stale head.
 *
 * Rejected. Plain slots: a thief that is about to lose its CAS reads a slot that
 * the owner writes. A weak CAS outside a loop: a missed steal on LL/SC machines.
 */
#include "queue/ring.h"

#include "base/assert.h"

static uint64_t pack(uint32_t steal, uint32_t real)
{
    return (uint64_t)steal << 32 | real;
}

static uint32_t steal_of(uint64_t head)
{
    return (uint32_t)(head >> 32);
}

static uint32_t real_of(uint64_t head)
{
    return (uint32_t)head;
}

void wf_ring_init(struct wf_ring *ring)
{
    /* relaxed: the ring is not shared yet. */
    wf_store_relaxed(&ring->head, (uint64_t)0);
    wf_store_relaxed(&ring->tail, 0u);
}

uint32_t wf_ring_room(const struct wf_ring *ring)
{
    /* relaxed: the owner is the only writer of tail. */
    uint32_t tail = wf_load_relaxed(&ring->tail);

    /* acquire [R2]: a slot seen as free has been read out by its thief. */
    uint64_t head = wf_load_acquire(&ring->head);

    return WF_RING_SLOTS - (tail - steal_of(head));
}

bool wf_ring_push(struct wf_ring *ring, struct wf_qnode *node)
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

void wf_ring_push_list(struct wf_ring *ring, struct wf_qlist *list)
{
    WF_DEBUG_ASSERT(list->count <= wf_ring_room(ring));

    /* relaxed: the owner is the only writer of tail. */
    uint32_t tail = wf_load_relaxed(&ring->tail);

    for (struct wf_qnode *node = wf_qlist_pop(list); node != NULL; node = wf_qlist_pop(list)) {
        /* relaxed: the slot is published by [R1] below. */
        wf_store_relaxed(&ring->slots[tail & WF_RING_MASK], node);
        tail++;
    }

    /* release [R1]: the slots are filled before the new tail is seen. */
    wf_store_release(&ring->tail, tail);
}

struct wf_qnode *wf_ring_pop(struct wf_ring *ring)
{
    /* relaxed: the owner is the only writer of tail. */
    uint32_t tail = wf_load_relaxed(&ring->tail);

    /* relaxed: the owner filled the slots itself; the CAS checks the value. */
    uint64_t head = wf_load_relaxed(&ring->head);

    for (;;) {
        uint32_t real = real_of(head);
        if (real == tail) {
            return NULL;
        }

        /* While a thief copies, its claim stays where it is. */
        uint32_t steal = steal_of(head) == real ? real + 1 : steal_of(head);

        /* release [R3]: with this head a thief sees this tail, or a later one. */
        if (wf_cas_release(&ring->head, &head, pack(steal, real + 1))) {
            /* relaxed: written by this thread. */
            return wf_load_relaxed(&ring->slots[real & WF_RING_MASK]);
        }
    }
}

void wf_ring_overflow(struct wf_ring *ring, struct wf_qnode *node, struct wf_qlist *out)
{
    /* relaxed: the owner is the only writer of tail. */
    uint32_t tail = wf_load_relaxed(&ring->tail);

    /* relaxed: only compared; nothing is read that a thief wrote. */
    uint64_t head = wf_load_relaxed(&ring->head);

    /* Thieves may have made room since the push failed, or be at it now. */
    if (steal_of(head) == real_of(head) && tail - real_of(head) == WF_RING_SLOTS) {
        uint32_t half = tail - WF_RING_SLOTS / 2;
        for (uint32_t at = half; at != tail; at++) {
            /* relaxed: written by this thread. */
            wf_qlist_push(out, wf_load_relaxed(&ring->slots[at & WF_RING_MASK]));
        }

        /* release [R1]: a thief that reads this tail sees the slots below it. */
        wf_store_release(&ring->tail, half);
    }
    wf_qlist_push(out, node);
}

/* Thief: claims the older half of from, at most max. Returns how many, and
 * where they begin. */
static uint32_t claim_half(struct wf_ring *from, uint32_t max, uint32_t *first)
{
    /* acquire [R3]: the tail read below is not older than this head. */
    uint64_t head = wf_load_acquire(&from->head);

    for (;;) {
        uint32_t real = real_of(head);
        if (steal_of(head) != real) {
            return 0;
        }

        /* acquire [R1]: the slots below tail are filled. */
        uint32_t available = wf_load_acquire(&from->tail) - real;
        uint32_t count = available - available / 2;
        if (count > max) {
            count = max;
        }
        if (count == 0) {
            return 0;
        }

        /* acquire [R3]: on failure, as above; winning needs no order. */
        if (wf_cas_acquire(&from->head, &head, pack(real, real + count))) {
            /* Only now: a head that was old may have met a tail that was far
             * ahead of it, and the CAS has refused that. */
            WF_ASSERT(available <= WF_RING_SLOTS);
            *first = real;
            return count;
        }
    }
}

/* Thief: gives the copied slots back to the owner. */
static void release_claim(struct wf_ring *from)
{
    /* relaxed: the CAS checks the value. */
    uint64_t head = wf_load_relaxed(&from->head);

    /* release [R2] [R3]: the slots are read out; see the top of the file. */
    while (!wf_cas_weak_release(&from->head, &head, pack(real_of(head), real_of(head)))) {
        wf_cpu_relax();
    }
}

struct wf_qnode *wf_ring_steal(struct wf_ring *from, struct wf_ring *into, uint32_t *taken)
{
    /* One is returned, so it needs no slot. */
    uint32_t first = 0;
    uint32_t count = claim_half(from, wf_ring_room(into) + 1, &first);
    *taken = count;
    if (count == 0) {
        return NULL;
    }

    /* relaxed: filled before the tail that was acquired by [R1]. */
    struct wf_qnode *oldest = wf_load_relaxed(&from->slots[first & WF_RING_MASK]);

    /* relaxed: the caller is the only writer of this tail. */
    uint32_t tail = wf_load_relaxed(&into->tail);

    for (uint32_t i = 1; i < count; i++) {
        /* relaxed: filled before the tail that was acquired by [R1]. */
        struct wf_qnode *node = wf_load_relaxed(&from->slots[(first + i) & WF_RING_MASK]);
        /* relaxed: published by [R1] below. */
        wf_store_relaxed(&into->slots[tail & WF_RING_MASK], node);
        tail++;
    }
    release_claim(from);

    if (count > 1) {
        /* release [R1]: the slots are filled before the new tail is seen. */
        wf_store_release(&into->tail, tail);
    }
    return oldest;
}

uint32_t wf_ring_len(const struct wf_ring *ring)
{
    /* acquire [R3]: the tail read next is not older than this head. */
    uint64_t head = wf_load_acquire(&ring->head);

    /* relaxed: a snapshot; whoever acts on it takes by CAS. */
    uint32_t len = wf_load_relaxed(&ring->tail) - real_of(head);

    /* The tail can be newer than the head by any number of rounds. */
    return len > WF_RING_SLOTS ? WF_RING_SLOTS : len;
}
