/* SPDX-License-Identifier: MIT */
/*
 * messages.h - sockets for messages, on a fiber. Each call checks that it succeeds.
 */
#ifndef TEST_MESSAGES_H
#define TEST_MESSAGES_H

#include <weft.h>

/* Opens one, and tells where it is. */
weft_datagram *message_open(const char *place, weft_address *address);

/* Sends a text, to an address or, with NULL, to where it is connected to. */
void message_send(weft_datagram *socket, const char *text, const weft_address *to);

/* The next message is this text. */
void message_check(weft_datagram *socket, const char *wanted);

/* There is none. */
void message_check_none(weft_datagram *socket);

#endif
