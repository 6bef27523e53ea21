/* SPDX-License-Identifier: MIT */
#include "sched/park.h"

#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/rng.h"
#include "test.h"

enum {
    US = 1000,
    MS = 1000 * 1000
};

/* A deadline that has passed. */
#define PAST INT64_C(1)

static void a_wake_before_the_sleep_is_kept(void)
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

static void a_wake_kept_counts_also_after_the_deadline(void)
{
    struct wf_park park = { 0 };
    wf_park_wake(&park);
    CHECK(wf_park_sleep(&park, PAST));
    CHECK(!wf_park_sleep(&park, PAST));
}

static void a_deadline_that_has_passed_returns_false_at_once(void)
{
    struct wf_park park = { 0 };
    CHECK(!wf_park_sleep(&park, PAST));
    CHECK(!wf_park_sleep(&park, 0));
    CHECK(!wf_park_sleep(&park, -1));
    CHECK(!wf_park_sleep(&park, INT64_MIN));
}

static void a_sleep_lasts_until_its_deadline(void)
{
    struct wf_park park = { 0 };
    int64_t deadline = wf_clock_now() + 2 * MS;
    CHECK(!wf_park_sleep(&park, deadline));
    CHECK_GE(wf_clock_now(), deadline);
}

static void a_park_can_be_used_again_after_a_timeout(void)
{
    struct wf_park park = { 0 };
    for (int i = 0; i < 3; i++) {
        CHECK(!wf_park_sleep(&park, PAST));
        wf_park_wake(&park);
        CHECK(wf_park_sleep(&park, WF_NEVER));
    }
}

/* Two threads that wake each other in turn. */
struct pair {
    struct wf_park parks[2];
    uint64_t ball; /* plain: passed on by [P1] */
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
 * Goal:   no wake is lost between two threads, and each sees what the other
 *         wrote before it woke it.
 * Method: a plain counter goes back and forth; a lost wake ends in the timeout
 *         of the test. Once on any CPUs, then on one, where a switch is cheap
 *         and can come between any two instructions.
 */
static void two_threads_play_ping_pong(void)
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

/* One who wakes at about the time the sleeper gives up. */
struct timing {
    struct wf_park park;
    uint64_t note; /* plain: written before the wake of the round */
    uint64_t rounds;
    _Atomic(uint64_t) ready; /* the sleeper has begun the round */
};

static void *wake_each_round(void *arg)
{
    struct timing *timing = arg;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 1);
    for (uint64_t round = 1; round <= timing->rounds; round++) {
        test_wait_for(&timing->ready, round);
        int64_t until = wf_clock_now() + wf_rng_below(&rng, 60 * US);
        while (wf_clock_now() < until) {
            wf_cpu_relax();
        }
        timing->note = round;
        wf_park_wake(&timing->park);
    }
    return NULL;
}

/*
 * Goal:   a wake that comes together with the deadline ends that sleep or the
 *         next one, once.
 * Method: each round has one wake, some time after the sleeper went to sleep
 *         with a deadline just as far away; it sleeps until it is woken. Then
 *         nothing may be left.
 */
static void a_wake_that_meets_the_timeout_is_not_lost(void)
{
    struct timing timing = { .rounds = test_scale(6000) };
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, wake_each_round, &timing), 0);
    for (uint64_t round = 1; round <= timing.rounds; round++) {
        atomic_store(&timing.ready, round);
        while (!wf_park_sleep(&timing.park, wf_clock_now() + wf_rng_below(&rng, 60 * US))) {
        }
        CHECK_EQ(timing.note, round);
        CHECK(!wf_park_sleep(&timing.park, PAST));
    }
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
    uint64_t rounds;
};

static void *wake_in_crowd(void *arg)
{
    struct crowd *crowd = arg;
    uint64_t index = atomic_fetch_add(&crowd->next_index, 1);
    for (uint64_t round = 1; round <= crowd->rounds; round++) {
        atomic_store_explicit(&crowd->noted[index], round, memory_order_relaxed);
        wf_park_wake(&crowd->park);
        test_wait_for(&crowd->seen[index], round);
    }
    return NULL;
}

/*
 * Goal:   wakes of several threads may melt together, but after each the sleeper
 *         looks once more.
 * Method: each waker waits until its note was seen before it wakes again; a lost
 *         wake ends in the timeout of the test.
 */
static void each_waker_is_heard_in_a_crowd(void)
{
    struct crowd crowd = { .rounds = test_scale(10000) };
    pthread_t threads[WAKERS];
    for (int i = 0; i < WAKERS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, wake_in_crowd, &crowd), 0);
    }
    uint64_t heard = 0;
    while (heard < WAKERS * crowd.rounds) {
        CHECK(wf_park_sleep(&crowd.park, WF_NEVER));
        for (int i = 0; i < WAKERS; i++) {
            uint64_t noted = atomic_load_explicit(&crowd.noted[i], memory_order_relaxed);
            heard += noted - atomic_load(&crowd.seen[i]);
            atomic_store(&crowd.seen[i], noted);
        }
    }
    for (int i = 0; i < WAKERS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

TEST_MAIN({
    TEST(a_wake_before_the_sleep_is_kept),
    TEST(several_wakes_count_once),
    TEST(a_wake_kept_counts_also_after_the_deadline),
    TEST(a_deadline_that_has_passed_returns_false_at_once),
    TEST(a_sleep_lasts_until_its_deadline),
    TEST(a_park_can_be_used_again_after_a_timeout),
    TEST(two_threads_play_ping_pong),
    TEST(a_wake_that_meets_the_timeout_is_not_lost),
    TEST(each_waker_is_heard_in_a_crowd),
})
