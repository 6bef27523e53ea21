/* SPDX-License-Identifier: MIT */
/*
 * messages.c - datagram sockets on a fiber.
 */
#include "messages.h"

#include <string.h>

#include "test.h"
#include "timing.h"

weft_datagram *message_open(const char *place, weft_address *address)
{
    weft_datagram *socket = NULL;
    CHECK_EQ(weft_datagram_open(&socket, place, NULL), 0);
    CHECK_EQ(weft_datagram_address(socket, address), 0);
    return socket;
}

void message_send(weft_datagram *socket, const char *text, const weft_address *to)
{
    ssize_t size = (ssize_t)strlen(text);
    CHECK_EQ(to != NULL ? weft_datagram_send_to(socket, text, (size_t)size, to, WEFT_NEVER)
                        : weft_datagram_send(socket, text, (size_t)size, WEFT_NEVER),
             size);
}

void message_check(weft_datagram *socket, const char *wanted)
{
    char buffer[100];
    ssize_t n = weft_datagram_receive(socket, buffer, sizeof buffer, test_deadline());
    CHECK_EQ(n, (ssize_t)strlen(wanted));
    CHECK_EQ(memcmp(buffer, wanted, (size_t)n), 0);
}

void message_check_none(weft_datagram *socket)
{
    char byte;
    CHECK_EQ(weft_datagram_receive(socket, &byte, 1, 0), WEFT_ETIMEDOUT);
}
