/* SPDX-License-Identifier: MIT */
/*
 * gather.c - moving elements to places that were found for them.
 *
 * To another array and back, since following a permutation in place is serial. Reading
 * from everywhere is what takes the time; the way back is a copy.
 */
#include "par/gather.h"

#include <string.h>

#include "par/range.h"

enum {
    BYTES_MIN = 256 * 1024, /* of elements, for one piece */
};

struct gather {
    char *base;
    char *other;
    size_t size;
    wf_gather_fn source;
    const void *arg;
};

static void take(size_t begin, size_t end, void *arg)
{
    const struct gather *gather = arg;
    for (size_t i = begin; i < end; i++) {
        memcpy(gather->other + i * gather->size, gather->source(i, gather->arg), gather->size);
    }
}

static void put_back(size_t begin, size_t end, void *arg)
{
    const struct gather *gather = arg;
    size_t size = gather->size;
    memcpy(gather->base + begin * size, gather->other + begin * size, (end - begin) * size);
}

void wf_gather(void *base, void *other, size_t count, size_t size, wf_gather_fn source,
               const void *arg)
{
    struct gather gather = {
        .base = base, .other = other, .size = size, .source = source, .arg = arg
    };
    size_t grain = BYTES_MIN / size + 1;
    wf_range_each(count, grain, take, &gather);
    wf_range_each(count, grain, put_back, &gather);
}
