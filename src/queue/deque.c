/* SPDX-License-Identifier: MIT */
/*
 * deque.c - a deque of pointers that grows: the Chase-Lev deque, in C11 as in "Correct
 * and Efficient Work-Stealing for Weak Memory Models" (Le and others, PPoPP 2013).
 *
 * Problem. Its owner pushes and pops at one end, far more often than anybody steals at
 * the other: it must pay for thieves only where they can meet, at the last item.
 *
 * Items are at [top, bottom), indices count up and are masked when used. Each step of
 * top is a CAS by who takes the item there; bottom is the owner's.
 *
 *   Push                              Pop                           Steal
 *   U1  full for all that top says:   O1  bottom = b, one less      T1  read top: t
 *       grow                          O2  full fence [Q2]           T2  full fence [Q2]
 *   U2  fill the slot                 O3  read top: t               T3  read bottom; t is
 *   U3  bottom + 1 [Q1]               O4  t < b: slot b is mine         not below: empty
 *                                         t = b: CAS top, who       T4  read the buffer, then
 *                                                wins has it            slot t
 *                                         t > b: empty              T5  CAS top to t + 1: who
 *                                     O5  t >= b: bottom = b + 1        loses has read nothing
 *
 * Why no thief takes what the owner has taken at t < b, without a CAS. One fence comes
 * first. If T2 does, O3 reads the thief's top or a later one: with t < b the thief is at
 * an item below b. If O2 does, T3 reads the bottom of O1 or a later one: b is not below
 * it, or has been pushed anew and is seen as that [Q1].
 *
 * The last item, t = b: the owner does as a thief does, and top passes t once. Whoever
 * wins, the deque is empty then, with top = b + 1. So O5 must follow a win as well: without it
 * bottom is below top, where a push is lost. A thief that reads the bottom of O5 sees
 * filled slots below it, as O2 releases them and is before O5; an old top loses at T5.
 *
 * A slot is filled again for t + slots only when the owner has read a top beyond t [Q3]. A
 * thief that reads that item at T4 loses at T5. Top never comes back to t, not in 64 bits:
 * at one item per nanosecond they last for 292 years. So there is no ABA.
 *
 * Growth copies [top, bottom) to a buffer of twice the slots, and stores only there from
 * then on. The old buffer stays as it was: a thief that has it finds at t what the new one has
 * at t, if it is to win. For if t was pushed after the growth, then T3 has read a bottom
 * that came after the new buffer, and T4 finds that one; that is why T4 comes after T3. If
 * t was there before, a thief that wins at T5 proves that top had not passed it, so both
 * buffers hold it. Old buffers are freed by fini only, since nobody knows who still reads
 * them; together they are smaller than the last one.
 *
 * Edges.
 * [Q1] push and O1 release bottom, T3 acquires it: the slots below it are filled, and what
 *      was done before their pushes is seen. O1 must release, too: not every release sequence
 *      (C++20's has only read-modify-writes) goes on from U3 to it.
 * [Q2] the fences of O2 and T2, as above. They are those of C++20 and RC11, which every
 *      compiler has. By the letter of C11 a fence in one thread and a top that another thread
 *      had from a third one are not ordered, unless each CAS is seq_cst.
 * [Q3] T5 releases top, push acquires it: a slot seen as free has been read out.
 * [Q4] growth releases the buffer, T4 acquires it: its items and its size are seen.
 *
 * Rejected. Plain slots: a thief that is about to lose reads one while the owner fills it.
 * Reading the slot after T5: it may have been filled again. Freeing an old buffer when top
 * has passed all that was in it: a thief may have read its address long before. A release
 * fence at U3, as in the paper: ARM pays for it with a barrier in each push.
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
