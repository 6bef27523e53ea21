/* SPDX-License-Identifier: MIT */
#include <pthread.h>

#include "inputs.h"
#include "memory.h"

/* --- One test for each type ------------------------------------------------------------ */

static int order_f32(float a, float b)
{
    int32_t x;
    int32_t y;
    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    x ^= (int32_t)((uint32_t)(x >> 31) >> 1);
    y ^= (int32_t)((uint32_t)(y >> 31) >> 1);
    return (x > y) - (x < y);
}

static int order_f64(double a, double b)
{
    int64_t x;
    int64_t y;
    memcpy(&x, &a, 8);
    memcpy(&y, &b, 8);
    x ^= (int64_t)((uint64_t)(x >> 63) >> 1);
    y ^= (int64_t)((uint64_t)(y >> 63) >> 1);
    return (x > y) - (x < y);
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Random bits make floating-point numbers of every kind, NaNs included. */
#define MAKE_TEST(name, type, order)                                                               \
    static int compare_##name(const void *a, const void *b)                                        \
    {                                                                                              \
        return order(*(const type *)a, *(const type *)b);                                          \
    }                                                                                              \
    static void sort_one_##name(enum pattern pattern, size_t count, bool with_scratch)             \
    {                                                                                              \
        struct wf_rng rng;                                                                         \
        wf_rng_seed(&rng, test_seed(), pattern);                                                   \
        struct guarded array = guarded_create(count * sizeof(type), 0);                            \
        struct guarded expected = guarded_create(count * sizeof(type), 0);                         \
        for (size_t i = 0; i < count; i++) {                                                       \
            uint64_t bits = input_value(pattern, i, count, &rng);                                  \
            memcpy(array.at + i * sizeof(type), &bits, sizeof(type));                              \
        }                                                                                          \
        memcpy(expected.at, array.at, array.size);                                                 \
        qsort(expected.at, count, sizeof(type), compare_##name);                                   \
        size_t size = weft_sort_number_scratch(count, sizeof(type));                               \
        struct guarded scratch = guarded_create(size, count % 64);                                 \
        weft_par_options options = { .scratch = scratch.at, .scratch_size = size };                \
        type *base = (type *)(void *)array.at;                                                     \
        CHECK_EQ(weft_sort_##name(base, count, with_scratch ? &options : NULL), 0);                \
        CHECK_EQ(memcmp(array.at, expected.at, array.size), 0);                                    \
        guarded_destroy(&scratch);                                                                 \
        guarded_destroy(&expected);                                                                \
        guarded_destroy(&array);                                                                   \
    }

MAKE_TEST(u32, uint32_t, ORDER)
MAKE_TEST(u64, uint64_t, ORDER)
MAKE_TEST(i32, int32_t, ORDER)
MAKE_TEST(i64, int64_t, ORDER)
MAKE_TEST(f32, float, order_f32)
MAKE_TEST(f64, double, order_f64)

static void sort_each_type(enum pattern pattern, size_t count, bool with_scratch)
{
    sort_one_u32(pattern, count, with_scratch);
    sort_one_u64(pattern, count, with_scratch);
    sort_one_i32(pattern, count, with_scratch);
    sort_one_i64(pattern, count, with_scratch);
    sort_one_f32(pattern, count, with_scratch);
    sort_one_f64(pattern, count, with_scratch);
}

static int sort_all(void *arg)
{
    (void)arg;
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        for (size_t i = 0; i < INPUT_COUNTS; i++) {
            if (input_counts[i] <= test_scale(1000) || (i + pattern) % 7 == 0) {
                sort_each_type((enum pattern)pattern, input_counts[i], (i + pattern) % 2 == 0);
            }
        }
    }
    return 0;
}

static void sort_matches_qsort(void)
{
    test_run_everywhere(sort_all, NULL);
}

static int sort_many(void *arg)
{
    (void)arg;
    sort_one_u32(RANDOM, test_scale(1000000), false);
    sort_one_u32(HALVES, 65536, false);
    sort_one_f64(CLUSTERED, test_scale(500000), true);
    sort_one_i64(MOSTLY_EQUAL, test_scale(500000), false);
    return 0;
}

static void sort_of_many_numbers_matches_qsort(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, sort_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Cancels --------------------------------------------------------------------------- */

static weft_stop stop;

static void *set_stop_soon(void *arg)
{
    for (volatile unsigned left = *(const unsigned *)arg; left > 0; left--) {
    }
    weft_stop_set(&stop);
    return NULL;
}

static int sort_and_stop(void *arg)
{
    enum {
        COUNT = 300000
    };
    (void)arg;
    uint64_t *values = malloc(COUNT * sizeof *values);
    bool *seen = malloc(COUNT);
    CHECK(values != NULL);
    CHECK(seen != NULL);
    weft_par_options options = { .stop = &stop };
    for (unsigned pause = 0; pause < 8000000; pause += 400000) {
        for (size_t i = 0; i < COUNT; i++) {
            values[i] = wf_rng_mix(i) % 1000 << 50 | i; /* three levels of digits */
        }
        stop = (weft_stop){ 0 };
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, set_stop_soon, &pause), 0);
        int err = weft_sort_u64(values, COUNT, &options);
        CHECK(err == 0 || err == WEFT_ECANCELED);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        memset(seen, 0, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            size_t index = values[i] % (UINT64_C(1) << 50);
            CHECK(index < COUNT && !seen[index]);
            seen[index] = true;
        }
    }
    free(seen);
    free(values);
    return 0;
}

/*
 * Goal:   all numbers are still in the array, whenever the sort is canceled.
 * Method: a thread sets the cancel flag after it has counted for a while.
 */
static void cancel_keeps_every_number(void)
{
    CHECK_EQ(sort_and_stop(NULL), 0);
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, sort_and_stop, NULL), 0);
    weft_runtime_destroy(rt);
}

