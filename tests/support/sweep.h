/* SPDX-License-Identifier: MIT */
/*
 * sweep.h - a program that is cancelled, or runs out of time, at each point where it may be
 * suspended, one point in each run.
 */
#ifndef TEST_SWEEP_H
#define TEST_SWEEP_H

#include <stdbool.h>

struct program {
    /* On a fiber; 0, or the error that has ended it. All that it starts has an end. */
    int (*main_fn)(void *arg);
    void (*begin)(void);
    /* Nobody runs any more. */
    void (*check)(bool is_whole);
    bool resumes; /* who is out of time calls again: then it is whole all the same */
};

void sweep(const struct program *program);

#endif
