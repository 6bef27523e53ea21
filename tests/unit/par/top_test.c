/* SPDX-License-Identifier: MIT */
#include "memory.h"
#include "par/top.h"

#include "comparisons.h"

/* --- Results --------------------------------------------------------------------------- */

static void find_top(const struct records *records, size_t k)
{
    size_t size = records->size;
    size_t least = k < records->count ? k : records->count;
    struct guarded to = guarded_create(least * size, 0);
    size_t found = 77;
    CHECK_EQ(weft_top_k(records->array.at, records->count, size, k, compare_records, &size, to.at,
                        &found, NULL),
             0);
    CHECK_EQ(found, least);
    CHECK_EQ(memcmp(to.at, records->expected.at, to.size), 0);
    guarded_destroy(&to);
}

static void find_each_top(const struct records *records)
{
    static const size_t ks[] = { 1, 2, 10, 100, 1024, 1025 };
    for (size_t i = 0; i < 6; i++) {
        if (ks[i] < records->count) {
            find_top(records, ks[i]);
        }
    }
    find_top(records, 0);
    find_top(records, records->count / 2);
    find_top(records, SIZE_MAX);
}

static int find_everything(void *arg)
{
    (void)arg;
    with_records(find_each_top);
    return 0;
}

static void top_k_is_stable_prefix_of_sorted_array(void)
{
    test_run_everywhere(find_everything, NULL);
}

/* Enough elements for each block to have a keeper, and for all keepers to be merged. */
static int find_in_many(void *arg)
{
    (void)arg;
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        size_t count = test_scale(100000);
        struct records records = records_create((enum pattern)pattern, count, 16, 0);
        find_top(&records, 1);
        find_top(&records, 10);
        find_top(&records, 300);
        find_top(&records, count / 3);
        records_destroy(&records);
    }
    return 0;
}

static void top_k_of_many_elements_is_found(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, find_in_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Comparisons ----------------------------------------------------------------------- */

static void small_k_takes_few_comparisons_per_element(void)
{
    static const enum pattern patterns[] = { RANDOM, EQUAL, MOSTLY_EQUAL, SORTED };
    for (size_t i = 0; i < 4; i++) {
        size_t count = 200000;
        struct records records = records_create(patterns[i], count, 8, 0);
        struct stopping counting = { .size = 8 };
        char to[80];
        size_t found;
        CHECK_EQ(weft_top_k(records.array.at, count, 8, 10, compare_and_stop, &counting, to, &found,
                            NULL),
                 0);
        CHECK_LE(atomic_load(&counting.calls), count * 3 / 2);
        records_destroy(&records);
    }
}

/* The result has distinct elements of the array. */
static void lie_once(weft_compare_fn liar, size_t count, size_t k)
{
    struct guarded array = guarded_create(count * 4, 0);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(array.at + i * 4, &i, 4);
    }
    size_t size = 4;
    struct guarded to = guarded_create(k * 4, 0);
    size_t found = 77;
    CHECK_EQ(weft_top_k(array.at, count, 4, k, liar, &size, to.at, &found, NULL), 0);
    CHECK_EQ(found, k);
    qsort_r(to.at, k, 4, compare_records, &size);
    for (size_t i = 0; i < k; i++) {
        CHECK_LT(record_key(to.at + i * 4, 4), count);
        CHECK(i == 0 || record_key(to.at + i * 4 - 4, 4) < record_key(to.at + i * 4, 4));
    }
    guarded_destroy(&to);
    guarded_destroy(&array);
}

static int lie_about_all(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < LIARS; i++) {
        lie_once(liars[i], 5, 3);
        lie_once(liars[i], 300, 100);
        lie_once(liars[i], test_scale(30000), 20);
        lie_once(liars[i], 20000, 2000);
    }
    return 0;
}

static void inconsistent_comparison_is_harmless(void)
{
    test_run_everywhere(lie_about_all, NULL);
}

/* --- Cancels and memory ---------------------------------------------------------------- */

static int stop_early(void *arg)
{
    (void)arg;
    size_t count = 100000;
    struct records records = records_create(RANDOM, count, 16, 0);
    char *to = malloc(count * 16);
    CHECK(to != NULL);
    static const uint64_t stages[] = { 0, 1000, 50000 };
    for (size_t i = 0; i < 6; i++) {
        struct stopping stopping = { .size = 16, .at = stages[i / 2] };
        weft_par_options options = { .stop = &stopping.stop };
        if (stages[i / 2] == 0) {
            weft_stop_set(&stopping.stop);
        }
        size_t found = 77;
        CHECK_EQ(weft_top_k(records.array.at, count, 16, i % 2 == 0 ? 10 : 5000, compare_and_stop,
                            &stopping, to, &found, &options),
                 WEFT_ECANCELED);
        CHECK_EQ(found, 0);
        CHECK_LE(atomic_load(&stopping.calls), stages[i / 2] + 100000);
    }
    free(to);
    records_destroy(&records);
    return 0;
}

static void cancel_flag_ends_call(void)
{
    test_run_everywhere(stop_early, NULL);
}

static void invalid_arguments_are_rejected(void)
{
    uint32_t values[2] = { 2, 1 };
    uint32_t to[2] = { 7, 7 };
    size_t size = 4;
    size_t found = 77;
    CHECK_EQ(weft_top_k(values, 2, 0, 1, compare_records, &size, to, &found, NULL), -EINVAL);
    CHECK_EQ(found, 0);
    CHECK_EQ(weft_top_k(values, SIZE_MAX / 2, 4, 1, compare_records, &size, to, &found, NULL),
             -EINVAL);
    CHECK_EQ(weft_top_k(values, SIZE_MAX / 9, 4, SIZE_MAX / 10, compare_records, &size, to, &found,
                        NULL),
             -ENOMEM);
    CHECK_EQ(to[0], 7);
    CHECK_EQ(weft_top_k(NULL, 0, 4, 5, compare_records, &size, NULL, &found, NULL), 0);
    CHECK_EQ(weft_top_k(values, 2, 4, 0, compare_records, &size, NULL, &found, NULL), 0);
    CHECK_EQ(found, 0);
    CHECK(wf_top_scratch(SIZE_MAX / 2, 8) == SIZE_MAX);
}

static int find_half(void *arg)
{
    struct records *records = arg;
    size_t found;
    return weft_top_k(records->array.at, records->count, records->size, records->count / 2,
                      compare_records, &records->size, records->expected.at, &found, NULL);
}

static void out_of_memory_leaves_array_unchanged(void)
{
    struct records records = records_create(RANDOM, 300000, 12, 0);
    memcpy(records.expected.at, records.array.at, records.array.size);
    CHECK_EQ(result_without_memory(find_half, &records), -ENOMEM);
    records_check(&records);
    records_destroy(&records);
}

TEST_MAIN({
    TEST(invalid_arguments_are_rejected),
    TEST_DEBUG(out_of_memory_leaves_array_unchanged),
    TEST(top_k_is_stable_prefix_of_sorted_array),
    TEST(top_k_of_many_elements_is_found),
    TEST(small_k_takes_few_comparisons_per_element),
    TEST(inconsistent_comparison_is_harmless),
    TEST(cancel_flag_ends_call),
})
