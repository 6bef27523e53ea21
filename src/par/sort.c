/* SPDX-License-Identifier: MIT */
/*
 * sort.c - parallel sorts with a comparison function.
 *
 * Elements of common sizes are moved directly. For other sizes pointers are sorted, and then
 * each element is moved once. That is also best for large elements.
 *
 * The stable and the unstable sort are the same. An unstable sort would need no second array,
 * but to be faster it would have to compare less, and a merge sort makes the fewest
 * comparisons.
 */
#include <weft/sort.h>

#include "par/gather.h"
#include "par/pause.h"
#include "par/range.h"
#include "par/sample.h"
#include "par/scratch.h"
#include "par/stop.h"

struct comparison {
    weft_compare_fn compare;
    void *arg;
};

struct item4 {
    uint32_t word;
} __attribute__((may_alias));

struct item8 {
    uint64_t word;
} __attribute__((may_alias));

struct item16 {
    uint64_t words[2];
} __attribute__((may_alias));

static inline bool is_before(const void *a, const void *b, const void *order)
{
    const struct comparison *comparison = order;
    return comparison->compare(a, b, comparison->arg) < 0;
}

#define item4_less(a, b, order)  is_before(a, b, order)
#define item8_less(a, b, order)  is_before(a, b, order)
#define item16_less(a, b, order) is_before(a, b, order)

WEFT_SORT_MAKE(item4, struct item4)
WEFT_SORT_MAKE(item8, struct item8)
WEFT_SORT_MAKE(item16, struct item16)

typedef const void *pointer;

static inline bool pointer_less(pointer const *a, pointer const *b, const void *order)
{
    return is_before(*a, *b, order);
}

WEFT_SORT_MAKE(pointer, pointer)

/* --- Sort by pointers ------------------------------------------------------------------ */

enum {
    GRAIN = 16 * 1024, /* pointers that are set serially */
};

struct pointers {
    const char *base;
    size_t size;
    const void **pointers;
};

static void point(size_t begin, size_t end, void *arg)
{
    const struct pointers *pointers = arg;
    for (size_t i = begin; i < end; i++) {
        pointers->pointers[i] = pointers->base + i * pointers->size;
    }
}

static size_t pointers_scratch(size_t count, size_t size)
{
    size_t sum = wf_scratch_add(0, count, size);
    sum = wf_scratch_add(sum, count, sizeof(void *));
    return wf_sample_scratch(sum, count, sizeof(void *));
}

static int sort_by_pointers(void *base, size_t count, size_t size, const struct comparison *order,
                            const weft_par_options *options)
{
    struct wf_scratch scratch;
    int error = wf_scratch_init(&scratch, pointers_scratch(count, size), options);
    if (error != 0) {
        return error;
    }
    struct pointers pointers = { .base = base, .size = size };
    void *other = wf_scratch_take(&scratch, count, size);
    pointers.pointers = wf_scratch_take(&scratch, count, sizeof(void *));
    wf_range_each(count, GRAIN, point, &pointers);
    const weft_stop *stop = wf_stop_of(options);
    wf_sample_sort(&pointer_ops, order, pointers.pointers, count, &scratch, stop);
    struct wf_gather_sources sources = { pointers.pointers, sizeof(void *) };
    wf_gather(base, other, count, size, sources);
    wf_scratch_fini(&scratch);
    return wf_stop_is_set(stop) ? WEFT_ECANCELED : 0;
}

/* --- Public functions ------------------------------------------------------------------ */

size_t weft_sort_scratch(size_t count, size_t size)
{
    size_t direct = wf_sample_scratch(0, count, size);
    size_t pointers = pointers_scratch(count, size);
    return wf_scratch_with_slack(direct > pointers ? direct : pointers);
}

/* Returns the operations for elements of this size and alignment, or NULL if there are none. */
static const weft_sort_ops *ops_of(const void *base, size_t size)
{
    size_t misaligned = (uintptr_t)base % 8;
    if (size == 16 && misaligned == 0) {
        return &item16_ops;
    }
    if (size == 8 && misaligned == 0) {
        return &item8_ops;
    }
    return size == 4 && misaligned % 4 == 0 ? &item4_ops : NULL;
}

int weft_sort_stable(void *base, size_t count, size_t size, weft_compare_fn compare, void *arg,
                     const weft_par_options *options)
{
    if (size == 0 || count < 2) {
        wf_pause_call();
        return size == 0 ? -EINVAL : 0;
    }
    struct comparison order = { compare, arg };
    const weft_sort_ops *ops = ops_of(base, size);
    return ops != NULL ? weft_sort_run(ops, &order, base, count, options)
                       : sort_by_pointers(base, count, size, &order, options);
}

int weft_sort(void *base, size_t count, size_t size, weft_compare_fn compare, void *arg,
              const weft_par_options *options)
{
    return weft_sort_stable(base, count, size, compare, arg, options);
}
