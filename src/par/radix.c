/* SPDX-License-Identifier: MIT */
/*
 * radix.c - parallel radix sort.
 *
 * A large array is first moved into 256 buckets by the highest digit in which its elements
 * differ, with chunks of the array in parallel. Then the buckets are sorted in parallel, each
 * from its lowest digit up. So memory is read and written twice, and the many passes from the
 * lowest digit up stay within a cache.
 *
 * The highest digit is the eight bits from the highest differing bit down, wherever that bit
 * is. If most elements share even this digit, their bucket is still large. It is treated like
 * the array, with the next bits, up to LEVELS times. After that it is sorted from the lowest
 * digit up, however large it is.
 *
 * The sort from the lowest digit up does not start at the lowest bit. Hardly any two of n
 * reasonably spread numbers agree in their highest bits, a few more than log2 n of them. So
 * only those bits are sorted by. Numbers that agree in them are then adjacent, and are sorted
 * by the remaining bits. For 64 bits that saves half of the passes.
 *
 * Every pass keeps the order of elements with an equal digit, so the whole sort is stable.
 *
 * Tables. Each pass into buckets needs one table per chunk, and several buckets of one array
 * may do such a pass at the same time. Each level has one table per slot of SLOT elements. A
 * part of the array uses the tables of the slots that lie inside it, on its level, so tables
 * need no allocation.
 */
#include "par/radix.h"

#include <string.h>

#include <weft/par.h>

#include "base/assert.h"
#include "par/blocks.h"
#include "par/pause.h"
#include "par/range.h"
#include "par/stop.h"

enum {
    DIGITS = 256,
    LEVELS = 3,
    SLOT = 8 * 1024,
    SPREAD_MIN = 4 * SLOT,        /* smaller arrays are sorted from the lowest digit up, */
    SPREAD_AGAIN_MIN = 64 * SLOT, /* and smaller buckets: their passes may stay within a cache */
    CHUNKS_MAX = 64,
    MERGE_MAX = 256, /* up to here, a merge sort is faster */
    SPARE_BITS = 4,  /* to sort by, in addition to log2 of the count */
    PIECE = 4096,    /* elements between two pauses */
    QUICK = 8,       /* elements per step, in loops that only read them */
};

typedef size_t table[DIGITS];

struct sort {
    const struct methods *methods;
    struct wf_radix_order order;
    const weft_stop *stop;
    char *arrays[2]; /* the caller's array, and the other one */
    table *tables;   /* of all levels */
    size_t slots;    /* per level */
};

/* A part of one of the arrays, to be sorted into the first array. */
struct part {
    struct sort *sort;
    size_t begin;
    size_t count;
    unsigned array;
    unsigned level;
    unsigned shift; /* of the digit that selects its buckets */
    size_t chunks;
};

/* The loops for one kind of elements. */
struct methods {
    size_t size;
    uint64_t (*survey)(const struct wf_radix_order *order, const void *from, size_t count);
    void (*count)(const struct wf_radix_order *order, const void *from, size_t count,
                  unsigned shift, size_t *counts);
    void (*move)(const struct wf_radix_order *order, const void *from, void *to, size_t count,
                 unsigned shift, size_t *places);
    size_t (*find)(const struct wf_radix_order *order, const void *from, size_t begin, size_t count,
                   unsigned shift, bool agree);
    const weft_sort_ops *merge; /* for few elements */
};

/* --- Keys ------------------------------------------------------------------------------ */

static inline uint64_t key_32(const uint32_t *element, const struct wf_radix_order *order)
{
    uint32_t bits = *element;
    uint32_t negative = 0 - (bits >> 31);
    return bits ^ (negative & (uint32_t)order->if_negative) ^ (uint32_t)order->always;
}

static inline uint64_t key_64(const uint64_t *element, const struct wf_radix_order *order)
{
    uint64_t negative = 0 - (*element >> 63);
    return *element ^ (negative & order->if_negative) ^ order->always;
}

static inline uint64_t key_pair(const struct wf_radix_pair *element,
                                const struct wf_radix_order *order)
{
    return key_64(&element->key, order);
}

/* --- Loops over elements --------------------------------------------------------------- */

/*
 * Defines the methods of a kind. survey returns the bits in which keys differ. count adds up
 * digits. move puts each element at the next position of its digit. find returns the first
 * element at or after begin, which is not 0, that agrees (or does not agree) with its
 * predecessor from the bit shift up, or count if there is none.
 */
