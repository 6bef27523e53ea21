/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include "inputs.h"
#include "memory.h"

/* A space that counts the visits of each cell. */
struct space {
    size_t planes;
    size_t rows;
    size_t columns;
    size_t cells_max; /* of a tile; 0: unlimited */
    _Atomic(unsigned char) *seen;
    _Atomic(uint64_t) tiles;
};

static size_t cells_of(const weft_tile *tile)
{
    return (tile->end_plane - tile->first_plane) * (tile->end_row - tile->first_row) *
           (tile->end_column - tile->first_column);
}

static int count_each(const weft_tile *tile, void *arg)
{
    struct space *space = arg;
    CHECK_LE(tile->end_plane, space->planes);
    CHECK_LE(tile->end_row, space->rows);
    CHECK_LE(tile->end_column, space->columns);
    CHECK(cells_of(tile) > 0);
    CHECK(space->cells_max == 0 || cells_of(tile) <= space->cells_max);
    for (size_t plane = tile->first_plane; plane < tile->end_plane; plane++) {
        for (size_t row = tile->first_row; row < tile->end_row; row++) {
            for (size_t column = tile->first_column; column < tile->end_column; column++) {
                size_t cell = (plane * space->rows + row) * space->columns + column;
                atomic_fetch_add_explicit(&space->seen[cell], 1, memory_order_relaxed);
            }
        }
    }
    atomic_fetch_add(&space->tiles, 1);
    return 0;
}

/* Returns the number of tiles. */
static uint64_t check_space(size_t planes, size_t rows, size_t columns, size_t piece)
{
    size_t cells = planes * rows * columns;
    struct space space = { planes, rows, columns, piece, calloc(cells + 1, 1), 0 };
    CHECK(space.seen != NULL);
    weft_par_options options = { .piece = piece };
    CHECK_EQ(planes == 1 ? weft_for_2d(rows, columns, count_each, &space, &options)
                         : weft_for_3d(planes, rows, columns, count_each, &space, &options),
             0);
    for (size_t i = 0; i < cells; i++) {
        CHECK_EQ(space.seen[i], 1);
    }
    free((void *)space.seen);
    return space.tiles;
}

static int check_spaces(void *arg)
{
    (void)arg;
    static const size_t sides[] = { 0, 1, 2, 3, 17, 64, 100 };
    for (size_t i = 0; i < 7; i++) {
        for (size_t k = 0; k < 7; k++) {
            check_space(1, sides[i], sides[k], 0);
            check_space(1, sides[i], sides[k], 1 + sides[i] * 3);
            check_space(sides[k], sides[i], sides[(i + k) % 7], 0);
            check_space(sides[k], sides[(i + k) % 6], sides[i], 1 + sides[k] * sides[i] / 3);
        }
    }
    check_space(1, 1, 100000, 0);
    check_space(1, 100000, 1, 77);
    check_space(1, 1000, 300, 0);
    return 0;
}

static void each_cell_is_visited_once(void)
{
    test_run_everywhere(check_spaces, NULL);
}

/* Cells may be expensive, so there are tiles for many workers. Cells may also be cheap, so
 * tiles are not too small. */
static void tiles_are_neither_few_nor_small(void)
{
    CHECK_GE(check_space(1, 32, 32, 0), 256);
    CHECK_GE(check_space(1, 1000, 1000, 0), 256);
    CHECK_LE(check_space(1, 1000, 1000, 0), 2048);
    CHECK_LE(check_space(100, 100, 100, 0), 4096);
}

static int check_tile_is_nearly_square(const weft_tile *tile, void *arg)
{
    (void)arg;
    size_t rows = tile->end_row - tile->first_row;
    size_t columns = tile->end_column - tile->first_column;
    CHECK_LE(rows, 2 * columns);
    CHECK_LE(columns, 2 * rows);
    return 0;
}

static void longest_side_is_split_first(void)
{
    CHECK_EQ(weft_for_2d(1 << 14, 1 << 8, check_tile_is_nearly_square, NULL, NULL), 0);
    CHECK_EQ(weft_for_2d(1 << 8, 1 << 14, check_tile_is_nearly_square, NULL, NULL), 0);
}

/* --- Early ends -------------------------------------------------------------------------- */

static _Atomic(uint64_t) calls;

static int fail_at(const weft_tile *tile, void *arg)
{
    size_t bad = *(const size_t *)arg;
    atomic_fetch_add(&calls, 1);
    return bad >= tile->first_row && bad < tile->end_row ? -77 : 0;
}

static int fail_after_ten(const weft_tile *tile, void *arg)
{
    (void)tile;
    (void)arg;
    return atomic_fetch_add(&calls, 1) >= 10 ? -78 : 0;
}

static weft_stop stop;

static int cancel_after_ten(const weft_tile *tile, void *arg)
{
    (void)tile;
    (void)arg;
    if (atomic_fetch_add(&calls, 1) >= 10) {
        weft_stop_set(&stop);
    }
    return 0;
}

static int end_loops(void *arg)
{
    (void)arg;
    for (size_t bad = 0; bad < 100; bad += 9) {
        CHECK_EQ(weft_for_2d(100, 100, fail_at, &bad, NULL), -77);
        CHECK_EQ(weft_for_3d(10, 100, 10, fail_at, &bad, NULL), -77);
    }
    weft_par_options options = { .piece = 1 };
    atomic_store(&calls, 0);
    CHECK_EQ(weft_for_2d(300, 300, fail_after_ten, NULL, &options), -78);
    CHECK_LT(atomic_load(&calls), 90000);

    stop = (weft_stop){ 0 };
    options.stop = &stop;
    atomic_store(&calls, 0);
    CHECK_EQ(weft_for_2d(300, 300, cancel_after_ten, NULL, &options), WEFT_ECANCELED);
    CHECK_LT(atomic_load(&calls), 90000);
    return 0;
}

static void errors_and_cancels_end_call(void)
{
    test_run_everywhere(end_loops, NULL);
}

static void cell_count_overflow_is_rejected(void)
{
    atomic_store(&calls, 0);
    CHECK_EQ(weft_for_2d(SIZE_MAX, 2, cancel_after_ten, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_for_2d(SIZE_MAX / 2 + 1, 2, cancel_after_ten, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_for_3d(1 << 30, 1 << 30, 1 << 30, cancel_after_ten, NULL, NULL), -EINVAL);
    CHECK_EQ(weft_for_3d(SIZE_MAX, SIZE_MAX, 0, cancel_after_ten, NULL, NULL), 0);
    CHECK_EQ(weft_for_3d(0, SIZE_MAX, SIZE_MAX, cancel_after_ten, NULL, NULL), 0);
    CHECK_EQ(atomic_load(&calls), 0);
    /* A loop over the maximum number of cells starts. */
    CHECK_EQ(weft_for_2d(SIZE_MAX, 1, fail_at, &(size_t){ 0 }, NULL), -77);
    CHECK_EQ(weft_for_2d(UINT32_MAX, UINT32_MAX, fail_at, &(size_t){ 0 }, NULL), -77);
}

TEST_MAIN({
    TEST(each_cell_is_visited_once),
    TEST(tiles_are_neither_few_nor_small),
    TEST(longest_side_is_split_first),
    TEST(errors_and_cancels_end_call),
    TEST(cell_count_overflow_is_rejected),
})
