/* SPDX-License-Identifier: MIT */
/*
 * stream.h - what a kind of stream can do. Descriptors are streams (fd_stream.c), and so is
 * whatever else behaves like one.
 *
 * A stream of any kind has a source (source.h), and its handle is that of the source: closing,
 * stale handles and the count of calls in progress are the same for all kinds. A kind supplies the
 * functions below, which stand first in the room of the source. They are called by a user of the
 * source, never by a late one.
 */
#ifndef WF_IO_STREAM_H
#define WF_IO_STREAM_H

#include <limits.h>
#include <stdbool.h>
#include <sys/uio.h>

#include <weft/io.h>

#include "io/source.h"

/* The most bytes that one try moves, as in the kernel: their number fits the result of a future. */
#define WF_STREAM_BYTES_MAX ((size_t)(INT_MAX & ~4095))

enum {
    WF_TRY_PEEK = 1,   /* what is read is read again by the next call */
    WF_TRY_SURELY = 2, /* even if it is in vain as far as is known: nobody will wait */
};

struct wf_stream_ops {
    /* At once: how many bytes, up to WF_STREAM_BYTES_MAX, 0 at the end, an error; or -EAGAIN, and
     * then wait. There is room in the vectors. flags: some of WF_TRY_*. */
    ssize_t (*try_read)(struct wf_source *source, const struct iovec *vectors, int count,
                        unsigned flags);
    ssize_t (*try_write)(struct wf_source *source, const struct iovec *vectors, int count,
                         unsigned flags);
    /* What most calls are, in one step; NULL: by the ones above. Reads into one buffer, waits for
     * that if need be, and leaves the source. On a fiber or a plain thread. */
    ssize_t (*read)(struct wf_source *source, void *buffer, size_t size, weft_time deadline);
    /* As try_write, of one buffer. Leaves the source if that is all of it, or an error; else the
     * caller continues with the rest. */
    ssize_t (*write_begin)(struct wf_source *source, const void *data, size_t size);
    int (*shutdown)(struct wf_source *source, weft_side side);
};

/* What the room of the source of a stream begins with. */
struct wf_stream {
    const struct wf_stream_ops *ops; /* constant while open */
};

static inline const struct wf_stream_ops *wf_stream_ops(const struct wf_source *source)
{
    return ((const struct wf_stream *)(const void *)source->room)->ops;
}

#endif
