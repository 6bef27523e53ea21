/* SPDX-License-Identifier: MIT */
/*
 * message.h - channel messages: bytes, of a size that the channel knows.
 */
#ifndef WF_CHAN_MESSAGE_H
#define WF_CHAN_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Copies a message. A message of one word takes a few instructions. A message of size 0 is an
 * event: its pointers may be NULL, which memcpy() does not allow. */
static inline void wf_message_copy(void *to, const void *from, size_t size)
{
    if (size == sizeof(uint64_t)) {
        memcpy(to, from, sizeof(uint64_t));
    } else if (size > 0) {
        memcpy(to, from, size);
    }
}

#endif
