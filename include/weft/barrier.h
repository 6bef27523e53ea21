/* SPDX-License-Identifier: MIT */
/*
 * weft/barrier.h - barriers and wait groups.
 */
#ifndef WEFT_BARRIER_H
#define WEFT_BARRIER_H

#include "op.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

/* A barrier: a fixed number of parties wait until all of them have arrived. Reusable. */
typedef struct weft_barrier {
    uint32_t word; /* private, as are the fields below */
    uint32_t parties;
    uint64_t opaque[3];
} weft_barrier;

/* Static initializer of a barrier for count parties; 0 counts as 1. */
#define WEFT_BARRIER_INIT(count)                                                                   \
    {                                                                                              \
        0, (uint32_t)(count),                                                                      \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }

/*
 * Initializes a barrier for the given number of parties; 0 counts as 1.
 *
 * Context: any thread.
 */
WEFT_API void weft_barrier_init(weft_barrier *barrier, uint32_t parties);

/*
 * Waits until all parties have arrived. Returns 1 to the last party to arrive and 0 to the
 * others. The barrier is then ready for the next round.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_barrier_wait_init().
 * Suspends: until all parties have arrived or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread). The caller then
 *           does not count as arrived.
 */
WEFT_API WEFT_NODISCARD int weft_barrier_wait(weft_barrier *barrier, weft_time deadline);

/*
 * Prepares a wait. The future's result is that of weft_barrier_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_barrier_wait_init(weft_op *op, weft_barrier *barrier);

/* A wait group: counts outstanding work. Zero-initialized, it has none. */
typedef struct weft_wait_group {
    uint64_t opaque[3];
} weft_wait_group;

/*
 * Adds count to the outstanding work. While the group has waiters, only add to it when its
 * count is not 0.
 *
 * Context: any thread.
 */
WEFT_API void weft_wait_group_add(weft_wait_group *group, uint32_t count);

/*
 * Marks one unit of work as finished. The last one wakes all waiters and does not touch the
 * group after that. Aborts if no work is outstanding.
 *
 * Context: any thread.
 */
WEFT_API void weft_wait_group_done(weft_wait_group *group);

/*
 * Waits until no work is outstanding.
 *
 * Context:  fiber or plain thread. A stackless task awaits weft_wait_group_wait_init().
 * Suspends: until the last unit of work is finished or the deadline passes.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED, -ENOMEM (first wait of a thread).
 */
WEFT_API WEFT_NODISCARD int weft_wait_group_wait(weft_wait_group *group, weft_time deadline);

/*
 * Prepares a wait. The future's result is that of weft_wait_group_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_wait_group_wait_init(weft_op *op, weft_wait_group *group);

WEFT_EXTERN_C_END

#endif
