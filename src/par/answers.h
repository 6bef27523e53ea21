/* SPDX-License-Identifier: MIT */
/*
 * answers.h - what a test has said of many elements.
 *
 * They are bools, but are read as bytes: one that is neither 0 nor 1 is a yes everywhere,
 * and not one here and none there.
 */
#ifndef WF_PAR_ANSWERS_H
#define WF_PAR_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>

/* How many are yes. */
size_t wf_answers_count(const unsigned char *answers, size_t count);

/* The index of the first and of the last one that is as wanted; count if none is. */
size_t wf_answers_first(const unsigned char *answers, size_t count, bool wanted);
size_t wf_answers_last(const unsigned char *answers, size_t count, bool wanted);

#endif
