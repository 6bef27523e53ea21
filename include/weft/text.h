/* SPDX-License-Identifier: MIT */
/*
 * weft/text.h - the lines of a text, in parallel.
 *
 *     int parse(const char *line, size_t length, void *arg);
 *
 *     err = weft_for_lines(text, length, parse, &results, NULL);
 *
 * A line ends with "\n", which is not part of it; what follows the last one is a line, too,
 * unless it is empty. So an empty text has no lines, and "\n" has one, which is empty. A
 * "\r" before the "\n" is a part of the line: drop it where it may be.
 *
 * A text may hold any bytes, zeros as well. No function here needs memory.
 */
#ifndef WEFT_TEXT_H
#define WEFT_TEXT_H

#include "base.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/* What is done with a line, which no zero ends. 0, or an error, which ends the whole. */
typedef int (*weft_line_fn)(const char *line, size_t length, void *arg);

/*
 * Calls body for each line once, at once if workers are idle, and in any order. Where its
 * number matters, take weft_lines(), and weft_for() over that. options->piece is a number
 * of bytes: the lines that begin in so many are one piece.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   what the body returns, the first one that did; WEFT_ECANCELED: stopped.
 */
WEFT_API WEFT_NODISCARD int weft_for_lines(const char *text, size_t length, weft_line_fn body,
                                           void *arg, const weft_par_options *options);

/*
 * Counts the lines.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   WEFT_ECANCELED: stopped, and *lines is 0.
 */
WEFT_API WEFT_NODISCARD int weft_count_lines(const char *text, size_t length, size_t *lines,
                                             const weft_par_options *options);

/* A line: a place in the text. */
typedef struct weft_line {
    const char *at;
    size_t length;
} weft_line;

/*
 * Writes where the lines are, in their order, and into *found how many there are. With
 * room for fewer, the first ones are written; lines may be NULL if that is for none.
 *
 * Context:  anywhere.
 * Suspends: as weft_for().
 * Errors:   -ENOSPC: *found is more than there is room for; WEFT_ECANCELED: stopped,
 *           and *found is 0.
 */
WEFT_API WEFT_NODISCARD int weft_lines(const char *text, size_t length, weft_line *lines,
                                       size_t room, size_t *found, const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
