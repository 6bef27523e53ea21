/* SPDX-License-Identifier: MIT */
#include "sched/job.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <weft.h>

#include "../fiber/child.h"
#include "forks.h"
#include "rt.h"
#include "sched/strand.h"
#include "sched/worker.h"
#include "test.h"

static _Atomic(uint64_t) runs;

static void count(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
}

/* --- Results ------------------------------------------------------------------------- */

static int grow_trees(void *arg)
{
    (void)arg;
    test_grow_many();
    return 0;
}

static void every_fork_runs_once(void)
{
    for (unsigned workers = 1; workers <= 16; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        weft_task *tasks[4];
        for (unsigned i = 0; i < 4; i++) {
            tasks[i] = test_go(rt, grow_trees, NULL);
        }
        for (unsigned i = 0; i < 4; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        weft_runtime_destroy(rt);
    }
}

static void fork_outside_of_runtime_runs_at_its_join(void)
{
    CHECK_EQ(grow_trees(NULL), 0);
}

/* More forks than a fork context has slots. */
static int fork_very_many(void *arg)
{
    (void)arg;
    enum {
        MANY = WF_STRAND_SLOTS + 1000
    };
    weft_forked *forks = calloc(MANY, sizeof *forks);
    CHECK(forks != NULL);
    atomic_store(&runs, 0);
    for (unsigned i = 0; i < MANY; i++) {
        weft_fork(&forks[i], count, NULL);
    }
    for (unsigned i = MANY; i-- > 0;) {
        weft_fork_join(&forks[i]);
    }
    free(forks);
    CHECK_EQ(atomic_load(&runs), MANY);
    return 0;
}

static void fork_without_free_slot_runs_at_its_join(void)
{
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        CHECK_EQ(test_run(rt, fork_very_many, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

/* --- The worker that runs a fork ------------------------------------------------------ */

static _Atomic(uint64_t) begun;

static int meet_at_once(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < 200; i++) {
        test_meet();
    }
    return 0;
}

/*
 * Goal:   the first fork is published immediately, and an idle worker steals it, however deeply
 *         it sleeps.
 * Method: each of two functions waits for the other, without a fork or join in between.
 */
static void two_computations_run_concurrently(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, meet_at_once, NULL), 0);
    weft_runtime_destroy(rt);
}

static void set(void *arg)
{
    atomic_store((_Atomic(uint64_t) *)arg, 1);
}

static int wait_between(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < 100; i++) {
        _Atomic(uint64_t) done[2] = { 0, 0 };
        weft_forked forks[2];
        weft_fork(&forks[0], set, &done[0]);
        weft_fork(&forks[1], set, &done[1]);
        while (atomic_load(&done[0]) == 0 || atomic_load(&done[1]) == 0) {
            CHECK_EQ(weft_sleep(WEFT_US), 0);
        }
        weft_fork_join(&forks[1]);
        weft_fork_join(&forks[0]);
    }
    return 0;
}

/*
 * Goal:   the forks of a suspended fiber still run.
 * Method: it sleeps until all its forks have run, and only then joins them. Its own worker has to
 *         run them if there is no other.
 */
static void forks_of_suspended_fiber_are_run(void)
{
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        CHECK_EQ(test_run(rt, wait_between, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

static void wait_and_count(void *arg)
{
    (void)arg;
    CHECK_EQ(weft_yield(), 0);
    CHECK_EQ(weft_sleep(WEFT_US), 0);
    atomic_fetch_add(&runs, 1);
}

static int fork_waiting_functions(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < test_scale(500); i++) {
        weft_join2(wait_and_count, NULL, wait_and_count, NULL);
    }
    return 0;
}

static void forks_may_suspend(void)
{
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        atomic_store(&runs, 0);
        weft_task *tasks[4];
        for (unsigned i = 0; i < 4; i++) {
            tasks[i] = test_go(rt, fork_waiting_functions, NULL);
        }
        for (unsigned i = 0; i < 4; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        CHECK_EQ(atomic_load(&runs), 4 * 2 * test_scale(500));
        weft_runtime_destroy(rt);
    }
}

static int move_between(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < 50; i++) {
        _Atomic(uint64_t) done[3] = { 0, 0, 0 };
        weft_forked forks[3];
        for (unsigned k = 0; k < 2; k++) {
            weft_fork(&forks[k], set, &done[k]);
        }
        test_move();
        weft_fork(&forks[2], set, &done[2]);
        for (unsigned k = 3; k-- > 0;) {
            weft_fork_join(&forks[k]);
            CHECK_EQ(atomic_load(&done[k]), 1);
        }
    }
    return 0;
}

static void fiber_may_change_worker_between_fork_and_join(void)
{
    weft_runtime *rt = test_start(4);
    CHECK_EQ(test_run(rt, move_between, NULL), 0);
    weft_runtime_destroy(rt);
}

static _Atomic(uint64_t) returning;

WEFT_PARALLEL(uint64_t, give_back, uint64_t, value)
{
    atomic_store(&returning, 1);
    return value;
}

static int fork_in_between(void *arg)
{
    (void)arg;
    test_grow(3);
    return 0;
}

static int yield_in_join(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= 100; i++) {
        give_back_forked forked;
        weft_task *other;
        atomic_store(&returning, 0);
        give_back_fork(&forked, i << 32);
        test_wait_for(&returning, 1); /* Another worker has stolen it. */
        weft_fiber_spec spec = { .function = fork_in_between,
                                 .pinned = WEFT_PINNED_TO((unsigned)weft_worker_current()) };
        CHECK_EQ(weft_go_with(&other, &spec), 0);
        CHECK(wf_job_ask_to_yield(wf_worker_current()));
        CHECK_EQ(give_back_join(&forked), i << 32);
        CHECK_EQ(test_join_soon(other), 0);
    }
    return 0;
}

