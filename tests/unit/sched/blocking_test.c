/* SPDX-License-Identifier: MIT */
#include "sched/blocking.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weft.h>

#include "base/alloc.h"
#include "rt.h"
#include "rt/runtime.h"
#include "sched/sched.h"
#include "sched/task.h"
#include "test.h"
#include "timing.h"

static weft_runtime *create(unsigned threads, uint64_t keep_alive_ns)
{
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.blocking_threads = threads;
    config.blocking_keep_alive_ns = keep_alive_ns;
    return test_start_with(&config);
}

static weft_task *spawn(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    weft_task *task = NULL;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, function, arg), 0);
    CHECK(task != NULL);
    return task;
}

static void check_deadline(weft_time deadline, const char *what)
{
    if (weft_now() > deadline) {
        test_fail(__FILE__, __LINE__, "waited too long for: %s", what);
    }
    test_wait_ns(100 * 1000);
}

static _Atomic(uint64_t) runs;
static _Atomic(uint64_t) gate;

static int count_function(void *arg)
{
    (void)arg;
    return (int)atomic_fetch_add(&runs, 1);
}

static int echo_function(void *arg)
{
    return *(int *)arg;
}

/* Runs until the gate opens. */
static int gate_function(void *arg)
{
    (void)arg;
    atomic_fetch_add(&runs, 1);
    test_wait_for(&gate, 1);
    return 11;
}

static void close_gate(void)
{
    atomic_store(&runs, 0);
    atomic_store(&gate, 0);
}

static void open_gate(void)
{
    atomic_store(&gate, 1);
}

static weft_stats stats_of(weft_runtime *rt)
{
    weft_stats stats;
    weft_runtime_stats(rt, &stats);
    return stats;
}

struct awaiter {
    int argument;
    int result;
    weft_task *job;
    weft_join_future join;
};

/* Spawns a blocking job from a worker and awaits it. */
static int awaiter_body(weft_co *co, void *state)
{
    struct awaiter *self = state;
    int err;
    WEFT_BEGIN(co);
    err = weft_spawn_blocking(&self->job, echo_function, &self->argument);
    CHECK_EQ(err, 0);
    weft_join_init(&self->join, self->job, &self->result);
    WEFT_AWAIT(co, err, &self->join.future);
    CHECK_EQ(err, 0);
    WEFT_END(co, self->result);
}

static void job_result_reaches_thread_and_task(void)
{
    weft_runtime *rt = create(4, WEFT_S);
    for (int i = -3; i < (int)test_scale(500); i++) {
        CHECK_EQ(test_join_soon(spawn(rt, echo_function, &i)), i);
        struct awaiter state = { .argument = i };
        weft_spec spec = { .body = awaiter_body, .state = &state, .state_size = sizeof state };
        weft_task *task;
        CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
        CHECK_EQ(test_join_soon(task), i);
    }
    CHECK_EQ(stats_of(rt).tasks_alive, 0);
    weft_runtime_destroy(rt);
}

static void job_without_function_or_after_shutdown_is_refused(void)
{
    weft_runtime *rt = create(1, WEFT_S);
    weft_task *const untouched = (weft_task *)&gate;
    weft_task *task = untouched;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, NULL, NULL), -EINVAL);
    CHECK_EQ(stats_of(rt).tasks_spawned, 0);
    close_gate();
    weft_runtime_shutdown(rt);
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, count_function, NULL), WEFT_ESHUTDOWN);
    CHECK_EQ(weft_runtime_spawn_blocking(rt, NULL, count_function, NULL), WEFT_ESHUTDOWN);
    CHECK(task == untouched);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&runs), 0);
}

static void detached_job_runs(void)
{
    weft_runtime *rt = create(2, WEFT_S);
    close_gate();
    uint64_t count = test_scale(1000);
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQ(weft_runtime_spawn_blocking(rt, NULL, count_function, NULL), 0);
    }
    test_wait_for(&runs, count);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&runs), count);
}

static struct {
    _Atomic(uint64_t) arrived;
    _Atomic(uint64_t) inside;
    _Atomic(uint64_t) most;
} group;

enum {
    GROUP = 4
};

