/* SPDX-License-Identifier: MIT */
#include "par/options.h"

#include "test.h"

static void array_larger_than_ptrdiff_max_does_not_fit(void)
{
    CHECK(wf_options_fit(0, 1));
    CHECK(wf_options_fit(PTRDIFF_MAX, 1));
    CHECK(wf_options_fit(PTRDIFF_MAX / 8, 8));
    CHECK(!wf_options_fit((size_t)PTRDIFF_MAX + 1, 1));
    CHECK(!wf_options_fit(PTRDIFF_MAX / 8 + 1, 8));
    CHECK(!wf_options_fit(SIZE_MAX, SIZE_MAX));
    CHECK(!wf_options_fit(0, 0));
}

static void block_length_is_bounded(void)
{
    CHECK_EQ(wf_options_for_blocks(0, NULL).piece, WF_OPTIONS_BLOCK_MIN);
    CHECK_EQ(wf_options_for_blocks(100, NULL).piece, WF_OPTIONS_BLOCK_MIN);
    CHECK_EQ(wf_options_for_blocks(5000 * WF_BLOCKS_WANTED, NULL).piece, 5000);
    CHECK_EQ(wf_options_for_blocks(SIZE_MAX, NULL).piece, WF_BLOCK_LENGTH_MAX);
}

static void given_options_are_passed_on(void)
{
    weft_stop stop = { 0 };
    char memory[1];
    weft_par_options options = {
        .piece = 7, .stop = &stop, .scratch = memory, .scratch_size = sizeof memory
    };
    weft_par_options blocks = wf_options_for_blocks(1000, &options);
    CHECK_EQ(blocks.piece, 7);
    CHECK(blocks.stop == &stop);

    char here[WF_OPTIONS_HERE];
    weft_par_options with = wf_options_with_scratch(10, here, &options);
    CHECK(with.scratch == memory);
    CHECK_EQ(with.scratch_size, 1);
    CHECK(with.stop == &stop);
}

static void local_scratch_is_used_if_large_enough(void)
{
    weft_stop stop = { 0 };
    char here[WF_OPTIONS_HERE];
    size_t most = WF_OPTIONS_HERE - (WF_SCRATCH_ALIGN - 1);
    CHECK(wf_options_with_scratch(0, here, NULL).scratch == here);
    CHECK(wf_options_with_scratch(most, here, NULL).scratch == here);
    CHECK(wf_options_with_scratch(most + 1, here, NULL).scratch == NULL);
    CHECK(wf_options_with_scratch(SIZE_MAX, here, NULL).scratch == NULL);
    weft_par_options options = { .stop = &stop };
    CHECK(wf_options_with_scratch(100, here, &options).stop == &stop);
}

TEST_MAIN({
    TEST(array_larger_than_ptrdiff_max_does_not_fit),
    TEST(block_length_is_bounded),
    TEST(given_options_are_passed_on),
    TEST(local_scratch_is_used_if_large_enough),
})
