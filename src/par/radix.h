/* SPDX-License-Identifier: MIT */
/*
 * radix.h - parallel radix sort.
 */
#ifndef WF_PAR_RADIX_H
#define WF_PAR_RADIX_H

#include <stdint.h>

#include "par/scratch.h"

/* A key and a pointer to its element. */
struct wf_radix_pair {
    uint64_t key;
    const void *element;
};

/* Kinds of elements. */
enum wf_radix_kind {
    WF_RADIX_32,
    WF_RADIX_64,
    WF_RADIX_PAIR, /* struct wf_radix_pair, by the key */
};

/*
 * Maps the bits of an element to an unsigned number with the wanted order: bits ^ (negative &
 * if_negative) ^ always, where negative is all ones if the highest bit is set. For 32 bits only
 * the lower half is used.
 */
struct wf_radix_order {
    uint64_t if_negative;
    uint64_t always;
};

/* Adds the scratch that wf_radix_sort() takes; see wf_scratch_add(). */
size_t wf_radix_scratch(size_t sum, size_t count, size_t size);

/* Sorts stably. If stop is set, the elements are in an unspecified order. */
void wf_radix_sort(enum wf_radix_kind kind, struct wf_radix_order order, void *base, size_t count,
                   struct wf_scratch *scratch, const weft_stop *stop);

#endif
