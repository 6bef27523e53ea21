/* SPDX-License-Identifier: MIT */
/*
 * nth.c - parallel selection of the nth element.
 *
 *   1  Sort a sample. Two of its elements become the pivots: one slightly below the expected
 *      position of the wanted element, and one slightly above.
 *   2  Chunks of the array, in parallel: record the class of each element, and count:
 *
 *         below low | equals low | between | equals high | above high
 *
 *   3  Turn the counts of all chunks into the positions where their elements go.
 *   4  Chunks, in parallel: move each element to its class in the other array, then back.
 *   5  Repeat with the class that contains the index. Most often that is the one in between,
 *      with a few percent of all elements. If it is a class of equal elements, the search ends.
 *      A small rest is sorted.
 *
 * If a round leaves more than half of the elements, its sample was bad. After a few such rounds
 * the rest is sorted.
 *
 * As in sample.c, classes are recorded before they are counted, so an inconsistent comparison
 * does no harm. Equal elements keep their order, since they are in the same class.
 */
#include "par/nth.h"

#include <stdalign.h>
#include <string.h>

#include <weft/order.h>
#include <weft/sort.h>

#include "base/rng.h"
#include "par/deep.h"
#include "par/options.h"
#include "par/pause.h"
#include "par/range.h"

enum {
    BELOW,
    EQUALS_LOW,
    BETWEEN,
    EQUALS_HIGH,
    ABOVE,
    CLASSES,
};

enum {
    SORT_MAX = 1024,            /* elements; up to here they are sorted directly */
    SAMPLED = 16,               /* elements per sample element, */
    SAMPLE_MAX = 4 * 1024,      /* but at most this many samples */
    CHUNK_COUNT_MIN = 8 * 1024, /* elements */
    CHUNKS_MAX = 256,
    COPY_BYTES = 256 * 1024, /* bytes that are copied serially */
    BAD_ROUNDS_MAX = 3,
};

struct select {
    const struct wf_nth_order *order;
    const weft_stop *stop;
    char *base; /* of the remaining part */
    size_t count;
    size_t n;     /* the wanted index in it */
    void *memory; /* scratch */

    char *other;
    uint8_t *classes;
    size_t (*places)[CLASSES]; /* per chunk: counts, later the next positions */
    size_t chunks;
    size_t begins[CLASSES + 1];
    const char *low;
    const char *high;
    bool pivots_are_equal;
};

/* --- Memory ---------------------------------------------------------------------------- */

static size_t sample_of(size_t count)
{
    return count / SAMPLED < SAMPLE_MAX ? count / SAMPLED : SAMPLE_MAX;
}

static size_t chunks_of(size_t count)
{
    size_t chunks = count / CHUNK_COUNT_MIN;
    return chunks < 1 ? 1 : chunks < CHUNKS_MAX ? chunks : CHUNKS_MAX;
}

size_t wf_nth_scratch(size_t sum, size_t count, size_t size)
{
    size_t sort = wf_scratch_add(sum, weft_sort_scratch(count, size), 1);
    if (count <= SORT_MAX) {
        return sort;
    }
    sum = wf_scratch_add(sum, count, size);
    sum = wf_scratch_add(sum, count, 1);
    sum = wf_scratch_add(sum, chunks_of(count), sizeof(size_t[CLASSES]));
    sum = wf_scratch_add(sum, weft_sort_scratch(sample_of(count), size), 1);
    return sum > sort ? sum : sort;
}

/* --- Pivots ---------------------------------------------------------------------------- */

static int sort_in(const struct select *select, void *base, size_t count, void *memory)
{
    const struct wf_nth_order *order = select->order;
    weft_par_options options = { .stop = select->stop,
                                 .scratch = memory,
                                 .scratch_size = weft_sort_scratch(count, order->size) };
    return weft_sort_stable(base, count, order->size, order->compare, order->arg, &options);
}

