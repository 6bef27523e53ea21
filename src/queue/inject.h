/* SPDX-License-Identifier: MIT */
/*
 * inject.h - inject queue: tasks from threads outside the runtime, and overflow of run queues.
 *
 * A list under a lock, since this is the slow path into the runtime, with a length that can be
 * read without the lock. The queue also counts admissions from outside and closes them, because
 * both must be ordered with the pushes.
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
    bool closed;            /* under lock: no more admissions */
    uint64_t admitted;      /* under lock: number of nodes admitted so far */
    size_t capacity;        /* constant; limits admit, but not push */
    _Atomic(size_t) length; /* written under lock, read by any thread */
};

enum wf_admit {
    WF_ADMIT_OK,
    WF_ADMIT_FULL,
    WF_ADMIT_CLOSED,
};

void wf_inject_init(struct wf_inject *queue, size_t capacity);

/* Any thread. Admits a new node and pushes it. Fails if the queue is full or closed. */
enum wf_admit wf_inject_admit(struct wf_inject *queue, struct wf_qnode *node);

/* Any thread. Pushes a node that was admitted before. Never fails. */
void wf_inject_push(struct wf_inject *queue, struct wf_qnode *node);

/* Same as wf_inject_push(), for a whole list, which is empty afterwards. */
void wf_inject_push_list(struct wf_inject *queue, struct wf_qlist *list);

/* Any thread. Moves up to max nodes to the end of out, oldest first. */
void wf_inject_pop(struct wf_inject *queue, size_t max, struct wf_qlist *out);

/* Any thread. Ends admission. Returns the number of nodes that were admitted. */
uint64_t wf_inject_close(struct wf_inject *queue);

/* Any thread. Returns the number of nodes admitted so far. */
uint64_t wf_inject_admitted(struct wf_inject *queue);

/* Any thread. Counts a new node that does not go through this list. Fails if the queue is
 * closed. */
enum wf_admit wf_inject_admit_elsewhere(struct wf_inject *queue);

/* Any thread, without the lock. Returns the number of nodes in the list. */
static inline size_t wf_inject_len(const struct wf_inject *queue)
{
    /* relaxed: a hint; a caller that needs certainty issues a full fence before. */
    return wf_load_relaxed(&queue->length);
}

static inline bool wf_inject_has_room(const struct wf_inject *queue)
{
    return wf_inject_len(queue) < queue->capacity;
}

#endif
