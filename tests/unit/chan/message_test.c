/* SPDX-License-Identifier: MIT */
#include "chan/message.h"

#include "test.h"

/* Just its bytes are copied, whatever their number. */
static void a_message_of_any_size_is_copied(void)
{
    enum {
        SIZE_MAX_TRIED = 40,
        MARGIN = 8,
    };
    for (size_t size = 0; size <= SIZE_MAX_TRIED; size++) {
        unsigned char from[SIZE_MAX_TRIED + MARGIN];
        unsigned char to[SIZE_MAX_TRIED + MARGIN];
        for (size_t i = 0; i < sizeof from; i++) {
            from[i] = (unsigned char)(i + 1);
            to[i] = 0;
        }
        wf_message_copy(to, from, size);
        for (size_t i = 0; i < sizeof to; i++) {
            CHECK_EQ(to[i], i < size ? i + 1 : 0);
        }
    }
}

TEST_MAIN({
    TEST(a_message_of_any_size_is_copied),
})
