/* SPDX-License-Identifier: MIT */
#include "comparisons.h"

/* --- weft_is_sorted() ------------------------------------------------------------------ */

static bool answer_for(const void *base, size_t count, size_t size)
{
    bool answer = false;
    CHECK_EQ(weft_is_sorted(base, count, size, compare_records, &size, &answer, NULL), 0);
    return answer;
}

static void ask_both(const struct records *records)
{
    bool wanted = true;
    size_t size = records->size;
    for (size_t i = 1; i < records->count; i++) {
        const unsigned char *at = records->array.at + i * size;
        wanted = wanted && record_key(at - size, size) <= record_key(at, size);
    }
    CHECK_EQ(answer_for(records->array.at, records->count, size), wanted);
    CHECK(answer_for(records->expected.at, records->count, size));
}

/* A single element out of order is found at any position. */
static void ask_with_one_moved(void)
{
    enum {
        COUNT = 5000,
    };
    static uint32_t values[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = (uint32_t)i + 1;
    }
    for (size_t i = 1; i < COUNT; i += i < 300 || i > COUNT - 10 ? 1 : 97) {
        values[i] = 0;
        CHECK(!answer_for(values, COUNT, sizeof *values));
        values[i] = (uint32_t)i + 1;
    }
    CHECK(answer_for(values, COUNT, sizeof *values));
}

static int ask_everything(void *arg)
{
    (void)arg;
    with_records(ask_both);
    ask_with_one_moved();
    return 0;
}

static void is_sorted_reports_order(void)
{
    test_run_everywhere(ask_everything, NULL);
}

static int ask_with_early_inversion(void *arg)
{
    (void)arg;
    enum {
        COUNT = 1000000,
    };
    uint32_t *values = malloc(COUNT * sizeof *values);
    CHECK(values != NULL);
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = (uint32_t)(i == 1000 ? 0 : i);
    }
    struct stopping counting = { .size = sizeof *values };
    bool answer = true;
    CHECK_EQ(
        weft_is_sorted(values, COUNT, sizeof *values, compare_and_stop, &counting, &answer, NULL),
        0);
    CHECK(!answer);
    CHECK_LE(atomic_load(&counting.calls), COUNT / 2);
    free(values);
    return 0;
}

static void first_element_out_of_order_ends_check(void)
{
    CHECK_EQ(ask_with_early_inversion(NULL), 0);
    weft_runtime *rt = test_start(1);
    CHECK_EQ(test_run(rt, ask_with_early_inversion, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- weft_unique() --------------------------------------------------------------------- */

/* Copies the elements that differ from their predecessor. Returns their number. */
static size_t expect_unique(const struct guarded *array, size_t count, size_t size, char *to)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *at = array->at + i * size;
        if (i == 0 || record_key(at - size, size) != record_key(at, size)) {
            memcpy(to + kept++ * size, at, size);
        }
    }
    return kept;
}

static void check_unique(const struct guarded *array, size_t count, size_t size)
{
    char *wanted = malloc(count * size + 1);
    CHECK(wanted != NULL);
    size_t wanted_count = expect_unique(array, count, size, wanted);
    /* Exactly as large as the result. */
    struct guarded to = guarded_create(wanted_count * size, 0);
    size_t kept = 77;
    CHECK_EQ(weft_unique(array->at, count, size, compare_records, &size, to.at, &kept, NULL), 0);
    CHECK_EQ(kept, wanted_count);
    CHECK_EQ(memcmp(to.at, wanted, to.size), 0);
    guarded_destroy(&to);
    free(wanted);
}

static void check_unique_of_both(const struct records *records)
{
    check_unique(&records->array, records->count, records->size);
    check_unique(&records->expected, records->count, records->size);
}

static int check_unique_of_all(void *arg)
{
    (void)arg;
    with_records(check_unique_of_both);
    return 0;
}

static void unique_keeps_order(void)
{
    test_run_everywhere(check_unique_of_all, NULL);
}

static int check_unique_of_many(void *arg)
{
    (void)arg;
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        struct records records =
            records_create((enum pattern)pattern, test_scale(100000), 4 + 4 * (pattern % 2), 0);
        check_unique_of_both(&records);
        records_destroy(&records);
    }
    return 0;
}

