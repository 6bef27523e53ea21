/* SPDX-License-Identifier: MIT */
#include "par/sample.h"

#include "inputs.h"

/* --- Sorts with an inlined comparison -------------------------------------------------- */

struct point {
    int32_t x;
    int32_t y;
    uint32_t tag;
};

static inline bool is_before(const struct point *a, const struct point *b)
{
    return a->x != b->x ? a->x < b->x : a->y < b->y;
}

#define SMALLER(a, b) (*(a) < *(b))
#define GREATER(a, b) (*(a) > *(b))

WEFT_SORT_DEFINE(sort_points, struct point, is_before)
WEFT_SORT_DEFINE(sort_bytes, unsigned char, SMALLER)
WEFT_SORT_DEFINE(sort_doubles, double, SMALLER)
WEFT_SORT_DEFINE(sort_down, uint64_t, GREATER)
WEFT_SORT_DEFINE(sort_up, uint64_t, SMALLER)

static int compare_points(const void *a, const void *b)
{
    return (int)is_before(b, a) - (int)is_before(a, b);
}

/* Breaks ties by original position. */
static int compare_points_and_tags(const void *a, const void *b)
{
    int order = compare_points(a, b);
    uint32_t x = ((const struct point *)a)->tag;
    uint32_t y = ((const struct point *)b)->tag;
    return order != 0 ? order : (x > y) - (x < y);
}

static void sort_points_once(enum pattern pattern, size_t count)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), pattern);
    struct point *points = malloc((count + 1) * sizeof *points);
    struct point *expected = malloc((count + 1) * sizeof *points);
    CHECK(points != NULL);
    CHECK(expected != NULL);
    for (size_t i = 0; i < count; i++) {
        uint64_t value = input_value(pattern, i, count, &rng);
        points[i] = (struct point){ (int32_t)(value >> 32), (int32_t)value, (uint32_t)i };
    }
    memcpy(expected, points, count * sizeof *points);
    qsort(expected, count, sizeof *points, compare_points_and_tags);
    CHECK_EQ(sort_points(points, count, NULL), 0);
    CHECK_EQ(memcmp(points, expected, count * sizeof *points), 0);
    free(expected);
    free(points);
}

static int sort_points_of_all_kinds(void *arg)
{
    (void)arg;
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        for (size_t i = 0; i < INPUT_COUNTS; i++) {
            if (input_counts[i] <= test_scale(2000) || (i + pattern) % 5 == 0) {
                sort_points_once((enum pattern)pattern, input_counts[i]);
            }
        }
    }
    return 0;
}

static void defined_sort_matches_qsort(void)
{
    test_run_everywhere(sort_points_of_all_kinds, NULL);
}

static int sort_many_points(void *arg)
{
    (void)arg;
    /* Enough elements for the maximum number of splitters. */
    sort_points_once(RANDOM, test_scale(1100000));
    sort_points_once(FEW_DISTINCT, test_scale(1100000));
    sort_points_once(MOSTLY_EQUAL, test_scale(300000));
    return 0;
}

static void defined_sort_of_many_elements_matches_qsort(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, sort_many_points, NULL), 0);
    weft_runtime_destroy(rt);
}

static void any_type_and_order_can_be_sorted(void)
{
    unsigned char bytes[] = "the quick brown fox";
    CHECK_EQ(sort_bytes(bytes, 19, NULL), 0);
    CHECK_EQ(memcmp(bytes, "   bcefhiknooqrtuwx", 19), 0);
    double doubles[] = { 2.5, -1, 1e9, 0 };
    CHECK_EQ(sort_doubles(doubles, 4, NULL), 0);
    CHECK(doubles[0] == -1 && doubles[1] == 0 && doubles[2] == 2.5 && doubles[3] == 1e9);
    uint64_t words[] = { 1, 3, 2 };
    CHECK_EQ(sort_down(words, 3, NULL), 0);
    CHECK(words[0] == 3 && words[1] == 2 && words[2] == 1);
}

/* All orders of a few elements, including equal ones. */
static void few_elements_are_sorted_from_any_order(void)
{
    for (size_t count = 1; count <= 6; count++) {
        size_t orders = 1;
        for (size_t i = 0; i < count; i++) {
            orders *= count;
        }
        for (size_t order = 0; order < orders; order++) {
            struct point points[6] = { { 0 } };
            struct point expected[6];
            size_t digits = order;
            for (size_t i = 0; i < count; i++) {
                points[i] = (struct point){ (int32_t)(digits % count), 0, (uint32_t)i };
                digits /= count;
            }
            memcpy(expected, points, sizeof expected);
            qsort(expected, count, sizeof expected[0], compare_points_and_tags);
            CHECK_EQ(sort_points(points, count, NULL), 0);
            CHECK_EQ(memcmp(points, expected, count * sizeof expected[0]), 0);
        }
    }
}

/* --- Buckets --------------------------------------------------------------------------- */

/* NaN is neither less nor greater than anything. */
static void nan_loses_no_element(void)
{
    for (size_t count = 2; count < 100000; count = count * 3 + 1) {
        struct guarded array = guarded_create(count * sizeof(double), 0);
        double *values = (double *)(void *)array.at;
        uint64_t before = 0;
        uint64_t after = 0;
        struct wf_rng rng;
        wf_rng_seed(&rng, test_seed(), count);
        for (size_t i = 0; i < count; i++) {
            values[i] = wf_rng_below(&rng, 4) == 0 ? NAN : (double)wf_rng_next(&rng);
            uint64_t bits;
            memcpy(&bits, &values[i], 8);
            before += wf_rng_mix(bits);
        }
        CHECK_EQ(sort_doubles(values, count, NULL), 0);
        for (size_t i = 0; i < count; i++) {
            uint64_t bits;
            memcpy(&bits, &values[i], 8);
            after += wf_rng_mix(bits);
        }
        CHECK(before == after);
        guarded_destroy(&array);
    }
}

/* Checks each element's bucket from the tree against the definition. */
static void classify_finds_bucket(void)
{
    uint64_t sorted[7] = { 10, 20, 20, 30, 40, 50, 60 };
    uint64_t tree[8] = { 0, 30, 20, 50, 10, 20, 40, 60 };
    uint64_t elements[71];
    uint16_t buckets[71];
    for (unsigned i = 0; i < 71; i++) {
        elements[i] = i;
    }
    for (unsigned with_equal = 0; with_equal < 2; with_equal++) {
        weft_splitters splitters = { 3, with_equal == 1, sorted, tree };
        sort_up_ops.classify(elements, 71, &splitters, buckets, NULL);
        for (unsigned i = 0; i < 71; i++) {
            unsigned below = 0;
            bool is_equal = false;
            for (unsigned k = 0; k < 7; k++) {
                below += sorted[k] <= i;
                is_equal = is_equal || sorted[k] == i;
            }
            CHECK_EQ(buckets[i], with_equal == 1 ? 2 * below - is_equal : below);
        }
    }
}

TEST_MAIN({
    TEST(any_type_and_order_can_be_sorted),
    TEST(few_elements_are_sorted_from_any_order),
    TEST(classify_finds_bucket),
    TEST(defined_sort_matches_qsort),
    TEST(defined_sort_of_many_elements_matches_qsort),
    TEST(nan_loses_no_element),
})
