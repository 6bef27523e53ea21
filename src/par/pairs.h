/* SPDX-License-Identifier: MIT */
/*
 * pairs.h - the keys of elements, each with a pointer to its element, in order.
 */
#ifndef WF_PAR_PAIRS_H
#define WF_PAR_PAIRS_H

#include <weft/element.h>

#include "par/radix.h"

/* Elements that have keys. */
struct wf_keyed {
    const char *base;
    size_t count;
    size_t size;
    weft_key_fn key;
    void *arg;
};

/* Adds the pairs of so many elements, and what it takes to sort them; see
 * wf_scratch_add(). */
size_t wf_pairs_scratch(size_t sum, size_t count);

/*
 * Takes the pairs of all elements from the scratch, in the order of their keys; those with
 * equal keys as the elements are. 0, or what the key returns; if it is stopped, any order
 * or WEFT_ECANCELED.
 */
int wf_pairs_sort(const struct wf_keyed *keyed, struct wf_scratch *scratch, const weft_stop *stop,
                  struct wf_radix_pair **pairs);

#endif
