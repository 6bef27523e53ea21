/* SPDX-License-Identifier: MIT */
/*
 * neighbours.c - is_sorted and unique, by comparing adjacent elements.
 *
 * unique is a scan (scan.c). First each block counts the elements that differ from their
 * predecessor. Then each block copies them behind those of the blocks before it. In between,
 * one bit per element records whether it differs. So each pair is compared once, and a
 * comparison that would answer differently the second time does no harm. The scan ranges over
 * words of these bits, so no two blocks share a word.
 */
#include <stdalign.h>

#include <weft/order.h>

#include "par/deep.h"
#include "par/options.h"
#include "par/pause.h"

/* --- Is sorted ------------------------------------------------------------------------- */

enum {
    UNSORTED = 1,     /* ends the loop; not an error */
    LOOK_FIRST = 256, /* elements checked before forking or measuring */
};

struct look {
    const char *base;
    size_t size;
    weft_compare_fn compare;
    void *arg;
};

static int look_at(size_t first, size_t end, void *arg)
{
    const struct look *look = arg;
    while (first < end) {
        size_t next = wf_pause_next(first, end, WF_PAUSE_CALLS);
        for (size_t i = first; i < next; i++) {
            const char *at = look->base + i * look->size;
            if (look->compare(at - look->size, at, look->arg) > 0) {
                return UNSORTED;
            }
        }
        wf_pause(next - first);
        first = next;
    }
    return 0;
}

struct first_look {
    size_t end;
    struct look *look;
};

static int look_at_first(void *arg)
{
    const struct first_look *first = arg;
    return look_at(1, first->end, first->look);
}

int weft_is_sorted(const void *base, size_t count, size_t size, weft_compare_fn compare, void *arg,
                   bool *answer, const weft_par_options *options)
{
    wf_pause_call();
    *answer = false;
    if (!wf_options_fit(count, size)) {
        return -EINVAL;
    }
    struct look look = { .base = base, .size = size, .compare = compare, .arg = arg };
    size_t first = count < LOOK_FIRST ? count : LOOK_FIRST;
    struct first_look first_look = { first, &look };
    int err = wf_stop_is_set(wf_stop_of(options)) ? WEFT_ECANCELED
                                                  : wf_deep_call(look_at_first, &first_look);
    if (err == 0 && first < count) {
        err = weft_for(first, count, look_at, &look, options);
    }
    *answer = err == 0;
    return err == UNSORTED ? 0 : err;
}

/* --- Unique ---------------------------------------------------------------------------- */

enum {
    WORD_BITS = 64,
    QUICK = 8, /* elements that are copied in one step, unless they are large */
    BLOCK_WORDS_MIN = 16,
    BLOCK_WORDS_MAX = 256,
};

struct unique {
    const char *base;
    size_t count;
    size_t size;
    weft_compare_fn compare;
    void *arg;
    char *to;
    uint64_t *marks; /* one bit per element: it differs */
};

static size_t word_end(const struct unique *unique, size_t word)
{
    size_t left = unique->count - word * WORD_BITS;
    return word * WORD_BITS + (left < WORD_BITS ? left : WORD_BITS);
}

static uint64_t mark_word(const struct unique *unique, size_t word)
{
    size_t first = word * WORD_BITS;
    uint64_t bits = first == 0;
    for (size_t i = first + (first == 0); i < word_end(unique, word); i++) {
        const char *at = unique->base + i * unique->size;
        bool differs = unique->compare(at - unique->size, at, unique->arg) != 0;
        bits |= (uint64_t)differs << (i - first);
    }
    return bits;
}

static int count_marks(void *value, size_t first, size_t end, void *arg)
{
    const struct unique *unique = arg;
    size_t *count = value;
    for (size_t word = first; word < end; word++) {
        unique->marks[word] = mark_word(unique, word);
        *count += (size_t)__builtin_popcountll(unique->marks[word]);
        wf_pause(WORD_BITS);
    }
    return 0;
}

static void add_counts(void *value, const void *next, void *arg)
{
    (void)arg;
    *(size_t *)value += *(const size_t *)next;
}

/* Inlined for constant sizes, where a copy is a few instructions. */
static inline __attribute__((always_inline)) void
copy_marked(const struct unique *unique, size_t place, size_t first, size_t end, size_t size)
{
    char *to = unique->to + place * size;
    for (size_t word = first; word < end; word++) {
        const char *from = unique->base + word * WORD_BITS * size;
        uint64_t bits = unique->marks[word];
        for (; bits != 0; bits &= bits - 1) {
            wf_pause_element(to, from + (size_t)__builtin_ctzll(bits) * size, size);
            to += size;
        }
        wf_pause_copied(WORD_BITS / QUICK, QUICK * size);
    }
}

static int copy_words(void *value, size_t first, size_t end, void *arg)
{
    const struct unique *unique = arg;
    size_t place = *(const size_t *)value;
    if (unique->size == 4) {
        copy_marked(unique, place, first, end, 4);
    } else if (unique->size == 8) {
        copy_marked(unique, place, first, end, 8);
    } else {
        copy_marked(unique, place, first, end, unique->size);
    }
    return 0;
}

static int run_unique(struct unique *unique, size_t words, size_t *kept, const weft_stop *stop)
{
    static const size_t zero = 0;
    static const weft_scanner how = { .reduction = { .size = sizeof zero,
                                                     .identity = &zero,
                                                     .fold = count_marks,
                                                     .combine = add_counts },
                                      .scan = copy_words };
    size_t length = words / WF_BLOCKS_WANTED;
    length = length > BLOCK_WORDS_MIN ? length : BLOCK_WORDS_MIN;
    length = length < BLOCK_WORDS_MAX ? length : BLOCK_WORDS_MAX;
    weft_par_options options = { .piece = length, .stop = stop };
    return weft_scan(0, words, &how, unique, kept, &options);
}

int weft_unique(const void *base, size_t count, size_t size, weft_compare_fn compare, void *arg,
                void *to, size_t *kept, const weft_par_options *options)
{
    wf_pause_call();
    *kept = 0;
    if (!wf_options_fit(count, size)) {
        return -EINVAL;
    }
    size_t words = count / WORD_BITS + (count % WORD_BITS != 0);
    size_t sum = wf_scratch_add(0, words, sizeof(uint64_t));
    alignas(WF_SCRATCH_ALIGN) char here[WF_OPTIONS_HERE];
    weft_par_options with = wf_options_with_scratch(sum, here, options);
    struct wf_scratch scratch;
    int err = wf_scratch_init(&scratch, sum, &with);
    if (err != 0) {
        return err;
    }
    struct unique unique = {
        .base = base, .count = count, .size = size, .compare = compare, .arg = arg, .to = to
    };
    unique.marks = wf_scratch_take(&scratch, words, sizeof(uint64_t));
    err = run_unique(&unique, words, kept, wf_stop_of(options));
    wf_scratch_fini(&scratch);
    return err;
}
