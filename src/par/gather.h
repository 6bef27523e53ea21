/* SPDX-License-Identifier: MIT */
/*
 * gather.h - parallel permutation of an array, given a pointer to each source element.
 */
#ifndef WF_PAR_GATHER_H
#define WF_PAR_GATHER_H

#include <stddef.h>

/* The source pointers: the first one, and the distance to the next. */
struct wf_gather_sources {
    const void *const *first;
    size_t stride; /* in bytes */
};

/*
 * Moves the element that the i-th source points to to index i of base, for all i below count,
 * in parallel. The sources point into base. other is as large as base.
 */
void wf_gather(void *base, void *other, size_t count, size_t size,
               struct wf_gather_sources sources);

#endif
