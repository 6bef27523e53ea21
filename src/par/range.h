/* SPDX-License-Identifier: MIT */
/*
 * range.h - the same work on each part of a range, in parallel.
 */
#ifndef WF_PAR_RANGE_H
#define WF_PAR_RANGE_H

#include <stddef.h>

/* Does [begin, end). */
typedef void (*wf_range_fn)(size_t begin, size_t end, void *arg);

/*
 * Calls body for pieces that cover [0, count), each of them at most grain long, at once if
 * workers are idle. The pieces depend on count and grain only.
 */
void wf_range_each(size_t count, size_t grain, wf_range_fn body, void *arg);

#endif
