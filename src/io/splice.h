/* SPDX-License-Identifier: MIT */
/*
 * splice.h - from one descriptor to another inside the kernel.
 */
#ifndef WF_IO_SPLICE_H
#define WF_IO_SPLICE_H

#include <stdint.h>

#include <weft/io.h>

struct wf_transfer_end;

/*
 * Copies until the end of the first stream, as weft_copy(); *copied is counted up.
 * -EOPNOTSUPP: nothing is lost, but these two streams, this thread or the system's limits do not
 * allow it; read and write instead.
 *
 * Context: a fiber.
 */
int wf_splice(weft_stream *from, weft_stream *to, uint64_t *copied,
              const struct wf_transfer_end *end);

#endif
