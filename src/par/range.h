/* SPDX-License-Identifier: MIT */
/*
 * range.h - parallel range split into parts of fixed maximum length.
 */
#ifndef WF_PAR_RANGE_H
#define WF_PAR_RANGE_H

#include <stddef.h>

/* Handles [begin, end). */
typedef void (*wf_range_fn)(size_t begin, size_t end, void *arg);

/*
 * Calls body for parts that cover [0, count), each at most grain long, in parallel if workers
 * are idle. The split depends only on count and grain.
 */
void wf_range_each(size_t count, size_t grain, wf_range_fn body, void *arg);

#endif
