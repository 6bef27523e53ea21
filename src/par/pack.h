/* SPDX-License-Identifier: MIT */
/*
 * pack.h - parallel compaction and partition by a flag per element.
 */
#ifndef WF_PAR_PACK_H
#define WF_PAR_PACK_H

#include <stdbool.h>
#include <stddef.h>

#include <weft/loop.h>

/* The elements to move, and where. The memory areas must not overlap. */
struct wf_pack {
    const char *from;
    size_t count;
    size_t size;
    const unsigned char *keep; /* one per element: 0 is false, anything else is true */
    char *to;
    bool with_others; /* after the kept ones; otherwise the others are left out */
};

/*
 * Copies the kept elements and then, if wanted, the others. Both keep their order. Adds the
 * number of kept elements to *kept. Returns 0 or WEFT_ECANCELED.
 */
int wf_pack(const struct wf_pack *pack, size_t *kept, const weft_stop *stop);

/* Copies the kept elements without forking. Returns their number. */
size_t wf_pack_alone(const struct wf_pack *pack);

#endif
