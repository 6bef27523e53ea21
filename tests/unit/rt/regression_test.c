/* SPDX-License-Identifier: MIT */
/*
 * regression_test.c - regression tests: the shortest reproduction of each fixed bug.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft.h>

#include "gate.h"
#include "rt.h"
#include "rt/runtime.h"
#include "sandbox.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/worker.h"
#include "scheduler.h"
#include "test.h"
#include "timing.h"

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int end_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return 0;
}

static int two_jobs_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    weft_task *a;
    weft_task *b;
    weft_task *c;
    weft_spec spec = { .body = end_task };
    CHECK_EQ(weft_spawn_blocking(&a, nothing, NULL), 0);
    CHECK_EQ(weft_spawn_blocking(&b, nothing, NULL), 0);
    CHECK_EQ(weft_spawn(&c, &spec), 0);
    CHECK(weft_task_id(a) != weft_task_id(b));
    CHECK(weft_task_id(b) != weft_task_id(c));
    weft_detach(a);
    weft_detach(b);
    weft_detach(c);
    return 0;
}

static void blocking_jobs_spawned_on_worker_have_unique_ids(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task;
    weft_spec spec = { .body = two_jobs_task };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(test_join_soon(task), 0);
    weft_runtime_destroy(rt);
}

static int wait_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return WEFT_PENDING;
}

static _Atomic(uint64_t) waiting;

static int wait_until_canceled(void *arg)
{
    (void)arg;
    while (!weft_cancelled()) {
        test_wait_ns(100 * 1000);
    }
    return 0;
}

static int last_job_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    if (!weft_cancelled()) {
        atomic_fetch_add(&waiting, 1);
        return WEFT_PENDING;
    }
    /* Yields until the last worker's walk over all tasks has passed the first slabs. */
    struct wf_sched *sched = wf_worker_current()->sched;
    unsigned *yields = state;
    if (wf_load_relaxed(&sched->drain.acknowledged) < 2 || ++*yields < 50) {
        return WEFT_YIELDED;
    }
    int err = weft_spawn_blocking(NULL, wait_until_canceled, NULL);
    CHECK(err == 0 || err == WEFT_ESHUTDOWN);
    return 0;
}

static void *shut_down(void *arg)
{
    weft_runtime_shutdown(arg);
    return NULL;
}

static void job_spawned_during_shutdown_is_rejected_or_canceled(void)
{
    atomic_store(&waiting, 0);
    weft_runtime *rt = test_start(2);
    /* Most tasks only make the walk over all tasks long. The walk begins at the last task. */
    uint64_t many = test_scale(100000);
    for (uint64_t i = 0; i < many + 50; i++) {
        weft_spec spec = { .body = i < many ? wait_task : last_job_task, .state_size = 32 };
        while (weft_runtime_spawn(rt, NULL, &spec) == -EAGAIN) {
            (void)sched_yield();
        }
    }
    test_wait_for(&waiting, 50);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, shut_down, rt), 0);
    for (unsigned i = 0; i < 3000 && wf_load_relaxed(&rt->stopped) == 0; i++) {
        test_wait_ns(WEFT_MS);
    }
    if (wf_load_relaxed(&rt->stopped) == 0) {
        test_fail(__FILE__, __LINE__, "the shutdown hangs: its jobs were never cancelled");
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    weft_runtime_destroy(rt);
}

static void *spawn_until_refused(void *arg)
{
    while (weft_runtime_spawn_blocking(arg, NULL, nothing, NULL) == 0) {
    }
    return NULL;
}

static void no_pool_thread_runs_after_shutdown(void)
{
    uint64_t rounds = test_scale(300);
    for (uint64_t i = 0; i < rounds; i++) {
        weft_config config = WEFT_CONFIG_INIT;
        config.workers = 1;
        config.blocking_keep_alive_ns = 1000;
        weft_runtime *rt;
        CHECK_EQ(weft_runtime_create(&rt, &config), 0);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, spawn_until_refused, rt), 0);
        if (i % 2) {
            (void)sched_yield();
        }
        weft_runtime_shutdown(rt);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        struct wf_pool *pool = &rt->sched->pool;
        CHECK_EQ(wf_load_relaxed(&pool->users), 0);
        CHECK(!pool->has_exited);
        weft_runtime_destroy(rt);
    }
}

