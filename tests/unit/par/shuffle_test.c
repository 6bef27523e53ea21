/* SPDX-License-Identifier: MIT */
#include "elements.h"
#include "memory.h"

/* Each element has its index in it. */
static uint32_t *create_numbers(size_t count)
{
    uint32_t *numbers = malloc((count + 1) * sizeof *numbers);
    CHECK(numbers != NULL);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (uint32_t)i;
    }
    return numbers;
}

static void check_all_there(const uint32_t *numbers, size_t count)
{
    unsigned char *seen = calloc(count + 1, 1);
    CHECK(seen != NULL);
    for (size_t i = 0; i < count; i++) {
        CHECK_LT(numbers[i], count);
        CHECK_EQ(seen[numbers[i]], 0);
        seen[numbers[i]] = 1;
    }
    free(seen);
}

/* As the numbers were shuffled, so are elements of any size. */
static void check_sizes(const uint32_t *numbers, size_t count, uint64_t seed)
{
    for (size_t k = 0; k < ELEMENT_SIZES; k++) {
        struct elements array = elements_create(RANDOM, count, element_sizes[k]);
        struct elements before = elements_copy(&array);
        size_t scratch_size = weft_array_scratch(count, array.size);
        struct guarded scratch = guarded_create(scratch_size, k * 5);
        weft_par_options options = { .scratch = scratch.at, .scratch_size = scratch_size };
        CHECK_EQ(
            weft_shuffle(array.array.at, count, array.size, seed, k % 2 == 0 ? &options : NULL), 0);
        for (size_t i = 0; i < count; i++) {
            CHECK_EQ(memcmp(element_at(&array, i), element_at(&before, numbers[i]), array.size), 0);
        }
        guarded_destroy(&scratch);
        elements_destroy(&array);
        elements_destroy(&before);
    }
}

static const size_t counts[] = { 0, 1, 2, 3, 10, 1000, 16383, 16384, 20000, 70000 };

enum {
    COUNTS = sizeof counts / sizeof counts[0],
};

/* The orders that the first run has made. */
static uint32_t *orders[COUNTS];

static int check_counts(void *arg)
{
    (void)arg;
    for (size_t k = 0; k < COUNTS; k++) {
        uint32_t *numbers = create_numbers(counts[k]);
        CHECK_EQ(weft_shuffle(numbers, counts[k], sizeof *numbers, 5 + k, NULL), 0);
        if (orders[k] == NULL) {
            check_all_there(numbers, counts[k]);
            check_sizes(numbers, counts[k], 5 + k);
            orders[k] = numbers;
            continue;
        }
        CHECK_EQ(memcmp(numbers, orders[k], counts[k] * sizeof *numbers), 0);
        free(numbers);
    }
    return 0;
}

static void the_order_depends_on_count_and_seed_only(void)
{
    test_run_everywhere(check_counts, NULL);
    for (size_t k = 0; k < COUNTS; k++) {
        free(orders[k]);
    }
}

static void another_seed_makes_another_order(void)
{
    for (size_t k = 5; k < COUNTS; k++) {
        uint32_t *one = create_numbers(counts[k]);
        uint32_t *two = create_numbers(counts[k]);
        CHECK_EQ(weft_shuffle(one, counts[k], sizeof *one, 1, NULL), 0);
        CHECK_EQ(weft_shuffle(two, counts[k], sizeof *two, 2, NULL), 0);
        size_t same = 0;
        for (size_t i = 0; i < counts[k]; i++) {
            same += one[i] == two[i];
        }
        CHECK_LE(same, 20); /* One, on average. */
        free(one);
        free(two);
    }
}

/* --- Chance -------------------------------------------------------------------------------- */

/*
 * Goal:   each order of four elements is as likely as the others.
 * Method: 24 orders, each of which comes 1000 times of 24000, give or take 32: six times
 *         that would be a rare accident. The seeds are fixed, so it is always the same one.
 */
static void each_order_is_equally_likely(void)
{
    unsigned orders_seen[256] = { 0 };
    for (uint64_t seed = 0; seed < 24000; seed++) {
        uint8_t values[4] = { 0, 1, 2, 3 };
        CHECK_EQ(weft_shuffle(values, 4, 1, seed, NULL), 0);
        orders_seen[values[0] << 6 | values[1] << 4 | values[2] << 2 | values[3]]++;
    }
    unsigned different = 0;
    for (unsigned i = 0; i < 256; i++) {
        if (orders_seen[i] != 0) {
            different++;
            CHECK_LE(orders_seen[i], 1200);
            CHECK_GE(orders_seen[i], 800);
        }
    }
    CHECK_EQ(different, 24);
}

