/* SPDX-License-Identifier: MIT */
#include "elements.h"
#include "memory.h"

/* Each element holds its index. */
static uint32_t *create_numbers(size_t count)
{
    uint32_t *numbers = malloc((count + 1) * sizeof *numbers);
    CHECK(numbers != NULL);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (uint32_t)i;
    }
    return numbers;
}

static void check_permutation(const uint32_t *numbers, size_t count)
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

/* Elements of any size are shuffled to the same order as the numbers. */
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

/* Orders of the first run. */
static uint32_t *orders[COUNTS];

static int check_counts(void *arg)
{
    (void)arg;
    for (size_t k = 0; k < COUNTS; k++) {
        uint32_t *numbers = create_numbers(counts[k]);
        CHECK_EQ(weft_shuffle(numbers, counts[k], sizeof *numbers, 5 + k, NULL), 0);
        if (orders[k] == NULL) {
            check_permutation(numbers, counts[k]);
            check_sizes(numbers, counts[k], 5 + k);
            orders[k] = numbers;
            continue;
        }
        CHECK_EQ(memcmp(numbers, orders[k], counts[k] * sizeof *numbers), 0);
        free(numbers);
    }
    return 0;
}

static void order_depends_only_on_count_and_seed(void)
{
    test_run_everywhere(check_counts, NULL);
    for (size_t k = 0; k < COUNTS; k++) {
        free(orders[k]);
    }
}

static void other_seed_gives_other_order(void)
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
        CHECK_LE(same, 20); /* 1 on average. */
        free(one);
        free(two);
    }
}

/* --- Randomness ---------------------------------------------------------------------------- */

/*
 * Goal:   all orders of four elements are equally likely.
 * Method: each of the 24 orders comes 1000 times in 24000, give or take 32. Six times that
 *         would be a rare accident. The seeds are fixed, so the outcome is always the same.
 */
static void all_orders_are_equally_likely(void)
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
 * Goal:   an element of a large array, too, may go anywhere.
 * Method: count the elements of each 16th of the array in each 16th of the result. The average
 *         is count / 256, give or take its square root.
 */
static void elements_of_large_array_spread_evenly(void)
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
    /* Adjacent elements are independent: half of the pairs rise, give or take 105. */
    CHECK_LE(rising, COUNT / 2 + 700);
    CHECK_GE(rising, COUNT / 2 - 700);
    /* Elements that were adjacent are independent, too: 2 of 256 pairs are still this close. */
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

/* --- Early ends ---------------------------------------------------------------------------- */

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

static void cancel_flag_leaves_array_unchanged(void)
{
    test_run_everywhere(stop_before, NULL);
}

static void invalid_arguments_are_rejected(void)
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

static void out_of_memory_leaves_array_unchanged(void)
{
    struct elements elements = elements_create(RANDOM, 1000000, 4);
    struct elements before = elements_copy(&elements);
    CHECK_EQ(result_without_memory(shuffle_elements, &elements), -ENOMEM);
    elements_check_equal(&elements, &before);
    elements_destroy(&elements);
    elements_destroy(&before);
}

TEST_MAIN({
    TEST_DEBUG(out_of_memory_leaves_array_unchanged),
    TEST(order_depends_only_on_count_and_seed),
    TEST(other_seed_gives_other_order),
    TEST(all_orders_are_equally_likely),
    TEST(elements_of_large_array_spread_evenly),
    TEST(cancel_flag_leaves_array_unchanged),
    TEST(invalid_arguments_are_rejected),
})
