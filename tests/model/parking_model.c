/* SPDX-License-Identifier: MIT */
/*
 * parking_model.c - src/sync/park.c, with plain threads, and one place for all addresses: who
 * must wait is unparked, and nobody else.
 */
#include <weft/park.h>

#include "base/atomic.h"
#include "sync_rig.h"

static _Atomic(int) words[2];
static int written; /* plain */

static bool is_unset(void *arg)
{
    return wf_load_acquire((_Atomic(int) *)arg) == 0;
}

static void set(int index)
{
    wf_store_release(&words[index], 1);
    mc_note((int)weft_unpark(&words[index], 1));
}

static void set_first(void *arg)
{
    (void)arg;
    written = 1;
    set(0);
}

static void set_second(void *arg)
{
    (void)arg;
    set(1);
}

static void wait_at(int index, weft_time deadline)
{
    int err = weft_park(&words[index], is_unset, &words[index], deadline);
    mc_assert(err == 0 || err == -EAGAIN || deadline == DEADLINE);
    mc_assert(err == WEFT_ETIMEDOUT || !is_unset(&words[index]));
    mc_assert(err == WEFT_ETIMEDOUT || index != 0 || written == 1);
}

static void wait_first(void *arg)
{
    (void)arg;
    wait_at(0, WEFT_NEVER);
}

static void wait_second(void *arg)
{
    (void)arg;
    wait_at(1, WEFT_NEVER);
}

static void wait_first_in_time(void *arg)
{
    (void)arg;
    wait_at(0, DEADLINE);
}

static void one_waits(void)
{
    RIG_RUN(set_first, wait_first);
}

static void two_addresses(void)
{
    RIG_RUN(set_first, set_second, wait_first, wait_second);
}

static void one_gives_up(void)
{
    RIG_RUN(set_first, wait_first_in_time);
}

static const struct mc_test tests[] = {
    { .name = "one_waits", .run = one_waits, .seen = MC_OUTCOMES(0, 1), .seen_only = true },
    { .name = "two_addresses",
      .run = two_addresses,
      .mode = MC_PCT,
      .runs = 20000,
      .seen = MC_OUTCOMES(0, 1) },
    { .name = "one_gives_up",
      .run = one_gives_up,
      .preemptions = 2,
      .timeouts = 1,
      .seen = MC_OUTCOMES(0, 1) },
};

MC_MAIN(tests)
