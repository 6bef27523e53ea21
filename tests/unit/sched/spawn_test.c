/* SPDX-License-Identifier: MIT */
#include "sched/spawn.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "ledger.h"
#include "rt.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "sched/task.h"
#include "test.h"
#include "timing.h"

static _Atomic(uint64_t) polls;
static _Atomic(uint64_t) drops;

static void count_drop(void *state)
{
    (void)state;
    atomic_fetch_add(&drops, 1);
}

static int end_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&polls, 1);
    return 0;
}

/* Stays pending forever, without awaiting anything. */
static int wait_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&polls, 1);
    return WEFT_PENDING;
}

/* Occupies its worker until go_on is set. */
static struct {
    _Atomic(uint64_t) running;
    _Atomic(uint64_t) go_on;
} blocker;

static int blocker_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&blocker.running, 1);
    test_wait_for(&blocker.go_on, 1);
    return 0;
}

static void block_worker(weft_runtime *rt)
{
    atomic_store(&blocker.running, 0);
    atomic_store(&blocker.go_on, 0);
    weft_spec spec = { .body = blocker_body };
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
    test_wait_for(&blocker.running, 1);
}

static void unblock_worker(void)
{
    atomic_store(&blocker.go_on, 1);
}

/* What the task's function should find in its state. */
static struct {
    size_t size;
    bool zeroed;
} expected;

static unsigned char pattern(size_t at)
{
    return (unsigned char)(at * 7 + at / 251 + 1);
}

static int state_body(weft_co *co, void *state)
{
    (void)co;
    const unsigned char *bytes = state;
    CHECK_EQ((uintptr_t)state % 32, 0);
    for (size_t i = 0; i < expected.size; i++) {
        CHECK_EQ(bytes[i], expected.zeroed ? 0 : pattern(i));
    }
    memset(state, 0xa5, expected.size); /* The function may write to it. */
    return 17;
}

static void state_drop(void *state)
{
    const unsigned char *bytes = state;
    for (size_t i = 0; i < expected.size; i++) {
        CHECK_EQ(bytes[i], 0xa5);
    }
    atomic_fetch_add(&drops, 1);
}

static void check_state(weft_runtime *rt, size_t size, bool zeroed)
{
    unsigned char *bytes = malloc(size + 1);
    CHECK(bytes != NULL);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = pattern(i);
    }
    expected.size = size;
    expected.zeroed = zeroed;
    atomic_store(&drops, 0);
    weft_spec spec = {
        .body = state_body, .drop = state_drop, .state = zeroed ? NULL : bytes, .state_size = size
    };
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    memset(bytes, 0xff, size); /* The task has its own copy. */
    free(bytes);
    CHECK_EQ(test_join_soon(task), 17);
    CHECK_EQ(atomic_load(&drops), 1);
}

static void state_is_copied_or_zeroed_and_aligned(void)
{
    static const size_t sizes[] = { 0,   1,    7,    32,   33,   64,   100,        864,
                                    928, 1000, 1024, 1025, 4096, 5000, 100 * 1000, 1024 * 1024 };
    weft_runtime *rt = test_start(2);
    /* Twice, so that reused memory is not zero. */
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            check_state(rt, sizes[i], false);
            check_state(rt, sizes[i], true);
        }
    }
    weft_runtime_destroy(rt);
}

static int echo_body(weft_co *co, void *state)
{
    (void)co;
    return *(int *)state;
}

static void join_result_is_return_value_of_task(void)
{
    static const int results[] = { 0, 1, -1, INT_MAX, INT_MIN + 2, -ENOENT, WEFT_ECANCELED };
    weft_runtime *rt = test_start(1);
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        weft_spec spec = { .body = echo_body,
                           .state = &results[i],
                           .state_size = sizeof results[i] };
        weft_task *task;
        CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
        CHECK_EQ(test_join_soon(task), results[i]);
    }
    weft_runtime_destroy(rt);
}

static void drop_is_called_once_after_end_and_after_cancel(void)
{
    weft_runtime *rt = test_start(2);
    uint64_t rounds = test_scale(500) + 1;
    atomic_store(&drops, 0);
    for (uint64_t i = 0; i < rounds; i++) {
        weft_task *task;
        weft_spec ends = { .body = end_body, .drop = count_drop };
        CHECK_EQ(weft_runtime_spawn(rt, &task, &ends), 0);
        CHECK_EQ(test_join_soon(task), 0);
        CHECK_EQ(atomic_load(&drops), 2 * i + 1);

        weft_spec waits = { .body = wait_body, .drop = count_drop };
        CHECK_EQ(weft_runtime_spawn(rt, &task, &waits), 0);
        weft_cancel(task);
        weft_cancel(task);
        CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
        CHECK_EQ(atomic_load(&drops), 2 * i + 2);
    }
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&drops), 2 * rounds);
}

