/* SPDX-License-Identifier: MIT */
/*
 * blocking.c - thread pool for blocking jobs.
 *
 * A blocking job is a task: it is joined, detached and canceled like any other. It waits in the
 * pool's queue instead of a run queue, and its poll is the function.
 *
 * A thread is started when a job is submitted and no thread is idle, up to the limit. It ends
 * after some time without work. Idle threads form a stack: the one that worked last gets the
 * next job, so threads that are not needed reach their timeout. A thread whose timeout
 * coincides with a job finds itself removed from the stack. It then consumes the wake-up that
 * is on its way.
 *
 * Threads end one by one, and each of them must be joined: a thread that ends joins the one
 * that ended before it, and the stopping thread joins the last.
 *
 * One lock guards everything. It is never held while a function runs. A thread is started under
 * it, too: otherwise a second submitter could rely on a thread that the system then refuses to
 * start, and the stopping thread could miss one that is about to exist.
 *
 * A job may start processes, which inherit its signal mask. So pool threads have the mask of
 * the thread that created the runtime, and signal handlers may run on them.
 *
 * A job starts without fiber-local values, and ends those that it has set, as a fiber does. They
 * are kept with its thread's record.
 *
 * A job that waits (weft_await() and the calls built on it) waits through its thread's own
 * task. Canceling the job wakes that task.
 *
 * Edges.
 * [B1] the end of a thread or a job releases the count of users, the stopping thread acquires
 *      it: it sees the last thread's handle.
 *
 * And heap.c's [H2]: the store of the state word.
 */
#include "sched/blocking.h"

#include <errno.h>

#include <weft/task.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/futex.h"
#include "sched/frame.h"
#include "sched/heap.h"
#include "sched/local.h"
#include "sched/overflow.h"
#include "sched/park.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

struct job {
    struct wf_task task;
    struct wf_pool_spec spec;
    struct wf_list link;    /* under the pool's lock */
    struct wf_task *waiter; /* under the pool's lock: of the thread that runs it */
};

struct pool_thread {
    struct wf_list link; /* under the pool's lock */
    struct wf_park park;
};

void wf_pool_init(struct wf_pool *pool)
{
    *pool = (struct wf_pool){ 0 };
    wf_lock_init(&pool->lock, WF_RANK_POOL);
    wf_list_init(&pool->queue);
    wf_list_init(&pool->idle);
}

/* Under the lock: counts a thread or a job that begins. */
static void add_user(struct wf_pool *pool)
{
    /* relaxed: the stopping thread reads it after it has held the lock. */
    (void)wf_fetch_add_relaxed(&pool->users, 1);
}

/* Ends the last use of the pool by a thread or a job. */
static void drop_user(struct wf_pool *pool)
{
    /* release [B1]: everything it did is done. The pool may be gone after this; using only its
     * address is harmless. */
    if (wf_fetch_sub_release(&pool->users, 1) == 1) {
        wf_futex_wake(&pool->users, 1);
    }
}

/* Ends a job. The caller holds a reference or is the pool's thread. */
static void end_job(struct wf_pool *pool, struct job *job, int result)
{
    wf_lock(&pool->lock);
    pool->completed++;
    wf_unlock(&pool->lock);
    wf_task_complete(&job->task, result);
    drop_user(pool);
}

/* Under the lock: takes a job from the queue. Returns NULL if none is queued. */
static struct job *take_job(struct wf_pool *pool)
{
    struct wf_list *link = wf_list_pop_front(&pool->queue);
    if (link == NULL) {
        return NULL;
    }
    pool->queued--;
    return wf_container_of(link, struct job, link);
}

/* Ends the values that the job has set. The record of the thread may be one that the job made. */
static void end_locals(void)
{
    struct wf_thread *self = wf_thread_known();
    if (self != NULL && self->locals != NULL) {
        wf_local_end(&self->locals);
    }
}