/*
 * Goal:   the result of a stolen fork is available after its join, regardless of what ran
 *         meanwhile.
 * Method: the joiner is asked to yield, to a fiber that forks on the same worker.
 */
static void join_that_yields_keeps_its_result(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, yield_in_join, NULL), 0);
    weft_runtime_destroy(rt);
}

static _Atomic(uint64_t) enough;

static int compute_until_enough(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&enough) == 0) {
        test_grow(8);
    }
    return 0;
}

static int call_it_enough(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_store(&enough, 1);
    return 0;
}

static int sleep_and_call_it_enough(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    CHECK_EQ(weft_sleep(WEFT_MS), 0);
    atomic_store(&enough, 1);
    return 0;
}

/*
 * Goal:   tasks and timers run while every worker computes.
 * Method: the workers compute until one task has run. It comes from outside, is pinned, or
 *         sleeps.
 */
static void forking_workers_let_tasks_run(void)
{
    for (unsigned i = 0; i < 9; i++) {
        unsigned workers = 1 + i / 3;
        weft_runtime *rt = test_start(workers);
        atomic_store(&begun, 0);
        atomic_store(&enough, 0);
        if (i % 3 == 2) {
            weft_detach(test_go(rt, sleep_and_call_it_enough, NULL));
            test_wait_for(&begun, 1);
        }
        weft_task *tasks[3];
        for (unsigned k = 0; k < workers; k++) {
            tasks[k] = test_go(rt, compute_until_enough, NULL);
        }
        if (i % 3 != 2) {
            test_wait_for(&begun, workers);
            weft_spec spec = { .body = call_it_enough, .pinned = i % 3 == 1 ? WEFT_PINNED : 0 };
            CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
        }
        for (unsigned k = 0; k < workers; k++) {
            CHECK_EQ(test_join_soon(tasks[k]), 0);
        }
        weft_runtime_destroy(rt);
    }
}

static int count_one(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    atomic_fetch_add(&runs, 1);
    return 0;
}

/* Has a full queue and does not return to its worker loop. */
static int be_stuck(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        weft_spec spec = { .body = count_one };
        CHECK_EQ(weft_spawn(NULL, &spec), 0);
    }
    test_wait_for(&runs, 20);
    atomic_store(&enough, 1);
    return 0;
}

/*
 * Goal:   tasks whose worker is stuck run while all other workers fork.
 * Method: the stuck worker waits for them.
 */
static void forking_worker_steals_tasks_of_stuck_worker(void)
{
    weft_runtime *rt = test_start(2);
    atomic_store(&begun, 0);
    atomic_store(&enough, 0);
    atomic_store(&runs, 0);
    weft_fiber_spec spec = { .function = compute_until_enough, .pinned = WEFT_PINNED_TO(0) };
    weft_spec stuck = { .body = be_stuck, .pinned = WEFT_PINNED_TO(1) };
    weft_task *tasks[2];
    CHECK_EQ(weft_runtime_go(rt, &tasks[0], &spec), 0);
    test_wait_for(&begun, 1);
    CHECK_EQ(weft_runtime_spawn(rt, &tasks[1], &stuck), 0);
    CHECK_EQ(test_join_soon(tasks[1]), 0);
    CHECK_EQ(test_join_soon(tasks[0]), 0);
    weft_runtime_destroy(rt);
}

