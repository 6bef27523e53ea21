/* SPDX-License-Identifier: MIT */
#include "inputs.h"

static const size_t lengths[] = { 1,  2,   3,    4,    5,    6,    7,    8,    9,
                                  33, 100, 1023, 1024, 1025, 1030, 4099, 60000 };

#define LENGTHS (sizeof lengths / sizeof lengths[0])

/* --- Results --------------------------------------------------------------------------- */

/* Random bits make floating-point numbers of every kind, NaNs included. */
#define MAKE_TEST(name, type)                                                                      \
    static void find_one_##name(enum pattern pattern, size_t count)                                \
    {                                                                                              \
        struct wf_rng rng;                                                                         \
        wf_rng_seed(&rng, test_seed(), pattern);                                                   \
        struct guarded array = guarded_create(count * sizeof(type), 0);                            \
        type *base = (type *)(void *)array.at;                                                     \
        bool is_first = true;                                                                      \
        type least = 0;                                                                            \
        type greatest = 0;                                                                         \
        for (size_t i = 0; i < count; i++) {                                                       \
            uint64_t bits = input_value(pattern, i, count, &rng) << (pattern == SORTED ? 40 : 0);  \
            memcpy(base + i, (char *)&bits + 8 - sizeof(type), sizeof(type));                      \
            if (base[i] == base[i]) {                                                              \
                least = is_first || base[i] < least ? base[i] : least;                             \
                greatest = is_first || base[i] > greatest ? base[i] : greatest;                    \
                is_first = false;                                                                  \
            }                                                                                      \
        }                                                                                          \
        type found = 0;                                                                            \
        CHECK_EQ(weft_least_##name(base, count, &found, NULL), 0);                                 \
        CHECK(is_first ? found != found : found == least);                                         \
        CHECK_EQ(weft_greatest_##name(base, count, &found, NULL), 0);                              \
        CHECK(is_first ? found != found : found == greatest);                                      \
        guarded_destroy(&array);                                                                   \
    }                                                                                              \
                                                                                                   \
    /* The wanted value is at each position. */                                                    \
    static void find_each_##name(void)                                                             \
    {                                                                                              \
        type values[30];                                                                           \
        for (size_t count = 1; count <= 30; count++) {                                             \
            for (size_t at = 0; at < count; at++) {                                                \
                for (size_t i = 0; i < count; i++) {                                               \
                    values[i] = 50;                                                                \
                }                                                                                  \
                type found = 0;                                                                    \
                values[at] = 1;                                                                    \
                CHECK_EQ(weft_least_##name(values, count, &found, NULL), 0);                       \
                CHECK(found == 1);                                                                 \
                values[at] = 99;                                                                   \
                CHECK_EQ(weft_greatest_##name(values, count, &found, NULL), 0);                    \
                CHECK(found == 99);                                                                \
            }                                                                                      \
        }                                                                                          \
    }

MAKE_TEST(i32, int32_t)
MAKE_TEST(i64, int64_t)
MAKE_TEST(u32, uint32_t)
MAKE_TEST(u64, uint64_t)
MAKE_TEST(f32, float)
MAKE_TEST(f64, double)

static int find_all(void *arg)
{
    (void)arg;
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        for (size_t i = pattern % 3; i < LENGTHS; i += 3) {
            find_one_i32((enum pattern)pattern, lengths[i]);
            find_one_i64((enum pattern)pattern, lengths[i]);
            find_one_u32((enum pattern)pattern, lengths[i]);
            find_one_u64((enum pattern)pattern, lengths[i]);
            find_one_f32((enum pattern)pattern, lengths[i]);
            find_one_f64((enum pattern)pattern, lengths[i]);
        }
    }
    return 0;
}

static void minimum_and_maximum_are_found(void)
{
    test_run_everywhere(find_all, NULL);
}

static void minimum_and_maximum_are_found_at_each_position(void)
{
    find_each_i32();
    find_each_i64();
    find_each_u32();
    find_each_u64();
    find_each_f32();
    find_each_f64();
}

/* --- Special cases --------------------------------------------------------------------- */

/* Blocks of two: some have only NaNs, some an infinity. */
static void nan_is_skipped(void)
{
    static const double values[] = { NAN, NAN, 3, NAN, -NAN, 7, NAN, NAN };
    static const float infinities[] = { NAN, INFINITY, NAN, NAN };
    weft_par_options options = { .piece = 2 };
    for (size_t k = 0; k < 2; k++) {
        const weft_par_options *given = k == 0 ? NULL : &options;
        double found = 0;
        CHECK_EQ(weft_least_f64(values, 8, &found, given), 0);
        CHECK(found == 3);
        CHECK_EQ(weft_greatest_f64(values, 8, &found, given), 0);
        CHECK(found == 7);
        CHECK_EQ(weft_least_f64(values, 2, &found, given), 0);
        CHECK(isnan(found));
        CHECK_EQ(weft_greatest_f64(values + 6, 2, &found, given), 0);
        CHECK(isnan(found));

        float single = 0;
        CHECK_EQ(weft_least_f32(infinities, 4, &single, given), 0);
        CHECK(single == INFINITY);
        CHECK_EQ(weft_greatest_f32(infinities, 4, &single, given), 0);
        CHECK(single == INFINITY);
        CHECK_EQ(weft_least_f32(infinities + 2, 2, &single, given), 0);
        CHECK(isnan(single));
        static const float negative[] = { -INFINITY, NAN };
        CHECK_EQ(weft_greatest_f32(negative, 2, &single, given), 0);
        CHECK(single == -INFINITY);
    }
}

static void initial_value_of_search_may_be_result(void)
{
    static const uint64_t most[] = { UINT64_MAX, UINT64_MAX };
    static const int32_t least[] = { INT32_MIN };
    uint64_t found = 0;
    int32_t integer = 0;
    CHECK_EQ(weft_least_u64(most, 2, &found, NULL), 0);
    CHECK(found == UINT64_MAX);
    CHECK_EQ(weft_greatest_i32(least, 1, &integer, NULL), 0);
    CHECK_EQ(integer, INT32_MIN);
}

static int stop_both(void *arg)
{
    (void)arg;
    weft_stop stop = { 0 };
    weft_stop_set(&stop);
    weft_par_options options = { .stop = &stop };
    static const int64_t values[] = { 1, 2 };
    int64_t found = 77;
    CHECK_EQ(weft_least_i64(values, 2, &found, &options), WEFT_ECANCELED);
    CHECK_EQ(weft_greatest_i64(values, 2, &found, &options), WEFT_ECANCELED);
    CHECK_EQ(found, 77);
    return 0;
}

static void cancel_flag_ends_call(void)
{
    test_run_everywhere(stop_both, NULL);
}

static void invalid_arguments_are_rejected(void)
{
    float found = 77;
    CHECK_EQ(weft_least_f32(NULL, 0, &found, NULL), -EINVAL);
    CHECK_EQ(weft_greatest_f32(NULL, 0, &found, NULL), -EINVAL);
    CHECK_EQ(weft_least_f32(&found, SIZE_MAX / 4, &found, NULL), -EINVAL);
    CHECK(found == 77);
}

TEST_MAIN({
    TEST(minimum_and_maximum_are_found),
    TEST(minimum_and_maximum_are_found_at_each_position),
    TEST(nan_is_skipped),
    TEST(initial_value_of_search_may_be_result),
    TEST(cancel_flag_ends_call),
    TEST(invalid_arguments_are_rejected),
})