/* Chooses the pivots. The sample is in the other array, which is not used yet. */
static int choose_pivots(struct select *select, void *memory)
{
    size_t size = select->order->size;
    size_t count = sample_of(select->count);
    size_t stride = select->count / count;
    size_t longer = select->count % count;
    struct wf_rng rng;
    wf_rng_seed(&rng, select->count, 0);
    for (size_t i = 0; i < count; i++) {
        size_t at = i * stride + i * longer / count + wf_rng_below(&rng, (uint32_t)stride);
        wf_pause_element(select->other + i * size, select->base + at * size, size);
        wf_pause_copied(1, size);
    }
    int err = sort_in(select, select->other, count, memory);
    /* In two of three cases the rank in a sample of size s is off by at most sqrt(s) / 2. */
    size_t gap = 1;
    while (gap * gap < count) {
        gap++;
    }
    size_t middle = (size_t)((double)select->n / (double)select->count * (double)count);
    select->low = select->other + (middle > gap ? middle - gap : 0) * size;
    select->high = select->other + (middle + gap < count ? middle + gap : count - 1) * size;
    const struct wf_nth_order *order = select->order;
    select->pivots_are_equal = order->compare(select->low, select->high, order->arg) == 0;
    return err;
}

/* --- Classes --------------------------------------------------------------------------- */

/*
 * Returns the class of an element. Always compares with both pivots. A branch that picks one of
 * them would be mispredicted half of the time, which takes longer than a comparison. Elements
 * that equal both pivots are in between.
 */
static inline uint8_t class_of(const struct select *select, const char *element)
{
    const struct wf_nth_order *order = select->order;
    int low = order->compare(element, select->low, order->arg);
    int high = order->compare(element, select->high, order->arg);
    return (uint8_t)((low >= 0) + (low > 0) + (high >= 0) + (high > 0));
}

static void classify_chunks(size_t begin, size_t end, void *arg)
{
    struct select *select = arg;
    size_t size = select->order->size;
    for (size_t chunk = begin; chunk < end && !wf_stop_is_set(select->stop); chunk++) {
        size_t counts[CLASSES] = { 0 };
        size_t last = wf_share_begin(select->count, select->chunks, chunk + 1);
        size_t i = wf_share_begin(select->count, select->chunks, chunk);
        while (i < last) {
            size_t next = wf_pause_next(i, last, WF_PAUSE_CALLS);
            for (; i < next; i++) {
                uint8_t class = class_of(select, select->base + i * size);
                select->classes[i] = class;
                counts[class]++;
            }
            wf_pause(2 * WF_PAUSE_CALLS);
        }
        memcpy(select->places[chunk], counts, sizeof counts);
    }
}

/* Turns counts into positions: class by class, and within a class chunk by chunk. */
static void place_chunks(struct select *select)
{
    size_t place = 0;
    for (size_t class = 0; class < CLASSES; class ++) {
        select->begins[class] = place;
        for (size_t chunk = 0; chunk < select->chunks; chunk++) {
            size_t count = select->places[chunk][class];
            select->places[chunk][class] = place;
            place += count;
        }
    }
    select->begins[CLASSES] = place;
}

/* Inlined for constant sizes, where a copy is a few instructions. */
static inline __attribute__((always_inline)) void
move_elements(const struct select *select, size_t first, size_t end, size_t *places, size_t size)
{
    for (size_t i = first; i < end; i++) {
        size_t place = places[select->classes[i]]++;
        wf_pause_element(select->other + place * size, select->base + i * size, size);
    }
}

static void move_some(const struct select *select, size_t first, size_t end, size_t *places)
{
    size_t size = select->order->size;
    if (size == 4) {
        move_elements(select, first, end, places, 4);
    } else if (size == 8) {
        move_elements(select, first, end, places, 8);
    } else {
        move_elements(select, first, end, places, size);
    }
}

