/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include "memory.h"
#include "records.h"

static const size_t sizes[] = { 1, 2, 3, 4, 7, 8, 12, 16, 24, 100 };

#define SIZES (sizeof sizes / sizeof sizes[0])

typedef int sort_fn(void *base, size_t count, size_t size, weft_compare_fn compare, void *arg,
                    const weft_par_options *options);

/* --- Results --------------------------------------------------------------------------- */

/* Both sorts are stable, though only one promises it. */
static void sort_one(sort_fn *sort, enum pattern pattern, size_t count, size_t size, size_t offset)
{
    struct records records = records_create(pattern, count, size, offset);
    CHECK_EQ(sort(records.array.at, count, size, compare_records, &size, NULL), 0);
    records_check(&records);
    records_destroy(&records);
}

/* All small inputs, which fork nothing, or some of the large ones. */
static void sort_sizes(bool few)
{
    for (size_t k = 0; k < SIZES; k++) {
        for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
            for (size_t i = 0; i < INPUT_COUNTS; i++) {
                bool is_few = input_counts[i] <= test_scale(300);
                if (is_few == few && (few || (i * 3 + pattern + k) % 53 == 0)) {
                    sort_fn *sort = i % 2 == 0 ? weft_sort : weft_sort_stable;
                    sort_one(sort, (enum pattern)pattern, input_counts[i], sizes[k], 0);
                }
            }
        }
    }
}

static int sort_sizes_of_many(void *arg)
{
    (void)arg;
    sort_sizes(false);
    return 0;
}

static void elements_of_any_size_are_sorted(void)
{
    sort_sizes(true);
    test_run_everywhere(sort_sizes_of_many, NULL);
}

/* Elements that are not aligned to their size. */
static void elements_at_any_address_are_sorted(void)
{
    for (size_t k = 0; k < SIZES; k++) {
        for (size_t offset = 0; offset <= 16; offset++) {
            sort_one(weft_sort_stable, RANDOM, 500, sizes[k], offset);
        }
    }
}

static int sort_many(void *arg)
{
    (void)arg;
    sort_one(weft_sort_stable, RANDOM, test_scale(700000), 16, 0);
    for (unsigned pattern = 1; pattern < PATTERNS; pattern++) {
        sort_one(weft_sort, (enum pattern)pattern, test_scale(100000), pattern % 2 == 0 ? 8 : 4, 0);
    }
    return 0;
}

static void many_elements_are_sorted(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, sort_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Comparisons ----------------------------------------------------------------------- */

static _Atomic(uint64_t) calls;

static int compare_and_count(const void *a, const void *b, void *arg)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return compare_records(a, b, arg);
}

/* Merging takes at most n log2 n comparisons, and sampling some more. */
static void number_of_comparisons_is_bounded(void)
{
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        for (unsigned bits = 10; bits <= 16; bits += 2) {
            size_t count = (size_t)1 << bits;
            size_t size = 16;
            struct records records = records_create((enum pattern)pattern, count, size, 0);
            atomic_store(&calls, 0);
            CHECK_EQ(weft_sort(records.array.at, count, size, compare_and_count, &size, NULL), 0);
            records_check(&records);
            CHECK_LE(atomic_load(&calls), count * bits * 5 / 4);
            records_destroy(&records);
        }
    }
}

static int say_less(const void *a, const void *b, void *arg)
{
    (void)a;
    (void)b;
    (void)arg;
    return -1;
}

static int say_greater(const void *a, const void *b, void *arg)
{
    return -say_less(a, b, arg);
}

static int say_anything(const void *a, const void *b, void *arg)
{
    (void)a;
    (void)b;
    (void)arg;
    uint64_t call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return (int)(wf_rng_mix(call) % 3) - 1;
}

/* Rock, paper, scissors. */
static int go_in_circles(const void *a, const void *b, void *arg)
{
    unsigned x = *(const unsigned char *)a % 3;
    unsigned y = *(const unsigned char *)b % 3;
    (void)arg;
    return x == y ? 0 : (x + 1) % 3 == y ? -1 : 1;
}

/* Like a < b, where some values are NaN. */
static int compare_with_nan(const void *a, const void *b, void *arg)
{
    bool is_nan = *(const unsigned char *)a % 4 == 0 || *(const unsigned char *)b % 4 == 0;
    return is_nan ? 0 : compare_records(a, b, arg);
}

/* Right most of the time. */
static int slip_at_times(const void *a, const void *b, void *arg)
{
    uint64_t call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    int right = compare_records(a, b, arg);
    return call % 101 == 0 ? -right : right;
}

static void lie_once(weft_compare_fn liar, size_t count, size_t size)
{
    struct records records = records_create(RANDOM, count, size, 0);
    size_t scratch_size = weft_sort_scratch(count, size);
    struct guarded scratch = guarded_create(scratch_size, 0);
    weft_par_options options = { .scratch = scratch.at, .scratch_size = scratch_size };
    CHECK_EQ(weft_sort(records.array.at, count, size, liar, &size, &options), 0);
    guarded_destroy(&scratch);
    records_check_all_there(&records);
    records_destroy(&records);
}

