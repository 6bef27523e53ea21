/* SPDX-License-Identifier: MIT */
/*
 * crowd.h - many concurrent users of one object: fibers, stackless tasks, plain threads, or a
 * mix.
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

/* One member; the state of its stackless task. */
struct crowd_member {
    unsigned index;
    void *shared;
    uint64_t round; /* from here on: for the task's function */
    uint64_t sum;
    int err;
    weft_op ops[CROWD_OPS];
    weft_cond_future cond;
    weft_sleep_future sleep;
};

/* Runs the task's function for each of count members and waits for all. Each must end with 0.
 * Returns the sum of their sums. Fibers and threads await the same function. */
uint64_t crowd_run(weft_runtime *rt, enum crowd_kind kind, unsigned count, weft_body_fn body,
                   void *shared);

/* Runs it with every kind, on 1, 2 and 8 workers. Calls reset() before each run and check(sum)
 * after it. */
void crowd_run_all(unsigned count, weft_body_fn body, void *shared, void (*reset)(void),
                   void (*check)(uint64_t sum));

/* Returns the number of rounds per member, in a test that runs with all kinds. */
uint64_t crowd_rounds(void);

#endif