static void set_cancel_flag_prevents_sort(void)
{
    uint32_t values[] = { 3, 1, 2 };
    weft_stop before = { 0 };
    weft_par_options options = { .stop = &before };
    weft_stop_set(&before);
    CHECK_EQ(weft_sort_u32(values, 3, &options), WEFT_ECANCELED);
    CHECK_EQ(values[0], 3);
}

/* --- Special cases --------------------------------------------------------------------- */

static void floats_are_sorted_in_total_order(void)
{
    double values[] = { NAN, 1, -0.0, INFINITY, -NAN, 0.0, -INFINITY, -1, 5e-324, -5e-324 };
    static const double wanted[] = { -NAN, -INFINITY, -1, -5e-324,  -0.0,
                                     0.0,  5e-324,    1,  INFINITY, NAN };
    CHECK_EQ(weft_sort_f64(values, 10, NULL), 0);
    CHECK_EQ(memcmp(values, wanted, sizeof wanted), 0);

    float floats[] = { NAN, 1, -0.0F, INFINITY, -NAN, 0.0F, -INFINITY, -1, 1e-45F, -1e-45F };
    static const float wanted_floats[] = { -NAN, -INFINITY, -1, -1e-45F,  -0.0F,
                                           0.0F, 1e-45F,    1,  INFINITY, NAN };
    CHECK_EQ(weft_sort_f32(floats, 10, NULL), 0);
    CHECK_EQ(memcmp(floats, wanted_floats, sizeof wanted_floats), 0);
}

static void too_small_scratch_is_rejected(void)
{
    static const size_t counts[] = { 2, 1000, 100000 };
    for (size_t i = 0; i < 3; i++) {
        size_t size = weft_sort_number_scratch(counts[i], 8) - 1;
        uint64_t *values = calloc(counts[i], 8);
        void *scratch = malloc(size);
        CHECK(values != NULL);
        CHECK(scratch != NULL);
        values[0] = 1;
        weft_par_options options = { .scratch = scratch, .scratch_size = size };
        CHECK_EQ(weft_sort_u64(values, counts[i], &options), -EINVAL);
        CHECK_EQ(values[0], 1);
        free(scratch);
        free(values);
    }
}

static int sort_million(void *arg)
{
    return weft_sort_u64(arg, 1000000, NULL);
}

static void out_of_memory_leaves_array_unchanged(void)
{
    uint64_t *values = malloc(1000000 * sizeof *values);
    CHECK(values != NULL);
    for (size_t i = 0; i < 1000000; i++) {
        values[i] = 1000000 - i;
    }
    CHECK_EQ(result_without_memory(sort_million, values), -ENOMEM);
    for (size_t i = 0; i < 1000000; i++) {
        CHECK_EQ(values[i], 1000000 - i);
    }
    free(values);
}

static void sort_of_nothing_accepts_null(void)
{
    CHECK_EQ(weft_sort_u32(NULL, 0, NULL), 0);
    CHECK_EQ(weft_sort_f64(NULL, 0, NULL), 0);
}

TEST_MAIN({
    TEST(floats_are_sorted_in_total_order),
    TEST(too_small_scratch_is_rejected),
    TEST(sort_of_nothing_accepts_null),
    TEST_DEBUG(out_of_memory_leaves_array_unchanged),
    TEST(sort_matches_qsort),
    TEST(sort_of_many_numbers_matches_qsort),
    TEST(cancel_keeps_every_number),
    TEST(set_cancel_flag_prevents_sort),
})
