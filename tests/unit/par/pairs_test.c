/* SPDX-License-Identifier: MIT */
#include "par/pairs.h"

#include <weft.h>

#include "everywhere.h"
#include "test.h"

enum {
    COUNT = 30000,
    KEYS = 100,
};

static uint32_t elements[COUNT];

WEFT_KEY(last_digits, uint32_t, element, *element % KEYS)

static int fail_at_end(const void *from, size_t count, uint64_t *keys, void *arg)
{
    const uint32_t *first = from;
    int err = last_digits(from, count, keys, arg);
    return first + count == elements + COUNT ? -55 : err;
}

static int check_order(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < COUNT; i++) {
        elements[i] = (uint32_t)(i * 7919 % COUNT);
    }
    struct wf_keyed keyed = { (const char *)elements, COUNT, sizeof elements[0], last_digits,
                              NULL };
    struct wf_scratch scratch;
    struct wf_radix_pair *pairs;
    CHECK_EQ(wf_scratch_init(&scratch, wf_pairs_scratch(0, COUNT), NULL), 0);
    CHECK_EQ(wf_pairs_sort(&keyed, &scratch, NULL, &pairs), 0);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(pairs[i].key, *(const uint32_t *)pairs[i].element % KEYS);
        CHECK(i == 0 || pairs[i - 1].key < pairs[i].key ||
              (pairs[i - 1].key == pairs[i].key && pairs[i - 1].element < pairs[i].element));
    }
    wf_scratch_fini(&scratch);
    return 0;
}

static void pairs_are_sorted_stably_by_key(void)
{
    test_run_everywhere(check_order, NULL);
}

static int check_error(void *arg)
{
    (void)arg;
    struct wf_keyed keyed = { (const char *)elements, COUNT, sizeof elements[0], fail_at_end,
                              NULL };
    struct wf_scratch scratch;
    struct wf_radix_pair *pairs;
    CHECK_EQ(wf_scratch_init(&scratch, wf_pairs_scratch(0, COUNT), NULL), 0);
    CHECK_EQ(wf_pairs_sort(&keyed, &scratch, NULL, &pairs), -55);
    wf_scratch_fini(&scratch);
    return 0;
}

static void key_error_is_returned(void)
{
    test_run_everywhere(check_error, NULL);
}

TEST_MAIN({
    TEST(pairs_are_sorted_stably_by_key),
    TEST(key_error_is_returned),
})
