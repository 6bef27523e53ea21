/* SPDX-License-Identifier: MIT */
/*
 * Fairness of a worker: busy tasks do not starve other tasks.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include <weft.h>

#include "test.h"

/* Two tasks that wake each other forever, on one worker. */
struct pair {
    _Atomic(weft_waker *) wakers[2];
    _Atomic(uint64_t) polls;
    _Atomic(bool) over;
};

struct player {
    struct pair *pair;
    int me;
};

static int player_body(weft_co *co, void *state)
{
    (void)co;
    struct player *self = state;
    struct pair *pair = self->pair;
    if (atomic_load(&pair->wakers[self->me]) == NULL) {
        atomic_store(&pair->wakers[self->me], weft_waker_current());
    }
    atomic_fetch_add(&pair->polls, 1);
    weft_waker *other = atomic_load(&pair->wakers[1 - self->me]);
    if (other != NULL) {
        weft_waker_wake(other);
    }
    return atomic_load(&pair->over) ? 0 : WEFT_PENDING;
}

static void pair_start(struct pair *pair, weft_runtime *rt, weft_task **tasks)
{
    for (int i = 0; i < 2; i++) {
        struct player player = { pair, i };
        weft_spec spec = { .body = player_body, .state = &player, .state_size = sizeof player };
        CHECK_EQ(weft_runtime_spawn(rt, &tasks[i], &spec), 0);
    }
    test_wait_for(&pair->polls, 100);
}

static void pair_end(struct pair *pair, weft_task **tasks)
{
    atomic_store(&pair->over, true);
    for (int i = 0; i < 2; i++) {
        weft_waker_wake(atomic_load(&pair->wakers[i]));
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(weft_join(tasks[i], NULL, WEFT_NEVER), 0);
    }
    for (int i = 0; i < 2; i++) {
        weft_waker_drop(atomic_load(&pair->wakers[i]));
    }
}

static weft_runtime *start_runtime(unsigned workers)
{
    weft_runtime *rt;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = workers;
    config.seed = test_seed();
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    return rt;
}

/* Records the number of polls of the pair at the time it runs. */
struct note {
    struct pair *pair;
    _Atomic(uint64_t) *polls;
};

static int note_body(weft_co *co, void *state)
{
    (void)co;
    struct note *note = state;
    atomic_store(note->polls, atomic_load(&note->pair->polls) + 1);
    return 0;
}

/* Yields in a loop, and checks the length of each round trip through the ring. */
struct rounds {
    struct pair *pair;
    uint64_t before;
    int i;
};

static int rounds_body(weft_co *co, void *state)
{
    struct rounds *s = state;
    int err;
    WEFT_BEGIN(co);
    for (s->i = 0; s->i < 1000; s->i++) {
        s->before = atomic_load(&s->pair->polls);
        WEFT_YIELD(co, err);
        CHECK_EQ(err, 0);
        /* At most 4 polls of the pair: 3 from the LIFO slot, 1 from the ring. */
        CHECK_LE(atomic_load(&s->pair->polls) - s->before, 4);
    }
    WEFT_END(co, 0);
}

static void ring_task_beside_waking_pair_runs_within_four_polls(void)
{
    struct pair pair = { .over = false };
    weft_task *tasks[2];
    weft_runtime *rt = start_runtime(1);
    pair_start(&pair, rt, tasks);
    struct rounds rounds = { .pair = &pair };
    weft_task *task;
    int result = -1;
    weft_spec spec = { .body = rounds_body, .state = &rounds, .state_size = sizeof rounds };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(weft_join(task, &result, WEFT_NEVER), 0);
    CHECK_EQ(result, 0);
    pair_end(&pair, tasks);
    weft_runtime_destroy(rt);
}

static void injected_task_beside_waking_pair_runs_within_interval(void)
{
    struct pair pair = { .over = false };
    weft_task *tasks[2];
    weft_runtime *rt = start_runtime(1);
    pair_start(&pair, rt, tasks);
    for (int i = 0; i < 200; i++) {
        _Atomic(uint64_t) polls = 0;
        struct note note = { &pair, &polls };
        weft_task *task;
        weft_spec spec = { .body = note_body, .state = &note, .state_size = sizeof note };
        /* Read after the spawn: earlier polls of the pair do not count. */
        CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
        uint64_t before = atomic_load(&pair.polls);
        CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
        uint64_t ran_at = atomic_load(&polls);
        CHECK_LE(ran_at > before ? ran_at - before : 0, 255 + 2);
    }
    pair_end(&pair, tasks);
    weft_runtime_destroy(rt);
}

static void waking_pair_alone_never_stalls(void)
{
    struct pair pair = { .over = false };
    weft_task *tasks[2];
    weft_runtime *rt = start_runtime(1);
    pair_start(&pair, rt, tasks);
    test_wait_for(&pair.polls, test_scale(1000000));
    pair_end(&pair, tasks);
    weft_runtime_destroy(rt);
}

/* An operation that is always ready. */
static int ready_poll(weft_future *future)
{
    (void)future;
    return 0;
}

static bool ready_cancel(weft_future *future)
{
    (void)future;
    return true;
}

static const weft_future_ops ready_ops = { .poll = ready_poll, .cancel = ready_cancel };

struct greedy {
    weft_future ready;
    _Atomic(bool) *stop;
    bool is_started;
};

static int greedy_body(weft_co *co, void *state)
{
    struct greedy *s = state;
    int err;
    WEFT_BEGIN(co);
    s->ready.ops = &ready_ops;
    while (!atomic_load(s->stop)) {
        WEFT_AWAIT(co, err, &s->ready);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, 0);
}

static int stop_body(weft_co *co, void *state)
{
    (void)co;
    atomic_store(*(_Atomic(bool) **)state, true);
    return 0;
}

/*
 * Goal:   a task whose awaits are always ready does not monopolize its worker.
 * Method: it ends only after another task has run on the same worker.
 */
static void always_ready_task_yields_to_other_tasks(void)
{
    _Atomic(bool) stop = false;
    _Atomic(bool) *pointer = &stop;
    weft_runtime *rt = start_runtime(1);
    struct greedy greedy = { .stop = &stop };
    weft_task *task;
    weft_spec spec = { .body = greedy_body, .state = &greedy, .state_size = sizeof greedy };
    weft_spec other = { .body = stop_body, .state = &pointer, .state_size = sizeof pointer };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &other), 0);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    weft_worker_stats stats;
    CHECK_EQ(weft_worker_stats_read(rt, 0, &stats), 0);
    CHECK_GE(stats.budget_yields, 1);
    weft_runtime_destroy(rt);
}

/* Same, with a pinned task whose awaits are always ready. */
static void always_ready_pinned_task_yields_to_other_tasks(void)
{
    _Atomic(bool) stop = false;
    _Atomic(bool) *pointer = &stop;
    weft_runtime *rt = start_runtime(1);
    struct greedy greedy = { .stop = &stop };
    weft_task *task;
    weft_spec spec = {
        .body = greedy_body, .state = &greedy, .state_size = sizeof greedy, .pinned = WEFT_PINNED
    };
    weft_spec other = { .body = stop_body, .state = &pointer, .state_size = sizeof pointer };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &other), 0);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(ring_task_beside_waking_pair_runs_within_four_polls),
    TEST(injected_task_beside_waking_pair_runs_within_interval),
    TEST(waking_pair_alone_never_stalls),
    TEST(always_ready_task_yields_to_other_tasks),
    TEST(always_ready_pinned_task_yields_to_other_tasks),
})
