/* SPDX-License-Identifier: MIT */
#include "elements.h"
#include "memory.h"

/* Puts the elements that pass first, then the others. Returns the number that pass. */
static size_t partition_alone(const struct elements *from, const struct rule *rule,
                              struct elements *to)
{
    size_t passed = 0;
    size_t next = 0;
    for (unsigned others = 0; others < 2; others++) {
        for (size_t i = 0; i < from->count; i++) {
            if (rule_passes(rule, element_at(from, i)) != others) {
                memcpy(element_at(to, next++), element_at(from, i), from->size);
                passed += !others;
            }
        }
    }
    return passed;
}

static void check_rule(const struct elements *from, uint64_t below, const weft_par_options *options)
{
    struct rule rule = { .size = from->size, .below = below };
    struct elements wanted = elements_copy(from);
    struct elements to = elements_copy(from);
    size_t passed = partition_alone(from, &rule, &wanted);
    size_t kept = 77;
    CHECK_EQ(weft_filter(from->array.at, from->count, from->size, rule_test, &rule, to.array.at,
                         &kept, options),
             0);
    CHECK_EQ(kept, passed);
    CHECK_EQ(rule.tested, from->count);
    CHECK_EQ(memcmp(to.array.at, wanted.array.at, kept * from->size), 0);

    memcpy(to.array.at, from->array.at, from->array.size);
    kept = 77;
    CHECK_EQ(weft_partition(to.array.at, from->count, from->size, rule_test, &rule, &kept, options),
             0);
    CHECK_EQ(kept, passed);
    CHECK_EQ(rule.tested, 2 * from->count);
    elements_check_equal(&to, &wanted);
    elements_destroy(&to);
    elements_destroy(&wanted);
}

static void check_input(enum pattern pattern, size_t count, size_t size)
{
    struct elements from = elements_create(pattern, count, size);
    size_t scratch_size = weft_array_scratch(count, size);
    struct guarded scratch = guarded_create(scratch_size, size % 64);
    weft_par_options options = { .scratch = scratch.at, .scratch_size = scratch_size };
    for (uint64_t below = 0; below <= 8; below += 4) {
        check_rule(&from, below, below == 4 ? &options : NULL);
    }
    check_rule(&from, 3, pattern % 2 == 0 ? &options : NULL);
    guarded_destroy(&scratch);
    elements_destroy(&from);
}

static int check_inputs(void *arg)
{
    (void)arg;
    for_some_inputs(check_input);
    return 0;
}

static void passing_elements_keep_their_order(void)
{
    test_run_everywhere(check_inputs, NULL);
}

/* More than one round, of the maximum and of the minimum length. */
static int check_many(void *arg)
{
    (void)arg;
    check_input(RANDOM, test_scale(2500000), 4);
    check_input(MOSTLY_EQUAL, test_scale(200000), 100);
    return 0;
}

static void many_elements_are_filtered(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, check_many, NULL), 0);
    weft_runtime_destroy(rt);
}

/* --- Early ends ---------------------------------------------------------------------------- */

static int run_filter(unsigned kind, struct rule *rule, struct elements *from, void *to)
{
    weft_par_options options = { .stop = &rule->stop };
    void *base = from->array.at;
    size_t kept = 77;
    int err = kind == 0
                  ? weft_filter(base, from->count, from->size, rule_test, rule, to, &kept, &options)
                  : weft_partition(base, from->count, from->size, rule_test, rule, &kept, &options);
    CHECK_EQ(kept, 77);
    return err;
}

static int end_filters(void *arg)
{
    (void)arg;
    struct elements from = elements_create(RANDOM, 200000, 4);
    struct elements before = elements_copy(&from);
    void *to = malloc(from.array.size);
    CHECK(to != NULL);
    for (unsigned kind = 0; kind < 2; kind++) {
        for (uint64_t after = 1; after < 100000; after *= 30) {
            struct rule rule = { .size = 4, .below = 4, .fail_after = after };
            CHECK_EQ(run_filter(kind, &rule, &from, to), -77);
            rule = (struct rule){ .size = 4, .below = 4, .stop_after = after };
            CHECK_EQ(run_filter(kind, &rule, &from, to), WEFT_ECANCELED);
            CHECK_LT(rule.tested, from.count);
            atomic_store(&rule.tested, 0);
            CHECK_EQ(run_filter(kind, &rule, &from, to), WEFT_ECANCELED);
            CHECK_EQ(rule.tested, 0);
            elements_check_equal(&from, &before);
        }
    }
    free(to);
    elements_destroy(&from);
    elements_destroy(&before);
    return 0;
}

