/* SPDX-License-Identifier: MIT */
/*
 * timing.c - durations of races, and waits for other threads.
 */
#include "timing.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <weft/clock.h>

#include "test.h"

enum {
    SPIN_NS = 5000,
    ROUNDS_MIN = 20,
};

static int64_t now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * WEFT_S + time.tv_nsec;
}

static int64_t patience_ns(void)
{
    const char *seconds = getenv("WEFT_TEST_TIMEOUT");
    return (seconds != NULL ? strtoll(seconds, NULL, 10) : 60) * WEFT_S;
}

int64_t test_deadline(void)
{
    return weft_now() + patience_ns();
}

static int64_t race_ns(void)
{
    return (int64_t)test_scale(test_is_sanitized() ? 2000 : 300) * WEFT_MS;
}

int64_t test_race_end(void)
{
    return weft_now() + race_ns();
}

struct test_rounds test_rounds_begin(void)
{
    return (struct test_rounds){ .end = now() + race_ns() };
}

void test_rounds_count(struct test_rounds *rounds, bool outcome)
{
    rounds->has_outcomes = true;
    rounds->outcomes[outcome]++;
}

bool test_rounds_next(struct test_rounds *rounds)
{
    bool lacks =
        rounds->has_outcomes && (rounds->outcomes[false] == 0 || rounds->outcomes[true] == 0);
    bool goes_on = now() < rounds->end || rounds->count < ROUNDS_MIN || lacks;
    if (lacks && now() > rounds->end + patience_ns()) {
        test_fail(__FILE__, __LINE__, "one outcome never came in %llu rounds",
                  (unsigned long long)rounds->count);
    }
    rounds->count++;
    return goes_on;
}

void test_spin_for(_Atomic(uint64_t) *word, uint64_t n)
{
    int64_t until = now() + SPIN_NS;
    while (atomic_load(word) < n && now() < until) {
    }
    test_wait_for(word, n);
}

void test_wait_ns(int64_t ns)
{
    int64_t until = now() + ns;
    struct timespec time = { until / WEFT_S, until % WEFT_S };
    while (now() < until) {
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
    }
}
