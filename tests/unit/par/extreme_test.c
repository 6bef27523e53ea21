/* SPDX-License-Identifier: MIT */
#include "comparisons.h"

/* --- Results --------------------------------------------------------------------------- */

struct extremes {
    size_t least;
    size_t greatest;
};

static struct extremes extremes_of(const struct records *records)
{
    struct extremes extremes = { 0, 0 };
    size_t size = records->size;
    for (size_t i = 0; i < records->count; i++) {
        uint64_t key = record_key(records->array.at + i * size, size);
        if (key < record_key(records->array.at + extremes.least * size, size)) {
            extremes.least = i;
        }
        if (key > record_key(records->array.at + extremes.greatest * size, size)) {
            extremes.greatest = i;
        }
    }
    return extremes;
}

static void find_all(const struct records *records)
{
    struct extremes wanted = extremes_of(records);
    size_t size = records->size;
    size_t count = records->count;
    const void *base = records->array.at;
    void *arg = &size;
    size_t index = 77;
    CHECK_EQ(weft_min(base, count, size, compare_records, arg, &index, NULL), 0);
    CHECK_EQ(index, wanted.least);
    CHECK_EQ(weft_max(base, count, size, compare_records, arg, &index, NULL), 0);
    CHECK_EQ(index, wanted.greatest);
    CHECK_EQ(weft_min_by_key(base, count, size, key_records, arg, &index, NULL), 0);
    CHECK_EQ(index, wanted.least);
    CHECK_EQ(weft_max_by_key(base, count, size, key_records, arg, &index, NULL), 0);
    CHECK_EQ(index, wanted.greatest);
}

static int find_everything(void *arg)
{
    (void)arg;
    with_records(find_all);
    return 0;
}

static void first_minimum_and_first_maximum_are_found(void)
{
    test_run_everywhere(find_everything, NULL);
}

/* Blocks of the given length, with both extremes at the end of the array. */
static void chunks_may_have_any_length(void)
{
    uint32_t values[1000];
    size_t size = sizeof *values;
    for (size_t piece = 1; piece < 1100; piece += 13) {
        weft_par_options options = { .piece = piece };
        for (size_t i = 0; i < 1000; i++) {
            values[i] = 500;
        }
        values[998] = 1;
        values[999] = 1000;
        size_t index = 0;
        CHECK_EQ(weft_min(values, 1000, size, compare_records, &size, &index, &options), 0);
        CHECK_EQ(index, 998);
        CHECK_EQ(weft_max_by_key(values, 1000, size, key_records, &size, &index, &options), 0);
        CHECK_EQ(index, 999);
    }
}

/* More elements than one call of a key function gets. */
static void keys_are_computed_in_batches(void)
{
    static uint64_t values[5000];
    size_t size = sizeof *values;
    weft_par_options options = { .piece = 5000 };
    static const size_t places[] = { 0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 4999 };
    for (size_t i = 0; i < 10; i++) {
        size_t index = 77;
        values[places[i]] = 1;
        CHECK_EQ(weft_max_by_key(values, 5000, size, key_records, &size, &index, &options), 0);
        CHECK_EQ(index, places[i]);
        values[places[i]] = 0;
    }
}

static void index_in_empty_array_is_count(void)
{
    size_t size = 4;
    size_t index = 77;
    CHECK_EQ(weft_min(NULL, 0, 4, compare_records, &size, &index, NULL), 0);
    CHECK_EQ(index, 0);
    index = 77;
    CHECK_EQ(weft_max_by_key(NULL, 0, 4, key_records, &size, &index, NULL), 0);
    CHECK_EQ(index, 0);
}

/* A key of all ones is the minimum if there is no other key. */
static void any_key_may_be_minimum_or_maximum(void)
{
    static const uint64_t values[] = { UINT64_MAX, UINT64_MAX };
    size_t size = 4; /* four records of 4 bytes */
    size_t index = 77;
    CHECK_EQ(weft_min_by_key(values, 4, size, key_records, &size, &index, NULL), 0);
    CHECK_EQ(index, 0);
    static const uint64_t zeros[] = { 0, 0 };
    CHECK_EQ(weft_max_by_key(zeros, 4, size, key_records, &size, &index, NULL), 0);
    CHECK_EQ(index, 0);
}

/* --- Errors ---------------------------------------------------------------------------- */

static int lie_about_all(void *arg)
{
    (void)arg;
    for (size_t k = 0; k < LIARS; k++) {
        for (size_t i = 1; i < INPUT_COUNTS; i += 3) {
            struct records records = records_create(RANDOM, input_counts[i], 8, 0);
            size_t index = SIZE_MAX;
            CHECK_EQ(
                weft_max(records.array.at, records.count, 8, liars[k], &records.size, &index, NULL),
                0);
            CHECK_LT(index, records.count);
            records_destroy(&records);
        }
    }
    return 0;
}

static void inconsistent_comparison_is_harmless(void)
{
    test_run_everywhere(lie_about_all, NULL);
}

static int end_early(void *arg)
{
    (void)arg;
    size_t count = 50000;
    struct records records = records_create(RANDOM, count, 4, 0);
    for (size_t at = 0; at < 30000; at += 10000) {
        struct stopping stopping = { .size = 4, .at = at };
        weft_par_options options = { .stop = &stopping.stop };
        if (at == 0) {
            weft_stop_set(&stopping.stop);
        }
        size_t index = 77;
        CHECK_EQ(
            weft_min(records.array.at, count, 4, compare_and_stop, &stopping, &index, &options),
            WEFT_ECANCELED);
        CHECK_EQ(index, count);
        CHECK_LE(atomic_load(&stopping.calls), at + 16 * 1024);
    }
    _Atomic(int) left = 3;
    size_t index = 77;
    CHECK_EQ(weft_min_by_key(records.array.at, count, 4, key_and_fail, &left, &index, NULL), -77);
    CHECK_EQ(index, count);
    records_destroy(&records);
    return 0;
}

static void errors_and_cancels_end_call(void)
{
    test_run_everywhere(end_early, NULL);
}

static void invalid_arguments_are_rejected(void)
{
    uint32_t values[2] = { 2, 1 };
    size_t size = 4;
    size_t index = 77;
    CHECK_EQ(weft_min(values, 2, 0, compare_records, &size, &index, NULL), -EINVAL);
    CHECK_EQ(index, 2);
    CHECK_EQ(weft_max(values, SIZE_MAX / 2, 4, compare_records, &size, &index, NULL), -EINVAL);
    CHECK_EQ(weft_min_by_key(values, 2, 0, key_records, &size, &index, NULL), -EINVAL);
    CHECK_EQ(weft_max_by_key(values, SIZE_MAX, 4, key_records, &size, &index, NULL), -EINVAL);
}

TEST_MAIN({
    TEST(first_minimum_and_first_maximum_are_found),
    TEST(chunks_may_have_any_length),
    TEST(keys_are_computed_in_batches),
    TEST(index_in_empty_array_is_count),
    TEST(any_key_may_be_minimum_or_maximum),
    TEST(inconsistent_comparison_is_harmless),
    TEST(errors_and_cancels_end_call),
    TEST(invalid_arguments_are_rejected),
})