static void errors_and_cancels_leave_array_unchanged(void)
{
    test_run_everywhere(end_filters, NULL);
}

static int refuse(void *arg)
{
    (void)arg;
    int values[2000] = { 0 };
    int to[2000];
    size_t kept = 77;
    struct rule rule = { .size = 4, .below = 4 };
    char scratch[64];
    weft_par_options options = { .scratch = scratch,
                                 .scratch_size = weft_array_scratch(2000, 4) - 1 };
    CHECK_EQ(weft_filter(values, 2000, 0, rule_test, &rule, to, &kept, NULL), -EINVAL);
    CHECK_EQ(weft_partition(values, 2000, 0, rule_test, &rule, &kept, NULL), -EINVAL);
    CHECK_EQ(weft_filter(values, SIZE_MAX / 2, 4, rule_test, &rule, to, &kept, NULL), -EINVAL);
    CHECK_EQ(weft_partition(values, SIZE_MAX / 2, 4, rule_test, &rule, &kept, NULL), -EINVAL);
    CHECK_EQ(weft_filter(values, 2000, 4, rule_test, &rule, to, &kept, &options), -EINVAL);
    CHECK_EQ(weft_partition(values, 2000, 4, rule_test, &rule, &kept, &options), -EINVAL);
    CHECK_EQ(kept, 77);
    CHECK_EQ(rule.tested, 0);
    CHECK_EQ(weft_filter(NULL, 0, 4, rule_test, &rule, NULL, &kept, NULL), 0);
    CHECK_EQ(kept, 0);
    CHECK_EQ(weft_partition(NULL, 0, 4, rule_test, &rule, &kept, NULL), 0);
    CHECK_EQ(kept, 0);
    return 0;
}

static void invalid_arguments_are_rejected(void)
{
    test_run_everywhere(refuse, NULL);
}

static int partition_elements(void *arg)
{
    struct elements *elements = arg;
    struct rule rule = { .size = elements->size, .below = 4 };
    size_t passed;
    return weft_partition(elements->array.at, elements->count, elements->size, rule_test, &rule,
                          &passed, NULL);
}

static void out_of_memory_leaves_array_unchanged(void)
{
    struct elements elements = elements_create(RANDOM, 1000000, 4);
    struct elements before = elements_copy(&elements);
    CHECK_EQ(result_without_memory(partition_elements, &elements), -ENOMEM);
    elements_check_equal(&elements, &before);
    elements_destroy(&elements);
    elements_destroy(&before);
}

/* --- Distribution among workers ------------------------------------------------------------ */

static _Atomic(uint64_t) begun;

static int meet(const void *elements, size_t count, bool *answers, void *arg)
{
    (void)elements;
    (void)arg;
    CHECK_EQ(count, 1);
    answers[0] = true;
    atomic_fetch_add(&begun, 1);
    test_wait_for(&begun, 2);
    return 0;
}

static int filter_two(void *arg)
{
    (void)arg;
    static const int values[2] = { 5, 6 };
    int to[2];
    size_t kept = 77;
    atomic_store(&begun, 0);
    CHECK_EQ(weft_filter(values, 2, sizeof *values, meet, NULL, to, &kept, NULL), 0);
    CHECK_EQ(kept, 2);
    return 0;
}

/*
 * Goal:   a few elements with long tests are shared, too.
 * Method: each of two tests waits for the other one.
 */
static void two_long_tests_run_concurrently(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, filter_two, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST_DEBUG(out_of_memory_leaves_array_unchanged),
    TEST(invalid_arguments_are_rejected),
    TEST(passing_elements_keep_their_order),
    TEST(many_elements_are_filtered),
    TEST(errors_and_cancels_leave_array_unchanged),
    TEST(two_long_tests_run_concurrently),
})
