/* SPDX-License-Identifier: MIT */
#include "sched/worker.h"

#include "base/clock.h"
#include "rt/runtime.h"
#include "sched/heap.h"
#include "worker_rig.h"

static void last_woken_task_runs_first(void)
{
    set_up(test_sched_options(2));
    calm(3);
    spawn_here('a');
    spawn_here('b');
    spawn_here('c');
    CHECK_EQ(wf_ring_len(&worker->ring), 2);
    CHECK_EQ(count_of(&worker->counters.evictions), 2);
    run_all();
    CHECK_RAN("cab");
    CHECK_EQ(count_of(&worker->counters.lifo_hits), 1);
    CHECK_EQ(count_of(&worker->counters.polls), 3);
    CHECK_EQ(count_of(&worker->counters.completed), 3);
    tear_down();
}

static void tasks_run_in_order_without_lifo_slot(void)
{
    struct wf_sched_options options = test_sched_options(2);
    options.lifo = false;
    set_up(options);
    spawn_here('a');
    spawn_here('b');
    spawn_here('c');
    CHECK(wf_load_relaxed(&worker->lifo) == NULL);
    CHECK_EQ(wf_ring_len(&worker->ring), 3);
    run_all();
    CHECK_RAN("abc");
    CHECK_EQ(count_of(&worker->counters.lifo_hits), 0);
    CHECK_EQ(count_of(&worker->counters.evictions), 0);
    tear_down();
}

static void shuffled_lifo_slot_loses_no_task(void)
{
    struct wf_sched_options options = test_sched_options(2);
    set_up(options);
    unsigned seen[26] = { 0 };
    for (char tag = 'a'; tag <= 'z'; tag++) {
        spawn_here(tag);
    }
    run_all();
    CHECK_EQ(ran_count, 26);
    for (size_t i = 0; i < ran_count; i++) {
        seen[ran[i] - 'a']++;
    }
    for (unsigned i = 0; i < 26; i++) {
        CHECK_EQ(seen[i], 1);
    }
    tear_down();
}

/* Each poll spawns the next of a chain, which takes the LIFO slot. */
static unsigned chain_left;

static int chain_body(weft_co *co, void *state)
{
    (void)co;
    note(*(char *)state);
    if (chain_left > 0) {
        chain_left--;
        spawn_body(chain_body, *(char *)state, 0);
    }
    return 0;
}

static void ring_runs_after_three_polls_from_lifo_slot(void)
{
    set_up(test_sched_options(2));
    calm(30);
    chain_left = 9;
    spawn_in_ring('r');
    spawn_in_ring('s');
    spawn_body(chain_body, 'x', 0);
    run_all();
    /* The fourth goes behind r and s. After each of those the slot may be used again, and from
     * then on the chain is alone. */
    CHECK_RAN("xxxrsxxxxxxx");
    tear_down();
}

static void task_from_ring_resets_lifo_streak(void)
{
    set_up(test_sched_options(2));
    calm(30);
    worker->lifo_streak = WF_WORKER_LIFO_MAX;
    spawn_in_ring('r');
    chain_left = 0;
    CHECK(run_one());
    CHECK_EQ(worker->lifo_streak, 0);
    spawn_here('x');
    CHECK(run_one());
    CHECK_EQ(worker->lifo_streak, 1);
    CHECK_RAN("rx");
    tear_down();
}

static void lifo_slot_beyond_cap_goes_through_ring(void)
{
    set_up(test_sched_options(2));
    calm(4);
    spawn_here('x');
    spawn_in_ring('r');
    worker->lifo_streak = WF_WORKER_LIFO_MAX;
    run_all();
    CHECK_RAN("rx");
    CHECK_EQ(count_of(&worker->counters.lifo_hits), 0);
    tear_down();
}

/* Two tasks that wake each other forever. */
static struct {
    weft_waker *waker[2];
    bool stop;
} pair;

