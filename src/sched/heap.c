/* SPDX-License-Identifier: MIT */
/*
 * heap.c - slab allocator for the tasks of a runtime, which can also list all of them.
 *
 * A slot is carved from a chunk once and is a task forever after, alive while its reference
 * count is above 0. So a walker may look at any carved slot at any time: it takes a reference
 * by a CAS that fails on a free slot. It does no harm if the slot has become another task in
 * between.
 *
 * Retiring. Handles and wakers may outlive the runtime. So the walker marks every task that
 * still has references ORPHAN and counts it. The thread that drops the last reference of an
 * orphan decrements the count, and the last of all frees the heap. The mark is set by a CAS on
 * the word that holds the references, so a task is either marked and counted, or its last
 * reference is gone. In the latter case its slot is in a free list or on its way there, in the
 * hands of a thread that still needs the heap for a few instructions. The walker waits until
 * every slot has arrived. The count starts at 1 for the walker itself, so it cannot reach 0
 * before that.
 *
 * Edges.
 * [H1] carving releases the chunk's count and the chunk list, the walker acquires them: it sees
 *      slots with a valid state word.
 * [H2] spawn releases the state word, the walker acquires it: it sees an initialized task.
 *      (Spawn's side is the store that the contract of wf_heap_alloc() requires.)
 * [H3] each orphan's end releases the count, the last acquires it: the memory is freed after
 *      the last use by every thread.
 *
 * Checked by tests/model/heap_model.c.
 */
#include "sched/heap.h"

#include <sched.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"

enum {
    CHUNK_BYTES = 64 * 1024,
#ifdef WF_MODEL
    PATIENCE = 0,
#else
    PATIENCE = 1000, /* yields of wf_heap_retire() before it reports a task that is still held */
#endif
    PATIENCE_NS = 100 * 1000 * 1000, /* beside busy threads, a yield takes milliseconds */
};

struct wf_chunk {
    struct wf_chunk *next;    /* constant once linked */
    uint32_t slot_size;       /* constant */
    uint32_t slot_count;      /* constant */
    _Atomic(uint32_t) carved; /* the slab's owner writes, walkers read */
    _Alignas(WF_HEAP_GRAIN) unsigned char slots[];
};

/* Header in front of a task that is too large for a slab. */
struct large {
    _Alignas(WF_HEAP_GRAIN) struct wf_list link;
    size_t bytes; /* 0 for the position marker of a walker */
};

static struct wf_task *task_of_large(struct large *large)
{
    return (struct wf_task *)(large + 1);
}

static size_t heap_bytes(unsigned slabs)
{
    return sizeof(struct wf_heap) + slabs * sizeof(struct wf_slab);
}

struct wf_heap *wf_heap_create(const weft_allocator *allocator, struct wf_sched *sched,
                               unsigned workers)
{
    WF_ASSERT(workers < WF_HEAP_SLABS_MAX);
    struct wf_heap *heap =
        wf_alloc_zeroed(allocator, heap_bytes(workers + 1), _Alignof(struct wf_heap));
    if (heap == NULL) {
        return NULL;
    }
    heap->allocator = *allocator;
    heap->sched = sched;
    heap->outside = workers;
    wf_lock_init(&heap->outside_lock, WF_RANK_HEAP);
    wf_lock_init(&heap->large_lock, WF_RANK_HEAP);
    wf_list_init(&heap->large);
    for (unsigned i = 0; i < WF_HEAP_JOIN_LOCKS; i++) {
        wf_lock_init(&heap->join_locks[i].lock, WF_RANK_JOIN);
    }
    return heap;
}

static struct wf_task *alloc_large(struct wf_heap *heap, size_t size)
{
    size_t bytes = sizeof(struct large) + size;
    if (bytes < size) {
        return NULL;
    }
    struct large *large = wf_alloc(&heap->allocator, bytes, _Alignof(struct large));
    if (large == NULL) {
        return NULL;
    }
    large->bytes = bytes;
    struct wf_task *task = task_of_large(large);
    /* relaxed: walkers reach it through the lock below. */
    wf_store_relaxed(&task->state, (uint64_t)0);
    wf_lock(&heap->large_lock);
    wf_list_push_back(&heap->large, &large->link);
    wf_unlock(&heap->large_lock);
    return task;
}

