/* SPDX-License-Identifier: MIT */
/*
 * stream.h - what a kind of stream can do. Descriptors are streams (fd_stream.c), and so is
 * whatever else behaves like one.
 */
#ifndef WF_IO_STREAM_H
#define WF_IO_STREAM_H

#include <stdbool.h>
#include <sys/uio.h>

#include <weft/io.h>

enum {
    WF_TRY_PEEK = 1,   /* what is read is read again by the next call */
    WF_TRY_SURELY = 2, /* even if it is in vain as far as is known: nobody will wait */
};

struct wf_stream_ops {
    /* A call begins to use it: 0, or WEFT_ECLOSED. And ends. */
    int (*enter)(weft_stream *stream, const char *call);
    void (*leave)(weft_stream *stream);
    /* At once: how many bytes, 0 at the end, an error; or -EAGAIN, and then wait. There is
     * room in the vectors. flags: some of WF_TRY_*. */
    ssize_t (*try_read)(weft_stream *stream, const struct iovec *vectors, int count,
                        unsigned flags);
    ssize_t (*try_write)(weft_stream *stream, const struct iovec *vectors, int count,
                         unsigned flags);
    /* What most calls are, in one step, where there is room or data, and a stack; NULL: by the
     * ones above. Reads, and waits for that if need be; enters and leaves. */
    ssize_t (*read)(weft_stream *stream, void *buffer, size_t size, weft_time deadline);
    /* Enters and tries to write: how many bytes, or an error. It has left again if that is all,
     * or an error; else the caller goes on with the rest. */
    ssize_t (*write_begin)(weft_stream *stream, const void *data, size_t size);
    /* Prepares to wait until a try has something to say. In an operation of ours, which tries
     * then and says so if it was not in vain, or in one of others. */
    void (*wait_init)(weft_op *op, weft_stream *stream, unsigned what, bool is_ours);
    int (*shutdown)(weft_stream *stream, weft_side side);
    void (*close)(weft_stream *stream);
    /* NULL: it has none. */
    int (*fd)(const weft_stream *stream);
    int (*release)(weft_stream *stream);
};

struct weft_stream {
    const struct wf_stream_ops *ops;
};

#endif
