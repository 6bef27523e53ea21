/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include "memory.h"
#include "records.h"

static _Atomic(uint64_t) calls;

static int key_of(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    size_t size = *(const size_t *)arg;
    CHECK_LE(count, WEFT_ELEMENTS_MAX);
    atomic_fetch_add_explicit(&calls, count, memory_order_relaxed);
    for (size_t i = 0; i < count; i++) {
        keys[i] = record_key((const char *)elements + i * size, size);
    }
    return 0;
}

static void sort_one(enum pattern pattern, size_t count, size_t size, bool with_scratch)
{
    struct records records = records_create(pattern, count, size, count % 3);
    size_t scratch_size = weft_sort_by_key_scratch(count, size);
    struct guarded scratch = guarded_create(scratch_size, size % 64);
    weft_par_options options = { .scratch = scratch.at, .scratch_size = scratch_size };
    const weft_par_options *given = with_scratch ? &options : NULL;
    atomic_store(&calls, 0);
    CHECK_EQ(weft_sort_by_key(records.array.at, count, size, key_of, &size, given), 0);
    CHECK_EQ(atomic_load(&calls), count < 2 ? 0 : count);
    records_check(&records);
    guarded_destroy(&scratch);
    records_destroy(&records);
}

static int sort_all(void *arg)
{
    (void)arg;
    static const size_t sizes[] = { 1, 2, 3, 4, 7, 8, 12, 16, 24, 100 };
    for (size_t k = 0; k < 10; k++) {
        for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
            for (size_t i = 0; i < INPUT_COUNTS; i++) {
                if (input_counts[i] <= test_scale(300) || (i * 3 + pattern + k) % 41 == 0) {
                    sort_one((enum pattern)pattern, input_counts[i], sizes[k], i % 2 == 0);
                }
            }
        }
    }
    return 0;
}

static void sort_by_key_computes_each_key_once(void)
{
    test_run_everywhere(sort_all, NULL);
}

static int sort_many(void *arg)
{
    (void)arg;
    sort_one(RANDOM, test_scale(500000), 16, false);
    sort_one(MOSTLY_EQUAL, test_scale(200000), 24, false);
    return 0;
}

static void many_elements_are_sorted(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, sort_many, NULL), 0);
    weft_runtime_destroy(rt);
}

static void invalid_arguments_are_rejected(void)
{
    uint32_t values[2] = { 2, 1 };
    size_t size = 4;
    char scratch[16];
    weft_par_options options = { .scratch = scratch, .scratch_size = sizeof scratch };
    CHECK_EQ(weft_sort_by_key(values, 2, 0, key_of, &size, NULL), -EINVAL);
    CHECK_EQ(weft_sort_by_key(values, 2, 4, key_of, &size, &options), -EINVAL);
    CHECK_EQ(weft_sort_by_key(values, SIZE_MAX / 2, 4, key_of, &size, NULL), -ENOMEM);
    CHECK_EQ(values[0], 2);
    CHECK_EQ(weft_sort_by_key(NULL, 0, 4, key_of, &size, NULL), 0);
}

static int fail_at_third_call(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    _Atomic(int) *left = arg;
    (void)elements;
    memset(keys, 0, count * sizeof *keys);
    return atomic_fetch_sub(left, 1) == 1 ? -77 : 0;
}

static void key_error_leaves_array_unchanged(void)
{
    struct records records = records_create(RANDOM, 100000, 12, 0);
    memcpy(records.expected.at, records.array.at, records.array.size);
    _Atomic(int) left = 3;
    CHECK_EQ(weft_sort_by_key(records.array.at, 100000, 12, fail_at_third_call, &left, NULL), -77);
    records_check(&records);
    records_destroy(&records);
}

WEFT_KEY(signed_key, int64_t, number, weft_key_i64(*number))
WEFT_KEY(float_key, double, number, weft_key_f64(*number))

static void signed_and_float_keys_are_ordered(void)
{
    int64_t numbers[] = { 3, -1, INT64_MAX, 0, INT64_MIN, -7 };
    static const int64_t wanted[] = { INT64_MIN, -7, -1, 0, 3, INT64_MAX };
    CHECK_EQ(weft_sort_by_key(numbers, 6, sizeof *numbers, signed_key, NULL, NULL), 0);
    CHECK_EQ(memcmp(numbers, wanted, sizeof wanted), 0);

    double floats[] = { 3.5, -0.0, INFINITY, 0.0, -INFINITY, -7e-300 };
    static const double wanted_floats[] = { -INFINITY, -7e-300, -0.0, 0.0, 3.5, INFINITY };
    CHECK_EQ(weft_sort_by_key(floats, 6, sizeof *floats, float_key, NULL, NULL), 0);
    CHECK_EQ(memcmp(floats, wanted_floats, sizeof wanted_floats), 0);
}

static int sort_records(void *arg)
{
    struct records *records = arg;
    return weft_sort_by_key(records->array.at, records->count, records->size, key_of,
                            &records->size, NULL);
}

static void out_of_memory_leaves_array_unchanged(void)
{
    struct records records = records_create(RANDOM, 300000, 12, 0);
    memcpy(records.expected.at, records.array.at, records.array.size);
    CHECK_EQ(result_without_memory(sort_records, &records), -ENOMEM);
    records_check(&records);
    records_destroy(&records);
}

TEST_MAIN({
    TEST(invalid_arguments_are_rejected),
    TEST_DEBUG(out_of_memory_leaves_array_unchanged),
    TEST(sort_by_key_computes_each_key_once),
    TEST(key_error_leaves_array_unchanged),
    TEST(signed_and_float_keys_are_ordered),
    TEST(many_elements_are_sorted),
})
