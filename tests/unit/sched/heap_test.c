/* SPDX-License-Identifier: MIT */
#include "sched/heap.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "test.h"
#include "timing.h"

/* --- Counting allocator ----------------------------------------------------- */

/* Precedes each allocation, at least this far. */
struct tag {
    size_t size;
    size_t align;
    uint64_t magic;
};

#define TAG_MAGIC UINT64_C(0x7461673774616737)

static _Atomic(int64_t) bytes_out; /* allocated and not freed */
static _Atomic(int64_t) blocks_out;
static _Atomic(int64_t) allocations;
static _Atomic(int64_t) fail_at; /* number of the allocation that fails, from 1; 0: none */

static size_t offset_of(size_t align)
{
    return align < 64 ? 64 : align;
}

static void *count_alloc(void *ctx, size_t size, size_t align)
{
    CHECK(ctx == &bytes_out);
    if (atomic_fetch_add(&allocations, 1) + 1 == atomic_load(&fail_at)) {
        return NULL;
    }
    size_t offset = offset_of(align);
    size_t bytes = (offset + size + align - 1) / align * align;
    char *block = size > SIZE_MAX / 4 ? NULL : aligned_alloc(offset, (bytes + 63) / 64 * 64);
    if (block == NULL) {
        return NULL;
    }
    memset(block, 0xee, offset + size);
    struct tag *tag = (struct tag *)(void *)(block + offset) - 1;
    *tag = (struct tag){ size, align, TAG_MAGIC };
    (void)atomic_fetch_add(&bytes_out, (int64_t)size);
    (void)atomic_fetch_add(&blocks_out, 1);
    return block + offset;
}

static void count_free(void *ctx, void *ptr, size_t size, size_t align)
{
    CHECK(ctx == &bytes_out);
    struct tag *tag = (struct tag *)ptr - 1;
    CHECK_EQ(tag->magic, TAG_MAGIC);
    CHECK_EQ(tag->size, size);
    CHECK_EQ(tag->align, align);
    tag->magic = 0;
    (void)atomic_fetch_sub(&bytes_out, (int64_t)size);
    (void)atomic_fetch_sub(&blocks_out, 1);
    free((char *)ptr - offset_of(align));
}

static const weft_allocator counting = { count_alloc, count_free, &bytes_out };

/* --- Dummy tasks that only occupy memory ------------------------------------ */

struct dummy {
    struct wf_task task;
    _Atomic(uint64_t) visits;
    uint64_t canary; /* the address, while the task is alive */
    size_t size;
};

static _Atomic(uint64_t) sched_freed;
static int sched_stands_for; /* its address serves as the scheduler */

static struct wf_sched *fake_sched(void)
{
    return (struct wf_sched *)(void *)&sched_stands_for;
}

static void free_fake_sched(struct wf_sched *sched)
{
    CHECK(sched == fake_sched());
    (void)atomic_fetch_add(&sched_freed, 1);
}

static void dummy_destroy(struct wf_task *task)
{
    struct dummy *dummy = (struct dummy *)task;
    CHECK_EQ(dummy->canary, (uintptr_t)dummy);
    dummy->canary = 0;
    wf_heap_free(task, task->heap->outside);
}

static const struct wf_task_ops dummy_ops = { .kind = "dummy", .destroy = dummy_destroy };

static struct wf_heap *create(unsigned workers)
{
    CHECK_EQ(atomic_load(&bytes_out), 0);
    atomic_store(&sched_freed, 0);
    struct wf_heap *heap = wf_heap_create(&counting, fake_sched(), workers);
    CHECK(heap != NULL);
    return heap;
}

/* Retires a heap without references to its tasks. */
static void retire_empty(struct wf_heap *heap)
{
    wf_heap_retire(heap, free_fake_sched);
    CHECK_EQ(atomic_load(&sched_freed), 1);
    CHECK_EQ(atomic_load(&bytes_out), 0);
    CHECK_EQ(atomic_load(&blocks_out), 0);
}

static struct dummy *alloc(struct wf_heap *heap, unsigned slab, size_t size, uint64_t state)
{
    struct dummy *dummy = (struct dummy *)wf_heap_alloc(heap, slab, size);
    CHECK(dummy != NULL);
    CHECK(dummy->task.heap == heap);
    CHECK_EQ(wf_state_refs(wf_task_state(&dummy->task)), 0);
    dummy->task.ops = &dummy_ops;
    dummy->canary = (uintptr_t)dummy;
    dummy->size = size;
    atomic_store(&dummy->visits, 0);
    wf_store_release(&dummy->task.state, state);
    return dummy;
}

