/* SPDX-License-Identifier: MIT */
/*
 * room.c - waiting for space in the inject queue.
 *
 *   Waiter, under the lock             Worker that has fetched tasks
 *   A1  link, waiting += 1             B1  (the length went down)
 *   A2  full fence [N1]                B2  full fence [N1]
 *   A3  space after all? Unlink        B3  waiting > 0: lock, wake as many as
 *                                          it fetched
 *
 * One fence comes first: A3 sees the space, or B3 sees the waiter. A waiter that is woken tries
 * again, and may find that other submitters were faster. Then it waits again, at the end of the
 * queue.
 *
 * Edges.
 * [N1] the fences of A2 and B2, as above.
 */
#include "sched/room.h"

#include "queue/inject.h"
#include "sched/task.h"
#include "sched/thread.h"

void wf_room_init(struct wf_room *room)
{
    wf_lock_init(&room->lock, WF_RANK_ROOM);
    wf_waitq_init(&room->waiters);
}

/* Under the lock. */
static void count_waiting(struct wf_room *room, int32_t change)
{
    /* relaxed: written under the lock; readers are behind the fence [N1]. */
    uint32_t waiting = wf_load_relaxed(&room->waiting) + (uint32_t)change;
    /* relaxed: written under the lock; readers are behind the fence [N1]. */
    wf_store_relaxed(&room->waiting, waiting);
}

static int room_start(struct wf_room_future *self)
{
    struct wf_room *room = self->room;
    wf_wait_start(&self->wait, wf_thread_waiter());
    wf_wait_node_init(&self->node, &self->wait, 0);
    wf_lock(&room->lock);
    wf_waitq_add(&room->waiters, &self->node);
    count_waiting(room, 1);
    /* fence [N1], A2: linked before the length is read. */
    wf_fence_full();
    bool ready = room->closed || wf_inject_has_room(self->inject);
    if (ready) {
        (void)wf_waitq_remove(&self->node);
        count_waiting(room, -1);
    }
    wf_unlock(&room->lock);
    if (ready) {
        wf_wait_retract(&self->wait);
        return 0;
    }
    return WEFT_PENDING;
}

static int room_poll(weft_future *future)
{
    struct wf_room_future *self = (struct wf_room_future *)future;
    if (!wf_wait_is_started(&self->wait)) {
        return room_start(self);
    }
    return wf_wait_poll(&self->wait);
}

static bool room_cancel(weft_future *future)
{
    struct wf_room_future *self = (struct wf_room_future *)future;
    struct wf_room *room = self->room;
    if (!wf_wait_abandon(&self->wait, WF_WAIT_CANCELLED)) {
        return false;
    }
    wf_lock(&room->lock);
    if (wf_waitq_remove(&self->node)) {
        count_waiting(room, -1);
    }
    wf_unlock(&room->lock);
    return true;
}

static const weft_future_ops room_ops = { .poll = room_poll, .cancel = room_cancel };

void wf_room_future_init(struct wf_room_future *future, struct wf_room *room,
                         const struct wf_inject *inject)
{
    *future = (struct wf_room_future){ .room = room, .inject = inject };
    future->future.ops = &room_ops;
}

/* Wakes one waiter. Returns false if there is none. */
static bool wake_one(struct wf_room *room)
{
    struct wf_task *task = NULL;
    wf_lock(&room->lock);
    struct wf_wait_node *node;
    while (task == NULL && (node = wf_waitq_first(&room->waiters)) != NULL) {
        (void)wf_waitq_remove(node);
        count_waiting(room, -1);
        if (wf_wait_claim(node)) {
            task = wf_wait_finish(node->wait);
        }
    }
    wf_unlock(&room->lock);
    if (task != NULL) {
        wf_task_wake(task);
    }
    return task != NULL;
}

void wf_room_freed(struct wf_room *room, const struct wf_inject *inject, size_t count)
{
    /* fence [N1], B2: the length went down before this. */
    wf_fence_full();
    /* relaxed: behind the fence. */
    if (wf_load_relaxed(&room->waiting) == 0 || !wf_inject_has_room(inject)) {
        return;
    }
    while (count > 0 && wake_one(room)) {
        count--;
    }
}

void wf_room_close(struct wf_room *room)
{
    wf_lock(&room->lock);
    room->closed = true;
    wf_unlock(&room->lock);
    while (wake_one(room)) {
    }
}
