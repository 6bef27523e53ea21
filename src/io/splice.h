/* SPDX-License-Identifier: MIT */
/*
 * splice.h - zero-copy transfer between two descriptors inside the kernel.
 */
#ifndef WF_IO_SPLICE_H
#define WF_IO_SPLICE_H

#include <stdint.h>

#include <weft/io.h>

struct wf_transfer_end;

/*
 * Copies until the end of the first stream, like weft_copy(), and adds to *copied. -EOPNOTSUPP:
 * these two streams, this thread or the system's limits do not allow it. Nothing is lost, and
 * the caller reads and writes instead.
 *
 * Context: fiber
 */
int wf_splice(weft_stream *from, weft_stream *to, uint64_t *copied,
              const struct wf_transfer_end *end);

#endif
