/* SPDX-License-Identifier: MIT */
/*
 * stage.c - stages that run where they are pulled: arrays, channels, map, filter and their
 * like.
 *
 * A stage that pulls more than one item for one of its own keeps what it has, so that a pull
 * that is cancelled or too late can be done again.
 */
#include <string.h>

#include <weft/time.h>

#include "flow/stream.h"

/* --- Arrays ----------------------------------------------------------------------------------- */

struct array_stream {
    weft_stream stream;
    const char *base;
    size_t count;
    size_t at;
};

static int array_next(weft_stream *stream, void *item, weft_time deadline)
{
    (void)deadline;
    struct array_stream *self = (struct array_stream *)stream;
    if (self->at == self->count) {
        return 0;
    }
    memcpy(item, self->base + self->at * stream->size, stream->size);
    self->at++;
    return 1;
}

weft_stream *weft_stream_of_array(const void *base, size_t count, size_t size)
{
    static const struct wf_stream_ops ops = { .bytes = sizeof(struct array_stream),
                                              .next = array_next };
    struct array_stream *self = (struct array_stream *)wf_stream_make(&ops, size, 0, NULL, NULL);
    if (self != NULL) {
        self->base = base;
        self->count = count;
    }
    return (weft_stream *)self;
}

/* --- Channels --------------------------------------------------------------------------------- */

struct channel_stream {
    weft_stream stream;
    weft_receiver *receiver;
};

static int channel_next(weft_stream *stream, void *item, weft_time deadline)
{
    struct channel_stream *self = (struct channel_stream *)stream;
    int err = weft_recv(self->receiver, item, deadline);
    if (err == WEFT_ECLOSED) {
        return 0;
    }
    return err == 0 ? 1 : err;
}

static void channel_drop(weft_stream *stream)
{
    weft_receiver_drop(((struct channel_stream *)stream)->receiver);
}

weft_stream *weft_stream_of_channel(weft_receiver *receiver, size_t size)
{
    static const struct wf_stream_ops ops = { .bytes = sizeof(struct channel_stream),
                                              .next = channel_next,
                                              .drop = channel_drop };
    struct channel_stream *self =
        (struct channel_stream *)wf_stream_make(&ops, size, 0, NULL, NULL);
    if (self == NULL) {
        weft_receiver_drop(receiver);
        return NULL;
    }
    self->receiver = receiver;
    return (weft_stream *)self;
}

/* --- Map -------------------------------------------------------------------------------------- */

struct map_stream {
    weft_stream stream;
    int (*map)(const void *from, void *to, void *arg);
    void *arg;
    void *from; /* an item of the inner stream */
};

static int map_next(weft_stream *stream, void *item, weft_time deadline)
{
    struct map_stream *self = (struct map_stream *)stream;
    int result = weft_stream_next(stream->inner[0], self->from, deadline);
    if (result == 1) {
        int err = self->map(self->from, item, self->arg);
        result = err < 0 ? err : 1;
    }
    return result;
}

static void map_drop(weft_stream *stream)
{
    wf_stream_free_items(((struct map_stream *)stream)->from, 1, stream->inner[0]->size);
}

weft_stream *weft_stream_map(weft_stream *stream, size_t size,
                             int (*map)(const void *from, void *to, void *arg), void *arg)
{
    static const struct wf_stream_ops ops = { .bytes = sizeof(struct map_stream),
                                              .next = map_next,
                                              .drop = map_drop };
    struct map_stream *self = (struct map_stream *)wf_stream_make(&ops, size, 1, stream, NULL);
    if (self == NULL) {
        return NULL;
    }
    self->map = map;
    self->arg = arg;
    self->from = wf_stream_items(1, stream->size);
    if (self->from == NULL) {
        weft_stream_drop(&self->stream);
        return NULL;
    }
    return &self->stream;
}

/* --- Filter ----------------------------------------------------------------------------------- */

struct filter_stream {
    weft_stream stream;
    bool (*keep)(const void *item, void *arg);
    void *arg;
};

static int filter_next(weft_stream *stream, void *item, weft_time deadline)
{
    struct filter_stream *self = (struct filter_stream *)stream;
    int result;
    while ((result = weft_stream_next(stream->inner[0], item, deadline)) == 1 &&
           !self->keep(item, self->arg)) {
    }
    return result;
}

weft_stream *weft_stream_filter(weft_stream *stream, bool (*keep)(const void *item, void *arg),
                                void *arg)
{
    static const struct wf_stream_ops ops = { .bytes = sizeof(struct filter_stream),
                                              .next = filter_next };
    size_t size = stream != NULL ? stream->size : 0;
    struct filter_stream *self =
        (struct filter_stream *)wf_stream_make(&ops, size, 1, stream, NULL);
    if (self != NULL) {
        self->keep = keep;
        self->arg = arg;
    }
    return (weft_stream *)self;
}

/* --- The first ones, and the others ----------------------------------------------------------- */

struct counted_stream {
    weft_stream stream;
    uint64_t left; /* to take, or to skip */
};

static int take_next(weft_stream *stream, void *item, weft_time deadline)
{
    struct counted_stream *self = (struct counted_stream *)stream;
    if (self->left == 0) {
        return 0;
    }
    int result = weft_stream_next(stream->inner[0], item, deadline);
    self->left -= result == 1;
    return result;
}

static int skip_next(weft_stream *stream, void *item, weft_time deadline)
{
    struct counted_stream *self = (struct counted_stream *)stream;
    int result;
    while ((result = weft_stream_next(stream->inner[0], item, deadline)) == 1 && self->left > 0) {
        self->left--;
    }
    return result;
}

