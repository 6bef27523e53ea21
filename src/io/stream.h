/* SPDX-License-Identifier: MIT */
/*
 * stream.h - operations of a kind of stream. Descriptors are streams (fd_stream.c), and so is
 * any other object that behaves like one.
 *
 * A stream of any kind has a source (source.h), and the stream's handle is that of the source:
 * closing, stale handles and the count of calls in progress are the same for all kinds. A kind
 * supplies the functions below, which come first in the room of the source. Only users of the
 * source call them, so they never see a closed one that was reused.
 */
#ifndef WF_IO_STREAM_H
#define WF_IO_STREAM_H

#include <limits.h>
#include <stdbool.h>
#include <sys/uio.h>

#include <weft/io.h>

#include "io/source.h"

/* Maximum number of bytes per try, as in the kernel: it fits the result of a future. */
#define WF_STREAM_BYTES_MAX ((size_t)(INT_MAX & ~4095))

enum {
    WF_TRY_PEEK = 1,   /* the bytes stay, and the next call reads them again */
    WF_TRY_SURELY = 2, /* even if the source is known not to be ready: the caller will not wait */
};

struct wf_stream_ops {
    /* Transfer without waiting. Return the number of bytes, up to WF_STREAM_BYTES_MAX, 0 at the
     * end, or an error; -EAGAIN if the caller has to wait. The vectors are not empty. flags: a
     * set of WF_TRY_*. */
    ssize_t (*try_read)(struct wf_source *source, const struct iovec *vectors, int count,
                        unsigned flags);
    ssize_t (*try_write)(struct wf_source *source, const struct iovec *vectors, int count,
                         unsigned flags);
    /* The common case in one step, or NULL: uses the functions above. Reads into one buffer,
     * waits if necessary, and leaves the source. On a fiber or a plain thread. */
    ssize_t (*read)(struct wf_source *source, void *buffer, size_t size, weft_time deadline);
    /* Same as try_write, with one buffer. Leaves the source after a complete write or an error;
     * otherwise the caller continues with the rest. Returns 0 instead of -EAGAIN. */
    ssize_t (*write_begin)(struct wf_source *source, const void *data, size_t size);
    int (*shutdown)(struct wf_source *source, weft_side side);
};

/* The first member of the room in a stream's source. */
struct wf_stream {
    const struct wf_stream_ops *ops; /* constant while open */
};

static inline const struct wf_stream_ops *wf_stream_ops(const struct wf_source *source)
{
    return ((const struct wf_stream *)(const void *)source->room)->ops;
}

#endif
