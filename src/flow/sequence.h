/* SPDX-License-Identifier: MIT */
/*
 * sequence.h - common part of the stages of a sequence.
 *
 * A kind of stage has a next function, and a drop function for what it owns besides its inner
 * sequences. wf_sequence_make() creates a stage. It takes ownership of the inner sequences and
 * drops them if memory runs out.
 */
#ifndef WF_FLOW_SEQUENCE_H
#define WF_FLOW_SEQUENCE_H

#include <weft/sequence.h>

struct wf_sequence_ops {
    size_t bytes; /* size of the whole stage */
    /* Returns 1, 0 at the end, or an error. Not called after the end, or after an error of the
     * sequence itself (any but WEFT_ETIMEDOUT and WEFT_ECANCELED). */
    int (*next)(weft_sequence *sequence, void *item, weft_time deadline);
    /* Called before the inner sequences are dropped. NULL: nothing to do. */
    void (*drop)(weft_sequence *sequence);
};

struct weft_sequence {
    const struct wf_sequence_ops *ops;
    size_t size;             /* size of an item */
    weft_sequence *inner[2]; /* NULL if unused */
    int end;                 /* 1: not yet; afterwards the result of every next */
};

/* Creates a stage for items of this size, zeroed except for the fields above. Returns NULL if
 * memory runs out or one of the inner sequences is NULL; then drops all inner sequences. */
weft_sequence *wf_sequence_make(const struct wf_sequence_ops *ops, size_t size, size_t inner_count,
                                weft_sequence *one, weft_sequence *two);

/* Allocates storage for count items. Returns NULL if memory runs out. */
void *wf_sequence_items(size_t count, size_t size);
void wf_sequence_free_items(void *items, size_t count, size_t size);

/* Calls function(item, arg) for each item while it returns 0 or more, on behalf of the named
 * call. Returns 0 or an error. */
int wf_sequence_run(weft_sequence *sequence, int (*function)(void *item, void *arg), void *arg,
                    const char *call);

#endif
