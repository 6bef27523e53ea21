/* SPDX-License-Identifier: MIT */
#include "elements.h"

/* Maps elements of any size to elements of any size. */
struct sizes {
    size_t a;
    size_t b;
    size_t to;
    _Atomic(uint64_t) mapped; /* number of elements */
    uint64_t fail_after;      /* number of elements; 0: never */
    uint64_t stop_after;
    weft_stop stop;
};

static void mix(const unsigned char *a, const unsigned char *b, unsigned char *to,
                const struct sizes *sizes)
{
    unsigned char made[100];
    for (size_t i = 0; i < sizes->to; i++) {
        made[i] = (unsigned char)(a[i % sizes->a] * 3 + i + (b != NULL ? b[i % sizes->b] : 0));
    }
    memcpy(to, made, sizes->to);
}

static int count_mapped(struct sizes *sizes, size_t count)
{
    CHECK(count > 0);
    CHECK_LE(count, WEFT_ELEMENTS_MAX);
    uint64_t mapped = atomic_fetch_add(&sizes->mapped, count) + count;
    if (sizes->stop_after != 0 && mapped > sizes->stop_after) {
        weft_stop_set(&sizes->stop);
    }
    return sizes->fail_after != 0 && mapped > sizes->fail_after ? -77 : 0;
}

static int map_one(const void *elements, size_t count, void *to, void *arg)
{
    struct sizes *sizes = arg;
    for (size_t i = 0; i < count; i++) {
        mix((const unsigned char *)elements + i * sizes->a, NULL,
            (unsigned char *)to + i * sizes->to, sizes);
    }
    return count_mapped(sizes, count);
}

static int map_two(const void *a, const void *b, size_t count, void *to, void *arg)
{
    struct sizes *sizes = arg;
    for (size_t i = 0; i < count; i++) {
        mix((const unsigned char *)a + i * sizes->a, (const unsigned char *)b + i * sizes->b,
            (unsigned char *)to + i * sizes->to, sizes);
    }
    return count_mapped(sizes, count);
}

static void check_map(const struct elements *a, const struct elements *b, size_t to_size)
{
    struct sizes sizes = { .a = a->size, .b = b->size, .to = to_size };
    struct elements to = elements_create(EQUAL, a->count, to_size);
    struct elements wanted = elements_copy(&to);
    for (size_t i = 0; i < a->count; i++) {
        mix(element_at(a, i), NULL, element_at(&wanted, i), &sizes);
    }
    CHECK_EQ(weft_map(a->array.at, a->count, a->size, map_one, &sizes, to.array.at, to_size, NULL),
             0);
    CHECK_EQ(sizes.mapped, a->count);
    elements_check_equal(&to, &wanted);
    for (size_t i = 0; i < a->count; i++) {
        mix(element_at(a, i), element_at(b, i), element_at(&wanted, i), &sizes);
    }
    CHECK_EQ(weft_map2(a->array.at, a->size, b->array.at, b->size, a->count, map_two, &sizes,
                       to.array.at, to_size, NULL),
             0);
    CHECK_EQ(sizes.mapped, 2 * a->count);
    elements_check_equal(&to, &wanted);
    elements_destroy(&to);
    elements_destroy(&wanted);
}

static void check_map_in_place(struct elements *a)
{
    struct sizes sizes = { .a = a->size, .to = a->size };
    struct elements wanted = elements_copy(a);
    for (size_t i = 0; i < a->count; i++) {
        mix(element_at(a, i), NULL, element_at(&wanted, i), &sizes);
    }
    CHECK_EQ(weft_map(a->array.at, a->count, a->size, map_one, &sizes, a->array.at, a->size, NULL),
             0);
    elements_check_equal(a, &wanted);
    elements_destroy(&wanted);
}

static void check_fill(struct elements *a)
{
    unsigned char value[100];
    for (size_t i = 0; i < a->size; i++) {
        value[i] = (unsigned char)(i * 7 + 1);
    }
    CHECK_EQ(weft_fill(a->array.at, a->count, a->size, value, NULL), 0);
    guarded_check(&a->array);
    for (size_t i = 0; i < a->count; i++) {
        CHECK_EQ(memcmp(element_at(a, i), value, a->size), 0);
    }
}

static void check_input(enum pattern pattern, size_t count, size_t size)
{
    struct elements a = elements_create(pattern, count, size);
    struct elements b = elements_create(RANDOM, count, element_sizes[pattern % ELEMENT_SIZES]);
    check_map(&a, &b, element_sizes[(size + pattern) % ELEMENT_SIZES]);
    check_map_in_place(&a);
    check_fill(&a);
    elements_destroy(&a);
    elements_destroy(&b);
}

static int check_inputs(void *arg)
{
    (void)arg;
    for_some_inputs(check_input);
    return 0;
}

