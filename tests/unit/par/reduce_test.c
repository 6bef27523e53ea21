/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "everywhere.h"
#include "fold.h"
#include "test.h"

static const size_t lengths[] = { 0, 1, 2, 3, 511, 512, 513, 1024, 10000, 300000 };

static int check_affine(void *arg)
{
    (void)arg;
    static const weft_reduction how = AFFINE_REDUCTION;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (size_t first = 0; first < 20; first += 13) {
            struct affine wanted = affine_identity;
            CHECK_EQ(affine_fold(&wanted, first, first + lengths[i], NULL), 0);
            struct affine result = { 99, 99 };
            CHECK_EQ(weft_reduce(first, first + lengths[i], &how, NULL, &result, NULL), 0);
            CHECK_EQ(result.a, wanted.a);
            CHECK_EQ(result.b, wanted.b);
            weft_par_options options = { .piece = 1 + lengths[i] / 7 };
            CHECK_EQ(weft_reduce(first, first + lengths[i], &how, NULL, &result, &options), 0);
            CHECK_EQ(result.b, wanted.b);
        }
    }
    return 0;
}

static void reduce_combines_parts_in_order(void)
{
    test_run_everywhere(check_affine, NULL);
}

static int check_sum(void *arg)
{
    static const weft_reduction how = SUM_REDUCTION;
    double *wanted = arg;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        double sum = -1;
        CHECK_EQ(weft_reduce(0, lengths[i], &how, NULL, &sum, NULL), 0);
        if (wanted[i] == -2) { /* The first run, without workers. */
            wanted[i] = sum;
        }
        CHECK_EQ(memcmp(&sum, &wanted[i], sizeof sum), 0);
    }
    return 0;
}

static void sums_are_bitwise_equal_everywhere(void)
{
    double wanted[sizeof lengths / sizeof lengths[0]];
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        wanted[i] = -2;
    }
    test_run_everywhere(check_sum, wanted);
    double plain = 0;
    CHECK_EQ(sum_fold(&plain, 0, 300000, NULL), 0);
    CHECK(plain != wanted[9]); /* Else the order of additions would not show. */
}

static int fail_at_100(void *value, size_t first, size_t end, void *arg)
{
    (void)value;
    (void)arg;
    return first <= 100 && end > 100 ? -55 : 0;
}

static weft_stop stop;

static int check_ends(void *arg)
{
    (void)arg;
    weft_reduction how = SUM_REDUCTION;
    double sum = -1;
    weft_par_options options = { .stop = &stop };
    CHECK_EQ(weft_reduce(0, 10000, &how, NULL, &sum, &options), WEFT_ECANCELED);
    CHECK(sum == 0);
    how.fold = fail_at_100;
    sum = -1;
    CHECK_EQ(weft_reduce(0, 10000, &how, NULL, &sum, NULL), -55);
    CHECK(sum == 0);
    return 0;
}

static void errors_and_cancels_end_call(void)
{
    weft_stop_set(&stop);
    test_run_everywhere(check_ends, NULL);
}

static int check_scratch(void *arg)
{
    static const weft_reduction how = AFFINE_REDUCTION;
    static const weft_scanner scanner = { .reduction = AFFINE_REDUCTION, .scan = affine_fold };
    (void)arg;
    for (size_t piece = 0; piece < 1000; piece += 333) {
        size_t size = weft_loop_scratch(300000, sizeof(struct affine), piece);
        char *memory = malloc(size + 1);
        CHECK(memory != NULL);
        memory[size] = 77;
        struct affine result = { 99, 99 };
        weft_par_options options = { .piece = piece, .scratch = memory, .scratch_size = size };
        CHECK_EQ(weft_scan(0, 300000, &scanner, NULL, &result, &options), 0);
        CHECK_EQ(weft_reduce(0, 300000, &how, NULL, &result, &options), 0);
        CHECK_EQ(memory[size], 77);
        options.scratch_size = 100;
        CHECK_EQ(weft_reduce(0, 300000, &how, NULL, &result, &options), -EINVAL);
        CHECK_EQ(result.a, affine_identity.a);
        CHECK_EQ(weft_scan(0, 300000, &scanner, NULL, &result, &options), -EINVAL);
        free(memory);
    }
    return 0;
}

static void reduce_and_scan_use_given_scratch(void)
{
    test_run_everywhere(check_scratch, NULL);
}

TEST_MAIN({
    TEST(reduce_combines_parts_in_order),
    TEST(sums_are_bitwise_equal_everywhere),
    TEST(errors_and_cancels_end_call),
    TEST(reduce_and_scan_use_given_scratch),
})
