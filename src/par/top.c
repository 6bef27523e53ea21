/* SPDX-License-Identifier: MIT */
/*
 * top.c - parallel top k: the k smallest elements, sorted.
 *
 * Small k: each block of the array has a keeper, a buffer with space for some more than k
 * elements. An element is added if it is less than the k-th element at the time when the keeper
 * was last sorted. When the keeper is full, it is sorted, and only k elements stay. So most
 * elements take a single comparison. In the end one keeper takes the elements of the blocks'
 * keepers, block by block.
 *
 * Large k: the k-th element is selected in a copy of the array (nth.c), and the elements before
 * it are sorted.
 *
 * Equal elements keep their order in both cases: the sorts are stable, a later equal element is
 * rejected, and among equal elements wf_nth() puts the earlier ones first.
 */
#include <stdalign.h>

#include <weft/order.h>
#include <weft/sort.h>

#include "par/deep.h"
#include "par/nth.h"
#include "par/options.h"
#include "par/pause.h"
#include "par/range.h"
#include "par/top.h"

enum {
    KEEP_MAX = 1024,            /* a larger k is selected by wf_nth() */
    SPARE_MIN = 64,             /* minimum space of a keeper beyond k */
    BLOCK_COUNT_MIN = 4 * 1024, /* minimum elements of a block, */
    BLOCK_KEPT_MIN = 256,       /* and minimum elements per kept element */
    BLOCKS_MAX = 128,
    STRIDE = 4 * 1024, /* elements between checks of the cancel flag */
    COPY_BYTES = 256 * 1024,
};

struct keeper {
    char *kept;
    void *memory; /* for sorting */
    size_t count;
    bool is_full; /* starts with k sorted elements */
};

struct top {
    const struct wf_nth_order *order;
    const weft_stop *stop;
    const char *base;
    size_t count;
    size_t k;
    size_t room; /* of a keeper */
    size_t blocks;
    struct keeper *keepers;
};

/* --- Small k --------------------------------------------------------------------------- */

static size_t room_of(size_t count, size_t k)
{
    size_t room = k + (k > SPARE_MIN ? k : SPARE_MIN);
    return room < count ? room : count;
}

static size_t blocks_of(size_t count, size_t k)
{
    size_t length = k * BLOCK_KEPT_MIN > BLOCK_COUNT_MIN ? k * BLOCK_KEPT_MIN : BLOCK_COUNT_MIN;
    size_t blocks = count / length;
    return blocks < 1 ? 1 : blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX;
}

/* Returns one per block, and one more to combine several. */
static size_t keepers_of(size_t blocks)
{
    return blocks + (blocks > 1);
}

static size_t few_scratch(size_t count, size_t size, size_t k)
{
    size_t keepers = keepers_of(blocks_of(count, k));
    size_t room = room_of(count, k);
    size_t each = wf_scratch_add(wf_scratch_add(0, room, size), weft_sort_scratch(room, size), 1);
    return wf_scratch_add(wf_scratch_add(0, keepers, sizeof(struct keeper)), keepers, each);
}

/* Sorts the elements of a keeper, and drops all but k. */
static int put_in_order(const struct top *top, struct keeper *keeper)
{
    const struct wf_nth_order *order = top->order;
    weft_par_options options = { .scratch = keeper->memory,
                                 .scratch_size = weft_sort_scratch(top->room, order->size) };
    int err = weft_sort_stable(keeper->kept, keeper->count, order->size, order->compare, order->arg,
                               &options);
    keeper->is_full = keeper->count >= top->k;
    keeper->count = keeper->is_full ? top->k : keeper->count;
    return err;
}

static int offer(const struct top *top, struct keeper *keeper, const char *from, size_t count)
{
    const struct wf_nth_order *order = top->order;
    size_t size = order->size;
    const char *last = keeper->kept + (top->k - 1) * size;
    size_t most = wf_pause_most(WF_PAUSE_CALLS, size);
    size_t steps = 0;
    for (size_t i = 0; i < count; i++) {
        const char *element = from + i * size;
        if (++steps == most) {
            wf_pause_copied(steps, size);
            steps = 0;
        }
        if (keeper->is_full && order->compare(element, last, order->arg) >= 0) {
            continue;
        }
        wf_pause_element(keeper->kept + keeper->count * size, element, size);
        keeper->count++;
        int err = keeper->count == top->room ? put_in_order(top, keeper) : 0;
        if (err != 0) {
            return err;
        }
    }
    wf_pause_copied(steps, size);
    return 0;
}

static int keep_block(const struct top *top, size_t block)
{
    struct keeper *keeper = &top->keepers[block];
    size_t first = wf_share_begin(top->count, top->blocks, block);
    size_t end = wf_share_begin(top->count, top->blocks, block + 1);
    int err = 0;
    while (err == 0 && first < end) {
        if (wf_stop_is_set(top->stop)) {
            return WEFT_ECANCELED;
        }
        size_t some = end - first < STRIDE ? end - first : STRIDE;
        err = offer(top, keeper, top->base + first * top->order->size, some);
        first += some;
    }
    return err == 0 ? put_in_order(top, keeper) : err;
}

