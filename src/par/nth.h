/* SPDX-License-Identifier: MIT */
/*
 * nth.h - the element that a sort would put at an index.
 */
#ifndef WF_PAR_NTH_H
#define WF_PAR_NTH_H

#include <stddef.h>

#include <weft/element.h>
#include <weft/loop.h>

struct wf_nth_order {
    size_t size; /* of an element */
    weft_compare_fn compare;
    void *arg;
};

/* Adds what wf_nth() needs of memory; see wf_scratch_add(). */
size_t wf_nth_scratch(size_t sum, size_t count, size_t size);

/*
 * As weft_nth(), with memory that is aligned to WF_SCRATCH_ALIGN. Elements before n that
 * equal the one at n come before those that are behind it, and equal ones are in their
 * order: so the first n elements are those that a stable sort would put there. 0 or
 * WEFT_ECANCELED.
 */
int wf_nth(const struct wf_nth_order *order, void *base, size_t count, size_t n, void *memory,
           const weft_stop *stop);

#endif