static struct dummy *alloc_alive(struct wf_heap *heap, unsigned slab, size_t size)
{
    return alloc(heap, slab, size, WF_STATE_IDLE | WF_STATE_REF);
}

static struct dummy *alloc_complete(struct wf_heap *heap, unsigned slab, size_t size)
{
    return alloc(heap, slab, size, WF_STATE_COMPLETE | WF_STATE_REF);
}

static void drop(struct dummy *dummy)
{
    wf_task_release(&dummy->task);
}

/* Frees the task as the owner of a slab rather than from outside. */
static void drop_on(struct dummy *dummy, unsigned slab)
{
    CHECK_EQ(wf_state_refs(wf_state_release(&dummy->task.state)), 1);
    wf_heap_free(&dummy->task, slab);
}

#define SMALL sizeof(struct dummy)

static const size_t edge_sizes[] = {
    SMALL, 127, 128, 129,  191,  192,  193,  255,  256,  257,   511,   512,   513,
    959,   960, 961, 1023, 1024, 1025, 1088, 2048, 4096, 65535, 65536, 65537, 1 << 20,
};
#define EDGES (sizeof edge_sizes / sizeof edge_sizes[0])

/* --- One thread ------------------------------------------------------------- */

static void unused_heap_is_freed_immediately(void)
{
    static const unsigned workers[] = { 1, 2, 64, 200, 1024 };
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        struct wf_heap *heap = create(workers[i]);
        CHECK(heap->sched == fake_sched());
        CHECK_EQ(heap->outside, workers[i]);
        retire_empty(heap);
    }
}

static void heap_can_be_retired_without_scheduler(void)
{
    struct wf_heap *heap = create(1);
    drop(alloc_complete(heap, 0, SMALL));
    wf_heap_retire(heap, NULL);
    CHECK_EQ(atomic_load(&bytes_out), 0);
    CHECK_EQ(atomic_load(&sched_freed), 0);
}

static void tasks_of_every_size_are_aligned_and_disjoint(void)
{
    struct wf_heap *heap = create(2);
    for (unsigned slab = 0; slab <= heap->outside; slab++) {
        struct dummy *dummies[EDGES][3];
        for (size_t i = 0; i < EDGES; i++) {
            for (int n = 0; n < 3; n++) {
                struct dummy *dummy = alloc_complete(heap, slab, edge_sizes[i]);
                CHECK_EQ((uintptr_t)dummy % 64, 0);
                memset(dummy + 1, (int)(i * 3) + n, edge_sizes[i] - sizeof *dummy);
                dummies[i][n] = dummy;
            }
        }
        for (size_t i = 0; i < EDGES; i++) {
            for (int n = 0; n < 3; n++) {
                const unsigned char *bytes = (void *)(dummies[i][n] + 1);
                for (size_t at = 0; at < edge_sizes[i] - sizeof(struct dummy); at++) {
                    CHECK_EQ(bytes[at], (unsigned char)(i * 3 + (size_t)n));
                }
                drop(dummies[i][n]);
            }
        }
    }
    retire_empty(heap);
}

static void size_is_rounded_up_to_its_class_only(void)
{
    struct wf_heap *heap = create(1);
    for (size_t size = 64; size <= 1024; size += 64) {
        /* Two slots of one class are adjacent in a fresh chunk. */
        char *one = (char *)wf_heap_alloc(heap, 0, size);
        char *two = (char *)wf_heap_alloc(heap, 0, size - 63);
        CHECK_EQ(two - one, (int64_t)size);
        wf_heap_free((struct wf_task *)(void *)one, 0);
        wf_heap_free((struct wf_task *)(void *)two, 0);
    }
    retire_empty(heap);
}

static void large_task_is_its_own_block(void)
{
    struct wf_heap *heap = create(1);
    int64_t before = atomic_load(&blocks_out);
    struct dummy *dummy = alloc_complete(heap, 0, 1025);
    CHECK_EQ(atomic_load(&blocks_out), before + 1);
    drop(dummy);
    CHECK_EQ(atomic_load(&blocks_out), before);
    dummy = alloc_complete(heap, 0, 1024);
    drop(dummy);
    CHECK_EQ(atomic_load(&blocks_out), before + 1); /* A slab keeps its chunk. */
    retire_empty(heap);
}

