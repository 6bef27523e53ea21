/* SPDX-License-Identifier: MIT */
/*
 * duplex.c - in-memory duplex stream: a pair of connected streams.
 *
 * Each end is a source (source.c) without a descriptor; this file plays the kernel's role. A try
 * copies bytes under a lock, and a transfer that makes the peer ready fires an event at the peer's
 * source. So waiting, closing and late calls work as they do with descriptors.
 *
 * The last user to leave a closed end notifies the peer. The last user of both ends frees the
 * shared memory.
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/lock.h"
#include "io/io.h"
#include "io/source.h"
#include "io/stream.h"
#include "sched/sched.h"
#include "sched/worker.h"

/* One direction: a ring buffer of bytes. */
struct flow {
    size_t first;
    size_t count;
    char *bytes;        /* constant */
    bool has_no_reader; /* a write fails */
    bool has_no_writer; /* a read returns 0 once the ring is empty */
};

struct duplex {
    struct wf_lock lock; /* guards flows and ends_left */
    unsigned ends_left;
    size_t size; /* constant; so are capacity, io and tags */
    size_t capacity;
    struct wf_io *io;
    uint64_t tags[2];     /* of the sources */
    struct flow flows[2]; /* the flow that each end reads */
    char bytes[];
};

/* In the room of its source. */
struct end {
    struct wf_stream base;
    struct duplex *whole;
    unsigned side;
};

_Static_assert(sizeof(struct end) <= WF_SOURCE_ROOM, "WF_SOURCE_ROOM is too small");

static struct end *end_of(struct wf_source *source)
{
    return (struct end *)(void *)source->room;
}

static struct flow *flow_in(const struct end *end)
{
    return &end->whole->flows[end->side];
}

static struct flow *flow_out(const struct end *end)
{
    return &end->whole->flows[1 - end->side];
}

static void tell_peer(const struct end *end, unsigned events)
{
    const struct duplex *whole = end->whole;
    wf_source_fire(whole->io, whole->tags[1 - end->side], events);
}

/* --- Bytes ------------------------------------------------------------------------------ */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Under the lock. */
static void copy_out(const struct end *end, size_t offset, char *to, size_t size)
{
    const struct flow *flow = flow_in(end);
    size_t capacity = end->whole->capacity;
    size_t at = (flow->first + offset) % capacity;
    size_t part = smaller(size, capacity - at);
    memcpy(to, flow->bytes + at, part);
    memcpy(to + part, flow->bytes, size - part);
}

static void copy_in(const struct end *end, const char *from, size_t size)
{
    struct flow *flow = flow_out(end);
    size_t capacity = end->whole->capacity;
    size_t at = (flow->first + flow->count) % capacity;
    size_t part = smaller(size, capacity - at);
    memcpy(flow->bytes + at, from, part);
    memcpy(flow->bytes, from + part, size - part);
    flow->count += size;
}

static size_t take(const struct end *end, const struct iovec *vectors, int count, bool peek)
{
    struct flow *flow = flow_in(end);
    size_t most = smaller(flow->count, WF_STREAM_BYTES_MAX);
    size_t done = 0;
    for (int i = 0; i < count && done < most; i++) {
        size_t size = smaller(vectors[i].iov_len, most - done);
        if (size > 0) {
            copy_out(end, done, vectors[i].iov_base, size);
            done += size;
        }
    }
    if (!peek) {
        flow->first = (flow->first + done) % end->whole->capacity;
        flow->count -= done;
    }
    return done;
}

static size_t put(const struct end *end, const struct iovec *vectors, int count)
{
    const struct flow *flow = flow_out(end);
    size_t most = smaller(end->whole->capacity - flow->count, WF_STREAM_BYTES_MAX);
    size_t done = 0;
    for (int i = 0; i < count && done < most; i++) {
        size_t size = smaller(vectors[i].iov_len, most - done);
        if (size > 0) {
            copy_in(end, vectors[i].iov_base, size);
            done += size;
        }
    }
    return done;
}

/* --- Trying ----------------------------------------------------------------------------- */

/* Returns whether a try would not fail with EAGAIN. The caller holds the lock. */
static bool can_read(const struct end *end)
{
    const struct flow *flow = flow_in(end);
    return flow->count > 0 || flow->has_no_reader || flow->has_no_writer;
}

static bool can_write(const struct end *end)
{
    const struct flow *flow = flow_out(end);
    return flow->count < end->whole->capacity || flow->has_no_reader || flow->has_no_writer;
}

static bool is_ready(struct wf_source *source, uint32_t what)
{
    const struct end *end = end_of(source);
    wf_lock(&end->whole->lock);
    bool result = what == WF_SOURCE_READABLE ? can_read(end) : can_write(end);
    wf_unlock(&end->whole->lock);
    return result;
}

static ssize_t duplex_try_read(struct wf_source *source, const struct iovec *vectors, int count,
                               unsigned flags)
{
    const struct end *end = end_of(source);
    bool peek = (flags & WF_TRY_PEEK) != 0;
    uint32_t seen = wf_source_look(source);
    if ((seen & WF_SOURCE_READABLE) == 0 && (flags & WF_TRY_SURELY) == 0) {
        return -EAGAIN;
    }
    wf_lock(&end->whole->lock);
    bool can = can_read(end);
    size_t n = flow_in(end)->has_no_reader ? 0 : take(end, vectors, count, peek);
    wf_unlock(&end->whole->lock);
    if (!can) {
        wf_source_exhausted(source, seen, WF_SOURCE_READABLE);
        return -EAGAIN;
    }
    wf_worker_count_bytes(n);
    if (n > 0 && !peek) {
        tell_peer(end, WF_EVENT_WRITE);
    }
    wf_source_pass_on(source, WF_SOURCE_READABLE);
    return (ssize_t)n;
}

