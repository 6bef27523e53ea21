/* SPDX-License-Identifier: MIT */
#include "comparisons.h"
#include "fold.h"
#include "memory.h"

/* --- Results --------------------------------------------------------------------------- */

/* Maps the bytes of a record to an affine function. Composition is not commutative, so parts
 * that are combined in the wrong order are detected. */
static struct affine affine_of_record(const void *record, size_t size)
{
    return affine_of((size_t)(bag_of(record, 1, size) % 1000003));
}

static int fold_records(void *value, const void *elements, size_t count, void *arg)
{
    size_t size = *(const size_t *)arg;
    struct affine *affine = value;
    CHECK(count > 0);
    CHECK_LE(count, WEFT_ELEMENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        *affine = affine_then(*affine, affine_of_record((const char *)elements + i * size, size));
    }
    return 0;
}

static const weft_group_reduction affine_groups = { .size = sizeof(struct affine),
                                                    .identity = &affine_identity,
                                                    .fold = fold_records,
                                                    .combine = affine_combine };

/* Computes the expected groups from the stably sorted records. */
static size_t group_slowly(const struct records *records, uint64_t *keys, struct affine *values)
{
    size_t groups = 0;
    size_t size = records->size;
    for (size_t i = 0; i < records->count; i++) {
        const void *record = records->expected.at + i * size;
        uint64_t key = record_key(record, size);
        if (i == 0 || keys[groups - 1] != key) {
            keys[groups] = key;
            values[groups++] = affine_identity;
        }
        values[groups - 1] = affine_then(values[groups - 1], affine_of_record(record, size));
    }
    return groups;
}

static void group_one(const struct records *records)
{
    size_t size = records->size;
    uint64_t *wanted_keys = calloc(records->count + 1, sizeof *wanted_keys);
    struct affine *wanted = calloc(records->count + 1, sizeof *wanted);
    CHECK(wanted_keys != NULL);
    CHECK(wanted != NULL);
    size_t wanted_count = group_slowly(records, wanted_keys, wanted);
    struct guarded keys = guarded_create(wanted_count * sizeof *wanted_keys, 0);
    struct guarded values = guarded_create(wanted_count * sizeof *wanted, 0);
    size_t groups = 77;
    CHECK_EQ(weft_group_reduce(records->array.at, records->count, size, key_records, &affine_groups,
                               &size, (uint64_t *)(void *)keys.at, values.at, wanted_count, &groups,
                               NULL),
             0);
    CHECK_EQ(groups, wanted_count);
    CHECK_EQ(memcmp(keys.at, wanted_keys, keys.size), 0);
    CHECK_EQ(memcmp(values.at, wanted, values.size), 0);
    guarded_destroy(&values);
    guarded_destroy(&keys);
    free(wanted);
    free(wanted_keys);
}

static int group_all(void *arg)
{
    (void)arg;
    with_records(group_one);
    return 0;
}

static void group_folds_elements_in_input_order(void)
{
    test_run_everywhere(group_all, NULL);
}

/* One group of all elements, a few large groups, and up to one group per element. */
static int group_many(void *arg)
{
    (void)arg;
    static const enum pattern patterns[] = { EQUAL, FEW_DISTINCT, MOSTLY_EQUAL, SAWTOOTH, RANDOM };
    for (size_t i = 0; i < 5; i++) {
        struct records records = records_create(patterns[i], test_scale(150000), 16, 0);
        group_one(&records);
        records_destroy(&records);
    }
    return 0;
}

static void large_groups_and_many_groups_are_reduced(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, group_many, NULL), 0);
    weft_runtime_destroy(rt);
}

static _Atomic(size_t) combined;

static void combine_and_count(void *value, const void *next, void *arg)
{
    atomic_fetch_add(&combined, 1);
    affine_combine(value, next, arg);
}

/* Lets several workers share the group. */
static void large_group_is_split_into_parts(void)
{
    weft_group_reduction how = affine_groups;
    how.combine = combine_and_count;
    struct records records = records_create(EQUAL, 100000, 8, 0);
    uint64_t key;
    struct affine value;
    size_t groups;
    CHECK_EQ(weft_group_reduce(records.array.at, 100000, 8, key_records, &how, &records.size, &key,
                               &value, 1, &groups, NULL),
             0);
    CHECK_EQ(groups, 1);
    CHECK_GE(combined, 20);
    records_destroy(&records);
}