static void task_freed_by_owner_is_reused(void)
{
    struct wf_heap *heap = create(1);
    struct dummy *first = alloc_complete(heap, 0, SMALL);
    drop_on(first, 0);
    CHECK(alloc_complete(heap, 0, SMALL) == first);
    drop_on(first, 0);
    struct dummy *other_class = alloc_complete(heap, 0, 500);
    CHECK(other_class != first);
    drop_on(other_class, 0);
    retire_empty(heap);
}

static void remote_frees_return_to_their_slab(void)
{
    enum {
        COUNT = 5
    };
    struct wf_heap *heap = create(2);
    struct dummy *dummies[COUNT];
    for (int i = 0; i < COUNT; i++) {
        dummies[i] = alloc_complete(heap, 0, SMALL);
    }
    for (int i = 0; i < COUNT; i++) {
        drop_on(dummies[i], i % 2 == 0 ? 1 : heap->outside);
    }
    struct dummy *foreign = alloc_complete(heap, 1, SMALL);
    for (int i = 0; i < COUNT; i++) {
        CHECK(foreign != dummies[i]); /* Not in the slab of the freeing worker. */
    }
    /* The owner finds all of them again before it carves a new slot. */
    for (int i = 0; i < COUNT; i++) {
        struct dummy *again = alloc_complete(heap, 0, SMALL);
        bool known = false;
        for (int n = 0; n < COUNT; n++) {
            known = known || dummies[n] == again;
        }
        CHECK(known);
    }
    for (int i = 0; i < COUNT; i++) {
        drop(dummies[i]);
    }
    drop(foreign);
    retire_empty(heap);
}

static void outside_slab_reuses_slots_freed_from_outside(void)
{
    struct wf_heap *heap = create(1);
    struct dummy *dummy = alloc_complete(heap, heap->outside, SMALL);
    drop_on(dummy, heap->outside);
    CHECK(alloc_complete(heap, heap->outside, SMALL) == dummy);
    drop_on(dummy, 0); /* A worker frees it. */
    CHECK(alloc_complete(heap, heap->outside, SMALL) == dummy);
    drop(dummy);
    retire_empty(heap);
}

static void slab_grows_by_chunks_and_keeps_them(void)
{
    enum {
        COUNT = 5000
    };
    static struct dummy *dummies[COUNT];
    struct wf_heap *heap = create(1);
    int64_t empty = atomic_load(&bytes_out);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            dummies[i] = alloc_complete(heap, 0, 256);
        }
        for (int i = 0; i < COUNT; i++) {
            drop_on(dummies[i], 0);
        }
        /* At most one chunk more than the tasks fill. */
        CHECK_LE(atomic_load(&bytes_out) - empty, COUNT * 256 * 65 / 64 + 2 * 65536);
    }
    retire_empty(heap);
}

/* --- Visiting --------------------------------------------------------------- */

static void count_visit(struct wf_task *task)
{
    struct dummy *dummy = (struct dummy *)task;
    CHECK_EQ(dummy->canary, (uintptr_t)dummy);
    CHECK_GE(wf_state_refs(wf_task_state(task)), 1); /* The visitor's own. */
    (void)atomic_fetch_add(&dummy->visits, 1);
}

static void visit_sees_exactly_tasks_that_are_not_complete(void)
{
    static const uint64_t lifecycles[] = { WF_STATE_IDLE, WF_STATE_RUNNING, WF_STATE_COMPLETE };
    static struct dummy *dummies[3][EDGES][3];
    struct wf_heap *heap = create(2);
    for (unsigned slab = 0; slab < 3; slab++) {
        for (size_t i = 0; i < EDGES; i++) {
            for (int n = 0; n < 3; n++) {
                dummies[slab][i][n] =
                    alloc(heap, slab, edge_sizes[i], lifecycles[n] | WF_STATE_REF);
            }
            drop(alloc_alive(heap, slab, edge_sizes[i])); /* A free slot in between. */
        }
    }
    wf_heap_visit(heap, count_visit);
    wf_heap_visit(heap, count_visit);
    for (unsigned slab = 0; slab < 3; slab++) {
        for (size_t i = 0; i < EDGES; i++) {
            for (int n = 0; n < 3; n++) {
                struct dummy *dummy = dummies[slab][i][n];
                CHECK_EQ(dummy->visits, n < 2 ? 2 : 0);
                CHECK_EQ(wf_state_refs(wf_task_state(&dummy->task)), 1);
                drop(dummy);
            }
        }
    }
    retire_empty(heap);
}

