/* SPDX-License-Identifier: MIT */
/*
 * deque.c - growable work-stealing deque of pointers: the Chase-Lev deque, in C11 as in
 * "Correct and Efficient Work-Stealing for Weak Memory Models" (Le and others, PPoPP 2013).
 *
 * Problem. The owner pushes and pops at one end far more often than thieves steal at the other.
 * It should pay for thieves only where the two can meet: at the last item.
 *
 * The items are at [top, bottom). Indices count up and are masked when used. Each step of top
 * is a CAS by the thread that takes the item there. Only the owner writes bottom.
 *
 *   Push, owner              Pop, owner                     Steal, any thread
 *   U1  read top [Q3];       O1  bottom = b, one less [Q1]  T1  read top: t
 *       full: grow [Q4]      O2  full fence [Q2]            T2  full fence [Q2]
 *   U2  fill the slot        O3  read top: t                T3  read bottom [Q1];
 *   U3  bottom + 1 [Q1]      O4  t < b: take b                  t >= bottom: empty
 *                                t = b: CAS top to b + 1;   T4  read buffer [Q4], slot t
 *                                       winner takes b      T5  CAS top to t + 1 [Q3];
 *                                t > b: empty                   winner takes t
 *                            O5  t >= b: bottom = b + 1
 *
 * Why no thief takes an item that the owner has taken at t < b, without a CAS. One of the two
 * fences comes first. If T2 does, O3 reads the thief's top or a later one: with t < b, the
 * thief is at an item below b. If O2 does, T3 reads the bottom of O1 or a later one: either b
 * is not below it, or b has been pushed again and the thief sees the new item [Q1].
 *
 * The last item, t = b. The owner competes like a thief, and top passes b once. Whichever
 * thread wins, the deque is then empty and top is b + 1. So O5 follows a win, too: otherwise
 * bottom would stay below top, where the next push would be lost. A thief that reads the bottom
 * of O5 sees the slots below it filled, since O2 has released them. With an old top it loses at
 * T5.
 *
 * A slot is refilled, for index t + slots, only after the owner has read a top beyond t. A
 * thief that finds the new item at T4 loses at T5, since top never returns to t. It does not
 * even return by wrapping: at one item per nanosecond, 64 bits last for 292 years. So there is
 * no ABA.
 *
 * Growth copies [top, bottom) into a buffer with twice the slots; the old buffer is never
 * written again. A thief that wins at T5 has read the right item from whichever buffer it used.
 * If the item was pushed after the growth, T3 has read a bottom from after the growth, and T4,
 * which follows T3, reads the new buffer. If the item was pushed before, it was still in the
 * deque when the growth copied, since top had not passed it: both buffers hold it. No thread
 * knows which thieves still read an old buffer, so fini frees the old buffers. Together they
 * are smaller than the newest one.
 *
 * Edges.
 * [Q1] U3 and O1 release bottom, T3 acquires it: the slots below are filled, and what happened
 *      before their pushes is visible. O1 releases too, since in C++20 (not in C11) a release
 *      sequence does not continue from U3 to a store that is not a read-modify-write.
 * [Q2] the fences of O2 and T2, as above. They are the fences of C++20 and RC11, which
 *      compilers have always implemented. C11 as written orders what T1 has read from a third
 *      thread only if the CASes are seq_cst, as in the paper.
 * [Q3] T5 releases top, U1 acquires it: a slot seen as free has been read by its thief.
 * [Q4] growth releases the buffer, T4 acquires it: its items and its size are visible.
 *
 * Rejected. Plain slots: a thief that is about to lose reads a slot that the owner fills.
 * Reading the slot after T5: it may have been refilled. Freeing an old buffer when top has
 * passed its items: a thief may have read its address long before. A release fence before U3
 * with a relaxed O1, as in the paper: a barrier in each push on ARM.
 *
 * Checked by tests/model/deque_model.c.
 */
#include "queue/deque.h"

#include <errno.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/assert.h"

struct wf_deque_buffer {
    struct wf_deque_buffer *older; /* the previous buffer, or NULL; for fini */
    int64_t slot_count;            /* a power of two */
    _Atomic(void *) slots[];       /* owner writes, any thread reads */
};

static size_t buffer_size(int64_t slot_count)
{
    return sizeof(struct wf_deque_buffer) + (size_t)slot_count * sizeof(_Atomic(void *));
}

/* The slots start as NULL: a late thief may read one that was never filled. */
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
    /* relaxed: no other thread uses the deque. */
    struct wf_deque_buffer *buffer = wf_load_relaxed(&deque->buffer);
    while (buffer != NULL) {
        struct wf_deque_buffer *older = buffer->older;
        wf_free(deque->allocator, buffer, buffer_size(buffer->slot_count),
                _Alignof(struct wf_deque_buffer));
        buffer = older;
    }
    /* relaxed: no other thread uses the deque. */
    wf_store_relaxed(&deque->buffer, (struct wf_deque_buffer *)NULL);
}

/* Owner only. Copies [top, bottom) into a buffer with twice the slots. Returns the new buffer,
 * or NULL when out of memory. */
static struct wf_deque_buffer *grow(struct wf_deque *deque, struct wf_deque_buffer *old,
                                    int64_t top, int64_t bottom)
{
    struct wf_deque_buffer *buffer = buffer_create(deque->allocator, 2 * old->slot_count);
    if (buffer == NULL) {
        return NULL;
    }
    buffer->older = old;
    for (int64_t i = top; i < bottom; i++) {
        /* relaxed: the owner wrote the slots; [Q4] below publishes the copies. */
        wf_store_relaxed(slot_at(buffer, i), wf_load_relaxed(slot_at(old, i)));
    }
    /* release [Q4]: the buffer is complete before it is visible. */
    wf_store_release(&deque->buffer, buffer);
    return buffer;
}

int wf_deque_push(struct wf_deque *deque, void *item)
{
    WF_DEBUG_ASSERT(item != NULL);

    /* relaxed: the owner is the only writer of bottom. */
    int64_t bottom = wf_load_relaxed(&deque->bottom);

    /* acquire [Q3]: a slot seen as free has been read by its thief. A stale top only makes the
     * deque grow too early. */
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

    /* release [Q1], U3: the slot is filled before the new bottom is visible. */
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
        /* relaxed: it only decides the race for the item, which the owner itself pushed. What a
         * thief with the new top must see was released by the fence above. */
        if (!wf_cas_relaxed(&deque->top, &top, bottom + 1)) {
            item = NULL;
        }
    }
    WF_DEBUG_ASSERT(top <= bottom + 1);

    /* relaxed: the fence above has released the slots below. O5: empty, at top. */
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

    /* release [Q3], T5: the slot has been read before the owner sees it as free. */
    if (!wf_cas_release(&deque->top, &top, top + 1)) {
        return WF_STEAL_RETRY;
    }
    WF_DEBUG_ASSERT(item != NULL);
    *out = item;
    return WF_STEAL_SUCCESS;
}
