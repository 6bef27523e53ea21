/* SPDX-License-Identifier: MIT */
/*
 * shuffle.c - parallel random shuffle.
 *
 * A small array is shuffled by the Fisher-Yates algorithm: each element gets a random position
 * among those placed so far. That is serial, and accesses the whole array at random. So in a
 * large array each element first draws a random bucket. When all elements have been moved to
 * their buckets, the buckets, which fit into a cache, are shuffled separately. All permutations
 * are equally likely: this holds within each bucket, and the buckets are drawn independently.
 *
 * Chunks of the array are moved in parallel, as in sample.c. The bucket of an element depends
 * on its index and the seed. It is computed twice rather than stored.
 *
 * The buckets are filled in another array, and shuffled on the way back. Until then the array
 * is unchanged.
 */
#include <string.h>

#include "base/rng.h"
#include "par/array.h"
#include "par/blocks.h"
#include "par/pause.h"
#include "par/scratch.h"
#include "par/stop.h"
#include "par/swap.h"

enum {
    BUCKETS = 256,
    COUNT_MIN = 16 * 1024,      /* smaller arrays are one bucket */
    CHUNK_COUNT_MIN = 4 * 1024, /* elements */
    CHUNKS_MAX = 128,
    PIECE = 256, /* elements between two pauses */
};

#define STEP UINT64_C(0x9E3779B97F4A7C15)

struct shuffle {
    char *base;
    size_t size;
    char *other; /* as large as base */
    uint64_t seed;
    struct wf_blocks chunks;
    size_t (*places)[BUCKETS]; /* per chunk: counts, later the next positions */
};

/* --- Random numbers ---------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 product;

/* Returns the next number of a sequence. */
static inline uint64_t draw(uint64_t *state)
{
    *state += STEP;
    return wf_rng_mix(*state);
}

/* Returns a number below n > 0, uniformly distributed (Lemire 2019). */
static inline size_t draw_below(uint64_t *state, size_t n)
{
    product drawn = (product)draw(state) * n;
    if ((uint64_t)drawn < n) {
        uint64_t unfair = -(uint64_t)n % n;
        while ((uint64_t)drawn < unfair) {
            drawn = (product)draw(state) * n;
        }
    }
    return (size_t)(drawn >> 64);
}

/* Returns the start of one of several independent sequences of a seed. */
static uint64_t sequence(uint64_t seed, uint64_t number)
{
    return wf_rng_mix(wf_rng_mix(seed + STEP) + (number + 1) * STEP);
}

/* --- Buckets ----------------------------------------------------------------------------- */

/* Elements from first to before end. */
struct range {
    size_t first;
    size_t end;
};

/* Inside-out Fisher-Yates: each element goes to a random position among those before it, and
 * the element there moves to the end. Inlined for constant sizes, where a copy is a few
 * instructions. */
static inline __attribute__((always_inline)) void
copy_shuffled(const char *from, char *to, struct range range, size_t size, uint64_t *state)
{
    for (size_t i = range.first; i < range.end; i++) {
        char *place = to + draw_below(state, i + 1) * size;
        char *end = to + i * size;
        if (place != end) {
            wf_pause_element(end, place, size);
        }
        wf_pause_element(place, from + i * size, size);
    }
}

/* Shuffles in place. */
static void shuffle_here(char *base, size_t count, size_t size, uint64_t state)
{
    size_t most = wf_pause_most(PIECE, size);
    for (size_t first = 1; first < count;) {
        size_t end = wf_pause_next(first, count, most);
        for (size_t i = first; i < end; i++) {
            wf_swap(base + i * size, base + draw_below(&state, i + 1) * size, size);
        }
        wf_pause_copied(end - first, size);
        first = end;
    }
}

static void shuffle_bucket(const struct shuffle *shuffle, size_t bucket, size_t first, size_t count)
{
    size_t size = shuffle->size;
    const char *from = shuffle->other + first * size;
    char *to = shuffle->base + first * size;
    uint64_t state = sequence(shuffle->seed, 1 + bucket);
    size_t most = wf_pause_most(PIECE, size);
    for (struct range range = { 0, 0 }; range.first < count; range.first = range.end) {
        range.end = wf_pause_next(range.first, count, most);
        switch (size) {
        case 4:
            copy_shuffled(from, to, range, 4, &state);
            break;
        case 8:
            copy_shuffled(from, to, range, 8, &state);
            break;
        default:
            copy_shuffled(from, to, range, size, &state);
        }
        wf_pause_copied(range.end - range.first, size);
    }
}

/* --- Large arrays ------------------------------------------------------------------------ */

static inline size_t bucket_of(uint64_t start, size_t index)
{
    return wf_rng_mix(start + index * STEP) >> 56;
}

_Static_assert(BUCKETS == 1 << 8, "the highest bits are the bucket");

static void count_some(struct range range, uint64_t start, size_t *counts)
{
    for (size_t i = range.first; i < range.end; i++) {
        counts[bucket_of(start, i)]++;
    }
}

/* Returns the batch of a chunk that follows before, or an empty one at the end. */
static struct range next_piece(const struct shuffle *shuffle, size_t chunk, struct range before)
{
    size_t end = wf_blocks_end(&shuffle->chunks, chunk);
    size_t most = wf_pause_most(PIECE, shuffle->size);
    return (struct range){ before.end, wf_pause_next(before.end, end, most) };
}

