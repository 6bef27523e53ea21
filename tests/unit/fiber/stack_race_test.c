/* SPDX-License-Identifier: MIT */
/*
 * stack_race_test.c - stack caches of several workers, and one thread that trims.
 *
 * A fiber is a promise and a stack. It starts on one worker and waits in a box. The worker that
 * finds it there ends it. The holder of a stack writes its own mark at both ends. A free stack
 * has no mark, whether its memory is old or new.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "stack_rig.h"
#include "test.h"
#include "timing.h"

enum {
    THREADS = 3,
    BOXES = 300,
    CLASSES = 2,
    PHASE = 2048, /* iterations of a worker */
};

struct race {
    struct wf_stacks stacks;
    struct ledger ledger;
    weft_allocator allocator;
    _Atomic(int64_t) chunks_left; /* number of allocations that still succeed */
    _Atomic(struct wf_stack *) boxes[BOXES];
    int64_t end;
    uint64_t batches_wanted;   /* the race continues until that many batches were trimmed */
    _Atomic(uint64_t) done;    /* workers that start no more fibers */
    _Atomic(uint32_t) stop;    /* the trimming thread may stop */
    _Atomic(uint32_t) fill;    /* the number of fibers grows */
    _Atomic(uint64_t) begun;   /* fibers started */
    _Atomic(uint64_t) batches; /* batches of stacks trimmed */
    _Atomic(uint64_t) refused; /* promises refused */
    _Atomic(uint64_t) waits;   /* waits for a stack in another worker's cache */
};

struct worker {
    struct race *race;
    unsigned index;
    pthread_t thread;
    struct wf_stack_cache cache;
    struct wf_rng rng;
    uint64_t marks;
};

static void *scarce_alloc(void *ctx, size_t size, size_t align)
{
    struct race *race = ctx;
    if (atomic_fetch_sub(&race->chunks_left, 1) <= 0) {
        return NULL;
    }
    return race->allocator.alloc(race->allocator.ctx, size, align);
}

static void scarce_free(void *ctx, void *ptr, size_t size, size_t align)
{
    struct race *race = ctx;
    race->allocator.free(race->allocator.ctx, ptr, size, align);
}

static uint64_t *low_mark(const struct wf_stack *stack)
{
    return (uint64_t *)(void *)stack->low;
}

static uint64_t *top_mark(const struct wf_stack *stack)
{
    return (uint64_t *)(void *)wf_stack_top(stack) - 1;
}

static void mark(struct worker *worker, const struct wf_stack *stack)
{
    CHECK_EQ(*low_mark(stack), 0);
    CHECK_EQ(*top_mark(stack), 0);
    *low_mark(stack) = ++worker->marks * THREADS + worker->index;
    *top_mark(stack) = *low_mark(stack);
}

static void unmark(const struct wf_stack *stack)
{
    CHECK_NE(*low_mark(stack), 0);
    CHECK_EQ(*low_mark(stack), *top_mark(stack));
    *low_mark(stack) = 0;
    *top_mark(stack) = 0;
}

/* The caller has a promise, so a free stack exists, though perhaps in another worker's cache. */
static struct wf_stack *take_stack(struct worker *worker, unsigned class)
{
    struct race *race = worker->race;
    struct wf_stack *stack;
    while ((stack = wf_stack_take(&race->stacks, &worker->cache, class)) == NULL) {
        (void)atomic_fetch_add(&race->waits, 1);
        wf_stack_share(&race->stacks, &worker->cache);
        (void)sched_yield();
    }
    return stack;
}

static struct wf_stack *begin(struct worker *worker)
{
    struct race *race = worker->race;
    unsigned class = wf_rng_below(&worker->rng, CLASSES);
    int err = wf_rng_below(&worker->rng, 4) == 0
                  ? wf_stack_promise_outside(&race->stacks, class)
                  : wf_stack_promise(&race->stacks, &worker->cache, class);
    if (err != 0) {
        CHECK_EQ(err, -ENOMEM);
        (void)atomic_fetch_add(&race->refused, 1);
        return NULL;
    }
    if (wf_rng_below(&worker->rng, 16) == 0) {
        wf_stack_unpromise(&race->stacks, &worker->cache, class); /* Ends before it starts. */
        return NULL;
    }
    struct wf_stack *stack = take_stack(worker, class);
    CHECK_EQ(stack->class, class);
    mark(worker, stack);
    (void)atomic_fetch_add(&race->begun, 1);
    return stack;
}

static void finish(struct worker *worker, struct wf_stack *stack)
{
    struct race *race = worker->race;
    unsigned class = stack->class;
    unmark(stack);
    wf_stack_give(&race->stacks, &worker->cache, stack);
    if (wf_rng_below(&worker->rng, 4) == 0) {
        wf_stack_unpromise_outside(&race->stacks, class);
    } else {
        wf_stack_unpromise(&race->stacks, &worker->cache, class);
    }
}

static bool race_continues(struct race *race)
{
    return wf_clock_now() < race->end || atomic_load(&race->batches) < race->batches_wanted;
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    struct race *race = worker->race;
    for (uint64_t n = 0; n % 64 != 0 || race_continues(race); n++) {
        if (worker->index == 0 && n % PHASE == 0) {
            atomic_store(&race->fill, n / PHASE % 2 == 0);
        }
        uint32_t of_8 = atomic_load(&race->fill) != 0 ? 7 : 1;
        struct wf_stack *stack = wf_rng_below(&worker->rng, 8) < of_8 ? begin(worker) : NULL;
        uint32_t box = wf_rng_below(&worker->rng, BOXES);
        struct wf_stack *other = atomic_exchange(&race->boxes[box], stack);
        if (other != NULL) {
            finish(worker, other);
        }
        if (n % 8 == 0) {
            wf_stack_share(&race->stacks, &worker->cache);
        }
        if (wf_rng_below(&worker->rng, 64) == 0) {
            wf_stack_flush(&race->stacks, &worker->cache);
        }
    }
    /* Another worker may still wait for a stack of this cache. */
    (void)atomic_fetch_add(&race->done, 1);
    while (atomic_load(&race->done) < THREADS) {
        wf_stack_share(&race->stacks, &worker->cache);
        (void)sched_yield();
    }
    return NULL;
}

