/* SPDX-License-Identifier: MIT */
/*
 * crew.h - groups of fibers that run a benchmark, and the work that several row files share.
 *
 * A coordinator fiber starts the other fibers, the hands, and joins them. It reads the clock on
 * its own worker, so the figure does not include the cost of submitting it from outside the
 * runtime and waiting for it there.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <stdatomic.h>

#include "harness.h"

enum {
    BENCH_HANDS_MAX = 1000,
    BENCH_LINES = 128, /* two cache lines: the prefetcher fetches them in pairs */
};

/*
 * Per-fiber state of one hand. Its fiber writes here in its loop, so it has cache lines to
 * itself.
 */
struct bench_hand {
    _Alignas(BENCH_LINES) uint64_t index; /* position within its group */
    uint64_t right;                       /* steps with a correct result */
    uint64_t sum;                         /* of the values it received or computed */
    weft_task *task;
};
extern struct bench_hand bench_hands[BENCH_HANDS_MAX];

/* Starts count fibers that run the function, with the hands from index first on. */
void bench_start(unsigned first, unsigned count, int (*function)(void *hand));

/* Joins count fibers from index first on and checks that each returned 0. */
void bench_join(unsigned first, unsigned count);

uint64_t bench_right(unsigned first, unsigned count);
uint64_t bench_sum(unsigned first, unsigned count);

/* A counter for fibers that hold no lock. */
struct bench_counter {
    _Alignas(BENCH_LINES) _Atomic(uint64_t) value;
};

/*
 * Runs the work on a fiber and returns the duration of one step in ns. The work returns the
 * number of correct steps. If that is not all of them, the program exits.
 */
double bench_time(const struct bench_run *run, uint64_t (*work)(void), uint64_t steps);

WEFT_CHANNEL(bench_numbers, uint64_t)

/* Sends `share` numbers, starting at index * share, then drops the sender. */
int bench_send_share(bench_numbers_sender *sender, uint64_t index, uint64_t share);

/* Receives, counts and sums until the channel is closed, then drops the receiver. */
int bench_receive_all(bench_numbers_receiver *receiver, struct bench_hand *hand);

/* Messages through one channel. Creating and closing the channel is part of the measured time. */
struct bench_flow {
    unsigned senders;
    unsigned receivers;
    size_t capacity;
    uint64_t messages;
};
double bench_messages(const struct bench_run *run, struct bench_flow flow); /* ns per message */

/* The given number of fibers yield `yields` times each. */
double bench_yields(const struct bench_run *run, unsigned fibers, uint64_t yields);

/* The given number of fibers lock a mutex and increment a counter, `rounds` times each. */
double bench_mutex(const struct bench_run *run, unsigned fibers, uint64_t rounds);

/* Four readers and two writers lock a read-write lock, `rounds` times each. */
double bench_rwlock(const struct bench_run *run, uint64_t rounds);

/* The given number of fibers acquire one of two permits and count, `rounds` times each. */
double bench_semaphore(const struct bench_run *run, unsigned fibers, uint64_t rounds);

/* One fiber sends a value to a watch channel and reads it back, 100 000 times. */
double bench_watch(const struct bench_run *run);

#endif
