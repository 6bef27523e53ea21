/* SPDX-License-Identifier: MIT */
/*
 * pairs.h - key-pointer pairs of the elements of an array, sorted by key.
 */
#ifndef WF_PAR_PAIRS_H
#define WF_PAR_PAIRS_H

#include <weft/element.h>

#include "par/radix.h"

/* An array and the function that computes its keys. */
struct wf_keyed {
    const char *base;
    size_t count;
    size_t size;
    weft_key_fn key;
    void *arg;
};

/* Adds the size of the pairs of count elements, and of sorting them; see wf_scratch_add(). */
size_t wf_pairs_scratch(size_t sum, size_t count);

/*
 * Takes a pair for each element from the scratch and sorts the pairs by key, stably. Returns 0
 * or an error of the key function. If stop is set, the order is unspecified or the result is
 * WEFT_ECANCELED.
 */
int wf_pairs_sort(const struct wf_keyed *keyed, struct wf_scratch *scratch, const weft_stop *stop,
                  struct wf_radix_pair **pairs);

#endif