/*
 * Goal:   in a large array, too, an element may go anywhere.
 * Method: elements of each 16th of the array are counted in each 16th of the result. On
 *         average there are count / 256 of them, give or take the root of that.
 */
static void elements_of_a_large_array_go_everywhere(void)
{
    enum {
        COUNT = 1 << 17,
    };
    uint32_t *numbers = create_numbers(COUNT);
    CHECK_EQ(weft_shuffle(numbers, COUNT, sizeof *numbers, 99, NULL), 0);
    unsigned seen[16][16] = { { 0 } };
    size_t rising = 0;
    for (size_t i = 0; i < COUNT; i++) {
        seen[i / (COUNT / 16)][numbers[i] / (COUNT / 16)]++;
        rising += i > 0 && numbers[i] > numbers[i - 1];
    }
    for (unsigned i = 0; i < 256; i++) {
        CHECK_LE(seen[i / 16][i % 16], 512 + 6 * 23);
        CHECK_GE(seen[i / 16][i % 16], 512 - 6 * 23);
    }
    /* Neighbours know nothing of each other: half of them rise, give or take 105. */
    CHECK_LE(rising, COUNT / 2 + 700);
    CHECK_GE(rising, COUNT / 2 - 700);
    /* Nor do those that were neighbours: two of 256 are still as near as that. */
    uint32_t *places = create_numbers(COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        places[numbers[i]] = (uint32_t)i;
    }
    size_t near = 0;
    for (size_t i = 1; i < COUNT; i++) {
        near += places[i] - places[i - 1] + COUNT / 256 <= 2 * (COUNT / 256);
    }
    CHECK_LE(near, COUNT / 128 + 6 * 32);
    CHECK_GE(near, COUNT / 128 - 6 * 32);
    free(places);
    free(numbers);
}

/* --- Ends ---------------------------------------------------------------------------------- */

static int stop_before(void *arg)
{
    (void)arg;
    weft_stop stop = { 0 };
    weft_stop_set(&stop);
    weft_par_options options = { .stop = &stop };
    for (size_t k = 3; k < COUNTS; k++) {
        uint32_t *numbers = create_numbers(counts[k]);
        CHECK_EQ(weft_shuffle(numbers, counts[k], sizeof *numbers, 5, &options), WEFT_ECANCELED);
        for (size_t i = 0; i < counts[k]; i++) {
            CHECK_EQ(numbers[i], i);
        }
        free(numbers);
    }
    return 0;
}

static void a_stop_leaves_the_array(void)
{
    test_run_everywhere(stop_before, NULL);
}

static void what_cannot_be_is_refused(void)
{
    uint32_t *numbers = create_numbers(20000);
    char scratch[64];
    weft_par_options options = { .scratch = scratch,
                                 .scratch_size = weft_array_scratch(20000, 4) - 1 };
    CHECK_EQ(weft_shuffle(numbers, 20000, 0, 1, NULL), -EINVAL);
    CHECK_EQ(weft_shuffle(numbers, SIZE_MAX / 2, 4, 1, NULL), -EINVAL);
    CHECK_EQ(weft_shuffle(numbers, 20000, 4, 1, &options), -EINVAL);
    for (size_t i = 0; i < 20000; i++) {
        CHECK_EQ(numbers[i], i);
    }
    CHECK_EQ(weft_shuffle(NULL, 0, 4, 1, NULL), 0);
    free(numbers);
}

static int shuffle_elements(void *arg)
{
    struct elements *elements = arg;
    return weft_shuffle(elements->array.at, elements->count, elements->size, 1, NULL);
}

static void without_memory_nothing_changes(void)
{
    struct elements elements = elements_create(RANDOM, 1000000, 4);
    struct elements before = elements_copy(&elements);
    CHECK_EQ(result_without_memory(shuffle_elements, &elements), -ENOMEM);
    elements_check_equal(&elements, &before);
    elements_destroy(&elements);
    elements_destroy(&before);
}

TEST_MAIN({
    TEST_DEBUG(without_memory_nothing_changes),
    TEST(the_order_depends_on_count_and_seed_only),
    TEST(another_seed_makes_another_order),
    TEST(each_order_is_equally_likely),
    TEST(elements_of_a_large_array_go_everywhere),
    TEST(a_stop_leaves_the_array),
    TEST(what_cannot_be_is_refused),
})
