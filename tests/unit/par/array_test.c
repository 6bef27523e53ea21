/* SPDX-License-Identifier: MIT */
#include "par/array.h"

#include "inputs.h"

static void impossible_arrays_are_rejected(void)
{
    CHECK_EQ(wf_array_check(0, 1), 0);
    CHECK_EQ(wf_array_check(100, 100), 0);
    CHECK_EQ(wf_array_check(PTRDIFF_MAX, 1), 0);
    CHECK_EQ(wf_array_check(0, 0), -EINVAL);
    CHECK_EQ(wf_array_check(100, 0), -EINVAL);
    CHECK_EQ(wf_array_check((size_t)PTRDIFF_MAX + 1, 1), -EINVAL);
    CHECK_EQ(wf_array_check(SIZE_MAX / 2 + 1, 2), -EINVAL);
}

static void scratch_is_enough_for_any_function_and_grows(void)
{
    for (size_t size = 1; size <= 100; size += 33) {
        size_t before = 0;
        for (size_t count = 0; count < 1000000; count = 2 * count + 1) {
            size_t scratch = weft_array_scratch(count, size);
            CHECK_GE(scratch, wf_partition_scratch(count, size));
            CHECK_GE(scratch, wf_shuffle_scratch(count, size));
            CHECK_GE(scratch, before);
            before = scratch;
        }
    }
    CHECK(weft_array_scratch(SIZE_MAX / 2, 4) == SIZE_MAX);
    CHECK(weft_array_scratch(SIZE_MAX, 1) == SIZE_MAX);
}

static void too_small_scratch_is_rejected(void)
{
    char scratch[8];
    size_t enough = weft_array_scratch(1000, 4);
    weft_par_options options = { .scratch = scratch, .scratch_size = enough };
    CHECK_EQ(wf_array_check_scratch(1000, 4, &options), 0);
    CHECK_EQ(wf_array_check_scratch(1000, 0, &options), -EINVAL);
    CHECK_EQ(wf_array_check_scratch(SIZE_MAX / 2, 4, NULL), -EINVAL);
    options.scratch_size = enough - 1;
    CHECK_EQ(wf_array_check_scratch(1000, 4, &options), -EINVAL);
    options.scratch = NULL;
    CHECK_EQ(wf_array_check_scratch(1000, 4, &options), 0);
    CHECK_EQ(wf_array_check_scratch(1000, 4, NULL), 0);
}

TEST_MAIN({
    TEST(impossible_arrays_are_rejected),
    TEST(scratch_is_enough_for_any_function_and_grows),
    TEST(too_small_scratch_is_rejected),
})
