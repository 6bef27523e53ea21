/* SPDX-License-Identifier: MIT */
#include "sched/park.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/rng.h"
#include "step.h"
#include "test.h"
#include "timing.h"

enum {
    US = 1000,
    MS = 1000 * 1000
};

/* A deadline that has passed. */
#define PAST INT64_C(1)

static void wake_before_sleep_is_kept(void)
{
    struct wf_park park = { 0 };
    wf_park_wake(&park);
    CHECK(wf_park_sleep(&park, WF_NEVER));
}

static void several_wakes_count_once(void)
{
    struct wf_park park = { 0 };
    for (int i = 0; i < 5; i++) {
        wf_park_wake(&park);
    }
    CHECK(wf_park_sleep(&park, WF_NEVER));
    CHECK(!wf_park_sleep(&park, PAST));
}

static void pending_wake_counts_even_after_deadline(void)
{
    struct wf_park park = { 0 };
    wf_park_wake(&park);
    CHECK(wf_park_sleep(&park, PAST));
    CHECK(!wf_park_sleep(&park, PAST));
}

static void expired_deadline_returns_false_immediately(void)
{
    struct wf_park park = { 0 };
    CHECK(!wf_park_sleep(&park, PAST));
    CHECK(!wf_park_sleep(&park, 0));
    CHECK(!wf_park_sleep(&park, -1));
    CHECK(!wf_park_sleep(&park, INT64_MIN));
}

static void sleep_lasts_until_its_deadline(void)
{
    struct wf_park park = { 0 };
    int64_t deadline = wf_clock_now() + 2 * MS;
    CHECK(!wf_park_sleep(&park, deadline));
    CHECK_GE(wf_clock_now(), deadline);
}

static void park_can_be_reused_after_timeout(void)
{
    struct wf_park park = { 0 };
    for (int i = 0; i < 3; i++) {
        CHECK(!wf_park_sleep(&park, PAST));
        wf_park_wake(&park);
        CHECK(wf_park_sleep(&park, WF_NEVER));
    }
}

static struct wf_park contested;
static bool slept_until_woken;

static void sleep_contested(void)
{
    slept_until_woken = wf_park_sleep(&contested, PAST);
}

static void wake_contested(void)
{
    wf_park_wake(&contested);
}

/*
 * Goal:   a wake during a sleep ends that sleep or the next one.
 * Method: a wake interrupts a sleep whose deadline has passed, after each of its instructions.
 */
static void wake_that_interrupts_sleep_is_kept(void)
{
    unsigned outcomes[2] = { 0 };
    for (int n = 0; test_interrupt_after(n, sleep_contested, wake_contested); n++) {
        outcomes[slept_until_woken]++;
        CHECK_EQ(wf_park_sleep(&contested, PAST), !slept_until_woken);
        CHECK(!wf_park_sleep(&contested, PAST));
    }
    test_check_both(outcomes);
}

/* A thread that goes to sleep on request. */
struct sleeper {
    struct wf_park park;
    _Atomic(uint64_t) go;   /* number of rounds requested */
    _Atomic(uint64_t) back; /* number of rounds that are over */
    _Atomic(uint32_t) stop;
    char stat_path[64];
};

static struct sleeper sleeper;

static void *sleeper_main(void *arg)
{
    (void)arg;
    (void)snprintf(sleeper.stat_path, sizeof sleeper.stat_path, "/proc/self/task/%d/stat",
                   (int)gettid());
    atomic_store(&sleeper.back, 1);
    for (uint64_t round = 2;; round++) {
        test_wait_for(&sleeper.go, round);
        if (atomic_load(&sleeper.stop) != 0) {
            return NULL;
        }
        int64_t deadline = wf_clock_now() + INT64_C(10000) * MS;
        CHECK(wf_park_sleep(&sleeper.park, deadline));
        CHECK_LT(wf_clock_now(), deadline);
        atomic_store(&sleeper.back, round);
    }
}

/* Returns whether the thread sleeps in its system call. Called from a signal handler. */
static bool sleeper_is_asleep(void)
{
    char text[128] = { 0 };
    int fd = open(sleeper.stat_path, O_RDONLY);
    CHECK_LE(0, fd);
    CHECK_LT(0, read(fd, text, sizeof text - 1));
    (void)close(fd);
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && name_end[1] == ' ' && name_end[2] == 'S';
}