size_t wf_heap_size_of(struct wf_task *task)
{
    const struct large *large = (struct large *)(void *)task - 1;
    return wf_heap_is_large(task) ? large->bytes - sizeof *large
                                  : (size_t)wf_heap_class_of(task) * WF_HEAP_GRAIN;
}

static void free_large(struct wf_heap *heap, struct wf_task *task)
{
    struct large *large = (struct large *)(void *)task - 1;
    /* Once the task is off the list, wf_heap_retire() may free the heap. */
    weft_allocator allocator = heap->allocator;
    wf_lock(&heap->large_lock);
    wf_list_remove(&large->link);
    wf_unlock(&heap->large_lock);
    wf_free(&allocator, large, large->bytes, _Alignof(struct large));
}

static struct wf_chunk *add_chunk(struct wf_heap *heap, struct wf_slab *slab, unsigned class)
{
    struct wf_chunk *chunk = wf_alloc(&heap->allocator, CHUNK_BYTES, _Alignof(struct wf_chunk));
    if (chunk == NULL) {
        return NULL;
    }
    chunk->slot_size = class * WF_HEAP_GRAIN;
    chunk->slot_count = (CHUNK_BYTES - sizeof *chunk) / chunk->slot_size;
    /* relaxed: only the owner pushes here, and [H1] publishes the chunk. */
    wf_store_relaxed(&chunk->carved, 0u);
    chunk->next = wf_load_relaxed(&slab->chunks);
    /* release [H1]: the chunk is initialized. */
    wf_store_release(&slab->chunks, chunk);
    slab->carving[class] = chunk;
    return chunk;
}

static struct wf_task *carve(struct wf_heap *heap, struct wf_slab *slab, unsigned class)
{
    struct wf_chunk *chunk = slab->carving[class];
    /* relaxed: the slab's owner is the only writer. */
    uint32_t carved = chunk == NULL ? 0 : wf_load_relaxed(&chunk->carved);
    if (chunk == NULL || carved == chunk->slot_count) {
        chunk = add_chunk(heap, slab, class);
        carved = 0;
    }
    if (chunk == NULL) {
        return NULL;
    }
    struct wf_task *task = (struct wf_task *)(void *)&chunk->slots[carved * chunk->slot_size];
    /* relaxed: published by [H1] below. */
    wf_store_relaxed(&task->state, (uint64_t)0);
    /* release [H1]: the slot's state word says "free". */
    wf_store_release(&chunk->carved, carved + 1);
    return task;
}

/* Collects the tasks that other threads have freed. Returns their number. */
static size_t collect_remote(struct wf_slab *slab)
{
    struct wf_qlist freed = { 0 };
    wf_mpsc_take_all(&slab->remote, &freed);
    size_t count = freed.count;
    for (struct wf_qnode *node = wf_qlist_pop(&freed); node; node = wf_qlist_pop(&freed)) {
        wf_heap_put_back(slab, wf_task_of(node));
    }
    return count;
}

static struct wf_task *alloc_small(struct wf_heap *heap, struct wf_slab *slab, unsigned class)
{
    if (slab->free[class] == NULL) {
        (void)collect_remote(slab);
    }
    struct wf_qnode *node = slab->free[class];
    if (node == NULL) {
        return carve(heap, slab, class);
    }
    slab->free[class] = node->next;
    return wf_task_of(node);
}

struct wf_task *wf_heap_alloc(struct wf_heap *heap, unsigned slab, size_t size)
{
    struct wf_task *task;
    size_t class = size > SIZE_MAX - WF_HEAP_GRAIN ? WF_HEAP_CLASSES
                                                   : (size + WF_HEAP_GRAIN - 1) / WF_HEAP_GRAIN;
    if (class >= WF_HEAP_CLASSES) {
        class = 0;
        task = alloc_large(heap, size);
    } else if (slab == heap->outside) {
        wf_lock(&heap->outside_lock);
        task = alloc_small(heap, &heap->slabs[slab], (unsigned)class);
        wf_unlock(&heap->outside_lock);
    } else {
        task = alloc_small(heap, &heap->slabs[slab], (unsigned)class);
    }
    if (task != NULL) {
        task->heap = heap;
        task->home = wf_heap_home(slab, class);
    }
    return task;
}

