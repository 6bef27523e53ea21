/* SPDX-License-Identifier: MIT */
/*
 * fiber_rig.h - a scheduler with everything but the watch, for models of fibers and forks.
 * Nobody sleeps with a timeout.
 */
#ifndef FIBER_RIG_H
#define FIBER_RIG_H

#include "base/alloc.h"
#include "mc.h"
#include "sched/sched.h"
#include "sched/thread.h"
#include "sched/worker.h"

/* Starts it, with so many workers. */
static inline struct wf_sched *fiber_rig_start(unsigned workers)
{
    struct wf_sched_options options = {
        .workers = workers,
        .stealing = true,
        .lifo = true,
        .tick_polls = 128,
        .tick_ns = 500000,
        .inject_target_ns = 1000000,
        .inject_interval_min = 8,
        .inject_interval_max = 255,
        .inject_capacity = 100,
        .blocking_threads = 2,
        .blocking_keep_alive_ns = 1000,
        .seed = 1,
        .allocator = wf_alloc_default,
        .thread_name = "model",
    };
    struct wf_sched *sched =
        wf_alloc_zeroed(&wf_alloc_default, sizeof *sched, _Alignof(struct wf_sched));
    mc_assert(wf_sched_init(sched, &options, NULL) == 0);
    for (unsigned i = 0; i < workers; i++) {
        struct wf_worker *worker = &sched->workers[i];
        /* Fibers pass the worker on: the loop's clock is not looked at. */
        worker->polls_to_clock = 100;
        worker->clock_period = 100;
        mc_assert(wf_thread_start(&worker->thread, wf_worker_main, worker) == 0);
    }
    return sched;
}

#endif
