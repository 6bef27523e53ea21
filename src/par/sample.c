/* SPDX-License-Identifier: MIT */
/*
 * sample.c - parallel sample sort by comparison, with a merge sort per bucket.
 *
 * A merge sort of a large array reads and writes the whole array some twenty times, mostly from
 * memory. So a large array is first divided into buckets that fit into a cache:
 *
 *   1  Sort a sample of the array. Evenly spaced elements of it become the splitters.
 *   2  Chunks of the array, in parallel: find and record each element's bucket, and count.
 *   3  Turn the counts of all chunks into the positions where their elements go.
 *   4  Chunks, in parallel: move each element to its bucket, in the other array.
 *   5  Buckets, in parallel: sort back into the array.
 *
 * This takes as many comparisons as merging would, and reads and writes memory twice. The sort
 * is stable: equal elements are in the same bucket, chunks and buckets follow the order of the
 * array, and the merge sort is stable.
 *
 * If two splitters are equal, a large part of all elements equals them. Then each splitter gets
 * a second bucket, for elements that equal it, which needs no sorting. Without it, one bucket
 * could contain nearly all elements.
 *
 * A bucket is recorded before it is counted. So an inconsistent comparison leads to other
 * buckets, but never to one with more elements than were counted. If it makes a bucket large,
 * that is only slow: the merge sort takes n log n comparisons for any input.
 */
#include "par/sample.h"

#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "par/blocks.h"
#include "par/deep.h"
#include "par/pause.h"
#include "par/range.h"
#include "par/scratch.h"
#include "par/stop.h"

enum {
    BUCKETS = 1024,
    COUNT_MIN = 16 * 1024,      /* smaller arrays are one merge sort */
    BUCKET_COUNT_MIN = 1024,    /* elements, on average */
    CHUNK_COUNT_MIN = 4 * 1024, /* elements */
    CHUNKS_MAX = 64,
    OVERSAMPLING = 16,
};

struct sort {
    const weft_sort_ops *ops;
    const void *order;
    const weft_stop *stop;
    char *base;
    size_t count;
    char *other;               /* as large as base */
    uint16_t *buckets;         /* of each element */
    size_t (*places)[BUCKETS]; /* per chunk: counts, later the next positions */
    char *sorted;              /* the splitters, in order and as a heap */
    char *tree;
    size_t chunks; /* 0: a small array, which is one merge sort */
    struct weft_splitters splitters;
};

static size_t chunks_of(size_t count)
{
    size_t chunks = count / CHUNK_COUNT_MIN;
    return chunks < CHUNKS_MAX ? chunks : CHUNKS_MAX;
}

size_t wf_sample_scratch(size_t sum, size_t count, size_t size)
{
    sum = wf_scratch_add(sum, count, size);
    if (count >= COUNT_MIN) {
        sum = wf_scratch_add(sum, count, sizeof(uint16_t));
        sum = wf_scratch_add(sum, chunks_of(count), sizeof(size_t[BUCKETS]));
        sum = wf_scratch_add(sum, BUCKETS, size);
        sum = wf_scratch_add(sum, BUCKETS, size);
    }
    return sum;
}

static void *element(const struct sort *sort, void *array, size_t index)
{
    return (char *)array + index * sort->ops->size;
}

/* Sorts a sample in the other array, which is not used yet. */
static void take_sample(struct sort *sort, size_t count)
{
    WF_ASSERT(2 * count <= sort->count);
    struct wf_rng rng;
    wf_rng_seed(&rng, sort->count, 0);
    size_t stride = sort->count / count;
    for (size_t i = 0; i < count; i++) {
        size_t at = i * stride + wf_rng_below(&rng, (uint32_t)stride);
        memcpy(element(sort, sort->other, i), element(sort, sort->base, at), sort->ops->size);
        wf_pause_copied(1, sort->ops->size);
    }
    sort->ops->sort(sort->other, element(sort, sort->other, count), count, false, sort->order);
}

