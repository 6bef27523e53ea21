/* SPDX-License-Identifier: MIT */
#include "par/range.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "rt.h"
#include "test.h"

enum {
    COUNT_MAX = 5000,
};

struct visits {
    size_t grain;
    _Atomic(unsigned char) seen[COUNT_MAX];
};

static void visit(size_t begin, size_t end, void *arg)
{
    struct visits *visits = arg;
    CHECK_LT(begin, end);
    CHECK_LE(end - begin, visits->grain);
    for (size_t i = begin; i < end; i++) {
        atomic_fetch_add(&visits->seen[i], 1);
    }
}

static int visit_all(void *arg)
{
    (void)arg;
    static const size_t counts[] = { 0, 1, 2, 3, 100, 1023, 1024, 1025, COUNT_MAX };
    static const size_t grains[] = { 1, 2, 3, 64, 1000, 100000 };
    struct visits *visits = malloc(sizeof *visits);
    CHECK(visits != NULL);
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++) {
            *visits = (struct visits){ .grain = grains[g] };
            wf_range_each(counts[k], grains[g], visit, visits);
            for (size_t i = 0; i < COUNT_MAX; i++) {
                CHECK_EQ(atomic_load(&visits->seen[i]), i < counts[k] ? 1 : 0);
            }
        }
    }
    free(visits);
    return 0;
}

static void each_index_is_visited_once(void)
{
    CHECK_EQ(visit_all(NULL), 0);
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        weft_runtime *rt = test_start(workers);
        CHECK_EQ(test_run(rt, visit_all, NULL), 0);
        weft_runtime_destroy(rt);
    }
}

static _Atomic(uint64_t) begun;

static void meet(size_t begin, size_t end, void *arg)
{
    (void)begin;
    (void)end;
    (void)arg;
    atomic_fetch_add(&begun, 1);
    test_wait_for(&begun, 2);
}

static int meet_concurrently(void *arg)
{
    (void)arg;
    wf_range_each(2, 1, meet, NULL);
    return 0;
}

static void chunks_run_concurrently(void)
{
    weft_runtime *rt = test_start(2);
    CHECK_EQ(test_run(rt, meet_concurrently, NULL), 0);
    weft_runtime_destroy(rt);
}

TEST_MAIN({
    TEST(each_index_is_visited_once),
    TEST(chunks_run_concurrently),
})
