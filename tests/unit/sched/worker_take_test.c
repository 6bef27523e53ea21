/* SPDX-License-Identifier: MIT */
/*
 * worker_take_test.c - tasks that a joiner may take out of its worker's queues for a join handoff
 * (loan.c).
 */
#include "worker_rig.h"

/* In the middle of a tick: the clock is not due yet. */
static void set_up_in_turn(void)
{
    set_up(test_sched_options(1));
    calm(8);
    worker->polls_to_clock = 10;
}

static struct wf_task *spawn_held(char tag)
{
    struct wf_task *task;
    weft_spec spec = { .body = note_body, .state = &tag, .state_size = 1 };
    CHECK_EQ(wf_spawn(sched, &task, &spec), 0);
    return task;
}

static struct wf_task *spawn_held_in_ring(char tag)
{
    bool lifo = wf_worker_queue_in_order(worker);
    struct wf_task *task = spawn_held(tag);
    wf_worker_queue_as_before(worker, lifo);
    return task;
}

/* Takes the task or must not, as wanted. In both cases everything has run afterwards. */
static void check_take(struct wf_task *task, bool wanted)
{
    CHECK_EQ(wf_worker_take_direct(worker, task), wanted);
    if (wanted) {
        wf_worker_run(worker, task);
    }
    run_all();
    weft_detach((weft_task *)task);
}

static void task_in_lifo_slot_can_be_taken(void)
{
    set_up_in_turn();
    spawn_in_ring('r');
    struct wf_task *task = spawn_held('x');
    uint32_t to_clock = worker->polls_to_clock;
    uint32_t to_inject = worker->polls_to_inject;
    CHECK(wf_worker_take_direct(worker, task));
    CHECK_EQ(worker->polls_to_clock, to_clock - 1);
    CHECK_EQ(worker->polls_to_inject, to_inject - 1);
    CHECK_EQ(worker->lifo_streak, 1);
    CHECK_EQ(count_of(&worker->counters.lifo_hits), 1);
    CHECK(wf_load_relaxed(&worker->lifo) == NULL);
    wf_worker_run(worker, task);
    run_all();
    CHECK_RAN("xr");
    weft_detach((weft_task *)task);
    tear_down();
}

static void lifo_slot_can_be_taken_from_three_times_in_row(void)
{
    for (unsigned others = 0; others < 2; others++) {
        set_up_in_turn();
        if (others > 0) {
            spawn_in_ring('r');
        }
        worker->lifo_streak = WF_WORKER_LIFO_MAX;
        check_take(spawn_held('x'), others == 0);
        CHECK_RAN(others == 0 ? "x" : "rx");
        tear_down();
    }
}

static void head_of_ring_can_be_taken(void)
{
    set_up_in_turn();
    worker->lifo_streak = 2;
    struct wf_task *task = spawn_held_in_ring('r');
    spawn_in_ring('s');
    CHECK(wf_worker_take_direct(worker, task));
    CHECK_EQ(worker->lifo_streak, 0);
    CHECK_EQ(wf_ring_len(&worker->ring), 1);
    wf_worker_run(worker, task);
    run_all();
    CHECK_RAN("rs");
    weft_detach((weft_task *)task);
    tear_down();
}

static void task_that_is_not_next_cannot_be_taken(void)
{
    set_up_in_turn();
    struct wf_task *task = spawn_held_in_ring('r');
    spawn_here('x');
    check_take(task, false);
    CHECK_RAN("xr");
    spawn_in_ring('s');
    check_take(spawn_held_in_ring('t'), false);
    CHECK_RAN("xrst");
    spawn_body(note_body, 'p', WEFT_PINNED_TO(0));
    check_take(spawn_held('y'), false);
    CHECK_EQ(ran_count, 6);
    tear_down();
}

/* A worker whose tick is over first checks the clock or the inject queue. */
static void no_task_can_be_taken_at_end_of_tick(void)
{
    set_up_in_turn();
    worker->polls_to_clock = 1;
    check_take(spawn_held('x'), false);
    worker->polls_to_clock = 2;
    check_take(spawn_held('y'), true);
    worker->polls_to_clock = 10;
    worker->polls_to_inject = 1;
    check_take(spawn_held('z'), false);
    CHECK_RAN("xyz");
    tear_down();
}

TEST_MAIN({
    TEST(task_in_lifo_slot_can_be_taken),
    TEST(lifo_slot_can_be_taken_from_three_times_in_row),
    TEST(head_of_ring_can_be_taken),
    TEST(task_that_is_not_next_cannot_be_taken),
    TEST(no_task_can_be_taken_at_end_of_tick),
})
