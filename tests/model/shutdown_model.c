/* SPDX-License-Identifier: MIT */
/*
 * shutdown_model.c - how a scheduler ends (src/sched/drain.c, sched.c, spawn.c): every
 * task that was accepted has ended when the shutdown returns, nothing is left
 * behind, and it does return.
 *
 * A scheduler with everything but the watch. Tasks that wait for ever are ended by
 * nothing but the walk that cancels them, so one that no walk finds is a deadlock.
 */
#include <sched.h>

#include <weft/task.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "mc.h"
#include "sched/heap.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

enum {
    JOBS = 4,
    ANSWER = 42,
    NOT_SPAWNED = 1,
};

struct job {
    weft_body_fn body;
    struct wf_task *task;
    int status; /* of the spawn */
    int polls;
    int drops;
    weft_waker *waker;
    uint32_t pinned;
};

static struct wf_sched *sched;
static struct job jobs[JOBS];
static int stopped;           /* written before the shutdown begins */
static bool has_slots = true; /* LIFO slots */
static unsigned tick_polls = 128;

static struct job *job_of(void *state)
{
    return *(struct job **)state;
}

static void drop(void *state)
{
    job_of(state)->drops++;
}

static void spawn(void *arg)
{
    struct job *job = arg;
    weft_spec spec = {
        .body = job->body,
        .drop = drop,
        .state = &job,
        .state_size = sizeof job,
        .pinned = job->pinned,
    };
    job->status = wf_spawn(sched, &job->task, &spec);
    if (job->status == WEFT_ESHUTDOWN) {
        mc_assert(stopped == 1); /* A data race here: who is refused does not see why. */
    }
}

static int end_at_once(weft_co *co, void *state)
{
    (void)co;
    job_of(state)->polls++;
    return ANSWER;
}

static int wait_for_ever(weft_co *co, void *state)
{
    (void)co;
    job_of(state)->polls++;
    return WEFT_PENDING;
}

static int spawn_next(weft_co *co, void *state)
{
    (void)co;
    struct job *job = job_of(state);
    job->polls++;
    spawn(job + 1);
    return ANSWER;
}

static int spawn_next_two(weft_co *co, void *state)
{
    (void)co;
    struct job *job = job_of(state);
    job->polls++;
    spawn(job + 1);
    spawn(job + 2);
    return ANSWER;
}

/* A worker leaves: every task is over. A data race here: one is not. */
static void on_stop(void *ctx, unsigned worker)
{
    (void)ctx;
    (void)worker;
    int polls = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        polls += jobs[i].polls;
    }
    mc_assert(polls >= 0);
}

static void begin(unsigned workers, size_t capacity)
{
    struct wf_sched_options options = {
        .workers = workers,
        .stealing = true,
        .lifo = has_slots,
        .tick_polls = tick_polls,
        .tick_ns = 500000,
        .inject_target_ns = 1000000,
        .inject_interval_min = 8,
        .inject_interval_max = 255,
        .inject_capacity = capacity,
        .blocking_threads = 1,
        .blocking_keep_alive_ns = 1000,
        .seed = 1,
        .allocator = wf_alloc_default,
        .thread_name = "model",
        .on_stop = on_stop,
    };
    sched = wf_alloc_zeroed(&wf_alloc_default, sizeof *sched, _Alignof(struct wf_sched));
    mc_assert(wf_sched_init(sched, &options, NULL) == 0);
    for (unsigned i = 0; i < workers; i++) {
        struct wf_worker *worker = &sched->workers[i];
        mc_assert(wf_thread_start(&worker->thread, wf_worker_main, worker) == 0);
    }
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i].status = NOT_SPAWNED;
    }
    mc_name(&sched->drain, sizeof sched->drain, "drain");
    mc_name(jobs, sizeof jobs, "jobs");
}

static void stop(void)
{
    stopped = 1;
    wf_sched_drain(sched);
    wf_sched_stop(sched);
}

/* Every task that was accepted was polled, has ended, and was dropped. */
static void check(struct job *job)
{
    if (job->status != 0) {
        mc_assert(job->status == NOT_SPAWNED || job->status == WEFT_ESHUTDOWN);
        mc_assert(job->polls == 0);
        mc_assert(job->drops == 0);
        return;
    }
    int result = 0;
    mc_assert(weft_try_join((weft_task *)job->task, &result) == 0);
    mc_assert(result == (job->body == wait_for_ever ? WEFT_ECANCELED : ANSWER));
    mc_assert(job->polls > 0);
    mc_assert(job->drops == 1);
}

/* After the shutdown, and after everybody else is done. */
static void end(void)
{
    int accepted = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        accepted += jobs[i].status == 0;
        check(&jobs[i]);
    }
    wf_sched_fini(sched);
    mc_note(accepted);
}

/*
 * Goal:   a spawn from outside is refused, or its task ends.
 * Method: another thread spawns while the scheduler is stopped. The task ends, or
 *         waits for ever; it is pinned, or not.
 */
