/* SPDX-License-Identifier: MIT */
/*
 * weft/loop.h - parallel loops, reductions and scans over index ranges.
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
 * A loop is split on demand, when idle workers request work. Its chunks grow until the overhead
 * of splitting is negligible. A short loop runs entirely on the caller and wakes no worker.
 * Outside of tasks and weft_par_run() a loop runs on the calling thread alone. The body may
 * suspend, unless a stackless task has called the loop (weft/par.h).
 */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include "base.h"
#include "stop.h"

WEFT_EXTERN_C_BEGIN

/* Options of the parallel algorithms. A zero field means the default. A NULL pointer to the
 * options means all defaults. */
typedef struct weft_par_options {
    size_t piece;          /* maximum chunk length, used without measuring; 0: automatic */
    const weft_stop *stop; /* cancel flag; NULL: cannot be canceled this way */
    void *scratch;         /* working memory; NULL: allocated and freed by the call */
    size_t scratch_size;   /* in bytes; at least what the matching _scratch() function returns */
} weft_par_options;

/* Body of a loop: handles the indexes from first to before end. Returns 0, or an error, which
 * ends the loop. */
typedef int (*weft_range_fn)(size_t first, size_t end, void *arg);

/*
 * Calls the body for chunks that cover the indexes from first to before end, each index once,
 * in parallel if workers are idle. Returns 0 when all calls have returned. After an error,
 * returns the first one as soon as all calls that had started have returned.
 *
 * Context:  any thread.
 * Suspends: while other workers run parts of the loop. Cancellation does not end the wait,
 *           since the body may use the caller's stack.
 * Errors:   the first error that the body returned; WEFT_ECANCELED: options->stop was set.
 */
WEFT_API WEFT_NODISCARD int weft_for(size_t first, size_t end, weft_range_fn body, void *arg,
                                     const weft_par_options *options);

/* A box of cells, with a half-open interval along each side. In two dimensions first_plane is 0
 * and end_plane is 1. */
typedef struct weft_tile {
    size_t first_plane;
    size_t end_plane;
    size_t first_row;
    size_t end_row;
    size_t first_column;
    size_t end_column;
} weft_tile;

/* Body of a loop over tiles. Returns 0, or an error, which ends the loop. */
typedef int (*weft_tile_fn)(const weft_tile *tile, void *arg);

/*
 * Calls the body for tiles that cover rows times columns cells, each cell once, in parallel if
 * workers are idle. Tiles are split across their longest side. This makes them roughly square,
 * so that neighbors in both directions tend to be in the same tile. options->piece is the
 * maximum number of cells of a tile.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   like weft_for(); -EINVAL if the number of cells overflows size_t.
 */
WEFT_API WEFT_NODISCARD int weft_for_2d(size_t rows, size_t columns, weft_tile_fn body, void *arg,
                                        const weft_par_options *options);

/*
 * Same as weft_for_2d(), in three dimensions: planes times rows times columns cells.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   like weft_for_2d().
 */
WEFT_API WEFT_NODISCARD int weft_for_3d(size_t planes, size_t rows, size_t columns,
                                        weft_tile_fn body, void *arg,
                                        const weft_par_options *options);

/*
 * Returns the maximum number of bytes of scratch that weft_reduce() and weft_scan() need for a
 * range of count indexes, values of the given size, and options->piece. The scratch needs no
 * alignment.
 *
 * Context: any thread.
 */
WEFT_API size_t weft_loop_scratch(size_t count, size_t size, size_t piece);

/*
 * Describes how a range is reduced to one value. The operation must be associative: the range
 * is folded in parts, each from left to right, and adjacent parts are combined.
 */
typedef struct weft_reduction {
    size_t size;          /* size of a value in bytes */
    const void *identity; /* initial value of a fold; neutral in combine */
    /* Folds the indexes from first to before end into value. Returns 0, or an error, which ends
     * the whole reduction. */
    int (*fold)(void *value, size_t first, size_t end, void *arg);
    /* Combines value with next, the value of the part that follows. */
    void (*combine)(void *value, const void *next, void *arg);
} weft_reduction;

/*
 * Folds the range from first to before end into one value. The split into parts depends only on
 * the length of the range, or on options->piece. Therefore the result is bitwise the same with
 * any number of workers, also for floating-point numbers.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   like weft_for(); -ENOMEM; -EINVAL if the size of a value is 0 or the scratch is too
 *           small. *result is the identity after an error.
 */
WEFT_API WEFT_NODISCARD int weft_reduce(size_t first, size_t end, const weft_reduction *how,
                                        void *arg, void *result, const weft_par_options *options);

/* Describes a scan (prefix sum). */
typedef struct weft_scanner {
    weft_reduction reduction;
    /* Writes the results of the indexes from first to before end. value is the total of
     * everything before first; the function may modify it. No fold reads this part afterwards,
     * so the results may overwrite the input. */
    int (*scan)(void *value, size_t first, size_t end, void *arg);
    /* Set this if the operation gives the same result for every grouping (integers, but not
     * floating-point numbers), and scan leaves the total up to end in value. Then a part may be
     * scanned without being folded first. */
    bool is_exact;
} weft_scanner;

/*
 * Calls scan for parts of the range, each with the total of everything before it. scan may
 * write inclusive or exclusive results. Stores the total of the whole range in *total, unless
 * total is NULL. The results are bitwise the same with any number of workers.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   like weft_for(); -ENOMEM; -EINVAL if the size of a value is 0 or the scratch is too
 *           small. *total is unchanged after an error.
 */
WEFT_API WEFT_NODISCARD int weft_scan(size_t first, size_t end, const weft_scanner *how, void *arg,
                                      void *total, const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
