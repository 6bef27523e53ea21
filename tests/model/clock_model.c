/* SPDX-License-Identifier: MIT */
/*
 * clock_model.c - src/base/clock.c: the program's time is paused, moved on and let go
 * while others look at it and sleep by it.
 *
 * The machine's time stands still, so what is seen of the program's is what was done
 * to it. Whoever moves it on waits for sleepers in a loop, so executions are chosen by
 * chance.
 */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

#include <weft/clock.h>

#include "mc.h"

enum {
    DEADLINE = 1000050,
};

static _Atomic(uint32_t) word;

int model_clock_gettime(clockid_t clock, struct timespec *now);

int model_clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){ .tv_nsec = 50 };
    return 0;
}

/* Goal: the time does not go back, whatever is done to it meanwhile. */
static void look_twice(void *arg)
{
    (void)arg;
    int64_t first = wf_clock_now();
    int64_t second = wf_clock_now();
    mc_assert(first >= 50);
    mc_assert(second >= first);
    mc_note(second == 50 ? 1 : second == WEFT_MS ? 2 : 3);
}

static void time_does_not_go_back(void)
{
    mc_go(look_twice, NULL);
    weft_clock_pause();
    weft_clock_advance(10);
    weft_clock_resume();
    mc_assert(wf_clock_now() == WEFT_MS + 10); /* It was paused at a whole millisecond. */
    mc_join();
}

static void sleep_until_deadline(void *arg)
{
    (void)arg;
    int rc = 0;
    while (rc == 0) {
        rc = wf_clock_futex_wait(&word, 0, DEADLINE);
    }
    mc_assert(rc == -ETIMEDOUT);
    mc_assert(wf_clock_now() >= DEADLINE);
}

/* Goal: whoever sleeps, or is about to, leaves when its deadline is passed. */
static void sleep_against_advance(void)
{
    weft_clock_pause();
    mc_go(sleep_until_deadline, NULL);
    weft_clock_advance(10);
    weft_clock_advance(40);
    mc_join();
}

static const struct mc_test tests[] = {
    { .name = "time_does_not_go_back", .run = time_does_not_go_back, .seen = MC_OUTCOMES(1, 2, 3) },
    { .name = "sleep_against_advance",
      .run = sleep_against_advance,
      .mode = MC_RANDOM,
      .runs = 5000 },
};

MC_MAIN(tests)