/* Runs the function, with the job registered as the task that runs on this thread. */
static int call_function(struct wf_sched *sched, struct job *job)
{
    struct wf_pool *pool = &sched->pool;
    struct wf_thread *self = wf_thread_self();
    if (self == NULL) { /* No memory: it cannot wait, that is all. */
        int result = job->spec.function(job->spec.arg);
        end_locals();
        return result;
    }
    self->running = &job->task;
    self->runtime = sched->runtime;
    self->sched = sched;
    wf_lock(&pool->lock);
    job->waiter = self->waiter;
    wf_unlock(&pool->lock);
    self->job_frame = __builtin_frame_address(0);
    int result = job->spec.function(job->spec.arg);
    self->job_frame = NULL;
    wf_frame_must_be_empty(&self->open, &job->task);
    end_locals();
    wf_lock(&pool->lock);
    job->waiter = NULL;
    wf_unlock(&pool->lock);
    self->running = NULL;
    return result;
}

/* Ends a job without calling its function. */
static void drop_job(struct wf_pool *pool, struct job *job)
{
    if (job->spec.dropped != NULL) {
        job->spec.dropped(job->spec.arg);
    }
    end_job(pool, job, WEFT_ECANCELED);
}

static void run_job(struct wf_sched *sched, struct job *job)
{
    if (wf_state_must_cancel(wf_task_begin(&job->task))) {
        drop_job(&sched->pool, job);
        return;
    }
    int result = call_function(sched, job);
    if (result == WEFT_PENDING || result == WEFT_YIELDED) {
        wf_fatal("weft_spawn_blocking: the function returned WEFT_PENDING or WEFT_YIELDED; "
                 "it must return its result");
    }
    end_job(&sched->pool, job, result);
}

/* Sleeps until there may be a job. Returns false if the thread must end. The lock is held
 * before and after. */
static bool sleep_for_job(struct wf_sched *sched, struct pool_thread *self)
{
    struct wf_pool *pool = &sched->pool;
    int64_t deadline = wf_clock_now() + (int64_t)sched->options.blocking_keep_alive_ns;
    wf_list_push_front(&pool->idle, &self->link);
    pool->idle_count++;
    wf_unlock(&pool->lock);
    bool woken = wf_park_sleep(&self->park, deadline);
    wf_lock(&pool->lock);
    if (woken) {
        return true;
    }
    if (!wf_list_is_empty(&self->link)) {
        wf_list_remove(&self->link);
        pool->idle_count--;
        return false;
    }
    /* Removed from the stack at the time of the timeout: a wake-up is coming. */
    wf_unlock(&pool->lock);
    (void)wf_park_sleep(&self->park, WF_NEVER);
    wf_lock(&pool->lock);
    return true;
}

/* Leaves its handle to the next thread that ends. Called with the lock held; releases it. */
static void leave(struct wf_pool *pool)
{
    bool has_before = pool->has_exited;
    pthread_t before = pool->last_exited;
    pool->has_exited = true;
    pool->last_exited = pthread_self();
    pool->threads--;
    wf_unlock(&pool->lock);
    if (has_before) {
        (void)pthread_join(before, NULL);
    }
    drop_user(pool);
}

static void *pool_main(void *arg)
{
    struct wf_sched *sched = arg;
    struct wf_pool *pool = &sched->pool;
    struct pool_thread self = { 0 };
    wf_list_init(&self.link);
    wf_thread_set_name(sched->options.thread_name, "block");
    wf_thread_must_return(true);
    struct wf_signal_stack signal_stack;
    wf_signal_stack_init(&signal_stack);
    wf_thread_unblock_signals(&sched->signals);
    wf_lock(&pool->lock);
    for (;;) {
        struct job *job = take_job(pool);
        if (job != NULL) {
            wf_unlock(&pool->lock);
            run_job(sched, job);
            wf_lock(&pool->lock);
        } else if (pool->closed || !sleep_for_job(sched, &self)) {
            break;
        }
    }
    leave(pool);
    wf_signal_stack_fini(&signal_stack); /* The pool must not be used any more. */
    wf_thread_must_return(false);
    return NULL;
}

/* Under the lock: wakes the idle thread that worked last. */
static void wake_idle(struct wf_pool *pool)
{
    struct wf_list *link = wf_list_pop_front(&pool->idle);
    if (link != NULL) {
        pool->idle_count--;
        (void)wf_park_wake(&wf_container_of(link, struct pool_thread, link)->park);
    }
}

