/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <weft.h>

#include "asleep.h"
#include "base/futex.h"
#include "base/rng.h"
#include "gate.h"
#include "rt.h"
#include "test.h"

#define HOUR (3600 * WEFT_S)

static int64_t monotonic_ns(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- Running clock -------------------------------------------------------------- */

static void clock_is_monotonic_clock_in_nanoseconds(void)
{
    for (int i = 0; i < 1000; i++) {
        int64_t before = monotonic_ns();
        int64_t now = wf_clock_now();
        int64_t real = wf_clock_real();
        int64_t after = monotonic_ns();
        CHECK_LE(before, now);
        CHECK_LE(now, real);
        CHECK_LE(real, after);
        CHECK_EQ(wf_clock_at(real), real);
    }
}

static void clock_never_goes_backward(void)
{
    int64_t last = wf_clock_now();
    for (uint64_t i = 0; i < test_scale(200000); i++) {
        int64_t now = wf_clock_now();
        CHECK_LE(last, now);
        last = now;
    }
}

static void clock_advances(void)
{
    int64_t first = wf_clock_now();
    while (wf_clock_now() == first) {
    }
    CHECK_LT(first, wf_clock_now());
}

static void public_clock_equals_internal_clock(void)
{
    int64_t before = wf_clock_now();
    weft_time now = weft_now();
    CHECK_LE(before, now);
    CHECK_LE(now, wf_clock_now());
}

static void never_is_later_than_any_time(void)
{
    CHECK_EQ(WF_NEVER, WEFT_NEVER);
    CHECK_EQ(WF_NEVER, INT64_MAX);
    CHECK_LT(wf_clock_now(), WF_NEVER);
}

/* --- Addition -------------------------------------------------------------------- */

static void time_add_saturates_at_both_ends(void)
{
    static const struct {
        weft_time time;
        weft_time duration;
        weft_time sum;
    } sums[] = {
        { 0, 0, 0 },
        { 5, 7, 12 },
        { 5, -7, -2 },
        { 0, INT64_MAX, WEFT_NEVER },
        { 0, INT64_MIN, INT64_MIN },
        { -1, INT64_MAX, INT64_MAX - 1 },
        { 1, INT64_MAX, WEFT_NEVER },
        { 1, INT64_MIN, INT64_MIN + 1 },
        { -1, INT64_MIN, INT64_MIN },
        { INT64_MAX - 1, 0, INT64_MAX - 1 },
        { INT64_MAX - 1, 1, WEFT_NEVER },
        { INT64_MAX - 1, 2, WEFT_NEVER },
        { INT64_MAX - 1, INT64_MAX, WEFT_NEVER },
        { INT64_MAX - 1, INT64_MIN, -2 },
        { WEFT_NEVER, 0, WEFT_NEVER },
        { WEFT_NEVER, 1, WEFT_NEVER },
        { WEFT_NEVER, -1, WEFT_NEVER },
        { WEFT_NEVER, INT64_MAX, WEFT_NEVER },
        { WEFT_NEVER, INT64_MIN, WEFT_NEVER },
        { INT64_MIN, 0, INT64_MIN },
        { INT64_MIN, -1, INT64_MIN },
        { INT64_MIN, 1, INT64_MIN + 1 },
        { INT64_MIN, INT64_MIN, INT64_MIN },
        { INT64_MIN, INT64_MAX, -1 },
    };
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        CHECK_EQ(weft_time_add(sums[i].time, sums[i].duration), sums[i].sum);
    }
}

static void weft_after_counts_from_now(void)
{
    weft_time before = weft_now();
    weft_time after = weft_after(5 * WEFT_MS);
    CHECK_LE(before + 5 * WEFT_MS, after);
    CHECK_LE(after, weft_now() + 5 * WEFT_MS);

    weft_clock_pause();
    weft_time now = weft_now();
    CHECK_EQ(weft_after(0), now);
    CHECK_EQ(weft_after(1), now + 1);
    CHECK_EQ(weft_after(-1), now - 1);
    CHECK_EQ(weft_after(INT64_MIN), INT64_MIN + now);
    CHECK_EQ(weft_after(WEFT_NEVER - now), WEFT_NEVER);
    CHECK_EQ(weft_after(WEFT_NEVER), WEFT_NEVER);
    weft_clock_resume();
}

/* --- Paused clock ------------------------------------------------------------------ */

