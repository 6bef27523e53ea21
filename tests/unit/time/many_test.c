/* SPDX-License-Identifier: MIT */
/*
 * many_test.c - many concurrent sleeps, and their cost: no allocation.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

#include "base/rng.h"
#include "gate.h"
#include "ledger.h"
#include "rt.h"
#include "test.h"
#include "virtual.h"

/* --- Many sleeps ---------------------------------------------------------------------- */

enum {
    LONGEST_MS = 1000,
    STEP_MS = 10,
};

static _Atomic(uint64_t) asleep;
static _Atomic(uint64_t) slept; /* only sleepers that are left alone */

struct sleeper {
    weft_sleep_future sleep;
    weft_time deadline;
    bool left_alone;
};

static int sleeper_task(weft_co *co, void *state)
{
    struct sleeper *self = state;
    int err = 0;
    WEFT_BEGIN(co);
    weft_sleep_init(&self->sleep, self->deadline, 0);
    (void)atomic_fetch_add(&asleep, 1);
    WEFT_AWAIT(co, err, &self->sleep.future);
    CHECK(err != 0 || weft_now() >= self->deadline);
    if (self->left_alone) {
        CHECK_EQ(err, 0);
        CHECK_LE(weft_now(), self->deadline + STEP_MS * WEFT_MS);
        (void)atomic_fetch_add(&slept, 1);
    }
    WEFT_END(co, err);
}

struct crowd {
    weft_runtime *rt;
    weft_time start;
    uint64_t count;
    weft_task **tasks;
    uint64_t due[LONGEST_MS + 1]; /* number of sleepers left alone that are due in this ms */
};

static void crowd_begin(struct crowd *crowd, struct wf_rng *rng)
{
    crowd->start = virtual_begin();
    crowd->rt = test_start(8);
    crowd->count = test_scale(100000);
    crowd->tasks = calloc(crowd->count, sizeof(weft_task *));
    CHECK(crowd->tasks != NULL);
    atomic_store(&asleep, 0);
    atomic_store(&slept, 0);
    for (uint64_t i = 0; i < crowd->count; i++) {
        uint32_t ms = wf_rng_below(rng, LONGEST_MS + 1);
        struct sleeper sleeper = { .deadline = crowd->start + ms * WEFT_MS,
                                   .left_alone = i % 2 == 0 };
        crowd->due[ms] += sleeper.left_alone;
        weft_spec spec = { .body = sleeper_task, .state = &sleeper, .state_size = sizeof sleeper };
        CHECK_EQ(weft_runtime_spawn_wait(crowd->rt, &crowd->tasks[i], &spec, WEFT_NEVER), 0);
    }
    test_wait_for(&asleep, crowd->count);
}

static void crowd_end(struct crowd *crowd)
{
    uint64_t cancelled = 0;
    for (uint64_t i = 0; i < crowd->count; i++) {
        int result = test_join(crowd->tasks[i]);
        CHECK(result == 0 || (result == WEFT_ECANCELED && i % 2 == 1));
        cancelled += result == WEFT_ECANCELED;
    }
    CHECK_GE(cancelled, 1);
    CHECK_LT(cancelled, crowd->count / 2);
    weft_runtime_destroy(crowd->rt);
    free(crowd->tasks);
    virtual_end();
}

/*
 * Goal:   of many sleeps none ends early, none is lost, and each ends once, while others are
 *         canceled from outside.
 * Method: 8 workers. The clock advances in steps. After each step all sleepers that are due
 *         must end before the clock advances again. Every second task is canceled, at a random
 *         step.
 */
static void many_sleeps_end_each_at_its_own_time(void)
{
    static struct crowd crowd;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    crowd = (struct crowd){ .count = 0 };
    crowd_begin(&crowd, &rng);
    uint64_t due = crowd.due[0];
    uint64_t cancel_at = 1;
    for (int ms = STEP_MS; ms <= LONGEST_MS; ms += STEP_MS) {
        uint64_t until = crowd.count * (uint64_t)ms / LONGEST_MS;
        for (; cancel_at < until; cancel_at += 2) {
            weft_cancel(crowd.tasks[cancel_at]);
        }
        weft_clock_advance(STEP_MS * WEFT_MS);
        for (int i = ms - STEP_MS + 1; i <= ms; i++) {
            due += crowd.due[i];
        }
        test_wait_for(&slept, due);
        CHECK_EQ(atomic_load(&slept), due);
    }
    crowd_end(&crowd);
}

/* --- No allocation --------------------------------------------------------------------- */

enum {
    STRANDS = 40,
    ROUNDS = 20,
};

/* Uses all time operations in a loop. */
struct strand {
    weft_time begin;
    struct gate gate;
    weft_timer timer;
    weft_interval interval;
    weft_sleep_future sleep;
    weft_timeout_future timeout;
    int round;
};

