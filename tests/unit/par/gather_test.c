/* SPDX-License-Identifier: MIT */
#include "par/gather.h"

#include "inputs.h"

struct permutation {
    const unsigned char *base;
    size_t size;
    size_t count;
    size_t step;
};

static const void *source(size_t index, const void *arg)
{
    const struct permutation *permutation = arg;
    return permutation->base + index * permutation->step % permutation->count * permutation->size;
}

/* 7919 is a prime that divides none of the counts: each source is one element's. */
static void gather_one(size_t count, size_t size)
{
    struct guarded array = guarded_create(count * size, 0);
    struct guarded other = guarded_create(count * size, 0);
    for (size_t i = 0; i < count * size; i++) {
        array.at[i] = (unsigned char)(i * 31 + i / size);
    }
    unsigned char *before = malloc(count * size + 1);
    CHECK(before != NULL);
    memcpy(before, array.at, count * size);
    struct permutation permutation = { array.at, size, count, 7919 };
    wf_gather(array.at, other.at, count, size, source, &permutation);
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
    static const size_t sizes[] = { 1, 3, 8, 100 };
    for (size_t i = 0; i < 6; i++) {
        for (size_t k = 0; k < 4; k++) {
            gather_one(counts[i], sizes[k]);
        }
    }
    return 0;
}

static void elements_go_where_they_are_sent(void)
{
    run_everywhere(gather_all, NULL);
}

TEST_MAIN({
    TEST(elements_go_where_they_are_sent),
})