/* Called before each batch. */
static bool count_batch_and_check_stop(void *arg)
{
    struct race *race = arg;
    (void)atomic_fetch_add(&race->batches, 1);
    return atomic_load(&race->stop) != 0;
}

static void *trim_main(void *arg)
{
    struct race *race = arg;
    for (uint64_t n = 0; atomic_load(&race->stop) == 0; n++) {
        struct wf_stack_stats stats;
        wf_stacks_trim(&race->stacks, n % 2 == 0, count_batch_and_check_stop, race);
        wf_stacks_read(&race->stacks, &stats);
        CHECK_GE(stats.made, stats.promised);
        /* Stacks in boxes, held by workers, in caches (counted twice), and held by a trim. */
        CHECK_LE(stats.made, CLASSES * (BOXES + THREADS * (1 + 4 * BATCH) + BATCH));
        (void)sched_yield();
    }
    return NULL;
}

static int by_pointer(const void *a, const void *b)
{
    const struct wf_stack *const *left = a;
    const struct wf_stack *const *right = b;
    return *left < *right ? -1 : *left > *right;
}

static size_t collect(const struct wf_stack_list *list, struct wf_stack **into)
{
    size_t count = 0;
    for (struct wf_stack *stack = list->first; stack != NULL; stack = stack->next) {
        CHECK_EQ(*low_mark(stack), 0);
        into[count++] = stack;
        CHECK_LE(count, list->count);
    }
    CHECK_EQ(count, list->count);
    return count;
}

/* All stacks are free. Checks that each is in exactly one list and each promise in one cache. */
static void check_books(struct race *race, struct worker *workers, unsigned class)
{
    static struct wf_stack *all[1000];
    const struct wf_stack_depot *depot = &race->stacks.depots[class];
    CHECK_LE(depot->made, sizeof all / sizeof all[0]);
    size_t count = collect(&depot->warm, all);
    count += collect(&depot->cold, all + count);
    uint32_t promises = 0;
    for (int i = 0; i < THREADS; i++) {
        count += collect(&workers[i].cache.classes[class].free, all + count);
        promises += workers[i].cache.classes[class].promises;
    }
    CHECK_EQ(depot->made, count);
    CHECK_EQ(depot->promises, promises);
    CHECK_GE(depot->made, depot->promises);
    qsort(all, count, sizeof all[0], by_pointer);
    for (size_t i = 1; i < count; i++) {
        CHECK(all[i - 1] != all[i]);
    }
}

static void run_workers(struct race *race, struct worker *workers)
{
    pthread_t watch;
    race->end = test_race_end();
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ .race = race, .index = i };
        wf_rng_seed(&workers[i].rng, test_seed(), i);
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
    }
    CHECK_EQ(pthread_create(&watch, NULL, trim_main, race), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
    }
    atomic_store(&race->stop, 1);
    CHECK_EQ(pthread_join(watch, NULL), 0);
}

static struct race race;

static void run_race(int64_t chunks, uint64_t batches)
{
    static struct worker workers[THREADS];
    race = (struct race){ .chunks_left = chunks, .batches_wanted = batches };
    race.allocator = ledger_allocator(&race.ledger);
    weft_allocator scarce = { scarce_alloc, scarce_free, &race };
    wf_stacks_init(&race.stacks, &scarce, NULL, NULL);
    run_workers(&race, workers);
    for (int i = 0; i < BOXES; i++) {
        struct wf_stack *stack = atomic_load(&race.boxes[i]);
        if (stack != NULL) {
            finish(&workers[0], stack);
        }
    }
    for (unsigned class = 0; class < CLASSES; class ++) {
        check_books(&race, workers, class);
    }
    wf_stacks_fini(&race.stacks);
    CHECK_EQ(race.ledger.bytes, 0);
    (void)printf("%llu fibers, %llu promises refused, %llu waits for a stack, %llu trims\n",
                 (unsigned long long)race.begun, (unsigned long long)race.refused,
                 (unsigned long long)race.waits, (unsigned long long)race.batches);
    CHECK_LT(0, race.begun);
}

/*
 * Goal:   no stack has two holders, none is lost, and none loses its memory while it is held.
 * Method: see the top of this file. The number of fibers grows and shrinks in turn, so that
 *         there is something to trim. Memory suffices for all: no promise is refused and no
 *         worker waits.
 */
static void no_stack_is_held_by_two_workers(void)
{
    run_race(INT64_MAX, 100);
    CHECK_EQ(race.refused, 0);
    CHECK_EQ(race.waits, 0);
}

/*
 * Goal:   when no more stacks can be made, a promise is either refused or kept. A worker that
 *         has one gets its stack as soon as the others have shared theirs.
 * Method: same as no_stack_is_held_by_two_workers, with fewer stacks than the caches could
 *         hold. A worker that never gets its promised stack does not end, and neither does the
 *         test.
 */
static void promises_are_kept_when_stacks_are_scarce(void)
{
    run_race(3, 0);
}

TEST_MAIN({
    TEST(no_stack_is_held_by_two_workers),
    TEST(promises_are_kept_when_stacks_are_scarce),
})
