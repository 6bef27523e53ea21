/* SPDX-License-Identifier: MIT */
/*
 * blocks.h - a range cut into blocks, by its length alone; and a value for each.
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
    WF_BLOCK_LENGTH_MAX = 16384, /* fits into a cache beside the worker */
    WF_VALUES_HERE = 4096,       /* bytes; more are in the scratch */
    WF_VALUES_MORE = 2,          /* that a scan needs: a total, and one to hold another */
};

struct wf_blocks {
    size_t first;
    size_t end;
    size_t length; /* of a block; the last one may be shorter */
    size_t count;
};

/* options->piece, if given, is the length; options may be NULL. */
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

/* Where a share of count elements begins, of so many that differ by one at most; that
 * behind the last one: at the count. */
static inline size_t wf_share_begin(size_t count, size_t shares, size_t share)
{
    size_t length = count / shares;
    size_t longer = count % shares;
    return share * length + (share < longer ? share : longer);
}

/* Values of one size, apart from each other as their alignment wants; and bytes beside
 * them. */
struct wf_values {
    unsigned char *at;
    void *beside;
    size_t stride;
    struct wf_scratch scratch; /* if they are not here */
    alignas(64) unsigned char here[WF_VALUES_HERE + WF_BLOCKS_WANTED];
};

/* Not initialised. 0, -ENOMEM, or -EINVAL: the scratch of the options is too small. */
int wf_values_init(struct wf_values *values, size_t count, size_t size, size_t beside,
                   const weft_par_options *options);
void wf_values_fini(struct wf_values *values);

static inline void *wf_values_at(const struct wf_values *values, size_t index)
{
    return values->at + index * values->stride;
}

#endif
