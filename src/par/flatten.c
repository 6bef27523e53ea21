/* SPDX-License-Identifier: MIT */
/*
 * flatten.c - parallel concatenation of slices.
 *
 * First the offset of each slice in the output is computed. Then the output is divided, not the
 * slices. So several workers copy a slice that is much longer than the others.
 */
#include "par/array.h"
#include "par/pause.h"
#include "par/scratch.h"
#include "par/stop.h"

enum {
    OFFSETS_HERE = 128, /* more are in the scratch */
    BLOCKS_MAX = 500,   /* their sums fit into the stack buffer of weft_scan() */
    BLOCK_LENGTH_MIN = 1024,
};

struct flatten {
    const weft_slice *slices;
    size_t slices_count;
    size_t size;
    char *to;
    size_t *offsets;
};

/* --- Offsets of the slices --------------------------------------------------------------- */

/* Adds with saturation: SIZE_MAX stands for every sum that overflows. */
static size_t add(size_t a, size_t b)
{
    size_t sum;
    return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

static int fold_counts(void *value, size_t first, size_t end, void *arg)
{
    const struct flatten *flatten = arg;
    size_t sum = *(size_t *)value;
    for (size_t i = first; i < end; i++) {
        sum = add(sum, flatten->slices[i].count);
    }
    *(size_t *)value = sum;
    return 0;
}

static void combine_counts(void *value, const void *next, void *arg)
{
    (void)arg;
    *(size_t *)value = add(*(size_t *)value, *(const size_t *)next);
}

static int write_offsets(void *value, size_t first, size_t end, void *arg)
{
    const struct flatten *flatten = arg;
    size_t offset = *(size_t *)value;
    for (size_t i = first; i < end; i++) {
        flatten->offsets[i] = offset;
        offset = add(offset, flatten->slices[i].count);
    }
    *(size_t *)value = offset;
    return 0;
}

static int find_offsets(struct flatten *flatten, const weft_stop *stop)
{
    static const size_t zero;
    static const weft_scanner how = {
        .reduction = { sizeof(size_t), &zero, fold_counts, combine_counts },
        .scan = write_offsets,
        .is_exact = true,
    };
    size_t count = flatten->slices_count;
    size_t *total = &flatten->offsets[count];
    weft_par_options options = { .piece = count / BLOCKS_MAX + 1, .stop = stop };
    options.piece = options.piece > BLOCK_LENGTH_MIN ? options.piece : BLOCK_LENGTH_MIN;
    int err = weft_scan(0, count, &how, flatten, total, &options);
    return err != 0 ? err : wf_array_check(*total, flatten->size);
}

/* --- Copying ----------------------------------------------------------------------------- */

/* Returns the slice that contains this element: the last one that begins at or before it. Empty
 * slices may begin at the same offset, but precede it. */
static size_t slice_of(const struct flatten *flatten, size_t element)
{
    size_t low = 0;
    size_t high = flatten->slices_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (flatten->offsets[middle] <= element) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static int copy_piece(size_t first, size_t end, void *arg)
{
    const struct flatten *flatten = arg;
    size_t size = flatten->size;
    for (size_t slice = slice_of(flatten, first); first < end; slice++) {
        size_t slice_end = flatten->offsets[slice + 1];
        size_t next = slice_end < end ? slice_end : end;
        if (next > first) {
            const char *base = flatten->slices[slice].base;
            wf_pause_element(flatten->to + first * size,
                             base + (first - flatten->offsets[slice]) * size,
                             (next - first) * size);
        }
        first = next;
    }
    return 0;
}

static int flatten_with_offsets(struct flatten *flatten, const weft_par_options *options)
{
    weft_par_options inner = { .stop = wf_stop_of(options) };
    int err = find_offsets(flatten, inner.stop);
    if (err == 0) {
        err = weft_for(0, flatten->offsets[flatten->slices_count], copy_piece, flatten, &inner);
    }
    return err;
}

int weft_flatten(const weft_slice *slices, size_t slices_count, size_t size, void *to,
                 size_t *offsets, const weft_par_options *options)
{
    wf_pause_call();
    struct flatten flatten = { slices, slices_count, size, to, offsets };
    size_t offsets_count = add(slices_count, 1);
    int err = size == 0 ? -EINVAL : wf_array_check(offsets_count, sizeof(weft_slice));
    if (err != 0 || offsets != NULL) {
        return err != 0 ? err : flatten_with_offsets(&flatten, options);
    }
    err = wf_array_check_scratch(offsets_count, sizeof(size_t), options);
    if (err != 0) {
        return err;
    }
    if (offsets_count <= OFFSETS_HERE) {
        size_t here[OFFSETS_HERE];
        flatten.offsets = here;
        return flatten_with_offsets(&flatten, options);
    }
    struct wf_scratch scratch;
    err = wf_scratch_init(&scratch, wf_scratch_add(0, offsets_count, sizeof(size_t)), options);
    if (err == 0) {
        flatten.offsets = wf_scratch_take(&scratch, offsets_count, sizeof(size_t));
        err = flatten_with_offsets(&flatten, options);
        wf_scratch_fini(&scratch);
    }
    return err;
}
