/* SPDX-License-Identifier: MIT */
/*
 * gather.c - parallel permutation of an array, given a pointer to each source element.
 *
 * Elements are copied to another array and back, since following a permutation in place is
 * serial. The cost is dominated by random reads, so these are prefetched. The way back is a
 * plain copy.
 */
#include "par/gather.h"

#include "par/pause.h"
#include "par/range.h"

enum {
    BYTES_MIN = 256 * 1024, /* of elements, per chunk */
    AHEAD = 24,             /* elements; about as many cache misses as a core can have in flight */
};

struct gather {
    char *base;
    char *other;
    size_t size;
    struct wf_gather_sources sources;
};

static inline const void *source_of(const struct gather *gather, size_t index)
{
    const char *at = (const char *)gather->sources.first + index * gather->sources.stride;
    return *(const void *const *)(const void *)at;
}

/* Inlined for constant sizes, where a copy is a few instructions. */
static inline __attribute__((always_inline)) void
take_of_size(const struct gather *gather, size_t begin, size_t end, size_t size)
{
    char *to = gather->other;
    size_t i = begin;
    for (; i + AHEAD < end; i++) {
        __builtin_prefetch(source_of(gather, i + AHEAD));
        wf_pause_element(to + i * size, source_of(gather, i), size);
    }
    for (; i < end; i++) {
        wf_pause_element(to + i * size, source_of(gather, i), size);
    }
}

static void take_some(const struct gather *gather, size_t begin, size_t end)
{
    if (gather->size == 8) {
        take_of_size(gather, begin, end, 8);
    } else if (gather->size == 16) {
        take_of_size(gather, begin, end, 16);
    } else {
        take_of_size(gather, begin, end, gather->size);
    }
}

static void take(size_t begin, size_t end, void *arg)
{
    const struct gather *gather = arg;
    size_t most = wf_pause_most(WF_PAUSE_ELEMENTS, gather->size);
    while (begin < end) {
        size_t next = wf_pause_next(begin, end, most);
        take_some(gather, begin, next);
        wf_pause_copied(next - begin, gather->size);
        begin = next;
    }
}

static void put_back(size_t begin, size_t end, void *arg)
{
    const struct gather *gather = arg;
    size_t size = gather->size;
    wf_pause_copy(gather->base + begin * size, gather->other + begin * size, (end - begin) * size);
}

void wf_gather(void *base, void *other, size_t count, size_t size, struct wf_gather_sources sources)
{
    struct gather gather = { .base = base, .other = other, .size = size, .sources = sources };
    size_t grain = BYTES_MIN / size + 1;
    wf_range_each(count, grain, take, &gather);
    wf_range_each(count, grain, put_back, &gather);
}
