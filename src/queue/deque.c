/* SPDX-License-Identifier: MIT */
/*
 * deque.c - a deque of pointers that grows: the Chase-Lev deque, in C11 as in "Correct
 * and Efficient Work-Stealing for Weak Memory Models" (Le and others, PPoPP 2013).
 *
 * Problem. Its owner pushes and pops at one end, far more often than anybody steals at
 * the other: it should pay for thieves only where they can meet, at the last item.
 *
 * The items are at [top, bottom). Indices count up and are masked when used. Each step
 * of top is a CAS by who takes the item there; bottom is the owner's.
 *
 *   Push, owner              Pop, owner                     Steal, any thread
 *   U1  read top [Q3];       O1  bottom = b, one less [Q1]  T1  read top: t
 *       no room: grow [Q4]   O2  full fence [Q2]            T2  full fence [Q2]
 *   U2  fill the slot        O3  read top: t                T3  read bottom [Q1];
 *   U3  bottom + 1 [Q1]      O4  t < b: take b                  t >= bottom: empty
 *                                t = b: CAS top to b + 1;   T4  read buffer [Q4], slot t
 *                                       who wins takes b    T5  CAS top to t + 1 [Q3];
 *                                t > b: empty                   who wins takes t
 *                            O5  t >= b: bottom = b + 1
 *
 * Why no thief takes what the owner has taken at t < b, without a CAS. One fence comes
 * first. If T2 does, O3 reads the thief's top or a later one: with t < b the thief is at
 * an item below b. If O2 does, T3 reads the bottom of O1 or a later one: b is not below
 * it, or has been pushed anew and is seen as that [Q1].
 *
 * The last item, t = b. The owner does as a thief does, and top passes b once. Whoever
 * has won, the deque is empty then and top is b + 1. So O5 follows a win, too: otherwise
 * bottom stays below top, where the next push is lost. Who reads the bottom of O5 sees
 * the slots below it filled, since O2 has released them; with an old top it loses at T5.
 *
 * A slot is filled again, for t + slots, only when the owner has read a top beyond t. A
 * thief that finds the new item at T4 loses at T5, since top never comes back to t. In 64
 * bits it does not even by wrapping: at an item per nanosecond that takes 292 years. So
 * there is no ABA.
 *
 * Growth copies [top, bottom) into a buffer of twice the slots; the old one is not
 * written any more. A thief that wins at T5 has found the right item in any of them. If it
 * was pushed after the growth, T3 has read a bottom from after it, and T4, which is
 * behind T3, the new buffer. If before, it was there when the growth copied, since top
 * had not passed it: both buffers have it. Nobody knows who still reads an old buffer, so
 * they are freed by fini; together they are smaller than the last one.
 *
 * Edges.
 * [Q1] U3 and O1 release bottom, T3 acquires it: the slots below are filled, and what was
 *      done before their pushes is seen. O1, too, since in C++20 (not in C11) a release
 *      sequence does not go on from U3 to a store that is not a read-modify-write.
 * [Q2] the fences of O2 and T2, as above. They are the fences of C++20 and RC11, which
 *      compilers have always made. C11 as it is written orders what T1 has from a third
 *      thread only if the CASes are seq_cst, as in the paper.
 * [Q3] T5 releases top, U1 acquires it: a slot seen as free has been read out.
 * [Q4] growth releases the buffer, T4 acquires it: its items and its size are seen.
 *
 * Rejected. Plain slots: a thief that is about to lose reads one that the owner fills.
 * Reading the slot after T5: it may have been filled again. Freeing an old buffer when
 * top has passed what was in it: a thief may have had its address long before. A release
 * fence before U3, as in the paper, with O1 relaxed: on ARM a barrier in each push.
 *
 * Checked by tests/model/deque_model.c.
 */
#include "queue/deque.h"

#include <errno.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/assert.h"

struct wf_deque_buffer {
    struct wf_deque_buffer *older; /* the one before it, or NULL; for fini */
    int64_t slot_count;            /* a power of two */
    _Atomic(void *) slots[];       /* owner writes, all read */
};

static size_t buffer_size(int64_t slot_count)
{
    return sizeof(struct wf_deque_buffer) + (size_t)slot_count * sizeof(_Atomic(void *));
}

/* The slots are NULL: a late thief may read one that was never filled. */
static struct wf_deque_buffer *buffer_create(const weft_allocator *allocator, int64_t slot_count)
{
    struct wf_deque_buffer *buffer =
        wf_alloc_zeroed(allocator, buffer_size(slot_count), _Alignof(struct wf_deque_buffer));
    if (buffer != NULL) {
        buffer->slot_count = slot_count;
    }
    return buffer;
}

static _Atomic(void *) *slot_at(struct wf_deque_buffer *buffer, int64_t index)
{
    return &buffer->slots[index & (buffer->slot_count - 1)];
}

int wf_deque_init(struct wf_deque *deque, const weft_allocator *allocator)
{
    struct wf_deque_buffer *buffer = buffer_create(allocator, WF_DEQUE_SLOTS);
    if (buffer == NULL) {
        return -ENOMEM;
    }
    deque->allocator = allocator;
    /* relaxed: the deque is not shared yet. */
    wf_store_relaxed(&deque->top, (int64_t)0);
    wf_store_relaxed(&deque->bottom, (int64_t)0);
    wf_store_relaxed(&deque->buffer, buffer);
    return 0;
}