static int pair_body(weft_co *co, void *state)
{
    (void)co;
    unsigned me = (unsigned)(*(char *)state - '0');
    if (pair.waker[me] == NULL) {
        pair.waker[me] = weft_waker_current();
    }
    if (pair.waker[1 - me] != NULL) {
        weft_waker_wake(pair.waker[1 - me]);
    }
    return pair.stop ? 0 : WEFT_PENDING;
}

static void start_pair(void)
{
    pair.stop = false;
    pair.waker[0] = NULL;
    pair.waker[1] = NULL;
    spawn_body(pair_body, '0', 0);
    CHECK(run_one());
    spawn_body(pair_body, '1', 0);
    for (unsigned i = 0; i < 10; i++) {
        CHECK(run_one());
    }
}

static void stop_pair(void)
{
    pair.stop = true;
    run_all();
    weft_waker_drop(pair.waker[0]);
    weft_waker_drop(pair.waker[1]);
}

/* Runs until the log grows. Returns the number of polls. */
static unsigned polls_until_noted(void)
{
    size_t before = ran_count;
    unsigned polls = 0;
    while (ran_count == before) {
        CHECK(run_one());
        polls++;
    }
    return polls;
}

static void tasks_that_wake_each_other_do_not_starve_ring(void)
{
    set_up(test_sched_options(2));
    start_pair();
    unsigned worst = 0;
    for (unsigned round = 0; round < 500; round++) {
        uint32_t ahead = wf_ring_len(&worker->ring);
        spawn_in_ring('r');
        unsigned polls = polls_until_noted();
        CHECK_LE(polls, (WF_WORKER_LIFO_MAX + 1) * (ahead + 1));
        worst = ahead == 0 && polls > worst ? polls : worst;
        for (unsigned i = 0; i < round % 5; i++) {
            CHECK(run_one());
        }
    }
    /* 500 rounds also cover the worst case. */
    CHECK_EQ(worst, WF_WORKER_LIFO_MAX + 1);
    stop_pair();
    tear_down();
}

static void tasks_that_wake_each_other_do_not_starve_inject_queue(void)
{
    struct wf_sched_options options = test_sched_options(2);
    options.inject_interval_min = 8;
    set_up(options);
    /* 1 ms and an average of 50 us. */
    CHECK_EQ(wf_interval_polls(&worker->interval), 20);
    start_pair();
    unsigned worst = 0;
    for (unsigned round = 0; round < 500; round++) {
        spawn_outside('i');
        unsigned polls = polls_until_noted();
        CHECK_LE(polls, 20);
        worst = polls > worst ? polls : worst;
        for (unsigned i = 0; i < round % 7; i++) {
            CHECK(run_one());
        }
    }
    CHECK_EQ(worst, 20);
    stop_pair();
    tear_down();
}

static void inject_queue_comes_first_once_per_interval(void)
{
    struct wf_sched_options options = test_sched_options(2);
    options.inject_interval_min = 5;
    options.inject_interval_max = 5;
    set_up(options);
    for (unsigned i = 0; i < 12; i++) {
        spawn_in_ring('r');
    }
    for (char tag = 'A'; tag <= 'C'; tag++) {
        spawn_outside(tag);
    }
    run_all();
    CHECK_RAN("rrrrArrrrBrrrrC");
    CHECK_EQ(count_of(&worker->counters.inject_fetches), 3);
    CHECK_EQ(count_of(&worker->counters.injected_tasks), 3);
    tear_down();
}

static void due_injected_task_runs_before_lifo_slot(void)
{
    set_up(test_sched_options(2));
    calm(1);
    worker->polls_to_inject = 1;
    spawn_here('x');
    spawn_outside('i');
    run_all();
    CHECK_RAN("ix");
    tear_down();
}

static void inject_queue_comes_after_own_queues(void)
{
    set_up(test_sched_options(2));
    calm(1);
    spawn_outside('i');
    spawn_body(note_body, 'p', WEFT_PINNED_TO(0));
    spawn_in_ring('r');
    spawn_here('x');
    run_all();
    CHECK_RAN("xpri");
    tear_down();
}

