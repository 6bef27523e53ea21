/* SPDX-License-Identifier: MIT */
/*
 * room.h - waiting for space in the inject queue.
 */
#ifndef WF_SCHED_ROOM_H
#define WF_SCHED_ROOM_H

#include <stddef.h>
#include <stdint.h>

#include <weft/future.h>

#include "base/lock.h"
#include "sched/waitq.h"

struct wf_inject;

struct wf_room {
    struct wf_lock lock; /* guards waiters and closed */
    struct wf_waitq waiters;
    bool closed;
    _Atomic(uint32_t) waiting; /* written under lock, read by any thread */
};

/* Its result is 0 when there may be space or the queue was closed: try again. */
struct wf_room_future {
    weft_future future;
    struct wf_room *room;
    const struct wf_inject *inject;
    struct wf_wait wait;
    struct wf_wait_node node;
};

void wf_room_init(struct wf_room *room);
void wf_room_future_init(struct wf_room_future *future, struct wf_room *room,
                         const struct wf_inject *inject);

/* Worker, after it took count nodes out of the queue: wakes up to count waiters. */
void wf_room_freed(struct wf_room *room, const struct wf_inject *inject, size_t count);

/* The stopping thread: wakes all waiters, and refuses new ones. */
void wf_room_close(struct wf_room *room);

#endif