static void paused_clock_does_not_advance(void)
{
    weft_time before = weft_now();
    weft_clock_pause();
    weft_time shown = weft_now();
    CHECK_LE(before, shown);
    for (int64_t until = wf_clock_real() + 2 * WEFT_MS; wf_clock_real() < until;) {
        CHECK_EQ(weft_now(), shown);
        CHECK_EQ(wf_clock_now(), shown);
        CHECK_EQ(wf_clock_at(wf_clock_real()), shown);
    }
    weft_clock_pause();
    CHECK_EQ(weft_now(), shown);
    weft_clock_resume();
}

static void advance_moves_paused_clock_by_duration(void)
{
    weft_clock_pause();
    weft_time shown = weft_now();
    weft_clock_advance(0);
    CHECK_EQ(weft_now(), shown);
    weft_clock_advance(1);
    CHECK_EQ(weft_now(), shown + 1);
    weft_clock_advance(1000 * HOUR);
    CHECK_EQ(weft_now(), shown + 1 + 1000 * HOUR);
    CHECK_EQ(wf_clock_at(0), shown + 1 + 1000 * HOUR);
    weft_clock_resume();
}

static void advance_running_clock(void)
{
    weft_clock_advance(1);
}

static void advance_resumed_clock(void)
{
    weft_clock_pause();
    weft_clock_resume();
    weft_clock_advance(1);
}

static void advance_by_negative_duration(void)
{
    weft_clock_pause();
    weft_clock_advance(-1);
}

static void advance_of_running_clock_aborts(void)
{
    CHECK_ABORTS(advance_running_clock, "weft_clock_advance: the clock is not paused");
    CHECK_ABORTS(advance_running_clock, "call weft_clock_pause() first");
    CHECK_ABORTS(advance_resumed_clock, "weft_clock_advance: the clock is not paused");
}

static void advance_by_negative_duration_aborts_with_advice(void)
{
    CHECK_ABORTS(advance_by_negative_duration, "weft_clock_advance: the duration is negative");
    CHECK_ABORTS(advance_by_negative_duration, "advance by 0 or more");
}

static void resume_continues_from_paused_time(void)
{
    for (int i = 0; i < 3; i++) {
        weft_clock_pause();
        /* The machine's clock advances meanwhile. Resume does not add that time. */
        for (int64_t until = wf_clock_real() + 5 * WEFT_MS; wf_clock_real() < until;) {
        }
        weft_clock_advance(i * HOUR);
        weft_time shown = weft_now();
        int64_t before = wf_clock_real();
        weft_clock_resume();
        weft_time now = weft_now();
        CHECK_LE(shown, now);
        CHECK_LE(now - shown, wf_clock_real() - before);
        while (weft_now() <= now) {
        }
    }
    weft_time now = weft_now();
    weft_clock_resume(); /* The clock is already running. */
    CHECK_LE(now, weft_now());
    CHECK_LE(weft_now(), now + 60 * WEFT_S);
}

/* --- Sleeping threads ---------------------------------------------------------------- */

struct sleeper {
    int (*call)(struct sleeper *self);
    weft_time deadline;
    _Atomic(uint32_t) word;
    struct gate gate;
    weft_task *task;
    pthread_t thread;
    _Atomic(uint64_t) tid;
    _Atomic(uint64_t) ended;
    int result;
    weft_time woke;
};

static int call_futex(struct sleeper *self)
{
    return wf_clock_futex_wait(&self->word, 0, self->deadline);
}

static int call_sleep(struct sleeper *self)
{
    return weft_sleep_until(self->deadline);
}

static int call_await(struct sleeper *self)
{
    self->gate = gate_make(CANCEL_AT_ONCE);
    int result = weft_await(&self->gate.future, self->deadline);
    gate_fini(&self->gate);
    return result;
}

static int call_join(struct sleeper *self)
{
    return weft_join(self->task, NULL, self->deadline);
}

static void *sleeper_main(void *arg)
{
    struct sleeper *self = arg;
    atomic_store(&self->tid, own_tid());
    self->result = self->call(self);
    self->woke = weft_now();
    atomic_store(&self->ended, 1);
    return NULL;
}

static void start_sleeper(struct sleeper *self, int (*call)(struct sleeper *), weft_time deadline)
{
    self->call = call;
    self->deadline = deadline;
    CHECK_EQ(pthread_create(&self->thread, NULL, sleeper_main, self), 0);
}