static bool has_equal_neighbours(const struct sort *sort, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        void *at = element(sort, sort->sorted, i);
        if (!sort->ops->less((char *)at - sort->ops->size, at, sort->order)) {
            return true;
        }
        wf_pause(1);
    }
    return false;
}

/* Builds the heap of the splitters. Each level has the medians of what is left. */
static void plant_tree(const struct sort *sort, unsigned levels)
{
    for (unsigned level = 0; level < levels; level++) {
        size_t step = (size_t)1 << (levels - level);
        for (size_t i = 0; i < (size_t)1 << level; i++) {
            memcpy(element(sort, sort->tree, ((size_t)1 << level) + i),
                   element(sort, sort->sorted, i * step + step / 2 - 1), sort->ops->size);
            wf_pause_copied(1, sort->ops->size);
        }
    }
}

static void choose_splitters(struct sort *sort)
{
    unsigned levels = 2;
    while ((2 << levels) <= BUCKETS && sort->count >> (levels + 1) >= BUCKET_COUNT_MIN) {
        levels++;
    }
    size_t count = (size_t)1 << levels;
    take_sample(sort, count * OVERSAMPLING);
    for (size_t i = 0; i + 1 < count; i++) {
        memcpy(element(sort, sort->sorted, i), element(sort, sort->other, (i + 1) * OVERSAMPLING),
               sort->ops->size);
        wf_pause_copied(1, sort->ops->size);
    }
    bool with_equal = has_equal_neighbours(sort, count - 1);
    if (with_equal) {
        /* Keeps every second splitter, so that the number of buckets stays the same. */
        count /= 2;
        levels--;
        for (size_t i = 0; i + 1 < count; i++) {
            memcpy(element(sort, sort->sorted, i), element(sort, sort->sorted, 2 * i + 1),
                   sort->ops->size);
            wf_pause_copied(1, sort->ops->size);
        }
    }
    plant_tree(sort, levels);
    sort->splitters = (struct weft_splitters){ levels, with_equal, sort->sorted, sort->tree };
}

static void classify_chunks(size_t begin, size_t end, void *arg)
{
    struct sort *sort = arg;
    for (size_t chunk = begin; chunk < end; chunk++) {
        size_t first = wf_share_begin(sort->count, sort->chunks, chunk);
        size_t last = wf_share_begin(sort->count, sort->chunks, chunk + 1);
        size_t *counts = sort->places[chunk];
        memset(counts, 0, sizeof(size_t[BUCKETS]));
        while (first < last && !wf_stop_is_set(sort->stop)) {
            size_t next = wf_pause_next(first, last, WF_PAUSE_CALLS);
            sort->ops->classify(element(sort, sort->base, first), next - first, &sort->splitters,
                                sort->buckets + first, sort->order);
            wf_pause((next - first) * sort->splitters.levels);
            for (; first < next; first++) {
                counts[sort->buckets[first]]++;
            }
        }
    }
}

/* Turns counts into positions: bucket by bucket, and within a bucket chunk by chunk. */
static void place_chunks(struct sort *sort)
{
    size_t place = 0;
    for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
        for (size_t chunk = 0; chunk < sort->chunks; chunk++) {
            size_t count = sort->places[chunk][bucket];
            sort->places[chunk][bucket] = place;
            place += count;
        }
        wf_pause(sort->chunks);
    }
}

/* Inlined for constant sizes, where a copy is a few instructions. */
static inline __attribute__((always_inline)) void move_elements(const char *from, char *to,
                                                                const uint16_t *buckets,
                                                                size_t count, size_t *places,
                                                                size_t size)
{
    for (size_t i = 0; i < count; i++) {
        wf_pause_element(to + places[buckets[i]]++ * size, from + i * size, size);
    }
}

static void move_piece(struct sort *sort, size_t first, size_t count, size_t *places)
{
    size_t size = sort->ops->size;
    const char *from = sort->base + first * size;
    const uint16_t *buckets = sort->buckets + first;
    if (size == 8) {
        move_elements(from, sort->other, buckets, count, places, 8);
    } else if (size == 16) {
        move_elements(from, sort->other, buckets, count, places, 16);
    } else {
        move_elements(from, sort->other, buckets, count, places, size);
    }
}

