/* SPDX-License-Identifier: MIT */
/*
 * scheduler.c - scheduler without a runtime: what the runtime does before it starts the threads.
 */
#include "scheduler.h"

#include "base/alloc.h"
#include "sched/heap.h"
#include "test.h"

struct wf_sched_options test_sched_options(unsigned workers)
{
    return (struct wf_sched_options){
        .workers = workers,
        .stealing = true,
        .lifo = true,
        .tick_polls = 128,
        .tick_ns = 500 * 1000,
        .inject_target_ns = 1000 * 1000,
        .inject_interval_min = 255,
        .inject_interval_max = 255,
        .inject_capacity = 65536,
        .blocking_threads = 4,
        .blocking_keep_alive_ns = 1000 * 1000,
        .seed = test_seed(),
        .allocator = wf_alloc_default,
        .thread_name = "weft",
    };
}

struct wf_sched *test_sched_create(const struct wf_sched_options *options)
{
    struct wf_sched *sched =
        wf_alloc_zeroed(&wf_alloc_default, sizeof *sched, _Alignof(struct wf_sched));
    CHECK(sched != NULL);
    CHECK_EQ(wf_sched_init(sched, options, NULL), 0);
    return sched;
}

bool test_has_joiner(const weft_task *task)
{
    const struct wf_task *own = (const struct wf_task *)task;
    struct wf_lock *lock = wf_heap_join_lock(own->heap, own);
    wf_lock(lock);
    bool has = own->joiner != NULL;
    wf_unlock(lock);
    return has;
}

void test_be_worker(struct wf_worker *worker)
{
    WF_TLS_STORE(wf_tls_worker, worker);
}

void test_postpone_clock(void)
{
    struct wf_worker *worker = wf_worker_current();
    worker->polls_to_clock = 10;
    worker->clock_period = 10;
}
