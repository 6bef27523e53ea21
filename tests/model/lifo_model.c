/* SPDX-License-Identifier: MIT */
/*
 * lifo_model.c - the LIFO slot of src/sched/worker.c: its owner fills and empties
 * it, thieves (search.c) take from it, and the watch (watch.c) wakes one if need be.
 *
 * On a scheduler made by hand, see sched_rig.h. In the small tests worker 0 has
 * been in one poll for long, so its slot may be robbed, and the test calls what
 * its poll would call; the others search once.
 */
#include <sched.h>

#include "sched_rig.h"

static int taken[RIG_ITEMS_MAX];

/* A data race here is a task that two have taken, or that is not seen whole. */
static void take(struct wf_task *task)
{
    struct item *item = (struct item *)task;
    mc_assert(item->payload == RIG_PAYLOAD);
    taken[item - items]++;
}

static void push(struct item *item)
{
    item->payload = RIG_PAYLOAD;
    wf_worker_push(&rig_workers[0], &item->task);
}

static void take_next(void)
{
    struct wf_task *task = wf_worker_next(&rig_workers[0]);
    if (task != NULL) {
        take(task);
    }
}

/* Searches once. It sleeps if it finds nothing, until the owner is done. */
static void thief(void *arg)
{
    struct wf_worker *worker = arg;
    struct wf_task *task = wf_worker_search(worker);
    if (task != NULL) {
        take(task);
    }
}

static void begin(unsigned thieves)
{
    rig_begin(1 + thieves, 0);
    mc_clock_advance(2 * WF_WORKER_STALL_NS);
    for (unsigned i = 1; i <= thieves; i++) {
        mc_go(thief, &rig_workers[i]);
    }
}

/* Everybody is done: what is left is taken, and nothing was lost or doubled. */
static void end(unsigned count)
{
    rig_stop();
    mc_join();
    for (unsigned i = 0; i < rig.options.workers; i++) {
        struct wf_task *task;
        while ((task = wf_worker_next(&rig_workers[i])) != NULL) {
            take(task);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        mc_assert(taken[i] == 1);
    }
}

/*
 * Goal:   a thief sees the task as its waker left it.
 * Method: the owner fills an empty slot.
 */
static void thief_against_fill(void)
{
    begin(1);
    push(&items[0]);
    end(1);
}

/*
 * Goal:   the same when the fill evicts another task; which is not lost.
 */
static void thief_against_eviction(void)
{
    begin(1);
    push(&items[0]);
    push(&items[1]);
    end(2);
}

/*
 * Goal:   either the owner or the thief takes the task.
 */
static void thief_against_owner(void)
{
    begin(1);
    push(&items[0]);
    take_next();
    end(1);
}

/*
 * Goal:   one of two thieves takes the task.
 */
static void two_thieves(void)
{
    rig_options.search_ns = 0;
    begin(2);
    push(&items[0]);
    end(1);
}

/*
 * Goal:   a task in the slot is run, however long its worker's poll takes.
 * Method: the poll waits for it. The other worker sleeps or not, and so does the
 *         watch; its looks are timeouts, and move its clock.
 */
static void wait_for_slot(struct item *self)
{
    rig_submit(self + 1);
    rig_await(self + 1);
}

static void watch_sees_a_long_poll(void)
{
    rig_begin(2, 2);
    items[0].body = wait_for_slot;
    mc_assert(wf_watch_start(&rig) == 0);
    rig_start();
    rig_submit(&items[0]);
    rig_end(2);
    wf_watch_stop(&rig);
}

/*
 * Goal:   the same when the watch sleeps without a deadline: the fill wakes it.
 * Method: the first task comes when the watch is about to sleep, or sleeps.
 */
static void fill_wakes_the_watch(void)
{
    rig_begin(2, 2);
    items[0].body = wait_for_slot;
    mc_assert(wf_watch_start(&rig) == 0);
    rig_start();
    while (wf_load_relaxed(&rig.watch.asleep) == 0) {
        (void)sched_yield();
    }
    rig_submit(&items[0]);
    rig_end(2);
    wf_watch_stop(&rig);
}

static const struct mc_test tests[] = {
    { .name = "thief_against_fill", .run = thief_against_fill, .moving_clock = true },
    { .name = "thief_against_eviction", .run = thief_against_eviction, .moving_clock = true },
    { .name = "thief_against_owner", .run = thief_against_owner, .moving_clock = true },
    { .name = "two_thieves", .run = two_thieves, .moving_clock = true },
    { .name = "watch_sees_a_long_poll",
      .run = watch_sees_a_long_poll,
      .mode = MC_PCT,
      .runs = 5000,
      .clock_step_ns = 2 * WF_WORKER_STALL_NS,
      .timeouts = 5 },
    { .name = "fill_wakes_the_watch",
      .run = fill_wakes_the_watch,
      .mode = MC_PCT,
      .runs = 2000,
      .steps_max = 20000, /* The worker's clock follows the watch's in small steps. */
      .clock_step_ns = 2 * WF_WORKER_STALL_NS,
      .timeouts = 50 },
};

MC_MAIN(tests)
