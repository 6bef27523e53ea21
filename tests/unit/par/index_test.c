/* SPDX-License-Identifier: MIT */
#include "elements.h"

/* Makes a permutation of 0 to limit - 1, cut off or repeated to get count indexes. 7919 is a
 * prime that divides none of the counts. */
static size_t *create_indexes(size_t count, size_t limit)
{
    size_t *indexes = malloc((count + 1) * sizeof *indexes);
    CHECK(indexes != NULL);
    for (size_t i = 0; i < count; i++) {
        indexes[i] = (i * 7919 + 3) % limit;
    }
    return indexes;
}

static void check_gather(const struct elements *from, size_t count)
{
    if (from->count == 0) {
        return;
    }
    size_t size = from->size;
    size_t *indexes = create_indexes(count, from->count);
    struct guarded to = guarded_create(count * size, 1);
    CHECK_EQ(weft_gather(from->array.at, from->count, size, indexes, count, to.at, NULL), 0);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(memcmp(to.at + i * size, element_at(from, indexes[i]), size), 0);
    }
    guarded_destroy(&to);
    free(indexes);
}

/* Scatters to every second element of an array of 2 * count + 1 elements. */
static void check_scatter(const struct elements *from)
{
    size_t count = from->count;
    size_t size = from->size;
    size_t *indexes = create_indexes(count, count);
    for (size_t i = 0; i < count; i++) {
        indexes[i] *= 2;
    }
    struct guarded to = guarded_create((2 * count + 1) * size, 1);
    CHECK_EQ(weft_scatter(from->array.at, count, size, indexes, to.at, 2 * count + 1, NULL), 0);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(memcmp(to.at + indexes[i] * size, element_at(from, i), size), 0);
        CHECK_EQ(to.at[(indexes[i] + 1) * size], 0xA5);
        CHECK_EQ(to.at[(indexes[i] + 2) * size - 1], 0xA5);
    }
    guarded_destroy(&to);
    free(indexes);
}

static void check_input(enum pattern pattern, size_t count, size_t size)
{
    struct elements from = elements_create(pattern, count, size);
    check_gather(&from, count);
    check_gather(&from, count / 2);
    check_gather(&from, 2 * count + 5);
    check_scatter(&from);
    elements_destroy(&from);
}

static int check_inputs(void *arg)
{
    (void)arg;
    for_some_inputs(check_input);
    return 0;
}

static void gather_and_scatter_move_elements_by_index(void)
{
    test_run_everywhere(check_inputs, NULL);
}

/* --- Early ends ---------------------------------------------------------------------------- */

enum {
    COUNT = 10000,
};

static int use_wrong_indexes(void *arg)
{
    struct elements *elements = arg;
    static const size_t wrong[] = { COUNT, COUNT + 1, SIZE_MAX / 4, SIZE_MAX };
    struct guarded to = guarded_create(COUNT * elements->size, 0);
    size_t *indexes = create_indexes(COUNT, COUNT);
    for (size_t i = 0; i < 8; i++) {
        size_t at = i * COUNT / 8 + i;
        size_t before = indexes[at];
        indexes[at] = wrong[i % 4];
        CHECK_EQ(
            weft_gather(elements->array.at, COUNT, elements->size, indexes, COUNT, to.at, NULL),
            -ERANGE);
        CHECK_EQ(
            weft_scatter(elements->array.at, COUNT, elements->size, indexes, to.at, COUNT, NULL),
            -ERANGE);
        guarded_check(&to);
        indexes[at] = before;
    }
    CHECK_EQ(weft_gather(NULL, 0, 4, indexes, 1, to.at, NULL), -ERANGE);
    CHECK_EQ(weft_scatter(elements->array.at, 1, 4, indexes, NULL, 0, NULL), -ERANGE);
    free(indexes);
    guarded_destroy(&to);
    return 0;
}

static void too_large_index_returns_erange(void)
{
    for (size_t k = 0; k < ELEMENT_SIZES; k += 2) {
        struct elements elements = elements_create(RANDOM, COUNT, element_sizes[k]);
        test_run_everywhere(use_wrong_indexes, &elements);
        elements_destroy(&elements);
    }
}

static int stop_before(void *arg)
{
    (void)arg;
    weft_stop stop = { 0 };
    weft_stop_set(&stop);
    weft_par_options options = { .stop = &stop };
    static const size_t indexes[2] = { 1, 0 };
    static const int from[2] = { 5, 6 };
    int to[2] = { 7, 7 };
    CHECK_EQ(weft_gather(from, 2, 4, indexes, 2, to, &options), WEFT_ECANCELED);
    CHECK_EQ(weft_scatter(from, 2, 4, indexes, to, 2, &options), WEFT_ECANCELED);
    CHECK_EQ(to[0], 7);
    CHECK_EQ(to[1], 7);
    return 0;
}

static void cancel_flag_ends_call(void)
{
    test_run_everywhere(stop_before, NULL);
}

static void invalid_arguments_are_rejected(void)
{
    static const size_t indexes[1] = { 0 };
    int from[1] = { 1 };
    int to[1] = { 2 };
    CHECK_EQ(weft_gather(from, 1, 0, indexes, 1, to, NULL), -EINVAL);
    CHECK_EQ(weft_scatter(from, 1, 0, indexes, to, 1, NULL), -EINVAL);
    CHECK_EQ(weft_gather(from, SIZE_MAX / 2, 4, indexes, 1, to, NULL), -EINVAL);
    CHECK_EQ(weft_gather(from, 1, 4, indexes, SIZE_MAX / 2, to, NULL), -EINVAL);
    CHECK_EQ(weft_scatter(from, SIZE_MAX / 2, 4, indexes, to, 1, NULL), -EINVAL);
    CHECK_EQ(weft_scatter(from, 1, 4, indexes, to, SIZE_MAX / 2, NULL), -EINVAL);
    CHECK_EQ(to[0], 2);
    CHECK_EQ(weft_gather(NULL, 0, 4, NULL, 0, NULL, NULL), 0);
    CHECK_EQ(weft_scatter(NULL, 0, 4, NULL, NULL, 0, NULL), 0);
}

TEST_MAIN({
    TEST(gather_and_scatter_move_elements_by_index),
    TEST(too_large_index_returns_erange),
    TEST(cancel_flag_ends_call),
    TEST(invalid_arguments_are_rejected),
})
