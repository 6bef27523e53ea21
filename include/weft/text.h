/* SPDX-License-Identifier: MIT */
/*
 * weft/text.h - parallel processing of the lines of a text.
 *
 *     int parse(const char *line, size_t length, void *arg);
 *
 *     err = weft_for_lines(text, length, parse, &results, NULL);
 *
 * A line ends with "\n", which is not part of it. Text after the last "\n" is also a line,
 * unless it is empty. So an empty text has no lines, and "\n" has one empty line. A "\r" before
 * the "\n" is part of the line. The caller strips it where needed.
 *
 * A text may contain any bytes, including zeros. No function here needs scratch, and none fails
 * with -ENOMEM.
 */
#ifndef WEFT_TEXT_H
#define WEFT_TEXT_H

#include "base.h"
#include "loop.h"

WEFT_EXTERN_C_BEGIN

/* Handles a line, which is not zero-terminated. Returns 0, or an error, which ends the whole
 * call. */
typedef int (*weft_line_fn)(const char *line, size_t length, void *arg);

/*
 * Calls the body once for each line, in any order, in parallel if workers are idle. If line
 * numbers matter, use weft_lines() and run weft_for() over the result. options->piece is a
 * number of bytes: the lines that begin within that many bytes form one chunk.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   the first error that the body returned; WEFT_ECANCELED: options->stop was set.
 */
WEFT_API WEFT_NODISCARD int weft_for_lines(const char *text, size_t length, weft_line_fn body,
                                           void *arg, const weft_par_options *options);

/*
 * Counts the lines.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   WEFT_ECANCELED: options->stop was set, and *lines is 0.
 */
WEFT_API WEFT_NODISCARD int weft_count_lines(const char *text, size_t length, size_t *lines,
                                             const weft_par_options *options);

/* A line of a text: its position and length. */
typedef struct weft_line {
    const char *at;
    size_t length;
} weft_line;

/*
 * Finds the lines and writes their positions in order. Sets *found to the number of lines. If
 * there are more than room lines, only the first room are written. lines may be NULL if room is
 * 0.
 *
 * Context:  any thread.
 * Suspends: like weft_for().
 * Errors:   -ENOSPC: *found is greater than room; WEFT_ECANCELED: options->stop was set, and
 *           *found is 0.
 */
WEFT_API WEFT_NODISCARD int weft_lines(const char *text, size_t length, weft_line *lines,
                                       size_t room, size_t *found, const weft_par_options *options);

WEFT_EXTERN_C_END

#endif
