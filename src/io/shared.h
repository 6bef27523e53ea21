/* SPDX-License-Identifier: MIT */
/*
 * shared.h - terminals and standard pipes as streams, without making them non-blocking for others.
 */
#ifndef WF_IO_SHARED_H
#define WF_IO_SHARED_H

#include <stdbool.h>

/* Returns whether fd is a blocking terminal, or a blocking pipe that is standard input, output
 * or error. O_NONBLOCK would then affect other processes that have it open. */
bool wf_shared_is(int fd);

/*
 * Returns a non-blocking descriptor to use for a shared one: a new one, or fd itself if opening
 * it again fails. fd itself is then non-blocking until wf_shared_restore() or the exit of the
 * process. Fails with -errno.
 */
int wf_shared_open(int fd);
void wf_shared_restore(int fd);

#endif
