/* SPDX-License-Identifier: MIT */
/*
 * blocking_model.c - src/sched/blocking.c: each job runs once or ends as cancelled,
 * no thread is left behind, and no job waits beside an idle thread.
 *
 * On a scheduler made by hand, without workers: the pool, and the heap for its
 * jobs. The last step of each test is a shutdown, so whatever is not joined, ended
 * or freed by then is found.
 */
#include <weft/task.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fork.h"
#include "mc.h"
#include "sched/heap.h"
#include "sched/park.h"
#include "sched/sched.h"
#include "sched/task.h"
#include "threads.h"

enum {
    JOBS = 4,
    ANSWER = 42,
};

struct work {
    struct wf_task *task;
    int payload; /* written by the submitter, read by the job, and then written */
    int runs;
    int status;          /* of the spawn */
    struct work *other;  /* the job waits for this one */
    struct wf_park gate; /* opened by the job */
};

static struct wf_sched sched;
static struct work work[JOBS];

static void begin(unsigned threads_max)
{
    sched.options.workers = 1;
    sched.options.allocator = wf_alloc_default;
    sched.options.blocking_threads = threads_max;
    sched.options.blocking_keep_alive_ns = 1000;
    sched.options.thread_name = "model";
    sched.fork_number = wf_fork_number;
    sched.heap = wf_heap_create(&wf_alloc_default, &sched, 1);
    mc_assert(sched.heap != NULL);
    wf_pool_init(&sched.pool);
    mc_name(&sched.pool, sizeof sched.pool, "pool");
    mc_name(work, sizeof work, "work");
}

static void await(struct work *self)
{
    (void)wf_park_sleep(&self->gate, WF_NEVER);
}

static int function(void *arg)
{
    struct work *self = arg;
    mc_assert(self->payload == ANSWER);
    self->runs++;
    if (self->other != NULL) {
        await(self->other);
    }
    wf_park_wake(&self->gate);
    return ANSWER;
}

static void spawn(void *arg)
{
    struct work *self = arg;
    self->payload = ANSWER;
    self->status = wf_pool_spawn(&sched, &self->task,
                                 &(struct wf_pool_spec){ .function = function, .arg = self });
}

static void cancel(void *arg)
{
    struct work *self = arg;
    struct wf_task *task = self->task;
    wf_task_cancel(task);
    wf_task_release(task);
}

/* Cancels on another thread, with a reference of its own. */
static void go_cancel(struct work *self)
{
    wf_task_retain(self->task);
    mc_go(cancel, self);
}

/* The shutdown's steps, as far as they concern the pool. */
static void close_pool(void *arg)
{
    (void)arg;
    wf_pool_close(&sched);
    wf_pool_join(&sched.pool);
}

static void check(struct work *self)
{
    if (self->status != 0) {
        mc_assert(self->status == WEFT_ESHUTDOWN);
        mc_assert(self->runs == 0);
        return;
    }
    int result = 0;
    mc_assert(weft_try_join((weft_task *)self->task, &result) == 0);
    mc_assert(result == (self->runs == 1 ? ANSWER : WEFT_ECANCELED));
}

/* The pool is closed. */
static void end(unsigned count)
{
    int ran = 0;
    mc_assert(wf_load_relaxed(&threads_unjoined) == 0);
    mc_assert(sched.pool.threads == 0);
    mc_assert(sched.pool.idle_count == 0);
    mc_assert(sched.pool.queued == 0);
    mc_assert(sched.pool.submitted == sched.pool.completed);
    for (unsigned i = 0; i < count; i++) {
        check(&work[i]);
        ran += work[i].runs;
    }
    wf_heap_retire(sched.heap, NULL);
    mc_note(ran);
}

/*
 * Goal:   a job runs, or the shutdown cancels it.
 * Method: the pool is closed at once.
 */
static void submit_and_close(void)
{
    begin(1);
    spawn(&work[0]);
    close_pool(NULL);
    end(1);
}

/*
 * Goal:   a job that comes while the pool closes is refused, or ends.
 */
static void submit_against_close(void)
{
    begin(1);
    mc_go(spawn, &work[0]);
    close_pool(NULL);
    mc_join();
    end(1);
}

/*
 * Goal:   a job is not left to a thread that ends.
 * Method: the next one comes when the thread of the one before has nothing to do,
 *         or sleeps, or its deadline fires. Each is waited for.
 */
static void submit_against_idle_exit(void)
{
    begin(1);
    spawn(&work[0]);
    await(&work[0]);
    spawn(&work[1]);
    await(&work[1]);
    spawn(&work[2]);
    await(&work[2]);
    close_pool(NULL);
    end(3);
}

/*
 * Goal:   a job is not left to a thread that is busy, if another one may be started.
 * Method: a thread that may have been taken off the stack together with its timeout
 *         gets a job that waits for the next one.
 */
static void second_thread_after_a_timeout(void)
{
    begin(2);
    spawn(&work[0]);
    await(&work[0]);
    spawn(&work[1]);
    await(&work[1]);
    work[2].other = &work[3];
    spawn(&work[2]);
    spawn(&work[3]);
    await(&work[2]);
    close_pool(NULL);
    end(4);
}

/*
 * Goal:   a job above the limit of threads is taken by the one that is there.
 * Method: two submitters, one thread, which may end by its deadline.
 */
static void submit_above_the_limit(void)
{
    begin(1);
    mc_go(spawn, &work[0]);
    spawn(&work[1]);
    await(&work[0]);
    await(&work[1]);
    mc_join();
    close_pool(NULL);
    end(2);
}

