/* SPDX-License-Identifier: MIT */
#include "sched/drain.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <weft.h>

#include "base/clock.h"
#include "rt.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/worker.h"
#include "scheduler.h"
#include "test.h"
#include "timing.h"

/* The history of each task, by number. */
enum {
    LIVES_MAX = 400 * 1000
};

static struct {
    _Atomic(uint8_t) accepted;
    _Atomic(uint8_t) begun;
    _Atomic(uint8_t) dropped;
} lives[LIVES_MAX];

static _Atomic(uint32_t) lives_used;

static void forget_lives(void)
{
    memset(lives, 0, atomic_load(&lives_used) * sizeof lives[0]);
    atomic_store(&lives_used, 0);
}

static uint32_t new_life(void)
{
    uint32_t life = atomic_fetch_add(&lives_used, 1);
    CHECK_LT(life, LIVES_MAX);
    return life;
}

/*
 * Checks that each accepted task was started once and dropped once, and no other. Returns the
 * number of accepted tasks.
 */
static uint32_t check_lives(void)
{
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < atomic_load(&lives_used); i++) {
        uint8_t expected = atomic_load(&lives[i].accepted);
        CHECK_EQ(atomic_load(&lives[i].begun), expected);
        CHECK_EQ(atomic_load(&lives[i].dropped), expected);
        accepted += expected;
    }
    return accepted;
}

enum kind {
    ENDS,
    YIELDS,
    WAITS,   /* forever, without awaiting anything */
    SPAWNS,  /* one child, then waits */
    SHIELDS, /* yields under a shield, then waits */
    KINDS
};

struct life {
    uint32_t number;
    uint32_t kind;
    uint32_t steps;
};

static int life_body(weft_co *co, void *state);
static _Atomic(uint64_t) shield_steps;
static _Atomic(uint64_t) shields;
static _Atomic(uint64_t) refused;

static void life_drop(void *state)
{
    struct life *self = state;
    atomic_fetch_add(&lives[self->number].dropped, 1);
}

/* Spawns on the given runtime, or on the current one if it is NULL. */
static int spawn_life(weft_runtime *rt, uint32_t kind, uint32_t pinned)
{
    struct life self = { .number = new_life(), .kind = kind };
    weft_spec spec = { .body = life_body,
                       .drop = life_drop,
                       .state = &self,
                       .state_size = sizeof self,
                       .pinned = pinned };
    int err = rt != NULL ? weft_runtime_spawn(rt, NULL, &spec) : weft_spawn(NULL, &spec);
    if (err == 0) {
        atomic_fetch_add(&lives[self.number].accepted, 1);
    }
    return err;
}

static void spawn_child(void)
{
    int err = spawn_life(NULL, ENDS, 0);
    if (err == WEFT_ESHUTDOWN) {
        atomic_fetch_add(&refused, 1);
    } else {
        CHECK_EQ(err, 0);
    }
}

static int shield_step(struct life *self)
{
    enum {
        STEPS = 5
    };
    if (self->steps == 1) {
        weft_shield_enter();
        atomic_fetch_add(&shields, 1);
    }
    if (self->steps <= STEPS) {
        CHECK(!weft_cancelled());
        atomic_fetch_add(&shield_steps, 1);
        return WEFT_YIELDED;
    }
    if (self->steps == STEPS + 1) {
        weft_shield_leave();
    }
    return WEFT_PENDING;
}

static int life_body(weft_co *co, void *state)
{
    struct life *self = state;
    (void)co;
    if (self->steps++ == 0) {
        atomic_fetch_add(&lives[self->number].begun, 1);
    }
    switch (self->kind) {
    case ENDS:
        return 0;
    case YIELDS:
        return self->steps < 4 ? WEFT_YIELDED : 0;
    case SPAWNS:
        spawn_child();
        return WEFT_PENDING;
    case SHIELDS:
        return shield_step(self);
    default:
        return WEFT_PENDING;
    }
}

