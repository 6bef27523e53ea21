/* SPDX-License-Identifier: MIT */
/*
 * firing_test.c - which worker fires timers, when, and in which order: parked workers,
 * searching workers and workers that are busy for a long time.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weft.h>

#include "base/clock.h"
#include "base/rng.h"
#include "bell.h"
#include "rt.h"
#include "test.h"
#include "timing.h"
#include "virtual.h"

static int run_in_blocking_job(weft_runtime *rt, int (*function)(void *arg), void *arg)
{
    weft_task *task;
    CHECK_EQ(weft_runtime_spawn_blocking(rt, &task, function, arg), 0);
    return test_join(task);
}

static weft_task *go_pinned(weft_runtime *rt, unsigned worker, int (*function)(void *arg),
                            void *arg)
{
    weft_task *task;
    weft_fiber_spec spec = { .function = function, .arg = arg, .pinned = WEFT_PINNED_TO(worker) };
    CHECK_EQ(weft_runtime_go(rt, &task, &spec), 0);
    return task;
}

/* --- Order -------------------------------------------------------------------------- */

enum {
    ORDERED = 1000
};

struct ordered {
    weft_timer timer;
    weft_time deadline;
    unsigned number; /* in start order */
};

static struct ordered ordered[ORDERED];
static unsigned order[ORDERED]; /* numbers in call order */
static _Atomic(uint64_t) called;

static void record_call(void *arg)
{
    const struct ordered *self = arg;
    CHECK_GE(weft_now(), self->deadline);
    order[atomic_load(&called)] = self->number;
    (void)atomic_fetch_add(&called, 1);
}

#define OF_BOTH_KINDS 2u /* instead of flags; every other timer is precise */

static unsigned flags_of(const struct ordered *self, unsigned kind)
{
    return kind == OF_BOTH_KINDS ? self->number % 2 : kind;
}

static int start_ordered(void *arg)
{
    const unsigned *kind = arg;
    for (unsigned i = 0; i < ORDERED; i++) {
        weft_timer_start(&ordered[i].timer, ordered[i].deadline, flags_of(&ordered[i], *kind),
                         record_call, &ordered[i]);
    }
    return 0;
}

/* Sets deadlines within 300 ms, and some a day later. */
static void order_begin(weft_time start, struct wf_rng *rng)
{
    atomic_store(&called, 0);
    for (unsigned i = 0; i < ORDERED; i++) {
        weft_time far = wf_rng_below(rng, 10) == 0 ? 24 * VIRTUAL_HOUR : 0;
        weft_time near = wf_rng_below(rng, 300 * (uint32_t)WEFT_MS);
        ordered[i] = (struct ordered){ .deadline = start + far + near, .number = i };
    }
}

/* Returns when a timer is due. A coarse one is due at the end of its millisecond. */
static weft_time due_time(const struct ordered *self, unsigned kind)
{
    weft_time unit = flags_of(self, kind) == WEFT_PRECISE ? 1 : WEFT_MS;
    return (self->deadline + unit - 1) / unit * unit;
}

static void order_check(unsigned kind)
{
    for (unsigned i = 1; i < ORDERED; i++) {
        const struct ordered *before = &ordered[order[i - 1]];
        const struct ordered *after = &ordered[order[i]];
        CHECK_LE(due_time(before, kind), due_time(after, kind));
        /* Due at the same time: in start order. */
        CHECK(due_time(before, kind) < due_time(after, kind) || kind != 0 ||
              before->number < after->number);
    }
}

/*
 * Goal:   the timers of a worker fire in deadline order, to the millisecond, or to the
 *         nanosecond if they are precise.
 * Method: one worker, on which all timers are started. In one run the clock jumps past all
 *         deadlines, in another it gets there in steps.
 */