static struct dummy *drop_in_visit; /* the last reference except for the visitor's */
static uint64_t visited;

static void visit_and_end(struct wf_task *task)
{
    visited++;
    if (drop_in_visit != NULL) {
        (void)wf_state_release(&drop_in_visit->task.state);
        drop_in_visit = NULL;
    }
    (void)task;
}

static void task_may_end_during_visit(void)
{
    static const size_t sizes[] = { SMALL, 3000 };
    for (int i = 0; i < 2; i++) {
        struct wf_heap *heap = create(1);
        struct dummy *dummy = alloc_alive(heap, 0, sizes[i]);
        drop_in_visit = dummy;
        visited = 0;
        wf_heap_visit(heap, visit_and_end);
        CHECK_EQ(visited, 1);
        wf_heap_visit(heap, visit_and_end);
        CHECK_EQ(visited, 1);
        retire_empty(heap);
    }
}

static struct wf_heap *heap_of_visit;

static void visit_within(struct wf_task *task)
{
    (void)task;
    wf_heap_visit(heap_of_visit, count_visit);
}

static void visit_may_nest(void)
{
    struct wf_heap *heap = create(1);
    struct dummy *dummies[3];
    for (int i = 0; i < 3; i++) {
        dummies[i] = alloc_alive(heap, 0, 3000);
    }
    heap_of_visit = heap;
    wf_heap_visit(heap, visit_within);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(dummies[i]->visits, 3);
        drop(dummies[i]);
    }
    retire_empty(heap);
}

/* --- Retiring --------------------------------------------------------------- */

static void retire_keeps_heap_until_last_release(void)
{
    struct wf_heap *heap = create(2);
    struct dummy *dummies[EDGES];
    for (size_t i = 0; i < EDGES; i++) {
        dummies[i] = alloc_complete(heap, (unsigned)(i % 3), edge_sizes[i]);
        drop(alloc_complete(heap, (unsigned)(i % 3), edge_sizes[i]));
    }
    wf_task_retain(&dummies[3]->task);
    wf_heap_retire(heap, free_fake_sched);
    for (size_t i = 0; i < EDGES; i++) {
        CHECK_EQ(atomic_load(&sched_freed), 0);
        CHECK((wf_task_state(&dummies[i]->task) & WF_STATE_ORPHAN) != 0);
        CHECK(dummies[i]->task.heap->sched == fake_sched());
        drop(dummies[i]);
    }
    CHECK_EQ(atomic_load(&sched_freed), 0);
    CHECK_LT(0, atomic_load(&bytes_out));
    drop(dummies[3]);
    CHECK_EQ(atomic_load(&sched_freed), 1);
    CHECK_EQ(atomic_load(&bytes_out), 0);
}

static void task_of_any_size_and_slab_can_be_last_release(void)
{
    static const size_t sizes[] = { SMALL, 1024, 1025 };
    for (size_t i = 0; i < 3; i++) {
        for (unsigned slab = 0; slab < 3; slab++) {
            struct wf_heap *heap = create(2);
            struct dummy *dummy = alloc_complete(heap, slab, sizes[i]);
            wf_heap_retire(heap, free_fake_sched);
            CHECK_EQ(atomic_load(&sched_freed), 0);
            drop(dummy);
            CHECK_EQ(atomic_load(&sched_freed), 1);
            CHECK_EQ(atomic_load(&bytes_out), 0);
        }
    }
}

/* A thread that has dropped the last reference but has not freed the task yet. */
struct straggler {
    struct dummy *dummy;
    _Atomic(uint64_t) steps;
    _Atomic(uint64_t) retiring;
};

static struct straggler straggler;

static void straggler_destroy(struct wf_task *task)
{
    (void)atomic_fetch_add(&straggler.steps, 1);
    test_wait_for(&straggler.steps, 2);
    dummy_destroy(task);
}

static void *straggler_main(void *arg)
{
    (void)arg;
    drop(straggler.dummy);
    return NULL;
}

