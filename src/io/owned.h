/* SPDX-License-Identifier: MIT */
/*
 * owned.h - set of the descriptors that streams, listeners and sockets of weft own.
 *
 * Each owner closes its descriptor. If two had the same one, the second close could hit a
 * descriptor that another part of the program has opened since. So adopting a descriptor that
 * is already owned is an error.
 */
#ifndef WF_IO_OWNED_H
#define WF_IO_OWNED_H

#include <stdbool.h>

/* Marks a descriptor as owned. Returns false if it is already owned. Any thread. */
bool wf_owned_claim(int fd);

/* Clears the mark. Called by the owner before it closes the descriptor or gives it up. */
void wf_owned_release(int fd);

#endif
