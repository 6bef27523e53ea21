/* SPDX-License-Identifier: MIT */
/*
 * sched_rig.h - a scheduler of real workers for model tests, made by hand: no
 * watch, no heap, no pool, no shutdown. So it is small enough to run through many
 * more executions than a whole runtime.
 *
 * Tasks are items of an array. The one that ends last stops the workers; if a
 * wake-up is lost, it is never polled, and the checker sees a deadlock. A task
 * may wait in its poll until another one has ended: that takes two workers,
 * so it fails if the second one is left asleep.
 */
#ifndef SCHED_RIG_H
#define SCHED_RIG_H

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fork.h"
#include "mc.h"
#include "sched/heap.h"
#include "sched/sched.h"
#include "sched/worker.h"

enum {
    RIG_WORKERS_MAX = 3,
    RIG_ITEMS_MAX = 7,
    RIG_PAYLOAD = 42,
};

struct item {
    struct wf_task task;
    void (*body)(struct item *self);
    int payload; /* written by who submits it, read by who polls it */
    int polls;
    int yields;          /* how often it yields before it ends */
    struct wf_park gate; /* opened when it has ended */
};

static struct wf_sched rig;
static struct wf_worker rig_workers[RIG_WORKERS_MAX];
static struct wf_heap rig_heap; /* of which only the scheduler is used */
static struct item items[RIG_ITEMS_MAX];
static _Atomic(uint32_t) rig_left; /* items that have not ended */

static void rig_stop(void)
{
    wf_store_release(&rig.drain.phase, (uint32_t)WF_PHASE_STOPPED);
    wf_sched_wake_all(&rig);
}

static int rig_poll(struct wf_task *task)
{
    struct item *item = (struct item *)task;
    mc_assert(item->payload == RIG_PAYLOAD);
    item->polls++;
    if (item->body != NULL && item->polls == 1) {
        item->body(item);
    }
    if (item->polls <= item->yields) {
        return WEFT_YIELDED;
    }
    wf_park_wake(&item->gate);
    /* relaxed, so that the count orders nothing that the scheduler should. */
    if (wf_fetch_sub_relaxed(&rig_left, 1) == 1) {
        rig_stop();
    }
    return 0;
}

static void rig_destroy(struct wf_task *task)
{
    (void)task;
}

static const struct wf_task_ops rig_ops = {
    .kind = "item",
    .poll = rig_poll,
    .schedule = wf_sched_schedule,
    .destroy = rig_destroy,
};

/* What a test may change before rig_begin(). A worker looks around once before it
 * sleeps. */
static struct wf_sched_options rig_options = {
    .stealing = true,
    .lifo = true,
    .tick_polls = 128,
    .tick_ns = 500000,
    .inject_target_ns = 1000000,
    .inject_interval_min = 8,
    .inject_interval_max = 255,
    .inject_capacity = 100,
    .thread_name = "rig",
};

static void rig_begin(unsigned workers, unsigned count)
{
    rig_options.workers = workers;
    rig.options = rig_options;
    rig.fork_number = wf_fork_number;
    rig.heap = &rig_heap;
    rig_heap.sched = &rig;
    rig.workers = rig_workers;
    wf_inject_init(&rig.inject, rig_options.inject_capacity);
    wf_idle_init(&rig.idle, workers);
    wf_room_init(&rig.room);
    wf_stacks_init(&rig.stacks, &wf_alloc_default, NULL, NULL);
    for (unsigned i = 0; i < workers; i++) {
        wf_worker_init(&rig_workers[i], &rig, i);
        rig_workers[i].closing = true; /* rig_stop() is not to be acknowledged. */
    }
    for (unsigned i = 0; i < count; i++) {
        items[i].task.ops = &rig_ops;
        items[i].task.heap = &rig_heap;
    }
    wf_store_relaxed(&rig_left, count);
    mc_name(&rig, sizeof rig, "sched");
    mc_name(rig_workers, sizeof rig_workers, "workers");
    mc_name(items, sizeof items, "items");
}

static void rig_worker(void *worker)
{
    (void)wf_worker_main(worker);
}

static void rig_start(void)
{
    for (unsigned i = 0; i < rig.options.workers; i++) {
        mc_go(rig_worker, &rig_workers[i]);
    }
}

/* Makes a task of an item and queues it, from wherever this is called. */
static void rig_submit(struct item *item)
{
    item->payload = RIG_PAYLOAD;
    wf_store_release(&item->task.state, WF_STATE_RUNNING | WF_STATE_REF);
    wf_sched_schedule(&item->task);
}

static inline void rig_submit_thread(void *item)
{
    rig_submit(item);
}

/* In a poll: waits until another item has ended. */
static inline void rig_await(struct item *item)
{
    (void)wf_park_sleep(&item->gate, WF_NEVER);
}

/* Everybody is done: each item was polled as often as it should. */
static void rig_end(unsigned count)
{
    mc_join();
    for (unsigned i = 0; i < count; i++) {
        mc_assert(items[i].polls == items[i].yields + 1);
    }
}

#endif
