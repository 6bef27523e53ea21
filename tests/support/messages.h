/* SPDX-License-Identifier: MIT */
/*
 * messages.h - datagram sockets on a fiber. Each call checks that it succeeds.
 */
#ifndef TEST_MESSAGES_H
#define TEST_MESSAGES_H

#include <weft.h>

/* Opens a socket and returns its address. */
weft_datagram *message_open(const char *place, weft_address *address);

/* Sends a text to the address, or to the connected peer if it is NULL. */
void message_send(weft_datagram *socket, const char *text, const weft_address *to);

/* Checks that the next message is this text. */
void message_check(weft_datagram *socket, const char *wanted);

/* Checks that no message is pending. */
void message_check_none(weft_datagram *socket);

#endif