/* Does not return before its group of four is complete. */
static int group_function(void *arg)
{
    (void)arg;
    uint64_t inside = atomic_fetch_add(&group.inside, 1) + 1;
    uint64_t most = atomic_load(&group.most);
    while (inside > most && !atomic_compare_exchange_weak(&group.most, &most, inside)) {
    }
    uint64_t ticket = atomic_fetch_add(&group.arrived, 1);
    test_wait_for(&group.arrived, (ticket / GROUP + 1) * GROUP);
    atomic_fetch_sub(&group.inside, 1);
    return 0;
}

/*
 * Goal:   the pool grows to its limit and not beyond.
 * Method: jobs wait for each other in groups of four, the maximum number of threads. With fewer
 *         threads they would wait forever. A count of the jobs that run shows that there are
 *         never more.
 */
static void pool_grows_up_to_its_limit(void)
{
    enum {
        JOBS = 16
    };
    for (unsigned round = 0; round < test_scale(100); round++) {
        weft_runtime *rt = create(GROUP, WEFT_S);
        memset(&group, 0, sizeof group);
        weft_task *tasks[JOBS];
        for (unsigned i = 0; i < JOBS; i++) {
            tasks[i] = spawn(rt, group_function, NULL);
        }
        for (unsigned i = 0; i < JOBS; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        CHECK_EQ(atomic_load(&group.most), GROUP);
        CHECK_LE(stats_of(rt).blocking_threads, GROUP);
        weft_runtime_destroy(rt);
    }
}

static void jobs_beyond_limit_are_queued_in_order(void)
{
    weft_runtime *rt = create(1, WEFT_S);
    close_gate();
    weft_task *first = spawn(rt, gate_function, NULL);
    test_wait_for(&runs, 1);
    weft_task *tasks[10];
    for (unsigned i = 0; i < 10; i++) {
        tasks[i] = spawn(rt, count_function, NULL);
    }
    weft_stats stats = stats_of(rt);
    CHECK_EQ(stats.blocking_threads, 1);
    CHECK_EQ(stats.blocking_idle, 0);
    CHECK_EQ(stats.blocking_queued, 10);
    CHECK_EQ(stats.tasks_alive, 11);
    CHECK_EQ(stats.tasks_spawned, 11);
    open_gate();
    CHECK_EQ(test_join_soon(first), 11);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(test_join_soon(tasks[i]), 1 + i);
    }
    CHECK_EQ(stats_of(rt).tasks_alive, 0);
    weft_runtime_destroy(rt);
}

/*
 * Goal:   idle threads end after the keep-alive time, and new threads start when work arrives
 *         again.
 * Method: groups of jobs, then a wait until no thread is left, several times.
 */
static void idle_threads_end_after_keep_alive(void)
{
    weft_runtime *rt = create(GROUP, 2 * WEFT_MS);
    for (unsigned round = 0; round < 5; round++) {
        memset(&group, 0, sizeof group);
        weft_task *tasks[GROUP];
        for (unsigned i = 0; i < GROUP; i++) {
            tasks[i] = spawn(rt, group_function, NULL);
        }
        for (unsigned i = 0; i < GROUP; i++) {
            CHECK_EQ(test_join_soon(tasks[i]), 0);
        }
        weft_time deadline = test_deadline();
        while (stats_of(rt).blocking_threads > 0) {
            check_deadline(deadline, "threads of the pool to end");
        }
        CHECK_EQ(stats_of(rt).blocking_idle, 0);
    }
    weft_runtime_destroy(rt);
}

static void idle_thread_runs_next_job(void)
{
    weft_runtime *rt = create(GROUP, 3600 * (uint64_t)WEFT_S);
    close_gate();
    for (unsigned i = 0; i < 20; i++) {
        (void)test_join_soon(spawn(rt, count_function, NULL));
        weft_time deadline = test_deadline();
        while (stats_of(rt).blocking_idle == 0) {
            check_deadline(deadline, "the thread to become idle");
        }
        CHECK_EQ(stats_of(rt).blocking_threads, 1);
    }
    /* It does not delay shutdown for an hour. */
    weft_runtime_destroy(rt);
}

/*
 * Goal:   a job that arrives just when a thread's keep-alive time ends is run.
 * Method: a keep-alive time about as long as the pause between two jobs; each job is joined.
 */
