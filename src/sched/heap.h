/* SPDX-License-Identifier: MIT */
/*
 * heap.h - slab allocator for the tasks of a runtime, which can also list all of them.
 *
 * There is a slab for each worker and one, under a lock, for all other threads. A slab has size
 * classes of 64 bytes. A task goes back to the slab it came from, regardless of the thread that
 * frees it. Slabs return no memory before the runtime ends, so a slot is always a task, alive
 * or free. That makes a list of all tasks unnecessary: a walker visits the slots.
 *
 * The heap can outlive the runtime: as long as a handle or a waker of a task exists, the slots
 * stay, and with them the scheduler's memory.
 */
#ifndef WF_SCHED_HEAP_H
#define WF_SCHED_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/base.h>

#include "base/atomic.h"
#include "base/list.h"
#include "base/lock.h"
#include "queue/mpsc.h"
#include "sched/task.h"

enum {
    WF_HEAP_GRAIN = 64,   /* size classes, and the alignment of a task */
    WF_HEAP_CLASSES = 17, /* up to 1024 bytes; class 0 means "large" */
    WF_HEAP_CLASS_BITS = 5,
    WF_HEAP_SLABS_MAX = 2047,
    WF_HEAP_JOIN_LOCKS = 64, /* a power of two */
};

struct wf_chunk;
struct wf_sched;

struct wf_slab {
    /* Owner only, or under the heap's outside lock. */
    struct wf_qnode *free[WF_HEAP_CLASSES];
    struct wf_chunk *carving[WF_HEAP_CLASSES];
    /* The owner pushes, walkers read. */
    _Atomic(struct wf_chunk *) chunks;
    /* Other threads push what they free. */
    _Alignas(WF_CACHE_LINE) struct wf_mpsc remote;
};

struct wf_join_lock {
    _Alignas(64) struct wf_lock lock; /* guards joiner of the tasks that hash to it */
};

struct wf_heap {
    weft_allocator allocator; /* constant */
    struct wf_sched *sched;   /* constant; freed with the heap */
    unsigned outside;         /* constant: index of the slab under outside_lock */
    struct wf_lock outside_lock;
    struct wf_lock large_lock; /* guards large */
    struct wf_list large;
    void (*free_sched)(struct wf_sched *sched);
    /* Called by wf_heap_retire() for each task that still has references, with locks held; may
     * be NULL. */
    void (*on_orphan)(struct wf_task *task, void *arg);
    void *orphan_arg;
    unsigned patience;        /* of wf_heap_retire(): yields that are left */
    int64_t patient_until;    /* and the time when they end */
    _Atomic(int64_t) orphans; /* after wf_heap_retire(): orphans, and one for retire itself */
    struct wf_join_lock join_locks[WF_HEAP_JOIN_LOCKS];
    struct wf_slab slabs[]; /* one per worker, then the outside one */
};

/* Returns NULL if there is no memory. */
struct wf_heap *wf_heap_create(const weft_allocator *allocator, struct wf_sched *sched,
                               unsigned workers);

/*
 * Allocates a task of size bytes in total from the given slab, which the caller owns, or from
 * heap->outside. Sets only heap and home. The caller stores the state word with release once
 * the task is initialized. Returns NULL if there is no memory.
 */
struct wf_task *wf_heap_alloc(struct wf_heap *heap, unsigned slab, size_t size);

/* Any thread, once the last reference is gone: frees the task. slab is the one that the caller
 * owns, or heap->outside. */
void wf_heap_free(struct wf_task *task, unsigned slab);

/* Calls visit for every task that is not complete, with a reference held. Tasks that start or
 * end meanwhile may be missed or visited. Any thread. */
void wf_heap_visit(struct wf_heap *heap, void (*visit)(struct wf_task *task));

/*
 * Releases the heap: frees it immediately, or with the last reference to one of its tasks. Then
 * free_sched(heap->sched) is called, so a thread that holds a task may use the scheduler. Every
 * task must be complete, and no thread may allocate any more.
 */
void wf_heap_retire(struct wf_heap *heap, void (*free_sched)(struct wf_sched *sched));

/* Packs where a task came from: the slab, and the size class in the low bits. */
static inline uint16_t wf_heap_home(unsigned slab, size_t class)
{
    return (uint16_t)(slab << WF_HEAP_CLASS_BITS | class);
}

static inline unsigned wf_heap_class_of(const struct wf_task *task)
{
    return task->home & ((1u << WF_HEAP_CLASS_BITS) - 1);
}

static inline unsigned wf_heap_slab_of(const struct wf_task *task)
{
    return task->home >> WF_HEAP_CLASS_BITS;
}

/* Returns whether the task was allocated on its own. Otherwise its slot is a task until the
 * heap is freed. */
static inline bool wf_heap_is_large(const struct wf_task *task)
{
    return wf_heap_class_of(task) == 0;
}

/* Returns the size of a task's memory, which is at least the requested size. */
size_t wf_heap_size_of(struct wf_task *task);

/* The owner of a slab: same as wf_heap_alloc(). A reused slot already has heap and home. */
static inline struct wf_task *wf_heap_alloc_own(struct wf_heap *heap, unsigned slab, size_t size)
{
    size_t class = size / WF_HEAP_GRAIN + (size % WF_HEAP_GRAIN != 0);
    struct wf_qnode **free = heap->slabs[slab].free;
    if (wf_unlikely(class >= WF_HEAP_CLASSES || free[class] == NULL)) {
        return wf_heap_alloc(heap, slab, size);
    }
    struct wf_task *task = wf_task_of(free[class]);
    free[class] = free[class]->next;
    return task;
}

/* The owner of the slab that the task came from: puts it into the free list. */
static inline void wf_heap_put_back(struct wf_slab *slab, struct wf_task *task)
{
    struct wf_qnode **free = &slab->free[wf_heap_class_of(task)];
    task->node.next = *free;
    *free = &task->node;
}

/* The owner of a slab, while the runtime runs: same as wf_heap_free(). */
static inline void wf_heap_free_own(struct wf_heap *heap, struct wf_task *task, unsigned slab)
{
    if (wf_unlikely(wf_heap_slab_of(task) != slab || wf_heap_is_large(task))) {
        wf_heap_free(task, slab);
        return;
    }
    wf_heap_put_back(&heap->slabs[slab], task);
}

static inline struct wf_lock *wf_heap_join_lock(struct wf_heap *heap, const struct wf_task *task)
{
    uintptr_t slot = (uintptr_t)task / WF_HEAP_GRAIN;
    return &heap->join_locks[(slot ^ slot >> 6) & (WF_HEAP_JOIN_LOCKS - 1)].lock;
}

#endif
