/* SPDX-License-Identifier: MIT */
/*
 * sample.h - sorting by comparison: buckets in parallel, each of them by a merge sort.
 */
#ifndef WF_PAR_SAMPLE_H
#define WF_PAR_SAMPLE_H

#include <weft/sort.h>

#include "par/scratch.h"

/* Adds what wf_sample_sort() takes from its scratch; see wf_scratch_add(). */
size_t wf_sample_scratch(size_t sum, size_t count, size_t size);

/* Sorts, stably. If it is stopped, the elements are in any order. */
void wf_sample_sort(const weft_sort_ops *ops, const void *order, void *base, size_t count,
                    struct wf_scratch *scratch, const weft_stop *stop);

#endif
