/* SPDX-License-Identifier: MIT */
/*
 * top.h - the k least elements, sorted.
 */
#ifndef WF_PAR_TOP_H
#define WF_PAR_TOP_H

#include <stddef.h>

/* How much scratch weft_top_k() needs at most, for any k; see wf_scratch_add(). */
size_t wf_top_scratch(size_t count, size_t size);

#endif
