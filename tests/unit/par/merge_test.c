/* SPDX-License-Identifier: MIT */
#include "comparisons.h"

/* Two sorted arrays of records, the output of their merge, and the expected output. */
struct halves {
    struct records a;
    struct records b;
    struct guarded to;
    struct guarded wanted;
};

/* Merges element by element. Among equal records, those of a come first. */
static void merge_slowly(struct halves *halves)
{
    size_t size = halves->a.size;
    const unsigned char *a = halves->a.expected.at;
    const unsigned char *b = halves->b.expected.at;
    const unsigned char *a_end = a + halves->a.count * size;
    const unsigned char *b_end = b + halves->b.count * size;
    for (unsigned char *to = halves->wanted.at; a < a_end || b < b_end; to += size) {
        bool from_b = a == a_end || (b < b_end && record_key(b, size) < record_key(a, size));
        memcpy(to, from_b ? b : a, size);
        a += from_b ? 0 : size;
        b += from_b ? size : 0;
    }
}

static struct halves halves_create(enum pattern pattern, size_t a_count, size_t b_count,
                                   size_t size)
{
    struct halves halves = { .a = records_create(pattern, a_count, size, 0),
                             .b = records_create(pattern, b_count, size, 1),
                             .to = guarded_create((a_count + b_count) * size, 0),
                             .wanted = guarded_create((a_count + b_count) * size, 0) };
    /* The records of b have different bytes behind their key, if there are any. */
    for (size_t i = 0; i < b_count && key_size(size) < size; i++) {
        halves.b.expected.at[i * size + size - 1] ^= 0x55;
    }
    merge_slowly(&halves);
    return halves;
}

static void halves_destroy(struct halves *halves)
{
    records_destroy(&halves->a);
    records_destroy(&halves->b);
    guarded_destroy(&halves->to);
    guarded_destroy(&halves->wanted);
}

static int merge_halves(struct halves *halves, weft_compare_fn compare, void *arg,
                        const weft_par_options *options)
{
    return weft_merge(halves->a.expected.at, halves->a.count, halves->b.expected.at,
                      halves->b.count, halves->a.size, compare, arg, halves->to.at, options);
}

/* --- Results --------------------------------------------------------------------------- */

static void merge_one(enum pattern pattern, size_t a_count, size_t b_count, size_t size)
{
    struct halves halves = halves_create(pattern, a_count, b_count, size);
    CHECK_EQ(merge_halves(&halves, compare_records, &size, NULL), 0);
    CHECK_EQ(memcmp(halves.to.at, halves.wanted.at, halves.to.size), 0);
    halves_destroy(&halves);
}

static int merge_all(void *arg)
{
    (void)arg;
    for (size_t k = 0; k < RECORD_SIZES; k++) {
        for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
            for (size_t i = 0; i < INPUT_COUNTS; i++) {
                size_t count = input_counts[i];
                size_t chosen = i * 3 + pattern + k;
                if (chosen % (count <= test_scale(70) ? 8 : 131) == 0) {
                    merge_one((enum pattern)pattern, count, count, record_sizes[k]);
                    merge_one((enum pattern)pattern, count, 3, record_sizes[k]);
                    merge_one((enum pattern)pattern, count / 3, count, record_sizes[k]);
                    merge_one((enum pattern)pattern, 0, count, record_sizes[k]);
                }
            }
        }
    }
    return 0;
}

static void merge_is_stable(void)
{
    test_run_everywhere(merge_all, NULL);
}

static int merge_many(void *arg)
{
    (void)arg;
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        merge_one((enum pattern)pattern, test_scale(60000), test_scale(30000), 16);
    }
    return 0;
}

static void merge_of_many_elements_is_stable(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, merge_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Inconsistent comparisons, errors, cancels ----------------------------------------- */

static void lie_once(weft_compare_fn liar, size_t a_count, size_t b_count, size_t size)
{
    struct halves halves = halves_create(RANDOM, a_count, b_count, size);
    CHECK_EQ(merge_halves(&halves, liar, &size, NULL), 0);
    size_t count = a_count + b_count;
    CHECK_EQ(bag_of(halves.to.at, count, size), bag_of(halves.wanted.at, count, size));
    halves_destroy(&halves);
}

static int lie_about_all(void *arg)
{
    (void)arg;
    for (size_t k = 0; k < LIARS; k++) {
        for (size_t i = 0; i < INPUT_COUNTS; i++) {
            if ((i + k) % (input_counts[i] <= test_scale(70) ? 2 : 11) == 0) {
                lie_once(liars[k], input_counts[i], input_counts[i] / 2, k % 2 == 0 ? 8 : 3);
                lie_once(liars[k], i, input_counts[i], 4);
            }
        }
    }
    return 0;
}

static void inconsistent_comparison_loses_no_element(void)
{
    test_run_everywhere(lie_about_all, NULL);
}

static int stop_early(void *arg)
{
    (void)arg;
    struct halves halves = halves_create(RANDOM, 50000, 50000, 4);
    for (uint64_t at = 0; at <= 80000; at += 40000) {
        struct stopping stopping = { .size = 4, .at = at };
        weft_par_options options = { .stop = &stopping.stop };
        if (at == 0) {
            weft_stop_set(&stopping.stop);
        }
        CHECK_EQ(merge_halves(&halves, compare_and_stop, &stopping, &options), WEFT_ECANCELED);
        CHECK_LE(atomic_load(&stopping.calls), at + 9 * 4096);
    }
    halves_destroy(&halves);
    return 0;
}

static void cancel_flag_ends_call(void)
{
    test_run_everywhere(stop_early, NULL);
}

static void invalid_arguments_are_rejected(void)
{
    uint32_t values[2] = { 1, 2 };
    uint32_t to[4] = { 7, 7, 7, 7 };
    size_t size = 4;
    size_t half = SIZE_MAX / 2 + 1;
    CHECK_EQ(weft_merge(values, 2, values, 2, 0, compare_records, &size, to, NULL), -EINVAL);
    CHECK_EQ(weft_merge(values, half, values, half, 1, compare_records, &size, to, NULL), -EINVAL);
    CHECK_EQ(weft_merge(values, 2, values, half, 4, compare_records, &size, to, NULL), -EINVAL);
    CHECK_EQ(to[0], 7);
    CHECK_EQ(weft_merge(NULL, 0, NULL, 0, 4, compare_records, &size, NULL, NULL), 0);
    CHECK_EQ(weft_merge(NULL, 0, values, 2, 4, compare_records, &size, to, NULL), 0);
    CHECK_EQ(to[1], 2);
    CHECK_EQ(weft_merge(values, 1, NULL, 0, 4, compare_records, &size, to + 1, NULL), 0);
    CHECK_EQ(to[1], 1);
}

TEST_MAIN({
    TEST(merge_is_stable),
    TEST(merge_of_many_elements_is_stable),
    TEST(inconsistent_comparison_loses_no_element),
    TEST(cancel_flag_ends_call),
    TEST(invalid_arguments_are_rejected),
})