static void free_heap(struct wf_heap *heap)
{
    for (unsigned i = 0; i <= heap->outside; i++) {
        /* relaxed: no other thread is left; [H3] came before. */
        struct wf_chunk *chunk = wf_load_relaxed(&heap->slabs[i].chunks);
        while (chunk != NULL) {
            struct wf_chunk *next = chunk->next;
            wf_free(&heap->allocator, chunk, CHUNK_BYTES, _Alignof(struct wf_chunk));
            chunk = next;
        }
    }
    WF_ASSERT(wf_list_is_empty(&heap->large));
    if (heap->free_sched != NULL) {
        heap->free_sched(heap->sched);
    }
    weft_allocator allocator = heap->allocator;
    wf_free(&allocator, heap, heap_bytes(heap->outside + 1), _Alignof(struct wf_heap));
}

static void orphan_gone(struct wf_heap *heap)
{
    /* acq_rel [H3]: the last one sees that all others are done. */
    if (wf_fetch_sub_acq_rel(&heap->orphans, 1) == 1) {
        free_heap(heap);
    }
}

void wf_heap_free(struct wf_task *task, unsigned slab)
{
    struct wf_heap *heap = task->heap;
    /* relaxed: the last reference is gone, so no thread writes it any more. */
    bool orphan = (wf_load_relaxed(&task->state) & WF_STATE_ORPHAN) != 0;

    if (wf_heap_is_large(task)) {
        free_large(heap, task);
    } else if (!orphan && slab == wf_heap_slab_of(task) && slab != heap->outside) {
        wf_heap_put_back(&heap->slabs[slab], task);
    } else if (!orphan) {
        (void)wf_mpsc_push(&heap->slabs[wf_heap_slab_of(task)].remote, &task->node);
    }
    if (orphan) {
        orphan_gone(heap);
    }
}

/* Takes a reference on a task that is not complete. Returns false if it is free or complete. */
static bool retain_alive(struct wf_task *task)
{
    /* relaxed: the CAS checks the value. */
    uint64_t old = wf_load_relaxed(&task->state);
    do {
        if (wf_state_refs(old) == 0 || wf_state_is_complete(old)) {
            return false;
        }
        /* acquire [H2]: a live task is initialized. It may be another task than the load has
         * seen, with the same state. */
    } while (!wf_cas_weak_acquire(&task->state, &old, old + WF_STATE_REF));
    return true;
}

static void visit_if_alive(struct wf_task *task, void (*visit)(struct wf_task *task))
{
    if (retain_alive(task)) {
        visit(task);
        wf_task_release(task);
    }
}

/* Returns the next large task after the marker, with a reference, or NULL. Moves the marker
 * behind it, so that the lock need not be held during the visit. */
static struct wf_task *next_large(struct wf_heap *heap, struct large *marker)
{
    struct wf_task *found = NULL;
    wf_lock(&heap->large_lock);
    while (found == NULL && marker->link.next != &heap->large) {
        struct large *large = wf_container_of(marker->link.next, struct large, link);
        wf_list_remove(&marker->link);
        wf_list_push_front(&large->link, &marker->link);
        if (large->bytes != 0 && retain_alive(task_of_large(large))) {
            found = task_of_large(large);
        }
    }
    wf_unlock(&heap->large_lock);
    return found;
}

static void visit_large(struct wf_heap *heap, void (*visit)(struct wf_task *task))
{
    struct large marker = { .bytes = 0 };
    wf_lock(&heap->large_lock);
    wf_list_push_front(&heap->large, &marker.link);
    wf_unlock(&heap->large_lock);

    struct wf_task *task;
    while ((task = next_large(heap, &marker)) != NULL) {
        visit(task);
        wf_task_release(task);
    }
    wf_lock(&heap->large_lock);
    wf_list_remove(&marker.link);
    wf_unlock(&heap->large_lock);
}

void wf_heap_visit(struct wf_heap *heap, void (*visit)(struct wf_task *task))
{
    for (unsigned i = 0; i <= heap->outside; i++) {
        /* acquire [H1]: the chunk is initialized. */
        struct wf_chunk *chunk = wf_load_acquire(&heap->slabs[i].chunks);
        for (; chunk != NULL; chunk = chunk->next) {
            /* acquire [H1]: every slot below it has a state word. */
            uint32_t carved = wf_load_acquire(&chunk->carved);
            for (uint32_t at = 0; at < carved; at++) {
                visit_if_alive((void *)&chunk->slots[at * chunk->slot_size], visit);
            }
        }
    }
    visit_large(heap, visit);
}