static _Atomic(uint64_t) computed;

static int yield_over_and_over(void *arg)
{
    (void)arg;
    while (atomic_load(&enough) == 0) {
        (void)wf_job_ask_to_yield(wf_worker_current());
        test_grow(3);
        atomic_fetch_add(&computed, 1);
    }
    return 0;
}

/* Counts the rounds in which it continued 40 times while no fiber computed. */
static int talk(void *arg)
{
    unsigned *undisturbed = arg;
    for (unsigned round = 0; round < 200; round++) {
        CHECK_EQ(weft_sleep(WEFT_MS / 10), 0);
        uint64_t before = atomic_load(&computed);
        for (unsigned i = 0; i < 40; i++) {
            CHECK_EQ(weft_yield(), 0);
        }
        *undisturbed += atomic_load(&computed) == before;
    }
    atomic_store(&enough, 1);
    return 0;
}

/*
 * Goal:   all forking fibers yield together for a while when tasks are runnable.
 * Method: a task counts how often it continues many times in a row beside three fibers that are
 *         asked to yield. It takes some ten microseconds, but the machine may be busy, so most
 *         rounds may fail.
 */
static void forking_fibers_yield_together(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *tasks[3];
    unsigned undisturbed = 0;
    atomic_store(&enough, 0);
    for (unsigned k = 0; k < 3; k++) {
        tasks[k] = test_go(rt, yield_over_and_over, NULL);
    }
    CHECK_EQ(test_run(rt, talk, &undisturbed), 0);
    for (unsigned k = 0; k < 3; k++) {
        CHECK_EQ(test_join_soon(tasks[k]), 0);
    }
    CHECK(undisturbed > 0);
    weft_runtime_destroy(rt);
}

/* Has no forks: no thief can ask it to yield before its first safe point. */
static int pause_until_enough(void *arg)
{
    (void)arg;
    atomic_store(&begun, 1);
    while (atomic_load(&enough) == 0) {
        weft_jobs_pause(1);
    }
    return 0;
}

static int say_enough(void *arg)
{
    (void)arg;
    atomic_store(&enough, 1);
    return 0;
}

/*
 * Goal:   a computation that pauses lets queued tasks run, including pinned ones.
 * Method: it ends after the other task has run on the same worker.
 */
static void pause_lets_queued_tasks_run(void)
{
    for (unsigned pinned = 0; pinned <= 1; pinned++) {
        weft_runtime *rt = test_start(1);
        weft_fiber_spec spec = { .function = say_enough, .pinned = pinned ? WEFT_PINNED_TO(0) : 0 };
        weft_task *other;
        atomic_store(&begun, 0);
        atomic_store(&enough, 0);
        weft_task *task = test_go(rt, pause_until_enough, NULL);
        test_wait_for(&begun, 1);
        CHECK_EQ(weft_runtime_go(rt, &other, &spec), 0);
        CHECK_EQ(test_join_soon(other), 0);
        CHECK_EQ(test_join_soon(task), 0);
        weft_runtime_destroy(rt);
    }
}

static int pause_often(void *arg)
{
    const uint64_t *pauses = arg;
    for (uint64_t i = 0; i < *pauses; i++) {
        weft_jobs_pause(1);
    }
    return 0;
}

/* Outside of a runtime there is no task to yield to. */
static void pause_outside_of_runtime_does_nothing(void)
{
    uint64_t pauses = 100000;
    CHECK_EQ(pause_often(&pauses), 0);
    weft_runtime *rt = test_start(1);
    CHECK_EQ(weft_par_run(rt, pause_often, &pauses), 0);
    weft_runtime_destroy(rt);
}

/* --- Cancellation and shutdown -------------------------------------------------------- */

static _Atomic(uint64_t) release;

static void hold(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    test_wait_for(&release, 1);
    atomic_fetch_add(&runs, 1);
}

static int join_held_fork(void *arg)
{
    (void)arg;
    weft_forked forked;
    weft_fork(&forked, hold, NULL);
    test_wait_for(&begun, 1);
    weft_fork_join(&forked);
    CHECK_EQ(atomic_load(&runs), 1);
    return weft_cancelled() ? 5 : 6;
}

