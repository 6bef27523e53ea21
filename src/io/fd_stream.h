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

/* Opens a source for a non-blocking descriptor, which stays the caller's on failure. */
typedef int wf_fd_open_fn(struct wf_io *io, int fd, struct wf_source **out);

/* Adopts a descriptor: marks it as owned, makes it non-blocking, and opens a source for it, which
 * the caller publishes. Fails with -EEXIST if it is already owned, with -EBADF, or as open does.
 * The descriptor then stays the caller's. */
int wf_fd_adopt(struct wf_io *io, int fd, wf_fd_open_fn *open, struct wf_source **out);

/* Returns whether the stream is a descriptor. Then its kind is an enum wf_fd_kind. */
bool wf_fd_stream_is(const struct wf_source *source);

#endif
