/* SPDX-License-Identifier: MIT */
#include "memory.h"
#include "par/nth.h"

#include "comparisons.h"
#include "par/scratch.h"

/* --- Results --------------------------------------------------------------------------- */

static uint64_t key_at(const struct guarded *array, size_t index, size_t size)
{
    return record_key(array->at + index * size, size);
}

static void check_selected(const struct guarded *array, const struct records *records, size_t n)
{
    size_t size = records->size;
    uint64_t wanted = key_at(&records->expected, n, size);
    CHECK_EQ(key_at(array, n, size), wanted);
    for (size_t i = 0; i < records->count; i++) {
        uint64_t key = key_at(array, i, size);
        CHECK(i < n ? key <= wanted : key >= wanted);
    }
}

static void select_one(const struct records *records, size_t n)
{
    size_t size = records->size;
    size_t count = records->count;
    struct guarded copy = guarded_create(count * size, n % 3);
    memcpy(copy.at, records->array.at, count * size);
    CHECK_EQ(weft_nth(copy.at, count, size, n, compare_records, &size, NULL), 0);
    check_selected(&copy, records, n);
    CHECK_EQ(bag_of(copy.at, count, size), bag_of(records->expected.at, count, size));
    guarded_destroy(&copy);
}

static void select_some(const struct records *records)
{
    if (records->count > 0) {
        select_one(records, 0);
        select_one(records, records->count / 2);
        select_one(records, records->count - 1);
    }
}

static int select_all(void *arg)
{
    (void)arg;
    with_records(select_some);
    return 0;
}

static void nth_element_is_where_sort_puts_it(void)
{
    test_run_everywhere(select_all, NULL);
}

static int select_many(void *arg)
{
    (void)arg;
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        size_t count = test_scale(100000);
        struct records records =
            records_create((enum pattern)pattern, count, pattern % 2 == 0 ? 4 : 8, 0);
        select_one(&records, count / 5 * (pattern % 5));
        select_one(&records, count / 3);
        records_destroy(&records);
    }
    return 0;
}

static void nth_of_many_elements_is_found(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, select_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* The array is the same, byte for byte, regardless of the number of workers. */
static struct records alone;

static int select_as_alone(void *arg)
{
    (void)arg;
    size_t size = 16;
    struct records records = records_create(FEW_DISTINCT, alone.count, size, 0);
    CHECK_EQ(weft_nth(records.array.at, records.count, size, 70001, compare_records, &size, NULL),
             0);
    CHECK_EQ(memcmp(records.array.at, alone.array.at, records.array.size), 0);
    records_destroy(&records);
    return 0;
}

static void result_does_not_depend_on_number_of_workers(void)
{
    size_t size = 16;
    alone = records_create(FEW_DISTINCT, 100000, size, 0);
    CHECK_EQ(weft_nth(alone.array.at, alone.count, size, 70001, compare_records, &size, NULL), 0);
    test_run_everywhere(select_as_alone, NULL);
    records_destroy(&alone);
}

/* weft_top_k() relies on this. */
static void first_n_elements_match_stable_sort(void)
{
    size_t size = 16;
    struct wf_nth_order order = { size, compare_records, &size };
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        for (size_t n = 1; n < 20000; n += 7777) {
            struct records records = records_create((enum pattern)pattern, 20000, size, 0);
            size_t bytes = wf_nth_scratch(0, records.count, size);
            struct guarded memory = guarded_create(bytes, 0);
            CHECK_EQ(wf_nth(&order, records.array.at, records.count, n, memory.at, NULL), 0);
            CHECK_EQ(weft_sort_stable(records.array.at, n + 1, size, compare_records, &size, NULL),
                     0);
            CHECK_EQ(memcmp(records.array.at, records.expected.at, (n + 1) * size), 0);
            guarded_destroy(&memory);
            records_destroy(&records);
        }
    }
}

/* --- Comparisons ----------------------------------------------------------------------- */

/* Two comparisons per element, and some for the samples and for the remaining elements. */
static void number_of_comparisons_is_linear(void)
{
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        size_t count = 100000;
        struct records records = records_create((enum pattern)pattern, count, 8, 0);
        struct stopping counting = { .size = 8 };
        size_t n = count / 4 * (pattern % 4);
        CHECK_EQ(weft_nth(records.array.at, count, 8, n, compare_and_stop, &counting, NULL), 0);
        check_selected(&records.array, &records, n);
        CHECK_LE(atomic_load(&counting.calls), 5 * count);
        records_destroy(&records);
    }
}