static void drop_is_called_once_at_shutdown_for_any_task_size(void)
{
    weft_runtime *rt = test_start(2);
    atomic_store(&drops, 0);
    atomic_store(&polls, 0);
    weft_task *kept = NULL;
    for (size_t i = 0; i < 60; i++) {
        weft_spec spec = { .body = wait_body, .drop = count_drop, .state_size = i * 40 };
        CHECK_EQ(weft_runtime_spawn(rt, i == 59 ? &kept : NULL, &spec), 0);
    }
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&drops), 60);
    CHECK_GE(atomic_load(&polls), 60);
    /* The handle outlives the runtime. */
    CHECK(weft_task_is_done(kept));
    CHECK_EQ(test_join_soon(kept), WEFT_ECANCELED);
}

static void invalid_spawn_is_refused_without_drop(void)
{
    weft_runtime *rt = test_start(2);
    atomic_store(&drops, 0);
    weft_task *const untouched = (weft_task *)&blocker;
    weft_task *task = untouched;
    weft_spec bodyless = { .drop = count_drop };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &bodyless), -EINVAL);
    weft_spec third = { .body = end_body, .drop = count_drop, .pinned = WEFT_PINNED_TO(2) };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &third), -EINVAL);
    weft_spec far = { .body = end_body, .drop = count_drop, .pinned = WEFT_PINNED_TO(70000) };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &far), -EINVAL);
    weft_spec endless = { .body = end_body, .drop = count_drop, .state_size = SIZE_MAX };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &endless), -EINVAL);
    if (!test_is_sanitized()) {
        /* Sanitizers abort on a request of that size. */
        weft_spec greedy = { .body = end_body, .drop = count_drop, .state_size = SIZE_MAX / 2 };
        CHECK_EQ(weft_runtime_spawn(rt, &task, &greedy), -ENOMEM);
        greedy.state_size = SIZE_MAX - 1024;
        CHECK_EQ(weft_runtime_spawn(rt, &task, &greedy), -ENOMEM);
    }
    weft_stats stats;
    weft_runtime_stats(rt, &stats);
    CHECK_EQ(stats.tasks_spawned, 0);
    weft_runtime_shutdown(rt);
    weft_spec late = { .body = end_body, .drop = count_drop };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &late), WEFT_ESHUTDOWN);
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &late), WEFT_ESHUTDOWN);
    CHECK(task == untouched);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&drops), 0);
}

static int spawn_many_body(weft_co *co, void *state)
{
    (void)co;
    unsigned count = *(unsigned *)state;
    for (unsigned i = 0; i < count; i++) {
        weft_spec spec = { .body = end_body, .drop = count_drop };
        CHECK_EQ(weft_spawn(NULL, &spec), 0);
    }
    return 0;
}

static void full_inject_queue_refuses_only_spawns_from_outside(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.inject_capacity = 4;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    block_worker(rt);
    atomic_store(&drops, 0);
    atomic_store(&polls, 0);
    weft_spec spec = { .body = end_body, .drop = count_drop };
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
    }
    weft_task *task = NULL;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), -EAGAIN);
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), -EAGAIN);
    CHECK(task == NULL);
    unblock_worker();
    test_wait_for(&drops, 4);
    CHECK_EQ(atomic_load(&polls), 4);

    /* A worker's ring overflows into the queue regardless of its capacity. */
    unsigned count = 5000;
    weft_spec many = { .body = spawn_many_body, .state = &count, .state_size = sizeof count };
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &many), 0);
    test_wait_for(&drops, 4 + count);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&drops), 4 + count);
}

struct waiting_spawner {
    pthread_t thread;
    weft_runtime *rt;
    weft_time deadline;
    int result;
    weft_time returned_at;
};

static void *spawn_and_wait(void *arg)
{
    struct waiting_spawner *self = arg;
    weft_spec spec = { .body = end_body, .drop = count_drop };
    self->result = weft_runtime_spawn_wait(self->rt, NULL, &spec, self->deadline);
    self->returned_at = weft_now();
    return NULL;
}

