/* SPDX-License-Identifier: MIT */
/*
 * park_model.c - src/sched/park.c: one thread sleeps, others wake it.
 *
 * A wake that is lost is a deadlock here, since no deadline fires unless the test
 * says so. What catches what: that a wake before the sleep is kept needs a single
 * waker; that a wake is not lost to a timeout needs one that comes with it.
 */
#include "sched/park.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "mc.h"

static struct wf_park park;
static int news[2];              /* by the wakers, plain: [P1] must order it */
static _Atomic(unsigned) wishes; /* bits: who has something to say */

static void begin(void)
{
    mc_name(&park, sizeof park, "park");
}

static void wake_with_news(void *arg)
{
    int *mine = arg;
    *mine = 42;
    (void)wf_park_wake(&park);
}

/*
 * Goal:   the sleeper wakes, and sees what the waker wrote before.
 * Method: one waker, which may come before the sleep, or in its middle.
 */
static void wake_brings_the_news(void)
{
    begin();
    mc_go(wake_with_news, &news[0]);
    mc_assert(wf_park_sleep(&park, WF_NEVER));
    mc_assert(news[0] == 42);
    mc_join();
}

/* Announces itself like a task in a queue, then wakes. */
static void wish_and_wake(void *arg)
{
    int *mine = arg;
    *mine = 42;
    unsigned bit = 1u << (mine - news);
    (void)wf_fetch_add_relaxed(&wishes, bit);
    (void)wf_park_wake(&park);
}

/*
 * Goal:   two wakes may count as one, but whoever comes after a look is not lost.
 * Method: the sleeper looks for wishes, sleeps if some are missing, looks again.
 */
static void two_wakers_and_a_loop(void)
{
    begin();
    mc_go(wish_and_wake, &news[0]);
    mc_go(wish_and_wake, &news[1]);
    for (;;) {
        /* relaxed: the word of the park orders the news. */
        if (wf_load_relaxed(&wishes) == 3) {
            break;
        }
        mc_assert(wf_park_sleep(&park, WF_NEVER));
    }
    mc_join();
}

/*
 * Goal:   a wake that comes with the deadline is returned by this sleep or by the
 *         next one, never lost, never doubled.
 * Method: the deadline may fire at any time; then the sleeper sleeps again.
 */
static void wake_against_timeout(void)
{
    begin();
    mc_go(wake_with_news, &news[0]);
    bool woken = wf_park_sleep(&park, 1000);
    mc_note(woken);
    if (!woken) {
        mc_assert(wf_park_sleep(&park, WF_NEVER));
    }
    mc_assert(news[0] == 42);
    mc_join();
    /* relaxed: everybody is done. */
    mc_assert(wf_load_relaxed(&park.word) == 0);
}

/*
 * Goal:   the same, with two wakers and two sleeps that may time out.
 * Method: the sleeper goes on until it has both wishes.
 */
static void wakes_against_timeouts(void)
{
    begin();
    mc_go(wish_and_wake, &news[0]);
    mc_go(wish_and_wake, &news[1]);
    unsigned sleeps = 0;
    for (;;) {
        /* relaxed: the word of the park orders the news. */
        if (wf_load_relaxed(&wishes) == 3) {
            break;
        }
        (void)wf_park_sleep(&park, sleeps < 2 ? 1000 : WF_NEVER);
        sleeps++;
    }
    mc_join();
}

/*
 * Goal:   a sleep ends by a wake only, not by a futex that returns for no reason.
 * Method: the news must be there when it returns.
 */
static void spurious_wake_sleeps_on(void)
{
    begin();
    mc_go(wake_with_news, &news[0]);
    mc_assert(wf_park_sleep(&park, WF_NEVER));
    mc_assert(news[0] == 42);
    mc_join();
}

/* The second waker is a round later than the first. */
static void wake_again(void *arg)
{
    (void)arg;
    news[0] = 1;
    (void)wf_park_wake(&park);
    while (wf_load_acquire(&wishes) == 0) {
    }
    news[1] = 2;
    (void)wf_park_wake(&park);
}

/*
 * Goal:   the park can be used again, and the second sleep is not ended by what is
 *         left of the first wake.
 * Method: two rounds; the waker waits for the end of the first.
 */
static void second_round(void)
{
    begin();
    mc_go(wake_again, NULL);
    mc_assert(wf_park_sleep(&park, WF_NEVER));
    mc_assert(news[0] == 1);
    wf_store_release(&wishes, 1u);
    mc_assert(wf_park_sleep(&park, WF_NEVER));
    mc_assert(news[1] == 2);
    mc_join();
}

static struct wf_park elsewhere;

static void wake_there(void *arg)
{
    int *mine = arg;
    *mine = 42;
    (void)wf_fetch_add_relaxed(&wishes, 1u << (mine - news));
    if (wf_park_wake(&park)) {
        (void)wf_park_wake(&elsewhere);
    }
}

/* Until it is woken. */
static void sleep_elsewhere(void)
{
    if (wf_park_leave(&park)) {
        while (wf_park_is_away(&park)) {
            (void)wf_park_sleep(&elsewhere, WF_NEVER);
        }
        mc_assert(wf_park_come_back(&park));
    }
}

/*
 * Goal:   one that sleeps elsewhere is woken there, and sees the news.
 * Method: one waker; or two, and it sleeps until it has both wishes.
 */
static void woken_elsewhere(void)
{
    begin();
    mc_go(wake_there, &news[0]);
    sleep_elsewhere();
    mc_assert(news[0] == 42);
    mc_join();
}

static void two_wake_elsewhere(void)
{
    begin();
    mc_go(wake_there, &news[0]);
    mc_go(wake_there, &news[1]);
    /* relaxed: the word of the park orders the news. */
    while (wf_load_relaxed(&wishes) != 3) {
        sleep_elsewhere();
    }
    mc_join();
}

static int seat; /* plain: [P2] must order it */

static void wake_and_look_there(void *arg)
{
    (void)arg;
    if (wf_park_wake(&park)) {
        mc_assert(seat == 1);
        (void)wf_park_wake(&elsewhere);
        mc_note(1);
    }
}

/*
 * Goal:   who wakes one that sleeps elsewhere sees what that did before it left.
 */
static void waker_sees_who_left(void)
{
    begin();
    mc_go(wake_and_look_there, NULL);
    seat = 1;
    sleep_elsewhere();
    mc_join();
}

static const struct mc_test tests[] = {
    { .name = "woken_elsewhere", .run = woken_elsewhere },
    { .name = "two_wake_elsewhere", .run = two_wake_elsewhere },
    { .name = "waker_sees_who_left", .run = waker_sees_who_left, .seen = MC_OUTCOMES(1) },
    { .name = "wake_brings_the_news", .run = wake_brings_the_news },
    { .name = "two_wakers_and_a_loop", .run = two_wakers_and_a_loop },
    { .name = "wake_against_timeout",
      .run = wake_against_timeout,
      .timeouts = 1,
      .seen = MC_OUTCOMES(0, 1),
      .seen_only = true },
    { .name = "wakes_against_timeouts", .run = wakes_against_timeouts, .timeouts = 2 },
    { .name = "spurious_wake_sleeps_on", .run = spurious_wake_sleeps_on, .spurious_wakes = 2 },
    { .name = "second_round", .run = second_round, .timeouts = 1, .spurious_wakes = 1 },
};

MC_MAIN(tests)