static weft_stream *make_counted(const struct wf_stream_ops *ops, weft_stream *stream,
                                 uint64_t count)
{
    size_t size = stream != NULL ? stream->size : 0;
    struct counted_stream *self =
        (struct counted_stream *)wf_stream_make(ops, size, 1, stream, NULL);
    if (self != NULL) {
        self->left = count;
    }
    return (weft_stream *)self;
}

weft_stream *weft_stream_take(weft_stream *stream, uint64_t count)
{
    static const struct wf_stream_ops ops = { .bytes = sizeof(struct counted_stream),
                                              .next = take_next };
    return make_counted(&ops, stream, count);
}

weft_stream *weft_stream_skip(weft_stream *stream, uint64_t count)
{
    static const struct wf_stream_ops ops = { .bytes = sizeof(struct counted_stream),
                                              .next = skip_next };
    return make_counted(&ops, stream, count);
}

/* --- Chunks ----------------------------------------------------------------------------------- */

struct chunks_stream {
    weft_stream stream;
    char *items;
    size_t most;
    size_t have; /* of the chunk that is being made */
};

static int chunks_next(weft_stream *stream, void *item, weft_time deadline)
{
    struct chunks_stream *self = (struct chunks_stream *)stream;
    weft_stream *inner = stream->inner[0];
    int result = 1;
    while (self->have < self->most && result == 1) {
        result = weft_stream_next(inner, self->items + self->have * inner->size, deadline);
        self->have += result == 1;
    }
    if (result < 0 || self->have == 0) {
        return result;
    }
    *(weft_chunk *)item = (weft_chunk){ self->items, self->have };
    self->have = 0;
    return 1;
}

static void chunks_drop(weft_stream *stream)
{
    struct chunks_stream *self = (struct chunks_stream *)stream;
    wf_stream_free_items(self->items, self->most, stream->inner[0]->size);
}

weft_stream *weft_stream_chunks(weft_stream *stream, size_t count)
{
    static const struct wf_stream_ops ops = { .bytes = sizeof(struct chunks_stream),
                                              .next = chunks_next,
                                              .drop = chunks_drop };
    struct chunks_stream *self =
        (struct chunks_stream *)wf_stream_make(&ops, sizeof(weft_chunk), 1, stream, NULL);
    if (self == NULL) {
        return NULL;
    }
    self->most = count > 0 ? count : 1;
    self->items = wf_stream_items(self->most, stream->size);
    if (self->items == NULL) {
        weft_stream_drop(&self->stream);
        return NULL;
    }
    return &self->stream;
}

/* --- Zip -------------------------------------------------------------------------------------- */

struct zip_stream {
    weft_stream stream;
    int (*zip)(const void *one, const void *two, void *to, void *arg);
    void *arg;
    void *items[2];
    bool has_one; /* and waits for the other one */
};

static int zip_next(weft_stream *stream, void *item, weft_time deadline)
{
    struct zip_stream *self = (struct zip_stream *)stream;
    int result = 1;
    if (!self->has_one) {
        result = weft_stream_next(stream->inner[0], self->items[0], deadline);
        self->has_one = result == 1;
    }
    if (result == 1) {
        result = weft_stream_next(stream->inner[1], self->items[1], deadline);
    }
    if (result == 1) {
        self->has_one = false;
        int err = self->zip(self->items[0], self->items[1], item, self->arg);
        result = err < 0 ? err : 1;
    }
    return result;
}

static void zip_drop(weft_stream *stream)
{
    struct zip_stream *self = (struct zip_stream *)stream;
    for (unsigned i = 0; i < 2; i++) {
        wf_stream_free_items(self->items[i], 1, stream->inner[i]->size);
    }
}

weft_stream *weft_stream_zip(weft_stream *one, weft_stream *two, size_t size,
                             int (*zip)(const void *one, const void *two, void *to, void *arg),
                             void *arg)
{
    static const struct wf_stream_ops ops = { .bytes = sizeof(struct zip_stream),
                                              .next = zip_next,
                                              .drop = zip_drop };
    struct zip_stream *self = (struct zip_stream *)wf_stream_make(&ops, size, 2, one, two);
    if (self == NULL) {
        return NULL;
    }
    self->zip = zip;
    self->arg = arg;
    self->items[0] = wf_stream_items(1, one->size);
    self->items[1] = wf_stream_items(1, two->size);
    if (self->items[0] == NULL || self->items[1] == NULL) {
        weft_stream_drop(&self->stream);
        return NULL;
    }
    return &self->stream;
}

/* --- Throttle --------------------------------------------------------------------------------- */

struct throttle_stream {
    weft_stream stream;
    weft_time period;
    weft_time next; /* not before this time; 0: at once */
};

static int throttle_next(weft_stream *stream, void *item, weft_time deadline)
{
    struct throttle_stream *self = (struct throttle_stream *)stream;
    if (self->next > deadline) {
        int err = weft_sleep_until(deadline);
        return err != 0 ? err : WEFT_ETIMEDOUT;
    }
    if (self->next != 0) {
        int err = weft_sleep_until(self->next);
        if (err != 0) {
            return err;
        }
    }
    int result = weft_stream_next(stream->inner[0], item, deadline);
    if (result == 1) {
        self->next = weft_after(self->period);
    }
    return result;
}

weft_stream *weft_stream_throttle(weft_stream *stream, weft_time period)
{
    static const struct wf_stream_ops ops = { .bytes = sizeof(struct throttle_stream),
                                              .next = throttle_next };
    size_t size = stream != NULL ? stream->size : 0;
    struct throttle_stream *self =
        (struct throttle_stream *)wf_stream_make(&ops, size, 1, stream, NULL);
    if (self != NULL) {
        self->period = period;
    }
    return (weft_stream *)self;
}
