/* SPDX-License-Identifier: MIT */
/*
 * top.h - parallel top k: the k smallest elements, sorted.
 */
#ifndef WF_PAR_TOP_H
#define WF_PAR_TOP_H

#include <stddef.h>

/* Returns the maximum scratch that weft_top_k() needs for any k; see wf_scratch_add(). */
size_t wf_top_scratch(size_t count, size_t size);

#endif
