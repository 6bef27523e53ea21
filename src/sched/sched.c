/* SPDX-License-Identifier: MIT */
/*
 * sched.c - scheduler of one runtime: start, stop, and which queue a runnable task goes to.
 *
 *   pinned                      the inbox of its worker
 *   woken on one of our workers the LIFO slot of that worker
 *   woken elsewhere             the inject queue
 *
 * Edges: idle.c's [I1]: the fence of wf_sched_deliver().
 */
#include "sched/sched.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fork.h"
#include "sched/heap.h"
#include "sched/job.h"
#include "sched/task.h"
#include "sched/thread.h"
#include "sched/worker.h"

static size_t workers_bytes(const struct wf_sched *sched)
{
    return sched->options.workers * sizeof(struct wf_worker);
}

int wf_sched_init(struct wf_sched *sched, const struct wf_sched_options *options,
                  struct weft_runtime *runtime)
{
    sched->options = *options;
    sched->runtime = runtime;
    sched->fork_number = wf_fork_number;
    wf_thread_signals(&sched->signals);
    sched->heap = wf_heap_create(&options->allocator, sched, options->workers);
    if (sched->heap == NULL) {
        return -ENOMEM;
    }
    sched->workers =
        wf_alloc_zeroed(&options->allocator, workers_bytes(sched), _Alignof(struct wf_worker));
    if (sched->workers == NULL) {
        wf_heap_retire(sched->heap, NULL);
        return -ENOMEM;
    }
    wf_inject_init(&sched->inject, options->inject_capacity);
    wf_idle_init(&sched->idle, options->workers);
    wf_room_init(&sched->room);
    wf_pool_init(&sched->pool);
    wf_stacks_init(&sched->stacks, &options->allocator, options->on_message, options->message_ctx);
    wf_strands_init(&sched->strands, sched);
    for (unsigned i = 0; i < options->workers; i++) {
        wf_worker_init(&sched->workers[i], sched, i);
    }
    return 0;
}

static void free_sched(struct wf_sched *sched)
{
    weft_allocator allocator = sched->options.allocator;
    wf_strands_fini(&sched->strands);
    wf_free(&allocator, sched->workers, workers_bytes(sched), _Alignof(struct wf_worker));
    wf_free(&allocator, sched, sizeof *sched, _Alignof(struct wf_sched));
}

void wf_sched_fini(struct wf_sched *sched)
{
    /* Not earlier: a spawner that was refused during the shutdown may have reserved a stack
     * first. */
    wf_stacks_fini(&sched->stacks);
    wf_heap_retire(sched->heap, free_sched);
}

/* Joins the first count workers, which have no task. */
static void join_workers(struct wf_sched *sched, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        (void)pthread_join(sched->workers[i].thread, NULL);
    }
}

int wf_sched_start(struct wf_sched *sched)
{
    int err = wf_watch_start(sched);
    unsigned started = 0;
    while (err == 0 && started < sched->options.workers) {
        struct wf_worker *worker = &sched->workers[started];
        err = wf_thread_start(&worker->thread, wf_worker_main, worker);
        started += err == 0;
    }
    if (err != 0) {
        /* relaxed: workers that have started exit again, and read no data because of it; the
         * wake-up makes it visible. */
        wf_store_relaxed(&sched->drain.phase, (uint32_t)WF_PHASE_STOPPED);
        wf_sched_wake_all(sched);
        join_workers(sched, started);
        wf_watch_stop(sched);
    }
    return err;
}

void wf_sched_drain(struct wf_sched *sched)
{
    /* The pool first: the walk through all tasks then finds and cancels every job that the pool
     * has accepted. */
    wf_pool_close(sched);
    wf_drain_close(sched);
    wf_room_close(&sched->room);
    /* A blocking job may wait for a timer or for I/O, which only workers serve. */
    wf_pool_join(&sched->pool);
    wf_drain_await(sched);
}

void wf_sched_stop(struct wf_sched *sched)
{
    wf_drain_stop(sched);
    join_workers(sched, sched->options.workers);
    wf_watch_stop(sched);
}

bool wf_sched_has_work(const struct wf_sched *sched)
{
    if (wf_inject_len(&sched->inject) > 0) {
        return true;
    }
    /* Without stealing, only its owner takes from a ring. */
    for (unsigned i = 0; sched->options.stealing && i < sched->options.workers; i++) {
        if (wf_ring_len(&sched->workers[i].ring) > 0 || wf_job_has_public(&sched->workers[i])) {
            return true;
        }
    }
    return false;
}

static bool has_work(void *sched)
{
    return wf_sched_has_work(sched);
}

/* Wakes a worker if necessary. Returns whether it has. */
static bool wake_one(struct wf_sched *sched)
{
    uint32_t worker = wf_idle_notify(&sched->idle, has_work, sched);
    if (worker != WF_IDLE_NOBODY) {
        wf_worker_wake(&sched->workers[worker]);
    }
    return worker != WF_IDLE_NOBODY;
}

void wf_sched_notify(struct wf_sched *sched)
{
    (void)wake_one(sched);
}

void wf_sched_notify_injected(struct wf_sched *sched)
{
    if (wake_one(sched) || wf_idle_searching(&sched->idle) > 0) {
        return;
    }
    /* All workers are busy. If one of them computes and forks, it may let the task run first. */
    for (unsigned i = 0; i < sched->options.workers; i++) {
        if (wf_job_ask_to_yield(&sched->workers[i])) {
            return;
        }
    }
}

void wf_sched_wake_all(struct wf_sched *sched)
{
    for (unsigned i = 0; i < sched->options.workers; i++) {
        wf_worker_wake(&sched->workers[i]);
    }
}

void wf_sched_deliver(struct wf_sched *sched, struct wf_task *task)
{
    WF_ASSERT(task->pin > 0);
    struct wf_worker *target = &sched->workers[task->pin - 1];
    uint32_t index = target->index;
    (void)wf_mpsc_push(&target->inbox, &task->node);
    /* fence [I1]: the worker sees the task when it looks once more before it parks, or is seen
     * parked here. */
    wf_fence_full();
    if (wf_idle_is_parked(&sched->idle, index)) {
        wf_worker_wake(target);
    } else {
        (void)wf_job_ask_to_yield(target);
    }
}

void wf_sched_schedule(struct wf_task *task)
{
    struct wf_sched *sched = task->heap->sched;
    struct wf_worker *worker = wf_worker_current();
    bool here = worker != NULL && worker->sched == sched;
    if (task->pin != 0) {
        if (here && worker->index + 1 == task->pin) {
            wf_worker_push_pinned(worker, task);
        } else {
            wf_sched_deliver(sched, task);
        }
    } else if (here) {
        wf_worker_push(worker, task);
    } else {
        wf_inject_push(&sched->inject, &task->node);
        wf_sched_notify_injected(sched);
    }
}