static void start_spawner(struct waiting_spawner *spawner, weft_runtime *rt, weft_time deadline)
{
    *spawner = (struct waiting_spawner){ .rt = rt, .deadline = deadline };
    CHECK_EQ(pthread_create(&spawner->thread, NULL, spawn_and_wait, spawner), 0);
}

static void wait_for_waiting(weft_runtime *rt, uint32_t count)
{
    while (wf_load_relaxed(&rt->sched->room.waiting) != count) {
        (void)sched_yield();
    }
}

static weft_runtime *create_small_queue(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.inject_capacity = 1;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    return rt;
}

static void join_spawners(struct waiting_spawner *spawners, unsigned count, int result)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK_EQ(pthread_join(spawners[i].thread, NULL), 0);
        CHECK_EQ(spawners[i].result, result);
    }
}

/*
 * Goal:   weft_runtime_spawn_wait() waits while the inject queue is full, until space is
 *         available or the deadline passes.
 * Method: a queue of one slot, a blocked worker that does not drain it, and threads that wait for
 *         space.
 */
static void spawn_wait_waits_for_space_or_deadline(void)
{
    weft_runtime *rt = create_small_queue();
    block_worker(rt);
    atomic_store(&drops, 0);
    struct waiting_spawner spawners[4];
    start_spawner(&spawners[0], rt, weft_now());
    join_spawners(spawners, 1, 0); /* There was space: no wait. */

    start_spawner(&spawners[0], rt, weft_now() - WEFT_S);
    join_spawners(spawners, 1, WEFT_ETIMEDOUT);
    start_spawner(&spawners[0], rt, weft_now() + 3 * WEFT_MS);
    join_spawners(spawners, 1, WEFT_ETIMEDOUT);
    CHECK_GE(spawners[0].returned_at, spawners[0].deadline);

    for (unsigned i = 0; i < 4; i++) {
        start_spawner(&spawners[i], rt, WEFT_NEVER);
    }
    wait_for_waiting(rt, 4);
    unblock_worker();
    join_spawners(spawners, 4, 0);
    test_wait_for(&drops, 5);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&drops), 5);
}

static void *shut_down(void *arg)
{
    weft_runtime_shutdown(arg);
    return NULL;
}

/*
 * Goal:   shutdown ends the wait for space, even if no worker ever frees any.
 * Method: as above, but the worker is released only after the threads have returned.
 */
static void spawn_wait_ends_with_shutdown(void)
{
    weft_runtime *rt = create_small_queue();
    block_worker(rt);
    atomic_store(&drops, 0);
    weft_spec spec = { .body = end_body, .drop = count_drop };
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
    struct waiting_spawner spawners[4];
    for (unsigned i = 0; i < 4; i++) {
        start_spawner(&spawners[i], rt, test_deadline());
    }
    wait_for_waiting(rt, 4);
    pthread_t closer;
    CHECK_EQ(pthread_create(&closer, NULL, shut_down, rt), 0);
    join_spawners(spawners, 4, WEFT_ESHUTDOWN);
    unblock_worker();
    CHECK_EQ(pthread_join(closer, NULL), 0);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&drops), 1);
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

enum {
    IDS_MAX = 60000
};

static uint64_t ids[IDS_MAX];
static _Atomic(uint64_t) ids_used;
static _Atomic(uint64_t) ids_taken;

static int id_body(weft_co *co, void *state)
{
    unsigned children = *(unsigned *)state;
    (void)co;
    uint64_t at = atomic_fetch_add(&ids_used, 1);
    CHECK_LT(at, IDS_MAX);
    ids[at] = weft_task_id(weft_task_current());
    for (unsigned i = 0; i < children; i++) {
        unsigned none = 0;
        weft_spec spec = { .body = id_body, .state = &none, .state_size = sizeof none };
        weft_task *task;
        CHECK_EQ(weft_spawn(&task, &spec), 0);
        CHECK_NE(weft_task_id(task), 0);
        weft_detach(task);
    }
    atomic_fetch_add(&ids_taken, 1);
    return 0;
}

static void *spawn_ids(void *arg)
{
    for (unsigned i = 0; i < test_scale(1000); i++) {
        unsigned children = 5;
        weft_spec spec = { .body = id_body, .state = &children, .state_size = sizeof children };
        CHECK_EQ(weft_runtime_spawn(arg, NULL, &spec), 0);
    }
    return NULL;
}

