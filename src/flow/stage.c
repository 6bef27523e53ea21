/* SPDX-License-Identifier: MIT */
/*
 * stage.c - pull stages: arrays, channels, map, filter and others that run in the caller of
 * next.
 *
 * A stage that pulls several items to produce one keeps the items it already has, so that a pull
 * that is canceled or times out can be retried.
 */
#include <string.h>

#include <weft/time.h>

#include "flow/sequence.h"

/* --- Arrays ----------------------------------------------------------------------------------- */

struct array_sequence {
    weft_sequence sequence;
    const char *base;
    size_t count;
    size_t at;
};

static int array_next(weft_sequence *sequence, void *item, weft_time deadline)
{
    (void)deadline;
    struct array_sequence *self = (struct array_sequence *)sequence;
    if (self->at == self->count) {
        return 0;
    }
    if (sequence->size > 0) { /* Otherwise an item is an event; both may be NULL. */
        memcpy(item, self->base + self->at * sequence->size, sequence->size);
    }
    self->at++;
    return 1;
}

weft_sequence *weft_sequence_of_array(const void *base, size_t count, size_t size)
{
    static const struct wf_sequence_ops ops = { .bytes = sizeof(struct array_sequence),
                                                .next = array_next };
    struct array_sequence *self =
        (struct array_sequence *)wf_sequence_make(&ops, size, 0, NULL, NULL);
    if (self != NULL) {
        self->base = base;
        self->count = count;
    }
    return (weft_sequence *)self;
}

/* --- Channels --------------------------------------------------------------------------------- */

struct channel_sequence {
    weft_sequence sequence;
    weft_receiver *receiver;
};

static int channel_next(weft_sequence *sequence, void *item, weft_time deadline)
{
    struct channel_sequence *self = (struct channel_sequence *)sequence;
    int err = weft_recv(self->receiver, item, deadline);
    if (err == WEFT_ECLOSED) {
        return 0;
    }
    return err == 0 ? 1 : err;
}

static void channel_drop(weft_sequence *sequence)
{
    weft_receiver_drop(((struct channel_sequence *)sequence)->receiver);
}

weft_sequence *weft_sequence_of_channel(weft_receiver *receiver, size_t size)
{
    static const struct wf_sequence_ops ops = { .bytes = sizeof(struct channel_sequence),
                                                .next = channel_next,
                                                .drop = channel_drop };
    struct channel_sequence *self =
        (struct channel_sequence *)wf_sequence_make(&ops, size, 0, NULL, NULL);
    if (self == NULL) {
        weft_receiver_drop(receiver);
        return NULL;
    }
    self->receiver = receiver;
    return (weft_sequence *)self;
}

/* --- Map -------------------------------------------------------------------------------------- */

struct map_sequence {
    weft_sequence sequence;
    int (*map)(const void *from, void *to, void *arg);
    void *arg;
    void *from; /* an item of the inner sequence */
};

static int map_next(weft_sequence *sequence, void *item, weft_time deadline)
{
    struct map_sequence *self = (struct map_sequence *)sequence;
    int result = weft_sequence_next(sequence->inner[0], self->from, deadline);
    if (result == 1) {
        int err = self->map(self->from, item, self->arg);
        result = err < 0 ? err : 1;
    }
    return result;
}

static void map_drop(weft_sequence *sequence)
{
    wf_sequence_free_items(((struct map_sequence *)sequence)->from, 1, sequence->inner[0]->size);
}

weft_sequence *weft_sequence_map(weft_sequence *sequence, size_t size,
                                 int (*map)(const void *from, void *to, void *arg), void *arg)
{
    static const struct wf_sequence_ops ops = { .bytes = sizeof(struct map_sequence),
                                                .next = map_next,
                                                .drop = map_drop };
    struct map_sequence *self =
        (struct map_sequence *)wf_sequence_make(&ops, size, 1, sequence, NULL);
    if (self == NULL) {
        return NULL;
    }
    self->map = map;
    self->arg = arg;
    self->from = wf_sequence_items(1, sequence->size);
    if (self->from == NULL) {
        weft_sequence_drop(&self->sequence);
        return NULL;
    }
    return &self->sequence;
}