/* Marks and counts a task that still has references. Returns false if it has none. */
static bool orphan_if_held(struct wf_heap *heap, struct wf_task *task)
{
    /* relaxed: the CAS checks the value. */
    uint64_t old = wf_load_relaxed(&task->state);
    while (wf_state_refs(old) > 0) {
        /* relaxed: the mark below publishes it. If it has to be taken back, the count of
         * wf_heap_retire() itself keeps it above 0. */
        (void)wf_fetch_add_relaxed(&heap->orphans, 1);
        /* release [H3]: whoever finds the mark counts down after this. */
        if (wf_cas_release(&task->state, &old, old | WF_STATE_ORPHAN)) {
            return true;
        }
        /* relaxed: as above, taken back. */
        (void)wf_fetch_sub_relaxed(&heap->orphans, 1);
    }
    return false;
}

/* Waits a while for a reference to be dropped. A thread that wakes a task, or a worker of
 * another runtime, may be about to drop one: that is not a leaked handle or waker. */
static void be_patient(struct wf_heap *heap, const struct wf_task *task)
{
    /* relaxed: only a hint; a CAS sets the mark. */
    while (heap->patience > 0 && wf_state_refs(wf_load_relaxed(&task->state)) > 0) {
        heap->patience = wf_clock_real() < heap->patient_until ? heap->patience - 1 : 0;
        (void)sched_yield();
    }
}

/* Same as orphan_if_held(), and reports the task. Its memory stays while wf_heap_retire() runs:
 * that of a slab is freed with the heap, and freeing a large task needs the lock of the list,
 * which the caller holds. */
static bool report_if_held(struct wf_heap *heap, struct wf_task *task)
{
    be_patient(heap, task);
    bool is_held = orphan_if_held(heap, task);
    if (is_held && heap->on_orphan != NULL) {
        heap->on_orphan(task, heap->orphan_arg);
    }
    return is_held;
}

/* Marks the orphans of a slab. Returns the number of its slots that are not orphans. */
static size_t orphan_slab(struct wf_heap *heap, struct wf_slab *slab)
{
    size_t others = 0;
    /* relaxed: no thread allocates any more, and every earlier allocation happens before this. */
    struct wf_chunk *chunk = wf_load_relaxed(&slab->chunks);
    for (; chunk != NULL; chunk = chunk->next) {
        /* relaxed: the same as above. */
        uint32_t carved = wf_load_relaxed(&chunk->carved);
        for (uint32_t at = 0; at < carved; at++) {
            others += !report_if_held(heap, (void *)&chunk->slots[at * chunk->slot_size]);
        }
    }
    return others;
}

/* Marks the large orphans. Returns true if no other large task is left. */
static bool orphan_large(struct wf_heap *heap)
{
    bool settled = true;
    wf_lock(&heap->large_lock);
    for (struct wf_list *link = heap->large.next; link != &heap->large; link = link->next) {
        struct wf_task *task = task_of_large(wf_container_of(link, struct large, link));
        /* relaxed: only this thread sets the mark. */
        bool marked = (wf_load_relaxed(&task->state) & WF_STATE_ORPHAN) != 0;
        settled = (marked || report_if_held(heap, task)) && settled;
    }
    wf_unlock(&heap->large_lock);
    return settled;
}

static size_t count_free(const struct wf_slab *slab)
{
    size_t count = 0;
    for (unsigned class = 0; class < WF_HEAP_CLASSES; class ++) {
        for (struct wf_qnode *node = slab->free[class]; node != NULL; node = node->next) {
            count++;
        }
    }
    return count;
}

void wf_heap_retire(struct wf_heap *heap, void (*free_sched)(struct wf_sched *sched))
{
    heap->free_sched = free_sched;
    heap->patience = heap->on_orphan != NULL ? PATIENCE : 0;
    heap->patient_until = wf_clock_real() + PATIENCE_NS;
    /* relaxed: no task is marked yet, so no thread decrements yet. */
    wf_store_relaxed(&heap->orphans, 1);
    for (unsigned i = 0; i <= heap->outside; i++) {
        struct wf_slab *slab = &heap->slabs[i];
        size_t expected = orphan_slab(heap, slab);
        size_t arrived = count_free(slab);
        arrived += collect_remote(slab);
        while (arrived < expected) {
            (void)sched_yield(); /* The freeing thread needs a few more instructions. */
            arrived += collect_remote(slab);
        }
    }
    while (!orphan_large(heap)) {
        (void)sched_yield();
    }
    orphan_gone(heap);
}
