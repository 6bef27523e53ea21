/* SPDX-License-Identifier: MIT */
/*
 * spsc.h - single-producer single-consumer queue.
 */
#ifndef SPSC_H
#define SPSC_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * A compile-time constant, so that a model can use a queue that is full after a few steps. Must
 * be a power of two.
 */
#ifndef SPSC_SLOTS
#define SPSC_SLOTS 1024
#endif

struct spsc {
    atomic_uint head; /* consumer writes, both read */
    atomic_uint tail; /* producer writes, both read */
    void *slots[SPSC_SLOTS];
};

/* Producer only. Returns false if the queue is full. */
bool spsc_push(struct spsc *queue, void *item);

/* Consumer only. Returns NULL if the queue is empty. */
void *spsc_pop(struct spsc *queue);

#endif
