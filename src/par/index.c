/* SPDX-License-Identifier: MIT */
/*
 * index.c - parallel gather and scatter by index.
 *
 * The indexes are arbitrary, so the cost is dominated by waiting for memory. Therefore elements
 * are prefetched. Each index is checked just before its use. A separate pass for the checks
 * would cost more than it is worth, so the elements before an invalid index have already been
 * copied.
 */
#include "par/array.h"
#include "par/pause.h"

enum {
    AHEAD = 24, /* elements; about as many cache misses as a core can have in flight */
};

struct moves {
    const char *from;
    char *to;
    size_t size;
    const size_t *indexes;
    size_t limit; /* indexes must be below it */
};

/* Prefetches an element. The address may be outside of the array, since the index is not
 * checked yet. */
static inline void prefetch(const void *base, size_t index, size_t size)
{
    __builtin_prefetch((const void *)((uintptr_t)base + index * size));
}

/* Inlined for constant sizes, where a copy is a few instructions. */
static inline __attribute__((always_inline)) int gather_some(const struct moves *moves,
                                                             size_t first, size_t end, size_t size)
{
    const size_t *indexes = moves->indexes;
    for (size_t i = first; i < end; i++) {
        if (end - i > AHEAD) {
            prefetch(moves->from, indexes[i + AHEAD], size);
        }
        if (indexes[i] >= moves->limit) {
            return -ERANGE;
        }
        wf_pause_element(moves->to + i * size, moves->from + indexes[i] * size, size);
    }
    return 0;
}

static inline __attribute__((always_inline)) int scatter_some(const struct moves *moves,
                                                              size_t first, size_t end, size_t size)
{
    const size_t *indexes = moves->indexes;
    for (size_t i = first; i < end; i++) {
        if (end - i > AHEAD) {
            prefetch(moves->to, indexes[i + AHEAD], size);
        }
        if (indexes[i] >= moves->limit) {
            return -ERANGE;
        }
        wf_pause_element(moves->to + indexes[i] * size, moves->from + i * size, size);
    }
    return 0;
}

static int gather_few(const struct moves *moves, size_t first, size_t end)
{
    switch (moves->size) {
    case 1:
        return gather_some(moves, first, end, 1);
    case 4:
        return gather_some(moves, first, end, 4);
    case 8:
        return gather_some(moves, first, end, 8);
    case 16:
        return gather_some(moves, first, end, 16);
    default:
        return gather_some(moves, first, end, moves->size);
    }
}

static int scatter_few(const struct moves *moves, size_t first, size_t end)
{
    switch (moves->size) {
    case 1:
        return scatter_some(moves, first, end, 1);
    case 4:
        return scatter_some(moves, first, end, 4);
    case 8:
        return scatter_some(moves, first, end, 8);
    case 16:
        return scatter_some(moves, first, end, 16);
    default:
        return scatter_some(moves, first, end, moves->size);
    }
}

/* With safe points. */
static int move_in_pieces(const struct moves *moves, size_t first, size_t end,
                          int (*move)(const struct moves *moves, size_t first, size_t end))
{
    size_t most = wf_pause_most(WF_PAUSE_ELEMENTS, moves->size);
    int err = 0;
    while (err == 0 && first < end) {
        size_t next = wf_pause_next(first, end, most);
        err = move(moves, first, next);
        wf_pause_copied(next - first, moves->size);
        first = next;
    }
    return err;
}

static int gather_piece(size_t first, size_t end, void *arg)
{
    return move_in_pieces(arg, first, end, gather_few);
}

static int scatter_piece(size_t first, size_t end, void *arg)
{
    return move_in_pieces(arg, first, end, scatter_few);
}

static int check(const struct moves *moves, size_t count)
{
    if (wf_array_check(moves->limit, moves->size) != 0) {
        return -EINVAL;
    }
    return wf_array_check(count, moves->size);
}

int weft_gather(const void *from, size_t from_count, size_t size, const size_t *indexes,
                size_t count, void *to, const weft_par_options *options)
{
    wf_pause_call();
    struct moves moves = { from, to, size, indexes, from_count };
    int err = check(&moves, count);
    return err != 0 ? err : weft_for(0, count, gather_piece, &moves, options);
}

int weft_scatter(const void *from, size_t count, size_t size, const size_t *indexes, void *to,
                 size_t to_count, const weft_par_options *options)
{
    wf_pause_call();
    struct moves moves = { from, to, size, indexes, to_count };
    int err = check(&moves, count);
    return err != 0 ? err : weft_for(0, count, scatter_piece, &moves, options);
}