static int lie_about_all(void *arg)
{
    (void)arg;
    static const weft_compare_fn liars[] = { say_less,      say_greater,      say_anything,
                                             go_in_circles, compare_with_nan, slip_at_times };
    static const size_t lying_sizes[] = { 3, 4, 8, 16 };
    for (size_t k = 0; k < 6; k++) {
        for (size_t i = 0; i < INPUT_COUNTS; i++) {
            if (input_counts[i] <= test_scale(300) || (i + k) % 11 == 0) {
                lie_once(liars[k], input_counts[i], lying_sizes[(i + k) % 4]);
            }
        }
    }
    return 0;
}

/*
 * Goal:   whatever the comparison returns, no element is lost and no other memory is touched.
 * Method: guards around the array, and around scratch memory of the minimum size.
 */
static void inconsistent_comparison_loses_no_element(void)
{
    test_run_everywhere(lie_about_all, NULL);
}

/* --- Cancels --------------------------------------------------------------------------- */

struct stopping {
    weft_stop stop;
    size_t size;
    uint64_t calls_left;
    _Atomic(uint64_t) calls;
};

static int compare_and_stop(const void *a, const void *b, void *arg)
{
    struct stopping *stopping = arg;
    if (atomic_fetch_add_explicit(&stopping->calls, 1, memory_order_relaxed) ==
        stopping->calls_left) {
        weft_stop_set(&stopping->stop);
    }
    return compare_records(a, b, &stopping->size);
}

static void stop_once(size_t count, size_t size, uint64_t calls_left, uint64_t most)
{
    struct records records = records_create(RANDOM, count, size, 0);
    struct stopping stopping = { .size = size, .calls_left = calls_left };
    weft_par_options options = { .stop = &stopping.stop };
    CHECK_EQ(weft_sort(records.array.at, count, size, compare_and_stop, &stopping, &options),
             WEFT_ECANCELED);
    CHECK_LE(atomic_load(&stopping.calls), calls_left + most);
    records_check_all_there(&records);
    records_destroy(&records);
}

static int stop_at_each_stage(void *arg)
{
    (void)arg;
    size_t count = 40000;
    for (size_t k = 0; k < 2; k++) {
        size_t size = k == 0 ? 16 : 3;
        /* During the check for sorted input, the sampling, the choice of buckets, and in the
         * buckets. */
        stop_once(count, size, 0, 8 * count);
        stop_once(count, size, 1000, 8 * count);
        stop_once(count, size, 2 * count, 6 * count);
        stop_once(count, size, 9 * count, 2 * count);
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

/* --- Memory ---------------------------------------------------------------------------- */

static void scratch_of_stated_size_is_enough(void)
{
    static const size_t counts[] = { 0, 1, 2, 5, 1000, 16384, 40000 };
    for (size_t k = 0; k < SIZES; k++) {
        for (size_t i = 0; i < 7; i++) {
            size_t count = counts[i];
            size_t size = sizes[k];
            struct records records = records_create(RANDOM, count, size, 0);
            size_t scratch_size = weft_sort_scratch(count, size);
            struct guarded scratch = guarded_create(scratch_size, (i * 7 + k) % 64);
            weft_par_options options = { .scratch = scratch.at, .scratch_size = scratch_size };
            CHECK_EQ(weft_sort(records.array.at, count, size, compare_records, &size, &options), 0);
            records_check(&records);
            guarded_destroy(&scratch);
            records_destroy(&records);
        }
    }
}

static void invalid_arguments_are_rejected(void)
{
    uint32_t values[2] = { 2, 1 };
    size_t size = 4;
    char scratch[16];
    weft_par_options options = { .scratch = scratch, .scratch_size = sizeof scratch };
    CHECK_EQ(weft_sort(values, 2, 0, compare_records, &size, NULL), -EINVAL);
    CHECK_EQ(weft_sort(values, 2, 4, compare_records, &size, &options), -EINVAL);
    CHECK_EQ(weft_sort_stable(values, 2, 4, compare_records, &size, &options), -EINVAL);
    CHECK_EQ(weft_sort_stable(values, SIZE_MAX, 4, compare_records, &size, NULL), -ENOMEM);
    CHECK_EQ(weft_sort_stable(values, SIZE_MAX, 3, compare_records, &size, NULL), -ENOMEM);
    CHECK_EQ(values[0], 2);
    CHECK_EQ(values[1], 1);
    CHECK(weft_sort_scratch(SIZE_MAX, 4) == SIZE_MAX);
    CHECK_EQ(weft_sort(NULL, 0, 4, compare_records, &size, NULL), 0);
}

static int sort_records(void *arg)
{
    struct records *records = arg;
    return weft_sort(records->array.at, records->count, records->size, compare_records,
                     &records->size, NULL);
}

static void out_of_memory_leaves_array_unchanged(void)
{
    static const size_t tight_sizes[] = { 3, 16 };
    for (size_t k = 0; k < 2; k++) {
        struct records records = records_create(RANDOM, 300000, tight_sizes[k], 0);
        memcpy(records.expected.at, records.array.at, records.array.size);
        CHECK_EQ(result_without_memory(sort_records, &records), -ENOMEM);
        records_check(&records);
        records_destroy(&records);
    }
}

TEST_MAIN({
    TEST(invalid_arguments_are_rejected),
    TEST_DEBUG(out_of_memory_leaves_array_unchanged),
    TEST(elements_of_any_size_are_sorted),
    TEST(elements_at_any_address_are_sorted),
    TEST(many_elements_are_sorted),
    TEST(number_of_comparisons_is_bounded),
    TEST(inconsistent_comparison_loses_no_element),
    TEST(cancel_keeps_every_element),
    TEST(scratch_of_stated_size_is_enough),
})
