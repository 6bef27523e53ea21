/* SPDX-License-Identifier: MIT */
/*
 * weft/loop.h - loops over ranges, in parallel.
 *
 *     static int add_one(size_t first, size_t end, void *arg)
 *     {
 *         int *numbers = arg;
 *         for (size_t i = first; i < end; i++) {
 *             numbers[i]++;
 *         }
 *         return 0;
 *     }
 *
 *     weft_for(0, count, NULL, add_one, numbers);
 *
 * A loop is divided as workers ask for parts of it, and its pieces are as long as it takes
 * to make dividing them cheap; a short loop runs where it is called, and wakes nobody.
 * Outside of fibers and weft_par_run() it runs there alone.
 */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include "base.h"

WEFT_EXTERN_C_BEGIN

/* A request to stop, for loops: zero, until weft_stop_set(). */
typedef struct weft_stop {
    uint32_t set;
} weft_stop;

/*
 * Asks the loops that were given it to stop: they end with WEFT_ECANCELED once the pieces
 * that have begun are over.
 *
 * Context: any thread.
 */
WEFT_API void weft_stop_set(weft_stop *stop);

/* Zero is a default everywhere; and so is NULL for all of it. */
typedef struct weft_loop_options {
    size_t piece;          /* call the body with so many at most, and do not measure */
    const weft_stop *stop; /* NULL: nobody stops it */
} weft_loop_options;

/* The body of a loop: its part from first to before end. 0, or an error, which ends the
 * loop. */
typedef int (*weft_range_fn)(size_t first, size_t end, void *arg);

/*
 * Calls the body for parts of the range from first to before end, each number once, at
 * once if workers are idle. Returns 0 when all of them have returned; or the first error,
 * when those that had begun have returned.
 *
 * Context:  anywhere.
 * Suspends: while other workers are at parts of it; not for cancellation, since the body
 *           may use what is on the caller's stack.
 * Errors:   what the body returns, the first one that did; WEFT_ECANCELED: stopped.
 */
WEFT_API WEFT_NODISCARD int weft_for(size_t first, size_t end, const weft_loop_options *options,
                                     weft_range_fn body, void *arg);

WEFT_EXTERN_C_END

#endif
