/* SPDX-License-Identifier: MIT */
/*
 * cond_model.c - src/sync/cond.c with the mutex, and plain threads: who waits for a change is
 * told of it, and has the mutex again.
 */
#include <weft/cond.h>

#include "sync_rig.h"

static weft_mutex mutex;
static weft_cond changed;
static int items; /* plain: the mutex guards it */

static void put(int count)
{
    mc_assert(weft_mutex_lock(&mutex, WEFT_NEVER) == 0);
    items += count;
    weft_mutex_unlock(&mutex);
}

static void put_one(void *arg)
{
    (void)arg;
    put(1);
    weft_cond_signal(&changed);
}

static void put_two(void *arg)
{
    (void)arg;
    put(2);
    weft_cond_broadcast(&changed);
}

static void take_until(weft_time deadline)
{
    int err = 0;
    mc_assert(weft_mutex_lock(&mutex, WEFT_NEVER) == 0);
    while (items == 0 && err == 0) {
        err = weft_cond_wait(&changed, &mutex, deadline);
    }
    mc_assert(err == 0 || (err == WEFT_ETIMEDOUT && deadline == DEADLINE));
    mc_note(err == 0 ? 1 : 2);
    items -= err == 0;
    weft_mutex_unlock(&mutex);
}

static void take_one(void *arg)
{
    (void)arg;
    take_until(WEFT_NEVER);
}

static void take_in_time(void *arg)
{
    (void)arg;
    take_until(DEADLINE);
}

static void end(int left)
{
    mc_assert(items == left || left < 0);
    mc_assert(mutex.opaque[0] == 0);
}

static void one_waits(void)
{
    RIG_RUN(put_one, take_one);
    end(0);
}

static void two_wait_for_one_each(void)
{
    RIG_RUN(put_one, put_one, take_one, take_one);
    end(0);
}

static void two_wait_for_a_broadcast(void)
{
    RIG_RUN(put_two, take_one, take_one);
    end(0);
}

/*
 * Goal:   one that gives up takes no signal with it, and has the mutex.
 * Method: one waits in time; for another one there is always something.
 */
static void one_gives_up(void)
{
    RIG_RUN(put_one, take_in_time);
    end(-1);
}

static void one_gives_up_beside_another(void)
{
    RIG_RUN(put_one, put_one, take_in_time, take_one);
    end(-1);
}

static const struct mc_test tests[] = {
    { .name = "one_waits", .run = one_waits, .preemptions = 2, .seen = MC_OUTCOMES(1) },
    { .name = "two_wait_for_one_each",
      .run = two_wait_for_one_each,
      .mode = MC_PCT,
      .runs = 20000,
      .seen = MC_OUTCOMES(1) },
    { .name = "two_wait_for_a_broadcast",
      .run = two_wait_for_a_broadcast,
      .mode = MC_PCT,
      .runs = 20000,
      .seen = MC_OUTCOMES(1) },
    { .name = "one_gives_up",
      .run = one_gives_up,
      .mode = MC_PCT,
      .runs = 40000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "one_gives_up_beside_another",
      .run = one_gives_up_beside_another,
      .mode = MC_PCT,
      .runs = 20000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
};

MC_MAIN(tests)