static _Atomic(uint64_t) start_line;

struct submitter {
    pthread_t thread;
    weft_runtime *rt;
    weft_task *task;
    uint64_t round;
    int err;
};

static void *submit_main(void *arg)
{
    struct submitter *self = arg;
    atomic_fetch_add(&start_line, 1);
    test_wait_for(&start_line, 3);
    self->err = weft_runtime_spawn_blocking(self->rt, &self->task, nothing, NULL);
    return NULL;
}

static void no_blocking_job_is_queued_without_thread(void)
{
    uint64_t refused = 0;
    uint64_t rounds = test_scale(200);
    for (uint64_t i = 0; i < rounds; i++) {
        weft_runtime *rt = test_start(1);
        struct submitter submitters[2];
        atomic_store(&start_line, 0);
        test_set_default_stack(1 << 20);
        for (unsigned at = 0; at < 2; at++) {
            submitters[at] = (struct submitter){ .rt = rt };
            CHECK_EQ(pthread_create(&submitters[at].thread, NULL, submit_main, &submitters[at]), 0);
        }
        test_wait_for(&start_line, 2);
        test_set_default_stack((size_t)1 << 46);
        atomic_fetch_add(&start_line, 1);
        for (unsigned at = 0; at < 2; at++) {
            CHECK_EQ(pthread_join(submitters[at].thread, NULL), 0);
        }
        weft_stats stats;
        weft_runtime_stats(rt, &stats);
        CHECK(stats.blocking_queued == 0 || stats.blocking_threads > 0);
        test_set_default_stack(1 << 20);
        for (unsigned at = 0; at < 2; at++) {
            if (submitters[at].err == 0) {
                weft_detach(submitters[at].task);
            }
            refused += submitters[at].err != 0;
        }
        weft_runtime_destroy(rt);
    }
    CHECK_GE(refused, rounds); /* No thread can start: each round rejects at least one job. */
}

static void pool_thread_is_named_before_it_can_exit(void)
{
    if (!test_is_sanitized()) {
        /* Too large for libc's stack cache, so the join unmaps it. */
        test_set_default_stack(64 << 20);
    }
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.blocking_keep_alive_ns = 1000;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    weft_time end = weft_now() + 300 * WEFT_MS;
    while (weft_now() < end) {
        for (unsigned i = 0; i < 8; i++) {
            CHECK_EQ(weft_runtime_spawn_blocking(rt, NULL, nothing, NULL), 0);
        }
    }
    weft_runtime_destroy(rt);
}

static _Atomic(uint64_t) armed;
static _Atomic(uint64_t) long_running;
static _Atomic(uint64_t) long_go_on;

static int long_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    if (atomic_load(&armed) != 0) {
        atomic_fetch_add(&long_running, 1);
        test_wait_for(&long_go_on, 1);
    }
    return 0;
}

/* Pushes four tasks to the inject queue while the other worker is parked, and does not wake it.
 * This is the state that a race left behind: the other worker searched and parked between a
 * worker's wf_inject_pop() and wf_ring_push_list(). The end of this task's poll is the end of a
 * tick, and the tick's maintenance fetches the four tasks. */
static int inject_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    struct wf_worker *worker = wf_worker_current();
    struct wf_sched *sched = worker->sched;
    struct wf_qlist list = { 0 };
    while (list.count < 4) {
        weft_spec spec = { .body = long_task };
        test_be_worker(NULL);
        CHECK_EQ(wf_spawn(sched, NULL, &spec), 0);
        test_be_worker(worker);
        wf_inject_pop(&sched->inject, 1, &list);
    }
    while (wf_idle_unparked(&sched->idle) != 1) {
        test_wait_ns(WEFT_MS);
    }
    test_wait_ns(5 * WEFT_MS);
    atomic_store(&armed, 1);
    wf_inject_push_list(&sched->inject, &list);
    return 0;
}

