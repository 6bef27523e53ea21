/* SPDX-License-Identifier: MIT */
/*
 * message.h - a message is some bytes, of a size that the channel knows.
 */
#ifndef WF_CHAN_MESSAGE_H
#define WF_CHAN_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* One of a word is copied by a few instructions. */
static inline void wf_message_copy(void *to, const void *from, size_t size)
{
    if (size == sizeof(uint64_t)) {
        memcpy(to, from, sizeof(uint64_t));
    } else {
        memcpy(to, from, size);
    }
}

#endif
