/* SPDX-License-Identifier: MIT */
/*
 * weft/barrier.h - waiting for each other: until so many have come, or until all have
 * finished.
 */
#ifndef WEFT_BARRIER_H
#define WEFT_BARRIER_H

#include "op.h"
#include "clock.h"

WEFT_EXTERN_C_BEGIN

/* A place where so many wait for each other; then it is there for the next ones. */
typedef struct weft_barrier {
    uint32_t word; /* not to be touched, as what follows */
    uint32_t parties;
    uint64_t opaque[3];
} weft_barrier;

/* A barrier for so many; 0 is as 1. */
#define WEFT_BARRIER_INIT(count)                                                                   \
    {                                                                                              \
        0, (uint32_t)(count),                                                                      \
        {                                                                                          \
            0, 0, 0                                                                                \
        }                                                                                          \
    }

/*
 * Makes a barrier for so many; 0 is as 1.
 *
 * Context: any thread.
 */
WEFT_API void weft_barrier_init(weft_barrier *barrier, uint32_t parties);

/*
 * Waits until as many have come as the barrier is for. Returns 1 to one of them, the last
 * to come, and 0 to the others.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_barrier_wait_init().
 * Suspends: until all have come, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (on a thread's first wait). It has then
 *           not come.
 */
WEFT_API WEFT_NODISCARD int weft_barrier_wait(weft_barrier *barrier, weft_time deadline);

/*
 * Prepares to wait: the result of the future is that of weft_barrier_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_barrier_wait_init(weft_op *op, weft_barrier *barrier);

/* A number of things that are under way. All zeros is none. */
typedef struct weft_wait_group {
    uint64_t opaque[3];
} weft_wait_group;

/*
 * So many more are under way. To add to a group that somebody waits for, one of it must be
 * under way.
 *
 * Context: anywhere.
 */
WEFT_API void weft_wait_group_add(weft_wait_group *group, uint32_t count);

/*
 * One has finished. The last one lets all go on who wait, and does not touch the group any
 * more. Aborts if none is under way.
 *
 * Context: anywhere.
 */
WEFT_API void weft_wait_group_done(weft_wait_group *group);

/*
 * Waits until none is under way.
 *
 * Context:  a fiber, or a plain thread. A body awaits a weft_wait_group_wait_init().
 * Suspends: until the last one has finished, or the deadline.
 * Errors:   WEFT_ETIMEDOUT, WEFT_ECANCELED; -ENOMEM (on a thread's first wait).
 */
WEFT_API WEFT_NODISCARD int weft_wait_group_wait(weft_wait_group *group, weft_time deadline);

/*
 * Prepares to wait: the result of the future is that of weft_wait_group_wait().
 *
 * Context: any thread.
 */
WEFT_API void weft_wait_group_wait_init(weft_op *op, weft_wait_group *group);

WEFT_EXTERN_C_END

#endif