/*
 * Goal:   no two tasks of a runtime have the same id, and none has id 0.
 * Method: tasks spawned by two threads and by four workers record theirs. After sorting,
 *         neighbors must differ.
 */
static void task_ids_are_unique_and_never_zero(void)
{
    weft_runtime *rt = test_start(4);
    atomic_store(&ids_used, 0);
    atomic_store(&ids_taken, 0);
    pthread_t threads[2];
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, spawn_ids, rt), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    uint64_t count = 2 * test_scale(1000) * 6;
    test_wait_for(&ids_taken, count);
    weft_runtime_destroy(rt);
    qsort(ids, count, sizeof ids[0], compare_ids);
    CHECK_NE(ids[0], 0);
    for (uint64_t i = 1; i < count; i++) {
        CHECK_NE(ids[i], ids[i - 1]);
    }
}

static int name_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    const char *name = weft_task_name(weft_task_current());
    return name != NULL ? name[0] : 0;
}

static void task_has_name_from_spec(void)
{
    weft_runtime *rt = test_start(1);
    static const char name[] = "reader";
    weft_task *task;
    weft_spec spec = { .body = name_body, .name = name };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK(weft_task_name(task) == name);
    CHECK_EQ(test_join_soon(task), 'r');
    spec.name = NULL;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK(weft_task_name(task) == NULL);
    CHECK_EQ(test_join_soon(task), 0);
    weft_runtime_destroy(rt);
}

struct homebody {
    int home; /* -1: the worker of its first poll */
    unsigned yields;
    weft_task *child;
    weft_join_future join;
};

static int homebody_body(weft_co *co, void *state)
{
    struct homebody *self = state;
    int err;
    if (self->home >= 0) {
        CHECK_EQ(weft_worker_current(), self->home);
    }
    self->home = weft_worker_current();
    WEFT_BEGIN(co);
    while (self->yields > 0) {
        self->yields--;
        WEFT_YIELD(co, err);
        CHECK_EQ(err, 0);
        /* A task that ends on an arbitrary worker, which then wakes this one. */
        weft_spec spec = { .body = end_body };
        CHECK_EQ(weft_spawn(&self->child, &spec), 0);
        weft_join_init(&self->join, self->child, NULL);
        WEFT_AWAIT(co, err, &self->join.future);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, 0);
}

/*
 * Goal:   a pinned task is always polled on its worker.
 * Method: tasks that yield and that others wake check their worker at each poll, while unpinned
 *         tasks make the workers steal.
 */
static void pinned_task_always_runs_on_its_worker(void)
{
    enum {
        TASKS = 32
    };
    unsigned workers = 4;
    weft_runtime *rt = test_start(workers);
    weft_task *tasks[TASKS];
    for (unsigned i = 0; i < TASKS; i++) {
        bool anywhere = i % 3 == 0;
        struct homebody state = { .home = anywhere ? -1 : (int)(i % workers),
                                  .yields = (unsigned)test_scale(200) };
        weft_spec spec = { .body = homebody_body,
                           .state = &state,
                           .state_size = sizeof state,
                           .pinned = anywhere ? WEFT_PINNED : WEFT_PINNED_TO(i % workers) };
        CHECK_EQ(weft_runtime_spawn(rt, &tasks[i], &spec), 0);
    }
    for (unsigned i = 0; i < TASKS; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 0);
    }
    weft_runtime_destroy(rt);
}

struct early {
    weft_task *other;
    weft_join_future join;
    bool awaits;
};

/* Learns of the cancellation at its first poll. */
static int early_body(weft_co *co, void *state)
{
    struct early *self = state;
    int err;
    WEFT_BEGIN(co);
    atomic_fetch_add(&polls, 1);
    CHECK(weft_cancelled());
    if (self->awaits) {
        weft_join_init(&self->join, self->other, NULL);
        WEFT_AWAIT(co, err, &self->join.future);
        CHECK_EQ(err, WEFT_ECANCELED);
        CHECK(self->join.task == self->other);
    }
    WEFT_END(co, 23);
}

