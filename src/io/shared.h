/* SPDX-License-Identifier: MIT */
/*
 * shared.h - terminals and standard pipes as streams, without making them non-blocking for others.
 */
#ifndef WF_IO_SHARED_H
#define WF_IO_SHARED_H

#include <stdbool.h>

/* Is this a blocking terminal, or a blocking pipe that is standard input, output or error? Then
 * O_NONBLOCK would affect others that have it open. */
bool wf_shared_is(int fd);

/*
 * Returns a non-blocking descriptor in place of a shared one: a new one, or fd itself if there can
 * be none. fd itself is made non-blocking then, until wf_shared_restore(), or the exit of the
 * process. -errno.
 */
int wf_shared_open(int fd);
void wf_shared_restore(int fd);

#endif
