/* SPDX-License-Identifier: MIT */
#include "par/pause.h"

#include <stdlib.h>

#include "test.h"

static void next_chunk_ends_at_limit_or_at_end(void)
{
    CHECK_EQ(wf_pause_next(0, 10, 4), 4);
    CHECK_EQ(wf_pause_next(8, 10, 4), 10);
    CHECK_EQ(wf_pause_next(6, 10, 4), 10);
    CHECK_EQ(wf_pause_next(10, 10, 4), 10);
}

/* Sizes around the length of a chunk. */
static void copy_and_clear_reach_exactly_given_bytes(void)
{
    enum {
        MOST = 2 * WF_PAUSE_BYTES + 1
    };
    unsigned char *from = malloc(MOST + 1);
    unsigned char *to = malloc(MOST + 1);
    CHECK(from != NULL && to != NULL);
    for (size_t i = 0; i <= MOST; i++) {
        from[i] = (unsigned char)(1 + i % 251);
    }
    static const size_t sizes[] = { 0, 1, WF_PAUSE_BYTES - 1, WF_PAUSE_BYTES, MOST };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        memset(to, 255, MOST + 1);
        wf_pause_copy(to, from, sizes[i]);
        CHECK_EQ(memcmp(to, from, sizes[i]), 0);
        CHECK_EQ(to[sizes[i]], 255);
        memset(to, 255, MOST + 1);
        wf_pause_element(to, from, sizes[i]);
        CHECK_EQ(memcmp(to, from, sizes[i]), 0);
        CHECK_EQ(to[sizes[i]], 255);
        wf_pause_clear(to, sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++) {
            CHECK_EQ(to[k], 0);
        }
        CHECK_EQ(to[sizes[i]], 255);
    }
    free(from);
    free(to);
}

static void chunks_of_large_elements_are_short(void)
{
    CHECK_EQ(wf_pause_most(1024, 1), 1024);
    CHECK_EQ(wf_pause_most(1024, WF_PAUSE_BYTES / 1024), 1024);
    CHECK_EQ(wf_pause_most(1024, WF_PAUSE_BYTES / 1024 + 1), 1008);
    CHECK_EQ(wf_pause_most(1024, WF_PAUSE_BYTES - 1), 1);
    CHECK_EQ(wf_pause_most(1024, WF_PAUSE_BYTES), 1);
    CHECK_EQ(wf_pause_most(1024, SIZE_MAX), 1);
}

static void steps_grow_with_count_and_size(void)
{
    CHECK_EQ(wf_pause_steps(0, 1000), 0);
    CHECK_EQ(wf_pause_steps(10, 1), 10);
    CHECK_EQ(wf_pause_steps(10, WF_PAUSE_STEP_BYTES), 20);
    CHECK_EQ(wf_pause_steps(1, 100 * WF_PAUSE_STEP_BYTES), 101);
}

/* A differing byte in each chunk, and at its ends. */
static void equal_detects_any_differing_byte(void)
{
    enum {
        MOST = 2 * WF_PAUSE_BYTES + 1
    };
    static const size_t places[] = { 0, WF_PAUSE_BYTES - 1, WF_PAUSE_BYTES, MOST - 2, MOST - 1 };
    char *a = calloc(1, MOST);
    char *b = calloc(1, MOST);
    CHECK(a != NULL && b != NULL);
    CHECK(wf_pause_equal(a, b, 0));
    CHECK(wf_pause_equal(a, b, MOST));
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        b[places[i]] = 1;
        CHECK(!wf_pause_equal(a, b, MOST));
        CHECK(wf_pause_equal(a, b, places[i]));
        b[places[i]] = 0;
    }
    free(a);
    free(b);
}

TEST_MAIN({
    TEST(chunks_of_large_elements_are_short),
    TEST(steps_grow_with_count_and_size),
    TEST(equal_detects_any_differing_byte),
    TEST(next_chunk_ends_at_limit_or_at_end),
    TEST(copy_and_clear_reach_exactly_given_bytes),
})