static void timers_of_worker_fire_in_deadline_order(void)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    for (unsigned i = 0; i < 6; i++) {
        unsigned kind = i / 2;
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        order_begin(start, &rng);
        CHECK_EQ(test_join(go_pinned(rt, 0, start_ordered, &kind)), 0);
        virtual_settle(rt);
        CHECK_EQ(called, 0);
        for (int step = 0; i % 2 != 0 && step < 50; step++) {
            virtual_go_to(rt, weft_after(wf_rng_below(&rng, 7 * (uint32_t)WEFT_MS)));
        }
        weft_clock_advance(48 * VIRTUAL_HOUR);
        test_wait_for(&called, ORDERED);
        order_check(kind);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

/* --- Order of sleepers ---------------------------------------------------------------- */

enum sleeper_kind {
    FIBERS,
    BODIES,
    PRECISE_BODIES,
    CALLBACKS, /* timers whose callbacks wake fibers */
    ALL_KINDS,
};

struct queued_sleeper {
    weft_time deadline;
    enum sleeper_kind kind;
    weft_sleep_future sleep;
    weft_timer timer;
    weft_event event;
};

static struct queued_sleeper sleepers[ORDERED];
static weft_time woken[ORDERED]; /* deadlines in the order in which the tasks ran */
static _Atomic(uint64_t) woken_count;

static void record_wake(const struct queued_sleeper *self)
{
    CHECK_GE(weft_now(), self->deadline);
    woken[atomic_load(&woken_count)] = self->deadline;
    (void)atomic_fetch_add(&woken_count, 1);
}

static void set_event(void *arg)
{
    weft_event_set(arg);
}

static int sleep_in_fiber(void *arg)
{
    struct queued_sleeper *self = arg;
    if (self->kind == CALLBACKS) {
        weft_timer_start(&self->timer, self->deadline, 0, set_event, &self->event);
        CHECK_EQ(weft_event_wait(&self->event, WEFT_NEVER), 0);
    } else {
        CHECK_EQ(weft_sleep_until(self->deadline), 0);
    }
    record_wake(self);
    return 0;
}

static int sleep_stackless(weft_co *co, void *state)
{
    struct queued_sleeper *self = *(struct queued_sleeper **)state;
    int result = 0;
    WEFT_BEGIN(co);
    weft_sleep_init(&self->sleep, self->deadline, self->kind == PRECISE_BODIES ? WEFT_PRECISE : 0);
    WEFT_AWAIT(co, result, &self->sleep.future);
    CHECK_EQ(result, 0);
    record_wake(self);
    WEFT_END(co, result);
}

/* Starts sleepers whose deadlines are distinct whole milliseconds, in random order. */
static void start_sleepers(weft_runtime *rt, unsigned count, enum sleeper_kind kind)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), count);
    weft_time start = weft_now();
    atomic_store(&woken_count, 0);
    for (unsigned i = 0; i < count; i++) {
        unsigned other = wf_rng_below(&rng, i + 1);
        sleepers[i] = sleepers[other];
        sleepers[other] = (struct queued_sleeper){ .deadline = start + (i + 1) * WEFT_MS };
    }
    for (unsigned i = 0; i < count; i++) {
        struct queued_sleeper *self = &sleepers[i];
        self->kind = kind == ALL_KINDS ? (enum sleeper_kind)wf_rng_below(&rng, ALL_KINDS) : kind;
        weft_fiber_spec fiber = { .function = sleep_in_fiber, .arg = self };
        weft_spec body = { .body = sleep_stackless, .state = &self, .state_size = sizeof self };
        bool is_body = self->kind == BODIES || self->kind == PRECISE_BODIES;
        CHECK_EQ(is_body ? weft_runtime_spawn(rt, NULL, &body) : weft_runtime_go(rt, NULL, &fiber),
                 0);
    }
    virtual_settle(rt);
    CHECK_EQ(atomic_load(&woken_count), 0);
}

static void check_woken(unsigned count)
{
    CHECK_EQ(atomic_load(&woken_count), count);
    for (unsigned i = 1; i < count; i++) {
        CHECK_LT(woken[i - 1], woken[i]);
    }
}

/* The last timer of 257 fires alone, while tasks woken by the others are still in the ring. */
static const unsigned crowds[] = { 2, 12, 33, 257, ORDERED };

enum {
    CROWDS = sizeof crowds / sizeof crowds[0]
};

/*
 * Goal:   sleepers of one worker run in deadline order.
 * Method: the paused clock jumps past all deadlines in one step.
 */
