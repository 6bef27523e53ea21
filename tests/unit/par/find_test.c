/* SPDX-License-Identifier: MIT */
#include "elements.h"
#include "memory.h"

static void check_whether(const struct elements *elements, struct rule *rule, size_t passed)
{
    const void *base = elements->array.at;
    size_t count = elements->count;
    size_t size = elements->size;
    bool any = passed == 0;
    bool all = passed != count;
    bool none = passed != 0;
    CHECK_EQ(weft_any(base, count, size, rule_test, rule, &any, NULL), 0);
    CHECK_EQ(weft_all(base, count, size, rule_test, rule, &all, NULL), 0);
    CHECK_EQ(weft_none(base, count, size, rule_test, rule, &none, NULL), 0);
    CHECK_EQ(any, passed > 0);
    CHECK_EQ(all, passed == count);
    CHECK_EQ(none, passed == 0);
}

static void check_rule(const struct elements *elements, struct rule *rule)
{
    size_t count = elements->count;
    size_t size = elements->size;
    size_t passed = 0;
    size_t first = count;
    size_t last = count;
    for (size_t i = 0; i < count; i++) {
        if (rule_passes(rule, element_at(elements, i))) {
            first = first == count ? i : first;
            last = i;
            passed++;
        }
    }
    const void *base = elements->array.at;
    size_t result = 77;
    CHECK_EQ(weft_count_if(base, count, size, rule_test, rule, &result, NULL), 0);
    CHECK_EQ(result, passed);
    CHECK_EQ(rule->tested, count);
    CHECK_EQ(weft_find_first(base, count, size, rule_test, rule, &result, NULL), 0);
    CHECK_EQ(result, first);
    CHECK_EQ(weft_find_last(base, count, size, rule_test, rule, &result, NULL), 0);
    CHECK_EQ(result, last);
    CHECK_EQ(weft_find_any(base, count, size, rule_test, rule, &result, NULL), 0);
    CHECK_EQ(result == count, passed == 0);
    CHECK(result == count || rule_passes(rule, element_at(elements, result)));
    check_whether(elements, rule, passed);
}

static void check_input(enum pattern pattern, size_t count, size_t size)
{
    struct elements elements = elements_create(pattern, count, size);
    for (uint64_t below = 0; below <= 8; below += 2) {
        struct rule rule = { .size = size, .below = below };
        check_rule(&elements, &rule);
    }
    elements_destroy(&elements);
}

static int check_inputs(void *arg)
{
    (void)arg;
    for_some_inputs(check_input);
    return 0;
}

static void matching_elements_are_counted_and_found(void)
{
    test_run_everywhere(check_inputs, NULL);
}

/* --- A single match among many elements ----------------------------------------------------- */

enum {
    MANY = 1000000,
};

WEFT_TEST(is_set, unsigned char, byte, *byte != 0)

static _Atomic(uint64_t) tested;

static int is_set_and_counts(const void *elements, size_t count, bool *answers, void *arg)
{
    atomic_fetch_add_explicit(&tested, count, memory_order_relaxed);
    return is_set(elements, count, answers, arg);
}

static void find_one(unsigned char *bytes, size_t at)
{
    bytes[at] = 1;
    size_t index = 77;
    bool answer = false;
    CHECK_EQ(weft_find_first(bytes, MANY, 1, is_set, NULL, &index, NULL), 0);
    CHECK_EQ(index, at);
    CHECK_EQ(weft_find_last(bytes, MANY, 1, is_set, NULL, &index, NULL), 0);
    CHECK_EQ(index, at);
    CHECK_EQ(weft_find_any(bytes, MANY, 1, is_set, NULL, &index, NULL), 0);
    CHECK_EQ(index, at);
    CHECK_EQ(weft_any(bytes, MANY, 1, is_set, NULL, &answer, NULL), 0);
    CHECK(answer);
    bytes[at] = 0;
}

static int find_ones(void *arg)
{
    unsigned char *bytes = arg;
    for (size_t at = 0; at < MANY; at = 17 * at + 7) {
        find_one(bytes, at);
        find_one(bytes, MANY - 1 - at);
    }
    return 0;
}

static void single_match_among_many_is_found(void)
{
    unsigned char *bytes = calloc(MANY, 1);
    CHECK(bytes != NULL);
    test_run_everywhere(find_ones, bytes);
    free(bytes);
}

