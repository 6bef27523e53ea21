/* SPDX-License-Identifier: MIT */
/*
 * stream.c - sequences whose items are made when somebody asks for them: what all have in
 * common, and how they end.
 */
#include "flow/stream.h"

#include "base/alloc.h"

weft_stream *wf_stream_make(const struct wf_stream_ops *ops, size_t size, size_t inner_count,
                            weft_stream *one, weft_stream *two)
{
    bool is_whole = (inner_count < 1 || one != NULL) && (inner_count < 2 || two != NULL);
    weft_stream *self = NULL;
    if (is_whole) {
        self = wf_alloc_zeroed(&wf_alloc_default, ops->bytes, _Alignof(max_align_t));
    }
    if (self == NULL) {
        weft_stream_drop(one);
        weft_stream_drop(two);
        return NULL;
    }
    self->ops = ops;
    self->size = size;
    self->inner[0] = one;
    self->inner[1] = two;
    self->end = 1;
    return self;
}

int weft_stream_next(weft_stream *stream, void *item, weft_time deadline)
{
    if (stream->end != 1) {
        return stream->end;
    }
    int result = stream->ops->next(stream, item, deadline);
    if (result != 1 && result != WEFT_ETIMEDOUT && result != WEFT_ECANCELED) {
        stream->end = result;
    }
    return result;
}

size_t weft_stream_size(const weft_stream *stream)
{
    return stream->size;
}

void weft_stream_drop(weft_stream *stream)
{
    if (stream == NULL) {
        return;
    }
    if (stream->ops->drop != NULL) {
        stream->ops->drop(stream);
    }
    weft_stream_drop(stream->inner[0]);
    weft_stream_drop(stream->inner[1]);
    wf_free(&wf_alloc_default, stream, stream->ops->bytes, _Alignof(max_align_t));
}

/* --- Ends ------------------------------------------------------------------------------------- */

/* An item may be nothing but an event, of no bytes. */
static size_t bytes_of(size_t count, size_t size)
{
    return count * (size > 0 ? size : 1);
}

void *wf_stream_items(size_t count, size_t size)
{
    if (count > PTRDIFF_MAX / (size > 0 ? size : 1)) {
        return NULL;
    }
    return wf_alloc(&wf_alloc_default, bytes_of(count, size), _Alignof(max_align_t));
}

void wf_stream_free_items(void *items, size_t count, size_t size)
{
    wf_free(&wf_alloc_default, items, bytes_of(count, size), _Alignof(max_align_t));
}

int wf_stream_run(weft_stream *stream, int (*function)(void *item, void *arg), void *arg)
{
    void *item = wf_stream_items(1, stream->size);
    int result = item != NULL ? 1 : -ENOMEM;
    while (result > 0) {
        result = weft_stream_next(stream, item, WEFT_NEVER);
        if (result > 0) {
            int err = function(item, arg);
            result = err < 0 ? err : 1;
        }
    }
    wf_stream_free_items(item, 1, stream->size);
    return result;
}

static int run_all(weft_stream *stream, int (*function)(void *item, void *arg), void *arg)
{
    int result = stream != NULL ? wf_stream_run(stream, function, arg) : -ENOMEM;
    weft_stream_drop(stream);
    return result;
}

int weft_stream_for_each(weft_stream *stream, int (*function)(void *item, void *arg), void *arg)
{
    return run_all(stream, function, arg);
}

struct folding {
    void *value;
    void (*fold)(void *value, const void *item, void *arg);
    void *arg;
};

static int fold_item(void *item, void *arg)
{
    const struct folding *folding = arg;
    folding->fold(folding->value, item, folding->arg);
    return 0;
}

int weft_stream_fold(weft_stream *stream, void *value,
                     void (*fold)(void *value, const void *item, void *arg), void *arg)
{
    struct folding folding = { value, fold, arg };
    return run_all(stream, fold_item, &folding);
}

int64_t weft_stream_collect(weft_stream *stream, void *items, size_t most)
{
    if (stream == NULL) {
        return -ENOMEM;
    }
    size_t count = 0;
    int result = 1;
    while (result > 0 && count < most) {
        result = weft_stream_next(stream, (char *)items + count * stream->size, WEFT_NEVER);
        count += result > 0;
    }
    weft_stream_drop(stream);
    return result < 0 ? result : (int64_t)count;
}

static int send_item(void *item, void *arg)
{
    return weft_send(arg, item, WEFT_NEVER);
}

int weft_stream_send_to(weft_stream *stream, weft_sender *sender)
{
    return run_all(stream, send_item, sender);
}
