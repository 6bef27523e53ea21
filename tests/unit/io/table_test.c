/* SPDX-License-Identifier: MIT */
/*
 * table_test.c - table of sources.
 */
#include "io/table.h"

#include "io/io.h"
#include "io/source.h"
#include "test.h"

enum {
    BLOCKS = 100,
};

/* Takes blocks and links them into a list. */
static struct wf_source *take_blocks(struct wf_io *io, unsigned count)
{
    struct wf_source *list = NULL;
    for (unsigned i = 0; i < count; i++) {
        struct wf_source *block = wf_table_take(io);
        CHECK(block != NULL);
        for (uint32_t j = 0; j < WF_SOURCE_BLOCK; j++) {
            CHECK(block[j].io == io);
            CHECK_EQ(block[j].index, block->index + j);
            CHECK(wf_source_at(block[j].index) == block + j);
        }
        block->next_block = list;
        list = block;
    }
    return list;
}

static void each_block_is_taken_once(void)
{
    static struct wf_io io;
    static bool seen[BLOCKS];
    struct wf_source *list = take_blocks(&io, BLOCKS);
    for (const struct wf_source *block = list; block != NULL; block = block->next_block) {
        uint32_t number = block->index / WF_SOURCE_BLOCK;
        CHECK_LT(number, BLOCKS);
        CHECK(!seen[number]);
        seen[number] = true;
    }
    wf_table_give_back(list);
}

static void returned_blocks_are_reused_by_other_runtimes(void)
{
    static struct wf_io first;
    static struct wf_io second;
    struct wf_source *list = take_blocks(&first, 3);
    uint32_t most = list->index > list->next_block->index ? list->index : list->next_block->index;
    most = most > list->next_block->next_block->index ? most : list->next_block->next_block->index;
    wf_table_give_back(list);
    for (unsigned round = 0; round < 10; round++) {
        list = take_blocks(round % 2 == 0 ? &second : &first, 3);
        for (const struct wf_source *block = list; block != NULL; block = block->next_block) {
            CHECK_LE(block->index, most);
        }
        wf_table_give_back(list);
    }
    wf_table_give_back(NULL);
}

TEST_MAIN({
    TEST(each_block_is_taken_once),
    TEST(returned_blocks_are_reused_by_other_runtimes),
})
