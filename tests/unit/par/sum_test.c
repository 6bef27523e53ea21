/* SPDX-License-Identifier: MIT */
#include "fold.h"
#include "inputs.h"
#include "memory.h"

static const size_t lengths[] = { 0,  1,  2,    3,    7,    8,    9,    15,   16,    17,
                                  63, 64, 1023, 1024, 1025, 1031, 2048, 9999, 100000 };

#define LENGTHS (sizeof lengths / sizeof lengths[0])

/* --- Integers -------------------------------------------------------------------------- */

/* Random bits, so that 64-bit sums overflow. */
#define MAKE_TEST(name, type, sum_type)                                                            \
    static void sum_one_##name(size_t count, const weft_par_options *options)                      \
    {                                                                                              \
        struct wf_rng rng;                                                                         \
        wf_rng_seed(&rng, test_seed(), count);                                                     \
        struct guarded array = guarded_create(count * sizeof(type), 0);                            \
        struct guarded to = guarded_create(count * sizeof(sum_type), 0);                           \
        struct guarded before = guarded_create(count * sizeof(sum_type), 0);                       \
        type *base = (type *)(void *)array.at;                                                     \
        sum_type *totals = (sum_type *)(void *)to.at;                                              \
        sum_type *exclusive = (sum_type *)(void *)before.at;                                       \
        for (size_t i = 0; i < count; i++) {                                                       \
            base[i] = (type)random_value(&rng);                                                    \
        }                                                                                          \
        sum_type sum = 77;                                                                         \
        CHECK_EQ(weft_sum_##name(base, count, &sum, options), 0);                                  \
        CHECK_EQ(weft_scan_##name(base, count, totals, options), 0);                               \
        CHECK_EQ(weft_scan_exclusive_##name(base, count, exclusive, options), 0);                  \
        uint64_t wanted = 0;                                                                       \
        for (size_t i = 0; i < count; i++) {                                                       \
            CHECK_EQ(exclusive[i], wanted);                                                        \
            wanted += (uint64_t)(sum_type)base[i];                                                 \
            CHECK_EQ(totals[i], wanted);                                                           \
        }                                                                                          \
        CHECK_EQ(sum, wanted);                                                                     \
        guarded_destroy(&array);                                                                   \
        guarded_destroy(&to);                                                                      \
        guarded_destroy(&before);                                                                  \
    }

MAKE_TEST(i32, int32_t, int64_t)
MAKE_TEST(i64, int64_t, int64_t)
MAKE_TEST(u32, uint32_t, uint64_t)
MAKE_TEST(u64, uint64_t, uint64_t)

static int sum_integers(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < LENGTHS; i++) {
        weft_par_options options = { .piece = i * 5 };
        sum_one_i32(lengths[i], NULL);
        sum_one_i64(lengths[i], &options);
        sum_one_u32(lengths[i], &options);
        sum_one_u64(lengths[i], NULL);
    }
    return 0;
}

static void integers_are_added_in_64_bits(void)
{
    test_run_everywhere(sum_integers, NULL);
}

/* --- Floating-point numbers ------------------------------------------------------------ */

enum {
    COUNT = 100000,
};

/* Results that are computed without workers first, and must be the same everywhere. */
struct floats {
    double values[COUNT];
    float floats[COUNT];
    double totals[4][COUNT];
    double sums[4];
};

static struct floats first;
static struct floats here;

static void compute(struct floats *floats)
{
    const double *values = floats->values;
    const float *singles = floats->floats;
    CHECK_EQ(weft_sum_f64(values, COUNT, &floats->sums[0], NULL), 0);
    CHECK_EQ(weft_sum_f32(singles, COUNT, &floats->sums[1], NULL), 0);
    CHECK_EQ(weft_dot_f64(values, values, COUNT, &floats->sums[2], NULL), 0);
    CHECK_EQ(weft_dot_f32(singles, singles, COUNT, &floats->sums[3], NULL), 0);
    CHECK_EQ(weft_scan_f64(values, COUNT, floats->totals[0], NULL), 0);
    CHECK_EQ(weft_scan_f32(singles, COUNT, floats->totals[1], NULL), 0);
    CHECK_EQ(weft_scan_exclusive_f64(values, COUNT, floats->totals[2], NULL), 0);
    CHECK_EQ(weft_scan_exclusive_f32(singles, COUNT, floats->totals[3], NULL), 0);
}

static void fill(struct floats *floats)
{
    for (size_t i = 0; i < COUNT; i++) {
        floats->values[i] = fold_number(i);
        floats->floats[i] = (float)fold_number(i);
    }
}

static int compute_as_first(void *arg)
{
    (void)arg;
    compute(&here);
    CHECK_EQ(memcmp(here.sums, first.sums, sizeof first.sums), 0);
    CHECK_EQ(memcmp(here.totals, first.totals, sizeof first.totals), 0);
    return 0;
}

static void float_sums_are_bitwise_equal_everywhere(void)
{
    fill(&first);
    fill(&here);
    compute(&first);
    test_run_everywhere(compute_as_first, NULL);
}

static void check_near(double is, long double wanted, long double error)
{
    CHECK(fabsl(is - wanted) <= fabsl(wanted) * error);
}

static void float_sums_are_precise(void)
{
    fill(&first);
    compute(&first);
    long double wanted[4] = { 0 };
    for (size_t i = 0; i < COUNT; i++) {
        check_near(first.totals[2][i], wanted[0], 1e-12L);
        check_near(first.totals[3][i], wanted[1], 1e-12L);
        wanted[0] += first.values[i];
        wanted[1] += first.floats[i];
        wanted[2] += (long double)first.values[i] * first.values[i];
        wanted[3] += (long double)first.floats[i] * first.floats[i];
        check_near(first.totals[0][i], wanted[0], 1e-12L);
        check_near(first.totals[1][i], wanted[1], 1e-12L);
    }
    for (size_t i = 0; i < 4; i++) {
        check_near(first.sums[i], wanted[i], 1e-14L);
    }
}

/* Small numbers, whose sums are exact in any order: each length and each position. */
static int add_few(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < LENGTHS && lengths[i] <= COUNT; i++) {
        double sum = 0;
        for (size_t k = 0; k < lengths[i]; k++) {
            here.values[k] = (double)k;
            here.floats[k] = (float)(k % 1000);
            sum += (double)k * (double)(k % 1000);
        }
        double is = -1;
        CHECK_EQ(weft_sum_f64(here.values, lengths[i], &is, NULL), 0);
        CHECK(is == (double)lengths[i] * ((double)lengths[i] - 1) / 2);
        for (size_t k = 0; k < lengths[i]; k++) {
            here.values[k] = (double)k;
            here.totals[0][k] = here.floats[k];
        }
        CHECK_EQ(weft_dot_f64(here.values, here.totals[0], lengths[i], &is, NULL), 0);
        CHECK(is == sum);
        CHECK_EQ(weft_scan_exclusive_f64(here.values, lengths[i], here.values, NULL), 0);
        for (size_t k = 0; k < lengths[i]; k++) {
            CHECK(here.values[k] == (double)k * ((double)k - 1) / 2);
        }
    }
    return 0;
}

static void each_number_is_added_once(void)
{
    test_run_everywhere(add_few, NULL);
}

/* --- In place, errors, cancels --------------------------------------------------------- */

static int scan_in_place(void *arg)
{
    (void)arg;
    static uint64_t values[COUNT];
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < COUNT; i++) {
            values[i] = i + 1;
        }
        CHECK_EQ(k == 0 ? weft_scan_u64(values, COUNT, values, NULL)
                        : weft_scan_exclusive_u64(values, COUNT, values, NULL),
                 0);
        for (size_t i = 0; i < COUNT; i++) {
            CHECK_EQ(values[i], k == 0 ? (i + 1) * (i + 2) / 2 : i * (i + 1) / 2);
        }
    }
    return 0;
}