/* --- Filter ----------------------------------------------------------------------------------- */

struct filter_sequence {
    weft_sequence sequence;
    bool (*keep)(const void *item, void *arg);
    void *arg;
};

static int filter_next(weft_sequence *sequence, void *item, weft_time deadline)
{
    struct filter_sequence *self = (struct filter_sequence *)sequence;
    int result;
    while ((result = weft_sequence_next(sequence->inner[0], item, deadline)) == 1 &&
           !self->keep(item, self->arg)) {
    }
    return result;
}

weft_sequence *weft_sequence_filter(weft_sequence *sequence,
                                    bool (*keep)(const void *item, void *arg), void *arg)
{
    static const struct wf_sequence_ops ops = { .bytes = sizeof(struct filter_sequence),
                                                .next = filter_next };
    size_t size = sequence != NULL ? sequence->size : 0;
    struct filter_sequence *self =
        (struct filter_sequence *)wf_sequence_make(&ops, size, 1, sequence, NULL);
    if (self != NULL) {
        self->keep = keep;
        self->arg = arg;
    }
    return (weft_sequence *)self;
}

/* --- Take and skip ---------------------------------------------------------------------------- */

struct counted_sequence {
    weft_sequence sequence;
    uint64_t left; /* items to take or to skip */
};

static int take_next(weft_sequence *sequence, void *item, weft_time deadline)
{
    struct counted_sequence *self = (struct counted_sequence *)sequence;
    if (self->left == 0) {
        return 0;
    }
    int result = weft_sequence_next(sequence->inner[0], item, deadline);
    self->left -= result == 1;
    return result;
}

static int skip_next(weft_sequence *sequence, void *item, weft_time deadline)
{
    struct counted_sequence *self = (struct counted_sequence *)sequence;
    int result;
    while ((result = weft_sequence_next(sequence->inner[0], item, deadline)) == 1 &&
           self->left > 0) {
        self->left--;
    }
    return result;
}

static weft_sequence *make_counted(const struct wf_sequence_ops *ops, weft_sequence *sequence,
                                   uint64_t count)
{
    size_t size = sequence != NULL ? sequence->size : 0;
    struct counted_sequence *self =
        (struct counted_sequence *)wf_sequence_make(ops, size, 1, sequence, NULL);
    if (self != NULL) {
        self->left = count;
    }
    return (weft_sequence *)self;
}

weft_sequence *weft_sequence_take(weft_sequence *sequence, uint64_t count)
{
    static const struct wf_sequence_ops ops = { .bytes = sizeof(struct counted_sequence),
                                                .next = take_next };
    return make_counted(&ops, sequence, count);
}

weft_sequence *weft_sequence_skip(weft_sequence *sequence, uint64_t count)
{
    static const struct wf_sequence_ops ops = { .bytes = sizeof(struct counted_sequence),
                                                .next = skip_next };
    return make_counted(&ops, sequence, count);
}

/* --- Chunks ----------------------------------------------------------------------------------- */

struct chunks_sequence {
    weft_sequence sequence;
    char *items;
    size_t most;
    size_t have; /* items in the current chunk */
};

static int chunks_next(weft_sequence *sequence, void *item, weft_time deadline)
{
    struct chunks_sequence *self = (struct chunks_sequence *)sequence;
    weft_sequence *inner = sequence->inner[0];
    int result = 1;
    while (self->have < self->most && result == 1) {
        result = weft_sequence_next(inner, self->items + self->have * inner->size, deadline);
        self->have += result == 1;
    }
    if (result < 0 || self->have == 0) {
        return result;
    }
    *(weft_chunk *)item = (weft_chunk){ self->items, self->have };
    self->have = 0;
    return 1;
}

