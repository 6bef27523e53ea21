/* SPDX-License-Identifier: MIT */
/*
 * spawn_storm.c - tasks spawned by workers and by plain threads at the same time.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <weft.h>

#include "test.h"

enum {
    OUTSIDERS = 4,
    TREE_FANOUT = 4
};

struct storm {
    weft_runtime *rt;
    _Atomic(uint8_t) *runs; /* one count per task */
    uint64_t per_source;
    _Atomic(uint64_t) drops;
    _Atomic(uint64_t) ended;
};

/* A task with its own number. A task of a tree spawns its children in the tree. */
struct leaf {
    struct storm *storm;
    uint64_t number;
    uint64_t tree_first; /* first number of the tree, or UINT64_MAX */
    uint64_t tree_size;
};

static int leaf_task(weft_co *co, void *state);

static void leaf_drop(void *state)
{
    struct leaf *leaf = state;
    atomic_fetch_add(&leaf->storm->drops, 1);
}

static weft_spec leaf_spec(const struct leaf *leaf)
{
    return (weft_spec){
        .body = leaf_task,
        .drop = leaf_drop,
        .state = leaf,
        .state_size = sizeof *leaf,
        .name = "leaf",
    };
}

static int leaf_task(weft_co *co, void *state)
{
    (void)co;
    struct leaf *leaf = state;
    atomic_fetch_add(&leaf->storm->runs[leaf->number], 1);
    if (leaf->tree_first != UINT64_MAX) {
        uint64_t at = leaf->number - leaf->tree_first;
        for (uint64_t i = 1; i <= TREE_FANOUT; i++) {
            uint64_t child = at * TREE_FANOUT + i;
            if (child >= leaf->tree_size) {
                break;
            }
            struct leaf next = *leaf;
            next.number = leaf->tree_first + child;
            weft_spec spec = leaf_spec(&next);
            CHECK_EQ(weft_spawn(NULL, &spec), 0);
        }
    }
    return 0;
}

struct outsider {
    struct storm *storm;
    uint64_t first;
};

static void *outsider_main(void *arg)
{
    struct outsider *self = arg;
    struct storm *storm = self->storm;
    for (uint64_t i = 0; i < storm->per_source; i++) {
        struct leaf leaf = { storm, self->first + i, UINT64_MAX, 0 };
        weft_spec spec = leaf_spec(&leaf);
        weft_task *task = NULL;
        bool joined = i % 64 == 0;
        CHECK_EQ(weft_runtime_spawn_wait(storm->rt, joined ? &task : NULL, &spec, WEFT_NEVER), 0);
        if (joined) {
            int result = -1;
            CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
            CHECK_EQ(result, 0);
        }
    }
    return NULL;
}

/*
 * Goal:   each task runs exactly once and is dropped exactly once, wherever it was spawned.
 * Method: four plain threads spawn tasks and join some of them, while a task on a worker grows
 *         a tree of tasks. Each task counts in its own cell.
 */
static void every_task_runs_exactly_once(void)
{
    struct storm storm = { .per_source = test_scale(20000) };
    uint64_t total = storm.per_source * (OUTSIDERS + 1);
    storm.runs = calloc(total, sizeof *storm.runs);
    CHECK(storm.runs != NULL);

    weft_config config = WEFT_CONFIG_INIT;
    config.workers = test_workers(2);
    config.seed = test_seed();
    config.inject_capacity = 1000;
    CHECK_EQ(weft_runtime_create(&storm.rt, &config), 0);

    pthread_t threads[OUTSIDERS];
    struct outsider outsiders[OUTSIDERS];
    for (int i = 0; i < OUTSIDERS; i++) {
        outsiders[i] = (struct outsider){ &storm, storm.per_source * (uint64_t)(i + 1) };
        CHECK_EQ(pthread_create(&threads[i], NULL, outsider_main, &outsiders[i]), 0);
    }
    struct leaf root = { &storm, 0, 0, storm.per_source };
    weft_spec spec = leaf_spec(&root);
    CHECK_EQ(weft_runtime_spawn_wait(storm.rt, NULL, &spec, WEFT_NEVER), 0);
    for (int i = 0; i < OUTSIDERS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    test_wait_for(&storm.drops, total);
    for (uint64_t i = 0; i < total; i++) {
        CHECK_EQ(atomic_load(&storm.runs[i]), 1);
    }
    weft_runtime_destroy(storm.rt);
    CHECK_EQ(atomic_load(&storm.drops), total);
    free((void *)storm.runs);
}

TEST_MAIN({ TEST(every_task_runs_exactly_once) })