static struct range first_piece(const struct shuffle *shuffle, size_t chunk)
{
    size_t first = wf_blocks_first(&shuffle->chunks, chunk);
    return next_piece(shuffle, chunk, (struct range){ first, first });
}

static int count_chunks(size_t first, size_t end, void *arg)
{
    struct shuffle *shuffle = arg;
    uint64_t start = sequence(shuffle->seed, 0);
    for (size_t chunk = first; chunk < end; chunk++) {
        size_t *counts = shuffle->places[chunk];
        memset(counts, 0, sizeof(size_t[BUCKETS]));
        struct range piece = first_piece(shuffle, chunk);
        for (; piece.first < piece.end; piece = next_piece(shuffle, chunk, piece)) {
            count_some(piece, start, counts);
            wf_pause(piece.end - piece.first);
        }
    }
    return 0;
}

/* Turns counts into positions: bucket by bucket, and within a bucket chunk by chunk. */
static void place_chunks(struct shuffle *shuffle)
{
    size_t place = 0;
    for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
        for (size_t chunk = 0; chunk < shuffle->chunks.count; chunk++) {
            size_t count = shuffle->places[chunk][bucket];
            shuffle->places[chunk][bucket] = place;
            place += count;
        }
    }
}

static inline __attribute__((always_inline)) void
move_of_size(const struct shuffle *shuffle, struct range range, size_t *places, size_t size)
{
    uint64_t start = sequence(shuffle->seed, 0);
    for (size_t i = range.first; i < range.end; i++) {
        size_t place = places[bucket_of(start, i)]++;
        wf_pause_element(shuffle->other + place * size, shuffle->base + i * size, size);
    }
}

static void move_some(const struct shuffle *shuffle, struct range range, size_t *places)
{
    switch (shuffle->size) {
    case 4:
        move_of_size(shuffle, range, places, 4);
        break;
    case 8:
        move_of_size(shuffle, range, places, 8);
        break;
    default:
        move_of_size(shuffle, range, places, shuffle->size);
    }
    wf_pause_copied(range.end - range.first, shuffle->size);
}

static int move_chunks(size_t first, size_t end, void *arg)
{
    const struct shuffle *shuffle = arg;
    for (size_t chunk = first; chunk < end; chunk++) {
        struct range piece = first_piece(shuffle, chunk);
        for (; piece.first < piece.end; piece = next_piece(shuffle, chunk, piece)) {
            move_some(shuffle, piece, shuffle->places[chunk]);
        }
    }
    return 0;
}

static int shuffle_buckets(size_t first, size_t end, void *arg)
{
    const struct shuffle *shuffle = arg;
    const size_t *ends = shuffle->places[shuffle->chunks.count - 1];
    for (size_t bucket = first; bucket < end; bucket++) {
        size_t begin = bucket > 0 ? ends[bucket - 1] : 0;
        shuffle_bucket(shuffle, bucket, begin, ends[bucket] - begin);
    }
    return 0;
}

static int shuffle_many(struct shuffle *shuffle, const weft_stop *stop)
{
    weft_par_options options = { .stop = stop };
    int err = weft_for(0, shuffle->chunks.count, count_chunks, shuffle, &options);
    if (err == 0) {
        place_chunks(shuffle);
        wf_scratch_touch(shuffle->other, shuffle->chunks.end * shuffle->size);
        err = weft_for(0, shuffle->chunks.count, move_chunks, shuffle, &options);
    }
    return err != 0 ? err : weft_for(0, BUCKETS, shuffle_buckets, shuffle, NULL);
}

/* --- Public function --------------------------------------------------------------------- */

static struct wf_blocks chunks_of(size_t count)
{
    size_t length = count / CHUNKS_MAX + 1;
    length = length > CHUNK_COUNT_MIN ? length : CHUNK_COUNT_MIN;
    return wf_blocks_of(0, count, &(weft_par_options){ .piece = length });
}

size_t wf_shuffle_scratch(size_t count, size_t size)
{
    if (count < COUNT_MIN) {
        return 0;
    }
    size_t sum = wf_scratch_add(0, count, size);
    return wf_scratch_add(sum, chunks_of(count).count, sizeof(size_t[BUCKETS]));
}

static int shuffle_large(struct shuffle *shuffle, size_t count, const weft_par_options *options)
{
    struct wf_scratch scratch;
    int err = wf_scratch_init(&scratch, wf_shuffle_scratch(count, shuffle->size), options);
    if (err == 0) {
        shuffle->chunks = chunks_of(count);
        shuffle->other = wf_scratch_take(&scratch, count, shuffle->size);
        shuffle->places = wf_scratch_take(&scratch, shuffle->chunks.count, sizeof(size_t[BUCKETS]));
        err = shuffle_many(shuffle, wf_stop_of(options));
        wf_scratch_fini(&scratch);
    }
    return err;
}

int weft_shuffle(void *base, size_t count, size_t size, uint64_t seed,
                 const weft_par_options *options)
{
    wf_pause_call();
    struct shuffle shuffle = { .base = base, .size = size, .seed = seed };
    int err = wf_array_check_scratch(count, size, options);
    if (err == 0 && wf_stop_is_set(wf_stop_of(options))) {
        err = WEFT_ECANCELED;
    }
    if (err != 0) {
        return err;
    }
    if (count >= COUNT_MIN) {
        return shuffle_large(&shuffle, count, options);
    }
    shuffle_here(base, count, size, sequence(seed, 1));
    return 0;
}
