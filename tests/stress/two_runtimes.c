/* SPDX-License-Identifier: MIT */
/*
 * two_runtimes.c - two runtimes that fork at the same time, from plain threads and from fibers.
 *
 * Each fork must run on a worker of its own runtime or on the thread that forked it, and tasks
 * that it spawns must run there, too.
 *
 * The threads start and end computations repeatedly, so a thief often comes late, to a
 * computation that has ended since the thief looked.
 */
#include <pthread.h>
#include <stdatomic.h>

#include <weft.h>

#include "rt.h"
#include "test.h"

enum {
    RUNTIMES = 2,
    THREADS = 2, /* per runtime */
    DEPTH = 5,
    STOLEN_MIN = 1000, /* per runtime: number of times that a thief could be late */
    SPINS = 2000,      /* in a leaf; a few microseconds */
};

/* One of the runtimes. */
struct side {
    weft_runtime *rt;
    _Atomic(uint64_t) trees;
    _Atomic(uint64_t) leaves;
    _Atomic(uint64_t) strays; /* leaves and tasks that ran on the other runtime */
    _Atomic(uint64_t) spawned;
    _Atomic(uint64_t) ended;
};

/* A part of a tree of forks. */
struct part {
    struct side *side;
    unsigned depth;
};

static void check_runtime(struct side *side)
{
    weft_runtime *here = weft_runtime_current();
    if (here != NULL && here != side->rt) {
        atomic_fetch_add(&side->strays, 1);
    }
}

static int spawned_task(weft_co *co, void *state)
{
    (void)co;
    struct side *side = test_arg(state);
    check_runtime(side);
    atomic_fetch_add(&side->ended, 1);
    return 0;
}

/* Spawns a task on the runtime where this leaf runs. */
static void spawn_here(struct side *side)
{
    weft_spec spec = { .body = spawned_task, .state = &side, .state_size = sizeof side };
    CHECK_EQ(weft_spawn(NULL, &spec), 0);
    atomic_fetch_add(&side->spawned, 1);
}

static void run_leaf(struct side *side)
{
    check_runtime(side);
    for (unsigned i = 0; i < SPINS; i++) {
        __asm__ volatile("");
    }
    uint64_t number = atomic_fetch_add(&side->leaves, 1);
    if (weft_runtime_current() != NULL && number % 8 == 0) {
        spawn_here(side);
    }
}

static void run_part(void *arg)
{
    struct part *part = arg;
    if (part->depth == 0) {
        run_leaf(part->side);
        return;
    }
    struct part half = { .side = part->side, .depth = part->depth - 1 };
    weft_join2(run_part, &half, run_part, &half);
}

static int run_tree(void *arg)
{
    struct part whole = { .side = arg, .depth = DEPTH };
    run_part(&whole);
    return 0;
}

static uint64_t stolen_forks(weft_runtime *rt)
{
    uint64_t stolen = 0;
    for (unsigned i = 0; i < weft_runtime_workers(rt); i++) {
        weft_worker_stats worker;
        CHECK_EQ(weft_worker_stats_read(rt, i, &worker), 0);
        stolen += worker.stolen_forks;
    }
    return stolen;
}

static void *fork_repeatedly(void *arg)
{
    struct side *side = arg;
    uint64_t stolen_min = test_scale(STOLEN_MIN);
    while (stolen_forks(side->rt) < stolen_min) {
        CHECK_EQ(weft_par_run(side->rt, run_tree, side), 0);
        CHECK_EQ(weft_par_run(side->rt, run_tree, side), 0);
        CHECK_EQ(test_run(side->rt, run_tree, side), 0);
        atomic_fetch_add(&side->trees, 3);
    }
    return NULL;
}

static void concurrently_forking_runtimes_share_no_forks(void)
{
    struct side sides[RUNTIMES] = { 0 };
    pthread_t threads[RUNTIMES * THREADS];
    for (unsigned i = 0; i < RUNTIMES; i++) {
        sides[i].rt = test_start(2);
    }
    for (unsigned i = 0; i < RUNTIMES * THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, fork_repeatedly, &sides[i % RUNTIMES]), 0);
    }
    for (unsigned i = 0; i < RUNTIMES * THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    for (unsigned i = 0; i < RUNTIMES; i++) {
        struct side *side = &sides[i];
        test_wait_for(&side->ended, atomic_load(&side->spawned));
        weft_runtime_destroy(side->rt);
        CHECK_EQ(atomic_load(&side->leaves), atomic_load(&side->trees) << DEPTH);
        CHECK_EQ(atomic_load(&side->strays), 0);
    }
}

TEST_MAIN({
    TEST(concurrently_forking_runtimes_share_no_forks),
})
