/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

#include "everywhere.h"
#include "fold.h"
#include "test.h"

enum {
    COUNT = 100000,
};

static const size_t lengths[] = { 0, 1, 2, 3, 511, 512, 513, 1024, 10000, COUNT };

static struct affine affines[COUNT];
static double sums[COUNT];
static double first_sums[COUNT]; /* of the first run, without workers */

static int affine_scan(void *value, size_t first, size_t end, void *arg)
{
    struct affine *before = value;
    bool inclusive = *(bool *)arg;
    for (size_t i = first; i < end; i++) {
        struct affine next = affine_then(*before, affine_of(i));
        affines[i] = inclusive ? next : *before;
        *before = next;
    }
    return 0;
}

static int check_affine(void *arg)
{
    (void)arg;
    weft_scanner how = { .reduction = AFFINE_REDUCTION, .scan = affine_scan };
    for (size_t k = 0; k < 4 * sizeof lengths / sizeof lengths[0]; k++) {
        bool inclusive = k % 2 == 0;
        how.is_exact = k / 2 % 2 == 0;
        size_t count = lengths[k / 4];
        struct affine total = { 99, 99 };
        memset(affines, 0, sizeof affines);
        CHECK_EQ(weft_scan(0, count, &how, &inclusive, &total, NULL), 0);
        struct affine wanted = affine_identity;
        for (size_t i = 0; i < count; i++) {
            struct affine next = affine_then(wanted, affine_of(i));
            CHECK_EQ(affines[i].a, (inclusive ? next : wanted).a);
            CHECK_EQ(affines[i].b, (inclusive ? next : wanted).b);
            wanted = next;
        }
        CHECK_EQ(total.a, wanted.a);
        CHECK_EQ(total.b, wanted.b);
    }
    return 0;
}

static void scan_combines_from_left_to_right(void)
{
    test_run_everywhere(check_affine, NULL);
}

static int sum_scan(void *value, size_t first, size_t end, void *arg)
{
    (void)arg;
    double sum = *(double *)value;
    for (size_t i = first; i < end; i++) {
        sum += fold_number(i);
        sums[i] = sum;
    }
    return 0;
}

static int check_sums(void *arg)
{
    bool *is_first = arg;
    static const weft_scanner how = { .reduction = SUM_REDUCTION, .scan = sum_scan };
    CHECK_EQ(weft_scan(0, COUNT, &how, NULL, NULL, NULL), 0);
    if (*is_first) {
        *is_first = false;
        memcpy(first_sums, sums, sizeof sums);
    }
    CHECK_EQ(memcmp(first_sums, sums, sizeof sums), 0);
    return 0;
}

static void sums_are_bitwise_equal_everywhere(void)
{
    bool is_first = true;
    test_run_everywhere(check_sums, &is_first);
}

/* In place: the scan overwrites the numbers that were folded. */
static uint64_t numbers[COUNT];

static int number_fold(void *value, size_t first, size_t end, void *arg)
{
    (void)arg;
    for (size_t i = first; i < end; i++) {
        *(uint64_t *)value += numbers[i];
    }
    return 0;
}

static void number_combine(void *value, const void *next, void *arg)
{
    (void)arg;
    *(uint64_t *)value += *(const uint64_t *)next;
}

static int number_scan(void *value, size_t first, size_t end, void *arg)
{
    (void)arg;
    for (size_t i = first; i < end; i++) {
        *(uint64_t *)value += numbers[i];
        numbers[i] = *(uint64_t *)value;
    }
    return 0;
}

static int scan_in_place(int (*fold)(void *value, size_t first, size_t end, void *arg))
{
    static const uint64_t zero = 0;
    weft_scanner how = { .reduction = { .size = sizeof zero,
                                        .identity = &zero,
                                        .fold = fold,
                                        .combine = number_combine },
                         .scan = number_scan };
    for (size_t i = 0; i < COUNT; i++) {
        numbers[i] = i;
    }
    uint64_t total = 0;
    CHECK_EQ(weft_scan(0, COUNT, &how, NULL, &total, NULL), 0);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(numbers[i], i * (i + 1) / 2);
    }
    CHECK_EQ(total, numbers[COUNT - 1]);
    return 0;
}

static int check_in_place(void *arg)
{
    (void)arg;
    return scan_in_place(number_fold);
}

static void scan_may_overwrite_its_input(void)
{
    test_run_everywhere(check_in_place, NULL);
}

/* If there is another worker, the first block is folded last. Until then the initial values of
 * the other blocks are unknown. */
static _Atomic(size_t) others_folded;

static int late_fold(void *value, size_t first, size_t end, void *arg)
{
    weft_time start = weft_now();
    while (first == 0 && atomic_load(&others_folded) < COUNT / 2 &&
           weft_now() - start < 20 * WEFT_MS) {
    }
    atomic_fetch_add(&others_folded, first == 0 ? 0 : end - first);
    return number_fold(value, first, end, arg);
}

static int check_late(void *arg)
{
    (void)arg;
    atomic_store(&others_folded, 0);
    return scan_in_place(late_fold);
}

static void late_first_block_does_not_stall_others(void)
{
    test_run_everywhere(check_late, NULL);
}

static int fail_fold(void *value, size_t first, size_t end, void *arg)
{
    (void)value;
    (void)arg;
    return first <= 100 && end > 100 ? -55 : 0;
}

static int fail_scan(void *value, size_t first, size_t end, void *arg)
{
    return fail_fold(value, first, end, arg) - (first <= 100 && end > 100);
}

static weft_stop stop;

static int check_ends(void *arg)
{
    (void)arg;
    double total = -1;
    weft_scanner how = { .reduction = SUM_REDUCTION, .scan = fail_scan };
    CHECK_EQ(weft_scan(0, 10000, &how, NULL, &total, NULL), -56);
    how.reduction.fold = fail_fold;
    CHECK_EQ(weft_scan(0, 10000, &how, NULL, &total, NULL), -55);
    weft_par_options options = { .stop = &stop };
    CHECK_EQ(weft_scan(0, 10000, &how, NULL, &total, &options), WEFT_ECANCELED);
    CHECK(total == -1);
    return 0;
}

/* A block that is scanned without being folded. */
static int check_exact_ends(void *arg)
{
    (void)arg;
    double total = -1;
    weft_scanner how = { .reduction = SUM_REDUCTION, .scan = fail_scan, .is_exact = true };
    CHECK_EQ(weft_scan(0, 10000, &how, NULL, &total, NULL), -56);
    CHECK_EQ(weft_scan(100, 101, &how, NULL, &total, NULL), -56);
    CHECK(total == -1);
    return 0;
}

static void exact_scan_returns_error(void)
{
    test_run_everywhere(check_exact_ends, NULL);
}

static void errors_and_cancels_end_call(void)
{
    weft_stop_set(&stop);
    test_run_everywhere(check_ends, NULL);
}

TEST_MAIN({
    TEST(scan_combines_from_left_to_right),
    TEST(sums_are_bitwise_equal_everywhere),
    TEST(scan_may_overwrite_its_input),
    TEST(late_first_block_does_not_stall_others),
    TEST(exact_scan_returns_error),
    TEST(errors_and_cancels_end_call),
})