static void *retire_main(void *arg)
{
    (void)atomic_fetch_add(&straggler.retiring, 1);
    wf_heap_retire(arg, free_fake_sched);
    return NULL;
}

/*
 * Goal:   retire waits for a thread that is about to free a task, because that thread still needs
 *         the heap.
 * Method: the thread stops in the task's destroy operation, retire gets enough time to go wrong,
 *         then the thread continues.
 */
static void retire_waits_for_pending_free(void)
{
    static const struct wf_task_ops ops = { .kind = "slow", .destroy = straggler_destroy };
    static const size_t sizes[] = { SMALL, 1024, 3000 };
    for (unsigned i = 0; i < 9; i++) {
        struct wf_heap *heap = create(2);
        straggler = (struct straggler){ .dummy = alloc_complete(heap, i % 3, sizes[i / 3]) };
        straggler.dummy->task.ops = &ops;
        pthread_t dropper;
        pthread_t retirer;
        CHECK_EQ(pthread_create(&dropper, NULL, straggler_main, NULL), 0);
        test_wait_for(&straggler.steps, 1);
        CHECK_EQ(pthread_create(&retirer, NULL, retire_main, heap), 0);
        test_wait_for(&straggler.retiring, 1);
        for (int n = 0; n < 200; n++) {
            (void)sched_yield();
            CHECK_EQ(atomic_load(&sched_freed), 0);
        }
        (void)atomic_fetch_add(&straggler.steps, 1);
        CHECK_EQ(pthread_join(dropper, NULL), 0);
        CHECK_EQ(pthread_join(retirer, NULL), 0);
        CHECK_EQ(atomic_load(&sched_freed), 1);
        CHECK_EQ(atomic_load(&bytes_out), 0);
    }
}

/* --- Out of memory ---------------------------------------------------------- */

/*
 * Each of these may be the n-th allocation, which fails: the heap, a chunk for each new slab and
 * class, and each large task. Returns the number of failed allocations.
 */
static int allocations_refused(struct wf_heap *heap)
{
    static const size_t sizes[] = { SMALL, 1024, 1025, SMALL, 70000 };
    int refused = 0;
    for (unsigned slab = 0; slab < 2; slab++) {
        struct wf_task *tasks[5];
        for (int i = 0; i < 5; i++) {
            tasks[i] = wf_heap_alloc(heap, slab, sizes[i]);
            refused += tasks[i] == NULL;
        }
        for (int i = 0; i < 5; i++) {
            if (tasks[i] != NULL) {
                wf_heap_free(tasks[i], slab);
            }
        }
    }
    return refused;
}

static void every_allocation_may_fail(void)
{
    int64_t n = 1;
    for (;; n++) {
        atomic_store(&allocations, 0);
        atomic_store(&fail_at, n);
        struct wf_heap *heap = wf_heap_create(&counting, fake_sched(), 1);
        CHECK_EQ(heap == NULL, n == 1);
        if (heap == NULL) {
            continue;
        }
        int refused = allocations_refused(heap);
        bool failed = atomic_load(&allocations) >= n;
        CHECK_EQ(refused, failed);
        atomic_store(&sched_freed, 0);
        retire_empty(heap);
        if (!failed) {
            break;
        }
    }
    /* The heap, and two chunks and two large tasks per slab. */
    CHECK_GE(n, 1 + 2 * 4);
    atomic_store(&fail_at, 0);
}

static void failed_allocation_can_be_retried(void)
{
    struct wf_heap *heap = create(1);
    atomic_store(&fail_at, atomic_load(&allocations) + 1);
    CHECK(wf_heap_alloc(heap, 0, SMALL) == NULL);
    atomic_store(&fail_at, 0);
    drop(alloc_complete(heap, 0, SMALL));
    retire_empty(heap);
}

static void size_beyond_memory_is_refused(void)
{
    struct wf_heap *heap = create(1);
    static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 62, SIZE_MAX - 63, SIZE_MAX - 64,
                                    SIZE_MAX / 2 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        CHECK(wf_heap_alloc(heap, 0, sizes[i]) == NULL);
    }
    retire_empty(heap);
}

/* --- Several threads -------------------------------------------------------- */

enum {
    STORM_SLABS = 3,   /* each owned by one thread */
    STORM_THREADS = 5, /* the last two are outside */
    STORM_BOXES = 64
};