/* Elements too large for the buffer that smaller elements are copied to. */
static int group_huge_elements(void *arg)
{
    (void)arg;
    static const size_t sizes[] = { 2048, 2049, 4096, 4097, 20000 };
    for (size_t i = 0; i < 5; i++) {
        struct records records = records_create(FEW_DISTINCT, 40, sizes[i], 0);
        group_one(&records);
        records_destroy(&records);
    }
    return 0;
}

static void huge_elements_are_grouped(void)
{
    test_run_everywhere(group_huge_elements, NULL);
}

/* --- Bitwise equal results ------------------------------------------------------------- */

enum {
    COUNT = 100000,
};

static int fold_doubles(void *value, const void *elements, size_t count, void *arg)
{
    (void)arg;
    const double *numbers = elements;
    for (size_t i = 0; i < count; i++) {
        *(double *)value += numbers[i];
    }
    return 0;
}

static const weft_group_reduction sum_groups = {
    .size = sizeof(double), .identity = &fold_zero, .fold = fold_doubles, .combine = sum_combine
};

static double numbers[COUNT];

/* Two thirds of the numbers have key 0. The others have one of a thousand keys. */
WEFT_KEY(group_of, double, number,
         (size_t)(number - (double *)arg) % 3 != 0 ? 0 : (size_t)(number - (double *)arg) % 1000)

static double first_sums[1000];

static int sum_each_group(void *arg)
{
    bool *is_first = arg;
    double sums[1000] = { 0 };
    uint64_t keys[1000];
    size_t groups = 77;
    CHECK_EQ(weft_group_reduce(numbers, COUNT, sizeof *numbers, group_of, &sum_groups, numbers,
                               keys, sums, 1000, &groups, NULL),
             0);
    if (*is_first) {
        *is_first = false;
        memcpy(first_sums, sums, sizeof sums);
    }
    CHECK_EQ(memcmp(first_sums, sums, sizeof sums), 0);
    return 0;
}

static void sums_are_bitwise_equal_everywhere(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        numbers[i] = fold_number(i);
    }
    bool is_first = true;
    test_run_everywhere(sum_each_group, &is_first);
}

/* --- Errors, cancels, memory ----------------------------------------------------------- */

static void too_small_output_returns_enospc(void)
{
    struct records records = records_create(SORTED, 100, 4, 0);
    uint64_t keys[100] = { 77 };
    struct affine values[100] = { { 77, 77 } };
    size_t size = 4;
    size_t groups = 0;
    CHECK_EQ(weft_group_reduce(records.array.at, 100, 4, key_records, &affine_groups, &size, keys,
                               values, 99, &groups, NULL),
             -ENOSPC);
    CHECK_EQ(groups, 100);
    CHECK_EQ(keys[0], 77);
    CHECK_EQ(values[0].a, 77);
    records_destroy(&records);
}

struct ending {
    size_t size;
    size_t folds_left;
    int error; /* 0: sets the cancel flag instead */
    weft_stop stop;
    _Atomic(size_t) folds;
};

static int key_of_ending(const void *elements, size_t count, uint64_t *keys, void *arg)
{
    struct ending *ending = arg;
    return key_records(elements, count, keys, &ending->size);
}

static int fold_and_end(void *value, const void *elements, size_t count, void *arg)
{
    struct ending *ending = arg;
    if (atomic_fetch_add(&ending->folds, 1) == ending->folds_left) {
        if (ending->error != 0) {
            return ending->error;
        }
        weft_stop_set(&ending->stop);
    }
    return fold_records(value, elements, count, &ending->size);
}

static int end_early(void *arg)
{
    (void)arg;
    static const weft_group_reduction how = { .size = sizeof(struct affine),
                                              .identity = &affine_identity,
                                              .fold = fold_and_end,
                                              .combine = affine_combine };
    static uint64_t keys[50000];
    static struct affine values[50000];
    /* One group, then many. */
    for (size_t i = 0; i < 4; i++) {
        size_t count = i < 2 ? 150000 : 50000;
        struct records records = records_create(i < 2 ? EQUAL : RANDOM, count, 8, 0);
        struct ending ending = { .size = 8, .folds_left = 7, .error = i % 2 == 0 ? -55 : 0 };
        weft_par_options options = { .stop = &ending.stop };
        size_t groups = 77;
        CHECK_EQ(weft_group_reduce(records.array.at, count, 8, key_of_ending, &how, &ending, keys,
                                   values, 50000, &groups, &options),
                 i % 2 == 0 ? -55 : WEFT_ECANCELED);
        CHECK_EQ(groups, 0);
        /* With one group, only folds that had already begun. */
        CHECK(i >= 2 || atomic_load(&ending.folds) < 200);
        _Atomic(int) left = 5;
        CHECK_EQ(weft_group_reduce(records.array.at, count, 8, key_and_fail, &how, &left, keys,
                                   values, 50000, &groups, NULL),
                 -77);
        weft_stop_set(&ending.stop);
        CHECK_EQ(weft_group_reduce(records.array.at, count, 8, key_of_ending, &how, &ending, keys,
                                   values, 50000, &groups, &options),
                 WEFT_ECANCELED);
        records_destroy(&records);
    }
    return 0;
}