static void task_canceled_before_first_poll_is_polled_once(void)
{
    weft_runtime *rt = test_start(1);
    block_worker(rt);
    atomic_store(&polls, 0);
    atomic_store(&drops, 0);
    weft_task *task;
    weft_spec waits = { .body = wait_body };
    weft_task *other;
    CHECK_EQ(weft_runtime_spawn(rt, &other, &waits), 0);
    struct early state = { .other = other };
    weft_spec spec = {
        .body = early_body, .drop = count_drop, .state = &state, .state_size = sizeof state
    };
    weft_task *tasks[3];
    CHECK_EQ(weft_runtime_spawn(rt, &tasks[0], &spec), 0);
    state.awaits = true;
    CHECK_EQ(weft_runtime_spawn(rt, &tasks[1], &spec), 0);
    spec.pinned = WEFT_PINNED;
    CHECK_EQ(weft_runtime_spawn(rt, &tasks[2], &spec), 0);
    waits.drop = count_drop;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &waits), 0);
    for (unsigned i = 0; i < 3; i++) {
        weft_cancel(tasks[i]);
    }
    weft_cancel(task);
    unblock_worker();
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 23);
    }
    CHECK_EQ(test_join_soon(task), WEFT_ECANCELED);
    weft_detach(other);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&drops), 4);
    /* Each of the four once; the other one at its start and at shutdown. */
    CHECK_EQ(atomic_load(&polls), 6);
}

static int blocking_function(void *arg)
{
    return *(int *)arg;
}

static _Atomic(uint64_t) expected_drops;

static int parent_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    for (size_t size = 0; size <= 4000; size += 1000) {
        weft_spec spec = { .body = wait_body, .drop = count_drop, .state_size = size };
        int err = weft_spawn(NULL, &spec);
        CHECK(err == 0 || err == -ENOMEM);
        atomic_fetch_add(&expected_drops, err == 0);
    }
    return 0;
}

/* Spawns and joins a task of each kind. Returns the number of failed spawns. */
static unsigned spawn_each_kind(weft_runtime *rt)
{
    unsigned refused = 0;
    weft_spec specs[] = {
        { .body = end_body, .drop = count_drop },
        { .body = end_body, .drop = count_drop, .state_size = 900 },
        { .body = end_body, .drop = count_drop, .state_size = 5000 },
        { .body = parent_body, .drop = count_drop },
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        weft_task *task;
        int err = weft_runtime_spawn(rt, &task, &specs[i]);
        if (err == 0) {
            CHECK_EQ(test_join_soon(task), 0);
            atomic_fetch_add(&expected_drops, 1);
        } else {
            CHECK_EQ(err, -ENOMEM);
            refused++;
        }
    }
    weft_task *task;
    int answer = 5;
    int err = weft_runtime_spawn_blocking(rt, &task, blocking_function, &answer);
    if (err == 0) {
        CHECK_EQ(test_join_soon(task), 5);
    } else {
        CHECK_EQ(err, -ENOMEM);
        refused++;
    }
    return refused;
}

/*
 * Goal:   any allocation may fail. The call reports it or does without, and nothing is leaked or
 *         dropped twice.
 * Method: run a runtime's whole lifetime with the n-th allocation failing, for each n up to the
 *         number of allocations.
 */
static void every_allocation_may_fail(void)
{
    struct ledger ledger = { 0 };
    weft_allocator allocator = ledger_allocator(&ledger);
    unsigned failed_creates = 0;
    unsigned refused = 0;
    do {
        ledger.fail_at++;
        atomic_store(&ledger.calls, 0);
        atomic_store(&drops, 0);
        atomic_store(&expected_drops, 0);
        weft_config config = WEFT_CONFIG_INIT;
        config.workers = 2;
        config.allocator = &allocator;
        weft_runtime *rt;
        int err = weft_runtime_create(&rt, &config);
        if (err == 0) {
            refused += spawn_each_kind(rt);
            weft_runtime_destroy(rt);
        } else {
            CHECK_EQ(err, -ENOMEM);
            failed_creates++;
        }
        CHECK_EQ(atomic_load(&ledger.bytes), 0);
        CHECK_EQ(atomic_load(&drops), atomic_load(&expected_drops));
    } while (atomic_load(&ledger.calls) >= ledger.fail_at);
    CHECK_EQ(failed_creates, 6); /* scheduler, heap, workers, timers, I/O, drivers */
    CHECK_GE(refused, 3);
}