static void chunks_drop(weft_sequence *sequence)
{
    struct chunks_sequence *self = (struct chunks_sequence *)sequence;
    wf_sequence_free_items(self->items, self->most, sequence->inner[0]->size);
}

weft_sequence *weft_sequence_chunks(weft_sequence *sequence, size_t count)
{
    static const struct wf_sequence_ops ops = { .bytes = sizeof(struct chunks_sequence),
                                                .next = chunks_next,
                                                .drop = chunks_drop };
    struct chunks_sequence *self =
        (struct chunks_sequence *)wf_sequence_make(&ops, sizeof(weft_chunk), 1, sequence, NULL);
    if (self == NULL) {
        return NULL;
    }
    self->most = count > 0 ? count : 1;
    self->items = wf_sequence_items(self->most, sequence->size);
    if (self->items == NULL) {
        weft_sequence_drop(&self->sequence);
        return NULL;
    }
    return &self->sequence;
}

/* --- Zip -------------------------------------------------------------------------------------- */

struct zip_sequence {
    weft_sequence sequence;
    int (*zip)(const void *one, const void *two, void *to, void *arg);
    void *arg;
    void *items[2];
    bool has_one; /* waiting for the second item */
};

static int zip_next(weft_sequence *sequence, void *item, weft_time deadline)
{
    struct zip_sequence *self = (struct zip_sequence *)sequence;
    int result = 1;
    if (!self->has_one) {
        result = weft_sequence_next(sequence->inner[0], self->items[0], deadline);
        self->has_one = result == 1;
    }
    if (result == 1) {
        result = weft_sequence_next(sequence->inner[1], self->items[1], deadline);
    }
    if (result == 1) {
        self->has_one = false;
        int err = self->zip(self->items[0], self->items[1], item, self->arg);
        result = err < 0 ? err : 1;
    }
    return result;
}

static void zip_drop(weft_sequence *sequence)
{
    struct zip_sequence *self = (struct zip_sequence *)sequence;
    for (unsigned i = 0; i < 2; i++) {
        wf_sequence_free_items(self->items[i], 1, sequence->inner[i]->size);
    }
}

weft_sequence *weft_sequence_zip(weft_sequence *one, weft_sequence *two, size_t size,
                                 int (*zip)(const void *one, const void *two, void *to, void *arg),
                                 void *arg)
{
    static const struct wf_sequence_ops ops = { .bytes = sizeof(struct zip_sequence),
                                                .next = zip_next,
                                                .drop = zip_drop };
    struct zip_sequence *self = (struct zip_sequence *)wf_sequence_make(&ops, size, 2, one, two);
    if (self == NULL) {
        return NULL;
    }
    self->zip = zip;
    self->arg = arg;
    self->items[0] = wf_sequence_items(1, one->size);
    self->items[1] = wf_sequence_items(1, two->size);
    if (self->items[0] == NULL || self->items[1] == NULL) {
        weft_sequence_drop(&self->sequence);
        return NULL;
    }
    return &self->sequence;
}

/* --- Throttle --------------------------------------------------------------------------------- */

struct throttle_sequence {
    weft_sequence sequence;
    weft_time period;
    weft_time next; /* earliest time of the next item; 0: immediately */
};

static int throttle_next(weft_sequence *sequence, void *item, weft_time deadline)
{
    struct throttle_sequence *self = (struct throttle_sequence *)sequence;
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
    int result = weft_sequence_next(sequence->inner[0], item, deadline);
    if (result == 1) {
        self->next = weft_after(self->period);
    }
    return result;
}

weft_sequence *weft_sequence_throttle(weft_sequence *sequence, weft_time period)
{
    static const struct wf_sequence_ops ops = { .bytes = sizeof(struct throttle_sequence),
                                                .next = throttle_next };
    size_t size = sequence != NULL ? sequence->size : 0;
    struct throttle_sequence *self =
        (struct throttle_sequence *)wf_sequence_make(&ops, size, 1, sequence, NULL);
    if (self != NULL) {
        self->period = period;
    }
    return (weft_sequence *)self;
}