static void check_nothing_alive(weft_runtime *rt)
{
    weft_stats stats;
    weft_runtime_stats(rt, &stats);
    CHECK_EQ(stats.tasks_alive, 0);
    CHECK_EQ(stats.inject_length, 0);
    CHECK_EQ(wf_drain_phase(&rt->sched->drain), WF_PHASE_STOPPED);
    CHECK_EQ(wf_load_relaxed(&rt->sched->drain.debt), 0);
}

/* --- By hand: a scheduler that was not started, with this thread as its workers --- */

static struct wf_sched *init(unsigned workers)
{
    struct wf_sched_options options = test_sched_options(workers);
    options.inject_interval_min = 8;
    return test_sched_create(&options);
}

static void run_one(struct wf_worker *worker)
{
    test_be_worker(worker);
    struct wf_task *task = wf_worker_next(worker);
    CHECK(task != NULL);
    wf_worker_run(worker, task);
}

static void acknowledge(struct wf_worker *worker)
{
    test_be_worker(worker);
    wf_drain_acknowledge(worker);
}

static int end_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return 0;
}

static int wait_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return WEFT_PENDING;
}

static void empty_scheduler_stops_after_last_acknowledgment(void)
{
    struct wf_sched *sched = init(3);
    CHECK_EQ(wf_drain_phase(&sched->drain), WF_PHASE_OPEN);
    wf_drain_close(sched);
    CHECK_EQ(wf_drain_phase(&sched->drain), WF_PHASE_CLOSING);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(wf_load_relaxed(&sched->drain.is_over), 0);
        /* Woken to notice the shutdown. */
        CHECK_NE(wf_load_relaxed(&sched->workers[i].park.word), 0);
        acknowledge(&sched->workers[i]);
    }
    CHECK_EQ(wf_load_relaxed(&sched->drain.is_over), 1);
    wf_drain_await(sched);
    CHECK_EQ(wf_drain_phase(&sched->drain), WF_PHASE_CLOSING); /* Timers still fire. */
    wf_drain_stop(sched);
    CHECK_EQ(wf_drain_phase(&sched->drain), WF_PHASE_STOPPED);
    test_be_worker(NULL);
    wf_sched_fini(sched);
}

static void live_task_count_of_worker_may_be_negative(void)
{
    struct wf_sched *sched = init(2);
    struct wf_worker *workers = sched->workers;
    weft_spec ends = { .body = end_body, .pinned = WEFT_PINNED_TO(1) };
    test_be_worker(&workers[0]);
    for (unsigned i = 0; i < 5; i++) {
        CHECK_EQ(wf_spawn(sched, NULL, &ends), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        run_one(&workers[1]);
    }
    wf_drain_close(sched);
    /* Completed four, spawned none. */
    acknowledge(&workers[1]);
    CHECK_EQ(wf_load_relaxed(&sched->drain.is_over), 0);
    /* Completed none, spawned five: one is left. */
    acknowledge(&workers[0]);
    CHECK_EQ(wf_load_relaxed(&sched->drain.is_over), 0);
    CHECK_EQ(wf_load_relaxed(&sched->drain.debt), 1);
    run_one(&workers[1]);
    CHECK_EQ(wf_load_relaxed(&sched->drain.is_over), 1);
    test_be_worker(NULL);
    wf_sched_fini(sched);
}

static void shutdown_waits_for_tasks_from_outside(void)
{
    struct wf_sched *sched = init(1);
    struct wf_worker *worker = &sched->workers[0];
    weft_spec ends = { .body = end_body };
    weft_spec pinned = { .body = end_body, .pinned = WEFT_PINNED };
    weft_spec waits = { .body = wait_body };
    CHECK_EQ(wf_spawn(sched, NULL, &ends), 0);
    CHECK_EQ(wf_spawn(sched, NULL, &pinned), 0);
    CHECK_EQ(wf_spawn(sched, NULL, &waits), 0);
    wf_drain_close(sched);
    CHECK_EQ(wf_spawn(sched, NULL, &ends), WEFT_ESHUTDOWN);
    CHECK_EQ(wf_spawn(sched, NULL, &pinned), WEFT_ESHUTDOWN);
    acknowledge(worker);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(wf_load_relaxed(&sched->drain.is_over), 0);
        run_one(worker);
    }
    CHECK_EQ(wf_load_relaxed(&sched->drain.is_over), 1);
    test_be_worker(NULL);
    wf_sched_fini(sched);
}