static int keep_blocks(size_t first, size_t end, void *arg)
{
    int err = 0;
    for (size_t block = first; err == 0 && block < end; block++) {
        err = keep_block(arg, block);
    }
    return err;
}

/* Offers the elements of all other keepers to the last one. */
static int keep_kept(const struct top *top)
{
    struct keeper *last = &top->keepers[top->blocks];
    int err = 0;
    for (size_t block = 0; err == 0 && block < top->blocks; block++) {
        const struct keeper *keeper = &top->keepers[block];
        err = offer(top, last, keeper->kept, keeper->count);
    }
    return err == 0 ? put_in_order(top, last) : err;
}

static void take_keepers(struct top *top, struct wf_scratch *scratch)
{
    size_t size = top->order->size;
    size_t count = keepers_of(top->blocks);
    top->keepers = wf_scratch_take(scratch, count, sizeof(struct keeper));
    for (size_t i = 0; i < count; i++) {
        top->keepers[i] = (struct keeper){ .count = 0 };
        top->keepers[i].kept = wf_scratch_take(scratch, top->room, size);
        top->keepers[i].memory = wf_scratch_take(scratch, weft_sort_scratch(top->room, size), 1);
    }
}

static int find_few(struct top *top, struct wf_scratch *scratch, void *to)
{
    top->room = room_of(top->count, top->k);
    top->blocks = blocks_of(top->count, top->k);
    take_keepers(top, scratch);
    weft_par_options each = { .piece = 1, .stop = top->stop };
    int err = weft_for(0, top->blocks, keep_blocks, top, &each);
    const struct keeper *last = &top->keepers[keepers_of(top->blocks) - 1];
    if (err == 0 && top->blocks > 1) {
        err = keep_kept(top);
    }
    if (err == 0) {
        wf_pause_copy(to, last->kept, last->count * top->order->size);
    }
    return err;
}

/* --- Large k --------------------------------------------------------------------------- */

struct copying {
    char *to;
    const char *from;
    size_t size;
};

static void copy_part(size_t begin, size_t end, void *arg)
{
    const struct copying *copying = arg;
    size_t size = copying->size;
    wf_pause_copy(copying->to + begin * size, copying->from + begin * size, (end - begin) * size);
}

static void copy(void *to, const void *from, size_t count, size_t size)
{
    struct copying copying = { to, from, size };
    wf_range_each(count, COPY_BYTES / size + 1, copy_part, &copying);
}

size_t wf_top_scratch(size_t count, size_t size)
{
    /* Includes one keeper, in case all elements are few. */
    size_t sum = wf_scratch_add(0, 1, sizeof(struct keeper));
    return wf_nth_scratch(wf_scratch_add(sum, count, size), count, size);
}

static int find_many(const struct top *top, struct wf_scratch *scratch, void *to)
{
    const struct wf_nth_order *order = top->order;
    char *copied = wf_scratch_take(scratch, top->count, order->size);
    copy(copied, top->base, top->count, order->size);
    if (top->k < top->count) {
        int err = wf_nth(order, copied, top->count, top->k - 1, scratch->next, top->stop);
        if (err != 0) {
            return err;
        }
    }
    copy(to, copied, top->k, order->size);
    weft_par_options options = { .stop = top->stop,
                                 .scratch = scratch->next,
                                 .scratch_size = weft_sort_scratch(top->k, order->size) };
    return weft_sort_stable(to, top->k, order->size, order->compare, order->arg, &options);
}

struct finding {
    struct top *top;
    struct wf_scratch *scratch;
    void *to;
};

static int find(void *arg)
{
    const struct finding *finding = arg;
    return finding->top->k <= KEEP_MAX ? find_few(finding->top, finding->scratch, finding->to)
                                       : find_many(finding->top, finding->scratch, finding->to);
}

/* --- Public function ------------------------------------------------------------------- */

int weft_top_k(const void *base, size_t count, size_t size, size_t k, weft_compare_fn compare,
               void *arg, void *to, size_t *found, const weft_par_options *options)
{
    wf_pause_call();
    *found = 0;
    if (!wf_options_fit(count, size)) {
        return -EINVAL;
    }
    k = k < count ? k : count;
    if (k == 0) {
        return 0;
    }
    size_t sum = k <= KEEP_MAX ? few_scratch(count, size, k) : wf_top_scratch(count, size);
    alignas(WF_SCRATCH_ALIGN) char here[WF_OPTIONS_HERE];
    weft_par_options with = wf_options_with_scratch(sum, here, options);
    struct wf_scratch scratch;
    int err = wf_scratch_init(&scratch, sum, &with);
    if (err != 0) {
        return err;
    }
    struct wf_nth_order order = { size, compare, arg };
    struct top top = {
        .order = &order, .stop = wf_stop_of(options), .base = base, .count = count, .k = k
    };
    struct finding finding = { &top, &scratch, to };
    err = wf_deep_call(find, &finding);
    wf_scratch_fini(&scratch);
    *found = err == 0 ? k : 0;
    return err;
}