static ssize_t duplex_try_write(struct wf_source *source, const struct iovec *vectors, int count,
                                unsigned flags)
{
    const struct end *end = end_of(source);
    uint32_t seen = wf_source_look(source);
    if ((seen & WF_SOURCE_WRITABLE) == 0 && (flags & WF_TRY_SURELY) == 0) {
        return -EAGAIN;
    }
    wf_lock(&end->whole->lock);
    bool can = can_write(end);
    bool is_over = flow_out(end)->has_no_reader || flow_out(end)->has_no_writer;
    size_t n = is_over ? 0 : put(end, vectors, count);
    wf_unlock(&end->whole->lock);
    if (!can) {
        wf_source_exhausted(source, seen, WF_SOURCE_WRITABLE);
        return -EAGAIN;
    }
    wf_worker_count_bytes(n);
    if (n > 0) {
        tell_peer(end, WF_EVENT_READ);
    }
    wf_source_pass_on(source, WF_SOURCE_WRITABLE);
    return is_over ? -EPIPE : (ssize_t)n;
}

/* --- Ends ------------------------------------------------------------------------------- */

/* Ends reading, writing or both at this end. The caller holds the lock. */
static void end_sides(const struct end *end, weft_side side)
{
    if (side != WEFT_WRITE_SIDE) {
        flow_in(end)->has_no_reader = true;
    }
    if (side != WEFT_READ_SIDE) {
        flow_out(end)->has_no_writer = true;
    }
}

static int duplex_shutdown(struct wf_source *source, weft_side side)
{
    const struct end *end = end_of(source);
    struct duplex *whole = end->whole;
    wf_lock(&whole->lock);
    end_sides(end, side);
    wf_unlock(&whole->lock);
    wf_source_fire(whole->io, whole->tags[0], WF_EVENT_END);
    wf_source_fire(whole->io, whole->tags[1], WF_EVENT_END);
    return 0;
}

static void free_whole(struct duplex *whole)
{
    wf_free(&whole->io->sched->options.allocator, whole, whole->size, _Alignof(struct duplex));
}

/* Called after the last user of this end has left. The peer's source exists even if the peer is
 * closed. */
static void release(struct wf_source *source)
{
    const struct end *end = end_of(source);
    struct duplex *whole = end->whole;
    struct wf_io *io = whole->io;
    uint64_t peer = whole->tags[1 - end->side];
    wf_lock(&whole->lock);
    end_sides(end, WEFT_BOTH_SIDES);
    bool is_last = --whole->ends_left == 0;
    wf_unlock(&whole->lock);
    if (is_last) {
        free_whole(whole);
    } else {
        wf_source_fire(io, peer, WF_EVENT_END);
    }
}

static const struct wf_stream_ops duplex_ops = {
    .try_read = duplex_try_read,
    .try_write = duplex_try_write,
    .shutdown = duplex_shutdown,
};

/* --- Opening ---------------------------------------------------------------------------- */

static struct duplex *make_whole(struct wf_io *io, size_t capacity)
{
    size_t size = sizeof(struct duplex) + 2 * capacity;
    struct duplex *whole = wf_alloc(&io->sched->options.allocator, size, _Alignof(struct duplex));
    if (whole != NULL) {
        memset(whole, 0, sizeof *whole);
        wf_lock_init(&whole->lock, WF_RANK_DUPLEX);
        whole->size = size;
        whole->capacity = capacity;
        whole->io = io;
        whole->flows[0].bytes = whole->bytes;
        whole->flows[1].bytes = whole->bytes + capacity;
    }
    return whole;
}

static int open_end(struct duplex *whole, unsigned side, weft_stream **out)
{
    struct wf_source *source;
    int err = wf_source_open(whole->io, -1, &source);
    if (err != 0) {
        return err;
    }
    struct end *end = end_of(source);
    end->base.ops = &duplex_ops;
    end->whole = whole;
    end->side = side;
    source->release = release;
    source->is_ready = is_ready;
    source->armed = WF_EVENT_BOTH; /* This file reports events, not the backend. */
    whole->tags[side] = wf_source_tag(source);
    whole->ends_left++;
    *out = wf_source_publish(source);
    return 0;
}

int weft_duplex(weft_stream **one, weft_stream **other, size_t capacity)
{
    struct wf_io *io = wf_io_must("weft_duplex");
    if (capacity == 0 || capacity > (SIZE_MAX - sizeof(struct duplex)) / 2) {
        return -EINVAL;
    }
    struct duplex *whole = make_whole(io, capacity);
    if (whole == NULL) {
        return -ENOMEM;
    }
    int err = open_end(whole, 0, one);
    if (err != 0) {
        free_whole(whole);
        return err;
    }
    err = open_end(whole, 1, other);
    if (err != 0) {
        weft_stream_close(*one); /* frees the shared memory */
    }
    return err;
}