static void job_that_races_with_thread_end_is_run(void)
{
    weft_runtime *rt = create(2, 50 * WEFT_US);
    close_gate();
    for (unsigned i = 0; i < test_scale(1000); i++) {
        (void)test_join_soon(spawn(rt, count_function, NULL));
        weft_time until = weft_now() + (int64_t)(i % 20) * 6 * WEFT_US;
        while (weft_now() < until) {
        }
    }
    CHECK_EQ(atomic_load(&runs), test_scale(1000));
    weft_runtime_destroy(rt);
}

static void canceled_queued_job_ends_immediately_without_running(void)
{
    weft_runtime *rt = create(1, WEFT_S);
    close_gate();
    weft_task *first = spawn(rt, gate_function, NULL);
    test_wait_for(&runs, 1);
    weft_task *queued = spawn(rt, count_function, NULL);
    weft_task *last = spawn(rt, count_function, NULL);
    int result = 0;
    CHECK_EQ(weft_try_join(queued, &result), -EAGAIN);
    weft_cancel(queued);
    CHECK(weft_task_is_done(queued));
    CHECK_EQ(weft_try_join(queued, &result), 0);
    CHECK_EQ(result, WEFT_ECANCELED);
    CHECK_EQ(stats_of(rt).blocking_queued, 1);
    CHECK_EQ(stats_of(rt).tasks_alive, 2);
    open_gate();
    CHECK_EQ(test_join_soon(first), 11);
    CHECK_EQ(test_join_soon(last), 1);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&runs), 2);
}

/*
 * A thread has dequeued the job when the cancellation arrives, but has not started it. So the
 * canceler does not remove it from the queue.
 */
static void job_canceled_between_queue_and_start_never_runs(void)
{
    weft_runtime *rt = create(1, WEFT_S);
    close_gate();
    weft_task *first = spawn(rt, gate_function, NULL);
    test_wait_for(&runs, 1);
    weft_task *second = spawn(rt, count_function, NULL);
    CHECK_EQ(wf_state_cancel(&((struct wf_task *)second)->state), WF_STEP_TOLD);
    CHECK(!weft_task_is_done(second));
    open_gate();
    CHECK_EQ(test_join_soon(first), 11);
    CHECK_EQ(test_join_soon(second), WEFT_ECANCELED);
    CHECK_EQ(stats_of(rt).tasks_alive, 0);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&runs), 1);
}

/* Only the pool, of a scheduler that was not started. */
static void close_ends_queued_jobs(void)
{
    struct wf_sched_options options = {
        .workers = 1,
        .inject_capacity = 1,
        .blocking_threads = 1,
        .blocking_keep_alive_ns = (uint64_t)WEFT_S,
        .allocator = wf_alloc_default,
        .thread_name = "weft",
    };
    struct wf_sched *sched =
        wf_alloc_zeroed(&wf_alloc_default, sizeof *sched, _Alignof(struct wf_sched));
    CHECK(sched != NULL);
    CHECK_EQ(wf_sched_init(sched, &options, NULL), 0);
    close_gate();
    struct wf_task *jobs[3];
    CHECK_EQ(wf_pool_spawn(sched, &jobs[0],
                           &(struct wf_pool_spec){ .function = gate_function, .arg = NULL }),
             0);
    test_wait_for(&runs, 1);
    CHECK_EQ(wf_pool_spawn(sched, &jobs[1],
                           &(struct wf_pool_spec){ .function = count_function, .arg = NULL }),
             0);
    CHECK_EQ(wf_pool_spawn(sched, &jobs[2],
                           &(struct wf_pool_spec){ .function = count_function, .arg = NULL }),
             0);
    wf_pool_close(sched);
    CHECK(!weft_task_is_done((weft_task *)jobs[0]));
    for (unsigned i = 1; i < 3; i++) {
        CHECK(weft_task_is_done((weft_task *)jobs[i]));
        CHECK_EQ(jobs[i]->result, WEFT_ECANCELED);
    }
    CHECK_EQ(wf_pool_spawn(sched, NULL,
                           &(struct wf_pool_spec){ .function = count_function, .arg = NULL }),
             WEFT_ESHUTDOWN);
    open_gate();
    wf_pool_join(&sched->pool);
    CHECK_EQ(jobs[0]->result, 11);
    CHECK_EQ(atomic_load(&runs), 1);
    CHECK_EQ(sched->pool.threads, 0);
    CHECK_EQ(sched->pool.submitted, 3);
    CHECK_EQ(sched->pool.completed, 3);
    for (unsigned i = 0; i < 3; i++) {
        wf_task_release(jobs[i]);
    }
    wf_sched_fini(sched);
}