static void errors_and_cancels_end_call(void)
{
    test_run_everywhere(end_early, NULL);
}

static void scratch_of_stated_size_is_enough(void)
{
    static const size_t counts[] = { 1, 2, 5, 100, 1000, 30000, 70000 };
    for (size_t i = 0; i < 7; i++) {
        struct records records = records_create(RANDOM, counts[i], 3, 0);
        size_t scratch_size = weft_group_scratch(counts[i], 3);
        struct guarded scratch = guarded_create(scratch_size, i * 7);
        weft_par_options options = { .scratch = scratch.at, .scratch_size = scratch_size };
        uint64_t *keys = calloc(counts[i], sizeof *keys);
        struct affine *values = calloc(counts[i], sizeof *values);
        weft_key_count *to = calloc(counts[i], sizeof *to);
        size_t groups = 0;
        size_t distinct = 0;
        CHECK_EQ(weft_group_reduce(records.array.at, counts[i], 3, key_records, &affine_groups,
                                   &records.size, keys, values, counts[i], &groups, &options),
                 0);
        guarded_check(&scratch);
        CHECK_EQ(weft_count_by_key(records.array.at, counts[i], 3, key_records, &records.size, to,
                                   counts[i], &distinct, &options),
                 0);
        CHECK_EQ(groups, distinct);
        guarded_destroy(&scratch);
        free(to);
        free(values);
        free(keys);
        records_destroy(&records);
    }
}

static void invalid_arguments_are_rejected(void)
{
    uint32_t values[2] = { 2, 1 };
    uint64_t keys[2];
    struct affine to[2];
    size_t size = 4;
    size_t groups = 77;
    char scratch[16];
    weft_par_options options = { .scratch = scratch, .scratch_size = sizeof scratch };
    weft_group_reduction empty = affine_groups;
    empty.size = 0;
    CHECK_EQ(weft_group_reduce(values, 2, 0, key_records, &affine_groups, &size, keys, to, 2,
                               &groups, NULL),
             -EINVAL);
    CHECK_EQ(groups, 0);
    CHECK_EQ(
        weft_group_reduce(values, 2, 4, key_records, &empty, &size, keys, to, 2, &groups, NULL),
        -EINVAL);
    CHECK_EQ(weft_group_reduce(values, SIZE_MAX, 4, key_records, &affine_groups, &size, keys, to, 2,
                               &groups, NULL),
             -EINVAL);
    CHECK_EQ(weft_group_reduce(values, SIZE_MAX / 9, 4, key_records, &affine_groups, &size, keys,
                               to, 2, &groups, NULL),
             -ENOMEM);
    CHECK_EQ(weft_group_reduce(values, 2, 4, key_records, &affine_groups, &size, keys, to, 2,
                               &groups, &options),
             -EINVAL);
    CHECK_EQ(weft_group_reduce(NULL, 0, 4, key_records, &affine_groups, &size, NULL, NULL, 0,
                               &groups, NULL),
             0);
    CHECK(weft_group_scratch(SIZE_MAX, 4) == SIZE_MAX);
}

static int group_records(void *arg)
{
    struct records *records = arg;
    size_t groups;
    return weft_group_reduce(records->array.at, records->count, records->size, key_records,
                             &affine_groups, &records->size, NULL, NULL, 0, &groups, NULL);
}

static void out_of_memory_returns_enomem(void)
{
    struct records records = records_create(RANDOM, 300000, 4, 0);
    CHECK_EQ(result_without_memory(group_records, &records), -ENOMEM);
    records_destroy(&records);
}

TEST_MAIN({
    TEST(invalid_arguments_are_rejected),
    TEST_DEBUG(out_of_memory_returns_enomem),
    TEST(group_folds_elements_in_input_order),
    TEST(large_groups_and_many_groups_are_reduced),
    TEST(large_group_is_split_into_parts),
    TEST(huge_elements_are_grouped),
    TEST(sums_are_bitwise_equal_everywhere),
    TEST(too_small_output_returns_enospc),
    TEST(errors_and_cancels_end_call),
    TEST(scratch_of_stated_size_is_enough),
})
