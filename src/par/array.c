/* SPDX-License-Identifier: MIT */
/*
 * array.c - scratch size and argument checks of the array algorithms.
 */
#include "par/array.h"

#include "par/scratch.h"

size_t weft_array_scratch(size_t count, size_t size)
{
    /* The other functions need less. */
    size_t partition = wf_partition_scratch(count, size);
    size_t shuffle = wf_shuffle_scratch(count, size);
    return wf_scratch_with_slack(partition > shuffle ? partition : shuffle);
}

int wf_array_check_scratch(size_t count, size_t size, const weft_par_options *options)
{
    if (options != NULL && options->scratch != NULL &&
        options->scratch_size < weft_array_scratch(count, size)) {
        return -EINVAL;
    }
    return wf_array_check(count, size);
}
