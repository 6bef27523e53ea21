/* SPDX-License-Identifier: MIT */
/*
 * semaphore_model.c - src/sync/semaphore.c, with plain threads: no more permits are acquired
 * than there are, none is lost, and nobody waits for permits that are there.
 */
#include <weft/semaphore.h>

#include <stdlib.h>

#include "sync_rig.h"

static weft_semaphore semaphore;
static int guarded; /* plain: of who has all permits */

static void use(uint32_t permits)
{
    mc_assert(weft_semaphore_acquire(&semaphore, permits, WEFT_NEVER) == 0);
    if (permits == 2) {
        guarded++;
    }
    weft_semaphore_release(&semaphore, permits);
}

static void use_one(void *arg)
{
    (void)arg;
    use(1);
}

static void use_two(void *arg)
{
    (void)arg;
    use(2);
}

static void use_two_in_time(void *arg)
{
    (void)arg;
    int err = weft_semaphore_acquire(&semaphore, 2, DEADLINE);
    mc_assert(err == 0 || err == WEFT_ETIMEDOUT);
    mc_note(err == 0 ? 1 : 2);
    if (err == 0) {
        guarded++;
        weft_semaphore_release(&semaphore, 2);
    }
}

/* All permits are there, and nobody thinks that somebody waits. */
static void end(uint32_t permits)
{
    mc_assert(weft_semaphore_try_acquire(&semaphore, permits) == 0);
    mc_assert(semaphore.word == 0);
}

/*
 * Goal:   what is released goes to who waits for it.
 * Method: two permits; one thread wants both, others one, or both.
 */
static void both_and_both(void)
{
    weft_semaphore_init(&semaphore, 2);
    RIG_RUN(use_two, use_two);
    mc_assert(guarded == 2);
    end(2);
}

static void both_and_one_and_one(void)
{
    weft_semaphore_init(&semaphore, 2);
    RIG_RUN(use_two, use_one, use_one);
    end(2);
}

/*
 * Goal:   one that gives up holds nobody up, and keeps nothing.
 * Method: one permit of two is out; one wants both, in time, and one behind it wants one.
 */
static void release_one(void *arg)
{
    (void)arg;
    weft_semaphore_release(&semaphore, 1);
}

static void one_gives_up(void)
{
    weft_semaphore_init(&semaphore, 1);
    RIG_RUN(use_two_in_time, use_one, release_one);
    end(2);
}

/* The permit that is there is for who stands behind one that never gets enough. */
static void one_gives_up_and_lets_another_go(void)
{
    weft_semaphore_init(&semaphore, 1);
    RIG_RUN(use_two_in_time, use_one);
    end(1);
}

/*
 * Goal:   who waits when it is closed is told, and no permit is lost.
 * Method: one closes it while another waits, or is about to, and a permit is released.
 */
static void close_it(void *arg)
{
    (void)arg;
    weft_semaphore_close(&semaphore);
}

static void acquire_or_be_told(void *arg)
{
    (void)arg;
    int err = weft_semaphore_acquire(&semaphore, 1, WEFT_NEVER);
    mc_assert(err == 0 || err == WEFT_ECLOSED);
    mc_note(err == 0 ? 1 : 2);
    if (err == 0) {
        weft_semaphore_release(&semaphore, 1);
    }
}

static void closed_meanwhile(void)
{
    RIG_RUN(acquire_or_be_told, release_one, close_it);
    mc_assert(weft_semaphore_available(&semaphore) == 1);
}

/*
 * Goal:   a permit that nobody waits for makes others see what was done before.
 * Method: one writes and releases, the other acquires and reads.
 */
static void write_and_release(void *arg)
{
    guarded = 1;
    release_one(arg);
}

static void acquire_and_read(void *arg)
{
    (void)arg;
    mc_assert(weft_semaphore_acquire(&semaphore, 1, WEFT_NEVER) == 0);
    mc_assert(guarded == 1);
}

static void a_release_publishes(void)
{
    RIG_RUN(write_and_release, acquire_and_read);
}

static const struct mc_test tests[] = {
    { .name = "both_and_both", .run = both_and_both },
    { .name = "a_release_publishes", .run = a_release_publishes },
    { .name = "both_and_one_and_one", .run = both_and_one_and_one, .mode = MC_PCT, .runs = 20000 },
    { .name = "one_gives_up_and_lets_another_go",
      .run = one_gives_up_and_lets_another_go,
      .preemptions = 2,
      .timeouts = 1,
      .seen = MC_OUTCOMES(2),
      .seen_only = true },
    { .name = "one_gives_up",
      .run = one_gives_up,
      .mode = MC_PCT,
      .runs = 20000,
      .timeouts = 1,
      .seen = MC_OUTCOMES(1, 2) },
    { .name = "closed_meanwhile",
      .run = closed_meanwhile,
      .mode = MC_PCT,
      .runs = 40000,
      .seen = MC_OUTCOMES(1, 2) },
};

MC_MAIN(tests)
