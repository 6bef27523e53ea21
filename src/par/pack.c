/* SPDX-License-Identifier: MIT */
/*
 * pack.c - parallel compaction and partition by a flag per element.
 *
 * The array is split into blocks. The first pass counts the kept elements of each block, which
 * determines where they go. The second pass copies them.
 */
#include "par/pack.h"

#include <stdint.h>
#include <string.h>

#include "par/answers.h"
#include "par/array.h"
#include "par/blocks.h"
#include "par/pause.h"
#include "par/stop.h"

enum {
    BLOCKS_MAX = 256,
    BLOCK_LENGTH_MIN = 4096, /* elements; a few microseconds */
    QUICK = 8,               /* elements that count as one step, unless they are large */
};

#define EIGHT_YES UINT64_C(0x0101010101010101)

struct packing {
    struct wf_pack pack;
    struct wf_blocks blocks;
    size_t kept;               /* in all blocks */
    size_t places[BLOCKS_MAX]; /* per block: number kept, later the number kept before it */
};

static int count_blocks(size_t first, size_t end, void *arg)
{
    struct packing *packing = arg;
    const struct wf_blocks *blocks = &packing->blocks;
    for (size_t block = first; block < end; block++) {
        size_t begin = wf_blocks_first(blocks, block);
        packing->places[block] =
            wf_answers_count(packing->pack.keep + begin, wf_blocks_end(blocks, block) - begin);
    }
    return 0;
}

static void add_up(struct packing *packing)
{
    for (size_t block = 0; block < packing->blocks.count; block++) {
        size_t own = packing->places[block];
        packing->places[block] = packing->kept;
        packing->kept += own;
    }
}

/* The elements of one block, and where they go. */
struct copy {
    const char *from;
    size_t count;
    const unsigned char *keep;
    size_t kept_count;
    char *kept;
    char *others;
};

/* Loads eight flags. */
static inline uint64_t answers_at(const unsigned char *keep)
{
    uint64_t word;
    memcpy(&word, keep, sizeof word);
    return word;
}

/* Copies the next eight elements, some of which are kept. Returns where the elements after them
 * go. */
static inline __attribute__((always_inline)) char *
copy_eight(const char *from, const unsigned char *keep, char *to, size_t size)
{
    for (size_t i = 0; i < 8; i++) {
        memcpy(to, from + i * size, size);
        to += keep[i] != 0 ? size : 0;
    }
    return to;
}

/*
 * Copies the kept elements without an unpredictable branch: each element is copied, and one
 * that is not kept is overwritten by the next. The loop ends with the last kept element, so it
 * never writes into the space of another block. Inlined for constant sizes, where a copy is a
 * few instructions.
 */
static inline __attribute__((always_inline)) void copy_kept(const struct copy *copy, size_t size)
{
    const char *from = copy->from;
    const unsigned char *keep = copy->keep;
    const unsigned char *keep_end = keep + copy->count;
    char *to = copy->kept;
    char *end = to + copy->kept_count * size;
    /* While eight kept elements are left, at least eight elements are left. */
    for (; (size_t)(end - to) >= 8 * size; from += 8 * size, keep += 8) {
        uint64_t answers = answers_at(keep);
        if (answers == EIGHT_YES) {
            memcpy(to, from, 8 * size);
            to += 8 * size;
        } else if (answers != 0) {
            to = copy_eight(from, keep, to, size);
        }
    }
    while (to < end) {
        if (keep_end - keep >= 8 && answers_at(keep) == 0) {
            from += 8 * size;
            keep += 8;
            continue;
        }
        memcpy(to, from, size);
        to += *keep != 0 ? size : 0;
        from += size;
        keep++;
    }
}

/* Copies the kept elements, if they are large: a branch costs less than a copy. */
static void copy_large(const struct copy *copy, size_t size)
{
    char *to = copy->kept;
    for (size_t i = 0; i < copy->count; i++) {
        if (copy->keep[i] != 0) {
            wf_pause_element(to, copy->from + i * size, size);
            to += size;
        }
    }
}

static void copy_kept_of_size(const struct copy *copy, size_t size)
{
    switch (size) {
    case 1:
        copy_kept(copy, 1);
        break;
    case 2:
        copy_kept(copy, 2);
        break;
    case 4:
        copy_kept(copy, 4);
        break;
    case 8:
        copy_kept(copy, 8);
        break;
    case 16:
        copy_kept(copy, 16);
        break;
    default:
        copy_large(copy, size);
    }
}

