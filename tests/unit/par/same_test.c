/* SPDX-License-Identifier: MIT */
#include "elements.h"

static void check_pair(const struct elements *a, const struct elements *b, size_t wanted)
{
    size_t size = a->size;
    size_t index = 77;
    bool answer = wanted != a->count;
    CHECK_EQ(weft_mismatch(a->array.at, b->array.at, a->count, size, NULL, NULL, &index, NULL), 0);
    CHECK_EQ(index, wanted);
    CHECK_EQ(weft_equal(a->array.at, b->array.at, a->count, size, NULL, NULL, &answer, NULL), 0);
    CHECK_EQ(answer, wanted == a->count);
    CHECK_EQ(
        weft_mismatch(a->array.at, b->array.at, a->count, size, compare_bytes, &size, &index, NULL),
        0);
    CHECK_EQ(index, wanted);
    CHECK_EQ(
        weft_equal(a->array.at, b->array.at, a->count, size, compare_bytes, &size, &answer, NULL),
        0);
    CHECK_EQ(answer, wanted == a->count);
}

/* Each byte of an element counts. */
static void check_input(enum pattern pattern, size_t count, size_t size)
{
    struct elements a = elements_create(pattern, count, size);
    struct elements b = elements_copy(&a);
    check_pair(&a, &b, count);
    for (size_t i = 0; i < 3 && i < count; i++) {
        size_t at = i == 0 ? count - 1 : i == 1 ? count / 2 : 0;
        element_at(&b, at)[(count + i) % size] ^= (unsigned char)(4 << i);
        check_pair(&a, &b, at);
    }
    elements_destroy(&a);
    elements_destroy(&b);
}

static int check_inputs(void *arg)
{
    (void)arg;
    for_some_inputs(check_input);
    return 0;
}

static void first_difference_is_found(void)
{
    test_run_everywhere(check_inputs, NULL);
}

/* Compares only the keys. */
static int check_keys(void *arg)
{
    (void)arg;
    struct elements a = elements_create(RANDOM, 50000, 16);
    struct elements b = elements_copy(&a);
    element_at(&b, 40000)[12] ^= 1;
    bool answer = false;
    CHECK_EQ(
        weft_equal(a.array.at, b.array.at, a.count, 16, compare_records, &a.size, &answer, NULL),
        0);
    CHECK(answer);
    CHECK_EQ(weft_equal(a.array.at, b.array.at, a.count, 16, NULL, NULL, &answer, NULL), 0);
    CHECK(!answer);
    elements_destroy(&a);
    elements_destroy(&b);
    return 0;
}

static void comparison_defines_equality(void)
{
    test_run_everywhere(check_keys, NULL);
}

static weft_stop stop;
static _Atomic(uint64_t) compared;

static int compare_and_stop(const void *a, const void *b, void *arg)
{
    (void)a;
    (void)b;
    (void)arg;
    if (atomic_fetch_add(&compared, 1) >= 1000) {
        weft_stop_set(&stop);
    }
    return 0;
}

static int cancel_in_comparison(void *arg)
{
    const struct elements *elements = arg;
    const void *at = elements->array.at;
    weft_par_options options = { .stop = &stop };
    stop = (weft_stop){ 0 };
    size_t index = 77;
    bool answer = false;
    atomic_store(&compared, 0);
    CHECK_EQ(weft_mismatch(at, at, elements->count, 4, compare_and_stop, NULL, &index, &options),
             WEFT_ECANCELED);
    CHECK_EQ(index, 77);
    CHECK_LT(atomic_load(&compared), elements->count);
    CHECK_EQ(weft_equal(at, at, elements->count, 4, compare_and_stop, NULL, &answer, &options),
             WEFT_ECANCELED);
    CHECK(!answer);
    return 0;
}

static void cancel_flag_ends_call(void)
{
    struct elements elements = elements_create(RANDOM, 1000000, 4);
    test_run_everywhere(cancel_in_comparison, &elements);
    elements_destroy(&elements);
}

static void invalid_arguments_are_rejected(void)
{
    size_t index;
    bool answer;
    CHECK_EQ(weft_equal(NULL, NULL, 0, 0, NULL, NULL, &answer, NULL), -EINVAL);
    CHECK_EQ(weft_mismatch(NULL, NULL, 0, 0, NULL, NULL, &index, NULL), -EINVAL);
    CHECK_EQ(weft_equal(NULL, NULL, SIZE_MAX / 2, 4, NULL, NULL, &answer, NULL), -EINVAL);
    CHECK_EQ(weft_mismatch(NULL, NULL, SIZE_MAX / 2, 4, NULL, NULL, &index, NULL), -EINVAL);
    CHECK_EQ(weft_equal(NULL, NULL, 0, 4, NULL, NULL, &answer, NULL), 0);
    CHECK(answer);
}

TEST_MAIN({
    TEST(first_difference_is_found),
    TEST(comparison_defines_equality),
    TEST(cancel_flag_ends_call),
    TEST(invalid_arguments_are_rejected),
})
