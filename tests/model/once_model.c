/* SPDX-License-Identifier: MIT */
/*
 * once_model.c - src/sync/once.c, with plain threads: it is done once, who fails leaves the
 * turn to another, and all see what was done.
 */
#include <weft/once.h>

#include "sync_rig.h"

static weft_once once;
static int done; /* plain, as the next */
static int tries;

static int do_it(void *arg)
{
    (void)arg;
    mc_assert(done == 0);
    tries++;
    done = 1;
    return 0;
}

static int fail_first(void *arg)
{
    return ++tries == 1 ? -5 : do_it(arg);
}

static void need_it(void *arg)
{
    (void)arg;
    mc_assert(weft_once_run(&once, do_it, NULL, WEFT_NEVER) == 0);
    mc_assert(done == 1);
}

static void need_it_with_luck(void *arg)
{
    (void)arg;
    int err = weft_once_run(&once, fail_first, NULL, WEFT_NEVER);
    mc_assert(err == 0 || err == -5);
    mc_assert(err != 0 || done == 1);
    mc_note(err == 0 ? 1 : 2);
}

static void need_it_in_time(void *arg)
{
    (void)arg;
    int err = weft_once_run(&once, fail_first, NULL, DEADLINE);
    mc_assert(err == 0 || err == -5 || err == WEFT_ETIMEDOUT);
    mc_note(err == WEFT_ETIMEDOUT ? 3 : 1);
}

static void look(void *arg)
{
    (void)arg;
    if (weft_once_is_done(&once)) {
        mc_assert(done == 1);
    }
}

static void two_need_it(void)
{
    RIG_RUN(need_it, need_it);
    mc_assert(tries == 1);
}

static void one_looks(void)
{
    RIG_RUN(need_it, look);
}

static void three_need_it(void)
{
    RIG_RUN(need_it, need_it, need_it);
    mc_assert(tries == 1);
}

/*
 * Goal:   after a failure the next one has the turn, also if the first of those who wait
 *         gives up.
 * Method: the first try fails.
 */
static void one_fails(void)
{
    RIG_RUN(need_it_with_luck, need_it_with_luck);
    mc_assert(done == 1);
}

static void one_fails_and_one_gives_up(void)
{
    RIG_RUN(need_it_with_luck, need_it_in_time, need_it_with_luck);
    need_it_with_luck(NULL);
    mc_assert(weft_once_is_done(&once));
}

static const struct mc_test tests[] = {
    { .name = "two_need_it", .run = two_need_it, .preemptions = 2 },
    { .name = "one_looks", .run = one_looks },
    { .name = "three_need_it", .run = three_need_it, .mode = MC_PCT, .runs = 20000 },
    { .name = "one_fails", .run = one_fails, .preemptions = 2, .seen = MC_OUTCOMES(1, 2) },
    { .name = "one_fails_and_one_gives_up",
      .run = one_fails_and_one_gives_up,
      .mode = MC_PCT,
      .runs = 20000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2, 3) },
};

MC_MAIN(tests)