static void worker_refuses_its_own_spawns_after_close(void)
{
    struct wf_sched *sched = init(1);
    weft_spec ends = { .body = end_body };
    test_be_worker(&sched->workers[0]);
    CHECK_EQ(wf_spawn(sched, NULL, &ends), 0);
    wf_drain_close(sched);
    CHECK_EQ(wf_spawn(sched, NULL, &ends), WEFT_ESHUTDOWN);
    acknowledge(&sched->workers[0]);
    CHECK_EQ(wf_spawn(sched, NULL, &ends), WEFT_ESHUTDOWN);
    run_one(&sched->workers[0]);
    CHECK_EQ(wf_load_relaxed(&sched->drain.is_over), 1);
    test_be_worker(NULL);
    wf_sched_fini(sched);
}

static void task_spawned_during_close_is_canceled_later(void)
{
    struct wf_sched *sched = init(2);
    struct wf_worker *workers = sched->workers;
    wf_drain_close(sched);
    /* A worker that read the phase just before. */
    wf_store_relaxed(&sched->drain.phase, (uint32_t)WF_PHASE_OPEN);
    struct wf_task *task;
    weft_spec waits = { .body = wait_body };
    test_be_worker(&workers[0]);
    CHECK_EQ(wf_spawn(sched, &task, &waits), 0);
    wf_store_relaxed(&sched->drain.phase, (uint32_t)WF_PHASE_CLOSING);
    acknowledge(&workers[0]);
    CHECK(!wf_state_must_cancel(wf_task_state(task)));
    acknowledge(&workers[1]);
    CHECK(wf_state_must_cancel(wf_task_state(task)));
    CHECK_EQ(wf_load_relaxed(&sched->drain.is_over), 0);
    run_one(&workers[0]);
    CHECK_EQ(wf_load_relaxed(&sched->drain.is_over), 1);
    CHECK_EQ(task->result, WEFT_ECANCELED);
    wf_task_release(task);
    test_be_worker(NULL);
    wf_sched_fini(sched);
}

/* --- On running runtimes --- */

static struct {
    _Atomic(uint64_t) running;
    _Atomic(uint64_t) go_on;
} blocker;

/* Fills every queue of its worker, and occupies it until go_on is set. */
static int blocker_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    for (uint32_t i = 0; i < 600; i++) {
        CHECK_EQ(spawn_life(NULL, i % KINDS, i % 7 == 0 ? WEFT_PINNED : 0), 0);
    }
    atomic_fetch_add(&blocker.running, 1);
    test_wait_for(&blocker.go_on, 1);
    return 0;
}

static void *shut_down(void *arg)
{
    weft_runtime_shutdown(arg);
    return NULL;
}

static void wait_for_closing(weft_runtime *rt)
{
    while (wf_drain_phase(&rt->sched->drain) == WF_PHASE_OPEN) {
        (void)sched_yield();
    }
}

/*
 * Goal:   shutdown ends tasks in every position: idle, running, in the LIFO slot, the ring, the
 *         inbox and the inject queue.
 * Method: idle tasks first, then a task that fills the queues of its worker and does not return,
 *         then more from outside. With one worker nothing moves before shutdown has started.
 */
static void shutdown_ends_tasks_in_every_queue(void)
{
    for (unsigned round = 0; round < test_scale(40); round++) {
        forget_lives();
        atomic_store(&blocker.running, 0);
        atomic_store(&blocker.go_on, 0);
        weft_runtime *rt = test_start(1 + round % 2);
        for (uint32_t i = 0; i < 50; i++) {
            CHECK_EQ(spawn_life(rt, WAITS, i % 2 == 0 ? WEFT_PINNED : 0), 0);
        }
        weft_spec spec = { .body = blocker_body };
        CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        test_wait_for(&blocker.running, 1);
        for (uint32_t i = 0; i < 100; i++) {
            CHECK_EQ(spawn_life(rt, i % KINDS, i % 3 == 0 ? WEFT_PINNED : 0), 0);
        }
        if (round % 2 == 0) {
            struct wf_worker *worker = &rt->sched->workers[0];
            CHECK(wf_ring_len(&worker->ring) > 0);
            CHECK(wf_inject_len(&rt->sched->inject) > 0);
            CHECK(!wf_mpsc_is_empty(&worker->inbox));
        }
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, shut_down, rt), 0);
        wait_for_closing(rt);
        atomic_store(&blocker.go_on, 1);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_GE(check_lives(), 750);
        check_nothing_alive(rt);
        weft_runtime_destroy(rt);
    }
}