static void lie_once(weft_compare_fn liar, size_t count, size_t size)
{
    struct records records = records_create(RANDOM, count, size, 0);
    size_t scratch_size = weft_order_scratch(count, size);
    struct guarded scratch = guarded_create(scratch_size, 0);
    weft_par_options options = { .scratch = scratch.at, .scratch_size = scratch_size };
    CHECK_EQ(weft_nth(records.array.at, count, size, count / 3, liar, &size, &options), 0);
    guarded_destroy(&scratch);
    CHECK_EQ(bag_of(records.array.at, count, size), bag_of(records.expected.at, count, size));
    records_destroy(&records);
}

static int lie_about_all(void *arg)
{
    (void)arg;
    static const size_t lying_sizes[] = { 3, 4, 8, 16 };
    for (size_t k = 0; k < LIARS; k++) {
        for (size_t i = 1; i < INPUT_COUNTS; i++) {
            if ((i + k) % (input_counts[i] <= test_scale(70) ? 3 : 7) == 0) {
                lie_once(liars[k], input_counts[i], lying_sizes[(i + k) % 4]);
            }
        }
    }
    return 0;
}

static void inconsistent_comparison_loses_no_element(void)
{
    test_run_everywhere(lie_about_all, NULL);
}

/* --- Cancels and memory ---------------------------------------------------------------- */

static int stop_at_each_stage(void *arg)
{
    (void)arg;
    size_t count = 100000;
    /* Before it begins, in the sample, in the classification, and among the elements in
     * between. */
    static const uint64_t stages[] = { 0, 1000, 100000, 248000 };
    for (size_t i = 0; i < 4; i++) {
        struct records records = records_create(RANDOM, count, 16, 0);
        struct stopping stopping = { .size = 16, .at = stages[i] };
        weft_par_options options = { .stop = &stopping.stop };
        if (i == 0) {
            weft_stop_set(&stopping.stop);
        }
        CHECK_EQ(
            weft_nth(records.array.at, count, 16, count / 2, compare_and_stop, &stopping, &options),
            WEFT_ECANCELED);
        CHECK_LE(atomic_load(&stopping.calls), stages[i] + 150000);
        CHECK_EQ(bag_of(records.array.at, count, 16), bag_of(records.expected.at, count, 16));
        records_destroy(&records);
    }
    return 0;
}

static void cancel_keeps_every_element(void)
{
    CHECK_EQ(stop_at_each_stage(NULL), 0);
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, stop_at_each_stage, NULL), 0);
    weft_runtime_destroy(rt);
}

static void invalid_arguments_are_rejected(void)
{
    uint32_t values[2] = { 2, 1 };
    size_t size = 4;
    CHECK_EQ(weft_nth(values, 2, 0, 0, compare_records, &size, NULL), -EINVAL);
    CHECK_EQ(weft_nth(values, 2, 4, 2, compare_records, &size, NULL), -EINVAL);
    CHECK_EQ(weft_nth(NULL, 0, 4, 0, compare_records, &size, NULL), -EINVAL);
    CHECK_EQ(weft_nth(values, SIZE_MAX, 4, 0, compare_records, &size, NULL), -ENOMEM);
    CHECK_EQ(weft_nth(values, SIZE_MAX / 4, 4, 0, compare_records, &size, NULL), -ENOMEM);
    CHECK_EQ(values[0], 2);
}

static int select_records(void *arg)
{
    struct records *records = arg;
    return weft_nth(records->array.at, records->count, records->size, 7, compare_records,
                    &records->size, NULL);
}

static void out_of_memory_leaves_array_unchanged(void)
{
    struct records records = records_create(RANDOM, 300000, 12, 0);
    memcpy(records.expected.at, records.array.at, records.array.size);
    CHECK_EQ(result_without_memory(select_records, &records), -ENOMEM);
    records_check(&records);
    records_destroy(&records);
}

TEST_MAIN({
    TEST(invalid_arguments_are_rejected),
    TEST_DEBUG(out_of_memory_leaves_array_unchanged),
    TEST(nth_element_is_where_sort_puts_it),
    TEST(nth_of_many_elements_is_found),
    TEST(result_does_not_depend_on_number_of_workers),
    TEST(first_n_elements_match_stable_sort),
    TEST(number_of_comparisons_is_linear),
    TEST(inconsistent_comparison_loses_no_element),
    TEST(cancel_keeps_every_element),
})
