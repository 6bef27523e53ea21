/* SPDX-License-Identifier: MIT */
/*
 * answers.h - counting and searching arrays of test results.
 *
 * The results are bools but are read as bytes. So a byte that is neither 0 nor 1 counts as true
 * everywhere, rather than as true in one place and false in another.
 */
#ifndef WF_PAR_ANSWERS_H
#define WF_PAR_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the number of true results. */
size_t wf_answers_count(const unsigned char *answers, size_t count);

/* Return the index of the first and of the last result equal to wanted, or count if there is
 * none. */
size_t wf_answers_first(const unsigned char *answers, size_t count, bool wanted);
size_t wf_answers_last(const unsigned char *answers, size_t count, bool wanted);

#endif
