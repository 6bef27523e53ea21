/* SPDX-License-Identifier: MIT */
/*
 * weft/loop.h - loops over ranges, in parallel.
 *
 *     static int add_one(size_t first, size_t end, void *arg)
 *     {
 *         int *numbers = (int *)arg;
 *         for (size_t i = first; i < end; i++) {
 *             numbers[i]++;
 *         }
 *         return 0;
 *     }
 *
 *     err = weft_for(0, count, add_one, numbers, NULL);
 *
 * A loop is divided as workers ask for parts of it, and its pieces are as long as it takes
 * to make dividing them cheap; a short loop runs where it is called, and wakes nobody.
 * Outside of tasks and weft_par_run() it runs there alone. Bodies may wait, but not if a
 * stackless task has called the loop (weft/par.h).
 */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include "base.h"
#include "stop.h"

WEFT_EXTERN_C_BEGIN

/* How to run something in parallel. Zero is a default everywhere; and so is NULL for all
 * of it. */
typedef struct weft_par_options {
    size_t piece;          /* call the body with so many at most, and do not measure */
    const weft_stop *stop; /* NULL: nobody stops it */
    void *scratch;         /* memory to work in; NULL: it is allocated, and freed again */
    size_t scratch_size;   /* as many bytes as the function says that it needs, or more */
} weft_par_options;

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
WEFT_API WEFT_NODISCARD int weft_for(size_t first, size_t end, weft_range_fn body, void *arg,
                                     const weft_par_options *options);

/* A box of cells: part of each side, from its first to before its end. In two dimensions
 * the plane is 0, and its end 1. */
typedef struct weft_tile {
    size_t first_plane;
    size_t end_plane;
    size_t first_row;
    size_t end_row;
    size_t first_column;
    size_t end_column;
} weft_tile;

/* The body of a loop over tiles. 0, or an error, which ends the loop. */
typedef int (*weft_tile_fn)(const weft_tile *tile, void *arg);

/*
 * Calls the body for tiles that cover rows times columns cells, each cell once, at once if
 * workers are idle. Tiles are cut across their longest side: so they are about as high as
 * they are wide, and what is near in either direction is in the same one. options->piece
 * is how many cells a tile has at most.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   as weft_for(); -EINVAL if there are more cells than a size_t can count.
 */
WEFT_API WEFT_NODISCARD int weft_for_2d(size_t rows, size_t columns, weft_tile_fn body, void *arg,
                                        const weft_par_options *options);

/*
 * The same with planes of rows of columns.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   as weft_for_2d().
 */
WEFT_API WEFT_NODISCARD int weft_for_3d(size_t planes, size_t rows, size_t columns,
                                        weft_tile_fn body, void *arg,
                                        const weft_par_options *options);

/*
 * Returns how many bytes of scratch weft_reduce() and weft_scan() need at most, for a range
 * of so many, values of this size, and options->piece. It may begin at any address.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_loop_scratch(size_t count, size_t size, size_t piece);

/*
 * How many values become one. The operation must be associative: the range is folded in
 * parts, from left to right, and neighbours are combined.
 */
typedef struct weft_reduction {
    size_t size;          /* of a value, in bytes */
    const void *identity; /* what a fold begins with: changes nothing when combined */
    /* Folds part of the range into a value. 0, or an error, which ends the whole. */
    int (*fold)(void *value, size_t first, size_t end, void *arg);
    /* Folds the value of the part that follows into a value. */
    void (*combine)(void *value, const void *next, void *arg);
} weft_reduction;

/*
 * Folds the range from first to before end into one value. In which parts depends on the
 * length of the range only, or on options->piece, so that the result is the same to the
 * last bit on any number of workers, for floating-point numbers, too.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   as weft_for(); -ENOMEM; -EINVAL if the size of a value is 0 or the scratch is too
 *           small. *result is then the identity.
 */
WEFT_API WEFT_NODISCARD int weft_reduce(size_t first, size_t end, const weft_reduction *how,
                                        void *arg, void *result, const weft_par_options *options);

/* How to write running totals. */
typedef struct weft_scanner {
    weft_reduction reduction;
    /* Writes the results of part of the range. value is that of all before it, and is the
     * function's to change. The part was folded before: it may be overwritten. */
    int (*scan)(void *value, size_t first, size_t end, void *arg);
    /* The operation gives the same however it is bracketed, as with integers, and not with
     * floating-point numbers; and the scan leaves in value that of all before the part and of
     * the part. Then a part that comes next need not be folded before. */
    bool is_exact;
} weft_scanner;

/*
 * Calls the scan for parts of the range, each with the value of all that comes before it;
 * so it writes inclusive or exclusive totals, as it likes. *total gets the value of
 * everything; it may be NULL. The same to the last bit on any number of workers.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   as weft_for(); -ENOMEM; -EINVAL if the size of a value is 0 or the scratch is too
 *           small. *total is unchanged then.
 */
WEFT_API WEFT_NODISCARD int weft_scan(size_t first, size_t end, const weft_scanner *how, void *arg,
                                      void *total, const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