static _Atomic(uint64_t) computing;

/* Does not return to its worker before it is canceled. */
static int computing_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&computing, 1);
    weft_time deadline = test_deadline();
    while (!weft_cancelled()) {
        CHECK_LT(weft_now(), deadline);
        (void)sched_yield();
    }
    return 0;
}

/*
 * Goal:   a task that computes for a long time sees the shutdown while it computes.
 * Method: every worker is busy with a task that polls for its cancellation and does not return
 *         before.
 */
static void computing_tasks_see_shutdown(void)
{
    for (unsigned round = 0; round < test_scale(40); round++) {
        unsigned workers = 1 + round % 3;
        atomic_store(&computing, 0);
        weft_runtime *rt = test_start(workers);
        for (unsigned i = 0; i < workers; i++) {
            weft_spec spec = { .body = computing_body, .pinned = WEFT_PINNED_TO(i) };
            CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        }
        test_wait_for(&computing, workers);
        weft_runtime_shutdown(rt);
        check_nothing_alive(rt);
        weft_runtime_destroy(rt);
    }
}

static _Atomic(uint64_t) spawners_ready;

struct spawner {
    pthread_t thread;
    weft_runtime *rt;
};

/* Spawns until it is refused, then checks that it stays refused. */
static void *spawner_main(void *arg)
{
    struct spawner *self = arg;
    atomic_fetch_add(&spawners_ready, 1);
    int err = 0;
    for (uint32_t i = 0; err == 0; i++) {
        while ((wf_inject_len(&self->rt->sched->inject) > 1000 ||
                atomic_load(&lives_used) > LIVES_MAX / 2) &&
               wf_drain_phase(&self->rt->sched->drain) == WF_PHASE_OPEN) {
            (void)sched_yield(); /* The workers cannot keep up. */
        }
        err = spawn_life(self->rt, i % KINDS, i % 11 == 0 ? WEFT_PINNED : 0);
    }
    CHECK_EQ(err, WEFT_ESHUTDOWN);
    CHECK_EQ(spawn_life(self->rt, ENDS, 0), WEFT_ESHUTDOWN);
    CHECK_EQ(spawn_life(self->rt, ENDS, WEFT_PINNED), WEFT_ESHUTDOWN);
    return NULL;
}

/*
 * Goal:   threads may spawn while the runtime shuts down. Each accepted task runs and is dropped
 *         once, and no other.
 * Method: threads spawn tasks of all kinds until they are refused. A task is recorded when it is
 *         accepted, when it starts and when it is dropped.
 */
static void threads_may_spawn_during_shutdown(void)
{
    enum {
        SPAWNERS = 3
    };
    uint32_t accepted = 0;
    for (unsigned round = 0; round < test_scale(60) + 2; round++) {
        forget_lives();
        atomic_store(&spawners_ready, 0);
        weft_runtime *rt = test_start(test_workers(1 + round % 4));
        struct spawner spawners[SPAWNERS];
        for (unsigned i = 0; i < SPAWNERS; i++) {
            spawners[i] = (struct spawner){ .rt = rt };
            CHECK_EQ(pthread_create(&spawners[i].thread, NULL, spawner_main, &spawners[i]), 0);
        }
        test_wait_for(&spawners_ready, SPAWNERS);
        while (atomic_load(&lives_used) < round * 50) {
            (void)sched_yield();
        }
        weft_runtime_shutdown(rt);
        for (unsigned i = 0; i < SPAWNERS; i++) {
            CHECK_EQ(pthread_join(spawners[i].thread, NULL), 0);
        }
        accepted += check_lives();
        check_nothing_alive(rt);
        weft_runtime_destroy(rt);
    }
    CHECK(accepted > 0);
}

