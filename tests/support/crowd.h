/* SPDX-License-Identifier: MIT */
/*
 * crowd.h - many who do the same with one object: fibers, stackless tasks, plain threads, or
 * some of each.
 */
#ifndef TEST_CROWD_H
#define TEST_CROWD_H

#include <weft.h>

enum crowd_kind {
    CROWD_FIBERS,
    CROWD_BODIES,
    CROWD_THREADS,
    CROWD_MIXED,
    CROWD_KINDS,
};

enum {
    CROWD_MAX = 64,
    CROWD_OPS = 2,
};

/* One of them; the state of its body. */
struct crowd_member {
    unsigned index;
    void *shared;
    uint64_t round; /* these are the body's */
    uint64_t sum;
    int err;
    weft_op ops[CROWD_OPS];
    weft_cond_future cond;
    weft_sleep_future sleep;
};

/* Runs the body for each of so many, and waits for all. Each must end with 0. Returns the sum
 * of their sums. On fibers and threads the body is awaited, so that it is the same for all. */
uint64_t crowd_run(weft_runtime *rt, enum crowd_kind kind, unsigned count, weft_body_fn body,
                   void *shared);

/* Runs it with every kind, on 1, 2 and 8 workers. reset() comes before each run, and
 * check(sum) behind it. */
void crowd_run_all(unsigned count, weft_body_fn body, void *shared, void (*reset)(void),
                   void (*check)(uint64_t sum));

/* How many rounds each does, in a test that runs with all kinds. */
uint64_t crowd_rounds(void);

#endif
