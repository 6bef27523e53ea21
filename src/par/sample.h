/* SPDX-License-Identifier: MIT */
/*
 * sample.h - parallel sample sort by comparison, with a merge sort per bucket.
 */
#ifndef WF_PAR_SAMPLE_H
#define WF_PAR_SAMPLE_H

#include <weft/sort.h>

#include "par/scratch.h"

/* Adds the scratch that wf_sample_sort() takes; see wf_scratch_add(). */
size_t wf_sample_scratch(size_t sum, size_t count, size_t size);

/* Sorts stably. If stop is set, the elements are in an unspecified order. */
void wf_sample_sort(const weft_sort_ops *ops, const void *order, void *base, size_t count,
                    struct wf_scratch *scratch, const weft_stop *stop);

#endif