/*
 * Goal:   shutdown may be called again, and by several threads at the same time. Each call
 *         returns after everything has ended.
 * Method: four threads, while waiting tasks exist that record their end.
 */
static void *shut_down_and_look(void *arg)
{
    weft_runtime *rt = arg;
    weft_runtime_shutdown(rt);
    (void)check_lives();
    check_nothing_alive(rt);
    return NULL;
}

static void concurrent_shutdowns_all_return_after_end(void)
{
    for (unsigned round = 0; round < test_scale(60); round++) {
        forget_lives();
        weft_runtime *rt = test_start(3);
        for (uint32_t i = 0; i < 200; i++) {
            CHECK_EQ(spawn_life(rt, i % KINDS, 0), 0);
        }
        pthread_t threads[4];
        for (unsigned i = 0; i < 4; i++) {
            CHECK_EQ(pthread_create(&threads[i], NULL, shut_down_and_look, rt), 0);
        }
        for (unsigned i = 0; i < 4; i++) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        }
        weft_runtime_shutdown(rt);
        weft_runtime_shutdown(rt);
        CHECK_EQ(spawn_life(rt, ENDS, 0), WEFT_ESHUTDOWN);
        CHECK_GE(check_lives(), 200);
        weft_runtime_destroy(rt);
    }
}

struct last_words {
    _Atomic(uint64_t) polled;
    _Atomic(uint64_t) body_refused;
    _Atomic(uint64_t) drop_refused;
};

static struct last_words last_words;

static void spawning_drop(void *state)
{
    (void)state;
    weft_spec spec = { .body = end_body };
    CHECK_EQ(weft_spawn(NULL, &spec), WEFT_ESHUTDOWN);
    atomic_fetch_add(&last_words.drop_refused, 1);
}

static int spawning_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    if (!weft_cancelled()) {
        atomic_fetch_add(&last_words.polled, 1);
        return WEFT_PENDING;
    }
    weft_task *task = NULL;
    weft_spec spec = { .body = end_body };
    CHECK_EQ(weft_spawn(&task, &spec), WEFT_ESHUTDOWN);
    CHECK(task == NULL);
    spec.pinned = WEFT_PINNED;
    CHECK_EQ(weft_spawn(NULL, &spec), WEFT_ESHUTDOWN);
    atomic_fetch_add(&last_words.body_refused, 1);
    return 0;
}

/*
 * Goal:   a task that shutdown cancels, and its drop function, may try to spawn, and get
 *         WEFT_ESHUTDOWN.
 * Method: waiting tasks that spawn when they are canceled.
 */
static void spawn_during_shutdown_returns_eshutdown(void)
{
    for (unsigned round = 0; round < test_scale(40); round++) {
        memset(&last_words, 0, sizeof last_words);
        weft_runtime *rt = test_start(2);
        for (unsigned i = 0; i < 200; i++) {
            weft_spec spec = { .body = spawning_body, .drop = spawning_drop };
            CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        }
        test_wait_for(&last_words.polled, 200);
        weft_runtime_destroy(rt);
        CHECK_EQ(last_words.body_refused, 200);
        CHECK_EQ(last_words.drop_refused, 200);
    }
}

/*
 * Goal:   a task finishes its work under a shield before shutdown ends it, and sees the
 *         cancellation afterwards.
 * Method: tasks that yield five times under a shield, not all of them started when shutdown
 *         begins. Under the shield none sees itself canceled.
 */
static void shielded_work_is_finished_first(void)
{
    for (unsigned round = 0; round < test_scale(40); round++) {
        forget_lives();
        atomic_store(&shield_steps, 0);
        atomic_store(&shields, 0);
        weft_runtime *rt = test_start(2);
        for (unsigned i = 0; i < 300; i++) {
            CHECK_EQ(spawn_life(rt, SHIELDS, 0), 0);
        }
        weft_runtime_shutdown(rt);
        CHECK_EQ(check_lives(), 300);
        CHECK_EQ(atomic_load(&shields), 300);
        CHECK_EQ(atomic_load(&shield_steps), 5 * 300);
        weft_runtime_destroy(rt);
    }
}