static void wake_sleeper(void)
{
    wf_park_wake(&sleeper.park);
}

static void let_sleeper_fall_asleep(void)
{
    uint64_t round = atomic_fetch_add(&sleeper.go, 1) + 1;
    while (atomic_load(&sleeper.back) < round && !sleeper_is_asleep()) {
        (void)sched_yield();
    }
}

/*
 * Goal:   a thread that falls asleep during a wake is woken by it.
 * Method: interrupt a wake after each of its instructions, until the other thread sleeps in the
 *         kernel or has come back. A lost wake would end only at the deadline.
 */
static void sleep_that_interrupts_wake_is_ended_by_it(void)
{
    sleeper = (struct sleeper){ .go = 1 };
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, sleeper_main, NULL), 0);
    test_wait_for(&sleeper.back, 1);
    for (int n = 0; test_interrupt_after(n, wake_sleeper, let_sleeper_fall_asleep); n++) {
        test_wait_for(&sleeper.back, atomic_load(&sleeper.go));
    }
    atomic_store(&sleeper.stop, 1);
    (void)atomic_fetch_add(&sleeper.go, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Two threads that wake each other in turn. */
struct pair {
    struct wf_park parks[2];
    uint64_t ball; /* plain: [P1] orders it */
    uint64_t rounds;
};

static void *return_balls(void *arg)
{
    struct pair *pair = arg;
    for (uint64_t i = 0; i < pair->rounds; i++) {
        CHECK(wf_park_sleep(&pair->parks[1], WF_NEVER));
        CHECK_EQ(pair->ball, 2 * i + 1);
        pair->ball++;
        wf_park_wake(&pair->parks[0]);
    }
    return NULL;
}

static void play(uint64_t rounds)
{
    struct pair pair = { .rounds = rounds };
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, return_balls, &pair), 0);
    for (uint64_t i = 0; i < pair.rounds; i++) {
        CHECK_EQ(pair.ball, 2 * i);
        pair.ball++;
        wf_park_wake(&pair.parks[1]);
        CHECK(wf_park_sleep(&pair.parks[0], WF_NEVER));
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(pair.ball, 2 * pair.rounds);
}

/*
 * Goal:   no wake is lost between two threads, and each sees what the other wrote before the
 *         wake.
 * Method: a plain counter goes back and forth. A lost wake ends in the timeout of the test. First
 *         on any CPUs, then on one, where a switch is cheap and can occur between any two
 *         instructions.
 */
static void two_threads_alternate_without_lost_wake(void)
{
    play(test_scale(10000));

    cpu_set_t before;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    play(test_scale(100000));
    CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

/* A waker that wakes at about the time the sleeper times out. */
struct timing {
    struct wf_park park;
    uint64_t note; /* plain: written before the wake of the round */
    _Atomic(uint32_t) stop;
    _Atomic(uint64_t) ready; /* the sleeper has started the round */
};

static void *wake_each_round(void *arg)
{
    struct timing *timing = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 1);
    for (uint64_t round = 1;; round++) {
        test_wait_for(&timing->ready, round);
        if (atomic_load(&timing->stop) != 0) {
            return NULL;
        }
        int64_t until = wf_clock_now() + wf_rng_below(&rng, 60 * US);
        while (wf_clock_now() < until) {
            wf_cpu_relax();
        }
        timing->note = round;
        wf_park_wake(&timing->park);
    }
}

/*
 * Goal:   a wake that races with the deadline ends that sleep or the next one, once.
 * Method: each round has one wake, some time after the sleeper went to sleep with a deadline
 *         about as far away. It sleeps until it is woken. Then no wake may be left.
 */
