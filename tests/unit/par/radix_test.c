/* SPDX-License-Identifier: MIT */
#include "par/radix.h"

#include "inputs.h"

/* --- Pairs ----------------------------------------------------------------------------- */

enum {
    PAIRS_MAX = 33000,
};

static int compare_pairs(const void *a, const void *b)
{
    const struct wf_radix_pair *x = a;
    const struct wf_radix_pair *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return (x->element > y->element) - (x->element < y->element);
}

/* Sorts pairs whose keys differ only in the given bits. Pairs with equal keys must keep their
 * order. */
static void sort_pairs(size_t count, uint64_t bits, uint64_t others)
{
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), bits);
    static const char places[PAIRS_MAX];
    struct wf_radix_pair *pairs = malloc(count * sizeof *pairs);
    struct wf_radix_pair *expected = malloc(count * sizeof *pairs);
    CHECK(pairs != NULL);
    CHECK(expected != NULL);
    for (size_t i = 0; i < count; i++) {
        pairs[i] = (struct wf_radix_pair){ (random_value(&rng) & bits) | others, &places[i] };
    }
    memcpy(expected, pairs, count * sizeof *pairs);
    qsort(expected, count, sizeof *pairs, compare_pairs);
    struct wf_scratch scratch;
    CHECK_EQ(wf_scratch_init(&scratch, wf_radix_scratch(0, count, sizeof *pairs), NULL), 0);
    wf_radix_sort(WF_RADIX_PAIR, (struct wf_radix_order){ 0, 0 }, pairs, count, &scratch, NULL);
    wf_scratch_fini(&scratch);
    CHECK_EQ(memcmp(pairs, expected, count * sizeof *pairs), 0);
    free(expected);
    free(pairs);
}

/* The bits that differ determine the digits, and how often elements are distributed. */
static int sort_by_any_bits(void *arg)
{
    (void)arg;
    static const size_t counts[] = { 300, 5000, PAIRS_MAX };
    for (size_t i = 0; i < 3; i++) {
        for (unsigned shift = 0; shift < 64; shift += 5) {
            sort_pairs(counts[i], UINT64_C(0x1FF) << shift, 0);
            sort_pairs(counts[i], UINT64_C(1) << shift, ~(UINT64_C(1) << shift));
        }
        sort_pairs(counts[i], UINT64_C(0xFF000000000000FF), 0);
        sort_pairs(counts[i], UINT64_C(0x8000000000000001), 0x700);
        sort_pairs(counts[i], 0, 5);
    }
    return 0;
}

static void pairs_are_sorted_by_any_bits(void)
{
    test_run_everywhere(sort_by_any_bits, NULL);
}

/* --- Levels ---------------------------------------------------------------------------- */

/*
 * Goal:   buckets that stay large are distributed again, down to the last level.
 * Method: few elements have any of the higher bits set, so that nearly all share a bucket. Or
 *         half of them have, so that two large buckets are sorted at the same time.
 */
static int sort_nested_buckets(void *arg)
{
    unsigned parts = *(const unsigned *)arg;
    size_t count = 1200000;
    struct wf_rng rng;
    wf_rng_seed(&rng, test_seed(), 1);
    uint64_t *values = malloc(count * sizeof *values);
    CHECK(values != NULL);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = random_value(&rng);
        values[i] = wf_rng_below(&rng, parts) > 0 ? value >> 40 : value >> i % 5 * 8;
        values[i] = parts > 2 ? values[i] : (value & 1) << 63 | value >> 8;
        sum += values[i];
    }
    struct wf_scratch scratch;
    CHECK_EQ(wf_scratch_init(&scratch, wf_radix_scratch(0, count, sizeof *values), NULL), 0);
    wf_radix_sort(WF_RADIX_64, (struct wf_radix_order){ 0, 0 }, values, count, &scratch, NULL);
    wf_scratch_fini(&scratch);
    sum -= values[0];
    for (size_t i = 1; i < count; i++) {
        CHECK(values[i - 1] <= values[i]);
        sum -= values[i];
    }
    CHECK_EQ(sum, 0);
    free(values);
    return 0;
}

static void large_buckets_in_large_buckets_are_sorted(void)
{
    static unsigned parts[] = { 2, 100 };
    weft_runtime *rt = test_start(4);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(sort_nested_buckets(&parts[i]), 0);
        CHECK_EQ(test_run(rt, sort_nested_buckets, &parts[i]), 0);
    }
    weft_runtime_destroy(rt);
}

/* --- Orders ---------------------------------------------------------------------------- */

static void bit_order_can_be_reversed(void)
{
    uint32_t values[5] = { 5, 0xFFFFFFFF, 0, 0x80000000, 6 };
    static const uint32_t descending[5] = { 0xFFFFFFFF, 0x80000000, 6, 5, 0 };
    struct wf_scratch scratch;
    CHECK_EQ(wf_scratch_init(&scratch, wf_radix_scratch(0, 5, 4), NULL), 0);
    wf_radix_sort(WF_RADIX_32, (struct wf_radix_order){ 0, UINT32_MAX }, values, 5, &scratch, NULL);
    wf_scratch_fini(&scratch);
    CHECK_EQ(memcmp(values, descending, sizeof descending), 0);
}

TEST_MAIN({
    TEST(bit_order_can_be_reversed),
    TEST(pairs_are_sorted_by_any_bits),
    TEST(large_buckets_in_large_buckets_are_sorted),
})