static _Atomic(uint64_t) strands_done;
static _Atomic(uint64_t) strands_may_end;

static void noop(void *arg)
{
    (void)arg;
}

static int strand_fiber(void *arg)
{
    struct strand *self = arg;
    CHECK_EQ(weft_sleep_until(self->begin), 0);
    weft_interval_init(&self->interval, weft_now(), WEFT_MS, WEFT_INTERVAL_SKIP);
    for (int i = 0; i < ROUNDS; i++) {
        weft_timer_start(&self->timer, weft_after(i * WEFT_MS), i & 1 ? WEFT_PRECISE : 0, noop, 0);
        CHECK_EQ(weft_sleep(i % 3 * WEFT_MS), 0);
        CHECK_LT(0, weft_interval_tick(&self->interval));
        struct gate gate = gate_make(CANCEL_AT_ONCE);
        CHECK_EQ(weft_await(&gate.future, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
        gate_fini(&gate);
        (void)weft_timer_stop(&self->timer);
    }
    (void)atomic_fetch_add(&strands_done, 1);
    while (atomic_load(&strands_may_end) == 0) {
        CHECK_EQ(weft_sleep(WEFT_MS), 0);
    }
    return 0;
}

static int strand_stackless(weft_co *co, void *state)
{
    struct strand *self = test_arg(state);
    int err = 0;
    WEFT_BEGIN(co);
    weft_sleep_init(&self->sleep, self->begin, 0);
    WEFT_AWAIT(co, err, &self->sleep.future);
    for (self->round = 0; self->round < ROUNDS; self->round++) {
        weft_timer_start(&self->timer, weft_after(self->round * WEFT_MS), 0, noop, NULL);
        weft_sleep_init(&self->sleep, weft_after(WEFT_MS), WEFT_PRECISE);
        WEFT_AWAIT(co, err, &self->sleep.future);
        CHECK_EQ(err, 0);
        self->gate = gate_make(CANCEL_AT_ONCE);
        weft_timeout_init(&self->timeout, &self->gate.future, weft_after(WEFT_MS));
        WEFT_AWAIT(co, err, &self->timeout.future);
        CHECK_EQ(err, WEFT_ETIMEDOUT);
        gate_fini(&self->gate);
        (void)weft_timer_stop(&self->timer);
    }
    (void)atomic_fetch_add(&strands_done, 1);
    while (atomic_load(&strands_may_end) == 0) {
        weft_sleep_init(&self->sleep, weft_after(WEFT_MS), 0);
        WEFT_AWAIT(co, err, &self->sleep.future);
    }
    WEFT_END(co, 0);
}

static void start_strands(weft_runtime *rt, struct strand *strands, weft_task **tasks)
{
    weft_time begin = weft_after(WEFT_MS);
    for (int i = 0; i < STRANDS; i++) {
        strands[i] = (struct strand){ .begin = begin };
        if (i % 4 == 0) {
            CHECK_EQ(weft_runtime_spawn_blocking(rt, &tasks[i], strand_fiber, &strands[i]), 0);
        } else if (i % 4 == 1) {
            tasks[i] = virtual_go(rt, strand_fiber, &strands[i]);
        } else {
            tasks[i] = test_spawn(rt, strand_stackless, &strands[i]);
        }
    }
    virtual_settle(rt);
}

/*
 * Goal:   no time operation allocates, so none can fail for lack of memory.
 * Method: the tasks exist, have their stacks and are asleep before the allocations are counted,
 *         and they live until the allocations are counted again.
 */
static void time_operations_do_not_allocate(void)
{
    static struct strand strands[STRANDS];
    weft_task *tasks[STRANDS];
    static struct ledger ledger;
    weft_allocator allocator = ledger_allocator(&ledger);
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    config.allocator = &allocator;
    (void)virtual_begin();
    weft_runtime *rt = test_start_with(&config);
    start_strands(rt, strands, tasks);
    int64_t calls = atomic_load(&ledger.calls);
    CHECK_LT(0, calls);
    while (atomic_load(&strands_done) < STRANDS) {
        weft_clock_advance(WEFT_MS / 2);
        (void)sched_yield();
    }
    CHECK_EQ(atomic_load(&ledger.calls), calls);
    atomic_store(&strands_may_end, 1);
    for (int i = 0; i < STRANDS; i++) {
        while (!weft_task_is_done(tasks[i])) {
            weft_clock_advance(WEFT_MS);
        }
        CHECK_EQ(test_join(tasks[i]), 0);
    }
    weft_runtime_destroy(rt);
    CHECK_EQ(atomic_load(&ledger.bytes), 0);
    virtual_end();
}

TEST_MAIN({
    TEST(many_sleeps_end_each_at_its_own_time),
    TEST(time_operations_do_not_allocate),
})