static void inbox_and_ring_alternate(void)
{
    set_up(test_sched_options(2));
    test_be_worker(NULL);
    for (char tag = 'A'; tag <= 'C'; tag++) {
        spawn_body(note_body, tag, WEFT_PINNED_TO(0));
    }
    test_be_worker(worker);
    spawn_in_ring('a');
    spawn_in_ring('b');
    spawn_in_ring('c');
    run_all();
    CHECK_RAN("AaBbCc");
    tear_down();
}

static void batch_is_fair_share_of_inject_queue(void)
{
    static const struct {
        unsigned workers;
        size_t length;
        size_t batch;
    } rows[] = {
        { 2, 1, 1 },    { 2, 3, 3 },    { 2, 4, 4 },     { 2, 9, 4 },      { 2, 10, 5 },
        { 2, 127, 63 }, { 2, 128, 64 }, { 2, 1000, 64 }, { 1, 5, 5 },      { 1, 70, 64 },
        { 8, 31, 4 },   { 8, 100, 12 }, { 200, 900, 4 }, { 200, 1200, 6 }, { 3, 100, 33 },
    };
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        struct wf_sched_options options = test_sched_options(2);
        options.workers = rows[row].workers;
        set_up(options);
        for (size_t i = 0; i < rows[row].length; i++) {
            spawn_outside('i');
        }
        struct wf_task *task = wf_worker_next(worker);
        CHECK(task != NULL);
        CHECK_EQ(wf_ring_len(&worker->ring) + 1, rows[row].batch);
        CHECK_EQ(wf_inject_len(&sched->inject), rows[row].length - rows[row].batch);
        CHECK_EQ(count_of(&worker->counters.inject_fetches), 1);
        CHECK_EQ(count_of(&worker->counters.injected_tasks), rows[row].batch);
        wf_worker_run(worker, task);
        run_all();
        CHECK_EQ(ran_count, rows[row].length);
        tear_down();
    }
}

static void batch_fills_at_most_half_of_ring(void)
{
    set_up(test_sched_options(2));
    for (unsigned i = 0; i < WF_RING_SLOTS / 2 - 3; i++) {
        spawn_in_ring('r');
    }
    for (unsigned i = 0; i < 100; i++) {
        spawn_outside('i');
    }
    struct wf_task *task = wf_worker_fetch(worker);
    CHECK(task != NULL);
    CHECK_EQ(wf_ring_len(&worker->ring), WF_RING_SLOTS / 2);
    CHECK_EQ(wf_inject_len(&sched->inject), 96);
    wf_worker_run(worker, task);

    /* Half full or full: one task, to run it. */
    for (unsigned i = 0; i < 2; i++) {
        task = wf_worker_fetch(worker);
        CHECK(task != NULL);
        CHECK_EQ(wf_ring_len(&worker->ring), (i + 1) * WF_RING_SLOTS / 2);
        CHECK_EQ(wf_inject_len(&sched->inject), 95 - i);
        wf_worker_run(worker, task);
        for (unsigned at = 0; i == 0 && at < WF_RING_SLOTS / 2; at++) {
            spawn_in_ring('r');
        }
    }
    CHECK_EQ(count_of(&worker->counters.overflows), 0);
    run_all();
    CHECK_EQ(ran_count, WF_RING_SLOTS - 3 + 100);
    tear_down();
}

/*
 * Goal: a task that yields on request goes behind all tasks from outside that came before it, not
 * only one.
 */
static void fetch_ahead_moves_injected_tasks_into_ring(void)
{
    set_up(test_sched_options(1));
    wf_worker_fetch_ahead(worker); /* The inject queue is empty. */
    CHECK_EQ(wf_ring_len(&worker->ring), 0);
    spawn_in_ring('r');
    for (unsigned i = 0; i < 5; i++) {
        spawn_outside('i');
    }
    wf_worker_fetch_ahead(worker);
    CHECK_EQ(wf_ring_len(&worker->ring), 6);
    CHECK_EQ(wf_inject_len(&sched->inject), 0);
    CHECK_EQ(count_of(&worker->counters.injected_tasks), 5);
    while (wf_ring_room(&worker->ring) > 0) {
        spawn_in_ring('r');
    }
    spawn_outside('i');
    wf_worker_fetch_ahead(worker); /* The ring is full. */
    CHECK_EQ(wf_inject_len(&sched->inject), 1);
    CHECK_EQ(count_of(&worker->counters.overflows), 0);
    run_all();
    CHECK_EQ(ran_count, WF_RING_SLOTS + 1);
    tear_down();
}