static void spawn_against_stop(void)
{
    begin(2, 100);
    jobs[0].body = mc_choose(2) == 0 ? end_at_once : wait_for_ever;
    jobs[0].pinned = mc_choose(2) == 0 ? 0 : WEFT_PINNED_TO(1);
    mc_go(spawn, &jobs[0]);
    stop();
    mc_join();
    end();
}

/*
 * Goal:   the same for the spawns of a task: its worker may know of the shutdown
 *         or not, and the first walk may have passed by.
 * Method: with LIFO slots; or without, so that a task can be stolen at once.
 */
static void task_spawns_against_stop(void)
{
    has_slots = mc_choose(2) == 0;
    begin(2, 100);
    jobs[0].body = spawn_next_two;
    jobs[1].body = wait_for_ever;
    jobs[2].body = wait_for_ever;
    spawn(&jobs[0]);
    stop();
    end();
}

/*
 * Goal:   workers that end what others have spawned do not end the scheduler too
 *         early: their own counts are negative.
 */
static void stolen_tasks_against_stop(void)
{
    begin(2, 100);
    jobs[0].body = spawn_next_two;
    jobs[1].body = end_at_once;
    jobs[2].body = spawn_next;
    jobs[3].body = wait_for_ever;
    spawn(&jobs[0]);
    stop();
    end();
}

static int wait_in_poll(weft_co *co, void *state)
{
    (void)co;
    job_of(state)->polls++;
    while (!weft_cancelled()) {
        (void)sched_yield();
    }
    return ANSWER;
}

/*
 * Goal:   a body that looks out for its cancellation, in a long poll, is told.
 * Method: its worker does not acknowledge the shutdown before it ends.
 */
static void long_poll_against_stop(void)
{
    begin(1, 100);
    jobs[0].body = wait_in_poll;
    spawn(&jobs[0]);
    stop();
    end();
}

static struct wf_park has_begun;

static int begin_and_spawn_next(weft_co *co, void *state)
{
    wf_park_wake(&has_begun);
    return spawn_next(co, state);
}

static int yield_until_cancelled(weft_co *co, void *state)
{
    (void)co;
    job_of(state)->polls++;
    return weft_cancelled() ? ANSWER : WEFT_YIELDED;
}

/*
 * Goal:   a worker that never runs out of work gets to know of the shutdown.
 * Method: its task is spawned behind the first walk's back, and ends when the walk
 *         of the last one to acknowledge finds it.
 */
static void busy_worker_against_stop(void)
{
    tick_polls = 2;
    begin(1, 100);
    jobs[0].body = begin_and_spawn_next;
    jobs[1].body = yield_until_cancelled;
    spawn(&jobs[0]);
    (void)wf_park_sleep(&has_begun, WF_NEVER);
    stop();
    end();
}

static int keep_waker(weft_co *co, void *state)
{
    (void)co;
    struct job *job = job_of(state);
    job->polls++;
    if (job->waker == NULL) {
        job->waker = weft_waker_current();
    }
    return weft_cancelled() ? ANSWER : WEFT_PENDING;
}

/*
 * Goal:   a waker may be fired when the scheduler is gone.
 * Method: it holds the last reference.
 */
static void waker_after_the_end(void)
{
    begin(1, 100);
    jobs[0].body = keep_waker;
    spawn(&jobs[0]);
    stop();
    end();
    weft_waker_fire(jobs[0].waker);
}

static void fire(void *arg)
{
    weft_waker_fire(arg);
}

/*
 * Goal:   the same for a waker that is fired meanwhile, on another thread.
 */
static void waker_against_the_end(void)
{
    begin(1, 100);
    jobs[0].body = keep_waker;
    spawn(&jobs[0]);
    stop();
    mc_go(fire, jobs[0].waker);
    end();
    mc_join();
}

static struct wf_park has_waker;

static int hand_out_waker(weft_co *co, void *state)
{
    int result = keep_waker(co, state);
    wf_park_wake(&has_waker);
    return result;
}

static void fire_soon(void *arg)
{
    struct job *job = arg;
    (void)wf_park_sleep(&has_waker, WF_NEVER);
    weft_waker_fire(job->waker);
}

/*
 * Goal:   a waker may be fired at any time: the scheduler is there as long as that
 *         takes, and the task is polled as often as it was woken.
 */
static void wake_against_stop(void)
{
    begin(2, 100);
    jobs[0].body = hand_out_waker;
    spawn(&jobs[0]);
    mc_go(fire_soon, &jobs[0]);
    stop();
    end();
    mc_join();
}

static void spawn_and_wait(void *arg)
{
    struct job *job = arg;
    weft_spec spec = {
        .body = job->body,
        .drop = drop,
        .state = &job,
        .state_size = sizeof job,
    };
    job->status = wf_spawn_wait(sched, &job->task, &spec, WEFT_NEVER);
}

/*
 * Goal:   who waits for room gets it, or is told of the shutdown.
 * Method: two spawns, room for one.
 */
static void room_against_stop(void)
{
    begin(1, 1);
    jobs[0].body = end_at_once;
    jobs[1].body = end_at_once;
    mc_go(spawn_and_wait, &jobs[0]);
    mc_go(spawn_and_wait, &jobs[1]);
    stop();
    mc_join();
    end();
}

