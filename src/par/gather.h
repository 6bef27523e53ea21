/* SPDX-License-Identifier: MIT */
/*
 * gather.h - moving elements to places that were found for them.
 */
#ifndef WF_PAR_GATHER_H
#define WF_PAR_GATHER_H

#include <stddef.h>

/* Where elements come from: the first one's pointer, and how far the next one is. */
struct wf_gather_sources {
    const void *const *first;
    size_t stride; /* in bytes */
};

/*
 * Puts the element that the i-th source points to at index i of base, for all i below
 * count, in parallel. The sources point into base. other is as large as base.
 */
void wf_gather(void *base, void *other, size_t count, size_t size,
               struct wf_gather_sources sources);

#endif