/* Runs until it is canceled, and checks that a shield hides the cancellation. */
static int until_canceled(void *arg)
{
    (void)arg;
    CHECK(!weft_cancelled());
    atomic_fetch_add(&runs, 1);
    weft_time deadline = test_deadline();
    while (!weft_cancelled()) {
        check_deadline(deadline, "the cancellation of a job");
    }
    weft_shield_enter();
    CHECK(!weft_cancelled());
    weft_shield_leave();
    CHECK(weft_cancelled());
    return 29;
}

static void running_job_sees_its_cancellation(void)
{
    weft_runtime *rt = create(1, WEFT_S);
    close_gate();
    weft_task *task = spawn(rt, until_canceled, NULL);
    test_wait_for(&runs, 1);
    int result = 0;
    CHECK_EQ(weft_join(task, &result, weft_now() + WEFT_MS), WEFT_ETIMEDOUT);
    weft_cancel(task);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 29);
    /* The next job on this thread is another task. */
    task = spawn(rt, until_canceled, NULL);
    test_wait_for(&runs, 2);
    weft_cancel(task);
    CHECK_EQ(test_join_soon(task), 29);
    weft_runtime_destroy(rt);
}

/*
 * Goal:   a cancel that races with the start of a job ends it before it runs, or the job sees it.
 *         The job counts once.
 * Method: cancel right after the spawn, many times. The function waits for the cancellation, so
 *         it must see it.
 */
static int run_until_canceled(void *arg)
{
    atomic_fetch_add((_Atomic(uint64_t) *)arg, 1);
    while (!weft_cancelled()) {
        (void)sched_yield();
    }
    return 31;
}

static void cancel_at_start_of_job_is_not_lost(void)
{
    weft_runtime *rt = create(2, WEFT_S);
    uint64_t count = test_scale(2000);
    struct test_rounds rounds = test_rounds_begin();
    for (uint64_t i = 0; i < count || test_rounds_next(&rounds); i++) {
        _Atomic(uint64_t) begun = 0;
        weft_task *task = spawn(rt, run_until_canceled, &begun);
        for (uint64_t spins = 0; spins < i % 50 * 100; spins++) {
            wf_cpu_relax();
        }
        weft_cancel(task);
        int result = test_join_soon(task);
        CHECK_EQ(result, atomic_load(&begun) == 1 ? 31 : WEFT_ECANCELED);
        test_rounds_count(&rounds, atomic_load(&begun) == 1);
    }
    CHECK_EQ(stats_of(rt).tasks_alive, 0);
    weft_runtime_destroy(rt);
}

struct joiner {
    pthread_t thread;
    weft_task *task;
    int result;
};

static void *join_in_thread(void *arg)
{
    struct joiner *self = arg;
    self->result = test_join_soon(self->task);
    return NULL;
}

struct shielded_joiner {
    weft_task *job;
    weft_join_future join;
    int result;
};

static _Atomic(uint64_t) told;
static _Atomic(uint64_t) told_of_runs;

/* Is notified of its job's end even during shutdown. */
static int shielded_joiner_body(weft_co *co, void *state)
{
    struct shielded_joiner *self = state;
    int err;
    WEFT_BEGIN(co);
    weft_shield_enter();
    weft_join_init(&self->join, self->job, &self->result);
    WEFT_AWAIT(co, err, &self->join.future);
    CHECK_EQ(err, 0);
    weft_shield_leave();
    atomic_fetch_add(&told, 1);
    atomic_fetch_add(&told_of_runs, self->result != WEFT_ECANCELED);
    WEFT_END(co, 0);
}

/*
 * Goal:   shutdown cancels running jobs and waits for them, and ends queued jobs. Each joiner
 *         learns whether its job ran.
 * Method: one pool thread with a job that runs until it is canceled, and queued jobs with joining
 *         threads and joining tasks. The first job may end before shutdown reaches the others, so
 *         some of them may run.
 */