static void move_chunks(size_t begin, size_t end, void *arg)
{
    struct sort *sort = arg;
    size_t most = wf_pause_most(WF_PAUSE_ELEMENTS, sort->ops->size);
    for (size_t chunk = begin; chunk < end; chunk++) {
        size_t last = wf_share_begin(sort->count, sort->chunks, chunk + 1);
        size_t i = wf_share_begin(sort->count, sort->chunks, chunk);
        while (i < last) {
            size_t next = wf_pause_next(i, last, most);
            move_piece(sort, i, next - i, sort->places[chunk]);
            wf_pause_copied(next - i, sort->ops->size);
            i = next;
        }
    }
}

static void sort_buckets(size_t begin, size_t end, void *arg)
{
    struct sort *sort = arg;
    const size_t *ends = sort->places[sort->chunks - 1];
    for (size_t bucket = begin; bucket < end; bucket++) {
        size_t first = bucket > 0 ? ends[bucket - 1] : 0;
        size_t count = ends[bucket] - first;
        void *from = element(sort, sort->other, first);
        void *to = element(sort, sort->base, first);
        bool is_equal = sort->splitters.with_equal && bucket % 2 != 0;
        if (is_equal || wf_stop_is_set(sort->stop)) {
            wf_pause_copy(to, from, count * sort->ops->size);
        } else {
            sort->ops->sort(from, to, count, true, sort->order);
        }
    }
}

static void sort_in_buckets(struct sort *sort)
{
    if (sort->ops->settle(sort->base, sort->count, sort->order)) {
        return;
    }
    choose_splitters(sort);
    wf_range_each(sort->chunks, 1, classify_chunks, sort);
    if (wf_stop_is_set(sort->stop)) {
        return;
    }
    place_chunks(sort);
    wf_scratch_touch(sort->other, sort->count * sort->ops->size);
    wf_range_each(sort->chunks, 1, move_chunks, sort);
    wf_range_each(BUCKETS, 1, sort_buckets, sort);
}

static void run(void *arg)
{
    struct sort *sort = arg;
    if (sort->chunks == 0) {
        wf_pause_copied(sort->count, sort->ops->size);
        sort->ops->sort(sort->base, sort->other, sort->count, false, sort->order);
    } else {
        sort_in_buckets(sort);
    }
}

void wf_sample_sort(const weft_sort_ops *ops, const void *order, void *base, size_t count,
                    struct wf_scratch *scratch, const weft_stop *stop)
{
    struct sort sort = { .ops = ops, .order = order, .stop = stop, .base = base, .count = count };
    sort.other = wf_scratch_take(scratch, count, ops->size);
    if (count >= COUNT_MIN) {
        sort.chunks = chunks_of(count);
        sort.buckets = wf_scratch_take(scratch, count, sizeof(uint16_t));
        sort.places = wf_scratch_take(scratch, sort.chunks, sizeof(size_t[BUCKETS]));
        sort.sorted = wf_scratch_take(scratch, BUCKETS, ops->size);
        sort.tree = wf_scratch_take(scratch, BUCKETS, ops->size);
    }
    wf_deep_run(run, &sort);
}

int weft_sort_run(const weft_sort_ops *ops, const void *order, void *base, size_t count,
                  const weft_par_options *options)
{
    if (count < 2) {
        wf_pause_call();
        return 0;
    }
    struct wf_scratch scratch;
    int error = wf_scratch_init(&scratch, wf_sample_scratch(0, count, ops->size), options);
    if (error != 0) {
        return error;
    }
    const weft_stop *stop = wf_stop_of(options);
    wf_sample_sort(ops, order, base, count, &scratch, stop);
    wf_scratch_fini(&scratch);
    return wf_stop_is_set(stop) ? WEFT_ECANCELED : 0;
}