/*
 * Goal:   two threads end, each of them joined.
 * Method: two jobs at once, two threads, whose deadlines may fire.
 */
static void two_threads_end(void)
{
    begin(2);
    spawn(&work[0]);
    spawn(&work[1]);
    close_pool(NULL);
    end(2);
}

/*
 * Goal:   a job that is queued when the pool closes does not run.
 * Method: the only thread is in another one until then.
 */
static struct wf_park is_closed;

static int wait_for_close(void *arg)
{
    struct work *self = arg;
    self->runs++;
    wf_park_wake(&self->gate);
    (void)wf_park_sleep(&is_closed, WF_NEVER);
    return ANSWER;
}

static void close_cancels_what_is_queued(void)
{
    begin(1);
    work[0].status =
        wf_pool_spawn(&sched, &work[0].task,
                      &(struct wf_pool_spec){ .function = wait_for_close, .arg = &work[0] });
    await(&work[0]);
    spawn(&work[1]);
    wf_pool_close(&sched);
    wf_park_wake(&is_closed);
    wf_pool_join(&sched.pool);
    mc_assert(work[1].runs == 0);
    end(2);
}

/*
 * Goal:   a queued job is cancelled once: it runs, or ends as cancelled.
 * Method: another thread cancels it while the pool's thread comes for it.
 */
static void cancel_against_start(void)
{
    begin(1);
    spawn(&work[0]);
    go_cancel(&work[0]);
    mc_join();
    close_pool(NULL);
    end(1);
}

/*
 * Goal:   the same while the pool closes: who waits for that finds the job ended,
 *         though the other thread still holds it.
 */
static void cancel_against_close(void)
{
    begin(1);
    spawn(&work[0]);
    go_cancel(&work[0]);
    close_pool(NULL);
    end(1);
    mc_join();
}

/*
 * Goal:   a walker through all tasks sees a job whole.
 * Method: it cancels whatever it finds while a job is spawned.
 */
static void walk(void *arg)
{
    (void)arg;
    wf_heap_visit(sched.heap, wf_task_cancel);
}

static void visit_against_spawn(void)
{
    begin(1);
    mc_go(walk, NULL);
    spawn(&work[0]);
    mc_join();
    close_pool(NULL);
    end(1);
}

/*
 * Goal:   a job is refused if there is no thread and none can be started; else the
 *         thread that is there takes it, too.
 * Method: the start of the first or the second thread is refused.
 */
static void thread_is_refused(void)
{
    begin(2);
    starts_to_refusal = 1 + (int)mc_choose(2);
    bool none = starts_to_refusal == 1;
    spawn(&work[0]);
    mc_assert(work[0].status == (none ? -EAGAIN : 0));
    spawn(&work[1]);
    mc_assert(work[1].status == 0);
    if (none) {
        work[0].status = WEFT_ESHUTDOWN;
    } else {
        await(&work[0]);
    }
    await(&work[1]);
    close_pool(NULL);
    end(2);
}

static const struct mc_test tests[] = {
    { .name = "submit_and_close",
      .run = submit_and_close,
      .leaks = true,
      .seen = MC_OUTCOMES(0, 1),
      .seen_only = true },
    { .name = "submit_against_close",
      .run = submit_against_close,
      .leaks = true,
      .seen = MC_OUTCOMES(0, 1),
      .seen_only = true },
    { .name = "submit_against_idle_exit",
      .run = submit_against_idle_exit,
      .mode = MC_PCT,
      .runs = 5000,
      .leaks = true,
      .timeouts = 2,
      .seen = MC_OUTCOMES(3),
      .seen_only = true },
    { .name = "second_thread_after_a_timeout",
      .run = second_thread_after_a_timeout,
      .mode = MC_PCT,
      .runs = 5000,
      .leaks = true,
      .timeouts = 2,
      .seen = MC_OUTCOMES(4),
      .seen_only = true },
    { .name = "submit_above_the_limit",
      .run = submit_above_the_limit,
      .mode = MC_PCT,
      .runs = 3000,
      .leaks = true,
      .timeouts = 1,
      .seen = MC_OUTCOMES(2),
      .seen_only = true },
    { .name = "two_threads_end",
      .run = two_threads_end,
      .mode = MC_PCT,
      .runs = 3000,
      .leaks = true,
      .seen = MC_OUTCOMES(0, 1, 2),
      .seen_only = true },
    { .name = "close_cancels_what_is_queued",
      .run = close_cancels_what_is_queued,
      .mode = MC_PCT,
      .runs = 1000,
      .leaks = true,
      .seen = MC_OUTCOMES(1),
      .seen_only = true },
    { .name = "cancel_against_start",
      .run = cancel_against_start,
      .mode = MC_PCT,
      .runs = 3000,
      .leaks = true,
      .seen = MC_OUTCOMES(0, 1),
      .seen_only = true },
    { .name = "cancel_against_close",
      .run = cancel_against_close,
      .mode = MC_PCT,
      .runs = 3000,
      .leaks = true,
      .seen = MC_OUTCOMES(0, 1),
      .seen_only = true },
    { .name = "visit_against_spawn",
      .run = visit_against_spawn,
      .mode = MC_PCT,
      .runs = 3000,
      .leaks = true,
      .seen = MC_OUTCOMES(0, 1),
      .seen_only = true },
    { .name = "thread_is_refused",
      .run = thread_is_refused,
      .mode = MC_PCT,
      .runs = 1000,
      .leaks = true,
      .seen = MC_OUTCOMES(1, 2),
      .seen_only = true },
};

MC_MAIN(tests)
