/* SPDX-License-Identifier: MIT */
#include "comparisons.h"

/* Makes keys of records that are less than a number. */
struct modulus {
    size_t size;
    uint64_t below;
};

static int key_below(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    struct modulus *modulus = arg;
    CHECK_EQ(key_records(elements, count, keys, &modulus->size), 0);
    for (size_t i = 0; i < count; i++) {
        keys[i] %= modulus->below;
    }
    return 0;
}

/* --- Results --------------------------------------------------------------------------- */

static void count_one(const struct records *records, size_t buckets)
{
    struct modulus modulus = { records->size, buckets };
    struct guarded counted = guarded_create(buckets * sizeof(uint64_t), 0);
    uint64_t *counts = (uint64_t *)(void *)counted.at;
    uint64_t *wanted = calloc(buckets, sizeof *wanted);
    CHECK(wanted != NULL);
    for (size_t i = 0; i < records->count; i++) {
        wanted[record_key(records->array.at + i * records->size, records->size) % buckets]++;
    }
    CHECK_EQ(weft_histogram(records->array.at, records->count, records->size, key_below, &modulus,
                            buckets, counts, NULL),
             0);
    CHECK_EQ(memcmp(counts, wanted, counted.size), 0);
    free(wanted);
    guarded_destroy(&counted);
}

static void count_with_buckets(const struct records *records)
{
    count_one(records, 1);
    count_one(records, 7);
    count_one(records, 256);
    count_one(records, 1 + records->count);
}

static int count_all(void *arg)
{
    (void)arg;
    with_records(count_with_buckets);
    return 0;
}

static void elements_are_counted_by_key(void)
{
    test_run_everywhere(count_all, NULL);
}

/* Enough elements for each part to have its own table, with few or many buckets. */
static int count_many(void *arg)
{
    (void)arg;
    for (unsigned pattern = 0; pattern < PATTERNS; pattern += 3) {
        struct records records = records_create((enum pattern)pattern, 100000, 8, 0);
        count_one(&records, 3);
        count_one(&records, 1000);
        count_one(&records, 20000);
        count_one(&records, 1000000);
        records_destroy(&records);
    }
    return 0;
}

static void many_elements_are_counted_by_key(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, count_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Errors and cancels ---------------------------------------------------------------- */

static void check_zero(uint64_t *counts, size_t buckets)
{
    for (size_t i = 0; i < buckets; i++) {
        CHECK_EQ(counts[i], 0);
        counts[i] = 77;
    }
}

/* All bytes are 0 except the one at the given position. */
WEFT_KEY(byte_of, unsigned char, byte, *byte)

static int find_key_outside(void *arg)
{
    (void)arg;
    enum {
        COUNT = 100000,
    };
    static unsigned char bytes[COUNT];
    uint64_t counts[5] = { 77, 77, 77, 77, 77 };
    for (size_t at = 0; at < COUNT; at += COUNT / 7) {
        bytes[at] = 5;
        CHECK_EQ(weft_histogram(bytes, COUNT, 1, byte_of, NULL, 5, counts, NULL), -ERANGE);
        check_zero(counts, 5);
        bytes[at] = 4;
        CHECK_EQ(weft_histogram(bytes, COUNT, 1, byte_of, NULL, 5, counts, NULL), 0);
        CHECK_EQ(counts[0], COUNT - 1);
        CHECK_EQ(counts[4], 1);
        bytes[at] = 0;
    }
    return 0;
}

static void key_out_of_range_returns_erange(void)
{
    test_run_everywhere(find_key_outside, NULL);
}

static weft_stop in_the_middle;

static int key_and_stop(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    _Atomic(int) *left = arg;
    (void)elements;
    memset(keys, 0, count * sizeof *keys);
    if (atomic_fetch_sub(left, 1) == 1) {
        weft_stop_set(&in_the_middle);
    }
    return 0;
}

static int end_early(void *arg)
{
    (void)arg;
    struct records records = records_create(RANDOM, 100000, 4, 0);
    uint64_t counts[3] = { 77, 77, 77 };
    _Atomic(int) left = 20;
    CHECK_EQ(weft_histogram(records.array.at, 100000, 4, key_and_fail, &left, 3, counts, NULL),
             -77);
    check_zero(counts, 3);
    for (int calls = 0; calls <= 10; calls += 10) {
        weft_par_options options = { .stop = &in_the_middle };
        in_the_middle = (weft_stop){ calls == 0 };
        left = calls;
        CHECK_EQ(
            weft_histogram(records.array.at, 100000, 4, key_and_stop, &left, 3, counts, &options),
            WEFT_ECANCELED);
        /* Calls that had begun continue, a few on each worker. */
        CHECK_GE(left, -60);
        check_zero(counts, 3);
    }
    records_destroy(&records);
    return 0;
}

static void errors_and_cancels_end_call(void)
{
    test_run_everywhere(end_early, NULL);
}

/* --- Memory ---------------------------------------------------------------------------- */

static int count_with_scratch(void *arg)
{
    (void)arg;
    static const size_t buckets[] = { 1, 100, 8000, 25000 };
    struct records records = records_create(RANDOM, 60000, 2, 0);
    size_t size = weft_group_scratch(60000, 2);
    struct guarded scratch = guarded_create(size, 3);
    uint64_t counts[25000];
    for (size_t i = 0; i < 4; i++) {
        struct modulus modulus = { 2, buckets[i] };
        weft_par_options options = { .scratch = scratch.at, .scratch_size = size };
        CHECK_EQ(weft_histogram(records.array.at, 60000, 2, key_below, &modulus, buckets[i], counts,
                                &options),
                 0);
        guarded_check(&scratch);
    }
    guarded_destroy(&scratch);
    char little[8];
    struct modulus modulus = { 2, 100 };
    weft_par_options options = { .scratch = little, .scratch_size = sizeof little };
    CHECK_EQ(weft_histogram(records.array.at, 60000, 2, key_below, &modulus, 100, counts, &options),
             -EINVAL);
    check_zero(counts, 100);
    records_destroy(&records);
    return 0;
}

static void scratch_of_stated_size_is_enough(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(weft_par_run(rt, count_with_scratch, NULL), 0);
    weft_runtime_destroy(rt);
}

static void invalid_arguments_are_rejected(void)
{
    uint64_t counts[2] = { 77, 77 };
    unsigned char byte = 1;
    CHECK_EQ(weft_histogram(&byte, 1, 0, byte_of, NULL, 2, counts, NULL), -EINVAL);
    check_zero(counts, 2);
    CHECK_EQ(weft_histogram(&byte, SIZE_MAX, 1, byte_of, NULL, 2, counts, NULL), -EINVAL);
    CHECK_EQ(weft_histogram(&byte, 1, 1, byte_of, NULL, 0, NULL, NULL), -ERANGE);
    CHECK_EQ(weft_histogram(NULL, 0, 1, byte_of, NULL, 0, NULL, NULL), 0);
    counts[0] = 77;
    CHECK_EQ(weft_histogram(NULL, 0, 1, byte_of, NULL, 2, counts, NULL), 0);
    check_zero(counts, 2);
}

TEST_MAIN({
    TEST(elements_are_counted_by_key),
    TEST(many_elements_are_counted_by_key),
    TEST(key_out_of_range_returns_erange),
    TEST(errors_and_cancels_end_call),
    TEST(scratch_of_stated_size_is_enough),
    TEST(invalid_arguments_are_rejected),
})
