/* SPDX-License-Identifier: MIT */
/*
 * swap.h - swap of two elements of any size.
 */
#ifndef WF_PAR_SWAP_H
#define WF_PAR_SWAP_H

#include <stddef.h>
#include <string.h>

#include "par/pause.h"

/* Swaps up to 64 bytes, which fit into a few registers. */
static inline __attribute__((always_inline)) void wf_swap_some(char *a, char *b, size_t bytes)
{
    char kept[64];
    memcpy(kept, a, bytes);
    memmove(a, b, bytes);
    memcpy(b, kept, bytes);
}

/* Swaps two elements, which may be the same, without safe points. */
static inline void wf_swap_bytes(char *a, char *b, size_t size)
{
    for (; size >= 64; size -= 64, a += 64, b += 64) {
        wf_swap_some(a, b, 64);
    }
    for (; size >= 8; size -= 8, a += 8, b += 8) {
        wf_swap_some(a, b, 8);
    }
    for (; size > 0; size--, a++, b++) {
        wf_swap_some(a, b, 1);
    }
}

/* Swaps two elements, which may be the same, with safe points if they are large. */
static inline void wf_swap(char *a, char *b, size_t size)
{
    for (; wf_unlikely(size > WF_PAUSE_BYTES); size -= WF_PAUSE_BYTES) {
        wf_swap_bytes(a, b, WF_PAUSE_BYTES);
        wf_pause(2 * WF_PAUSE_BYTES / WF_PAUSE_STEP_BYTES);
        a += WF_PAUSE_BYTES;
        b += WF_PAUSE_BYTES;
    }
    wf_swap_bytes(a, b, size);
}

#endif
