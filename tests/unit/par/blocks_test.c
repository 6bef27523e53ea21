/* SPDX-License-Identifier: MIT */
#include "par/blocks.h"

#include <stdint.h>
#include <string.h>

#include "test.h"

static void check_blocks(size_t first, size_t end, const weft_par_options *options)
{
    struct wf_blocks blocks = wf_blocks_of(first, end, options);
    size_t at = first;
    for (size_t i = 0; i < blocks.count; i++) {
        CHECK_EQ(wf_blocks_first(&blocks, i), at);
        CHECK_LT(at, wf_blocks_end(&blocks, i));
        at = wf_blocks_end(&blocks, i);
    }
    CHECK_EQ(at, end);
}

static void blocks_are_contiguous(void)
{
    for (size_t count = 0; count < 3000; count += 7) {
        check_blocks(11, 11 + count, NULL);
        check_blocks(0, count, &(weft_par_options){ .piece = 1 + count % 13 });
    }
    check_blocks(0, 100000000, NULL);
    check_blocks(SIZE_MAX - 1000, SIZE_MAX, NULL);
    check_blocks(SIZE_MAX - 1000, SIZE_MAX, &(weft_par_options){ .piece = 999 });
}

static void number_and_length_of_blocks_are_bounded(void)
{
    CHECK_EQ(wf_blocks_of(3, 3, NULL).count, 0);
    CHECK_EQ(wf_blocks_of(5, 3, NULL).count, 0);
    CHECK_EQ(wf_blocks_of(0, 100, NULL).count, 100);
    CHECK_GE(wf_blocks_of(0, 100000, NULL).count, WF_BLOCKS_WANTED);
    CHECK_EQ(wf_blocks_of(0, 100000000, NULL).length, WF_BLOCK_LENGTH_MAX);
    weft_par_options options = { .piece = 50000 };
    CHECK_EQ(wf_blocks_of(0, 100000, &options).count, 2);
}

static void shares_differ_by_at_most_one(void)
{
    for (size_t count = 0; count < 30; count++) {
        for (size_t shares = 1; shares < 12; shares++) {
            CHECK_EQ(wf_share_begin(count, shares, 0), 0);
            CHECK_EQ(wf_share_begin(count, shares, shares), count);
            for (size_t i = 0; i < shares; i++) {
                size_t length =
                    wf_share_begin(count, shares, i + 1) - wf_share_begin(count, shares, i);
                CHECK_GE(length, count / shares);
                CHECK_LE(length, count / shares + (count % shares != 0));
            }
        }
    }
}

static void values_do_not_overlap(void)
{
    for (size_t size = 1; size < 200; size += 3) {
        static struct wf_values values;
        for (size_t count = 1; count < 300; count += 100) {
            CHECK_EQ(wf_values_init(&values, count, size, 3 * count, NULL), 0);
            for (size_t i = 0; i < count; i++) {
                memset(wf_values_at(&values, i), (int)(i % 200), size);
            }
            memset(values.beside, 255, 3 * count);
            for (size_t i = 0; i < count; i++) {
                const unsigned char *value = wf_values_at(&values, i);
                CHECK_EQ((uintptr_t)value % (size < 16 ? 8 : 16), 0);
                CHECK_EQ(value[0], i % 200);
                CHECK_EQ(value[size - 1], i % 200);
            }
            wf_values_fini(&values);
        }
    }
}

static void too_many_values_return_enomem(void)
{
    static struct wf_values values;
    CHECK_EQ(wf_values_init(&values, SIZE_MAX / 4, 64, 0, NULL), -ENOMEM);
    CHECK_EQ(wf_values_init(&values, 1, 64, SIZE_MAX - 64, NULL), -ENOMEM);
}

TEST_MAIN({
    TEST(blocks_are_contiguous),
    TEST(number_and_length_of_blocks_are_bounded),
    TEST(shares_differ_by_at_most_one),
    TEST(values_do_not_overlap),
    TEST(too_many_values_return_enomem),
})