struct storm {
    struct wf_heap *heap;
    uint64_t rounds;
    _Atomic(struct dummy *) boxes[STORM_BOXES];
    _Atomic(uint32_t) stop;
};

struct storm_thread {
    struct storm *storm;
    unsigned slab;
    pthread_t thread;
};

static void fill(struct dummy *dummy)
{
    unsigned char *bytes = (void *)(dummy + 1);
    memset(bytes, (int)((uintptr_t)dummy >> 6 & 0xff), dummy->size - sizeof *dummy);
}

static void check_filled(const struct dummy *dummy)
{
    const unsigned char *bytes = (const void *)(dummy + 1);
    unsigned char expected = (unsigned char)((uintptr_t)dummy >> 6 & 0xff);
    for (size_t i = 0; i < dummy->size - sizeof *dummy; i++) {
        CHECK_EQ(bytes[i], expected);
    }
}

static size_t random_size(struct wf_rng *rng)
{
    uint32_t most = wf_rng_below(rng, 8) == 0 ? 3000 : 600;
    return SMALL + wf_rng_below(rng, most);
}

static void *storm_main(void *arg)
{
    struct storm_thread *self = arg;
    struct storm *storm = self->storm;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), self->slab);
    for (uint64_t i = 0; i < storm->rounds; i++) {
        struct dummy *dummy = alloc_alive(storm->heap, self->slab, random_size(&rng));
        fill(dummy);
        struct dummy *old = atomic_exchange(&storm->boxes[wf_rng_below(&rng, STORM_BOXES)], dummy);
        if (old == NULL) {
            continue;
        }
        check_filled(old);
        CHECK_EQ(old->canary, (uintptr_t)old);
        if (wf_state_refs(wf_state_release(&old->task.state)) == 1) {
            old->canary = 0;
            wf_heap_free(&old->task, self->slab);
        }
    }
    return NULL;
}

static void *storm_visitor_main(void *arg)
{
    struct storm *storm = arg;
    while (atomic_load(&storm->stop) == 0) {
        wf_heap_visit(storm->heap, count_visit);
    }
    return NULL;
}

static void storm_end(struct storm *storm)
{
    for (int i = 0; i < STORM_BOXES; i++) {
        struct dummy *dummy = atomic_load(&storm->boxes[i]);
        if (dummy != NULL) {
            check_filled(dummy);
            drop(dummy);
        }
    }
}

/*
 * Goal:   tasks freed by another thread than the allocating one never overlap, all memory is
 *         returned, and visitors see whole tasks.
 * Method: five threads, two of them outside, put tasks into random boxes and free what they find
 *         there. Every byte of a task is checked. Another thread visits all the time.
 */
static void concurrent_alloc_and_free_across_slabs_keep_tasks_intact(void)
{
    struct storm storm = { .heap = create(STORM_SLABS), .rounds = test_scale(60000) };
    struct storm_thread threads[STORM_THREADS];
    for (unsigned i = 0; i < STORM_THREADS; i++) {
        unsigned slab = i < STORM_SLABS ? i : storm.heap->outside;
        threads[i] = (struct storm_thread){ .storm = &storm, .slab = slab };
        CHECK_EQ(pthread_create(&threads[i].thread, NULL, storm_main, &threads[i]), 0);
    }
    pthread_t visitor;
    CHECK_EQ(pthread_create(&visitor, NULL, storm_visitor_main, &storm), 0);
    for (unsigned i = 0; i < STORM_THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i].thread, NULL), 0);
    }
    atomic_store(&storm.stop, 1);
    CHECK_EQ(pthread_join(visitor, NULL), 0);
    storm_end(&storm);
    /* 64 boxes of at most 3 KiB, and slots on the way back to their slabs. */
    CHECK_LE(atomic_load(&bytes_out), 64 << 20);
    retire_empty(storm.heap);
}

/*
 * Goal:   a visit sees each task that stays alive exactly once, while other tasks come and go.
 * Method: some small and large tasks stay alive while other threads allocate and free. After each
 *         visit all of them have been seen once more.
 */
