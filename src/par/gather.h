/* SPDX-License-Identifier: MIT */
/*
 * gather.h - moving elements to places that were found for them.
 */
#ifndef WF_PAR_GATHER_H
#define WF_PAR_GATHER_H

#include <stddef.h>

/* Where the element comes from that goes to index. */
typedef const void *(*wf_gather_fn)(size_t index, const void *arg);

/*
 * Puts the element at source(i) to index i of base, for all i below count, in parallel. The
 * sources are in base. other is as large as base.
 */
void wf_gather(void *base, void *other, size_t count, size_t size, wf_gather_fn source,
               const void *arg);

#endif
