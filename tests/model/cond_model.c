/* SPDX-License-Identifier: MIT */
/*
 * cond_model.c - model of condition variables (src/sync/cond.c) with the real mutex.
 *
 * With plain threads: a waiter is notified of a change and returns with the mutex locked, also from
 * a select.
 */
#include <weft/cond.h>

#include <weft/event.h>
#include <weft/select.h>

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

/*
 * Goal:   a wait that loses a select holds the mutex and consumes no signal.
 * Method: one thread waits for the condition or an event, and takes nothing. If the condition
 *         wins, it signals the thread that takes the item. If the event wins, the signal must
 *         reach that thread all the same.
 */
static weft_event stop;

static void set_stop(void *arg)
{
    (void)arg;
    weft_event_set(&stop);
}

static void wait_in_select(void *arg)
{
    (void)arg;
    weft_cond_future wait;
    weft_op stops;
    mc_assert(weft_mutex_lock(&mutex, WEFT_NEVER) == 0);
    weft_cond_wait_init(&wait, &changed, &mutex);
    weft_event_wait_init(&stops, &stop);
    weft_branch branches[2] = { { .future = &stops.future }, { .future = &wait.future } };
    int winner = weft_select(branches, 2, WEFT_SELECT_ORDERED, WEFT_NEVER);
    mc_assert(winner == 0 || winner == 1);
    mc_assert(branches[winner].result == 0);
    mc_note(winner == 0 ? 3 : 4);
    mc_assert(items >= 0);
    weft_mutex_unlock(&mutex);
    if (winner == 1) {
        weft_cond_signal(&changed);
    }
}

static void wait_losing_select_holds_mutex(void)
{
    RIG_RUN(set_stop, put_one, wait_in_select);
    end(1);
}

static void wait_losing_select_consumes_no_signal(void)
{
    RIG_RUN(set_stop, put_one, take_one, wait_in_select);
    end(0);
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
    { .name = "wait_losing_select_holds_mutex",
      .run = wait_losing_select_holds_mutex,
      .mode = MC_PCT,
      .runs = 40000,
      .seen = MC_OUTCOMES(3, 4) },
    { .name = "wait_losing_select_consumes_no_signal",
      .run = wait_losing_select_consumes_no_signal,
      .mode = MC_PCT,
      .runs = 40000,
      .seen = MC_OUTCOMES(1, 3, 4) },
};

MC_MAIN(tests)
