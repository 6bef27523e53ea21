/* SPDX-License-Identifier: MIT */
/*
 * fd_stream.h - descriptors as streams.
 */
#ifndef WF_IO_FD_STREAM_H
#define WF_IO_FD_STREAM_H

#include <stdbool.h>

#include <weft/io.h>

struct wf_io;
struct wf_source;

enum wf_fd_kind {
    WF_FD_OTHER, /* a terminal, a device */
    WF_FD_TCP,
    WF_FD_LOCAL, /* a Unix socket, or any other socket that is not TCP */
    WF_FD_PIPE,
};

/* Opens a stream for a non-blocking descriptor, which stays the caller's on failure. */
int wf_fd_stream_open(struct wf_io *io, int fd, enum wf_fd_kind kind, struct wf_source **out);

/* Opens streams for both ends of a pipe or socket pair. On failure both are closed. */
int wf_fd_stream_open_both(struct wf_io *io, const int *ends, enum wf_fd_kind kind,
                           weft_stream **one, weft_stream **other);

/* Same as wf_source_give_up(), for a stream: returns the adopted descriptor. */
int wf_fd_stream_give_up(struct wf_source *source);

/* Makes the descriptor non-blocking. Returns 0 or -EBADF. */
int wf_fd_do_not_block(int fd);

/* Returns whether the stream is a descriptor. Then its kind is an enum wf_fd_kind. */
bool wf_fd_stream_is(const struct wf_source *source);

#endif