static struct {
    _Atomic(uint64_t) waiting;
    _Atomic(uint64_t) told;
    _Atomic(uint64_t) shielded_told;
} joiners;

struct joiner {
    weft_task *child;
    weft_join_future join;
    int result;
    bool shielded;
};

/* Awaits its child: to its end under a shield, otherwise until it is canceled. */
static int joiner_body(weft_co *co, void *state)
{
    struct joiner *self = state;
    int err;
    WEFT_BEGIN(co);
    if (self->shielded) {
        weft_shield_enter();
    }
    atomic_fetch_add(&joiners.waiting, 1);
    weft_join_init(&self->join, self->child, &self->result);
    WEFT_AWAIT(co, err, &self->join.future);
    if (self->shielded) {
        weft_shield_leave();
        CHECK_EQ(err, 0);
        CHECK_EQ(self->result, WEFT_ECANCELED);
        atomic_fetch_add(&joiners.shielded_told, 1);
    } else if (err == WEFT_ECANCELED) {
        atomic_fetch_add(&joiners.told, 1);
        weft_detach(self->child);
    } else {
        CHECK_EQ(err, 0); /* The child was faster. */
        atomic_fetch_add(&joiners.told, 1);
    }
    CHECK(weft_cancelled());
    WEFT_END(co, 0);
}

/*
 * Goal:   tasks that await each other all end. An await is cut short unless a shield covers it;
 *         then it completes because the other task ends.
 * Method: pairs of a task that waits forever and a task that joins it.
 */
static void tasks_that_join_each_other_all_end(void)
{
    for (unsigned round = 0; round < test_scale(40); round++) {
        memset(&joiners, 0, sizeof joiners);
        weft_runtime *rt = test_start(3);
        for (unsigned i = 0; i < 100; i++) {
            struct joiner state = { .shielded = i % 2 == 0 };
            weft_spec child = { .body = wait_body };
            CHECK_EQ(weft_runtime_spawn(rt, &state.child, &child), 0);
            weft_spec spec = { .body = joiner_body, .state = &state, .state_size = sizeof state };
            CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        }
        test_wait_for(&joiners.waiting, 100);
        weft_runtime_destroy(rt);
        CHECK_EQ(joiners.told, 50);
        CHECK_EQ(joiners.shielded_told, 50);
    }
}

/*
 * Goal:   far more workers than cores, and than bits in a word, also stop.
 * Method: 200 workers, with and without tasks, some of them pinned to each.
 */
static void two_hundred_workers_stop(void)
{
    for (uint32_t round = 0; round < 4; round++) {
        forget_lives();
        weft_runtime *rt = test_start(200);
        for (uint32_t i = 0; i < round * 500; i++) {
            uint32_t pinned = i % 2 == 0 ? WEFT_PINNED_TO(i / 2 % 200) : 0;
            CHECK_EQ(spawn_life(rt, i % KINDS, pinned), 0);
        }
        weft_runtime_shutdown(rt);
        CHECK_GE(check_lives(), round * 500);
        check_nothing_alive(rt);
        weft_runtime_destroy(rt);
    }
}

TEST_MAIN({
    TEST(empty_scheduler_stops_after_last_acknowledgment),
    TEST(live_task_count_of_worker_may_be_negative),
    TEST(shutdown_waits_for_tasks_from_outside),
    TEST(worker_refuses_its_own_spawns_after_close),
    TEST(task_spawned_during_close_is_canceled_later),
    TEST(shutdown_ends_tasks_in_every_queue),
    TEST(computing_tasks_see_shutdown),
    TEST(threads_may_spawn_during_shutdown),
    TEST(concurrent_shutdowns_all_return_after_end),
    TEST(spawn_during_shutdown_returns_eshutdown),
    TEST(shielded_work_is_finished_first),
    TEST(tasks_that_join_each_other_all_end),
    TEST(two_hundred_workers_stop),
})