static void sleepers_run_in_deadline_order_after_clock_jump(void)
{
    for (unsigned i = 0; i < CROWDS * (ALL_KINDS + 1); i++) {
        (void)virtual_begin();
        weft_runtime *rt = test_start(1);
        start_sleepers(rt, crowds[i % CROWDS], (enum sleeper_kind)(i / CROWDS));
        virtual_go_to(rt, weft_after(VIRTUAL_HOUR));
        check_woken(crowds[i % CROWDS]);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

/* Resumes the clock and keeps the worker busy until this time. */
static int hold_worker(void *arg)
{
    const weft_time *until = arg;
    weft_clock_resume();
    while (weft_now() < *until) {
        wf_cpu_relax();
    }
    return 0;
}

/* Same as sleepers_run_in_deadline_order_after_clock_jump, for deadlines that pass on a running
 * clock while the worker is busy. */
static void sleepers_run_in_deadline_order_after_long_poll(void)
{
    for (unsigned kind = 0; kind <= ALL_KINDS; kind++) {
        (void)virtual_begin();
        weft_runtime *rt = test_start(1);
        start_sleepers(rt, 12, (enum sleeper_kind)kind);
        weft_time until = weft_now() + 13 * WEFT_MS;
        CHECK_EQ(test_join(virtual_go(rt, hold_worker, &until)), 0);
        virtual_settle(rt);
        check_woken(12);
        weft_runtime_destroy(rt);
    }
}

/* A timer that is always due. */
struct restless {
    weft_timer timer;
    _Atomic(uint64_t) stop;
    _Atomic(uint64_t) calls;
    unsigned flags;
};

static void restless_call(void *arg)
{
    struct restless *self = arg;
    if (atomic_load(&self->stop) == 0) {
        weft_timer_start(&self->timer, 0, self->flags, restless_call, self);
    }
    (void)atomic_fetch_add(&self->calls, 1);
}

static int restless_start(void *arg)
{
    struct restless *self = arg;
    weft_timer_start(&self->timer, 0, self->flags, restless_call, self);
    return 0;
}

/*
 * Goal:   a timer that restarts itself with a past deadline starves neither tasks nor other
 *         timers.
 * Method: one worker. The other timer is of the same kind in some runs and of the other kind in
 *         others.
 */
static void timer_that_is_always_due_does_not_starve_others(void)
{
    for (unsigned i = 0; i < 4; i++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        struct restless restless = { .flags = i & 1 ? WEFT_PRECISE : 0 };
        struct bell bell = { .deadline = start + 10 * WEFT_MS, .flags = i & 2 ? WEFT_PRECISE : 0 };
        CHECK_EQ(test_join(go_pinned(rt, 0, restless_start, &restless)), 0);
        CHECK_EQ(test_join(go_pinned(rt, 0, bell_start, &bell)), 0);
        weft_clock_advance(10 * WEFT_MS);
        uint64_t enough = atomic_load(&restless.calls) + 1000000;
        while (atomic_load(&bell.calls) == 0 && atomic_load(&restless.calls) < enough) {
        }
        CHECK_EQ(bell.calls, 1);
        CHECK_EQ(test_join(test_spawn(rt, test_return_7, NULL)), 7);
        atomic_store(&restless.stop, 1);
        virtual_settle(rt);
        CHECK(!weft_timer_stop(&restless.timer));
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

enum {
    CROWD = 20000,
    PARKS_MAX = 20,
};

static weft_timer crowd[CROWD];
static _Atomic(uint64_t) crowd_calls;

static void count_call(void *arg)
{
    (void)arg;
    (void)atomic_fetch_add(&crowd_calls, 1);
}

static int start_crowd(void *arg)
{
    for (unsigned i = 0; i < CROWD; i++) {
        weft_timer_start(&crowd[i], *(weft_time *)arg, 0, count_call, NULL);
    }
    return 0;
}

/*
 * Goal:   a worker does not park while timers are due.
 * Method: one worker, and thousands of callbacks due at the same time. A park that ends
 *         immediately counts, too.
 */
static void worker_does_not_park_while_timers_are_due(void)
{
    weft_time deadline = virtual_begin() + WEFT_MS;
    weft_runtime *rt = test_start(1);
    atomic_store(&crowd_calls, 0);
    CHECK_EQ(test_join(go_pinned(rt, 0, start_crowd, &deadline)), 0);
    virtual_settle(rt);
    weft_worker_stats before;
    weft_worker_stats after;
    CHECK_EQ(weft_worker_stats_read(rt, 0, &before), 0);
    weft_clock_advance(WEFT_MS);
    test_wait_for(&crowd_calls, CROWD);
    CHECK_EQ(weft_worker_stats_read(rt, 0, &after), 0);
    CHECK_LE(after.parks - before.parks, PARKS_MAX);
    weft_runtime_destroy(rt);
    virtual_end();
}

/* --- Parked workers ------------------------------------------------------------------- */

/*
 * Goal:   a worker parked until a later deadline wakes for an earlier one from another thread.
 * Method: one worker, parked for an hour. The clock advances no further than the earlier
 *         deadline.
 */
static void earlier_timer_from_outside_wakes_parked_worker(void)
{
    for (unsigned i = 0; i < 4; i++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        struct bell late = { .deadline = start + VIRTUAL_HOUR };
        struct bell early = { .deadline = start + WEFT_MS, .flags = i & 1 ? WEFT_PRECISE : 0 };
        if (i & 2) {
            CHECK_EQ(test_join(go_pinned(rt, 0, bell_start, &late)), 0);
        } else {
            CHECK_EQ(run_in_blocking_job(rt, bell_start, &late), 0);
        }
        virtual_settle_all(rt);
        CHECK_EQ(run_in_blocking_job(rt, bell_start, &early), 0);
        weft_clock_advance(WEFT_MS);
        test_wait_for(&early.calls, 1);
        CHECK_EQ(early.called_at, early.deadline);
        CHECK_EQ(late.calls, 0);
        CHECK(weft_timer_stop(&late.timer));
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

struct racing_starts {
    uint64_t rounds;
    struct bell bell;
};

static int race_starts(void *arg)
{
    struct racing_starts *race = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 2);
    for (uint64_t i = 0; i < race->rounds; i++) {
        race->bell.deadline = weft_after(wf_rng_below(&rng, 50 * (uint32_t)WEFT_US));
        CHECK_EQ(bell_start(&race->bell), 0);
        test_wait_for(&race->bell.calls, i + 1);
        CHECK_GE(race->bell.called_at, race->bell.deadline);
    }
    return 0;
}

/*
 * Goal:   a worker that is about to park does not miss a timer from outside.
 * Method: each timer starts as soon as the previous callback is seen, while its worker parks.
 *         This runs on the machine's clock without any other deadline, so a lost timer hangs
 *         the test.
 */
static void timer_started_while_worker_parks_is_not_lost(void)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        weft_runtime *rt = test_start(workers);
        struct racing_starts race = { .rounds = test_scale(4000), .bell.flags = WEFT_PRECISE };
        CHECK_EQ(run_in_blocking_job(rt, race_starts, &race), 0);
        (void)weft_timer_stop(&race.bell.timer);
        weft_runtime_destroy(rt);
    }
}

/* --- Busy workers ----------------------------------------------------------------------- */

/* Computes on its worker until it is released, or gives up after a time limit. */
struct load {
    _Atomic(uint64_t) begun;
    _Atomic(uint64_t) release;
    _Atomic(uint64_t) too_long;
};

static void compute(struct load *load)
{
    int64_t until = wf_clock_real() - weft_now() + test_deadline();
    (void)atomic_fetch_add(&load->begun, 1);
    while (atomic_load(&load->release) == 0 && atomic_load(&load->too_long) == 0) {
        atomic_store(&load->too_long, wf_clock_real() > until);
    }
}

static int compute_until_released(void *arg)
{
    compute(arg);
    return 0;
}

/*
 * Goal:   another worker fires the timers of a worker that is busy for a long time, however
 *         idle the runtime was before.
 * Method: the timers are started on worker 0, which then computes until they have fired. The
 *         monitor, which has to notice, is awake in half of the runs and asleep in the others.
 */
static void timers_of_busy_worker_are_fired_by_another(void)
{
    for (unsigned i = 0; i < 4; i++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(2);
        struct bell bell = { .deadline = start + 5 * WEFT_MS, .flags = i & 1 ? WEFT_PRECISE : 0 };
        struct load load = { .begun = 0 };
        CHECK_EQ(test_join(go_pinned(rt, 0, bell_start, &bell)), 0);
        if (i & 2) {
            virtual_settle_all(rt);
        }
        weft_task *busy = go_pinned(rt, 0, compute_until_released, &load);
        test_wait_for(&load.begun, 1);
        weft_clock_advance(5 * WEFT_MS);
        while (atomic_load(&bell.calls) == 0 && !weft_task_is_done(busy)) {
        }
        atomic_store(&load.release, 1);
        CHECK_EQ(test_join(busy), 0);
        CHECK_EQ(load.too_long, 0);
        CHECK_EQ(bell.worker, 1);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

struct sleeper {
    weft_time deadline;
    _Atomic(uint64_t) begun;
    int slept_on;
    int woke_on;
    weft_time late;
    _Atomic(uint64_t) awake;
};

static int sleep_and_record_worker(void *arg)
{
    struct sleeper *self = arg;
    self->slept_on = weft_worker_current();
    (void)atomic_fetch_add(&self->begun, 1);
    CHECK_EQ(weft_sleep_until(self->deadline), 0);
    self->woke_on = weft_worker_current();
    self->late = weft_now() - self->deadline;
    atomic_store(&self->awake, 1);
    return 0;
}

/*
 * Goal:   a sleeper whose timer belongs to a worker that is busy for a long time resumes on
 *         another.
 * Method: the sleeper falls asleep on worker 0, because worker 1 is kept busy meanwhile. Worker
 *         0 does not get to the task that is spawned next before the sleeper is asleep.
 */
static void sleeper_of_busy_worker_resumes_on_another(void)
{
    struct sleeper sleeper = { .deadline = virtual_begin() + 5 * WEFT_MS };
    weft_runtime *rt = test_start(2);
    struct load loads[2] = { { .begun = 0 }, { .begun = 0 } };
    weft_task *keeper = go_pinned(rt, 1, compute_until_released, &loads[1]);
    test_wait_for(&loads[1].begun, 1);
    weft_task *task = virtual_go(rt, sleep_and_record_worker, &sleeper);
    test_wait_for(&sleeper.begun, 1);
    weft_task *busy = go_pinned(rt, 0, compute_until_released, &loads[0]);
    test_wait_for(&loads[0].begun, 1);
    atomic_store(&loads[1].release, 1);
    CHECK_EQ(test_join(keeper), 0);
    weft_clock_advance(5 * WEFT_MS);
    while (!weft_task_is_done(task) && !weft_task_is_done(busy)) {
    }
    atomic_store(&loads[0].release, 1);
    CHECK_EQ(test_join(busy), 0);
    CHECK_EQ(test_join(task), 0);
    CHECK_EQ(loads[0].too_long, 0);
    CHECK_EQ(sleeper.slept_on, 0);
    CHECK_EQ(sleeper.woke_on, 1);
    weft_runtime_destroy(rt);
    virtual_end();
}

static int yield_until_called(void *arg)
{
    struct bell *bell = arg;
    while (atomic_load(&bell->calls) == 0) {
        CHECK_EQ(weft_yield(), 0);
    }
    return 0;
}

/*
 * Goal:   a worker that always has a runnable task still fires its timers.
 * Method: one worker, and two fibers that yield to each other until the timer has fired.
 */
static void worker_that_is_never_idle_fires_its_timers(void)
{
    for (unsigned i = 0; i < 2; i++) {
        weft_time start = virtual_begin();
        weft_runtime *rt = test_start(1);
        struct bell bell = { .deadline = start + 5 * WEFT_MS, .flags = i & 1 ? WEFT_PRECISE : 0 };
        weft_task *fibers[2];
        CHECK_EQ(test_join(go_pinned(rt, 0, bell_start, &bell)), 0);
        for (int j = 0; j < 2; j++) {
            fibers[j] = virtual_go(rt, yield_until_called, &bell);
        }
        weft_clock_advance(5 * WEFT_MS);
        CHECK_EQ(test_join(fibers[0]), 0);
        CHECK_EQ(test_join(fibers[1]), 0);
        CHECK_EQ(bell.calls, 1);
        weft_runtime_destroy(rt);
        virtual_end();
    }
}

struct long_call {
    weft_timer timer;
    struct load load;
};

static void long_call(void *arg)
{
    compute(&((struct long_call *)arg)->load);
}

static int long_call_start(void *arg)
{
    struct long_call *self = arg;
    weft_timer_start(&self->timer, 0, 0, long_call, self);
    return 0;
}

/*
 * Goal:   while a timer callback runs for a long time, new tasks go to the other worker.
 * Method: tasks are spawned from outside. The scheduler must not rely on the worker in the
 *         callback to pick them up.
 */
static void long_timer_callback_does_not_delay_tasks(void)
{
    for (unsigned i = 0; i < 100; i++) {
        weft_runtime *rt = test_start(2);
        struct long_call call = { .load.begun = 0 };
        CHECK_EQ(run_in_blocking_job(rt, long_call_start, &call), 0);
        test_wait_for(&call.load.begun, 1);
        for (int j = 0; j < 3; j++) {
            CHECK_EQ(test_join(test_spawn(rt, test_return_7, NULL)), 7);
            CHECK_EQ(call.load.too_long, 0);
        }
        atomic_store(&call.load.release, 1);
        (void)weft_timer_stop(&call.timer);
        weft_runtime_destroy(rt);
    }
}

/* --- On the machine's clock --------------------------------------------------------------- */

static int compute_until_awake(void *arg)
{
    test_wait_for(&((struct sleeper *)arg)->awake, 1);
    return 0;
}

/* The worker that owns the sleeper's timer computes until the sleeper has run. */
static void sleeper_of_busy_worker_wakes_on_real_clock(void)
{
    for (int i = 0; i < 10; i++) {
        weft_runtime *rt = test_start(2);
        struct sleeper sleeper = { .deadline = weft_after(5 * WEFT_MS) };
        weft_task *task = virtual_go(rt, sleep_and_record_worker, &sleeper);
        test_wait_for(&sleeper.begun, 1);
        weft_task *busy = go_pinned(rt, (unsigned)sleeper.slept_on, compute_until_awake, &sleeper);
        CHECK_EQ(test_join(task), 0);
        CHECK_EQ(test_join(busy), 0);
        CHECK_GE(sleeper.late, 0);
        weft_runtime_destroy(rt);
    }
}

enum {
    LATE_MAX = 400 * 1000, /* ns */
};

/* Returns how late a timer fires whose deadline is 300 us after a whole millisecond. */
static weft_time lateness(weft_runtime *rt, unsigned flags)
{
    weft_time deadline = (weft_now() / WEFT_MS + 2) * WEFT_MS + 300 * WEFT_US;
    struct bell bell = { .deadline = deadline, .flags = flags };
    CHECK_EQ(run_in_blocking_job(rt, bell_start, &bell), 0);
    test_wait_for(&bell.calls, 1);
    (void)weft_timer_stop(&bell.timer);
    CHECK_GE(bell.called_at, deadline);
    return bell.called_at - deadline;
}

/* A coarse timer waits for the end of its millisecond. For the precise one the best of many
 * tries counts, because the machine may be busy. */
static void precise_timer_fires_before_end_of_millisecond(void)
{
    weft_runtime *rt = test_start(1);
    CHECK_GE(lateness(rt, 0), LATE_MAX);
    for (int i = 0; lateness(rt, WEFT_PRECISE) >= LATE_MAX; i++) {
        CHECK_LT(i, 2000);
    }
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(timers_of_worker_fire_in_deadline_order),
    TEST(sleepers_run_in_deadline_order_after_clock_jump),
    TEST(sleepers_run_in_deadline_order_after_long_poll),
    TEST(timer_that_is_always_due_does_not_starve_others),
    TEST(worker_does_not_park_while_timers_are_due),
    TEST(earlier_timer_from_outside_wakes_parked_worker),
    TEST(timer_started_while_worker_parks_is_not_lost),
    TEST(timers_of_busy_worker_are_fired_by_another),
    TEST(sleeper_of_busy_worker_resumes_on_another),
    TEST(worker_that_is_never_idle_fires_its_timers),
    TEST(long_timer_callback_does_not_delay_tasks),
    TEST(sleeper_of_busy_worker_wakes_on_real_clock),
    TEST(precise_timer_fires_before_end_of_millisecond),
})
