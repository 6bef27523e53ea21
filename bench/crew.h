/* SPDX-License-Identifier: MIT */
/*
 * crew.h - fibers that do a row's work together, and what rows of several files have in
 * common.
 *
 * A first fiber starts the others, the hands, and joins them. It takes the time on its worker:
 * what it costs a thread outside to start it and to wait for its end is not in the figure.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <stdatomic.h>

#include "harness.h"

enum {
    BENCH_HANDS_MAX = 1000,
    BENCH_LINES = 128, /* bytes of two cache lines, since they are fetched in pairs */
};

/* One of those who work. It writes here in its loops, so it is alone on its lines. */
struct bench_hand {
    _Alignas(BENCH_LINES) uint64_t index; /* among those that were started with it */
    uint64_t right;                       /* steps whose result was right */
    uint64_t sum;                         /* of what it received or computed */
    weft_task *task;
};
extern struct bench_hand bench_hands[BENCH_HANDS_MAX];

/* Starts so many fibers, each with a hand, from the first on. */
void bench_start(unsigned first, unsigned count, int (*function)(void *hand));

/* Joins so many, and checks that each has returned 0. */
void bench_join(unsigned first, unsigned count);

uint64_t bench_right(unsigned first, unsigned count);
uint64_t bench_sum(unsigned first, unsigned count);

/* What fibers count in that hold no lock. */
struct bench_counter {
    _Alignas(BENCH_LINES) _Atomic(uint64_t) value;
};

/*
 * Runs the work on a fiber, and returns how many ns each of its steps took. The work returns
 * how many were right: all of them, or the program ends.
 */
double bench_time(const struct bench_run *run, uint64_t (*work)(void), uint64_t steps);

WEFT_CHANNEL(bench_numbers, uint64_t)

/* Sends as many numbers as a share has, from index * share on; then drops the sender. */
int bench_send_share(bench_numbers_sender *sender, uint64_t index, uint64_t share);

/* Receives until the channel is closed, counts and adds; then drops the receiver. */
int bench_receive_all(bench_numbers_receiver *receiver, struct bench_hand *hand);

/* Numbers through one channel, which is made and closed in the time. */
struct bench_flow {
    unsigned senders;
    unsigned receivers;
    size_t capacity;
    uint64_t messages;
};
double bench_messages(const struct bench_run *run, struct bench_flow flow); /* per message */

/* So many fibers yield so often. */
double bench_yields(const struct bench_run *run, unsigned fibers, uint64_t yields);

/* So many fibers lock a mutex and add 1 to what it guards, so often. */
double bench_mutex(const struct bench_run *run, unsigned fibers, uint64_t rounds);

/* Four readers and two writers, so often each. */
double bench_rwlock(const struct bench_run *run, uint64_t rounds);

/* So many fibers acquire one of two permits, and count, so often. */
double bench_semaphore(const struct bench_run *run, unsigned fibers, uint64_t rounds);

/* One fiber sets the value of a watch and gets it, 100 000 times. */
double bench_watch(const struct bench_run *run);

#endif