static void each_element_is_mapped_once(void)
{
    test_run_everywhere(check_inputs, NULL);
}

WEFT_MAP(half_of, int, number, double, *number / 2.0)
WEFT_MAP2(scaled, int, number, double, factor, double, *number **factor + *(double *)arg)

static void map_can_be_defined_from_expression(void)
{
    static const int numbers[] = { 3, -1, 8 };
    double halves[3];
    CHECK_EQ(weft_map(numbers, 3, sizeof *numbers, half_of, NULL, halves, sizeof *halves, NULL), 0);
    CHECK(halves[0] == 1.5 && halves[1] == -0.5 && halves[2] == 4);
    CHECK_EQ(weft_map2(numbers, sizeof *numbers, halves, sizeof *halves, 3, scaled,
                       &(double){ 100 }, halves, sizeof *halves, NULL),
             0);
    CHECK(halves[0] == 104.5 && halves[1] == 100.5 && halves[2] == 132);
}

/* --- Early ends ---------------------------------------------------------------------------- */

static int run_map(bool both, struct sizes *sizes, struct elements *a)
{
    weft_par_options options = { .stop = &sizes->stop };
    void *at = a->array.at;
    return both ? weft_map2(at, 4, at, 4, a->count, map_two, sizes, at, 4, &options)
                : weft_map(at, a->count, 4, map_one, sizes, at, 4, &options);
}

static int end_maps(void *arg)
{
    struct elements *a = arg;
    for (unsigned both = 0; both < 2; both++) {
        struct sizes sizes = { .a = 4, .b = 4, .to = 4, .fail_after = 1000 };
        CHECK_EQ(run_map(both, &sizes, a), -77);
        CHECK_LT(sizes.mapped, a->count);
        sizes = (struct sizes){ .a = 4, .b = 4, .to = 4, .stop_after = 1000 };
        CHECK_EQ(run_map(both, &sizes, a), WEFT_ECANCELED);
        CHECK_LT(sizes.mapped, a->count);
        uint64_t mapped = sizes.mapped;
        CHECK_EQ(run_map(both, &sizes, a), WEFT_ECANCELED);
        CHECK_EQ(sizes.mapped, mapped);
        unsigned char *first = a->array.at;
        first[0] = 1;
        weft_par_options options = { .stop = &sizes.stop };
        CHECK_EQ(weft_fill(first, a->count, 4, &(int){ 0 }, &options), WEFT_ECANCELED);
        CHECK_EQ(first[0], 1);
    }
    return 0;
}

static void errors_and_cancels_end_call(void)
{
    struct elements a = elements_create(RANDOM, 1000000, 4);
    test_run_everywhere(end_maps, &a);
    elements_destroy(&a);
}

static void invalid_arguments_are_rejected(void)
{
    size_t many = SIZE_MAX / 2;
    CHECK_EQ(weft_map(NULL, 0, 0, map_one, NULL, NULL, 1, NULL), -EINVAL);
    CHECK_EQ(weft_map(NULL, 0, 1, map_one, NULL, NULL, 0, NULL), -EINVAL);
    CHECK_EQ(weft_map(NULL, many, 4, map_one, NULL, NULL, 1, NULL), -EINVAL);
    CHECK_EQ(weft_map(NULL, many, 1, map_one, NULL, NULL, 4, NULL), -EINVAL);
    CHECK_EQ(weft_map2(NULL, 0, NULL, 1, 0, map_two, NULL, NULL, 1, NULL), -EINVAL);
    CHECK_EQ(weft_map2(NULL, 1, NULL, 0, 0, map_two, NULL, NULL, 1, NULL), -EINVAL);
    CHECK_EQ(weft_map2(NULL, 1, NULL, 1, 0, map_two, NULL, NULL, 0, NULL), -EINVAL);
    CHECK_EQ(weft_map2(NULL, 1, NULL, 4, many, map_two, NULL, NULL, 1, NULL), -EINVAL);
    CHECK_EQ(weft_fill(NULL, 0, 0, "", NULL), -EINVAL);
    CHECK_EQ(weft_fill(NULL, many, 4, "", NULL), -EINVAL);
    CHECK_EQ(weft_map(NULL, 0, 1, map_one, NULL, NULL, 1, NULL), 0);
    CHECK_EQ(weft_map2(NULL, 1, NULL, 1, 0, map_two, NULL, NULL, 1, NULL), 0);
    CHECK_EQ(weft_fill(NULL, 0, 1, "", NULL), 0);
}

TEST_MAIN({
    TEST(each_element_is_mapped_once),
    TEST(map_can_be_defined_from_expression),
    TEST(errors_and_cancels_end_call),
    TEST(invalid_arguments_are_rejected),
})