void wf_deque_fini(struct wf_deque *deque)
{
    /* relaxed: nobody else is at it. */
    struct wf_deque_buffer *buffer = wf_load_relaxed(&deque->buffer);
    while (buffer != NULL) {
        struct wf_deque_buffer *older = buffer->older;
        wf_free(deque->allocator, buffer, buffer_size(buffer->slot_count),
                _Alignof(struct wf_deque_buffer));
        buffer = older;
    }
    /* relaxed: nobody else is at it. */
    wf_store_relaxed(&deque->buffer, (struct wf_deque_buffer *)NULL);
}

/* Owner: puts [top, bottom) into a buffer of twice the slots. Returns that, or NULL. */
static struct wf_deque_buffer *grow(struct wf_deque *deque, struct wf_deque_buffer *old,
                                    int64_t top, int64_t bottom)
{
    struct wf_deque_buffer *buffer = buffer_create(deque->allocator, 2 * old->slot_count);
    if (buffer == NULL) {
        return NULL;
    }
    buffer->older = old;
    for (int64_t i = top; i < bottom; i++) {
        /* relaxed: written by the owner; published by [Q4] below. */
        wf_store_relaxed(slot_at(buffer, i), wf_load_relaxed(slot_at(old, i)));
    }
    /* release [Q4]: the buffer is whole before it is seen. */
    wf_store_release(&deque->buffer, buffer);
    return buffer;
}

int wf_deque_push(struct wf_deque *deque, void *item)
{
    WF_DEBUG_ASSERT(item != NULL);

    /* relaxed: the owner is the only writer of bottom. */
    int64_t bottom = wf_load_relaxed(&deque->bottom);

    /* acquire [Q3]: a slot seen as free has been read out by its thief. With an old top
     * it grows too early. */
    int64_t top = wf_load_acquire(&deque->top);

    /* relaxed: the owner is the only writer of the buffer. */
    struct wf_deque_buffer *buffer = wf_load_relaxed(&deque->buffer);

    if (wf_unlikely(bottom - top >= buffer->slot_count)) {
        buffer = grow(deque, buffer, top, bottom);
        if (buffer == NULL) {
            return -ENOMEM;
        }
    }

    /* relaxed: published by [Q1] below. */
    wf_store_relaxed(slot_at(buffer, bottom), item);

    /* release [Q1], U3: the slot is filled before the new bottom is seen. */
    wf_store_release(&deque->bottom, bottom + 1);
    return 0;
}

void *wf_deque_pop(struct wf_deque *deque)
{
    /* relaxed: the owner is the only writer of bottom. */
    int64_t bottom = wf_load_relaxed(&deque->bottom) - 1;

    /* release [Q1], O1: a thief that sees it may take what is below. */
    wf_store_release(&deque->bottom, bottom);

    /* fence [Q2], O2: a thief that has not seen this bottom has its top seen below. */
    wf_fence_full();

    /* relaxed: behind the fence. */
    int64_t top = wf_load_relaxed(&deque->top);

    void *item = NULL;
    if (top <= bottom) {
        /* relaxed: the owner is the only writer of the buffer and of its slots. */
        struct wf_deque_buffer *buffer = wf_load_relaxed(&deque->buffer);
        item = wf_load_relaxed(slot_at(buffer, bottom));
        if (top < bottom) {
            return item;
        }
        /* relaxed: it decides who has the item, which is the owner's own; what a thief with
         * this top must see, the fence above has released. */
        if (!wf_cas_relaxed(&deque->top, &top, bottom + 1)) {
            item = NULL;
        }
    }
    WF_DEBUG_ASSERT(top <= bottom + 1);

    /* relaxed: the slots below were released by the fence above. O5: empty, at top. */
    wf_store_relaxed(&deque->bottom, bottom + 1);
    return item;
}

enum wf_steal wf_deque_steal(struct wf_deque *deque, void **out)
{
    /* relaxed: before the fence, T1. */
    int64_t top = wf_load_relaxed(&deque->top);

    /* fence [Q2], T2: the owner has seen this top, or its bottom is seen below. */
    wf_fence_full();

    /* acquire [Q1], T3: the slots below it are filled; and the buffer read next is not
     * older than this bottom. */
    int64_t bottom = wf_load_acquire(&deque->bottom);

    if (top >= bottom) {
        return WF_STEAL_EMPTY;
    }

    /* acquire [Q4], T4: its items and its size are seen. */
    struct wf_deque_buffer *buffer = wf_load_acquire(&deque->buffer);

    /* relaxed: filled before the bottom, or the buffer, that was acquired. */
    void *item = wf_load_relaxed(slot_at(buffer, top));

    /* release [Q3], T5: the slot is read out before the owner sees it as free. */
    if (!wf_cas_release(&deque->top, &top, top + 1)) {
        return WF_STEAL_RETRY;
    }
    WF_DEBUG_ASSERT(item != NULL);
    *out = item;
    return WF_STEAL_SUCCESS;
}
