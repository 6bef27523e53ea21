/* SPDX-License-Identifier: MIT */
#include "comparisons.h"
#include "memory.h"

/* --- Results --------------------------------------------------------------------------- */

/* Computes the expected counts from the sorted records. */
static size_t tally_slowly(const struct records *records, weft_key_count *to)
{
    size_t distinct = 0;
    for (size_t i = 0; i < records->count; i++) {
        uint64_t key = record_key(records->expected.at + i * records->size, records->size);
        if (i == 0 || to[distinct - 1].key != key) {
            to[distinct++] = (weft_key_count){ key, 0 };
        }
        to[distinct - 1].count++;
    }
    return distinct;
}

static void tally_one(const struct records *records)
{
    size_t size = records->size;
    weft_key_count *wanted = calloc(records->count + 1, sizeof *wanted);
    CHECK(wanted != NULL);
    size_t wanted_count = tally_slowly(records, wanted);
    /* With exactly enough space, and with less. */
    for (size_t missing = 0; missing <= wanted_count; missing += missing * 2 + 1) {
        size_t room = wanted_count - missing;
        struct guarded to = guarded_create(room * sizeof *wanted, 0);
        size_t distinct = 77;
        CHECK_EQ(weft_count_by_key(records->array.at, records->count, size, key_records, &size,
                                   (weft_key_count *)(void *)to.at, room, &distinct, NULL),
                 missing == 0 ? 0 : -ENOSPC);
        CHECK_EQ(distinct, wanted_count);
        CHECK_EQ(memcmp(to.at, wanted, to.size), 0);
        guarded_destroy(&to);
    }
    free(wanted);
}

static int tally_all(void *arg)
{
    (void)arg;
    with_records(tally_one);
    return 0;
}

static void count_by_key_returns_sorted_keys_with_counts(void)
{
    test_run_everywhere(tally_all, NULL);
}

static int tally_many(void *arg)
{
    (void)arg;
    for (unsigned pattern = 0; pattern < PATTERNS; pattern += 2) {
        struct records records =
            records_create((enum pattern)pattern, test_scale(150000), pattern % 4 == 0 ? 16 : 8, 0);
        tally_one(&records);
        records_destroy(&records);
    }
    return 0;
}

static void count_by_key_of_many_returns_sorted_keys(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, tally_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Errors, cancels, memory ----------------------------------------------------------- */

static weft_stop in_the_middle;

static int key_and_stop(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    if (arg == NULL) {
        weft_stop_set(&in_the_middle);
    }
    size_t size = 4;
    return key_records(elements, count, keys, &size);
}

static int end_early(void *arg)
{
    (void)arg;
    struct records records = records_create(RANDOM, 50000, 4, 0);
    weft_key_count *to = calloc(50000, sizeof *to);
    CHECK(to != NULL);
    _Atomic(int) left = 5;
    size_t distinct = 77;
    CHECK_EQ(weft_count_by_key(records.array.at, 50000, 4, key_and_fail, &left, to, 50000,
                               &distinct, NULL),
             -77);
    CHECK_EQ(distinct, 0);
    for (size_t i = 0; i < 2; i++) {
        in_the_middle = (weft_stop){ i == 0 };
        weft_par_options options = { .stop = &in_the_middle };
        distinct = 77;
        CHECK_EQ(weft_count_by_key(records.array.at, 50000, 4, key_and_stop, i == 0 ? to : NULL, to,
                                   50000, &distinct, &options),
                 WEFT_ECANCELED);
        CHECK_EQ(distinct, 0);
    }
    free(to);
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
    size_t distinct = 77;
    weft_key_count to[2];
    char scratch[16];
    weft_par_options options = { .scratch = scratch, .scratch_size = sizeof scratch };
    CHECK_EQ(weft_count_by_key(values, 2, 0, key_records, &size, to, 2, &distinct, NULL), -EINVAL);
    CHECK_EQ(distinct, 0);
    CHECK_EQ(weft_count_by_key(values, SIZE_MAX / 2, 4, key_records, &size, to, 2, &distinct, NULL),
             -EINVAL);
    CHECK_EQ(weft_count_by_key(values, SIZE_MAX / 9, 4, key_records, &size, to, 2, &distinct, NULL),
             -ENOMEM);
    CHECK_EQ(weft_count_by_key(values, 2, 4, key_records, &size, to, 2, &distinct, &options),
             -EINVAL);
    CHECK_EQ(weft_count_by_key(NULL, 0, 4, key_records, &size, NULL, 0, &distinct, NULL), 0);
    CHECK_EQ(distinct, 0);
}

static int tally_records(void *arg)
{
    struct records *records = arg;
    size_t distinct;
    return weft_count_by_key(records->array.at, records->count, records->size, key_records,
                             &records->size, NULL, 0, &distinct, NULL);
}

static void out_of_memory_returns_enomem(void)
{
    struct records records = records_create(RANDOM, 300000, 4, 0);
    CHECK_EQ(result_without_memory(tally_records, &records), -ENOMEM);
    records_destroy(&records);
}

TEST_MAIN({
    TEST(invalid_arguments_are_rejected),
    TEST_DEBUG(out_of_memory_returns_enomem),
    TEST(count_by_key_returns_sorted_keys_with_counts),
    TEST(count_by_key_of_many_returns_sorted_keys),
    TEST(errors_and_cancels_end_call),
})
