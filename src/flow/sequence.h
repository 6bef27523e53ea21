/* SPDX-License-Identifier: MIT */
/*
 * sequence.h - what a stage of a sequence has.
 *
 * A kind of stage has a next, and a drop for what it holds beside its inner sequences. It is
 * made by wf_sequence_make(), which takes those, and drops them when there is no memory.
 */
#ifndef WF_FLOW_SEQUENCE_H
#define WF_FLOW_SEQUENCE_H

#include <weft/sequence.h>

struct wf_sequence_ops {
    size_t bytes; /* of the whole stage */
    /* 1, 0: the end, or an error. Not called after the end, or after an error that is the
     * sequence's own. */
    int (*next)(weft_sequence *sequence, void *item, weft_time deadline);
    /* Before its inner sequences are dropped. NULL: there is nothing to do. */
    void (*drop)(weft_sequence *sequence);
};

struct weft_sequence {
    const struct wf_sequence_ops *ops;
    size_t size;             /* of an item */
    weft_sequence *inner[2]; /* NULL: none */
    int end;                 /* 1: not yet; then what next gives for ever */
};

/* A stage for items of this size, zeroed but for the members above. NULL: no memory, or one of
 * the inner sequences is, which are all dropped then. */
weft_sequence *wf_sequence_make(const struct wf_sequence_ops *ops, size_t size, size_t inner_count,
                                weft_sequence *one, weft_sequence *two);

/* Memory for so many items; NULL if there is none. */
void *wf_sequence_items(size_t count, size_t size);
void wf_sequence_free_items(void *items, size_t count, size_t size);

/* Calls function(item, arg) for each item while it returns 0 or more, in the call of that name. 0,
 * or an error. */
int wf_sequence_run(weft_sequence *sequence, int (*function)(void *item, void *arg), void *arg,
                    const char *call);

#endif