static void shutdown_ends_queued_jobs_and_notifies_joiners(void)
{
    for (unsigned round = 0; round < test_scale(60); round++) {
        weft_runtime *rt = create(1, WEFT_S);
        close_gate();
        atomic_store(&told, 0);
        atomic_store(&told_of_runs, 0);
        struct joiner joiners[4];
        joiners[0].task = spawn(rt, until_canceled, NULL);
        test_wait_for(&runs, 1);
        for (unsigned i = 1; i < 4; i++) {
            joiners[i].task = spawn(rt, count_function, NULL);
        }
        for (unsigned i = 0; i < 4; i++) {
            struct shielded_joiner state = { .job = spawn(rt, count_function, NULL) };
            weft_spec spec = { .body = shielded_joiner_body,
                               .state = &state,
                               .state_size = sizeof state };
            CHECK_EQ(weft_runtime_spawn(rt, NULL, &spec), 0);
            CHECK_EQ(pthread_create(&joiners[i].thread, NULL, join_in_thread, &joiners[i]), 0);
        }
        weft_runtime_shutdown(rt);
        CHECK_EQ(atomic_load(&told), 4);
        uint64_t ran = atomic_load(&told_of_runs);
        for (unsigned i = 0; i < 4; i++) {
            CHECK_EQ(pthread_join(joiners[i].thread, NULL), 0);
            ran += joiners[i].result != WEFT_ECANCELED;
        }
        CHECK_EQ(joiners[0].result, 29);
        CHECK_EQ(atomic_load(&runs), ran);
        weft_stats stats = stats_of(rt);
        CHECK_EQ(stats.blocking_threads, 0);
        CHECK_EQ(stats.blocking_queued, 0);
        CHECK_EQ(stats.tasks_alive, 0);
        weft_runtime_destroy(rt);
    }
}

static struct {
    _Atomic(uint64_t) accepted;
    _Atomic(uint64_t) ran;
    _Atomic(uint64_t) cancelled;
} storm;

static int storm_function(void *arg)
{
    (void)arg;
    atomic_fetch_add(&storm.ran, 1);
    return 1;
}

static void *storm_main(void *arg)
{
    for (;;) {
        weft_task *task;
        int err = weft_runtime_spawn_blocking(arg, &task, storm_function, NULL);
        if (err == WEFT_ESHUTDOWN) {
            return NULL;
        }
        CHECK_EQ(err, 0);
        atomic_fetch_add(&storm.accepted, 1);
        int result = test_join_soon(task);
        CHECK(result == 1 || result == WEFT_ECANCELED);
        atomic_fetch_add(&storm.cancelled, result == WEFT_ECANCELED);
    }
}

/*
 * Goal:   each job accepted during shutdown is run or canceled, and its joiner learns which.
 * Method: threads spawn and join until a spawn is refused.
 */
static void jobs_accepted_during_shutdown_are_run_or_canceled(void)
{
    memset(&storm, 0, sizeof storm);
    for (unsigned round = 0; round < test_scale(60); round++) {
        weft_runtime *rt = create(2, WEFT_S);
        pthread_t threads[3];
        for (unsigned i = 0; i < 3; i++) {
            CHECK_EQ(pthread_create(&threads[i], NULL, storm_main, rt), 0);
        }
        uint64_t before = atomic_load(&storm.accepted);
        test_wait_for(&storm.accepted, before + round % 20);
        weft_runtime_shutdown(rt);
        for (unsigned i = 0; i < 3; i++) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        }
        CHECK_EQ(stats_of(rt).tasks_alive, 0);
        weft_runtime_destroy(rt);
    }
    CHECK_EQ(atomic_load(&storm.ran) + atomic_load(&storm.cancelled), atomic_load(&storm.accepted));
}

static int answer_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    CHECK_GE(weft_worker_current(), 0);
    return 41;
}

/* Runs inside a blocking job: spawns a task and another job, and joins both. */
static int spawning_function(void *arg)
{
    CHECK(weft_runtime_current() == arg);
    CHECK_EQ(weft_worker_current(), -1);
    weft_task *self = weft_task_current();
    CHECK(self != NULL);
    weft_spec spec = { .body = answer_body };
    weft_task *task;
    CHECK_EQ(weft_spawn(&task, &spec), 0);
    CHECK_EQ(test_join_soon(task), 41);
    int argument = 1;
    CHECK_EQ(weft_spawn_blocking(&task, echo_function, &argument), 0);
    CHECK(weft_task_id(task) != weft_task_id(self));
    CHECK(weft_task_current() == self);
    return 41 + test_join_soon(task);
}