static unsigned char runs_of[4 * WF_RING_SLOTS];

static int count_body(weft_co *co, void *state)
{
    (void)co;
    runs_of[*(unsigned *)state]++;
    return 0;
}

static void full_ring_overflows_into_inject_queue_without_loss(void)
{
    for (unsigned lifo = 0; lifo < 2; lifo++) {
        struct wf_sched_options options = test_sched_options(2);
        options.lifo = lifo != 0;
        set_up(options);
        memset(runs_of, 0, sizeof runs_of);
        for (unsigned i = 0; i < sizeof runs_of; i++) {
            weft_spec spec = { .body = count_body, .state = &i, .state_size = sizeof i };
            CHECK_EQ(wf_spawn(sched, NULL, &spec), 0);
        }
        size_t lifo_held = wf_load_relaxed(&worker->lifo) != NULL;
        CHECK(count_of(&worker->counters.overflows) > 0);
        CHECK_EQ(wf_ring_len(&worker->ring) + wf_inject_len(&sched->inject) + lifo_held,
                 sizeof runs_of);
        run_all();
        for (unsigned i = 0; i < sizeof runs_of; i++) {
            CHECK_EQ(runs_of[i], 1);
        }
        tear_down();
    }
}

static void yielding_task_goes_behind_others(void)
{
    set_up(test_sched_options(2));
    spawn_yielder('y', 2, 0);
    spawn_in_ring('a');
    spawn_in_ring('b');
    run_all();
    CHECK_RAN("yabyy");
    tear_down();
}

/* Wakes itself while it runs, the other way to be polled again. */
static int self_waking_body(weft_co *co, void *state)
{
    char *left = state;
    (void)co;
    note('w');
    if (--*left == 0) {
        return 0;
    }
    weft_waker_fire(weft_waker_current());
    return WEFT_PENDING;
}

static void task_that_wakes_itself_goes_behind_others(void)
{
    set_up(test_sched_options(2));
    bool lifo = wf_worker_queue_in_order(worker);
    spawn_body(self_waking_body, 3, 0);
    wf_worker_queue_as_before(worker, lifo);
    spawn_in_ring('a');
    spawn_in_ring('b');
    run_all();
    CHECK_RAN("wabww");
    CHECK_EQ(count_of(&worker->counters.polls), 5);
    tear_down();
}

static void yielding_pinned_tasks_do_not_starve_ring(void)
{
    set_up(test_sched_options(2));
    spawn_yielder('P', 3, WEFT_PINNED_TO(0));
    spawn_yielder('Q', 3, WEFT_PINNED_TO(0));
    spawn_in_ring('a');
    spawn_in_ring('b');
    spawn_in_ring('c');
    run_all();
    CHECK_RAN("PaQbPcQPQPQ");
    tear_down();
}

static void yielding_tasks_do_not_starve_pinned_tasks(void)
{
    set_up(test_sched_options(2));
    spawn_yielder('y', 4, 0);
    spawn_body(note_body, 'P', WEFT_PINNED_TO(0));
    spawn_body(note_body, 'Q', WEFT_PINNED_TO(0));
    run_all();
    CHECK_RAN("PyQyyyy");
    tear_down();
}

/* Another thread spawns a pinned task while this task runs, which then yields. */
static int inviting_body(weft_co *co, void *state)
{
    int err;
    (void)state;
    WEFT_BEGIN(co);
    note('Y');
    test_be_worker(NULL);
    spawn_body(note_body, 'P', WEFT_PINNED_TO(0));
    test_be_worker(worker);
    WEFT_YIELD(co, err);
    CHECK_EQ(err, 0);
    note('Y');
    WEFT_END(co, 0);
}