static void refused_spawn_leaks_nothing(void)
{
    struct ledger ledger = { 0 };
    weft_allocator allocator = ledger_allocator(&ledger);
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.inject_capacity = 1;
    config.allocator = &allocator;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    block_worker(rt);
    weft_task *task = NULL;
    for (size_t size = 0; size <= 2000; size += 2000) {
        weft_spec spec = { .body = end_body, .state_size = size };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), size == 0 ? 0 : -EAGAIN);
        CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), -EAGAIN);
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), -EAGAIN);
    }
    unblock_worker();
    weft_runtime_shutdown(rt);
    for (size_t size = 0; size <= 2000; size += 2000) {
        weft_spec spec = { .body = end_body, .state_size = size };
        CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), WEFT_ESHUTDOWN);
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), WEFT_ESHUTDOWN);
    }
    CHECK(task == NULL);
    int argument = 0;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, blocking_function, &argument), WEFT_ESHUTDOWN);
    CHECK_EQ(weft_runtime_spawn_blocking(rt, NULL, blocking_function, &argument), WEFT_ESHUTDOWN);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&ledger.bytes), 0);
}

static int create_and_run(weft_body_fn body)
{
    weft_runtime *rt = test_start(1);
    weft_task *task;
    weft_spec spec = { .body = body, .name = "careless" };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    return test_join_soon(task);
}

static int careless_body(weft_co *co, void *state)
{
    static weft_join_future future;
    (void)state;
    weft_task *task;
    weft_spec spec = { .body = wait_body };
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    weft_join_init(&future, task, NULL);
    CHECK_EQ(weft_await_poll(co, &future.future), WEFT_PENDING);
    return 0;
}

static void run_careless_body(void)
{
    (void)create_and_run(careless_body);
}

static int spawn_wait_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_spec spec = { .body = end_body };
    return weft_runtime_spawn_wait(weft_runtime_current(), NULL, &spec, WEFT_NEVER);
}

static void run_spawn_wait_body(void)
{
    (void)create_and_run(spawn_wait_body);
}

static void misuse_in_stackless_task_aborts_with_message(void)
{
    CHECK_ABORTS(run_careless_body, "task 'careless'");
    CHECK_ABORTS(run_careless_body, "returned while an await of its was pending");
    CHECK_ABORTS(run_spawn_wait_body, "weft_runtime_spawn_wait: called on a worker");
}

static int cross_spawn_body(weft_co *co, void *state)
{
    (void)co;
    weft_spec spec = { .body = end_body, .drop = count_drop };
    return weft_runtime_spawn(*(weft_runtime **)state, NULL, &spec);
}

static void worker_may_spawn_on_another_runtime(void)
{
    weft_runtime *here = test_start(1);
    weft_runtime *there = test_start(1);
    atomic_store(&drops, 0);
    weft_task *task;
    weft_spec spec = { .body = cross_spawn_body, .state = &there, .state_size = sizeof there };
    CHECK_EQ(weft_runtime_spawn(here, &task, &spec), 0);
    CHECK_EQ(test_join_soon(task), 0);
    test_wait_for(&drops, 1);
    weft_stats stats;
    weft_runtime_stats(there, &stats);
    CHECK_EQ(stats.tasks_spawned, 1);
    weft_runtime_shutdown(there);
    CHECK_EQ(weft_runtime_spawn(here, &task, &spec), 0);
    CHECK_EQ(test_join_soon(task), WEFT_ESHUTDOWN);
    weft_runtime_destroy(there);
    weft_runtime_destroy(here);
}

TEST_MAIN({
    TEST(state_is_copied_or_zeroed_and_aligned),
    TEST(join_result_is_return_value_of_task),
    TEST(drop_is_called_once_after_end_and_after_cancel),
    TEST(drop_is_called_once_at_shutdown_for_any_task_size),
    TEST(invalid_spawn_is_refused_without_drop),
    TEST(full_inject_queue_refuses_only_spawns_from_outside),
    TEST(spawn_wait_waits_for_space_or_deadline),
    TEST(spawn_wait_ends_with_shutdown),
    TEST(task_ids_are_unique_and_never_zero),
    TEST(task_has_name_from_spec),
    TEST(pinned_task_always_runs_on_its_worker),
    TEST(task_canceled_before_first_poll_is_polled_once),
    TEST(every_allocation_may_fail),
    TEST(refused_spawn_leaks_nothing),
    TEST(misuse_in_stackless_task_aborts_with_message),
    TEST(worker_may_spawn_on_another_runtime),
})
