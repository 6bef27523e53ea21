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

/* --- A clock that runs ---------------------------------------------------------- */

static void clock_is_the_monotonic_one_in_nanoseconds(void)
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

static void clock_never_goes_back(void)
{
    int64_t last = wf_clock_now();
    for (uint64_t i = 0; i < test_scale(200000); i++) {
        int64_t now = wf_clock_now();
        CHECK_LE(last, now);
        last = now;
    }
}

static void clock_moves_on(void)
{
    int64_t first = wf_clock_now();
    while (wf_clock_now() == first) {
    }
    CHECK_LT(first, wf_clock_now());
}

static void public_clock_is_the_same_one(void)
{
    int64_t before = wf_clock_now();
    weft_time now = weft_now();
    CHECK_LE(before, now);
    CHECK_LE(now, wf_clock_now());
}

static void never_is_after_every_time(void)
{
    CHECK_EQ(WF_NEVER, WEFT_NEVER);
    CHECK_EQ(WF_NEVER, INT64_MAX);
    CHECK_LT(wf_clock_now(), WF_NEVER);
}

/* --- Sums ------------------------------------------------------------------------ */

static void a_sum_stops_at_both_ends(void)
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

static void after_counts_from_now(void)
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

/* --- A clock that stands ----------------------------------------------------------- */

static void a_paused_clock_stands_still(void)
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

static void advance_moves_a_paused_clock_by_so_much(void)
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

static void advance_by_1(void)
{
    weft_clock_advance(1);
}

static void advance_after_a_resume(void)
{
    weft_clock_pause();
    weft_clock_resume();
    weft_clock_advance(1);
}

static void advance_backwards(void)
{
    weft_clock_pause();
    weft_clock_advance(-1);
}

static void advance_of_a_clock_that_runs_aborts(void)
{
    CHECK_ABORTS(advance_by_1, "weft_clock_advance: the clock is not paused");
    CHECK_ABORTS(advance_by_1, "call weft_clock_pause() first");
    CHECK_ABORTS(advance_after_a_resume, "weft_clock_advance: the clock is not paused");
}

static void advance_by_negative_duration_aborts_with_advice(void)
{
    CHECK_ABORTS(advance_backwards, "weft_clock_advance: the duration is negative");
    CHECK_ABORTS(advance_backwards, "advance by 0 or more");
}

static void resume_goes_on_from_the_time_that_was_shown(void)
{
    for (int i = 0; i < 3; i++) {
        weft_clock_pause();
        /* The machine's time goes on, and is not made up for. */
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
    weft_clock_resume(); /* It runs already. */
    CHECK_LE(now, weft_now());
    CHECK_LE(weft_now(), now + 60 * WEFT_S);
}

/* --- Threads that sleep -------------------------------------------------------------- */

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

static int pending_body(weft_co *co, void *state)
{
    (void)co;
    (void)state;
    return WEFT_PENDING;
}

enum {
    SLEEPERS = 6
};

/* Sleepers with deadlines 10 ns apart; each is to come back with this result. */
static void check_advance_wakes(int (*call)(struct sleeper *), int result)
{
    static struct sleeper sleepers[SLEEPERS];
    weft_clock_pause();
    weft_runtime *rt = test_start(1);
    weft_time start = weft_now();
    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (struct sleeper){ .task = test_spawn(rt, pending_body, NULL) };
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
 * Goal:   the clock wakes whose time has come, at that very nanosecond, and
 *         nobody else.
 * Method: whoever is woken runs, and the kernel says so: the others are looked at
 *         until they are asleep, which one that was woken never is again.
 */
static void advance_wakes_the_threads_whose_time_has_come_and_no_other(void)
{
    check_advance_wakes(call_futex, -ETIMEDOUT);
    check_advance_wakes(call_sleep, 0);
    check_advance_wakes(call_await, WEFT_ETIMEDOUT);
    check_advance_wakes(call_join, WEFT_ETIMEDOUT);
}

static void a_time_that_has_come_is_not_slept_for(void)
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

static void a_wake_ends_a_sleep_on_a_paused_clock(void)
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
    weft_clock_advance(2 * HOUR); /* Nobody is left to be woken. */
    weft_clock_resume();
}

/*
 * Goal:   a deadline is one of the program's clock, also after that was moved on.
 * Method: an hour ahead of the machine's, whose own clock gets there too late.
 */
static void a_clock_that_runs_again_keeps_deadlines(void)
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
 * Goal:   a thread that went to sleep before the clock was paused does not take
 *         the machine's time for the program's.
 * Method: its time comes by the machine's clock, while the program's stands.
 */
static void a_pause_holds_up_who_sleeps_already(void)
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
 * Goal:   many threads asleep at once are woken each at its time.
 * Method: deadlines at random, some of them equal, and steps at random. After
 *         each step those have ended whose time has come, and all the others
 *         sleep.
 */
static void many_threads_sleep_at_once(void)
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
    TEST(advance_of_a_clock_that_runs_aborts),
    TEST(advance_by_negative_duration_aborts_with_advice),
    TEST(clock_is_the_monotonic_one_in_nanoseconds),
    TEST(clock_never_goes_back),
    TEST(clock_moves_on),
    TEST(public_clock_is_the_same_one),
    TEST(never_is_after_every_time),
    TEST(a_sum_stops_at_both_ends),
    TEST(after_counts_from_now),
    TEST(a_paused_clock_stands_still),
    TEST(advance_moves_a_paused_clock_by_so_much),
    TEST(resume_goes_on_from_the_time_that_was_shown),
    TEST(advance_wakes_the_threads_whose_time_has_come_and_no_other),
    TEST(a_time_that_has_come_is_not_slept_for),
    TEST(a_wake_ends_a_sleep_on_a_paused_clock),
    TEST(a_clock_that_runs_again_keeps_deadlines),
    TEST(a_pause_holds_up_who_sleeps_already),
    TEST(many_threads_sleep_at_once),
    TEST(pause_stops_clock_at_whole_millisecond), /* Last: the clock is ahead afterwards. */
})
