/* SPDX-License-Identifier: MIT */
/*
 * blocks.c - a range cut into blocks, by its length alone; and a value for each.
 */
#include "par/blocks.h"

#include "base/alloc.h"

enum {
    ALIGNMENT = 64,
};

struct wf_blocks wf_blocks_of(size_t first, size_t end, const weft_par_options *options)
{
    struct wf_blocks blocks = { .first = first, .end = end };
    if (first >= end) {
        return blocks;
    }
    size_t count = end - first;
    size_t length =
        options != NULL && options->piece != 0 ? options->piece : count / WF_BLOCKS_WANTED;
    if (options == NULL || options->piece == 0) {
        length = length < WF_BLOCK_LENGTH_MAX ? length : WF_BLOCK_LENGTH_MAX;
    }
    blocks.length = length > 0 ? length : 1;
    blocks.count = (count - 1) / blocks.length + 1;
    return blocks;
}

/* Two workers do not write into one line of the cache, unless values are many and small. */
static size_t stride_of(size_t size)
{
    return size < 16 ? (size + 7) / 8 * 8 : (size + 15) / 16 * 16;
}

bool wf_values_init(struct wf_values *values, size_t count, size_t size)
{
    values->stride = stride_of(size);
    values->count = count;
    values->at = values->here;
    if (count <= WF_VALUES_HERE / values->stride) {
        return true;
    }
    values->at = count <= SIZE_MAX / values->stride
                     ? wf_alloc(&wf_alloc_default, count * values->stride, ALIGNMENT)
                     : NULL;
    return values->at != NULL;
}

void wf_values_fini(struct wf_values *values)
{
    if (values->at != values->here) {
        wf_free(&wf_alloc_default, values->at, values->count * values->stride, ALIGNMENT);
    }
}
