/* SPDX-License-Identifier: MIT */
#include "par/scratch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static void scratch_size_overflow_gives_size_max(void)
{
    CHECK(wf_scratch_add(0, SIZE_MAX, 2) == SIZE_MAX);
    CHECK(wf_scratch_add(0, SIZE_MAX, 1) == SIZE_MAX);
    CHECK(wf_scratch_add(SIZE_MAX, 1, 1) == SIZE_MAX);
    CHECK(wf_scratch_add(wf_scratch_add(0, SIZE_MAX / 2, 1), SIZE_MAX / 2, 1) == SIZE_MAX);
    CHECK(wf_scratch_with_slack(SIZE_MAX) == SIZE_MAX);
    struct wf_scratch scratch;
    CHECK_EQ(wf_scratch_init(&scratch, SIZE_MAX, NULL), -ENOMEM);
    if (!test_is_sanitized()) { /* sanitizers report such a call */
        CHECK_EQ(wf_scratch_init(&scratch, (size_t)PTRDIFF_MAX - 100, NULL), -ENOMEM);
    }
}

static void take_pieces(struct wf_scratch *scratch, const char *begin, const char *end)
{
    static const size_t counts[] = { 1, 100, 3, 64, 0, 7 };
    const char *last = begin;
    for (size_t i = 0; i < 6; i++) {
        char *piece = wf_scratch_take(scratch, counts[i], 9);
        CHECK_EQ((uintptr_t)piece % WF_SCRATCH_ALIGN, 0);
        CHECK(piece >= last);
        memset(piece, (int)i, counts[i] * 9);
        last = piece + counts[i] * 9;
        CHECK(last <= end);
    }
}

static size_t sum_of_pieces(void)
{
    static const size_t counts[] = { 1, 100, 3, 64, 0, 7 };
    size_t sum = 0;
    for (size_t i = 0; i < 6; i++) {
        sum = wf_scratch_add(sum, counts[i], 9);
    }
    return sum;
}

static void pieces_fit_into_caller_scratch_at_any_address(void)
{
    size_t size = wf_scratch_with_slack(sum_of_pieces());
    for (size_t offset = 0; offset < WF_SCRATCH_ALIGN; offset++) {
        char *memory = malloc(size + offset);
        CHECK(memory != NULL);
        weft_par_options options = { .scratch = memory + offset, .scratch_size = size };
        struct wf_scratch scratch;
        CHECK_EQ(wf_scratch_init(&scratch, sum_of_pieces(), &options), 0);
        take_pieces(&scratch, memory + offset, memory + offset + size);
        wf_scratch_fini(&scratch);

        options.scratch_size--;
        CHECK_EQ(wf_scratch_init(&scratch, sum_of_pieces(), &options), -EINVAL);
        free(memory);
    }
}

static void pieces_fit_into_allocated_scratch(void)
{
    weft_par_options defaults = { .scratch = NULL, .scratch_size = 0 };
    for (unsigned i = 0; i < 2; i++) {
        struct wf_scratch scratch;
        CHECK_EQ(wf_scratch_init(&scratch, sum_of_pieces(), i == 0 ? NULL : &defaults), 0);
        const char *begin = scratch.owned;
        take_pieces(&scratch, begin, begin + sum_of_pieces());
        wf_scratch_fini(&scratch);
    }
}

/* Sizes a page or two more or less than a block. */
static void touch_stays_inside_piece(void)
{
    for (size_t size = 1; size < 1100000; size = size * 2 + 4095) {
        unsigned char *memory = malloc(size + 2);
        CHECK(memory != NULL);
        memory[0] = memory[size + 1] = 255;
        wf_scratch_touch(memory + 1, size);
        CHECK_EQ(memory[0], 255);
        CHECK_EQ(memory[size + 1], 255);
        free(memory);
    }
}

TEST_MAIN({
    TEST(touch_stays_inside_piece),
    TEST(scratch_size_overflow_gives_size_max),
    TEST(pieces_fit_into_caller_scratch_at_any_address),
    TEST(pieces_fit_into_allocated_scratch),
})
