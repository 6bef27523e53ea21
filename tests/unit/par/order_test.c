/* SPDX-License-Identifier: MIT */
#include "comparisons.h"

/* Runs each algorithm that needs scratch with the given options. Returns 0, or the error that
 * all of them return. */
static int run_each(const struct records *records, size_t k, const weft_par_options *options)
{
    size_t size = records->size;
    size_t count = records->count;
    unsigned char *to = malloc(count * size + 1);
    CHECK(to != NULL);
    size_t kept = 0;
    size_t found = 0;
    int err =
        weft_unique(records->expected.at, count, size, compare_records, &size, to, &kept, options);
    CHECK_EQ(
        weft_top_k(records->array.at, count, size, k, compare_records, &size, to, &found, options),
        err);
    if (err == 0) {
        CHECK_EQ(memcmp(to, records->expected.at, found * size), 0);
    }
    memcpy(to, records->array.at, count * size);
    CHECK_EQ(weft_nth(to, count, size, k - 1, compare_records, &size, options), err);
    if (err == 0) {
        CHECK_EQ(record_key(to + (k - 1) * size, size),
                 record_key(records->expected.at + (k - 1) * size, size));
    }
    free(to);
    return err;
}

static void run_with_minimum_scratch(size_t count, size_t size, size_t offset)
{
    struct records records = records_create(RANDOM, count, size, 0);
    size_t scratch_size = weft_order_scratch(count, size);
    struct guarded scratch = guarded_create(scratch_size, offset);
    weft_par_options options = { .scratch = scratch.at, .scratch_size = scratch_size };
    static const size_t ks[] = { 1, 2, 7, 64, 500, 1024, 1025, 3000 };
    for (size_t i = 0; i < 8; i++) {
        if (ks[i] <= count) {
            CHECK_EQ(run_each(&records, ks[i], &options), 0);
        }
    }
    CHECK_EQ(run_each(&records, count, &options), 0);
    guarded_destroy(&scratch);
    records_destroy(&records);
}

static int run_all_with_minimum_scratch(void *arg)
{
    (void)arg;
    static const size_t counts[] = { 1, 2, 5, 64, 65, 1000, 1024, 1025, 4500, 20000, 60000 };
    for (size_t k = 0; k < RECORD_SIZES; k++) {
        for (size_t i = 0; i < 11; i++) {
            if (counts[i] <= 5000 || (i + k) % 4 == 0) {
                run_with_minimum_scratch(counts[i], record_sizes[k], (i * 7 + k) % 64);
            }
        }
    }
    return 0;
}

static void scratch_of_stated_size_is_enough(void)
{
    CHECK_EQ(run_all_with_minimum_scratch(NULL), 0);
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, run_all_with_minimum_scratch, NULL), 0);
    weft_runtime_destroy(rt);
}

static void too_small_scratch_is_rejected(void)
{
    struct records records = records_create(RANDOM, 20000, 8, 0);
    char scratch[64];
    weft_par_options options = { .scratch = scratch, .scratch_size = sizeof scratch };
    CHECK_EQ(run_each(&records, 5, &options), -EINVAL);
    CHECK_EQ(run_each(&records, 5000, &options), -EINVAL);
    records_destroy(&records);
}

static void scratch_size_overflow_gives_size_max(void)
{
    CHECK(weft_order_scratch(SIZE_MAX, 1) == SIZE_MAX);
    CHECK(weft_order_scratch(SIZE_MAX / 4, 8) == SIZE_MAX);
    CHECK_LT(weft_order_scratch(1000, 8), 64 * 1000);
}

TEST_MAIN({
    TEST(scratch_of_stated_size_is_enough),
    TEST(too_small_scratch_is_rejected),
    TEST(scratch_size_overflow_gives_size_max),
})
