/* SPDX-License-Identifier: MIT */
/*
 * blocks.c - division of a range into blocks by its length alone, with a value per block.
 */
#include "par/blocks.h"

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

/* Rounds the size of a value up to a multiple of 8, or of 16 for larger ones. */
static size_t stride_of(size_t size)
{
    return size < 16 ? (size + 7) / 8 * 8 : (size + 15) / 16 * 16;
}

static size_t sum_of(size_t count, size_t stride, size_t beside)
{
    return wf_scratch_add(wf_scratch_add(0, count, stride), beside, 1);
}

/* Returns the scratch of a scan. A reduction needs less. */
size_t weft_loop_scratch(size_t count, size_t size, size_t piece)
{
    weft_par_options options = { .piece = piece };
    size_t blocks = wf_blocks_of(0, count, &options).count;
    return wf_scratch_with_slack(sum_of(blocks + WF_VALUES_MORE, stride_of(size), blocks));
}

int wf_values_init(struct wf_values *values, size_t count, size_t size, size_t beside,
                   const weft_par_options *options)
{
    values->stride = stride_of(size);
    values->at = values->here;
    values->beside = values->here + WF_VALUES_HERE;
    values->scratch = (struct wf_scratch){ 0 };
    if (count <= WF_VALUES_HERE / values->stride && beside <= WF_BLOCKS_WANTED) {
        return 0;
    }
    int err = wf_scratch_init(&values->scratch, sum_of(count, values->stride, beside), options);
    if (err == 0) {
        values->at = wf_scratch_take(&values->scratch, count, values->stride);
        values->beside = wf_scratch_take(&values->scratch, beside, 1);
    }
    return err;
}

void wf_values_fini(struct wf_values *values)
{
    wf_scratch_fini(&values->scratch);
}
