/* SPDX-License-Identifier: MIT */
/*
 * bell.h - a timer that counts its calls and records where and when they happened.
 */
#ifndef TEST_BELL_H
#define TEST_BELL_H

#include <stdatomic.h>

#include <weft.h>

struct bell {
    weft_timer timer;
    weft_time deadline;
    unsigned flags;
    _Atomic(uint64_t) calls;
    weft_time called_at;
    int worker;
};

static inline void bell_call(void *arg)
{
    struct bell *bell = arg;
    bell->called_at = weft_now();
    bell->worker = weft_worker_current();
    (void)atomic_fetch_add(&bell->calls, 1);
}

/* Starts the bell's timer, on a fiber or in a blocking job. */
static inline int bell_start(void *arg)
{
    struct bell *bell = arg;
    weft_timer_start(&bell->timer, bell->deadline, bell->flags, bell_call, bell);
    return 0;
}

#endif
