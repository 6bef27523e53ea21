/* SPDX-License-Identifier: MIT */
/*
 * owned.h - which descriptors of the process belong to a stream, listener or socket of weft.
 *
 * Each of them closes its descriptor. If two had the same one, the second close could hit a
 * descriptor that some other part of the program has opened since. So adopting a descriptor that is
 * owned already is an error.
 */
#ifndef WF_IO_OWNED_H
#define WF_IO_OWNED_H

#include <stdbool.h>

/* Any thread: marks a descriptor as owned. Returns false if it was owned before. */
bool wf_owned_claim(int fd);

/* The owner, before it closes the descriptor or gives it up. */
void wf_owned_release(int fd);

#endif
