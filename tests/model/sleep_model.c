/* SPDX-License-Identifier: MIT */
/*
 * sleep_model.c - src/sched/worker.c, search.c and sched.c: no task waits in a
 * queue while a worker that could run it sleeps. On a scheduler made by hand, see
 * sched_rig.h.
 */
#include "sched_rig.h"

/*
 * Goal:   a task that is submitted from outside is run.
 * Method: one worker goes to sleep meanwhile.
 */
static void submit_to_one_worker(void)
{
    rig_begin(1, 1);
    rig_start();
    rig_submit(&items[0]);
    rig_end(1);
}

/*
 * Goal:   the same with two workers, of which one may be searching.
 */
static void submit_to_two_workers(void)
{
    rig_begin(2, 1);
    rig_start();
    rig_submit(&items[0]);
    rig_end(1);
}

/*
 * Goal:   two submitters do not rely on each other.
 */
static void two_submitters(void)
{
    rig_begin(2, 2);
    rig_start();
    mc_go(rig_submit_thread, &items[0]);
    rig_submit(&items[1]);
    rig_end(2);
}

/*
 * Goal:   a task that is evicted from the LIFO slot is announced at once.
 * Method: the poll that evicts it does not end before it has run.
 */
static void evict_and_wait(struct item *self)
{
    (void)self;
    rig_submit(&items[1]);
    rig_submit(&items[2]);
    rig_await(&items[1]);
}

static void eviction_is_announced(void)
{
    rig_begin(2, 3);
    items[0].body = evict_and_wait;
    rig_start();
    rig_submit(&items[0]);
    rig_end(3);
}

static void wait_for_next(struct item *self)
{
    rig_await(self + 1);
}

/*
 * Goal:   the rest of a batch from the inject queue is announced.
 * Method: both tasks come in one batch, and the first waits for the second. They
 *         are there before the workers, or come while those go to sleep: then the
 *         batch is found in a search, and announced by the look of who ends it.
 */
static void batch_is_announced(void)
{
    bool early = mc_choose(2) == 0;
    rig_begin(2, 2);
    items[0].body = wait_for_next;
    if (early) {
        rig_submit(&items[0]);
        rig_submit(&items[1]);
        rig_start();
    } else {
        rig_start();
        rig_submit(&items[0]);
        rig_submit(&items[1]);
    }
    rig_end(2);
}

/*
 * Goal:   the rest of a batch that comes at the end of a tick is announced.
 * Method: each poll is a tick. The second and third task come during the first
 *         one's poll, and the second waits for the third. The other worker may look
 *         for them while they are in no queue.
 */
static struct wf_park has_begun;
static struct wf_park may_end;

static void begin_and_wait(struct item *self)
{
    (void)self;
    wf_park_wake(&has_begun);
    (void)wf_park_sleep(&may_end, WF_NEVER);
}

static void batch_of_a_tick_is_announced(void)
{
    rig_options.tick_polls = 1;
    rig_begin(2, 3);
    items[0].body = begin_and_wait;
    items[1].body = wait_for_next;
    rig_start();
    rig_submit(&items[0]);
    (void)wf_park_sleep(&has_begun, WF_NEVER);
    rig_submit(&items[1]);
    rig_submit(&items[2]);
    wf_park_wake(&may_end);
    rig_end(3);
}

/*
 * Goal:   the rest of a stolen batch is announced.
 * Method: the first task fills its worker's ring and waits for the first one in
 *         there, which is stolen with the next one and waits for that.
 */
static void fill_and_wait(struct item *self)
{
    for (unsigned i = 1; i <= 4; i++) {
        rig_submit(self + i);
    }
    rig_await(self + 1);
}

static void stolen_batch_is_announced(void)
{
    rig_begin(3, 5);
    items[0].body = fill_and_wait;
    items[1].body = wait_for_next;
    rig_start();
    rig_submit(&items[0]);
    rig_end(5);
}

/*
 * Goal:   a searcher that stands in for a stalled worker stops being a searcher. What it fetches
 *         or steals after that is announced.
 * Method: as in the two tests above. The monitor has asked for a stand-in before the workers
 *         start, so the first one that searches does it. The thief needs a second round to steal
 *         something after it has stood in.
 */
static void ask_for_stand_in(void)
{
    wf_store_relaxed(&rig.watch.overdue, 1u);
}

static void batch_after_stand_in_is_announced(void)
{
    rig_begin(2, 2);
    items[0].body = wait_for_next;
    ask_for_stand_in();
    rig_start();
    rig_submit(&items[0]);
    rig_submit(&items[1]);
    rig_end(2);
}

static void stolen_batch_after_stand_in_is_announced(void)
{
    rig_options.search_ns = 10;
    rig_begin(3, 5);
    items[0].body = fill_and_wait;
    items[1].body = wait_for_next;
    ask_for_stand_in();
    rig_start();
    rig_submit(&items[0]);
    rig_end(5);
}

/*
 * Goal:   a task that yields is announced, if another one is polled first.
 * Method: that one is in the LIFO slot, and waits for the end of the first.
 */
static void wait_for_first(struct item *self)
{
    (void)self;
    rig_await(&items[0]);
}

static void fill_slot(struct item *self)
{
    rig_submit(self + 1);
}

static void yielding_task_is_announced(void)
{
    rig_begin(2, 2);
    items[0].body = fill_slot;
    items[0].yields = 1;
    items[1].body = wait_for_first;
    rig_start();
    rig_submit(&items[0]);
    rig_end(2);
}

