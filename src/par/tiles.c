/* SPDX-License-Identifier: MIT */
/*
 * tiles.c - parallel loops over 2D and 3D tiles.
 *
 * One tile shape is chosen for the whole space. The tiles are numbered, and a loop over their
 * numbers does the rest: it measures, splits and handles cancellation. So a tile need not be
 * worth a fork of its own, and there can be enough tiles even if cells are expensive.
 */
#include <errno.h>

#include <weft/loop.h>

#include "par/pause.h"
#include "par/stop.h"

enum {
    TILES_WANTED = 512,     /* enough for many workers */
    TILE_CELLS_MAX = 16384, /* they fit into a cache, with a cell or two per neighbor */
    SIDES = 3,
};

struct tiles {
    weft_tile_fn body;
    void *arg;
    size_t space[SIDES]; /* planes, rows, columns */
    size_t tile[SIDES];  /* of one tile; the last tiles of a side may be shorter */
    size_t count[SIDES]; /* of tiles along each side */
};

/* Halves the longest side until at most cells_max cells are left. */
static void choose_shape(struct tiles *tiles, size_t cells_max)
{
    size_t *tile = tiles->tile;
    for (size_t i = 0; i < SIDES; i++) {
        tile[i] = tiles->space[i];
    }
    while (tile[0] * tile[1] * tile[2] > cells_max) {
        size_t longest = 0;
        for (size_t i = 1; i < SIDES; i++) {
            /* Among equal sides the first: neighbors in a row are adjacent in memory. */
            longest = tile[i] > tile[longest] ? i : longest;
        }
        tile[longest] -= tile[longest] / 2;
    }
    for (size_t i = 0; i < SIDES; i++) {
        tiles->count[i] = (tiles->space[i] - 1) / tile[i] + 1;
    }
}

static size_t end_of(const struct tiles *tiles, size_t side, size_t first)
{
    size_t left = tiles->space[side] - first;
    return first + (left < tiles->tile[side] ? left : tiles->tile[side]);
}

static int run_tile(const struct tiles *tiles, size_t number)
{
    size_t columns = tiles->count[2];
    size_t rows = tiles->count[1];
    weft_tile tile = {
        .first_plane = number / columns / rows * tiles->tile[0],
        .first_row = number / columns % rows * tiles->tile[1],
        .first_column = number % columns * tiles->tile[2],
    };
    tile.end_plane = end_of(tiles, 0, tile.first_plane);
    tile.end_row = end_of(tiles, 1, tile.first_row);
    tile.end_column = end_of(tiles, 2, tile.first_column);
    return tiles->body(&tile, tiles->arg);
}

static int run_tiles(size_t first, size_t end, void *arg)
{
    int err = 0;
    for (size_t number = first; err == 0 && number < end; number++) {
        err = run_tile(arg, number);
        wf_pause(1);
    }
    return err;
}

int weft_for_3d(size_t planes, size_t rows, size_t columns, weft_tile_fn body, void *arg,
                const weft_par_options *options)
{
    wf_pause_call();
    struct tiles tiles = { .body = body, .arg = arg, .space = { planes, rows, columns } };
    weft_par_options inner = { .stop = wf_stop_of(options) };
    size_t cells = 0;
    if (planes != 0 && rows != 0 && columns != 0) {
        if (__builtin_mul_overflow(planes, rows, &cells) ||
            __builtin_mul_overflow(cells, columns, &cells)) {
            return -EINVAL;
        }
        size_t most = cells / TILES_WANTED;
        most = most < TILE_CELLS_MAX ? most : TILE_CELLS_MAX;
        if (options != NULL && options->piece != 0) {
            most = options->piece;
        }
        choose_shape(&tiles, most > 0 ? most : 1);
    }
    size_t count = tiles.count[0] * tiles.count[1] * tiles.count[2];
    return weft_for(0, count, run_tiles, &tiles, &inner);
}

int weft_for_2d(size_t rows, size_t columns, weft_tile_fn body, void *arg,
                const weft_par_options *options)
{
    return weft_for_3d(1, rows, columns, body, arg, options);
}
