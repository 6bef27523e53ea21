/* SPDX-License-Identifier: MIT */
/*
 * blocking.c - threads for functions that block.
 *
 * A job is a task: it is joined, detached and cancelled like any other. It waits
 * in the pool's queue instead of a run queue, and its poll is the function.
 *
 * A thread is started when a job comes and none is idle, up to the limit; it ends
 * after a time without work. Idle threads form a stack: the one that worked last
 * gets the next job, so those that are not needed get to their timeout. A thread
 * whose timeout comes together with a job finds itself taken off the stack; it
 * then takes the wake that is on its way.
 *
 * Threads end one by one, and somebody must join each of them: each one that
 * ends joins the one that ended before it, and the stopping thread the last.
 *
 * Everything is under one lock, which is never held while a function runs.
 *
 * Edges.
 * [B1] the end of a thread releases the count, the stopping thread acquires it:
 *      the last one's handle is seen.
 * And heap.c's [H2]: the store of the state word.
 */
#include "sched/blocking.h"

#include <errno.h>

#include <weft/task.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/futex.h"
#include "sched/heap.h"
#include "sched/park.h"
#include "sched/sched.h"
#include "sched/spawn.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

struct job {
    struct wf_task task;
    int (*function)(void *arg);
    void *arg;
    struct wf_list link; /* under the pool's lock */
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

static void end_job(struct wf_pool *pool, struct job *job, int result)
{
    wf_lock(&pool->lock);
    pool->completed++;
    wf_unlock(&pool->lock);
    wf_task_complete(&job->task, result);
}

/* Under the lock. NULL if none is queued. */
static struct job *take_job(struct wf_pool *pool)
{
    struct wf_list *link = wf_list_pop_front(&pool->queue);
    if (link == NULL) {
        return NULL;
    }
    pool->queued--;
    return wf_container_of(link, struct job, link);
}

static void run_job(struct wf_sched *sched, struct job *job)
{
    struct wf_pool *pool = &sched->pool;
    uint64_t state = wf_state_begin(&job->task.state);
    if (wf_state_must_cancel(state)) {
        end_job(pool, job, WEFT_ECANCELED);
        return;
    }
    struct wf_thread *self = wf_thread_self();
    if (self != NULL) {
        self->running = &job->task;
        self->runtime = sched->runtime;
    }
    int result = job->function(job->arg);
    if (self != NULL) {
        self->running = NULL;
    }
    if (result == WEFT_PENDING || result == WEFT_YIELDED) {
        wf_fatal("weft_spawn_blocking: the function returned WEFT_PENDING or WEFT_YIELDED; "
                 "it must return its result");
    }
    end_job(pool, job, result);
}

/* Sleeps until there may be a job. Returns false if the thread is to end; the
 * lock is held before and after. */
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
    /* Taken off the stack together with the timeout: the wake is coming. */
    wf_unlock(&pool->lock);
    (void)wf_park_sleep(&self->park, WF_NEVER);
    wf_lock(&pool->lock);
    return true;
}

/* Leaves its handle to the next one that ends; the lock is held, and released. */
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
    /* release [B1]: the handle is in place. */
    if (wf_fetch_sub_release(&pool->running, 1) == 1) {
        wf_futex_wake(&pool->running, 1);
    }
}

static void *pool_main(void *arg)
{
    struct wf_sched *sched = arg;
    struct wf_pool *pool = &sched->pool;
    struct pool_thread self = { 0 };
    wf_list_init(&self.link);
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
    return NULL;
}

/* Under the lock. */
static void wake_idle(struct wf_pool *pool)
{
    struct wf_list *link = wf_list_pop_front(&pool->idle);
    if (link != NULL) {
        pool->idle_count--;
        wf_park_wake(&wf_container_of(link, struct pool_thread, link)->park);
    }
}

/*
 * Starts a thread for a job that was queued. If the system refuses, another
 * thread runs the job later; if there is none, it is taken back: -EAGAIN.
 */
static int start_thread(struct wf_sched *sched, struct job *job)
{
    struct wf_pool *pool = &sched->pool;
    pthread_t thread;
    /* relaxed: the stopping thread reads it after it took the lock. */
    (void)wf_fetch_add_relaxed(&pool->running, 1);
    int err = wf_thread_start(&thread, pool_main, sched, sched->options.thread_name, "block");
    if (err == 0) {
        return 0;
    }
    wf_lock(&pool->lock);
    pool->threads--;
    bool taken_back = pool->threads == 0 && !wf_list_is_empty(&job->link);
    if (taken_back) {
        wf_list_remove(&job->link);
        pool->queued--;
        pool->submitted--;
    }
    wf_unlock(&pool->lock);
    /* release [B1]: this thread never was. */
    if (wf_fetch_sub_release(&pool->running, 1) == 1) {
        wf_futex_wake(&pool->running, 1);
    }
    return taken_back ? -EAGAIN : 0;
}

static int submit(struct wf_sched *sched, struct job *job)
{
    struct wf_pool *pool = &sched->pool;
    wf_lock(&pool->lock);
    if (pool->closed) {
        wf_unlock(&pool->lock);
        return WEFT_ESHUTDOWN;
    }
    wf_list_push_back(&pool->queue, &job->link);
    pool->queued++;
    pool->submitted++;
    bool start = pool->idle_count == 0 && pool->threads < sched->options.blocking_threads;
    if (start) {
        pool->threads++;
    } else {
        wake_idle(pool);
    }
    wf_unlock(&pool->lock);
    return start ? start_thread(sched, job) : 0;
}

/* Ends a job that no thread has begun. */
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
    wf_unlock(&pool->lock);
    if (queued) {
        (void)wf_state_begin(&task->state);
        end_job(pool, job, WEFT_ECANCELED);
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

int wf_pool_spawn(struct wf_sched *sched, struct wf_task **out, int (*function)(void *arg),
                  void *arg)
{
    if (function == NULL) {
        return -EINVAL;
    }
    unsigned slab = wf_worker_slab(sched->heap);
    struct wf_task *task = wf_spawn_alloc(sched, slab, sizeof(struct job), &job_ops, NULL);
    if (task == NULL) {
        return -ENOMEM;
    }
    struct job *job = (struct job *)task;
    job->function = function;
    job->arg = arg;
    wf_list_init(&job->link);
    /* One reference more, for this thread: the job may be over before submit
     * returns. release [H2]: the task is whole. */
    wf_store_release(&task->state, wf_spawn_state(out == NULL) + WF_STATE_REF);
    int err = submit(sched, job);
    if (err != 0) {
        (void)wf_state_begin(&task->state);
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
        (void)wf_state_begin(&job->task.state);
        end_job(pool, job, WEFT_ECANCELED);
        wf_lock(&pool->lock);
    }
    wf_unlock(&pool->lock);
}

void wf_pool_join(struct wf_pool *pool)
{
    for (;;) {
        /* acquire [B1]: the last one's handle is in place. */
        uint32_t running = wf_load_acquire(&pool->running);
        if (running == 0) {
            break;
        }
        (void)wf_futex_wait(&pool->running, running, WF_NEVER);
    }
    if (pool->has_exited) {
        (void)pthread_join(pool->last_exited, NULL);
        pool->has_exited = false;
    }
}
