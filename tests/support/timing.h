/* SPDX-License-Identifier: MIT */
/*
 * timing.h - durations of races, and waits beyond test_wait_for().
 */
#ifndef TEST_TIMING_H
#define TEST_TIMING_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the time at which a wait that starts now and should end has hung: after a minute, or
 * WEFT_TEST_TIMEOUT seconds. The latter is for machines with much other load. */
int64_t test_deadline(void);

/* Returns the time at which a race that starts now, and repeats in rounds, has run long enough. */
int64_t test_race_end(void);

/*
 * The rounds of such a race. It continues until its time is over, but for at least 20 rounds,
 * and until each of its two outcomes has been seen, if it has outcomes. Fails if one never
 * occurs.
 *
 *     struct test_rounds rounds = test_rounds_begin();
 *     for (uint64_t round = 1; test_rounds_next(&rounds); round++) {
 *         ...
 *         test_rounds_count(&rounds, was_first);
 *     }
 */
struct test_rounds {
    int64_t end;
    uint64_t count;
    bool has_outcomes;
    uint64_t outcomes[2];
};
struct test_rounds test_rounds_begin(void);
bool test_rounds_next(struct test_rounds *rounds);
void test_rounds_count(struct test_rounds *rounds, bool outcome);

/* Same as test_wait_for(), but spins first: the other thread is nearly done. */
void test_spin_for(_Atomic(uint64_t) *word, uint64_t n);

/* Sleeps for at least the given time. */
void test_wait_ns(int64_t ns);

#endif
