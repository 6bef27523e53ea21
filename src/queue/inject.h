/* SPDX-License-Identifier: MIT */
/*
 * inject.h - the shared queue: what outside threads push, and overflow.
 *
 * A list under a lock, since it is the slow way in, with a length that can be
 * read without the lock. It also counts what was spawned from outside and
 * closes that door, because both must happen in one order with the pushes.
 */
#ifndef WF_QUEUE_INJECT_H
#define WF_QUEUE_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "queue/node.h"

struct wf_inject {
    struct wf_lock lock;    /* guards list, closed and admitted */
    struct wf_qlist list;   /* under lock */
    bool closed;            /* under lock: admits no more */
    uint64_t admitted;      /* under lock: how many wf_inject_admit() let in */
    size_t capacity;        /* constant; admit respects it, push does not */
    _Atomic(size_t) length; /* written under lock, read by all */
};

enum wf_admit {
    WF_ADMIT_OK,
    WF_ADMIT_FULL,
    WF_ADMIT_CLOSED,
};

void wf_inject_init(struct wf_inject *queue, size_t capacity);

/* Any thread. A newcomer: refused above the capacity and after close. */
enum wf_admit wf_inject_admit(struct wf_inject *queue, struct wf_qnode *node);

/* Any thread. Somebody who is already in: never refused. */
void wf_inject_push(struct wf_inject *queue, struct wf_qnode *node);

/* The same for a whole list, which is empty afterwards. */
void wf_inject_push_list(struct wf_inject *queue, struct wf_qlist *list);

/* Any thread. Moves up to max nodes to the end of out, oldest first. */
void wf_inject_pop(struct wf_inject *queue, size_t max, struct wf_qlist *out);

/* Any thread. Admits nobody from now on; returns how many were admitted. */
uint64_t wf_inject_close(struct wf_inject *queue);

/* Any thread. How many were admitted so far. */
uint64_t wf_inject_admitted(struct wf_inject *queue);

/* Any thread. Counts a newcomer that goes somewhere else than through the
 * list; refused after close. */
enum wf_admit wf_inject_admit_elsewhere(struct wf_inject *queue);

/* Any thread, without the lock. */
static inline size_t wf_inject_len(const struct wf_inject *queue)
{
    /* relaxed: a hint; whoever needs certainty stands behind a fence. */
    return wf_load_relaxed(&queue->length);
}

static inline bool wf_inject_has_room(const struct wf_inject *queue)
{
    return wf_inject_len(queue) < queue->capacity;
}

#endif