static void yielding_pinned_task_goes_behind_inbox(void)
{
    set_up(test_sched_options(2));
    spawn_body(inviting_body, 0, WEFT_PINNED_TO(0));
    run_all();
    CHECK_RAN("YPY");
    tear_down();
}

static void pinned_task_waits_for_its_own_worker(void)
{
    set_up(test_sched_options(2));
    struct wf_worker *other = &sched->workers[1];
    spawn_body(note_body, 'P', WEFT_PINNED_TO(1));
    spawn_yielder('Y', 2, WEFT_PINNED_TO(1));
    CHECK(!wf_mpsc_is_empty(&other->inbox));
    run_all();
    CHECK_RAN("");

    worker = other;
    test_be_worker(other);
    run_all();
    CHECK_RAN("PYYY");
    CHECK_EQ(count_of(&other->counters.completed), 2);
    CHECK_EQ(count_of(&other->counters.stolen_tasks), 0);
    tear_down();
}

static void pinned_picks_current_worker_or_rotates_outside(void)
{
    set_up(test_sched_options(2));
    spawn_body(note_body, 'h', WEFT_PINNED);
    CHECK(run_one());
    CHECK_RAN("h");

    test_be_worker(NULL);
    spawn_body(note_body, 'i', WEFT_PINNED);
    spawn_body(note_body, 'j', WEFT_PINNED);
    for (unsigned i = 0; i < 2; i++) {
        worker = &sched->workers[i];
        test_be_worker(worker);
        CHECK(run_one());
        CHECK(!run_one());
    }
    tear_down();
}

static void poll_age_counts_from_first_look(void)
{
    set_up(test_sched_options(2));
    spawn_in_ring('a');
    spawn_in_ring('b');
    CHECK(run_one());
    CHECK_EQ(wf_worker_poll_age(worker, 1000), 0);
    CHECK_EQ(wf_worker_poll_age(worker, 1000), 0);
    CHECK_EQ(wf_worker_poll_age(worker, 51000), 50000);
    CHECK(run_one());
    CHECK_EQ(wf_worker_poll_age(worker, 90000), 0);
    CHECK_EQ(wf_worker_poll_age(worker, 90001), 1);
    tear_down();
}

static void time_is_counted_per_state(void)
{
    set_up(test_sched_options(2));
    int64_t before = wf_clock_now();
    wf_worker_enter(worker, WEFT_WORKER_SEARCHING);
    while (wf_clock_now() < before + 2 * WEFT_MS) {
    }
    wf_worker_enter(worker, WEFT_WORKER_PARKED);
    uint64_t searching = count_of(&worker->counters.time_ns[WEFT_WORKER_SEARCHING]);
    CHECK_GE(searching, WEFT_MS);
    CHECK_LE(searching, wf_clock_now() - before);
    wf_worker_enter(worker, WEFT_WORKER_PARKED);
    wf_worker_enter(worker, WEFT_WORKER_STOPPED);
    CHECK_EQ(count_of(&worker->counters.time_ns[WEFT_WORKER_SEARCHING]), searching);
    CHECK_EQ(count_of(&worker->counters.state), WEFT_WORKER_STOPPED);
    tear_down();
}

static void tasks_of_worker_come_from_its_own_slab(void)
{
    set_up(test_sched_options(2));
    CHECK_EQ(wf_worker_slab(sched->heap), 0);
    test_be_worker(&sched->workers[1]);
    CHECK_EQ(wf_worker_slab(sched->heap), 1);
    test_be_worker(NULL);
    CHECK_EQ(wf_worker_slab(sched->heap), sched->heap->outside);
    tear_down();
}

/*
 * On a started runtime: counts its polls, and at some of them puts a task into the inject queue
 * as if from outside.
 */
struct ticker {
    weft_runtime *rt;
    unsigned *polls;
    unsigned *injected_at;
    unsigned *worst;
    unsigned rounds;
};