/* Copies the kept elements to kept and all others to others. */
static inline __attribute__((always_inline)) void copy_both(const struct copy *copy, size_t size)
{
    const char *from = copy->from;
    char *to[2] = { copy->others, copy->kept };
    for (size_t i = 0; i < copy->count; i++, from += size) {
        size_t is_kept = copy->keep[i] != 0;
        wf_pause_element(to[is_kept], from, size);
        to[is_kept] += size;
    }
}

static void copy_both_of_size(const struct copy *copy, size_t size)
{
    switch (size) {
    case 1:
        copy_both(copy, 1);
        break;
    case 4:
        copy_both(copy, 4);
        break;
    case 8:
        copy_both(copy, 8);
        break;
    case 16:
        copy_both(copy, 16);
        break;
    default:
        copy_both(copy, size);
    }
}

/* Copies the elements from first to before end. Returns the number of kept elements before end,
 * given the number of those before first. */
static size_t copy_some(const struct packing *packing, size_t first, size_t end, size_t before)
{
    const struct wf_pack *pack = &packing->pack;
    size_t kept = wf_answers_count(pack->keep + first, end - first);
    struct copy copy = {
        .from = pack->from + first * pack->size,
        .count = end - first,
        .keep = pack->keep + first,
        .kept_count = kept,
        .kept = pack->to + before * pack->size,
    };
    if (pack->with_others) {
        copy.others = pack->to + (packing->kept + first - before) * pack->size;
        copy_both_of_size(&copy, pack->size);
    } else {
        copy_kept_of_size(&copy, pack->size);
    }
    return before + kept;
}

static int copy_blocks(size_t first, size_t end, void *arg)
{
    const struct packing *packing = arg;
    for (size_t block = first; block < end; block++) {
        size_t at = wf_blocks_first(&packing->blocks, block);
        size_t last = wf_blocks_end(&packing->blocks, block);
        size_t before = packing->places[block];
        size_t most = wf_pause_most(BLOCK_LENGTH_MIN, packing->pack.size);
        while (at < last) {
            size_t next = wf_pause_next(at, last, most);
            before = copy_some(packing, at, next, before);
            wf_pause_copied(next - at, packing->pack.size);
            at = next;
        }
    }
    return 0;
}

size_t wf_pack_alone(const struct wf_pack *pack)
{
    size_t kept = wf_answers_count(pack->keep, pack->count);
    struct copy copy = { pack->from, pack->count, pack->keep, kept, pack->to, NULL };
    copy_kept_of_size(&copy, pack->size);
    return kept;
}

static int pack_blocks(struct packing *packing, const weft_stop *stop)
{
    weft_par_options options = { .stop = stop };
    int err = weft_for(0, packing->blocks.count, count_blocks, packing, &options);
    if (err == 0) {
        add_up(packing);
        err = weft_for(0, packing->blocks.count, copy_blocks, packing, &options);
    }
    return err;
}

int wf_pack(const struct wf_pack *pack, size_t *kept, const weft_stop *stop)
{
    if (pack->count <= wf_pause_most(BLOCK_LENGTH_MIN, pack->size) && !pack->with_others) {
        *kept += wf_pack_alone(pack);
        wf_pause_copied(pack->count / QUICK, QUICK * pack->size);
        return wf_stop_is_set(stop) ? WEFT_ECANCELED : 0;
    }
    struct packing packing = { .pack = *pack };
    size_t length = (pack->count + BLOCKS_MAX - 1) / BLOCKS_MAX;
    length = length > BLOCK_LENGTH_MIN ? length : BLOCK_LENGTH_MIN;
    packing.blocks = wf_blocks_of(0, pack->count, &(weft_par_options){ .piece = length });
    int err = pack_blocks(&packing, stop);
    if (err == 0) {
        *kept += packing.kept;
    }
    return err;
}

int weft_pack(const void *base, size_t count, size_t size, const bool *keep, void *to, size_t *kept,
              const weft_par_options *options)
{
    wf_pause_call();
    struct wf_pack pack = { base, count, size, (const unsigned char *)keep, to, false };
    size_t sum = 0;
    int err = wf_array_check(count, size);
    if (err == 0) {
        err = wf_pack(&pack, &sum, wf_stop_of(options));
    }
    if (err == 0) {
        *kept = sum;
    }
    return err;
}
