/* SPDX-License-Identifier: MIT */
/*
 * barrier_model.c - src/sync/barrier.c and wait_group.c, with plain threads: nobody goes on
 * before all have come, or have finished; and then nobody is left.
 */
#include <weft/barrier.h>

#include <stdlib.h>

#include "base/atomic.h"
#include "sync_rig.h"

/* --- Barriers ------------------------------------------------------------------------------- */

static weft_barrier barrier;
static int written[2]; /* plain: each writes its own before it comes */
static _Atomic(int) leaders;

static void come_as(int index)
{
    written[index] = 1;
    int leads = weft_barrier_wait(&barrier, WEFT_NEVER);
    mc_assert(leads == 0 || leads == 1);
    (void)wf_fetch_add_relaxed(&leaders, leads);
    mc_assert(written[1 - index] == 1);
}

static void come_first(void *arg)
{
    (void)arg;
    come_as(0);
}

static void come_second(void *arg)
{
    (void)arg;
    come_as(1);
}

/*
 * Goal:   both see what the other one did before, one of them leads, and it can be used again.
 * Method: two threads, once and twice.
 */
static void two_come(void)
{
    weft_barrier_init(&barrier, 2);
    RIG_RUN(come_first, come_second);
    mc_assert(wf_load_relaxed(&leaders) == 1);
}

static void come_twice(void *arg)
{
    (void)arg;
    (void)wf_fetch_add_relaxed(&leaders, weft_barrier_wait(&barrier, WEFT_NEVER));
    (void)wf_fetch_add_relaxed(&leaders, weft_barrier_wait(&barrier, WEFT_NEVER));
}

static void two_come_twice(void)
{
    weft_barrier_init(&barrier, 2);
    RIG_RUN(come_twice, come_twice);
    mc_assert(wf_load_relaxed(&leaders) == 2);
}

/*
 * Goal:   one who gives up has not come.
 * Method: of three, one gives up in time; if it does, it comes again.
 */
static void come(void *arg)
{
    (void)arg;
    (void)wf_fetch_add_relaxed(&leaders, weft_barrier_wait(&barrier, WEFT_NEVER));
}

static void come_in_time_or_again(void *arg)
{
    int result = weft_barrier_wait(&barrier, DEADLINE);
    mc_note(result == WEFT_ETIMEDOUT ? 2 : 1);
    if (result == WEFT_ETIMEDOUT) {
        come(arg);
    } else {
        (void)wf_fetch_add_relaxed(&leaders, result);
    }
}

static void one_gives_up_and_comes_again(void)
{
    weft_barrier_init(&barrier, 2);
    RIG_RUN(come_in_time_or_again, come);
    mc_assert(wf_load_relaxed(&leaders) == 1);
}

static void three_come(void)
{
    weft_barrier_init(&barrier, 3);
    RIG_RUN(come_in_time_or_again, come, come);
    mc_assert(wf_load_relaxed(&leaders) == 1);
}

/* --- Groups --------------------------------------------------------------------------------- */

static weft_wait_group *group;

static void finish_as(int index)
{
    written[index] = 1;
    weft_wait_group_done(group);
}

static void finish_first(void *arg)
{
    (void)arg;
    finish_as(0);
}

static void finish_second(void *arg)
{
    (void)arg;
    finish_as(1);
}

static void wait_and_free(void *arg)
{
    (void)arg;
    mc_assert(weft_wait_group_wait(group, WEFT_NEVER) == 0);
    mc_assert(written[0] + written[1] == 2);
    free(group);
}

/*
 * Goal:   who waits sees what all have done, and may free the group.
 * Method: two finish while one waits.
 */
static void two_finish(void)
{
    group = calloc(1, sizeof *group);
    weft_wait_group_add(group, 2);
    RIG_RUN(finish_first, finish_second, wait_and_free);
}

static void wait_in_time(void *arg)
{
    (void)arg;
    int err = weft_wait_group_wait(group, DEADLINE);
    mc_note(err == 0 ? 1 : 2);
    mc_assert(err == WEFT_ETIMEDOUT || written[0] == 1);
}

static void one_gives_up_waiting(void)
{
    group = calloc(1, sizeof *group);
    weft_wait_group_add(group, 1);
    RIG_RUN(finish_first, wait_in_time);
    mc_assert(weft_wait_group_wait(group, WEFT_NEVER) == 0);
    mc_assert(written[0] == 1);
    free(group);
}

static const struct mc_test tests[] = {
    { .name = "two_come", .run = two_come, .preemptions = 2, .deep_preemptions = 4 },
    { .name = "two_come_twice", .run = two_come_twice, .mode = MC_PCT, .runs = 20000 },
    { .name = "one_gives_up_and_comes_again",
      .run = one_gives_up_and_comes_again,
      .mode = MC_PCT,
      .runs = 40000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "three_come",
      .run = three_come,
      .mode = MC_PCT,
      .runs = 20000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "two_finish", .run = two_finish, .mode = MC_PCT, .runs = 20000, .leaks = true },
    { .name = "one_gives_up_waiting",
      .run = one_gives_up_waiting,
      .mode = MC_PCT,
      .runs = 40000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
};

MC_MAIN(tests)
