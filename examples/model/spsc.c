/* SPDX-License-Identifier: MIT */
/*
 * spsc.c - single-producer single-consumer queue.
 *
 * [Q1] push releases tail, pop acquires it: the slot is filled, and so is the object that
 * the item points to. [Q2] pop releases head, push acquires it: the slot has been read.
 *
 * With SPSC_BROKEN, push does not release tail, to show what the model checker reports.
 */
#include "spsc.h"

#include <stddef.h>

#ifdef SPSC_BROKEN
#define PUSH_ORDER memory_order_relaxed
#else
#define PUSH_ORDER memory_order_release
#endif

bool spsc_push(struct spsc *queue, void *item)
{
    unsigned tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    unsigned head = atomic_load_explicit(&queue->head, memory_order_acquire); /* [Q2] */
    if (tail - head == SPSC_SLOTS) {
        return false;
    }
    queue->slots[tail % SPSC_SLOTS] = item;
    atomic_store_explicit(&queue->tail, tail + 1, PUSH_ORDER); /* [Q1] */
    return true;
}

void *spsc_pop(struct spsc *queue)
{
    unsigned head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(&queue->tail, memory_order_acquire); /* [Q1] */
    if (head == tail) {
        return NULL;
    }
    void *item = queue->slots[head % SPSC_SLOTS];
    atomic_store_explicit(&queue->head, head + 1, memory_order_release); /* [Q2] */
    return item;
}