static void blocking_job_may_spawn_and_join(void)
{
    weft_runtime *rt = create(GROUP, WEFT_S);
    for (unsigned i = 0; i < test_scale(300); i++) {
        CHECK_EQ(test_join_soon(spawn(rt, spawning_function, rt)), 42);
    }
    CHECK(weft_task_current() == NULL);
    weft_runtime_destroy(rt);
}

static void failed_thread_creation_queues_or_refuses_job(void)
{
    size_t usual = 1024 * 1024;
    weft_runtime *rt = create(GROUP, 3600 * (uint64_t)WEFT_S);
    close_gate();
    weft_task *task = NULL;
    test_set_default_stack((size_t)1 << 46);
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, count_function, NULL), -EAGAIN);
    CHECK(task == NULL);
    CHECK_EQ(stats_of(rt).tasks_alive, 0);
    CHECK_EQ(stats_of(rt).blocking_queued, 0);
    CHECK_EQ(stats_of(rt).blocking_threads, 0);

    /* With one running thread, jobs wait for it. */
    test_set_default_stack(usual);
    weft_task *first = spawn(rt, gate_function, NULL);
    test_wait_for(&runs, 1);
    test_set_default_stack((size_t)1 << 46);
    weft_task *second = spawn(rt, count_function, NULL);
    CHECK_EQ(stats_of(rt).blocking_threads, 1);
    open_gate();
    CHECK_EQ(test_join_soon(first), 11);
    CHECK_EQ(test_join_soon(second), 1);
    test_set_default_stack(usual);
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&runs), 2);
}

static int shutdown_function(void *arg)
{
    weft_runtime_shutdown(arg);
    return 0;
}

static int destroy_function(void *arg)
{
    weft_runtime_destroy(arg);
    return 0;
}

static int pending_function(void *arg)
{
    (void)arg;
    return WEFT_PENDING;
}

static int yielding_function(void *arg)
{
    (void)arg;
    return WEFT_YIELDED;
}

static void run_function(int (*function)(void *arg))
{
    weft_runtime *rt = create(1, WEFT_S);
    (void)test_join_soon(spawn(rt, function, rt));
}

static void run_shutdown(void)
{
    run_function(shutdown_function);
}

static void run_destroy(void)
{
    run_function(destroy_function);
}

static void run_pending(void)
{
    run_function(pending_function);
}

static void run_yielding(void)
{
    run_function(yielding_function);
}

static void misuse_in_blocking_job_aborts_with_message(void)
{
    CHECK_ABORTS(run_shutdown, "weft_runtime_shutdown: called on a thread of this runtime");
    CHECK_ABORTS(run_destroy, "called on a thread of this runtime, which would wait for itself");
    CHECK_ABORTS(run_pending, "weft_spawn_blocking: the function returned WEFT_PENDING");
    CHECK_ABORTS(run_yielding, "it must return its result");
}

TEST_MAIN({
    TEST(misuse_in_blocking_job_aborts_with_message),
    TEST(job_result_reaches_thread_and_task),
    TEST(job_without_function_or_after_shutdown_is_refused),
    TEST(detached_job_runs),
    TEST(pool_grows_up_to_its_limit),
    TEST(jobs_beyond_limit_are_queued_in_order),
    TEST(idle_threads_end_after_keep_alive),
    TEST(idle_thread_runs_next_job),
    TEST(job_that_races_with_thread_end_is_run),
    TEST(canceled_queued_job_ends_immediately_without_running),
    TEST(job_canceled_between_queue_and_start_never_runs),
    TEST(close_ends_queued_jobs),
    TEST(running_job_sees_its_cancellation),
    TEST(cancel_at_start_of_job_is_not_lost),
    TEST(shutdown_ends_queued_jobs_and_notifies_joiners),
    TEST(jobs_accepted_during_shutdown_are_run_or_canceled),
    TEST(blocking_job_may_spawn_and_join),
    TEST_NATIVE(failed_thread_creation_queues_or_refuses_job, "maps a stack of any size"),
})
