/* SPDX-License-Identifier: MIT */
/*
 * options.h - options that an algorithm passes on to the algorithms it is built from.
 */
#ifndef WF_PAR_OPTIONS_H
#define WF_PAR_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/loop.h>

#include "par/blocks.h"
#include "par/scratch.h"
#include "par/stop.h"

enum {
    WF_OPTIONS_BLOCK_MIN = 1024, /* elements; fewer are not worth a block of their own */
    WF_OPTIONS_HERE = 2048,      /* bytes, on a stack that may be small */
};

/* Returns whether an array of count elements of this size can exist. */
static inline bool wf_options_fit(size_t count, size_t size)
{
    return size != 0 && count <= PTRDIFF_MAX / size;
}

/*
 * Returns the options for a reduction or a scan whose elements take a few nanoseconds each. The
 * block length is options->piece, or depends only on the count.
 */
static inline weft_par_options wf_options_for_blocks(size_t count, const weft_par_options *options)
{
    weft_par_options made = { .stop = wf_stop_of(options) };
    made.piece = count / WF_BLOCKS_WANTED;
    if (options != NULL && options->piece != 0) {
        made.piece = options->piece;
    } else if (made.piece < WF_OPTIONS_BLOCK_MIN) {
        made.piece = WF_OPTIONS_BLOCK_MIN;
    } else if (made.piece > WF_BLOCK_LENGTH_MAX) {
        made.piece = WF_BLOCK_LENGTH_MAX;
    }
    return made;
}

/* Returns the options for an algorithm that needs scratch of this sum: the caller's scratch
 * if given, otherwise here if that is large enough, otherwise none, so that scratch is
 * allocated. */
static inline weft_par_options wf_options_with_scratch(size_t sum, char here[WF_OPTIONS_HERE],
                                                       const weft_par_options *options)
{
    weft_par_options made = { .stop = wf_stop_of(options) };
    if (options != NULL && options->scratch != NULL) {
        made = *options;
    } else if (wf_scratch_with_slack(sum) <= WF_OPTIONS_HERE) {
        made.scratch = here;
        made.scratch_size = WF_OPTIONS_HERE;
    }
    return made;
}

#endif