static struct wf_park has_returned;

static int wait_for_return(weft_co *co, void *state)
{
    (void)co;
    job_of(state)->polls++;
    wf_park_wake(&has_begun);
    (void)wf_park_sleep(&has_returned, WF_NEVER);
    return ANSWER;
}

static void spawn_wait_and_return(void *arg)
{
    spawn_and_wait(arg);
    wf_park_wake(&has_returned);
}

/*
 * Goal:   who waits for room is told of the shutdown, also if no worker comes to
 *         the queue.
 * Method: the only one is in a poll that ends when the waiter has returned.
 */
static void full_room_against_stop(void)
{
    begin(1, 1);
    jobs[0].body = wait_for_return;
    jobs[1].body = end_at_once;
    jobs[2].body = end_at_once;
    spawn(&jobs[0]);
    (void)wf_park_sleep(&has_begun, WF_NEVER);
    spawn(&jobs[1]);
    mc_go(spawn_wait_and_return, &jobs[2]);
    stop();
    mc_join();
    end();
}

static int block(void *arg)
{
    int *runs = arg;
    (*runs)++;
    return ANSWER;
}

static int block_runs;

static int spawn_blocking(weft_co *co, void *state)
{
    (void)co;
    struct job *job = job_of(state);
    job->polls++;
    int err =
        wf_pool_spawn(sched, NULL, &(struct wf_pool_spec){ .function = block, .arg = &block_runs });
    mc_assert(err == 0 || err == WEFT_ESHUTDOWN);
    return ANSWER;
}

/*
 * Goal:   the same for a blocking job that a task spawns.
 */
static void blocking_spawn_against_stop(void)
{
    begin(1, 100);
    jobs[0].body = spawn_blocking;
    spawn(&jobs[0]);
    stop();
    mc_assert(sched->pool.submitted == sched->pool.completed);
    mc_assert(sched->pool.threads == 0);
    mc_note(10 + block_runs);
    end();
}

struct never {
    weft_future future;
    bool cancelled;
};

static int never_poll(weft_future *future)
{
    return ((struct never *)future)->cancelled ? WEFT_ECANCELED : WEFT_PENDING;
}

static bool never_cancel(weft_future *future)
{
    ((struct never *)future)->cancelled = true;
    return true;
}

static int block_for_ever(void *arg)
{
    static const weft_future_ops ops = { .poll = never_poll, .cancel = never_cancel };
    struct never never = { .future.ops = &ops };
    (void)arg;
    return weft_await(&never.future, WEFT_NEVER);
}

static void spawn_waiting_job(void *arg)
{
    int *status = arg;
    *status = wf_pool_spawn(sched, NULL,
                            &(struct wf_pool_spec){ .function = block_for_ever, .arg = NULL });
}

/*
 * Goal:   a blocking job that waits is cancelled by the shutdown, or refused.
 * Method: another thread spawns it while the scheduler is stopped.
 */
static void waiting_job_against_stop(void)
{
    int status = NOT_SPAWNED;
    begin(1, 100);
    mc_go(spawn_waiting_job, &status);
    stop();
    mc_join();
    mc_assert(status == 0 || status == WEFT_ESHUTDOWN);
    mc_note(10 + (status == 0));
    end();
}

#define TEST(function, count)                                                                      \
    {                                                                                              \
        .name = #function, .run = (function), .mode = MC_PCT, .runs = (count), .steps_max = 20000, \
        .leaks = true                                                                              \
    }

/* With outcomes that must come up. */
#define TEST_SEEN(function, count, ...)                                                            \
    {                                                                                              \
        .name = #function, .run = (function), .mode = MC_PCT, .runs = (count), .steps_max = 20000, \
        .leaks = true, .seen = MC_OUTCOMES(__VA_ARGS__)                                            \
    }

static const struct mc_test tests[] = {
    TEST_SEEN(spawn_against_stop, 3000, 0, 1),
    TEST_SEEN(task_spawns_against_stop, 5000, 1, 2, 3),
    TEST_SEEN(stolen_tasks_against_stop, 3000, 1, 2, 3, 4),
    TEST_SEEN(long_poll_against_stop, 500, 1),
    { .name = "busy_worker_against_stop",
      .run = busy_worker_against_stop,
      .mode = MC_RANDOM, /* By priorities it may keep the others waiting for ever. */
      .runs = 2000,
      .steps_max = 20000,
      .leaks = true,
      .seen = MC_OUTCOMES(2) },
    TEST_SEEN(waker_after_the_end, 500, 1),
    TEST_SEEN(waker_against_the_end, 1000, 1),
    TEST_SEEN(wake_against_stop, 3000, 1),
    TEST_SEEN(room_against_stop, 3000, 0, 1, 2),
    TEST_SEEN(full_room_against_stop, 500, 2),
    TEST_SEEN(blocking_spawn_against_stop, 2000, 1, 10, 11),
    TEST_SEEN(waiting_job_against_stop, 2000, 0, 10, 11),
};

MC_MAIN(tests)