/* The fork may use the stack of the canceled joiner. */
static void canceled_joiner_waits_for_its_fork(void)
{
    weft_runtime *rt = test_start(2);
    for (unsigned i = 0; i < 20; i++) {
        atomic_store(&begun, 0);
        atomic_store(&release, 0);
        atomic_store(&runs, 0);
        weft_task *task = test_go(rt, join_held_fork, NULL);
        test_wait_for(&begun, 1);
        weft_cancel(task);
        CHECK_EQ(weft_join(task, NULL, weft_now() + WEFT_MS), WEFT_ETIMEDOUT);
        atomic_store(&release, 1);
        CHECK_EQ(test_join_soon(task), 5);
    }
    weft_runtime_destroy(rt);
}

/* Shutdown cancels this as well. */
static void wait_or_not(void *arg)
{
    (void)arg;
    (void)weft_sleep(WEFT_US);
}

static int grow_until_canceled(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    while (!weft_cancelled()) {
        test_grow(10);
        weft_join2(wait_or_not, NULL, wait_or_not, NULL);
    }
    return 0;
}

static void shutdown_waits_for_forks(void)
{
    for (unsigned i = 0; i < 20; i++) {
        weft_runtime *rt = test_start(1 + i % 4);
        atomic_store(&begun, 0);
        for (unsigned k = 0; k < 3; k++) {
            weft_detach(test_go(rt, grow_until_canceled, NULL));
        }
        test_wait_for(&begun, 1);
        weft_runtime_destroy(rt);
    }
}

static int forget_to_join(void *arg)
{
    (void)arg;
    weft_forked forked;
    weft_fork(&forked, count, NULL);
    return 0;
}

static void end_without_join(void)
{
    weft_runtime *rt = test_start(1);
    (void)test_run(rt, forget_to_join, NULL);
}

static void missing_join_aborts_with_message(void)
{
    CHECK_ABORTS(end_without_join, "returned with 1 forks that were not joined");
}

/* --- Depth ---------------------------------------------------------------------------- */

/* Number of levels that exceed the largest stack. ThreadSanitizer counts up to 64 K frames. */
static uint64_t deep(void)
{
    return TEST_IS_TSAN ? 20000 : test_is_sanitized() ? 60000 : 200000;
}

struct descent {
    uint64_t depth;
    uint64_t leaves;
};

static void no_leaf(void *arg)
{
    ((struct descent *)arg)->leaves++;
}

static void descend_by_join2(void *arg)
{
    struct descent *descent = arg;
    volatile char frame[64];
    frame[0] = 1;
    if (descent->depth > 0) {
        struct descent below = { .depth = descent->depth - 1 };
        struct descent leaf = { .depth = 0 };
        weft_join2(descend_by_join2, &below, no_leaf, &leaf);
        descent->leaves = below.leaves + leaf.leaves;
    }
    frame[0]++;
}

/* Uses each kind of call that checks the stack, more than once, back and forth. */
static int descend_far(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
        struct descent descent = { .depth = deep() };
        descend_by_join2(&descent);
        CHECK_EQ(descent.leaves, deep());
        test_descend(deep());
        test_grow(6);
    }
    return 0;
}

static int descend_in_place(void *arg)
{
    return weft_block_in_place(descend_far, arg, WEFT_NEVER);
}

static int run_as_external_thread(void *arg)
{
    return weft_par_run(weft_runtime_current(), descend_far, arg);
}

static int descend_as_external_thread_in_place(void *arg)
{
    return weft_block_in_place(run_as_external_thread, arg, WEFT_NEVER);
}

static int descend_in_body(weft_co *co, void *state)
{
    (void)co;
    return descend_far(state);
}

static weft_event timer_is_over;

static void descend_in_timer(void *arg)
{
    (void)descend_far(arg);
    weft_event_set(&timer_is_over);
}

static int descend_by_timer(void *arg)
{
    weft_timer timer = { 0 };
    weft_event_reset(&timer_is_over);
    weft_timer_start(&timer, weft_now(), 0, descend_in_timer, arg);
    CHECK_EQ(weft_event_wait(&timer_is_over, WEFT_NEVER), 0);
    test_grow(6); /* The callback has restored its worker's state. */
    return 0;
}

static int descend_in_job(void *arg)
{
    weft_task *job;
    int result = -1;
    CHECK_EQ(weft_spawn_blocking(&job, arg != NULL ? run_as_external_thread : descend_far, NULL),
             0);
    CHECK_EQ(weft_join(job, &result, WEFT_NEVER), 0);
    return result;
}

