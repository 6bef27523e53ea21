/* SPDX-License-Identifier: MIT */
/*
 * mutex_model.c - src/sync/mutex.c, with plain threads: one at a time has the mutex, each
 * sees what the last one wrote, and nobody waits for a mutex that is free.
 */
#include <weft/mutex.h>

#include <stdlib.h>

#include "sync_rig.h"

static weft_mutex mutex;
static int guarded; /* plain: a race is a mutex that two have */

static void add_one(void *arg)
{
    (void)arg;
    mc_assert(weft_mutex_lock(&mutex, WEFT_NEVER) == 0);
    guarded++;
    weft_mutex_unlock(&mutex);
}

static void add_in_time(void *arg)
{
    (void)arg;
    int err = weft_mutex_lock(&mutex, DEADLINE);
    mc_assert(err == 0 || err == WEFT_ETIMEDOUT);
    mc_note(err == 0 ? 1 : 2);
    if (err == 0) {
        guarded++;
        weft_mutex_unlock(&mutex);
    }
}

static void add_if_free(void *arg)
{
    (void)arg;
    if (weft_mutex_try_lock(&mutex)) {
        guarded++;
        weft_mutex_unlock(&mutex);
    }
}

/* Nobody has it, and nobody thinks that somebody waits. */
static void end(void)
{
    mc_assert(!weft_mutex_is_locked(&mutex));
    mc_assert(weft_mutex_try_lock(&mutex));
    weft_mutex_unlock(&mutex);
    mc_assert(mutex.opaque[0] == 0);
}

/*
 * Goal:   exclusion, and no wake-up is lost.
 * Method: two threads; three threads.
 */
static void two_threads(void)
{
    RIG_RUN(add_one, add_one);
    mc_assert(guarded == 2);
    end();
}

static void three_threads(void)
{
    RIG_RUN(add_one, add_one, add_one);
    mc_assert(guarded == 3);
    end();
}

/*
 * Goal:   one that has waited for long has it next, also if who had it comes back at once.
 * Method: the clock goes on while somebody may wait.
 */
static void hold_for_long(void *arg)
{
    mc_assert(weft_mutex_lock(&mutex, WEFT_NEVER) == 0);
    mc_clock_advance(2000000);
    guarded++;
    weft_mutex_unlock(&mutex);
    add_one(arg);
}

static void handed_over(void)
{
    RIG_RUN(add_one, hold_for_long);
    mc_assert(guarded == 3);
    end();
}

static void handed_over_to_one_that_gives_up(void)
{
    RIG_RUN(add_in_time, hold_for_long);
    mc_assert(guarded >= 2);
    end();
}

/*
 * Goal:   one that gives up takes nothing with it that others wait for.
 * Method: a deadline that may pass at any time, beside two that wait for ever.
 */
static void one_gives_up(void)
{
    mc_assert(weft_mutex_try_lock(&mutex));
    mc_go(add_in_time, NULL);
    mc_go(add_one, NULL);
    weft_mutex_unlock(&mutex);
    mc_join();
    mc_assert(guarded >= 1);
    end();
}

static void one_gives_up_beside_one(void)
{
    RIG_RUN(add_in_time, add_one);
    end();
}

/*
 * Goal:   a try takes it, or somebody has it.
 * Method: one tries beside two others.
 */
static void one_tries(void)
{
    RIG_RUN(add_if_free, add_one, add_one);
    mc_assert(guarded >= 2);
    end();
}

/*
 * Goal:   to unlock it is the last access to it.
 * Method: the last one who needs it frees it.
 */
struct counted {
    weft_mutex mutex;
    int users;
};

static struct counted *counted;

static void use_and_free(void *arg)
{
    (void)arg;
    mc_assert(weft_mutex_lock(&counted->mutex, WEFT_NEVER) == 0);
    bool is_last = --counted->users == 0;
    weft_mutex_unlock(&counted->mutex);
    if (is_last) {
        free(counted);
    }
}

static void the_last_one_frees_it(void)
{
    counted = calloc(1, sizeof *counted);
    counted->users = 2;
    RIG_RUN(use_and_free, use_and_free);
}

static const struct mc_test tests[] = {
    { .name = "two_threads", .run = two_threads },
    { .name = "three_threads", .run = three_threads, .mode = MC_PCT, .runs = 20000 },
    { .name = "handed_over", .run = handed_over, .preemptions = 2, .moving_clock = true },
    { .name = "handed_over_to_one_that_gives_up",
      .run = handed_over_to_one_that_gives_up,
      .mode = MC_PCT,
      .runs = 40000,
      .moving_clock = true,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "one_gives_up_beside_one",
      .run = one_gives_up_beside_one,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "one_gives_up",
      .run = one_gives_up,
      .mode = MC_PCT,
      .runs = 20000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "one_tries", .run = one_tries, .mode = MC_PCT, .runs = 20000 },
    { .name = "the_last_one_frees_it", .run = the_last_one_frees_it, .leaks = true },
};

MC_MAIN(tests)