static void move_chunks(size_t begin, size_t end, void *arg)
{
    struct select *select = arg;
    size_t most = wf_pause_most(WF_PAUSE_ELEMENTS, select->order->size);
    for (size_t chunk = begin; chunk < end; chunk++) {
        size_t first = wf_share_begin(select->count, select->chunks, chunk);
        size_t last = wf_share_begin(select->count, select->chunks, chunk + 1);
        while (first < last) {
            size_t next = wf_pause_next(first, last, most);
            move_some(select, first, next, select->places[chunk]);
            wf_pause_copied(next - first, select->order->size);
            first = next;
        }
    }
}

static void put_back(size_t begin, size_t end, void *arg)
{
    const struct select *select = arg;
    size_t size = select->order->size;
    wf_pause_copy(select->base + begin * size, select->other + begin * size, (end - begin) * size);
}

/* --- Rounds ---------------------------------------------------------------------------- */

/* Continues with the class that contains the index. Returns whether all elements of that class
 * are equal. */
static bool narrow(struct select *select)
{
    unsigned class = BELOW;
    while (select->begins[class + 1] <= select->n) {
        class ++;
    }
    select->base += select->begins[class] * select->order->size;
    select->n -= select->begins[class];
    select->count = select->begins[class + 1] - select->begins[class];
    return class == EQUALS_LOW || class == EQUALS_HIGH ||
           (class == BETWEEN && select->pivots_are_equal);
}

/* Moves each element to its class. Returns 0 or WEFT_ECANCELED. */
static int divide(struct select *select, void *memory)
{
    struct wf_scratch scratch = { .next = memory };
    select->chunks = chunks_of(select->count);
    select->other = wf_scratch_take(&scratch, select->count, select->order->size);
    select->classes = wf_scratch_take(&scratch, select->count, 1);
    select->places = wf_scratch_take(&scratch, select->chunks, sizeof(size_t[CLASSES]));
    int err = choose_pivots(select, scratch.next);
    if (err != 0) {
        return err;
    }
    wf_range_each(select->chunks, 1, classify_chunks, select);
    if (wf_stop_is_set(select->stop)) {
        return WEFT_ECANCELED;
    }
    place_chunks(select);
    /* The sample was there, and is not needed any more. */
    wf_scratch_touch(select->other, select->count * select->order->size);
    wf_range_each(select->chunks, 1, move_chunks, select);
    wf_range_each(select->count, COPY_BYTES / select->order->size + 1, put_back, select);
    return 0;
}

static int run(void *arg)
{
    struct select *select = arg;
    unsigned bad_rounds = 0;
    while (select->count > SORT_MAX && bad_rounds < BAD_ROUNDS_MAX) {
        size_t before = select->count;
        int err = divide(select, select->memory);
        if (err != 0 || narrow(select)) {
            return err;
        }
        bad_rounds += select->count > before / 2;
    }
    return sort_in(select, select->base, select->count, select->memory);
}

int wf_nth(const struct wf_nth_order *order, void *base, size_t count, size_t n, void *memory,
           const weft_stop *stop)
{
    struct select select = {
        .order = order, .stop = stop, .base = base, .count = count, .n = n, .memory = memory
    };
    return wf_deep_call(run, &select);
}

int weft_nth(void *base, size_t count, size_t size, size_t n, weft_compare_fn compare, void *arg,
             const weft_par_options *options)
{
    wf_pause_call();
    if (size == 0 || n >= count) {
        return -EINVAL;
    }
    size_t sum = wf_nth_scratch(0, count, size);
    alignas(WF_SCRATCH_ALIGN) char here[WF_OPTIONS_HERE];
    weft_par_options with = wf_options_with_scratch(sum, here, options);
    struct wf_scratch scratch;
    int err = wf_scratch_init(&scratch, sum, &with);
    if (err != 0) {
        return err;
    }
    struct wf_nth_order order = { size, compare, arg };
    err = wf_nth(&order, base, count, n, wf_scratch_take(&scratch, sum, 1), wf_stop_of(options));
    wf_scratch_fini(&scratch);
    return err;
}
