/* SPDX-License-Identifier: MIT */
/*
 * nth.h - parallel selection of the nth element.
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

/* Adds the memory that wf_nth() needs; see wf_scratch_add(). */
size_t wf_nth_scratch(size_t sum, size_t count, size_t size);

/*
 * Same as weft_nth(), with memory that is aligned to WF_SCRATCH_ALIGN. Equal elements keep
 * their order, also those that equal the one at n and end up on both sides of it. So the first
 * n elements are the ones that a stable sort would put there. Returns 0 or WEFT_ECANCELED.
 */
int wf_nth(const struct wf_nth_order *order, void *base, size_t count, size_t n, void *memory,
           const weft_stop *stop);

#endif