static void maintenance_that_fetches_batch_wakes_other_worker(void)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.tick_polls = 1;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    weft_spec spec = { .body = inject_task };
    CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
    test_wait_for(&long_running, 1);
    weft_time deadline = test_deadline();
    while (atomic_load(&long_running) < 2 && weft_now() < deadline) {
        test_wait_ns(WEFT_MS);
    }
    CHECK_EQ(atomic_load(&long_running), 2);
    atomic_store(&long_go_on, 1);
    weft_runtime_destroy(rt);
}

/* A lost wake-up, made by hand. */
static struct wf_sched *hand;
static struct wf_task *lost;

static int lost_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return 0;
}

static void lose_wake(void *ctx, unsigned worker)
{
    (void)ctx;
    (void)worker;
    if (lost != NULL) {
        wf_inject_push(&hand->inject, &lost->node);
        lost = NULL;
    }
}

static void lost_wake_is_counted_as_unannounced_work(void)
{
    struct wf_sched_options options = test_sched_options(1);
    options.inject_capacity = 100;
    options.park_timeout_ns = 1000000;
    options.seed = 1;
    options.on_park = lose_wake;
    hand = test_sched_create(&options);
    weft_spec spec = { .body = lost_task };
    CHECK_EQ(wf_spawn(hand, NULL, &spec), 0);
    struct wf_qlist list = { 0 };
    wf_inject_pop(&hand->inject, 1, &list);
    lost = wf_task_of(list.first);
    struct wf_worker *worker = &hand->workers[0];
    test_be_worker(worker);
    /* Like the worker loop. */
    for (unsigned i = 0; i < 20; i++) {
        struct wf_task *task = wf_worker_next(worker);
        if (task == NULL) {
            task = wf_worker_search(worker);
        }
        if (task != NULL) {
            if (worker->searching) {
                wf_worker_stop_search(worker);
            }
            wf_worker_run(worker, task);
        }
    }
    CHECK_EQ(wf_counter_read(&worker->counters.completed), 1);
    CHECK_GE(wf_counter_read(&worker->counters.unannounced_work), 1);
    test_be_worker(NULL);
    wf_sched_fini(hand);
}

