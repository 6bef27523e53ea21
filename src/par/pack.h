/* SPDX-License-Identifier: MIT */
/*
 * pack.h - moving elements apart by an answer for each.
 */
#ifndef WF_PAR_PACK_H
#define WF_PAR_PACK_H

#include <stdbool.h>
#include <stddef.h>

#include <weft/loop.h>

/* What to move. Nothing overlaps. */
struct wf_pack {
    const char *from;
    size_t count;
    size_t size;
    const unsigned char *keep; /* for each: 0 is no, all else is yes */
    char *to;
    bool with_others; /* behind those that are kept; else they are left out */
};

/*
 * Copies the elements that are kept, in their order, and after them the others, in theirs,
 * if they are wanted. Adds to *kept how many there are. 0, or WEFT_ECANCELED.
 */
int wf_pack(const struct wf_pack *pack, size_t *kept, const weft_stop *stop);

/* Alone: copies the elements that are kept, and returns how many. */
size_t wf_pack_alone(const struct wf_pack *pack);

#endif