static int find_near(void *arg)
{
    unsigned char *bytes = arg;
    size_t index;
    bool answer;
    atomic_store(&tested, 0);
    CHECK_EQ(weft_find_first(bytes, MANY, 1, is_set_and_counts, NULL, &index, NULL), 0);
    CHECK_EQ(index, 5000);
    CHECK_EQ(weft_find_last(bytes, MANY, 1, is_set_and_counts, NULL, &index, NULL), 0);
    CHECK_EQ(index, MANY - 5000);
    CHECK_LT(atomic_load(&tested), 100000);
    memset(bytes + MANY / 2, 1, MANY / 2 - 5000);
    atomic_store(&tested, 0);
    CHECK_EQ(weft_any(bytes, MANY, 1, is_set_and_counts, NULL, &answer, NULL), 0);
    CHECK_EQ(weft_none(bytes, MANY, 1, is_set_and_counts, NULL, &answer, NULL), 0);
    CHECK_EQ(weft_all(bytes, MANY, 1, is_set_and_counts, NULL, &answer, NULL), 0);
    CHECK_LT(atomic_load(&tested), MANY);
    memset(bytes + MANY / 2, 0, MANY / 2 - 5000);
    return 0;
}

static void near_match_is_found_with_few_tests(void)
{
    unsigned char *bytes = calloc(MANY, 1);
    CHECK(bytes != NULL);
    bytes[5000] = 1;
    bytes[MANY - 5000] = 1;
    test_run_everywhere(find_near, bytes);
    free(bytes);
}

/* --- Early ends ---------------------------------------------------------------------------- */

typedef int (*search_fn)(const void *base, size_t count, size_t size, weft_test_fn test, void *arg,
                         size_t *index, const weft_par_options *options);
typedef int (*question_fn)(const void *base, size_t count, size_t size, weft_test_fn test,
                           void *arg, bool *answer, const weft_par_options *options);

static const search_fn searches[] = { weft_count_if, weft_find_first, weft_find_last,
                                      weft_find_any };
static const question_fn questions[] = { weft_any, weft_none, weft_all };

/* A rule under which no element decides the result early. */
static struct rule open_rule(size_t i)
{
    return (struct rule){ .size = 4, .below = i == 6 ? 8 : 0 };
}

static int ask(size_t i, const struct elements *elements, struct rule *rule, bool *is_changed)
{
    size_t index = 77;
    bool answer = i % 2 == 0;
    weft_par_options options = { .stop = &rule->stop };
    const void *base = elements->array.at;
    int err = i < 4
                  ? searches[i](base, elements->count, 4, rule_test, rule, &index, &options)
                  : questions[i - 4](base, elements->count, 4, rule_test, rule, &answer, &options);
    *is_changed = index != 77 || answer != (i % 2 == 0);
    return err;
}

static int end_searches(void *arg)
{
    const struct elements *elements = arg;
    for (size_t i = 0; i < 7; i++) {
        bool is_changed;
        struct rule rule = open_rule(i);
        rule.fail_after = 1000;
        CHECK_EQ(ask(i, elements, &rule, &is_changed), -77);
        CHECK(!is_changed);
        CHECK_LT(rule.tested, elements->count);
        rule = open_rule(i);
        rule.stop_after = 1000;
        CHECK_EQ(ask(i, elements, &rule, &is_changed), WEFT_ECANCELED);
        CHECK(!is_changed);
        CHECK_LT(rule.tested, elements->count);
        atomic_store(&rule.tested, 0);
        CHECK_EQ(ask(i, elements, &rule, &is_changed), WEFT_ECANCELED);
        CHECK_EQ(rule.tested, 0);
    }
    return 0;
}

static void errors_and_cancels_end_call(void)
{
    struct elements elements = elements_create(RANDOM, 1000000, 4);
    test_run_everywhere(end_searches, &elements);
    elements_destroy(&elements);
}

static void invalid_arguments_are_rejected(void)
{
    size_t index;
    bool answer;
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ(searches[i](NULL, 0, 0, rule_test, NULL, &index, NULL), -EINVAL);
        CHECK_EQ(searches[i](NULL, SIZE_MAX / 2, 4, rule_test, NULL, &index, NULL), -EINVAL);
    }
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(questions[i](NULL, 0, 0, rule_test, NULL, &answer, NULL), -EINVAL);
        CHECK_EQ(questions[i](NULL, SIZE_MAX / 2, 4, rule_test, NULL, &answer, NULL), -EINVAL);
    }
}

TEST_MAIN({
    TEST(matching_elements_are_counted_and_found),
    TEST(single_match_among_many_is_found),
    TEST(near_match_is_found_with_few_tests),
    TEST(errors_and_cancels_end_call),
    TEST(invalid_arguments_are_rejected),
})