static void wait_until_sleeper_sleeps(struct sleeper *self)
{
    test_wait_for(&self->tid, 1);
    wait_until_asleep(atomic_load(&self->tid));
    CHECK_EQ(atomic_load(&self->ended), 0);
}

static void join_sleeper(struct sleeper *self)
{
    CHECK_EQ(pthread_join(self->thread, NULL), 0);
    CHECK_EQ(self->ended, 1);
}

static int stay_pending(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return WEFT_PENDING;
}

enum {
    SLEEPERS = 6
};

/* Starts sleepers with deadlines 10 ns apart. Each must return the given result. */
static void check_advance_wakes(int (*call)(struct sleeper *), int result)
{
    static struct sleeper sleepers[SLEEPERS];
    weft_clock_pause();
    weft_runtime *rt = test_start(1);
    weft_time start = weft_now();
    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (struct sleeper){ .task = test_spawn(rt, stay_pending, NULL) };
        start_sleeper(&sleepers[i], call, start + 10 * (i + 1));
    }
    for (int i = 0; i < SLEEPERS; i++) {
        wait_until_sleeper_sleeps(&sleepers[i]);
    }
    for (int i = 0; i < SLEEPERS; i++) {
        weft_clock_advance(9);
        for (int j = i; j < SLEEPERS; j++) {
            wait_until_sleeper_sleeps(&sleepers[j]);
        }
        weft_clock_advance(1);
        join_sleeper(&sleepers[i]);
        CHECK_EQ(sleepers[i].result, result);
        CHECK_EQ(sleepers[i].woke, sleepers[i].deadline);
    }
    for (int i = 0; i < SLEEPERS; i++) {
        weft_detach(sleepers[i].task);
    }
    weft_runtime_destroy(rt);
    weft_clock_resume();
}

/*
 * Goal:   an advance of the clock wakes each thread at its deadline, to the nanosecond, and no
 *         other thread.
 * Method: after an advance to 1 ns before a deadline, wait until the kernel reports every
 *         remaining sleeper asleep. A thread that was woken ends and never sleeps again.
 */
static void advance_wakes_only_threads_whose_deadline_has_passed(void)
{
    check_advance_wakes(call_futex, -ETIMEDOUT);
    check_advance_wakes(call_sleep, 0);
    check_advance_wakes(call_await, WEFT_ETIMEDOUT);
    check_advance_wakes(call_join, WEFT_ETIMEDOUT);
}

static void wait_with_passed_deadline_does_not_sleep(void)
{
    _Atomic(uint32_t) word = 0;
    for (int paused = 0; paused < 2; paused++) {
        if (paused) {
            weft_clock_pause();
        }
        CHECK_EQ(wf_clock_futex_wait(&word, 0, weft_now()), -ETIMEDOUT);
        CHECK_EQ(wf_clock_futex_wait(&word, 0, weft_now() - HOUR), -ETIMEDOUT);
        CHECK_EQ(wf_clock_futex_wait(&word, 0, 0), -ETIMEDOUT);
        CHECK_EQ(wf_clock_futex_wait(&word, 0, INT64_MIN), -ETIMEDOUT);
        CHECK_EQ(wf_clock_futex_wait(&word, 1, WEFT_NEVER), 0);
        CHECK_EQ(wf_clock_futex_wait(&word, 1, weft_now() + HOUR), 0);
    }
    weft_clock_resume();
}

static void futex_wake_ends_sleep_on_paused_clock(void)
{
    weft_clock_pause();
    weft_time deadlines[] = { weft_now() + HOUR, WEFT_NEVER };
    for (int i = 0; i < 2; i++) {
        struct sleeper sleeper = { .word = 0 };
        start_sleeper(&sleeper, call_futex, deadlines[i]);
        wait_until_sleeper_sleeps(&sleeper);
        atomic_store(&sleeper.word, 1);
        wf_futex_wake(&sleeper.word, 1);
        join_sleeper(&sleeper);
        CHECK_EQ(sleeper.result, 0);
    }
    weft_clock_advance(2 * HOUR); /* No thread is left to wake. */
    weft_clock_resume();
}

/*
 * Goal:   deadlines are in program time, also after the clock was advanced.
 * Method: program time is an hour ahead of the machine's clock, which would reach the deadline
 *         an hour late.
 */