static void wake_that_races_with_timeout_is_not_lost(void)
{
    struct timing timing = { .note = 0 };
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, wake_each_round, &timing), 0);
    struct test_rounds rounds = test_rounds_begin();
    for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
        atomic_store(&timing.ready, round);
        unsigned sleeps = 1;
        while (!wf_park_sleep(&timing.park, wf_clock_now() + wf_rng_below(&rng, 60 * US))) {
            sleeps++;
        }
        test_rounds_count(&rounds, sleeps > 1);
        CHECK_EQ(timing.note, round);
        CHECK(!wf_park_sleep(&timing.park, PAST));
    }
    atomic_store(&timing.stop, 1);
    atomic_store(&timing.ready, UINT64_MAX);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void *wake_at_random(void *arg)
{
    struct timing *timing = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 1);
    for (uint64_t round = 1;; round++) {
        test_spin_for(&timing->ready, round);
        if (atomic_load(&timing->stop) != 0) {
            return NULL;
        }
        for (uint32_t i = wf_rng_below(&rng, 1u << wf_rng_below(&rng, 10)); i > 0; i--) {
            wf_cpu_relax();
        }
        timing->note = round;
        wf_park_wake(&timing->park);
    }
}

/*
 * Goal:   as above, for wakes that hit every moment of a sleep that ends.
 * Method: the deadline has always passed, so the sleeper goes in and out all the time, while the
 *         other thread wakes it once per round.
 */
static void wake_that_races_with_end_of_sleep_is_not_lost(void)
{
    struct timing timing = { .note = 0 };
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, wake_at_random, &timing), 0);
    struct test_rounds rounds = test_rounds_begin();
    for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
        atomic_store(&timing.ready, round);
        int64_t limit = wf_clock_now() + INT64_C(30000) * MS;
        while (!wf_park_sleep(&timing.park, PAST)) {
            CHECK_LT(wf_clock_now(), limit);
        }
        CHECK_EQ(timing.note, round);
        CHECK(!wf_park_sleep(&timing.park, PAST));
    }
    atomic_store(&timing.stop, 1);
    atomic_store(&timing.ready, UINT64_MAX);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

enum {
    WAKERS = 3
};

struct crowd {
    struct wf_park park;
    _Atomic(uint64_t) noted[WAKERS];
    _Atomic(uint64_t) seen[WAKERS];
    _Atomic(uint64_t) next_index;
    _Atomic(uint64_t) left; /* number of wakers that are done */
    int64_t end;
};

static void *wake_in_crowd(void *arg)
{
    struct crowd *crowd = arg;
    uint64_t index = atomic_fetch_add(&crowd->next_index, 1);
    for (uint64_t round = 1; wf_clock_now() < crowd->end; round++) {
        atomic_store_explicit(&crowd->noted[index], round, memory_order_relaxed);
        wf_park_wake(&crowd->park);
        test_wait_for(&crowd->seen[index], round);
    }
    (void)atomic_fetch_add(&crowd->left, 1);
    wf_park_wake(&crowd->park);
    return NULL;
}

/*
 * Goal:   wakes by several threads may coalesce, but after each the sleeper checks once more.
 * Method: each waker waits until its number was seen before it wakes again. A lost wake ends in
 *         the timeout of the test.
 */
static void each_of_several_wakers_is_seen(void)
{
    struct crowd crowd = { .end = test_race_end() };
    pthread_t threads[WAKERS];
    for (int i = 0; i < WAKERS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, wake_in_crowd, &crowd), 0);
    }
    while (atomic_load(&crowd.left) < WAKERS) {
        CHECK(wf_park_sleep(&crowd.park, WF_NEVER));
        for (int i = 0; i < WAKERS; i++) {
            uint64_t noted = atomic_load_explicit(&crowd.noted[i], memory_order_relaxed);
            atomic_store(&crowd.seen[i], noted);
        }
    }
    for (int i = 0; i < WAKERS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

TEST_MAIN({
    TEST(wake_before_sleep_is_kept),
    TEST(several_wakes_count_once),
    TEST(pending_wake_counts_even_after_deadline),
    TEST(expired_deadline_returns_false_immediately),
    TEST(sleep_lasts_until_its_deadline),
    TEST(park_can_be_reused_after_timeout),
    TEST_STEPS(wake_that_interrupts_sleep_is_kept),
    TEST_STEPS(sleep_that_interrupts_wake_is_ended_by_it),
    TEST(two_threads_alternate_without_lost_wake),
    TEST(wake_that_races_with_timeout_is_not_lost),
    TEST(wake_that_races_with_end_of_sleep_is_not_lost),
    TEST(each_of_several_wakers_is_seen),
})
