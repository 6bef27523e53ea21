/* SPDX-License-Identifier: MIT */
extern int serve_with_buffers(weft_stream *peer);