static void deadlines_hold_after_resume_of_advanced_clock(void)
{
    weft_clock_pause();
    weft_clock_advance(HOUR);
    weft_clock_resume();
    _Atomic(uint32_t) word = 0;
    weft_time deadline = weft_after(2 * WEFT_MS);
    while (wf_clock_futex_wait(&word, 0, deadline) == 0) {
    }
    CHECK_GE(weft_now(), deadline);
    CHECK_LT(weft_now(), deadline + HOUR / 2);
    CHECK_EQ(weft_sleep(2 * WEFT_MS), 0);
    CHECK_EQ(wf_clock_futex_wait(&word, 1, WEFT_NEVER), 0);
}

/*
 * Goal:   a thread that fell asleep before the pause does not time out by the machine's clock.
 * Method: the deadline passes on the machine's clock while program time is paused.
 */
static void pause_delays_threads_already_asleep(void)
{
    for (int caught = 0; caught < 2;) {
        struct sleeper sleeper = { .word = 0 };
        weft_time deadline = weft_after(10 * WEFT_MS);
        start_sleeper(&sleeper, call_sleep, deadline);
        test_wait_for(&sleeper.tid, 1);
        weft_clock_pause();
        bool in_time = weft_now() < deadline;
        for (int64_t end = wf_clock_real() + 20 * WEFT_MS; in_time && wf_clock_real() < end;) {
            CHECK_EQ(atomic_load(&sleeper.ended), 0);
        }
        if (in_time) {
            wait_until_sleeper_sleeps(&sleeper);
            weft_clock_advance(deadline - weft_now());
            caught++;
        }
        join_sleeper(&sleeper);
        CHECK_EQ(sleeper.result, 0);
        CHECK_GE(sleeper.woke, deadline);
        weft_clock_resume();
    }
}

/*
 * Goal:   of many sleeping threads, each wakes at its own deadline.
 * Method: random deadlines, some of them equal, and random steps of the clock. After each step,
 *         threads whose deadline has passed have ended and all others sleep.
 */
static void many_sleepers_wake_at_their_own_deadlines(void)
{
    enum {
        MANY = 64
    };
    static struct sleeper many[MANY];
    static int (*const calls[])(struct sleeper *) = { call_futex, call_sleep, call_await };
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    weft_clock_pause();
    weft_time start = weft_now();
    for (int i = 0; i < MANY; i++) {
        many[i] = (struct sleeper){ .word = 0 };
        start_sleeper(&many[i], calls[i % 3], start + 1 + wf_rng_below(&rng, 100));
    }
    for (int i = 0; i < MANY; i++) {
        wait_until_sleeper_sleeps(&many[i]);
    }
    for (weft_time last = start; last < start + 100;) {
        weft_clock_advance(1 + wf_rng_below(&rng, 10));
        for (int i = 0; i < MANY; i++) {
            if (many[i].deadline > weft_now()) {
                wait_until_sleeper_sleeps(&many[i]);
            } else if (many[i].deadline > last) {
                join_sleeper(&many[i]);
                CHECK_EQ(many[i].woke, weft_now());
            }
        }
        last = weft_now();
    }
    weft_clock_resume();
}

static void pause_stops_clock_at_whole_millisecond(void)
{
    for (unsigned i = 0; i < 20; i++) {
        weft_time before = weft_now();
        weft_clock_pause();
        weft_time paused = weft_now();
        CHECK_EQ(paused % WEFT_MS, 0);
        CHECK_GE(paused, before);
        weft_clock_resume();
        CHECK_GE(weft_now(), paused);
    }
}

TEST_MAIN({
    TEST(advance_of_running_clock_aborts),
    TEST(advance_by_negative_duration_aborts_with_advice),
    TEST(clock_is_monotonic_clock_in_nanoseconds),
    TEST(clock_never_goes_backward),
    TEST(clock_advances),
    TEST(public_clock_equals_internal_clock),
    TEST(never_is_later_than_any_time),
    TEST(time_add_saturates_at_both_ends),
    TEST(weft_after_counts_from_now),
    TEST(paused_clock_does_not_advance),
    TEST(advance_moves_paused_clock_by_duration),
    TEST(resume_continues_from_paused_time),
    TEST(advance_wakes_only_threads_whose_deadline_has_passed),
    TEST(wait_with_passed_deadline_does_not_sleep),
    TEST(futex_wake_ends_sleep_on_paused_clock),
    TEST(deadlines_hold_after_resume_of_advanced_clock),
    TEST(pause_delays_threads_already_asleep),
    TEST(many_sleepers_wake_at_their_own_deadlines),
    TEST(pause_stops_clock_at_whole_millisecond), /* last: leaves the clock ahead of real time */
})