/*
 * Goal:   a task that is moved from the LIFO slot to the ring is announced.
 * Method: a chain of tasks, each in the slot of the one before; the fourth is
 *         moved, and the pinned one that is polled instead waits for it.
 */
static void wait_for_fifth(struct item *self)
{
    (void)self;
    rig_await(&items[4]);
}

static void fill_slot_and_inbox(struct item *self)
{
    items[5].task.pin = (uint16_t)(wf_worker_current()->index + 1);
    rig_submit(&items[5]);
    rig_submit(self + 1);
}

static void task_after_a_streak_is_announced(void)
{
    rig_begin(2, 6);
    items[0].body = fill_slot_and_inbox;
    items[1].body = fill_slot;
    items[2].body = fill_slot;
    items[3].body = fill_slot;
    items[5].body = wait_for_fifth;
    rig_start();
    rig_submit(&items[0]);
    rig_end(6);
}

/*
 * Goal:   what does not fit into the ring is announced, also without stealing.
 * Method: the poll that pushes it does not end before the last of it has run.
 */
static void overflow_and_wait(struct item *self)
{
    for (unsigned i = 1; i <= 6; i++) {
        rig_submit(self + i);
    }
    rig_await(self + 5);
}

static void overflow_is_announced(void)
{
    rig_options.stealing = false;
    rig_begin(2, 7);
    items[0].body = overflow_and_wait;
    rig_start();
    rig_submit(&items[0]);
    rig_end(7);
}

/*
 * Goal:   a pinned task is run by its worker, wherever it comes from.
 * Method: it is delivered from outside while its worker goes to sleep.
 */
static void pinned_from_outside(void)
{
    rig_begin(1, 1);
    items[0].task.pin = 1;
    rig_start();
    rig_submit(&items[0]);
    rig_end(1);
}

/*
 * Goal:   the same for a task that another worker wakes.
 * Method: worker 0 runs a task that wakes one of worker 1, and then waits for it.
 */
static void wake_and_wait(struct item *self)
{
    rig_submit(self + 1);
    rig_await(self + 1);
}

static void pinned_from_another_worker(void)
{
    rig_begin(2, 2);
    items[0].task.pin = 1;
    items[0].body = wake_and_wait;
    items[1].task.pin = 2;
    rig_start();
    rig_submit(&items[0]);
    rig_end(2);
}

/*
 * Goal:   a worker that wakes by itself and one that is woken do not get mixed up.
 * Method: the park timeout fires at any time, beside two submitters.
 */
static void park_timeout_loses_nothing(void)
{
    rig_options.park_timeout_ns = 1000;
    two_submitters();
}

/*
 * Goal:   with a park timeout work that nobody was told of is found, and counted.
 * Method: it is pushed with the fence of a notification, but without one.
 */
static void unannounced_work_is_found(void)
{
    rig_options.park_timeout_ns = 1000;
    rig_begin(1, 1);
    rig_start();
    items[0].payload = RIG_PAYLOAD;
    wf_store_release(&items[0].task.state, WF_STATE_RUNNING | WF_STATE_REF);
    wf_inject_push(&rig.inject, &items[0].task.node);
    wf_fence_full();
    rig_end(1);
    mc_note((int)wf_counter_read(&rig_workers[0].counters.unannounced_work));
}

static const struct mc_test tests[] = {
    { .name = "submit_to_one_worker", .run = submit_to_one_worker },
    { .name = "submit_to_two_workers",
      .run = submit_to_two_workers,
      .preemptions = 1,
      .deep_preemptions = 2,
      .seconds_max = 600 },
    { .name = "pinned_from_outside", .run = pinned_from_outside },
    { .name = "unannounced_work_is_found",
      .run = unannounced_work_is_found,
      .timeouts = 3,
      .seen = MC_OUTCOMES(0, 1),
      .seen_only = true },
    { .name = "two_submitters", .run = two_submitters, .mode = MC_PCT, .runs = 5000 },
    { .name = "park_timeout_loses_nothing",
      .run = park_timeout_loses_nothing,
      .mode = MC_PCT,
      .runs = 5000,
      .timeouts = 2 },
    { .name = "pinned_from_another_worker",
      .run = pinned_from_another_worker,
      .mode = MC_PCT,
      .runs = 2000 },
    { .name = "eviction_is_announced", .run = eviction_is_announced, .mode = MC_PCT, .runs = 2000 },
    { .name = "batch_is_announced", .run = batch_is_announced, .mode = MC_PCT, .runs = 5000 },
    { .name = "batch_of_a_tick_is_announced",
      .run = batch_of_a_tick_is_announced,
      .mode = MC_PCT,
      .runs = 2000 },
    { .name = "stolen_batch_is_announced",
      .run = stolen_batch_is_announced,
      .mode = MC_RANDOM, /* A thief goes round while another one is at the ring. */
      .runs = 5000 },
    { .name = "batch_after_stand_in_is_announced",
      .run = batch_after_stand_in_is_announced,
      .mode = MC_PCT,
      .runs = 5000 },
    { .name = "stolen_batch_after_stand_in_is_announced",
      .run = stolen_batch_after_stand_in_is_announced,
      .mode = MC_RANDOM, /* As above. */
      .runs = 10000,
      .clock_step_ns = 1 },
    { .name = "yielding_task_is_announced",
      .run = yielding_task_is_announced,
      .mode = MC_PCT,
      .runs = 2000 },
    { .name = "task_after_a_streak_is_announced",
      .run = task_after_a_streak_is_announced,
      .mode = MC_PCT,
      .runs = 2000 },
    { .name = "overflow_is_announced", .run = overflow_is_announced, .mode = MC_PCT, .runs = 2000 },
};

MC_MAIN(tests)