static void visit_misses_no_task_while_others_come_and_go(void)
{
    static const size_t sizes[] = { SMALL, 200, 1024, 1025, 2000 };
    struct storm storm = { .heap = create(STORM_SLABS), .rounds = test_scale(60000) };
    struct dummy *stay[5][3];
    for (int i = 0; i < 5; i++) {
        for (unsigned slab = 0; slab < 3; slab++) {
            stay[i][slab] = alloc_alive(storm.heap, slab, sizes[i]);
        }
    }
    struct storm_thread threads[2];
    for (unsigned i = 0; i < 2; i++) {
        threads[i] = (struct storm_thread){ .storm = &storm, .slab = i };
        CHECK_EQ(pthread_create(&threads[i].thread, NULL, storm_main, &threads[i]), 0);
    }
    for (uint64_t round = 1; round <= test_scale(1000); round++) {
        wf_heap_visit(storm.heap, count_visit);
        for (int i = 0; i < 15; i++) {
            CHECK_EQ(stay[i / 3][i % 3]->visits, round);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(pthread_join(threads[i].thread, NULL), 0);
    }
    for (int i = 0; i < 15; i++) {
        drop(stay[i / 3][i % 3]);
    }
    storm_end(&storm);
    retire_empty(storm.heap);
}

enum {
    HOLDERS = 2,
    HELD = 6
};

struct holding {
    struct dummy *held[HOLDERS][HELD];
    _Atomic(uint64_t) round;
    _Atomic(uint64_t) released;
    _Atomic(uint64_t) next_index;
    _Atomic(uint32_t) stop;
};

static void *holder_main(void *arg)
{
    struct holding *holding = arg;
    uint64_t index = atomic_fetch_add(&holding->next_index, 1);
    for (uint64_t round = 1;; round++) {
        test_spin_for(&holding->round, round);
        if (atomic_load(&holding->stop) != 0) {
            return NULL;
        }
        for (int i = 0; i < HELD; i++) {
            drop(holding->held[index][i]);
        }
        (void)atomic_fetch_add(&holding->released, 1);
    }
}

/*
 * Goal:   handles may be dropped while the heap is retired. It is freed once, after the last of
 *         them.
 * Method: two threads drop their handles of small and large tasks during retire.
 */
static void handles_dropped_during_retire_free_heap_once(void)
{
    static const size_t sizes[HELD] = { SMALL, 1500, 300, SMALL, 1024, 5000 };
    struct holding holding = { .stop = 0 };
    struct test_rounds rounds = test_rounds_begin();
    pthread_t threads[HOLDERS];
    for (int i = 0; i < HOLDERS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, holder_main, &holding), 0);
    }
    for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
        struct wf_heap *heap = create(1);
        for (int i = 0; i < HELD; i++) {
            for (unsigned n = 0; n < HOLDERS; n++) {
                holding.held[n][i] = alloc_complete(heap, n, sizes[i]);
            }
        }
        atomic_store(&holding.round, round);
        if (round % 2 == 0) {
            (void)sched_yield();
        }
        wf_heap_retire(heap, free_fake_sched);
        test_spin_for(&holding.released, HOLDERS * round);
        CHECK_EQ(atomic_load(&sched_freed), 1);
        CHECK_EQ(atomic_load(&bytes_out), 0);
        CHECK_EQ(atomic_load(&blocks_out), 0);
    }
    atomic_store(&holding.stop, 1);
    atomic_store(&holding.round, UINT64_MAX);
    for (int i = 0; i < HOLDERS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

TEST_MAIN({
    TEST(unused_heap_is_freed_immediately),
    TEST(heap_can_be_retired_without_scheduler),
    TEST(tasks_of_every_size_are_aligned_and_disjoint),
    TEST(size_is_rounded_up_to_its_class_only),
    TEST(large_task_is_its_own_block),
    TEST(task_freed_by_owner_is_reused),
    TEST(remote_frees_return_to_their_slab),
    TEST(outside_slab_reuses_slots_freed_from_outside),
    TEST(slab_grows_by_chunks_and_keeps_them),
    TEST(visit_sees_exactly_tasks_that_are_not_complete),
    TEST(task_may_end_during_visit),
    TEST(visit_may_nest),
    TEST(retire_keeps_heap_until_last_release),
    TEST(task_of_any_size_and_slab_can_be_last_release),
    TEST(retire_waits_for_pending_free),
    TEST(every_allocation_may_fail),
    TEST(failed_allocation_can_be_retried),
    TEST(size_beyond_memory_is_refused),
    TEST(concurrent_alloc_and_free_across_slabs_keep_tasks_intact),
    TEST(visit_misses_no_task_while_others_come_and_go),
    TEST(handles_dropped_during_retire_free_heap_once),
})