static int injected_body(weft_co *co, void *state)
{
    struct ticker *self = state;
    (void)co;
    unsigned waited = *self->polls - *self->injected_at;
    *self->worst = waited > *self->worst ? waited : *self->worst;
    *self->injected_at = 0;
    return 0;
}

static int ticker_body(weft_co *co, void *state)
{
    struct ticker *self = state;
    (void)co;
    ++*self->polls;
    if (*self->injected_at == 0) {
        if (self->rounds == 0) {
            return 0;
        }
        self->rounds--;
        weft_spec spec = { .body = injected_body, .state = self, .state_size = sizeof *self };
        struct wf_worker *here = wf_worker_current();
        test_be_worker(NULL);
        CHECK_EQ(weft_runtime_spawn(self->rt, NULL, &spec), 0);
        test_be_worker(here);
        *self->injected_at = *self->polls;
    }
    return WEFT_YIELDED;
}

/*
 * Goal:   a tick ends after tick_polls polls, and its end checks the inject queue even if the
 *         interval is much longer.
 * Method: the only task yields forever, so the ring is never empty. From time to time it injects
 *         a task, which counts the polls it waited for.
 */
static void tick_ends_after_its_polls_and_checks_inject_queue(void)
{
    unsigned polls = 0;
    unsigned injected_at = 0;
    unsigned worst = 0;
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 1;
    config.tick_polls = 7;
    config.tick_ns = 1000 * 1000 * 1000;
    config.inject_interval_min = 65535;
    config.inject_interval_max = 65535;
    weft_runtime *rt;
    CHECK_EQ(weft_runtime_create(&rt, &config), 0);
    struct ticker state = { rt, &polls, &injected_at, &worst, 200 };
    weft_spec spec = { .body = ticker_body, .state = &state, .state_size = sizeof state };
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn(rt, &task, &spec), 0);
    CHECK_EQ(weft_join(task, NULL, WEFT_NEVER), 0);
    CHECK_LE(worst, 7);
    CHECK_GE(worst, 6);
    weft_worker_stats stats;
    CHECK_EQ(weft_worker_stats_read(rt, 0, &stats), 0);
    CHECK_EQ(stats.inject_interval, 65535);
    CHECK_GE(stats.average_poll_ns, 1);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(last_woken_task_runs_first),
    TEST(tasks_run_in_order_without_lifo_slot),
    TEST(shuffled_lifo_slot_loses_no_task),
    TEST(ring_runs_after_three_polls_from_lifo_slot),
    TEST(task_from_ring_resets_lifo_streak),
    TEST(lifo_slot_beyond_cap_goes_through_ring),
    TEST(tasks_that_wake_each_other_do_not_starve_ring),
    TEST(tasks_that_wake_each_other_do_not_starve_inject_queue),
    TEST(inject_queue_comes_first_once_per_interval),
    TEST(due_injected_task_runs_before_lifo_slot),
    TEST(inject_queue_comes_after_own_queues),
    TEST(inbox_and_ring_alternate),
    TEST(batch_is_fair_share_of_inject_queue),
    TEST(batch_fills_at_most_half_of_ring),
    TEST(fetch_ahead_moves_injected_tasks_into_ring),
    TEST(full_ring_overflows_into_inject_queue_without_loss),
    TEST(yielding_task_goes_behind_others),
    TEST(task_that_wakes_itself_goes_behind_others),
    TEST(yielding_pinned_tasks_do_not_starve_ring),
    TEST(yielding_tasks_do_not_starve_pinned_tasks),
    TEST(yielding_pinned_task_goes_behind_inbox),
    TEST(pinned_task_waits_for_its_own_worker),
    TEST(pinned_picks_current_worker_or_rotates_outside),
    TEST(poll_age_counts_from_first_look),
    TEST(time_is_counted_per_state),
    TEST(tasks_of_worker_come_from_its_own_slab),
    TEST(tick_ends_after_its_polls_and_checks_inject_queue),
})
