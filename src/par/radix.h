/* SPDX-License-Identifier: MIT */
/*
 * radix.h - sorting by the digits of a number.
 */
#ifndef WF_PAR_RADIX_H
#define WF_PAR_RADIX_H

#include <stdint.h>

#include "par/scratch.h"

/* A key, and where its element is. */
struct wf_radix_pair {
    uint64_t key;
    const void *element;
};

/* What is sorted. */
enum wf_radix_kind {
    WF_RADIX_32,
    WF_RADIX_64,
    WF_RADIX_PAIR, /* struct wf_radix_pair, by the key */
};

/*
 * How bits become a number whose order is wanted: bits ^ (negative & if_negative) ^ always,
 * where negative is all ones if the highest bit is set. Of 32 bits, the lower half counts.
 */
struct wf_radix_order {
    uint64_t if_negative;
    uint64_t always;
};

/* Adds what wf_radix_sort() takes from its scratch; see wf_scratch_add(). */
size_t wf_radix_scratch(size_t sum, size_t count, size_t size);

/* Sorts, stably. If it is stopped, the elements are in any order. */
void wf_radix_sort(enum wf_radix_kind kind, struct wf_radix_order order, void *base, size_t count,
                   struct wf_scratch *scratch, const weft_stop *stop);

#endif
