/* SPDX-License-Identifier: MIT */
#include "elements.h"

static void check_reverse(struct elements *array)
{
    struct elements wanted = elements_copy(array);
    for (size_t i = 0; i < array->count; i++) {
        memcpy(element_at(&wanted, array->count - 1 - i), element_at(array, i), array->size);
    }
    CHECK_EQ(weft_reverse(array->array.at, array->count, array->size, NULL), 0);
    elements_check_equal(array, &wanted);
    elements_destroy(&wanted);
}

static void check_rotate(struct elements *array, size_t by)
{
    struct elements wanted = elements_copy(array);
    for (size_t i = 0; i < array->count; i++) {
        memcpy(element_at(&wanted, i), element_at(array, (i + by % array->count) % array->count),
               array->size);
    }
    CHECK_EQ(weft_rotate(array->array.at, array->count, array->size, by, NULL), 0);
    elements_check_equal(array, &wanted);
    elements_destroy(&wanted);
}

static void check_input(enum pattern pattern, size_t count, size_t size)
{
    struct elements array = elements_create(pattern, count, size);
    check_reverse(&array);
    check_rotate(&array, 0);
    check_rotate(&array, 1);
    check_rotate(&array, count / 3);
    check_rotate(&array, count);
    check_rotate(&array, SIZE_MAX);
    check_rotate(&array, count - (count > 0));
    elements_destroy(&array);
}

static int check_inputs(void *arg)
{
    (void)arg;
    for_some_inputs(check_input);
    return 0;
}

static void elements_are_reversed_and_rotated(void)
{
    test_run_everywhere(check_inputs, NULL);
}

static void large_elements_are_reversed_and_rotated(void)
{
    check_input(RANDOM, 100, 64);
    check_input(RANDOM, 101, 1000);
    check_input(RANDOM, 17, 4096 + 9);
}

/* --- Early ends ---------------------------------------------------------------------------- */

static int stop_before(void *arg)
{
    (void)arg;
    weft_stop stop = { 0 };
    weft_stop_set(&stop);
    weft_par_options options = { .stop = &stop };
    int values[3] = { 1, 2, 3 };
    CHECK_EQ(weft_reverse(values, 3, sizeof *values, &options), WEFT_ECANCELED);
    CHECK_EQ(weft_rotate(values, 3, sizeof *values, 1, &options), WEFT_ECANCELED);
    CHECK_EQ(values[0], 1);
    CHECK_EQ(values[1], 2);
    return 0;
}

static void cancel_flag_ends_call(void)
{
    test_run_everywhere(stop_before, NULL);
}

static void invalid_arguments_are_rejected(void)
{
    int value = 1;
    CHECK_EQ(weft_reverse(&value, 1, 0, NULL), -EINVAL);
    CHECK_EQ(weft_rotate(&value, 1, 0, 1, NULL), -EINVAL);
    CHECK_EQ(weft_reverse(&value, SIZE_MAX / 2, 4, NULL), -EINVAL);
    CHECK_EQ(weft_rotate(&value, SIZE_MAX / 2, 4, 1, NULL), -EINVAL);
    CHECK_EQ(weft_reverse(NULL, 0, 4, NULL), 0);
    CHECK_EQ(weft_rotate(NULL, 0, 4, 5, NULL), 0);
}

TEST_MAIN({
    TEST(elements_are_reversed_and_rotated),
    TEST(large_elements_are_reversed_and_rotated),
    TEST(cancel_flag_ends_call),
    TEST(invalid_arguments_are_rejected),
})