/* Under the lock: starts a thread. Returns false if the system refuses. */
static bool start_thread(struct wf_sched *sched)
{
    struct wf_pool *pool = &sched->pool;
    pthread_t thread;
    if (wf_thread_start(&thread, pool_main, sched) != 0) {
        return false;
    }
    pool->threads++;
    add_user(pool);
    return true;
}

/* Queues the job and makes sure that a thread will run it. */
static int submit(struct wf_sched *sched, struct job *job)
{
    struct wf_pool *pool = &sched->pool;
    int err = 0;
    wf_lock(&pool->lock);
    if (pool->closed) {
        err = WEFT_ESHUTDOWN;
    } else if (pool->idle_count > 0) {
        wake_idle(pool);
    } else if (pool->threads < sched->options.blocking_threads && !start_thread(sched) &&
               pool->threads == 0) {
        err = -EAGAIN;
    }
    if (err == 0) {
        wf_list_push_back(&pool->queue, &job->link);
        pool->queued++;
        pool->submitted++;
        add_user(pool);
    }
    wf_unlock(&pool->lock);
    return err;
}

/* Ends a job that no thread has started; wakes a job that waits. */
static void job_cancelled(struct wf_task *task)
{
    struct job *job = (struct job *)task;
    struct wf_pool *pool = &task->heap->sched->pool;
    wf_lock(&pool->lock);
    bool queued = !wf_list_is_empty(&job->link);
    if (queued) {
        wf_list_remove(&job->link);
        pool->queued--;
    }
    struct wf_task *waiter = job->waiter;
    if (waiter != NULL) {
        wf_task_retain(waiter);
    }
    wf_unlock(&pool->lock);
    if (queued) {
        (void)wf_task_begin(task);
        drop_job(pool, job);
    }
    if (waiter != NULL) {
        wf_task_wake(waiter);
    }
}

static void job_schedule(struct wf_task *task)
{
    (void)task;
    wf_fatal("a blocking job was woken; it never waits");
}

static const struct wf_task_ops job_ops = {
    .kind = "blocking",
    .schedule = job_schedule,
    .cancelled = job_cancelled,
    .destroy = wf_spawn_free,
};

int wf_pool_spawn(struct wf_sched *sched, struct wf_task **out, const struct wf_pool_spec *spec)
{
    if (spec->function == NULL) {
        return -EINVAL;
    }
    unsigned slab = wf_worker_slab(sched->heap);
    struct wf_task *task = wf_spawn_alloc(sched, slab, sizeof(struct job), &job_ops, NULL);
    if (task == NULL) {
        return -ENOMEM;
    }
    struct job *job = (struct job *)task;
    job->spec = *spec;
    job->waiter = NULL;
    wf_list_init(&job->link);
    /* One more reference, for this thread: the job may end before submit() returns. release
     * [H2]: the task is initialized. */
    wf_store_release(&task->state, wf_spawn_state(out == NULL) + WF_STATE_REF);
    int err = submit(sched, job);
    if (err != 0) {
        (void)wf_task_begin(task);
        wf_task_complete(task, err);
        if (out != NULL) {
            wf_task_release(task);
        }
    } else if (out != NULL) {
        *out = task;
    }
    wf_task_release(task);
    return err;
}

void wf_pool_close(struct wf_sched *sched)
{
    struct wf_pool *pool = &sched->pool;
    wf_lock(&pool->lock);
    pool->closed = true;
    while (pool->idle_count > 0) {
        wake_idle(pool);
    }
    struct job *job;
    while ((job = take_job(pool)) != NULL) {
        wf_unlock(&pool->lock);
        (void)wf_task_begin(&job->task);
        drop_job(pool, job);
        wf_lock(&pool->lock);
    }
    wf_unlock(&pool->lock);
}

void wf_pool_join(struct wf_pool *pool)
{
    for (;;) {
        /* acquire [B1]: the handle of the last thread is stored. */
        uint32_t users = wf_load_acquire(&pool->users);
        if (users == 0) {
            break;
        }
        (void)wf_futex_wait(&pool->users, users, WF_NEVER);
    }
    if (pool->has_exited) {
        (void)pthread_join(pool->last_exited, NULL);
        pool->has_exited = false;
    }
}
