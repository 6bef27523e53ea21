/* SPDX-License-Identifier: MIT */
/*
 * stream.h - what a stage of a stream has.
 *
 * A kind of stage has a next, and a drop for what it holds beside its inner streams. It is
 * made by wf_stream_make(), which takes those, and drops them when there is no memory.
 */
#ifndef WF_FLOW_STREAM_H
#define WF_FLOW_STREAM_H

#include <weft/stream.h>

struct wf_stream_ops {
    size_t bytes; /* of the whole stage */
    /* 1, 0: the end, or an error. Not called after the end, or after an error that is the
     * stream's own. */
    int (*next)(weft_stream *stream, void *item, weft_time deadline);
    /* Before its inner streams are dropped. NULL: there is nothing to do. */
    void (*drop)(weft_stream *stream);
};

struct weft_stream {
    const struct wf_stream_ops *ops;
    size_t size;           /* of an item */
    weft_stream *inner[2]; /* NULL: none */
    int end;               /* 1: not yet; then what next gives for ever */
};

/* A stage for items of this size, zeroed but for the members above. NULL: no memory, or one of
 * the inner streams is, which are all dropped then. */
weft_stream *wf_stream_make(const struct wf_stream_ops *ops, size_t size, size_t inner_count,
                            weft_stream *one, weft_stream *two);

/* Memory for so many items; NULL if there is none. */
void *wf_stream_items(size_t count, size_t size);
void wf_stream_free_items(void *items, size_t count, size_t size);

/* Calls function(item, arg) for each item while it returns 0 or more. 0, or an error. */
int wf_stream_run(weft_stream *stream, int (*function)(void *item, void *arg), void *arg);

#endif