#define MAKE_METHODS(kind, type)                                                                   \
    static uint64_t survey_##kind(const struct wf_radix_order *order, const void *from,            \
                                  size_t count)                                                    \
    {                                                                                              \
        const type *elements = from;                                                               \
        struct wf_radix_order by = *order;                                                         \
        uint64_t first = key_##kind(&elements[0], &by);                                            \
        uint64_t differ = 0;                                                                       \
        for (size_t i = 1; i < count; i++) {                                                       \
            differ |= key_##kind(&elements[i], &by) ^ first;                                       \
        }                                                                                          \
        return differ;                                                                             \
    }                                                                                              \
                                                                                                   \
    static void count_##kind(const struct wf_radix_order *order, const void *from, size_t count,   \
                             unsigned shift, size_t *counts)                                       \
    {                                                                                              \
        const type *elements = from;                                                               \
        struct wf_radix_order by = *order;                                                         \
        for (size_t i = 0; i < count; i++) {                                                       \
            counts[(key_##kind(&elements[i], &by) >> shift) % DIGITS]++;                           \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void move_##kind(const struct wf_radix_order *order, const void *from, void *to,        \
                            size_t count, unsigned shift, size_t *places)                          \
    {                                                                                              \
        const type *elements = from;                                                               \
        type *moved = to;                                                                          \
        struct wf_radix_order by = *order;                                                         \
        for (size_t i = 0; i < count; i++) {                                                       \
            moved[places[(key_##kind(&elements[i], &by) >> shift) % DIGITS]++] = elements[i];      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static size_t find_##kind(const struct wf_radix_order *order, const void *from, size_t begin,  \
                              size_t count, unsigned shift, bool agree)                            \
    {                                                                                              \
        const type *elements = from;                                                               \
        struct wf_radix_order by = *order;                                                         \
        uint64_t last = key_##kind(&elements[begin - 1], &by) >> shift;                            \
        for (size_t i = begin; i < count; i++) {                                                   \
            uint64_t this = key_##kind(&elements[i], &by) >> shift;                                \
            if ((this == last) == agree) {                                                         \
                return i;                                                                          \
            }                                                                                      \
            last = this;                                                                           \
        }                                                                                          \
        return count;                                                                              \
    }                                                                                              \
                                                                                                   \
    static inline bool merge_##kind##_less(const type *a, const type *b, const void *order)        \
    {                                                                                              \
        return key_##kind(a, (const struct wf_radix_order *)order) <                               \
               key_##kind(b, (const struct wf_radix_order *)order);                                \
    }                                                                                              \
                                                                                                   \
    WEFT_SORT_MAKE(merge_##kind, type)                                                             \
                                                                                                   \
    static const struct methods methods_##kind = {                                                 \
        sizeof(type), survey_##kind, count_##kind, move_##kind, find_##kind, &merge_##kind##_ops   \
    };

MAKE_METHODS(32, uint32_t)
MAKE_METHODS(64, uint64_t)
MAKE_METHODS(pair, struct wf_radix_pair)

static void sort_part(struct part *part);

/* --- Loops with pauses ----------------------------------------------------------------- */

static uint64_t survey_some(const struct sort *sort, const char *from, size_t count)
{
    const struct methods *methods = sort->methods;
    uint64_t differ = 0;
    for (size_t at = 0; at < count;) {
        size_t next = wf_pause_next(at, count, PIECE);
        /* Includes the element before, so that batches are compared with each other. */
        size_t first = at - (at > 0);
        differ |= methods->survey(&sort->order, from + first * methods->size, next - first);
        wf_pause((next - at) / QUICK);
        at = next;
    }
    return differ;
}

static void count_some(const struct sort *sort, const char *from, size_t count, unsigned shift,
                       size_t *counts)
{
    memset(counts, 0, sizeof(table));
    for (size_t at = 0; at < count;) {
        size_t next = wf_pause_next(at, count, PIECE);
        sort->methods->count(&sort->order, from + at * sort->methods->size, next - at, shift,
                             counts);
        wf_pause((next - at) / QUICK);
        at = next;
    }
}

static void move_some(const struct sort *sort, const char *from, char *to, size_t count,
                      unsigned shift, size_t *places)
{
    for (size_t at = 0; at < count;) {
        size_t next = wf_pause_next(at, count, PIECE);
        sort->methods->move(&sort->order, from + at * sort->methods->size, to, next - at, shift,
                            places);
        wf_pause(next - at);
        at = next;
    }
}

static size_t find_some(const struct sort *sort, const char *from, size_t begin, size_t count,
                        unsigned shift, bool agree)
{
    while (begin < count) {
        size_t next = wf_pause_next(begin, count, PIECE);
        size_t found = sort->methods->find(&sort->order, from, begin, next, shift, agree);
        wf_pause((found - begin) / QUICK + 1);
        if (found < next) {
            return found;
        }
        begin = next;
    }
    return count;
}

/* --- From the lowest digit up ---------------------------------------------------------- */

static unsigned lowest_bit(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits);
}

static unsigned highest_bit(uint64_t bits)
{
    return 63 - (unsigned)__builtin_clzll(bits);
}

static char *begin_of(const struct part *part, unsigned array)
{
    return part->sort->arrays[array] + part->begin * part->sort->methods->size;
}

static void copy_if_elsewhere(const struct part *part, unsigned array)
{
    if (array != 0) {
        wf_pause_copy(begin_of(part, 0), begin_of(part, 1),
                      part->count * part->sort->methods->size);
    }
}

static void counts_to_places(size_t *counts)
{
    size_t place = 0;
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        size_t count = counts[digit];
        counts[digit] = place;
        place += count;
    }
}

/* Sorts digit by digit, from this bit up. Returns the array that contains the result. */
static unsigned sort_from_bit(const struct part *part, uint64_t differ, unsigned low)
{
    unsigned array = part->array;
    table places;
    for (unsigned shift = low; shift < 64 && differ >> shift != 0; shift += 8) {
        if ((differ >> shift) % DIGITS == 0) {
            continue;
        }
        count_some(part->sort, begin_of(part, array), part->count, shift, places);
        counts_to_places(places);
        move_some(part->sort, begin_of(part, array), begin_of(part, 1 - array), part->count, shift,
                  places);
        array = 1 - array;
    }
    return array;
}

/* Sorts runs of elements that agree from this bit up, by the bits below. */
static void sort_those_that_agree(const struct part *part, unsigned low)
{
    const struct sort *sort = part->sort;
    const char *from = begin_of(part, 0);
    size_t end = 1;
    while (end < part->count) {
        size_t second = find_some(sort, from, end, part->count, low, true);
        if (second == part->count) {
            break;
        }
        end = find_some(sort, from, second, part->count, low, false);
        struct part run = { .sort = part->sort,
                            .begin = part->begin + second - 1,
                            .count = end - second + 1,
                            .level = LEVELS };
        sort_part(&run);
    }
}

/* Returns the lowest bit of the digits that distinguish nearly all of count elements. */
static unsigned lowest_needed(uint64_t differ, size_t count)
{
    unsigned lowest = lowest_bit(differ);
    unsigned bits = highest_bit(differ) + 1 - lowest;
    unsigned needed = (highest_bit(count) + SPARE_BITS + 8) / 8 * 8;
    /* Saving only one pass is not worth it. */
    return bits > needed + 8 ? lowest + bits - needed : lowest;
}

static void sort_from_lowest(const struct part *part, uint64_t differ)
{
    unsigned low = lowest_needed(differ, part->count);
    copy_if_elsewhere(part, sort_from_bit(part, differ, low));
    if (low > lowest_bit(differ)) {
        sort_those_that_agree(part, low);
    }
}

/* --- By the highest digit, in parallel ------------------------------------------------- */

/* Returns the tables of a part. It contains more slots than chunks. */
static table *tables_of(const struct part *part)
{
    size_t slot = (part->begin + SLOT - 1) / SLOT;
    return part->sort->tables + part->level * part->sort->slots + slot;
}

static size_t chunks_of(size_t count)
{
    size_t chunks = count / (2 * SLOT);
    return chunks < CHUNKS_MAX ? chunks : CHUNKS_MAX;
}

/* Stores the results where the counts will be. */
static void survey_chunks(size_t begin, size_t end, void *arg)
{
    const struct part *part = arg;
    const struct methods *methods = part->sort->methods;
    const char *from = begin_of(part, part->array);
    for (size_t chunk = begin; chunk < end; chunk++) {
        /* Includes the element before, so that chunks are compared with each other. */
        size_t first = wf_share_begin(part->count, part->chunks, chunk);
        first -= first > 0;
        tables_of(part)[chunk][0] =
            survey_some(part->sort, from + first * methods->size,
                        wf_share_begin(part->count, part->chunks, chunk + 1) - first);
    }
}

static uint64_t survey(struct part *part)
{
    wf_range_each(part->chunks, 1, survey_chunks, part);
    uint64_t differ = 0;
    for (size_t chunk = 0; chunk < part->chunks; chunk++) {
        differ |= tables_of(part)[chunk][0];
    }
    return differ;
}

static void count_chunks(size_t begin, size_t end, void *arg)
{
    const struct part *part = arg;
    const struct methods *methods = part->sort->methods;
    const char *from = begin_of(part, part->array);
    for (size_t chunk = begin; chunk < end; chunk++) {
        size_t first = wf_share_begin(part->count, part->chunks, chunk);
        count_some(part->sort, from + first * methods->size,
                   wf_share_begin(part->count, part->chunks, chunk + 1) - first, part->shift,
                   tables_of(part)[chunk]);
    }
}

/* Turns counts into positions: digit by digit, and within a digit chunk by chunk. */
static void place_chunks(const struct part *part)
{
    table *tables = tables_of(part);
    size_t place = 0;
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        for (size_t chunk = 0; chunk < part->chunks; chunk++) {
            size_t count = tables[chunk][digit];
            tables[chunk][digit] = place;
            place += count;
        }
    }
}

static void move_chunks(size_t begin, size_t end, void *arg)
{
    const struct part *part = arg;
    const struct methods *methods = part->sort->methods;
    const char *from = begin_of(part, part->array);
    for (size_t chunk = begin; chunk < end; chunk++) {
        size_t first = wf_share_begin(part->count, part->chunks, chunk);
        move_some(part->sort, from + first * methods->size, begin_of(part, 1 - part->array),
                  wf_share_begin(part->count, part->chunks, chunk + 1) - first, part->shift,
                  tables_of(part)[chunk]);
    }
}

static void sort_buckets(size_t begin, size_t end, void *arg)
{
    const struct part *part = arg;
    const size_t *ends = tables_of(part)[part->chunks - 1];
    for (size_t digit = begin; digit < end; digit++) {
        size_t first = digit > 0 ? ends[digit - 1] : 0;
        struct part bucket = { .sort = part->sort,
                               .begin = part->begin + first,
                               .count = ends[digit] - first,
                               .array = 1 - part->array,
                               .level = part->level + 1 };
        sort_part(&bucket);
    }
}

static void spread(struct part *part)
{
    part->chunks = chunks_of(part->count);
    uint64_t differ = survey(part);
    if (differ == 0) {
        copy_if_elsewhere(part, part->array);
        return;
    }
    unsigned highest = highest_bit(differ);
    part->shift = highest < 7 ? 0 : highest - 7;
    wf_range_each(part->chunks, 1, count_chunks, part);
    place_chunks(part);
    if (part->level == 0) {
        wf_scratch_touch(begin_of(part, 1), part->count * part->sort->methods->size);
    }
    wf_range_each(part->chunks, 1, move_chunks, part);
    wf_range_each(DIGITS, 1, sort_buckets, part);
}

static size_t spread_min(unsigned level)
{
    return level == 0 ? SPREAD_MIN : level < LEVELS ? SPREAD_AGAIN_MIN : SIZE_MAX;
}

static void sort_part(struct part *part)
{
    const struct methods *methods = part->sort->methods;
    if (wf_stop_is_set(part->sort->stop)) {
        copy_if_elsewhere(part, part->array);
    } else if (part->count <= MERGE_MAX) {
        wf_pause(part->count);
        methods->merge->sort(begin_of(part, part->array), begin_of(part, 1 - part->array),
                             part->count, part->array != 0, &part->sort->order);
    } else if (part->count >= spread_min(part->level)) {
        spread(part);
    } else {
        const char *from = begin_of(part, part->array);
        uint64_t differ = survey_some(part->sort, from, part->count);
        if (differ != 0) {
            sort_from_lowest(part, differ);
        } else {
            copy_if_elsewhere(part, part->array);
        }
    }
}

static const struct methods *methods_of(enum wf_radix_kind kind)
{
    switch (kind) {
    case WF_RADIX_32:
        return &methods_32;
    case WF_RADIX_64:
        return &methods_64;
    default:
        return &methods_pair;
    }
}

size_t wf_radix_scratch(size_t sum, size_t count, size_t size)
{
    sum = wf_scratch_add(sum, count, size);
    return count < SPREAD_MIN ? sum
                              : wf_scratch_add(sum, LEVELS * (count / SLOT + 1), sizeof(table));
}

void wf_radix_sort(enum wf_radix_kind kind, struct wf_radix_order order, void *base, size_t count,
                   struct wf_scratch *scratch, const weft_stop *stop)
{
    struct sort sort = {
        .methods = methods_of(kind), .order = order, .stop = stop, .slots = count / SLOT + 1
    };
    sort.arrays[0] = base;
    sort.arrays[1] = wf_scratch_take(scratch, count, sort.methods->size);
    if (count >= SPREAD_MIN) {
        sort.tables = wf_scratch_take(scratch, LEVELS * sort.slots, sizeof(table));
    }
    struct part all = { .sort = &sort, .count = count };
    sort_part(&all);
}