static int forking_task(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        weft_spec spec = { .body = end_task };
        int err = weft_spawn(NULL, &spec);
        _exit(err == 0 ? 3 : 4);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void spawn_in_child_forked_by_stackless_task_aborts(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task;
    weft_spec spec = { .body = forking_task };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(test_join_soon(task), 6); /* SIGABRT */
    weft_runtime_destroy(rt);
}

/* A stackless task that yields forever, awaited by a plain thread. */
static int yield_task(weft_co *co, void *state)
{
    (void)state;
    int err;
    WEFT_BEGIN(co);
    do {
        WEFT_YIELD(co, err);
    } while (err == 0);
    WEFT_END(co, err);
}

static void deadline_ends_await_of_self_waking_future(void)
{
    weft_co_future future;
    weft_co_init(&future, yield_task, NULL);
    CHECK_EQ(weft_await(&future.future, weft_now() + 5 * WEFT_MS), WEFT_ETIMEDOUT);
}

/* A blocking job that joins a task. The task ends only when it is canceled itself. */
static _Atomic(uint64_t) job_waits;

static int join_until_canceled(void *arg)
{
    atomic_fetch_add(&job_waits, 1);
    int err = weft_join(arg, NULL, WEFT_NEVER);
    CHECK_EQ(err, WEFT_ECANCELED);
    CHECK_EQ(weft_join(arg, NULL, WEFT_NEVER), WEFT_ECANCELED);
    return err;
}

static void cancel_of_blocking_job_ends_its_join(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *endless;
    weft_spec spec = { .body = wait_task };
    CHECK_EQ(weft_runtime_spawn(rt, &endless, &spec), 0);
    for (uint64_t i = 1; i <= test_scale(200); i++) {
        weft_task *job;
        CHECK_EQ(weft_runtime_spawn_blocking(rt, &job, join_until_canceled, endless), 0);
        if (i % 2 == 0) {
            test_wait_for(&job_waits, i / 2);
        }
        weft_cancel(job);
        CHECK_EQ(test_join_soon(job), WEFT_ECANCELED);
    }
    weft_detach(endless);
    weft_runtime_destroy(rt);
}

/* In a child: calls on a task of the parent's runtime. */
static weft_task *parents_task;

static void join_parents_task(void)
{
    CHECK_EQ(weft_join(parents_task, NULL, WEFT_NEVER), 0);
}

static void cancel_parents_task(void)
{
    weft_cancel(parents_task);
}

static void calls_on_task_in_forked_child_abort(void)
{
    weft_runtime *rt = test_start(1);
    weft_spec spec = { .body = wait_task };
    CHECK_EQ(weft_runtime_spawn(rt, &parents_task, &spec), 0);
    CHECK_ABORTS(join_parents_task, "weft_join: this process is a fork");
    CHECK_ABORTS(cancel_parents_task, "weft_cancel: this process is a fork");
    weft_detach(parents_task);
    weft_runtime_destroy(rt);
}

/* Short polls, then long ones. How many of them run before the worker reads the clock? */
static int phases_task(weft_co *co, void *state)
{
    int *i = state;
    int err;
    WEFT_BEGIN(co);
    for (*i = 0; *i < 5000; (*i)++) {
        WEFT_YIELD(co, err);
        CHECK_EQ(err, 0);
    }
    for (*i = 0; *i < 20; (*i)++) {
        for (weft_time end = weft_now() + WEFT_MS; weft_now() < end;) {
        }
        WEFT_YIELD(co, err);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, 0);
}

static void average_poll_time_follows_longer_polls(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task;
    weft_spec spec = { .body = phases_task, .state_size = sizeof(int) };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(test_join_soon(task), 0);
    weft_worker_stats stats;
    CHECK_EQ(weft_worker_stats_read(rt, 0, &stats), 0);
    CHECK_GE(stats.average_poll_ns, 50 * WEFT_US);
    weft_runtime_destroy(rt);
}

struct shielded {
    struct gate first;
    struct gate second;
    int first_result;
    int err;
};

/* Finishes behind a shield although its deadline has passed. */
static int shielded_task(weft_co *co, void *state)
{
    struct shielded *s = state;
    WEFT_BEGIN(co);
    WEFT_AWAIT(co, s->first_result, &s->first.future);
    weft_shield_enter();
    WEFT_AWAIT(co, s->err, &s->second.future);
    weft_shield_leave();
    WEFT_END(co, s->err);
}

static void *open_second(void *arg)
{
    struct shielded *s = arg;
    test_wait_for(&s->second.polls, 1);
    gate_open(&s->second, 44);
    return NULL;
}

/* The deadline passes in the first await, or behind the shield. */
static void deadline_does_not_end_await_behind_shield(void)
{
    for (int i = 0; i < 40; i++) {
        struct shielded s = { .first = gate_make(CANCEL_AT_ONCE),
                              .second = gate_make(CANCEL_AT_ONCE) };
        if (i % 2 == 1) {
            gate_open(&s.first, 1);
        }
        weft_co_future future;
        weft_co_init(&future, shielded_task, &s);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, open_second, &s), 0);
        CHECK_EQ(weft_await(&future.future, 1), 44);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(s.first_result, i % 2 == 0 ? WEFT_ECANCELED : 1);
        CHECK_EQ(atomic_load(&s.second.cancels), 0);
    }
}

static int join_self_job(void *arg)
{
    (void)arg;
    return weft_join(weft_task_current(), NULL, WEFT_NEVER);
}

static void join_self(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, join_self_job, NULL), 0);
    (void)test_join_soon(task);
}

static void blocking_job_that_joins_itself_aborts(void)
{
    CHECK_ABORTS(join_self, "joins itself");
}

struct yielder {
    uint32_t i;
};

static int yielder_task(weft_co *co, void *state)
{
    struct yielder *s = state;
    int err;
    WEFT_BEGIN(co);
    for (s->i = 0; s->i < 100; s->i++) {
        WEFT_YIELD(co, err);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, 0);
}

