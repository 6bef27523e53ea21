/* SPDX-License-Identifier: MIT */
#include "par/swap.h"

#include "inputs.h"

static void fill(struct guarded *element, unsigned start)
{
    for (size_t i = 0; i < element->size; i++) {
        element->at[i] = (unsigned char)(start + i * 7);
    }
}

static void elements_of_any_size_are_swapped(void)
{
    for (size_t size = 1; size < 3 * WF_PAUSE_BYTES;
         size += size < 300 ? 1 : WF_PAUSE_BYTES - 200) {
        struct guarded a = guarded_create(size, 1);
        struct guarded b = guarded_create(size, 6);
        fill(&a, 1);
        fill(&b, 100);
        wf_swap((char *)a.at, (char *)b.at, size);
        for (size_t i = 0; i < size; i++) {
            CHECK_EQ(a.at[i], (unsigned char)(100 + i * 7));
            CHECK_EQ(b.at[i], (unsigned char)(1 + i * 7));
        }
        guarded_destroy(&a);
        guarded_destroy(&b);
    }
}

static void swap_with_itself_changes_nothing(void)
{
    struct guarded a = guarded_create(200, 0);
    fill(&a, 3);
    wf_swap((char *)a.at, (char *)a.at, 200);
    for (size_t i = 0; i < 200; i++) {
        CHECK_EQ(a.at[i], (unsigned char)(3 + i * 7));
    }
    guarded_destroy(&a);
}

TEST_MAIN({
    TEST(elements_of_any_size_are_swapped),
    TEST(swap_with_itself_changes_nothing),
})
