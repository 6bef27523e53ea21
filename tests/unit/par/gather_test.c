/* SPDX-License-Identifier: MIT */
#include "par/gather.h"

#include "inputs.h"

/* 7919 is a prime that divides none of the counts, so each element is the source of one
 * element. */
static void gather_one(size_t count, size_t size, size_t stride)
{
    struct guarded array = guarded_create(count * size, 0);
    struct guarded other = guarded_create(count * size, 0);
    for (size_t i = 0; i < count * size; i++) {
        array.at[i] = (unsigned char)(i * 31 + i / size);
    }
    unsigned char *before = malloc(count * size + 1);
    CHECK(before != NULL);
    memcpy(before, array.at, count * size);
    const void **sources = malloc((2 * count + 1) * sizeof *sources);
    CHECK(sources != NULL);
    for (size_t i = 0; i < count; i++) {
        sources[i * (stride / sizeof *sources)] = array.at + i * 7919 % count * size;
    }
    wf_gather(array.at, other.at, count, size, (struct wf_gather_sources){ sources, stride });
    free(sources);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(memcmp(array.at + i * size, before + i * 7919 % count * size, size), 0);
    }
    free(before);
    guarded_destroy(&other);
    guarded_destroy(&array);
}

static int gather_all(void *arg)
{
    (void)arg;
    static const size_t counts[] = { 0, 1, 2, 3, 1000, 20000 };
    static const size_t sizes[] = { 1, 3, 8, 16, 100 };
    for (size_t i = 0; i < 6; i++) {
        for (size_t k = 0; k < 5; k++) {
            gather_one(counts[i], sizes[k], i % 2 == 0 ? sizeof(void *) : 2 * sizeof(void *));
        }
    }
    return 0;
}

static void gather_copies_each_element_from_its_source(void)
{
    test_run_everywhere(gather_all, NULL);
}

TEST_MAIN({
    TEST(gather_copies_each_element_from_its_source),
})