struct yielders {
    weft_task *tasks[1000];
    uint32_t i;
    weft_join_future join;
};

static int yielders_task(weft_co *co, void *state)
{
    static const weft_spec spec = { .body = yielder_task, .state_size = sizeof(struct yielder) };
    struct yielders *s = state;
    int err;
    WEFT_BEGIN(co);
    for (s->i = 0; s->i < 1000; s->i++) {
        CHECK_EQ(weft_spawn(&s->tasks[s->i], &spec), 0);
    }
    for (s->i = 0; s->i < 1000; s->i++) {
        weft_join_init(&s->join, s->tasks[s->i], NULL);
        WEFT_AWAIT(co, err, &s->join.future);
        CHECK_EQ(err, 0);
    }
    WEFT_END(co, 0);
}

/* The bug: a worker with a full ring kept fetching batches, which overflowed back to the inject
 * queue. */
static void full_ring_does_not_cycle_tasks_through_inject_queue(void)
{
    weft_runtime *rt = test_start(1);
    weft_task *task;
    weft_spec spec = { .body = yielders_task, .state_size = sizeof(struct yielders) };
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(test_join_soon(task), 0);
    weft_worker_stats stats;
    CHECK_EQ(weft_worker_stats_read(rt, 0, &stats), 0);
    CHECK_GE(stats.polls, 100000);
    CHECK_LE(stats.injected_tasks, stats.polls / 8);
    weft_runtime_destroy(rt);
}

/* --- System calls that fail --------------------------------------------------------------- */

/* Whatever error the sandbox returns, the stack gets another kind of guard. */
static void use_fiber_without_madvise(const void *error)
{
    sandbox_forbid(SYS_madvise, *(const int *)error);
    CHECK_EQ(weft_run(NULL, nothing, NULL), 0);
}

static void fiber_starts_when_sandbox_forbids_madvise(void)
{
    static const int errors[] = { EPERM, EACCES, ENOSYS, ENOMEM };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        sandbox_run(use_fiber_without_madvise, &errors[i]);
    }
}

static void run_without_keys(const void *left)
{
    pthread_key_t keys[2000];
    size_t count = 0;
    while (pthread_key_create(&keys[count], NULL) == 0) {
        count++;
    }
    if (*(const int *)left == 1) { /* one of the two that the library needs */
        CHECK_EQ(pthread_key_delete(keys[0]), 0);
    }
    weft_runtime *rt;
    CHECK_EQ(weft_run(NULL, nothing, NULL), -EAGAIN);
    CHECK_EQ(weft_runtime_create(&rt, NULL), -EAGAIN);
}

/* Must run first: a process creates its keys only once. */
static void run_without_thread_key_returns_eagain(void)
{
    static const int left[] = { 0, 1 };
    sandbox_run(run_without_keys, &left[0]);
    sandbox_run(run_without_keys, &left[1]);
}

TEST_MAIN({
    TEST(run_without_thread_key_returns_eagain),
    TEST_NATIVE(fiber_starts_when_sandbox_forbids_madvise, "has no seccomp filters"),
    TEST(blocking_jobs_spawned_on_worker_have_unique_ids),
    TEST(job_spawned_during_shutdown_is_rejected_or_canceled),
    TEST(no_pool_thread_runs_after_shutdown),
    TEST_NATIVE(no_blocking_job_is_queued_without_thread, "maps a stack of any size"),
    TEST(pool_thread_is_named_before_it_can_exit),
    TEST(maintenance_that_fetches_batch_wakes_other_worker),
    TEST(lost_wake_is_counted_as_unannounced_work),
    TEST(spawn_in_child_forked_by_stackless_task_aborts),
    TEST(deadline_ends_await_of_self_waking_future),
    TEST(cancel_of_blocking_job_ends_its_join),
    TEST(calls_on_task_in_forked_child_abort),
    TEST(average_poll_time_follows_longer_polls),
    TEST(deadline_does_not_end_await_behind_shield),
    TEST(blocking_job_that_joins_itself_aborts),
    TEST(full_ring_does_not_cycle_tasks_through_inject_queue),
})
