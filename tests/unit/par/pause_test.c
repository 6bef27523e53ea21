/* SPDX-License-Identifier: MIT */
#include "par/pause.h"

#include <stdlib.h>

#include "test.h"

static void next_piece_ends_at_the_limit_or_at_the_end(void)
{
    CHECK_EQ(wf_pause_next(0, 10, 4), 4);
    CHECK_EQ(wf_pause_next(8, 10, 4), 10);
    CHECK_EQ(wf_pause_next(6, 10, 4), 10);
    CHECK_EQ(wf_pause_next(10, 10, 4), 10);
}

/* Sizes around the length of a piece. */
static void copy_and_clear_reach_every_byte_and_no_other(void)
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
        wf_pause_clear(to, sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++) {
            CHECK_EQ(to[k], 0);
        }
        CHECK_EQ(to[sizes[i]], 255);
    }
    free(from);
    free(to);
}

TEST_MAIN({
    TEST(next_piece_ends_at_the_limit_or_at_the_end),
    TEST(copy_and_clear_reach_every_byte_and_no_other),
})
