/* SPDX-License-Identifier: MIT */
/*
 * blocks.h - division of a range into blocks by its length alone, with a value per block.
 */
#ifndef WF_PAR_BLOCKS_H
#define WF_PAR_BLOCKS_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

#include <weft/loop.h>

#include "par/scratch.h"

enum {
    WF_BLOCKS_WANTED = 512,      /* enough for many workers, and cheap to combine */
    WF_BLOCK_LENGTH_MAX = 16384, /* fits into a core's private cache */
    WF_VALUES_HERE = 4096,       /* bytes; larger arrays of values use scratch */
    WF_VALUES_MORE = 2,          /* extra values of a scan: the total and a temporary */
};

struct wf_blocks {
    size_t first;
    size_t end;
    size_t length; /* of a block; the last one may be shorter */
    size_t count;
};

/* Divides a range into blocks. Their length is options->piece, if given. options may be NULL. */
struct wf_blocks wf_blocks_of(size_t first, size_t end, const weft_par_options *options);

static inline size_t wf_blocks_first(const struct wf_blocks *blocks, size_t block)
{
    return blocks->first + block * blocks->length;
}

static inline size_t wf_blocks_end(const struct wf_blocks *blocks, size_t block)
{
    size_t first = wf_blocks_first(blocks, block);
    return blocks->end - first < blocks->length ? blocks->end : first + blocks->length;
}

/* Returns where a share begins, if count elements are divided into shares whose lengths differ
 * by at most one. The share after the last one begins at count. */
static inline size_t wf_share_begin(size_t count, size_t shares, size_t share)
{
    size_t length = count / shares;
    size_t longer = count % shares;
    return share * length + (share < longer ? share : longer);
}

/* An array of values of one size, aligned, with additional bytes beside it. */
struct wf_values {
    unsigned char *at;
    void *beside;
    size_t stride;
    struct wf_scratch scratch; /* used if they do not fit into here */
    alignas(64) unsigned char here[WF_VALUES_HERE + WF_BLOCKS_WANTED];
};

/* Allocates the values without initializing them. Returns 0, -ENOMEM, or -EINVAL if the scratch
 * of the options is too small. */
int wf_values_init(struct wf_values *values, size_t count, size_t size, size_t beside,
                   const weft_par_options *options);
void wf_values_fini(struct wf_values *values);

static inline void *wf_values_at(const struct wf_values *values, size_t index)
{
    return values->at + index * values->stride;
}

#endif
