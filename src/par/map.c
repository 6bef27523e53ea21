/* SPDX-License-Identifier: MIT */
/*
 * map.c - parallel map of one or two arrays, and fill.
 */
#include <string.h>

#include "par/array.h"
#include "par/pause.h"

struct maps {
    const char *a;
    size_t a_size;
    const char *b;
    size_t b_size;
    char *to;
    size_t to_size;
    weft_map_fn map;   /* of one array, or */
    weft_map2_fn map2; /* of two */
    void *arg;
};

static int map_some(const struct maps *maps, size_t first, size_t count)
{
    const char *a = maps->a + first * maps->a_size;
    char *to = maps->to + first * maps->to_size;
    if (maps->map != NULL) {
        return maps->map(a, count, to, maps->arg);
    }
    return maps->map2(a, maps->b + first * maps->b_size, count, to, maps->arg);
}

static int map_piece(size_t first, size_t end, void *arg)
{
    int err = 0;
    while (err == 0 && first < end) {
        size_t count = end - first < WEFT_ELEMENTS_MAX ? end - first : WEFT_ELEMENTS_MAX;
        err = map_some(arg, first, count);
        wf_pause(count);
        first += count;
    }
    return err;
}

int weft_map(const void *from, size_t count, size_t size, weft_map_fn map, void *arg, void *to,
             size_t to_size, const weft_par_options *options)
{
    wf_pause_call();
    struct maps maps = { .a = from, .a_size = size, .to = to, .to_size = to_size };
    maps.map = map;
    maps.arg = arg;
    if (wf_array_check(count, size) != 0 || wf_array_check(count, to_size) != 0) {
        return -EINVAL;
    }
    return weft_for(0, count, map_piece, &maps, options);
}

int weft_map2(const void *a, size_t a_size, const void *b, size_t b_size, size_t count,
              weft_map2_fn map, void *arg, void *to, size_t to_size,
              const weft_par_options *options)
{
    wf_pause_call();
    struct maps maps = { .a = a, .a_size = a_size, .b = b, .b_size = b_size };
    maps.to = to;
    maps.to_size = to_size;
    maps.map2 = map;
    maps.arg = arg;
    if (wf_array_check(count, a_size) != 0 || wf_array_check(count, b_size) != 0 ||
        wf_array_check(count, to_size) != 0) {
        return -EINVAL;
    }
    return weft_for(0, count, map_piece, &maps, options);
}

/* --- Fill -------------------------------------------------------------------------------- */

enum {
    PATTERN_BYTES = 4096, /* bytes that are written first, then copied from the cache */
};

struct fill {
    char *to;
    size_t size;
    const void *value;
};

static void fill_some(const struct fill *fill, size_t first, size_t end)
{
    char *to = fill->to + first * fill->size;
    size_t bytes = (end - first) * fill->size;
    if (fill->size == 1) {
        memset(to, *(const unsigned char *)fill->value, bytes);
        return;
    }
    wf_pause_element(to, fill->value, fill->size);
    size_t pattern = fill->size;
    for (size_t done = fill->size; done < bytes;) {
        /* Doubles the pattern until it is long enough. */
        pattern = done < PATTERN_BYTES ? done : pattern;
        size_t next = bytes - done < pattern ? bytes - done : pattern;
        wf_pause_element(to + done, to, next);
        done += next;
    }
}

static int fill_piece(size_t first, size_t end, void *arg)
{
    const struct fill *fill = arg;
    size_t most = wf_pause_most(WF_PAUSE_BYTES, fill->size);
    while (first < end) {
        size_t next = wf_pause_next(first, end, most);
        fill_some(fill, first, next);
        wf_pause((next - first) * fill->size / WF_PAUSE_STEP_BYTES);
        first = next;
    }
    return 0;
}

int weft_fill(void *to, size_t count, size_t size, const void *value,
              const weft_par_options *options)
{
    wf_pause_call();
    struct fill fill = { to, size, value };
    int err = wf_array_check(count, size);
    return err != 0 ? err : weft_for(0, count, fill_piece, &fill, options);
}