static void recursion_on_runtime_threads_is_limited_by_memory_only(void)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        weft_runtime *rt = test_start(workers);
        CHECK_EQ(test_run(rt, descend_far, NULL), 0);
        CHECK_EQ(test_run(rt, descend_in_place, NULL), 0);
        CHECK_EQ(test_run(rt, descend_as_external_thread_in_place, NULL), 0);
        CHECK_EQ(test_run(rt, descend_in_job, NULL), 0);
        CHECK_EQ(test_run(rt, descend_in_job, &runs), 0);
        CHECK_EQ(test_run(rt, descend_by_timer, NULL), 0);
        CHECK_EQ(test_join(test_spawn(rt, descend_in_body, NULL)), 0);
        weft_runtime_destroy(rt);
    }
}

static void *descend_on_thread(void *arg)
{
    CHECK_EQ(descend_far(arg), 0);
    return NULL;
}

static void recursion_outside_of_runtime_is_limited_by_memory_only(void)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, descend_on_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(descend_far(NULL), 0);
}

static void descend_until_low(void *arg)
{
    if (weft_jobs_stack_is_low(weft_jobs_here())) {
        struct descent descent = { .depth = 3 };
        descend_by_join2(&descent);
        CHECK_EQ(descent.leaves, 3);
        test_descend(3);
        return;
    }
    weft_join2(descend_until_low, arg, count, arg);
}

/*
 * The end of the stack is near and no other stack can be allocated, so the rest of this one is
 * used.
 */
static int descend_without_memory(void *arg)
{
    test_grow(1); /* It has a fork context. */
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){ 0, 0 }), 0);
    descend_until_low(arg);
    return 0;
}

static void run_without_memory(void *arg)
{
    weft_runtime *rt = test_start(1);
    weft_fiber_spec spec = { .function = descend_without_memory, .stack_size = 64 << 10 };
    weft_task *task;
    (void)arg;
    CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
    CHECK_EQ(test_join(task), 0);
}

static void recursion_without_memory_uses_rest_of_its_stack(void)
{
    if (test_is_sanitized()) {
        test_skip("a sanitizer needs the address space");
        return;
    }
    child_must_succeed(run_without_memory, NULL);
}

enum {
    MANY_GUESTS = 24, /* more than WF_GUESTS_MAX */
};

static _Atomic(uint64_t) guests_begun;

/* All external threads have forked before any of them recurses, so some have no fork context. */
static int descend_with_others(void *arg)
{
    weft_forked forked;
    weft_fork(&forked, count, NULL);
    atomic_fetch_add(&guests_begun, 1);
    test_wait_for(&guests_begun, MANY_GUESTS);
    weft_fork_join(&forked);
    test_descend(deep() / 20);
    (void)arg;
    return 0;
}

static void *be_one_of_many_external_threads(void *arg)
{
    CHECK_EQ(weft_par_run(arg, descend_with_others, NULL), 0);
    return NULL;
}

static void recursion_of_many_external_threads_is_limited_by_memory(void)
{
    weft_runtime *rt = test_start(2);
    pthread_t threads[MANY_GUESTS];
    pthread_attr_t attributes;
    atomic_store(&guests_begun, 0);
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
    for (int i = 0; i < MANY_GUESTS; i++) {
        CHECK_EQ(pthread_create(&threads[i], &attributes, be_one_of_many_external_threads, rt), 0);
    }
    for (int i = 0; i < MANY_GUESTS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(pthread_attr_destroy(&attributes), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(recursion_on_runtime_threads_is_limited_by_memory_only),
    TEST(recursion_outside_of_runtime_is_limited_by_memory_only),
    TEST(recursion_without_memory_uses_rest_of_its_stack),
    TEST(recursion_of_many_external_threads_is_limited_by_memory),
    TEST(missing_join_aborts_with_message),
    TEST(every_fork_runs_once),
    TEST(fork_outside_of_runtime_runs_at_its_join),
    TEST(fork_without_free_slot_runs_at_its_join),
    TEST(two_computations_run_concurrently),
    TEST(forks_of_suspended_fiber_are_run),
    TEST(forks_may_suspend),
    TEST(fiber_may_change_worker_between_fork_and_join),
    TEST(join_that_yields_keeps_its_result),
    TEST(forking_workers_let_tasks_run),
    TEST(forking_worker_steals_tasks_of_stuck_worker),
    TEST(forking_fibers_yield_together),
    TEST(pause_lets_queued_tasks_run),
    TEST(pause_outside_of_runtime_does_nothing),
    TEST(canceled_joiner_waits_for_its_fork),
    TEST(shutdown_waits_for_forks),
})