static void scan_may_run_in_place(void)
{
    test_run_everywhere(scan_in_place, NULL);
}

static int stop_all(void *arg)
{
    (void)arg;
    weft_stop stop = { 0 };
    weft_stop_set(&stop);
    weft_par_options options = { .stop = &stop };
    double sum = 77;
    int64_t integer = 77;
    CHECK_EQ(weft_sum_f64(first.values, COUNT, &sum, &options), WEFT_ECANCELED);
    CHECK(sum == 0);
    CHECK_EQ(weft_sum_i64(&(int64_t){ 5 }, 1, &integer, &options), WEFT_ECANCELED);
    CHECK_EQ(integer, 0);
    CHECK_EQ(weft_dot_f32(first.floats, first.floats, COUNT, &sum, &options), WEFT_ECANCELED);
    CHECK_EQ(weft_scan_f32(first.floats, COUNT, here.totals[0], &options), WEFT_ECANCELED);
    return 0;
}

static void cancel_flag_ends_call(void)
{
    test_run_everywhere(stop_all, NULL);
}

static void invalid_arguments_are_rejected(void)
{
    double sum = 77;
    uint64_t integer = 77;
    CHECK_EQ(weft_sum_f64(first.values, SIZE_MAX / 8, &sum, NULL), -EINVAL);
    CHECK(sum == 0);
    CHECK_EQ(weft_dot_f32(first.floats, first.floats, SIZE_MAX, &sum, NULL), -EINVAL);
    CHECK_EQ(weft_scan_u32(NULL, SIZE_MAX / 8, &integer, NULL), -EINVAL);
    CHECK_EQ(integer, 77);
    CHECK_EQ(weft_sum_u32(NULL, 0, &integer, NULL), 0);
    CHECK_EQ(integer, 0);
    CHECK_EQ(weft_dot_f64(NULL, NULL, 0, &sum, NULL), 0);
    CHECK_EQ(weft_scan_i32(NULL, 0, NULL, NULL), 0);
    CHECK_EQ(weft_scan_exclusive_f64(NULL, 0, NULL, NULL), 0);
}

static int sum_in_many_chunks(void *arg)
{
    uint64_t *values = arg;
    uint64_t sum = 77;
    weft_par_options options = { .piece = 1 };
    return weft_sum_u64(values, 1000000, &sum, &options);
}

static void out_of_memory_returns_enomem(void)
{
    uint64_t *values = calloc(1000000, sizeof *values);
    CHECK(values != NULL);
    CHECK_EQ(result_without_memory(sum_in_many_chunks, values), -ENOMEM);
    free(values);
}

TEST_MAIN({
    TEST_DEBUG(out_of_memory_returns_enomem),
    TEST(invalid_arguments_are_rejected),
    TEST(integers_are_added_in_64_bits),
    TEST(float_sums_are_bitwise_equal_everywhere),
    TEST(float_sums_are_precise),
    TEST(each_number_is_added_once),
    TEST(scan_may_run_in_place),
    TEST(cancel_flag_ends_call),
})
