/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <time.h>

#include <weft/time.h>

#include "test.h"

static int64_t monotonic_ns(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void clock_is_the_monotonic_one_in_nanoseconds(void)
{
    for (int i = 0; i < 1000; i++) {
        int64_t before = monotonic_ns();
        int64_t now = wf_clock_now();
        int64_t after = monotonic_ns();
        CHECK_LE(before, now);
        CHECK_LE(now, after);
    }
}

static void clock_never_goes_back(void)
{
    int64_t last = wf_clock_now();
    for (uint64_t i = 0; i < test_scale(200000); i++) {
        int64_t now = wf_clock_now();
        CHECK_LE(last, now);
        last = now;
    }
}

static void clock_moves_on(void)
{
    int64_t first = wf_clock_now();
    while (wf_clock_now() == first) {
    }
    CHECK_LT(first, wf_clock_now());
}

static void public_clock_is_the_same_one(void)
{
    int64_t before = wf_clock_now();
    weft_time now = weft_now();
    CHECK_LE(before, now);
    CHECK_LE(now, wf_clock_now());
}

static void never_is_after_every_time(void)
{
    CHECK_EQ(WF_NEVER, WEFT_NEVER);
    CHECK_EQ(WF_NEVER, INT64_MAX);
    CHECK_LT(wf_clock_now(), WF_NEVER);
}

TEST_MAIN({ TEST(clock_is_the_monotonic_one_in_nanoseconds), TEST(clock_never_goes_back),
            TEST(clock_moves_on), TEST(public_clock_is_the_same_one),
            TEST(never_is_after_every_time) })
