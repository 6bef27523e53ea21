/* SPDX-License-Identifier: MIT */
/*
 * wake_chain.c - tasks that wake each other across workers.
 *
 * There is no park timeout, so a lost wake-up stops the program for good.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include <weft.h>

#include "test.h"

enum {
    MEMBERS = 24,
    TOKENS = 3
};

struct ring_of_tasks;

struct member {
    struct ring_of_tasks *ring;
    _Atomic(uint64_t) tokens; /* tokens that have reached this member */
    _Atomic(weft_waker *) waker;
    uint64_t seen;
};

struct ring_of_tasks {
    struct member members[MEMBERS];
    _Atomic(uint64_t) hops;
    uint64_t hops_wanted;
};

struct chain_state {
    struct member *self;
};

static void pass_token(struct ring_of_tasks *ring, struct member *self)
{
    /* The step does not divide the size of the ring, so tokens visit all members. */
    size_t at = (size_t)(self - ring->members);
    struct member *next = &ring->members[(at + 7) % MEMBERS];
    atomic_fetch_add(&next->tokens, 1);
    weft_waker_wake(atomic_load(&next->waker));
}

static int member_task(weft_co *co, void *state)
{
    (void)co;
    struct member *self = ((struct chain_state *)state)->self;
    struct ring_of_tasks *ring = self->ring;
    if (atomic_load(&self->waker) == NULL) {
        atomic_store(&self->waker, weft_waker_current());
    }
    uint64_t tokens = atomic_load(&self->tokens);
    while (self->seen < tokens) {
        self->seen++;
        atomic_fetch_add(&ring->hops, 1);
        pass_token(ring, self);
    }
    return atomic_load(&ring->hops) >= ring->hops_wanted ? 0 : WEFT_PENDING;
}

static bool all_have_wakers(struct ring_of_tasks *ring)
{
    for (int i = 0; i < MEMBERS; i++) {
        if (atomic_load(&ring->members[i].waker) == NULL) {
            return false;
        }
    }
    return true;
}

static void check_nothing_unannounced(weft_runtime *rt)
{
    for (unsigned i = 0; i < weft_runtime_workers(rt); i++) {
        weft_worker_stats stats;
        CHECK_EQ(weft_worker_stats_read(rt, i, &stats), 0);
        CHECK_EQ(stats.unannounced_work, 0);
    }
}

static void run_chain(weft_config *config, bool pinned)
{
    struct ring_of_tasks *ring = calloc(1, sizeof *ring);
    CHECK(ring != NULL);
    ring->hops_wanted = test_scale(200000);
    weft_runtime *rt;
    config->workers = test_workers(4);
    config->seed = test_seed();
    CHECK_EQ(weft_runtime_create(&rt, config), 0);
    weft_task *tasks[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
        ring->members[i].ring = ring;
        struct chain_state state = { &ring->members[i] };
        weft_spec spec = { .body = member_task, .state = &state, .state_size = sizeof state };
        spec.pinned = pinned && i % 2 == 0 ? WEFT_PINNED : 0;
        CHECK_EQ(weft_runtime_spawn(rt, &tasks[i], &spec), 0);
    }
    while (!all_have_wakers(ring)) {
    }
    for (int i = 0; i < TOKENS; i++) {
        atomic_fetch_add(&ring->members[i].tokens, 1);
        weft_waker_wake(atomic_load(&ring->members[i].waker));
    }
    test_wait_for(&ring->hops, ring->hops_wanted);
    for (int i = 0; i < MEMBERS; i++) {
        weft_waker_wake(atomic_load(&ring->members[i].waker));
    }
    for (int i = 0; i < MEMBERS; i++) {
        int result = -1;
        CHECK_EQ(weft_join(tasks[i], &result, WEFT_NEVER), 0);
        CHECK_EQ(result, 0);
    }
    /* Only after all have ended: they wake each other until then. */
    for (int i = 0; i < MEMBERS; i++) {
        weft_waker_drop(atomic_load(&ring->members[i].waker));
    }
    check_nothing_unannounced(rt);
    weft_runtime_destroy(rt);
    free(ring);
}

/*
 * Goal:   no wake-up is ever lost.
 * Method: tokens travel around a ring of tasks. Each hop wakes a task on any worker. There is
 *         no timeout, so a lost wake-up is a hang, which the test's own time limit turns into a
 *         failure.
 */
static void tokens_travel_without_a_timeout(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    run_chain(&config, false);
}

static void tokens_travel_through_pinned_tasks(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    run_chain(&config, true);
}

static void tokens_travel_without_search_rounds(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.search_ns = UINT64_MAX;
    run_chain(&config, true);
}

static void tokens_travel_without_lifo_slot(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.lifo = WEFT_OFF;
    run_chain(&config, false);
}

static void tokens_travel_without_stealing(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.stealing = WEFT_OFF;
    run_chain(&config, true);
}

TEST_MAIN({
    TEST(tokens_travel_without_a_timeout),
    TEST(tokens_travel_through_pinned_tasks),
    TEST(tokens_travel_without_search_rounds),
    TEST(tokens_travel_without_lifo_slot),
    TEST(tokens_travel_without_stealing),
})
