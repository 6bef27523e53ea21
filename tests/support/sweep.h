/* SPDX-License-Identifier: MIT */
/*
 * sweep.h - cancels a program, or lets it time out, at each of its suspension points, one point
 * per run.
 */
#ifndef TEST_SWEEP_H
#define TEST_SWEEP_H

#include <stdbool.h>

struct program {
    /* On a fiber: returns 0, or the error that ended it. Waits for everything that it starts. */
    int (*main_fn)(void *arg);
    void (*begin)(void);
    /* Called when no task of the program is left. */
    void (*check)(bool is_whole);
    bool resumes; /* repeats calls that timed out, so those runs must be complete, too */
};

void sweep(const struct program *program);

#endif
