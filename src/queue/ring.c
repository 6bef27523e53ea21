/* SPDX-License-Identifier: MIT */
/*
 * ring.c - a worker's run queue: bounded ring, one producer, thieves steal half.
 *
 * Positions count up forever and are masked when used. The tail belongs to the owner. The head
 * holds two positions in one word, so that one CAS moves both: the nodes in [real, tail) can be
 * taken, and the nodes in [steal, real) have been claimed by a thief that is still copying
 * them. The two are equal when no thief is copying.
 *
 *   claim     thief: CAS (s, s) to (s, s + n)         n nodes are the thief's
 *   copy      thief: read slots s .. s + n
 *   release   thief: CAS (s, real) to (real, real)    the slots are free
 *
 * The owner may pop between claim and release. So the release uses the current real and retries
 * until it succeeds: the claimed nodes have left the ring, and giving up would lose them and
 * close the ring to thieves forever. Two thieves cannot claim at the same time: the second one
 * finds steal != real and tries another victim.
 *
 * An overflow gives away the newer half and keeps the older one. Tasks just fetched from the
 * inject queue are in the older half; giving them away would make them circulate. The owner
 * takes everything by one CAS, (s, s) to (tail, tail), so that thieves see an empty ring. It
 * reads out the newer half and advances the tail by half a round. The older half then lies
 * between head and tail again without having been touched, since positions a whole round apart
 * share a slot.
 *
 * Edges.
 * [R1] push releases tail, steal acquires it: the slots are filled.
 * [R2] the release step of a steal releases head, push acquires it: the slots are free.
 * [R3] pop and the thief's release step release head, steal acquires it: a thief that sees a
 *      head sees at least the tail under which it was moved. Otherwise tail - head could be
 *      negative, and a thief would take nodes that do not exist.
 *
 * Positions have 32 bits: with 16 bits, a thief could sleep while the positions wrap around,
 * and win its CAS with a stale head.
 *
 * Rejected. Overflow by moving the tail back: a thief with the old tail takes at most the older
 * half, but the next thief takes from the newer half while the owner moves it. Plain slots: a
 * thief that is about to lose its CAS reads a slot that the owner writes. A weak CAS outside a
 * loop: a missed steal on LL/SC machines.
 */
#include "queue/ring.h"

#include "base/assert.h"

void wf_ring_init(struct wf_ring *ring)
{
    /* relaxed: the ring is not shared yet. */
    wf_store_relaxed(&ring->head, (uint64_t)0);
    wf_store_relaxed(&ring->tail, 0u);
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

void wf_ring_overflow(struct wf_ring *ring, struct wf_qnode *node, struct wf_qlist *out)
{
    /* relaxed: the owner is the only writer of tail. */
    uint32_t tail = wf_load_relaxed(&ring->tail);

    /* Thieves may have freed slots since the push failed, or may be stealing now: then the CAS
     * fails. */
    uint64_t head = wf_ring_pack(tail - WF_RING_SLOTS, tail - WF_RING_SLOTS);

    /* release [R3]: a thief that sees this head sees this tail or a later one. */
    if (wf_cas_release(&ring->head, &head, wf_ring_pack(tail, tail))) {
        for (uint32_t at = tail - WF_RING_SLOTS / 2; at != tail; at++) {
            /* relaxed: written by this thread. */
            wf_qlist_push(out, wf_load_relaxed(&ring->slots[at & WF_RING_MASK]));
        }

        /* release [R1]: the slots of the older half are filled. */
        wf_store_release(&ring->tail, tail + WF_RING_SLOTS / 2);
    }
    wf_qlist_push(out, node);
}

/* Thief: claims the older half of from, at most max nodes. Returns their number and sets *first
 * to the position of the oldest. */
static uint32_t claim_half(struct wf_ring *from, uint32_t max, uint32_t *first)
{
    /* acquire [R3]: the tail read below is not older than this head. */
    uint64_t head = wf_load_acquire(&from->head);

    for (;;) {
        uint32_t real = wf_ring_real_of(head);
        if (wf_ring_steal_of(head) != real) {
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

        /* acquire [R3]: on failure, as above; success needs no order. */
        if (wf_cas_acquire(&from->head, &head, wf_ring_pack(real, real + count))) {
            /* Checked only now: an old head may have been paired with a tail far ahead of it,
             * and the CAS has ruled that out. */
            WF_ASSERT(available <= WF_RING_SLOTS);
            *first = real;
            return count;
        }
    }
}

/* Thief: returns the copied slots to the owner. */
static void release_claim(struct wf_ring *from)
{
    /* relaxed: the CAS verifies the value. */
    uint64_t head = wf_load_relaxed(&from->head);

    /* release [R2] [R3]: the slots have been read; see the top of the file. */
    while (!wf_cas_weak_release(&from->head, &head,
                                wf_ring_pack(wf_ring_real_of(head), wf_ring_real_of(head)))) {
        wf_cpu_relax();
    }
}

struct wf_qnode *wf_ring_steal(struct wf_ring *from, struct wf_ring *into, uint32_t *taken)
{
    /* One node is returned, so it needs no slot. */
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
