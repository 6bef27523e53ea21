/* SPDX-License-Identifier: MIT */
#include "forks.h"

#include <stdatomic.h>

#include <weft.h>

#include "test.h"

struct tree {
    uint64_t depth;
    uint64_t leaves;
};

static void grow(void *arg)
{
    struct tree *tree = arg;
    if (tree->depth == 0) {
        tree->leaves = 1;
        return;
    }
    struct tree left = { .depth = tree->depth - 1 };
    struct tree right = { .depth = tree->depth - 1 };
    weft_join2(grow, &left, grow, &right);
    tree->leaves = left.leaves + right.leaves;
}

void test_grow(uint64_t depth)
{
    struct tree tree = { .depth = depth };
    grow(&tree);
    CHECK_EQ(tree.leaves, UINT64_C(1) << depth);
}

WEFT_PARALLEL(uint64_t, descend, uint64_t, depth)
{
    volatile char frame[64];
    frame[0] = 1;
    if (depth == 0) {
        return 0;
    }
    uint64_t below;
    uint64_t leaf;
    descend_both(&below, depth - 1, &leaf, 0);
    return below + leaf + (uint64_t)frame[0];
}

void test_grow_many(void)
{
    for (uint64_t i = 0; i < test_scale(100); i++) {
        test_grow(i % 14);
    }
}

void test_descend(uint64_t depth)
{
    CHECK_EQ(descend(depth), depth);
}

static _Atomic(uint64_t) begun;

static void meet(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    test_wait_for(&begun, 2);
}

void test_meet(void)
{
    atomic_store(&begun, 0);
    weft_join2(meet, NULL, meet, NULL);
    CHECK_EQ(atomic_load(&begun), 2);
}