static void unique_of_many_elements_keeps_order(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, check_unique_of_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Inconsistent comparisons, errors, cancels ----------------------------------------- */

static uint32_t number_at(const struct guarded *array, size_t index)
{
    uint32_t number;
    memcpy(&number, array->at + index * sizeof number, sizeof number);
    return number;
}

/* The elements are increasing numbers, so the kept ones must increase, too, and appear only
 * once. */
static void lie_once(weft_compare_fn liar, size_t count)
{
    struct guarded array = guarded_create(count * 4, 0);
    struct guarded to = guarded_create(count * 4, 0);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(array.at + i * 4, &i, 4);
    }
    size_t size = 4;
    size_t kept = 77;
    bool answer;
    CHECK_EQ(weft_is_sorted(array.at, count, 4, liar, &size, &answer, NULL), 0);
    CHECK_EQ(weft_unique(array.at, count, 4, liar, &size, to.at, &kept, NULL), 0);
    CHECK_LE(kept, count);
    uint64_t next = 0;
    for (size_t i = 0; i < kept; i++) {
        CHECK_LE(next, number_at(&to, i));
        next = number_at(&to, i) + (uint64_t)1;
    }
    CHECK_LE(next, count);
    guarded_destroy(&to);
    guarded_destroy(&array);
}

static int lie_about_all(void *arg)
{
    (void)arg;
    for (size_t k = 0; k < LIARS; k++) {
        for (size_t i = k % 3; i < INPUT_COUNTS; i += 3) {
            lie_once(liars[k], input_counts[i]);
        }
    }
    return 0;
}

static void inconsistent_comparison_is_harmless(void)
{
    test_run_everywhere(lie_about_all, NULL);
}

static int stop_both(void *arg)
{
    (void)arg;
    size_t count = 200000;
    struct records records = records_create(SORTED, count, 4, 0);
    char *to = malloc(count * 4);
    CHECK(to != NULL);
    for (uint64_t at = 0; at <= 20000; at += 10000) {
        struct stopping stopping = { .size = 4, .at = at };
        weft_par_options options = { .stop = &stopping.stop };
        if (at == 0) {
            weft_stop_set(&stopping.stop);
        }
        bool answer = true;
        size_t kept = 77;
        CHECK_EQ(weft_is_sorted(records.expected.at, count, 4, compare_and_stop, &stopping, &answer,
                                &options),
                 WEFT_ECANCELED);
        CHECK(!answer);
        stopping = (struct stopping){ .size = 4, .at = at };
        if (at == 0) {
            weft_stop_set(&stopping.stop);
        }
        CHECK_EQ(weft_unique(records.array.at, count, 4, compare_and_stop, &stopping, to, &kept,
                             &options),
                 WEFT_ECANCELED);
        CHECK_EQ(kept, 0);
    }
    free(to);
    records_destroy(&records);
    return 0;
}

static void cancel_flag_ends_call(void)
{
    test_run_everywhere(stop_both, NULL);
}

static void invalid_arguments_are_rejected(void)
{
    uint32_t values[2] = { 1, 2 };
    uint32_t to[2];
    size_t size = 4;
    size_t kept = 77;
    bool answer = true;
    CHECK_EQ(weft_is_sorted(values, 2, 0, compare_records, &size, &answer, NULL), -EINVAL);
    CHECK(!answer);
    CHECK_EQ(weft_is_sorted(values, SIZE_MAX, 4, compare_records, &size, &answer, NULL), -EINVAL);
    CHECK_EQ(weft_is_sorted(NULL, 0, 4, compare_records, &size, &answer, NULL), 0);
    CHECK(answer);
    CHECK_EQ(weft_unique(values, 2, 0, compare_records, &size, to, &kept, NULL), -EINVAL);
    CHECK_EQ(kept, 0);
    CHECK_EQ(weft_unique(values, SIZE_MAX, 4, compare_records, &size, to, &kept, NULL), -EINVAL);
    kept = 77;
    CHECK_EQ(weft_unique(NULL, 0, 4, compare_records, &size, NULL, &kept, NULL), 0);
    CHECK_EQ(kept, 0);
}

TEST_MAIN({
    TEST(is_sorted_reports_order),
    TEST(first_element_out_of_order_ends_check),
    TEST(unique_keeps_order),
    TEST(unique_of_many_elements_keeps_order),
    TEST(inconsistent_comparison_is_harmless),
    TEST(cancel_flag_ends_call),
    TEST(invalid_arguments_are_rejected),
})
